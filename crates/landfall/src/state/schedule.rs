//! When a snapshot is due: when opening the state would take longer than it may.
//!
//! That is reckoned from what was measured here: how long reading a snapshot took, by bytes, and how long a command takes, which
//! is timed for one of many as they come, and for all of them at a restart. A restart that would take too long even
//! without any command is no reason to take one snapshot after the other: the commands must take at least a fourth of
//! it.

use std::time::Duration;

/// What it takes to read a record of the log and compare its checksum, of whatever length; measured with
/// `cargo bench -p landfall-lab --bench log -- --stream 1G`: 0.8 s for 5.4 million of 200 bytes.
const READ: f64 = 150e-9;
/// Of reading on, a weight by which a new sample counts.
const WEIGHT: f64 = 1.0 / 64.0;
/// The least of so many first samples counts: caches are cold.
const FIRST: u32 = 8;
/// How much more than what is known a sample counts at most: a thread may have been put aside meanwhile, or a map
/// have grown.
const MOST: f64 = 8.0;
/// Commands at a restart that say more than samples do.
const ENOUGH: u64 = 10_000;
/// How much longer the log must be before a snapshot that failed is tried again.
const AGAIN: f64 = 1.25;

#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// The first command that would be applied again.
    first: u64,
    /// Seconds that reading the last snapshot takes.
    load: f64,
    /// Seconds that a command takes to be applied again, and how many samples say so.
    command: Option<f64>,
    samples: u32,
    /// No snapshot is due before there are so many commands, since the last attempt failed.
    not_before: u64,
}

impl Schedule {
    /// After a restart that began at the command `first`.
    pub fn new(first: u64, load: Duration, commands: u64, replay: Duration) -> Schedule {
        let is_known = commands >= ENOUGH;
        Schedule {
            first,
            load: load.as_secs_f64(),
            command: is_known.then(|| replay.as_secs_f64() / commands as f64),
            samples: if is_known { FIRST } else { 0 },
            not_before: 0,
        }
    }

    /// The first command that counts.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// A command of so many bytes took so long to be decoded and applied.
    pub fn note(&mut self, bytes: usize, took: Duration) {
        // A record of a kilobyte is read at a gigabyte a second.
        let sample = took.as_secs_f64() + READ + bytes as f64 * 1e-9;
        self.command = Some(match self.command {
            Some(least) if self.samples < FIRST => least.min(sample),
            Some(before) => before + WEIGHT * (sample.min(MOST * before) - before),
            None => sample,
        });
        self.samples = (self.samples + 1).min(FIRST);
    }

    /// Whether one is due, when `next` is the next command.
    pub fn is_due(&self, next: u64, max_recovery_time: Duration) -> bool {
        let commands = next.saturating_sub(self.first);
        let replay = commands as f64 * self.command.unwrap_or(0.0);
        commands > self.not_before
            && self.load + replay > max_recovery_time.as_secs_f64()
            && replay >= self.load / 4.0
    }

    /// One was taken, behind which `first` is the first command; writing it took so long, and reading it will take as long.
    pub fn taken(&mut self, first: u64, took: Duration) {
        (self.first, self.load, self.not_before) = (first, took.as_secs_f64(), 0);
    }

    /// One could not be taken.
    pub fn failed(&mut self, next: u64) {
        let commands = next.saturating_sub(self.first) as f64;
        self.not_before = (commands * AGAIN) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(5);

    #[test]
    fn one_is_due_when_a_restart_would_take_too_long() {
        let mut schedule =
            Schedule::new(1, Duration::from_secs(2), 100_000, Duration::from_secs(1));
        assert!(!schedule.is_due(300_001, WITHIN));
        assert!(schedule.is_due(300_002, WITHIN));
        schedule.taken(300_002, Duration::from_secs(2));
        assert!(!schedule.is_due(600_002, WITHIN));
        assert!(schedule.is_due(600_003, WITHIN));
    }

    #[test]
    fn a_state_that_takes_too_long_to_read_is_not_written_again_and_again() {
        let schedule = Schedule::new(1, Duration::from_secs(40), 100_000, Duration::from_secs(1));
        assert!(!schedule.is_due(900_000, WITHIN));
        assert!(schedule.is_due(1_000_001, WITHIN));
    }

    #[test]
    fn samples_count_where_no_restart_has_told() {
        let mut schedule = Schedule::new(1, Duration::ZERO, 10, Duration::from_secs(1));
        assert!(!schedule.is_due(1 << 40, WITHIN));
        schedule.note(0, Duration::from_micros(10));
        assert!(!schedule.is_due(490_000, WITHIN));
        assert!(schedule.is_due(500_000, WITHIN));
    }

    #[test]
    fn a_sample_that_is_out_of_the_way_says_little() {
        let mut schedule = Schedule::new(1, Duration::ZERO, 100_000, Duration::from_secs(1));
        schedule.note(0, Duration::from_secs(1));
        assert!(!schedule.is_due(400_000, WITHIN));
    }

    #[test]
    fn what_failed_is_tried_again_later() {
        let mut schedule = Schedule::new(1, Duration::ZERO, 100_000, Duration::from_secs(1));
        assert!(schedule.is_due(600_001, WITHIN));
        schedule.failed(600_001);
        assert!(!schedule.is_due(700_000, WITHIN));
        assert!(schedule.is_due(750_002, WITHIN));
    }

    #[test]
    fn samples_are_reckoned_as_is_said() {
        let mut schedule = Schedule::new(1, Duration::ZERO, 0, Duration::ZERO);
        let micros = |schedule: &Schedule| schedule.command.unwrap() * 1e6;
        let is = |found: f64, expected: f64| (found - expected).abs() < 1e-9;
        // Reading a record, and a nanosecond for each of its bytes.
        schedule.note(1000, Duration::from_micros(10));
        assert!(is(micros(&schedule), 11.15));
        // The least of the first eight.
        for number in 2..=FIRST {
            schedule.note(0, Duration::from_micros(20 - u64::from(number)));
        }
        assert!(is(micros(&schedule), 11.15), "{}", micros(&schedule));
        assert_eq!(schedule.samples, FIRST);
        schedule.note(0, Duration::from_nanos(11_000));
        assert!(is(micros(&schedule), 11.15));
        let before = micros(&schedule);
        schedule.note(0, Duration::from_micros(75));
        assert!(is(micros(&schedule), before + (75.15 - before) / 64.0));
        let before = micros(&schedule);
        schedule.note(0, Duration::from_secs(1));
        assert!(is(micros(&schedule), before + 7.0 * before / 64.0));
        assert_eq!(schedule.samples, FIRST);
    }

    #[test]
    fn the_least_of_the_first_samples_counts() {
        let mut schedule = Schedule::default();
        for micros in [30, 20, 10, 20] {
            schedule.note(0, Duration::from_micros(micros));
        }
        assert!((schedule.command.unwrap() - 10.15e-6).abs() < 1e-12);
    }

    #[test]
    fn what_failed_is_not_tried_at_the_very_number() {
        let mut schedule =
            Schedule::new(1, Duration::from_secs(9), 20_000, Duration::from_secs(20));
        schedule.failed(4001);
        assert!(!schedule.is_due(5001, WITHIN));
        assert!(schedule.is_due(5002, WITHIN));
    }
}
