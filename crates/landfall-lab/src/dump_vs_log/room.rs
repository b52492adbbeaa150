//! A state that there is room for: it is kept in memory, saved and read back.

use landfall_os::humanize::bytes_text;

use super::Plan;
use crate::room::Room;
use crate::{Error, Site};

/// Copies of a state in memory beside each other: the one that is kept, and the one that is read back.
const KEPT: u64 = 2;
/// Its files, where they are in memory too: the dump, the snapshot, and whatever is being written.
const FILES: u64 = 3;
/// The smallest state that is worth dumping.
const SMALLEST_STATE: u64 = 1 << 20;

impl Room {
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
    pub(super) fn fitting(&self, site: &Site, plan: &Plan) -> Result<Plan, Error> {
        plan.check()?;
        let most = self.largest_kept();
        let fits = |plan: &Plan| plan.required_bytes() <= self.free && plan.state_bytes <= most;
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
        assert_eq!(room.largest_kept(), 4 << 30);
        // There the files are in memory as well.
        room.in_memory = true;
        assert!(room.largest_kept() * (KEPT + FILES) <= 12 << 30);
    }
}
