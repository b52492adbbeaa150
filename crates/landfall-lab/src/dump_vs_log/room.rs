//! A state that there is room for: it is kept in memory, saved and read back.

use landfall_os::humanize::bytes_text;

use super::Plan;
use crate::room::Room;
use crate::{Error, Notice, Site, Weight};

/// Copies of a state in memory beside each other: the one that is kept, and the one that is read back.
const KEPT: u64 = 2;
/// Its files, where they are in memory too: two dumps and a log.
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

/// Says so if the state is smaller than the plan has it.
pub(super) fn of_smaller_state(planned: &Plan, measured: &Plan, room: &Room) -> Option<Notice> {
    let text = format!(
        "Dump against log was measured with a state of {} instead of {}: {} are free and {} of memory available.",
        bytes_text(measured.state_bytes),
        bytes_text(planned.state_bytes),
        bytes_text(room.free),
        bytes_text(room.memory)
    );
    (measured.state_bytes < planned.state_bytes)
        .then(|| Notice::new("smaller-state", Weight::Note, text))
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

    #[test]
    fn a_smaller_state_is_said() {
        let room = Room {
            free: 1 << 30,
            memory: 2 << 30,
            in_memory: false,
        };
        let plan = Plan::standard();
        let mut measured = plan.clone();
        assert_eq!(of_smaller_state(&plan, &measured, &room), None);
        measured.state_bytes /= 2;
        let notice = of_smaller_state(&plan, &measured, &room).unwrap();
        assert!(
            notice
                .text
                .contains("256 MiB instead of 512 MiB: 1.0 GiB are free"),
            "{}",
            notice.text
        );
    }
}
