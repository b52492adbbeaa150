//! How long a run will still take, from how long its trials took so far.

use std::time::Duration;

/// The latest time of each strategy, in the order of a round.
pub(crate) struct Schedule {
    rounds: u32,
    took: Vec<Option<Duration>>,
    dropped: Vec<bool>,
    /// What a trial takes as long as nothing is known.
    guess: Duration,
}

impl Schedule {
    /// A run of `rounds` rounds of so many strategies.
    pub fn new(strategies: usize, rounds: u32, guess: Duration) -> Schedule {
        Schedule {
            rounds,
            took: vec![None; strategies],
            dropped: vec![false; strategies],
            guess,
        }
    }

    /// A trial took so long, preparation included.
    pub fn took(&mut self, index: usize, time: Duration) {
        self.took[index] = Some(time);
    }

    /// This strategy will not be measured again.
    pub fn drop(&mut self, index: usize) {
        self.dropped[index] = true;
    }

    /// Time that the strategies which `round` has still to measure, and the rounds after it, will take:
    /// each strategy as long as last time, and those not yet run as long as the others on average.
    pub fn left(&self, round: u32, waiting: impl Iterator<Item = usize>) -> Duration {
        let known: Vec<Duration> = self.took.iter().flatten().copied().collect();
        let guess = match known.len() as u32 {
            0 => self.guess,
            count => known.iter().sum::<Duration>() / count,
        };
        let time = |index: usize| {
            if self.dropped[index] {
                Duration::ZERO
            } else {
                self.took[index].unwrap_or(guess)
            }
        };
        let this_round: Duration = waiting.map(time).sum();
        let one_round: Duration = (0..self.took.len()).map(time).sum();
        this_round + one_round * (self.rounds - round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_what_was_seen() {
        let second = Duration::from_secs(1);
        let mut schedule = Schedule::new(3, 2, second);
        assert_eq!(schedule.left(1, 0..3), 6 * second);
        schedule.took(0, 4 * second);
        assert_eq!(schedule.left(1, 1..3), (8 + 12) * second);
        schedule.drop(1);
        schedule.took(2, 2 * second);
        assert_eq!(schedule.left(2, [2].into_iter()), 2 * second);
    }
}
