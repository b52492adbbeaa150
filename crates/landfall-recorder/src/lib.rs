//! A block device in user space that remembers every write and flush, and what a power cut would have
//! left of them.
//!
//! - [`Recorder`]: the device. A real filesystem is made and mounted on it; clients put marks among its
//!   writes.
//! - [`Recording`]: what was on it, and what happened since.
//! - [`SiteRecording`]: of several devices, in one [`CommonOrder`].
//! - [`Counts`]: writes, bytes and flushes, exactly.
//! - [`Fault`]: what else can go wrong.
//! - [`Profile`]: how long a device of some kind takes.
//! - [`wear`]: what the writes cost the flash of a drive.
//!
//! The device is a file of a FUSE filesystem behind a loop device with direct I/O. What such a device
//! sees are writes, flushes and their order. It does not see which writes the kernel wanted to be
//! durable by themselves (FUA): it says that it cannot do that, and gets a flush after each instead, which makes more
//! durable than was asked for. Where the kernel has network block devices, [`Offer::ForceUnitAccess`] offers FUA too.
//!
//! A write that had not been answered when a flush arrived is not counted in by it. All that is counted in is what a disk
//! must count in, so that no crash state is tried that could not happen.
//!
//! It has no discard: filesystems are told so and write zeros where they need them.

mod answer;
mod atomic_unit;
mod common_order;
mod counts;
pub mod crash;
mod device;
mod event;
mod fault;
#[cfg(test)]
mod fixtures;
mod fuse_device;
mod latency;
mod nbd_device;
mod quantity;
mod recorder;
mod recording;
mod recording_file;
mod served_device;
mod server;
mod site_recording;
mod spill_file;
pub mod wear;

pub use answer::Answer;
pub use atomic_unit::AtomicUnit;
pub use common_order::CommonOrder;
pub use counts::Counts;
pub use event::{Event, EventKind, SECTOR, Span};
pub use fault::Fault;
pub use latency::{Profile, Request};
pub use recorder::{ClientMark, Options, Recorder};
pub use recording::Recording;
pub use served_device::Offer;
pub use site_recording::SiteRecording;

// The example of the README compiles, and is run where it can be.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
