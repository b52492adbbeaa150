//! Whether what a request costs the device still changes.
//!
//! While clients ask, the device's bytes are read at the end of every *window* of equal length. At 8, 12,
//! 16 … windows the later half of them is held against the quarter before it: when the KiB per request of
//! both, each taken as a whole, differ by at most 5%, the load is steady. The beginning, which is the
//! least typical, is never among them. Single windows are not compared, since a checkpoint makes waves.
//!
//! Flat is not steady where a database has put off what it must do: one that writes pages only when its
//! log has come round, compacts only when enough memtables were written, or merges only when a buffer on disk is
//! full. So its log must have been gone through once, [`MEMTABLES`] memtables be written, and the buffer be full, where it
//! tells such things.

use std::time::Duration;

use landfall_os::DeviceCounters;
use landfall_results::{Steadiness, Window};

use landfall_databases::PendingWrites;

/// KiB per request that differ by at most this share are alike.
pub(super) const ALIKE: f64 = 0.05;
/// Windows after which it is first asked, and after how many more again.
const FIRST: usize = 8;
const STEP: usize = 4;
/// How full a buffer of changes on disk must be.
pub const FULL: f64 = 0.9;
/// Memtables that a database which has them must have written: by then each level of its tree that it will
/// have was compacted several times.
pub const MEMTABLES: u64 = 20;

/// Notes windows while clients work.
pub(super) struct Windows {
    length: Duration,
    /// Requests and bytes at the last window's end.
    last: (u64, u64),
    until: Duration,
    pub windows: Vec<Window>,
}

impl Windows {
    /// None yet; the device's counters are `now`.
    pub fn new(length: Duration, now: &DeviceCounters) -> Windows {
        Windows {
            length,
            last: (0, now.write_bytes),
            until: length,
            windows: Vec::new(),
        }
    }

    /// Ends a window if `elapsed` says so, after so many requests in all; whether it did. `count` reads
    /// the device.
    pub fn look(
        &mut self,
        elapsed: Duration,
        requests: u64,
        count: impl FnOnce() -> Option<DeviceCounters>,
    ) -> bool {
        if elapsed < self.until {
            return false;
        }
        let Some(now) = count() else { return false };
        self.windows.push(Window {
            requests: requests.saturating_sub(self.last.0),
            bytes: now.write_bytes.saturating_sub(self.last.1),
        });
        self.last = (requests, now.write_bytes);
        self.until = elapsed + self.length;
        true
    }

    /// KiB per request, window by window; for people, since those without requests are not among them.
    pub fn kib(&self) -> Vec<f64> {
        let windows = self.windows.iter();
        windows
            .filter_map(|w| kib(std::slice::from_ref(w)))
            .collect()
    }

    /// Whether it is time to ask whether the load is steady.
    pub fn is_due(&self) -> bool {
        let windows = self.windows.len();
        windows >= FIRST && windows.is_multiple_of(STEP)
    }
}

/// KiB per request of windows taken as a whole.
fn kib(windows: &[Window]) -> Option<f64> {
    let requests: u64 = windows.iter().map(|window| window.requests).sum();
    let bytes: u64 = windows.iter().map(|window| window.bytes).sum();
    (requests > 0).then(|| bytes as f64 / 1024.0 / requests as f64)
}

/// What the windows of a warm-up and the database's own word say.
pub(super) fn judge(windows: &Windows, seconds: f64, pending: &PendingWrites) -> Steadiness {
    let all = &windows.windows;
    let half = all.len() / 2;
    let (earlier, later) = all.split_at(half);
    let quarter = &earlier[half / 2..];
    let change = match (kib(quarter), kib(later)) {
        (Some(before), Some(after)) if after > 0.0 => Some((before / after - 1.0).abs()),
        // Nothing is written at all: that is steady.
        (Some(0.0), Some(_)) => Some(0.0),
        _ => None,
    };
    let flat = all.len() >= FIRST && change.is_some_and(|change| change <= ALIKE);
    let compacted = pending
        .memtable_flushes
        .is_none_or(|count| count >= MEMTABLES);
    let came_round = pending.log_rounds.is_none_or(|rounds| rounds >= 1.0);
    let is_full = pending.buffer_filled.is_none_or(|filled| filled >= FULL);
    Steadiness {
        reached: flat && compacted && came_round && is_full,
        seconds,
        change,
        memtable_flushes: pending.memtable_flushes,
        log_rounds: pending.log_rounds,
        buffer_filled: pending.buffer_filled,
        kib: windows.kib(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(kib: &[u64]) -> Windows {
        let window = |kib: &u64| Window {
            requests: 100,
            bytes: kib * 100 * 1024,
        };
        Windows {
            windows: kib.iter().map(window).collect(),
            ..Windows::new(Duration::from_secs(1), &DeviceCounters::default())
        }
    }

    fn reached(kib: &[u64], pending: PendingWrites) -> bool {
        judge(&windows(kib), 1.0, &pending).reached
    }

    #[test]
    fn the_later_half_is_held_against_the_quarter_before_it() {
        let none = PendingWrites::default();
        assert!(reached(&[90, 70, 20, 20, 19, 21, 20, 20], none));
        assert!(!reached(&[20, 20, 20, 20, 24, 24, 24, 24], none));
        assert!(!reached(&[20; 7], none));
        // Waves are no change.
        assert!(reached(
            &[
                10, 30, 10, 30, 10, 30, 10, 30, 10, 30, 10, 30, 10, 30, 10, 30
            ],
            none
        ));
        assert!(reached(&[0; 8], none));
    }

    #[test]
    fn what_was_put_off_must_have_come() {
        let pending = |memtable_flushes, log_rounds| PendingWrites {
            memtable_flushes,
            log_rounds,
            ..PendingWrites::default()
        };
        assert!(!reached(&[4; 8], pending(Some(MEMTABLES - 1), None)));
        assert!(reached(&[4; 8], pending(Some(MEMTABLES), None)));
        assert!(!reached(&[4; 8], pending(None, Some(0.9))));
        assert!(reached(&[4; 8], pending(None, Some(1.0))));
        for (filled, is_steady) in [(0.5, false), (1.0, true)] {
            let pending = PendingWrites {
                buffer_filled: Some(filled),
                ..PendingWrites::default()
            };
            assert_eq!(reached(&[4; 8], pending), is_steady);
        }
    }

    #[test]
    fn a_window_ends_when_its_time_is_over() {
        let counters = |bytes| {
            Some(DeviceCounters {
                write_bytes: bytes,
                ..DeviceCounters::default()
            })
        };
        let mut windows = Windows::new(Duration::from_secs(1), &counters(1024).unwrap());
        assert!(!windows.look(Duration::from_millis(900), 9, || None));
        assert!(windows.look(Duration::from_millis(1_100), 10, || counters(21 * 1024)));
        assert!(!windows.look(Duration::from_millis(2_000), 19, || counters(0)));
        assert!(windows.look(Duration::from_millis(2_100), 20, || counters(31 * 1024)));
        assert_eq!(windows.kib(), [2.0, 1.0]);
        assert!(!windows.is_due());
    }
}
