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

/// Leaves after which it is told again how far a group is.
const EACH: u64 = if cfg!(test) { 2 } else { 16 };

/// How far one group is: told in steps, so that nobody waits for all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    work: u64,
    told: u64,
    leaves: u64,
    done: u64,
}

impl Steps {
    /// Of a group that takes so much work, for as many leaves.
    pub fn new(work: u64, leaves: usize) -> Steps {
        Steps {
            work,
            told: 0,
            leaves: leaves as u64,
            done: 0,
        }
    }

    /// The next leaf is begun; how much of the work is to be told now.
    pub fn leaf(&mut self) -> u64 {
        self.done += 1;
        if self.done % EACH != 1 {
            return 0;
        }
        // It may get more leaves than it had.
        let (begun, leaves) = (self.done + EACH - 1, self.leaves.max(1));
        let begun = u128::from(self.work) * u128::from(begun.min(leaves)) / u128::from(leaves);
        self.tell(begun as u64)
    }

    /// What was not told yet.
    pub fn rest(&mut self) -> u64 {
        self.tell(self.work)
    }

    fn tell(&mut self, begun: u64) -> u64 {
        let more = begun.saturating_sub(self.told);
        self.told += more;
        more
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_steps_together_are_the_work(work: u64, leaves in 0..100_usize, written in 0..200_usize) {
            let mut steps = Steps::new(work, leaves);
            let mut told = 0;
            for _ in 0..written {
                told += steps.leaf();
                prop_assert!(told <= work);
            }
            prop_assert!(written < leaves.max(1) || told == work);
            prop_assert!(told + steps.rest() == work);
            prop_assert!(steps.rest() == 0);
        }

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
