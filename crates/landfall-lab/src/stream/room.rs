//! How much there is room for: space on the filesystem, and memory.

use landfall_os::{Medium, available_memory};

use super::plan::largest_within;
use super::saving;
use crate::{Error, Site};
use landfall_os::humanize::bytes_text;

/// Share of the available memory that a state may take: its pages are in memory until written.
const MEMORY_SHARE: f64 = 0.75;
/// Copies of a state in memory beside each other: the one that is kept, and the one that is read back.
const KEPT: u64 = 2;
/// Its files, where they are in memory too: two dumps and a log.
const FILES: u64 = 3;
/// The smallest state that is worth dumping.
const SMALLEST_STATE: u64 = 1 << 20;

/// What there is room for.
pub(super) struct Room {
    /// Bytes free on the filesystem.
    pub free: u64,
    /// Bytes of memory that are available.
    pub memory: u64,
    /// Whether the filesystem is in that memory.
    pub in_memory: bool,
}

impl Room {
    /// What there is now.
    pub fn of(site: &Site) -> Result<Room, Error> {
        Ok(Room {
            free: site.space()?.available_bytes,
            memory: available_memory().unwrap_or(u64::MAX),
            in_memory: site.filesystem().storage().medium == Medium::Memory,
        })
    }

    /// Refuses a state that is too large for a filesystem in memory: there it does not run out of space
    /// but of memory, and the kernel then kills whom it likes.
    pub fn check_memory(&self, size: u64) -> Result<(), Error> {
        if !(self.in_memory && size > self.largest_in_memory()) {
            Ok(())
        } else {
            Err(Error::Refused(format!(
                "a state of {} is more than three quarters of the {} of memory that is available: name a smaller --size",
                bytes_text(size),
                bytes_text(self.memory)
            )))
        }
    }

    fn memory_share(&self, share: f64) -> u64 {
        (self.memory as f64 * share) as u64
    }

    /// Bytes of the largest state that there is room for.
    pub fn largest(&self) -> u64 {
        largest_within(self.free).min(self.largest_in_memory())
    }

    /// Bytes of the largest state that there is memory for.
    pub fn largest_in_memory(&self) -> u64 {
        self.memory_share(MEMORY_SHARE)
    }

    /// Bytes of the largest state that may be kept in memory, saved and read back.
    fn largest_kept(&self) -> u64 {
        let copies = if self.in_memory {
            KEPT + FILES
        } else {
            KEPT + 1
        };
        self.largest_in_memory() / copies
    }

    /// `plan` with a state that there is room for, or why there is none.
    pub fn saving(&self, site: &Site, plan: &saving::Plan) -> Result<saving::Plan, Error> {
        plan.check()?;
        let most = self.largest_kept();
        let fits =
            |plan: &saving::Plan| plan.required_bytes() <= self.free && plan.state_bytes <= most;
        let mut plan = plan.clone();
        while !fits(&plan) {
            if plan.state_is_chosen || plan.state_bytes / 2 < SMALLEST_STATE {
                site.require_space(plan.required_bytes(), "name a smaller --state")?;
                return Err(Error::Refused(format!(
                    "a state of {} is too large to be kept, saved and read back with {} of memory available, {} is the most: name a smaller --state",
                    bytes_text(plan.state_bytes),
                    bytes_text(self.memory),
                    bytes_text(most)
                )));
            }
            plan.state_bytes /= 2;
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_and_all_its_copies_fit_into_the_memory_that_is_available() {
        let mut room = Room {
            free: 100 << 30,
            memory: 16 << 30,
            in_memory: false,
        };
        assert_eq!(room.largest(), 12 << 30);
        assert_eq!(room.largest_kept(), 4 << 30);
        // There the files are in memory as well.
        room.in_memory = true;
        assert!(room.largest_kept() * (KEPT + FILES) <= 12 << 30);
        room.free = 1 << 30;
        assert!(room.largest() < 1 << 30);
    }
}
