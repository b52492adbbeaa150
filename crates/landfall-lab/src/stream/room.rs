//! The largest state that there is room for.

use super::plan::largest_within;
use crate::Error;
use crate::room::Room;
use landfall_os::humanize::bytes_text;

impl Room {
    /// Refuses a state that is too large for a filesystem in memory: there it does not run out of space
    /// but of memory, and the kernel then kills whom it likes.
    pub(super) fn check_memory(&self, size: u64) -> Result<(), Error> {
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

    /// Bytes of the largest state that there is room for.
    pub(super) fn largest(&self) -> u64 {
        largest_within(self.free).min(self.largest_in_memory())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_fits_into_the_space_and_into_the_memory_that_is_available() {
        let mut room = Room {
            free: 100 << 30,
            memory: 16 << 30,
            in_memory: false,
        };
        assert_eq!(room.largest(), 12 << 30);
        room.free = 1 << 30;
        assert!(room.largest() < 1 << 30);
    }
}
