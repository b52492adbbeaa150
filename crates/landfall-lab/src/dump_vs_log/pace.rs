//! When updates come in, and waiting for them.
//!
//! Update `i` is due at the start plus `i` over the rate, whatever became of those before it, so that the
//! time an update spends waiting behind a slow one counts as its own. (A loop that takes the next update
//! when the last one is done measures only one of all that a slow one holds up; that is known as
//! coordinated omission.)
//!
//! The kernel wakes a sleeper some 50 µs late. That would count as a stall of the log, so the last of a
//! wait is spent looking at the clock, which no program would do but which is alike for all policies.
//! Where a wake-up comes later still, because others have the processor, it counts: a program that waits
//! for messages is woken no sooner.

use std::io;
use std::time::{Duration, Instant};

use super::interrupted_if;
use crate::Stop;

/// The part of a wait that is not slept: what the kernel's timers are late by (`PR_GET_TIMERSLACK`), and
/// a little.
const LOOK_AT_CLOCK: Duration = Duration::from_micros(80);
/// The longest sleep, so that a request to stop is heard.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Updates that come in evenly for a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    per_second: f64,
    /// Updates that come in.
    pub updates: u64,
    /// For how long they do.
    pub time: Duration,
}

impl Pace {
    /// `per_second` updates a second for `seconds`; at least one.
    pub fn new(per_second: f64, seconds: f64) -> Pace {
        // Less a little, so that rounding makes no further update at the very end.
        let updates = (per_second * seconds - 1e-6).ceil().max(1.0) as u64;
        Pace {
            per_second,
            updates,
            time: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        }
    }

    /// `per_second` updates a second until somebody ends it.
    pub fn without_end(per_second: f64) -> Pace {
        Pace {
            per_second,
            updates: u64::MAX,
            time: Duration::MAX,
        }
    }

    /// When update `index` comes in, from the start.
    pub fn due(&self, index: u64) -> Duration {
        Duration::try_from_secs_f64(index as f64 / self.per_second).unwrap_or(Duration::MAX)
    }

    /// How many updates have come in after `elapsed`.
    pub fn due_by(&self, elapsed: Duration) -> u64 {
        let since_first = (elapsed.as_secs_f64() * self.per_second) as u64;
        since_first.saturating_add(1).min(self.updates)
    }
}

/// Waits until `moment`, exactly.
pub(super) fn wait_until(moment: Instant, stop: &Stop) -> io::Result<()> {
    while let Some(left) = moment.checked_duration_since(Instant::now()) {
        if left.is_zero() {
            break;
        }
        interrupted_if(stop)?;
        match left.checked_sub(LOOK_AT_CLOCK) {
            Some(sleep) if !sleep.is_zero() => std::thread::sleep(sleep.min(LONGEST_SLEEP)),
            _ => std::hint::spin_loop(),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn updates_are_due_evenly_from_the_start() {
        let pace = Pace::new(1_000.0, 1.5);
        assert_eq!(pace.updates, 1_500);
        assert_eq!(pace.due(0), Duration::ZERO);
        assert_eq!(pace.due(1_499), Duration::from_millis(1_499));
        assert_eq!(pace.due_by(Duration::ZERO), 1);
        assert_eq!(pace.due_by(Duration::from_micros(10_500)), 11);
        assert_eq!(pace.due_by(Duration::from_secs(9)), 1_500);
    }

    #[test]
    fn no_update_comes_in_when_the_time_is_over() {
        // 0.1 * 30 is a little more than 3.
        assert_eq!(Pace::new(0.1, 30.0).updates, 3);
        assert_eq!(Pace::new(0.1, 1.0).updates, 1);
    }

    #[test]
    fn a_wait_is_over_at_a_request_to_stop() {
        let stop = Stop::default();
        stop.flag().store(true, Ordering::Relaxed);
        let hours = Instant::now() + Duration::from_secs(86_400);
        let error = wait_until(hours, &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        // What is past needs no wait.
        wait_until(Instant::now(), &stop).unwrap();
    }

    proptest! {
        #[test]
        fn whatever_is_due_has_come_in(per_second in 0.1f64..1e6, index in 0u64..1_000_000) {
            let pace = Pace { per_second, updates: u64::MAX, time: Duration::MAX };
            // A due time is rounded to a nanosecond: it may come out as one update less or more.
            let come_in = pace.due_by(pace.due(index));
            prop_assert!(come_in.abs_diff(index + 1) <= 1, "{come_in}");
        }
    }
}
