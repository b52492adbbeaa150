//! How far those who commit may go on while a checkpoint is made: so that each waits for a part of it, and nobody for all.

#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Bytes of changes, when the checkpoint began.
    pub begin: usize,
    /// Those that there may be.
    pub most: usize,
    /// What it has to do, in whatever unit.
    pub work: u64,
}

impl Pace {
    /// With how many bytes of changes whoever commits waits, while the checkpoint does the last of this much.
    pub fn limit(&self, begun: u64) -> usize {
        let room = self.most.saturating_sub(self.begin) as u128;
        let part = room * u128::from(begun) / u128::from(self.work).max(1);
        self.most - room as usize + part as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn room_is_given_as_fast_as_it_is_made(begin: usize, work: u64, most: usize, begun: u64, more: u64) {
            let pace = Pace { begin, most, work };
            let begun = begun % work.max(1);
            let more = begun + more % (work - begun).max(1);
            // It only rises, from what there is, to what there may be.
            prop_assert!(pace.limit(0) == begin.min(most));
            prop_assert!(pace.limit(begun) <= pace.limit(more));
            prop_assert!(pace.limit(more) <= most);
            prop_assert!(work == 0 || pace.limit(work) == most);
            let share = |of: u64, whole: u64| of as f64 / whole.max(1) as f64;
            let room = most.saturating_sub(begin);
            let given = pace.limit(begun) - begin.min(most);
            prop_assert!((share(given as u64, room as u64) - share(begun, work)).abs() < 1e-6 + 1.0 / room.max(1) as f64);
        }
    }
}
