//! Options of a state. Every option has a default.

use std::time::Duration;

use super::format::MOST_CHUNK;
use crate::{Compression, Error, Options};

/// When a command becomes durable, which decides what a power cut can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// A commit, which is a command of a state, is durable when it returns. A power cut takes nothing.
    #[default]
    EveryCommit,
    /// A commit becomes durable as soon as the disk is free, together with all that came in meanwhile. Nobody waits for it. A
    /// power cut, or the death of the process, takes what was committed within the time of two flushes.
    Group,
    /// A commit becomes durable at most this long after it was made, plus one flush. Nobody waits for it. A power cut, or the
    /// death of the process, takes what was committed within that time. Less than 1 ms counts as 1 ms; 0 is refused.
    Interval(Duration),
}

/// Options of a [`Journaled`](crate::Journaled) state. The defaults suit most programs.
///
/// ```
/// use std::time::Duration;
/// use landfall::{Policy, StateOptions};
///
/// let options = StateOptions::default().policy(Policy::Interval(Duration::from_millis(100)));
/// assert_eq!(options.keep_snapshots, 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateOptions {
    /// When commands become durable. Default [`Policy::EveryCommit`].
    pub policy: Policy,
    /// How long opening may take. A snapshot is taken when reading the last one, and applying what was logged since,
    /// would take longer by what was measured. Default 5 s.
    pub max_recovery_time: Duration,
    /// Number of snapshots that are kept, in case one is damaged. The log is kept from the oldest of them on. Default 2,
    /// at least 1.
    pub keep_snapshots: u32,
    /// How snapshots are compressed. Default LZ4.
    pub compression: Compression,
    /// Bytes of a state in one chunk of a snapshot, which is compressed and checked by itself: from 64 bytes to
    /// 16 MiB. Default 256 KiB.
    pub chunk_bytes: u32,
    /// Options of the log of commands.
    pub log: Options,
}

impl Default for StateOptions {
    fn default() -> StateOptions {
        StateOptions {
            policy: Policy::EveryCommit,
            max_recovery_time: Duration::from_secs(5),
            keep_snapshots: 2,
            compression: Compression::Lz4,
            chunk_bytes: 256 << 10,
            log: Options::default(),
        }
    }
}

impl StateOptions {
    /// Sets [`policy`](StateOptions::policy).
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> StateOptions {
        self.policy = policy;
        self
    }

    /// Sets [`max_recovery_time`](StateOptions::max_recovery_time).
    #[must_use]
    pub fn max_recovery_time(mut self, time: Duration) -> StateOptions {
        self.max_recovery_time = time;
        self
    }

    /// Sets [`keep_snapshots`](StateOptions::keep_snapshots).
    #[must_use]
    pub fn keep_snapshots(mut self, snapshots: u32) -> StateOptions {
        self.keep_snapshots = snapshots;
        self
    }

    /// Sets [`compression`](StateOptions::compression).
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> StateOptions {
        self.compression = compression;
        self
    }

    /// Sets [`chunk_bytes`](StateOptions::chunk_bytes).
    #[must_use]
    pub fn chunk_bytes(mut self, bytes: u32) -> StateOptions {
        self.chunk_bytes = bytes;
        self
    }

    /// Sets [`log`](StateOptions::log).
    #[must_use]
    pub fn log(mut self, log: Options) -> StateOptions {
        self.log = log;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Options(text.to_owned()));
        if !(64..=MOST_CHUNK).contains(&self.chunk_bytes) {
            return refuse("chunk_bytes is from 64 bytes to 16 MiB");
        }
        if self.keep_snapshots == 0 {
            return refuse("keep_snapshots is at least 1");
        }
        if self.compression == Compression::Zstd && !cfg!(feature = "zstd") {
            return refuse("Zstandard needs the feature zstd of the crate landfall");
        }
        if self.policy == Policy::Interval(Duration::ZERO) {
            return refuse("an interval is longer than 0: for every commit there is EveryCommit");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_option_is_set_by_its_own_name() {
        let log = Options::default().spare_segments(3);
        let set = StateOptions::default()
            .policy(Policy::Group)
            .max_recovery_time(Duration::from_secs(1))
            .keep_snapshots(7)
            .compression(Compression::None)
            .chunk_bytes(100)
            .log(log.clone());
        let expected = StateOptions {
            policy: Policy::Group,
            max_recovery_time: Duration::from_secs(1),
            keep_snapshots: 7,
            compression: Compression::None,
            chunk_bytes: 100,
            log,
        };
        assert_eq!(set, expected);
        set.check().unwrap();
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let options = StateOptions::default;
        for wrong in [
            options().chunk_bytes(63),
            options().chunk_bytes(MOST_CHUNK + 1),
            options().keep_snapshots(0),
            options().policy(Policy::Interval(Duration::ZERO)),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        let zstd = options().compression(Compression::Zstd).check();
        assert_eq!(zstd.is_ok(), cfg!(feature = "zstd"));
        let names = [Compression::None, Compression::Lz4, Compression::Zstd];
        assert_eq!(names.map(Compression::name), ["none", "lz4", "zstd"]);
    }
}
