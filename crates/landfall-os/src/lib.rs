//! How to ask the Linux kernel for a durable write, and what it then did.
//!
//! - [`SyncMethod`] and [`SyncedFile`]: every way to make a write durable (and two that only look
//!   like one), behind one call;
//! - [`StreamMethod`] and [`StreamFile`]: the ways to hand over a large amount of data and sync it at
//!   the end;
//! - [`Allocation`]: every way to come by the space that is written;
//! - [`Host`], [`Filesystem`], [`BlockDevice`]: what a directory really stands on; [`DiskIdentity`]: which disk that is;
//! - [`DeviceCounters`], [`JournalCounter`], [`CpuTimes`]: what the kernel did for it;
//! - [`LoopDevice`], [`NbdDevice`], [`Mount`], [`PrivateDirectory`]: filesystems of our own to try it on;
//! - [`Process`], [`copy_directory`], [`write_whole_file`], [`StartBarrier`], [`Stop`]: programs, directories, files and threads that a
//!   run goes through, and how it is told to end; [`humanize`]: sizes and times as people write them;
//! - [`DirtyLimits`], [`dirty_bytes_of`], [`peak_resident`]: what it holds in memory.
//!
//! This is the only crate of the workspace that contains `unsafe`, and it contains it only where the
//! kernel interface demands it: memory mappings (LMDB's among them) and their bus errors, the
//! io_uring queues, and three system calls that have no safe wrapper.
//!
//! Nothing here prints or spawns threads. The one piece of global state is the handler that turns bus
//! errors in our own mappings into errors.

mod allocation;
mod block_node;
mod bus_error;
mod cache;
mod child;
mod copy_directory;
mod counters;
mod cpu;
mod device;
mod dirty;
mod disk_identity;
mod filesystem;
mod host;
pub mod humanize;
mod io_ring;
mod journal;
#[cfg(feature = "lmdb")]
mod lmdb;
mod loop_device;
mod mapping;
mod memory;
mod mount;
#[cfg(feature = "serde")]
mod names;
mod nbd_device;
mod network;
mod payload;
mod private_directory;
mod process;
mod server_thread;
mod start_barrier;
mod stop;
mod stream_file;
mod stream_method;
mod sync_method;
mod synced_file;
mod whole_file;
mod write_call;
mod write_ring;

pub use allocation::{
    Allocation, PrepareError, allocate_unwritten, allocate_write_zeroes, reserve, zero_fill,
};
pub use block_node::BlockNode;
pub use cache::{evict, load, resident_share, sync_filesystem, write_out};
pub use child::end_with_this_thread;
pub use copy_directory::{copy_directory, directory_bytes, sync_directory};
pub use counters::{DeviceCounters, JournalCounter};
pub use cpu::{CpuTimes, OneProcessor, process_cpu, thread_cpu, tree_cpu};
pub use device::{BlockDevice, DeviceKind, WriteCache};
pub use dirty::{DirtyLimits, dirty_bytes, dirty_bytes_of};
pub use disk_identity::{DiskIdentity, boot_id, host_name, machine_id};
pub use filesystem::{DirectIo, Filesystem, Medium, Space};
pub use host::Host;
#[cfg(feature = "lmdb")]
pub use lmdb::{LmdbSync, open_lmdb};
pub use loop_device::{AttachedLoop, LoopDevice, attached_loops};
pub use memory::{available_memory, peak_resident, reset_peak_resident};
pub use mount::{Mount, isolate_mounts, leave_mounts, mounts_under, share_mounts, unmount};
pub use nbd_device::NbdDevice;
pub use network::isolate_network;
pub use payload::{ALIGNMENT, Payload};
pub use private_directory::{PrivateDirectory, abandoned_in};
pub use process::Process;
pub use server_thread::serve_block_device;
pub use start_barrier::StartBarrier;
pub use stop::Stop;
pub use stream_file::{Content, StreamFile};
pub use stream_method::{StreamCall, StreamMethod};
pub use sync_method::{ParseSyncMethodError, SyncCall, SyncMethod};
pub use synced_file::SyncedFile;
pub use whole_file::{may_be_replaced, write_whole_file};
pub use write_call::WriteCall;

// The example of the README compiles, and is run where it can be.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
