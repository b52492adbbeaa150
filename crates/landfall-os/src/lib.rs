//! How to ask the Linux kernel for a durable write, and what it then did.
//!
//! - [`SyncMethod`] and [`SyncedFile`]: every way to make a write durable (and two that only look
//!   like one), behind one call;
//! - [`Allocation`]: every way to come by the space that is written;
//! - [`Host`], [`Filesystem`], [`BlockDevice`]: what a directory really stands on;
//! - [`DeviceCounters`], [`JournalCounter`], [`CpuTimes`]: what the kernel did for it.
//!
//! This is the only crate of the workspace that contains `unsafe`, and it contains it only where the
//! kernel interface demands it: memory mappings, the io_uring queues, and three system calls that
//! have no safe wrapper.
//!
//! Nothing here prints, spawns threads or keeps global state.

mod allocation;
mod cache;
mod counters;
mod cpu;
mod device;
mod dirty;
mod filesystem;
mod host;
mod io_ring;
mod mapping;
mod payload;
mod stream_method;
mod sync_method;
mod synced_file;

pub use allocation::{Allocation, allocate_unwritten, allocate_write_zeroes, zero_fill};
pub use cache::{evict, load, resident_share, sync_filesystem};
pub use counters::{DeviceCounters, JournalCounter};
pub use cpu::{CpuTimes, process_cpu};
pub use device::{BlockDevice, DeviceKind, WriteCache};
pub use dirty::{DirtyLimits, dirty_bytes};
pub use filesystem::{DirectIo, Filesystem, Medium, Space};
pub use host::Host;
pub use payload::{ALIGNMENT, Payload};
pub use stream_method::{StreamCall, StreamMethod};
pub use sync_method::{ParseSyncMethodError, SyncCall, SyncMethod};
pub use synced_file::SyncedFile;
