//! How much there is room for: space on the filesystem, and memory.

use landfall_os::{Medium, Space, available_memory};

use super::plan::largest_within;
use super::saving;
use crate::{Error, Site, bytes_text};

/// Share of the available memory that a state may take: its pages are in memory until written.
const MEMORY_SHARE: f64 = 0.75;
/// Share of it for a state that is kept in memory, beside a second one that is read back.
const KEPT_SHARE: f64 = 0.25;
/// The smallest state that is worth dumping.
const SMALLEST_STATE: u64 = 1 << 20;

/// What there is room for.
pub(super) struct Room {
    /// Bytes free on the filesystem.
    pub free: u64,
    /// Bytes of memory that are available.
    pub memory: u64,
    /// Whether the filesystem is in that memory.
    in_memory: bool,
}

impl Room {
    /// What there is now.
    pub fn of(site: &Site) -> Result<Room, Error> {
        let space = Space::of(site.directory()).map_err(Error::io(format!(
            "cannot find out how much is free in {}",
            site.directory().display()
        )))?;
        Ok(Room {
            free: space.available_bytes,
            memory: available_memory().unwrap_or(u64::MAX),
            in_memory: site.filesystem().storage().medium == Medium::Memory,
        })
    }

    /// Refuses a state that is too large for a filesystem in memory: there it does not run out of space
    /// but of memory, and the kernel then kills whom it likes.
    pub fn check_memory(&self, size: u64) -> Result<(), Error> {
        match self.in_memory && size > self.memory_share(MEMORY_SHARE) {
            false => Ok(()),
            true => Err(Error::Refused(format!(
                "a state of {} is more than three quarters of the {} of memory that is available: name a smaller --size",
                bytes_text(size),
                bytes_text(self.memory)
            ))),
        }
    }

    fn memory_share(&self, share: f64) -> u64 {
        (self.memory as f64 * share) as u64
    }

    /// Bytes of the largest state that there is room for.
    pub fn largest(&self) -> u64 {
        largest_within(self.free).min(self.memory_share(MEMORY_SHARE))
    }

    /// `plan` with a state that there is room for, or why there is none.
    pub fn saving(&self, site: &Site, plan: &saving::Plan) -> Result<saving::Plan, Error> {
        plan.check()?;
        let most = self.memory_share(KEPT_SHARE);
        let fits =
            |plan: &saving::Plan| plan.required_bytes() <= self.free && plan.state_bytes <= most;
        let mut plan = plan.clone();
        while !fits(&plan) {
            if plan.state_is_chosen || plan.state_bytes / 2 < SMALLEST_STATE {
                site.require_space(plan.required_bytes(), "name a smaller --state")?;
                return Err(Error::Refused(format!(
                    "a state of {} is more than a quarter of the {} of memory that is available: name a smaller --state",
                    bytes_text(plan.state_bytes),
                    bytes_text(self.memory)
                )));
            }
            plan.state_bytes /= 2;
        }
        Ok(plan)
    }
}
