//! How long a device takes: disks that nobody has at hand, in virtual time.
//!
//! [`Profile`] is a device by name and by numbers, as text. `Latency` is one in motion: it is told each
//! request when it comes and says at once when it is to be answered. It knows no clock of its own, so the
//! same requests at the same times are always answered at the same times. It holds no data; what a read
//! returns and what a power cut leaves is not its business.
//!
//! - `spinning`: a disk with an `arm` and perhaps a write `cache`.
//! - `solid`: flash and volumes behind a network.
//!
//! What the models leave out is in `docs/explanation/latency-models.md`.

mod arm;
mod cache;
mod profile;
mod solid;
mod spinning;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::event;
use profile::Medium;
pub use profile::Profile;
use solid::Flash;
use spinning::Disk;

/// Bytes of a sector.
const SECTOR: u64 = event::SECTOR as u64;

/// What a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read `len` bytes from `offset`.
    Read {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Write `len` bytes at `offset`.
    Write {
        /// The first byte.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Make durable what was written.
    Flush,
}

/// A device in motion.
#[derive(Debug)]
pub(crate) struct Latency {
    size: u64,
    device: Device,
}

#[derive(Debug)]
enum Device {
    Spinning(Disk),
    Solid(Flash),
}

impl Latency {
    /// A device of `size` bytes at rest.
    pub fn new(profile: &Profile, size: u64) -> Latency {
        let device = match profile.medium().clone() {
            Medium::Spinning(numbers) => Device::Spinning(Disk::new(numbers, size)),
            Medium::Solid(numbers) => Device::Solid(Flash::new(numbers)),
        };
        Latency { size, device }
    }

    /// When a request is finished that arrives at `now`; both since the same beginning. `now` never
    /// goes back.
    pub fn finish(&mut self, now: Duration, request: Request) -> Duration {
        let arrived = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let request = self.within(request);
        let done = match &mut self.device {
            Device::Spinning(disk) => disk.finish(arrived, request),
            Device::Solid(flash) => flash.finish(arrived, request),
        };
        Duration::from_nanos(done)
    }

    /// The part of a request that is on the device. (What is not is refused before it comes here.)
    fn within(&self, request: Request) -> Request {
        let part = |offset: u64, len: u64| {
            let offset = offset.min(self.size);
            (offset, len.min(self.size - offset))
        };
        match request {
            Request::Read { offset, len } => {
                let (offset, len) = part(offset, len);
                Request::Read { offset, len }
            }
            Request::Write { offset, len } => {
                let (offset, len) = part(offset, len);
                Request::Write { offset, len }
            }
            Request::Flush => Request::Flush,
        }
    }
}
