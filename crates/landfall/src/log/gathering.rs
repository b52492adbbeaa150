//! Whether a group of commits waits for those who committed at the same time lately.
//!
//! One flush for all of them is cheaper than two for half of them each, and sooner done if they come quickly. The
//! last of them writes; if they take too long, the first does, who *leads*. When that was in vain it is not tried
//! again for a while. Nothing but time depends on what is decided here.

use std::time::Duration;

/// Groups that are not waited for when waiting was in vain again and again, at most.
const MOST_SKIPPED: u32 = 63;
/// Flushes that a group waits for the others at most. That of 64 threads on two processors comes together in less than
/// two; given one only, groups were halves again and again, and a third fewer records were committed.
const PATIENCE: u32 = 2;
/// No group waits longer for others, however long a flush took: after one that a device stalled, who is alone would wait
/// for nobody.
const MOST_WAITED: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Gathering {
    /// Threads that lately committed at the same time.
    committers: u32,
    /// Until when the group waits for the others, if it does.
    until: Option<Duration>,
    /// Groups that are not waited for, and how many that will be when it is in vain the next time: nearly twice
    /// as many.
    to_skip: u32,
    in_vain: u32,
    /// How long a group takes to become durable, lately.
    flush_time: Duration,
}

/// What who wants a group to be written is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gather {
    /// Write it.
    Write,
    /// Wait for those who lead it.
    Follow,
    /// Wait, but no longer than this.
    Lead(Duration),
}

impl Gathering {
    pub fn new() -> Gathering {
        Gathering {
            committers: 1,
            until: None,
            to_skip: 0,
            in_vain: 0,
            flush_time: Duration::ZERO,
        }
    }

    /// Whether a group that so many wait for is written now.
    pub fn decide(&mut self, waiting: u32, now: impl FnOnce() -> Duration) -> Gather {
        if waiting >= self.committers {
            self.in_vain = 0;
            return Gather::Write;
        }
        if let Some(until) = self.until {
            if now() < until {
                return Gather::Follow;
            }
            self.in_vain = (2 * self.in_vain + 1).min(MOST_SKIPPED);
            self.to_skip = self.in_vain;
            return Gather::Write;
        }
        if self.to_skip > 0 {
            self.to_skip -= 1;
            return Gather::Write;
        }
        let until = now() + (PATIENCE * self.flush_time).min(MOST_WAITED);
        self.until = Some(until);
        Gather::Lead(until)
    }

    /// Until when the group waits for others, if it does.
    pub fn until(&self) -> Option<Duration> {
        self.until
    }

    /// The group is being written; another one gathers.
    pub fn begin(&mut self) {
        self.until = None;
    }

    /// A group was made durable for so many.
    pub fn note(&mut self, committers: u32, took: Duration) {
        self.flush_time = (self.flush_time * 3 + took) / 4;
        self.committers = committers;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// Four have committed together, which took 8 µs.
    fn of_four() -> Gathering {
        let mut gathering = Gathering::new();
        gathering.note(4, at(32));
        gathering
    }

    #[test]
    fn after_a_stall_nobody_waits_long() {
        let mut gathering = of_four();
        gathering.note(4, Duration::from_secs(30));
        assert_eq!(gathering.decide(1, || at(0)), Gather::Lead(MOST_WAITED));
    }

    #[test]
    fn who_is_alone_writes() {
        let mut gathering = Gathering::new();
        for _ in 0..10 {
            let decided = gathering.decide(1, || panic!("the clock is not looked at"));
            assert_eq!(decided, Gather::Write);
            gathering.begin();
            gathering.note(1, at(5));
        }
    }

    #[test]
    fn the_first_leads_and_the_last_writes() {
        let mut gathering = of_four();
        for _ in 0..10 {
            assert_eq!(gathering.decide(1, || at(100)), Gather::Lead(at(116)));
            assert_eq!(gathering.decide(2, || at(100)), Gather::Follow);
            assert_eq!(gathering.decide(3, || at(115)), Gather::Follow);
            assert_eq!(gathering.decide(4, || at(115)), Gather::Write);
            gathering.begin();
            gathering.note(4, at(8));
        }
    }

    #[test]
    fn a_flush_takes_what_it_took_lately() {
        let mut gathering = of_four();
        gathering.note(4, at(16));
        // Three parts of 8, and one of 16.
        assert_eq!(gathering.decide(1, || at(0)), Gather::Lead(at(20)));
    }

    #[test]
    fn what_was_in_vain_is_left_for_longer_and_longer() {
        let mut gathering = of_four();
        for skipped in [1, 3, 7, 15, 31, 63, 63, 63] {
            assert_eq!(gathering.decide(1, || at(100)), Gather::Lead(at(116)));
            assert_eq!(gathering.decide(2, || at(116)), Gather::Write, "too late");
            gathering.begin();
            for _ in 0..skipped {
                assert_eq!(gathering.decide(1, || at(0)), Gather::Write);
                gathering.begin();
            }
        }
        // Until all come again.
        assert!(matches!(gathering.decide(1, || at(0)), Gather::Lead(_)));
        assert_eq!(gathering.decide(4, || at(1)), Gather::Write);
        gathering.begin();
        assert_eq!(gathering.decide(1, || at(100)), Gather::Lead(at(116)));
        assert_eq!(gathering.decide(2, || at(117)), Gather::Write);
        gathering.begin();
        assert_eq!(gathering.decide(1, || at(0)), Gather::Write);
        gathering.begin();
        assert_eq!(gathering.decide(1, || at(100)), Gather::Lead(at(116)));
    }
}
