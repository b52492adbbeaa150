//! How far those who commit may go on while a checkpoint is made: so that each waits for a part of it, and nobody for all.

/// Bytes of changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// All, when the checkpoint began.
    pub begin: usize,
    /// Those that it writes.
    pub frozen: usize,
    /// All that there may be.
    pub most: usize,
}

impl Pace {
    /// With how many bytes of changes whoever commits waits, while the checkpoint writes the last of this many.
    pub fn limit(&self, begun: usize) -> usize {
        let room = self.most.saturating_sub(self.begin) as u128;
        let part = room * begun as u128 / (self.frozen as u128).max(1);
        self.most - room as usize + part as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn room_is_given_as_fast_as_it_is_made(begin: usize, frozen: usize, most: usize, begun: usize, more: usize) {
            let pace = Pace { begin, frozen, most };
            let begun = begun % frozen.max(1);
            let more = begun + more % (frozen - begun).max(1);
            // It only rises, from what there is, to what there may be.
            prop_assert!(pace.limit(0) == begin.min(most));
            prop_assert!(pace.limit(begun) <= pace.limit(more));
            prop_assert!(pace.limit(more) <= most);
            prop_assert!(frozen == 0 || pace.limit(frozen) == most);
            let share = |of: usize, whole: usize| of as f64 / whole.max(1) as f64;
            let room = most.saturating_sub(begin);
            let given = pace.limit(begun) - begin.min(most);
            prop_assert!((share(given, room) - share(begun, frozen)).abs() < 1e-6 + 1.0 / room.max(1) as f64);
        }
    }
}
