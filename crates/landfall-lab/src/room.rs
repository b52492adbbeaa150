//! What there is room for where states are large: space on the filesystem, and memory.

use landfall_os::{Medium, available_memory};

use crate::{Error, Site};

/// Share of the available memory that a state may take: its pages are in memory until written.
const MEMORY_SHARE: f64 = 0.75;

/// What there is room for.
pub(crate) struct Room {
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

    /// Bytes of the largest state that there is memory for.
    pub fn largest_in_memory(&self) -> u64 {
        (self.memory as f64 * MEMORY_SHARE) as u64
    }
}
