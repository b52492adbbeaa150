//! Options of a store and of a keyspace. Every option has a default.

use std::time::Duration;

use super::protection::Protection;
use crate::compression::Compressor;
use crate::{Compression, Error, Options, Policy};

/// Bytes of a leaf that a keyspace may ask for.
const LEAF_BYTES: std::ops::RangeInclusive<u32> = 256..=1 << 20;
/// Bytes that a home may have: a power of two.
pub(super) const HOME_BYTES: std::ops::RangeInclusive<u32> = if cfg!(any(test, fuzzing)) {
    512..=16 << 10
} else {
    4 << 10..=16 << 10
};
/// Memory below which nothing can be collected.
const LEAST_MEMORY: usize = 4 << 10;

/// The most that a [`StoreBuffer`] can be, in percent: more would cost space, and gain little.
pub const MOST_BUFFER_PERCENT: u8 = if cfg!(test) { 200 } else { 16 };

/// How many percent of what leaves take on disk *runs* may take: changes that wait there until many can be merged into leaves
/// together. The more, the fewer bytes are written, the more space is used, and the more places a read may have to look at.
/// It does not concern keyspaces that are [in place](KeyspaceOptions::in_place).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreBuffer {
    /// So many, up to [`MOST_BUFFER_PERCENT`]. 0: none.
    Percent(u8),
    /// As many, up to `most`, as move the fewest bytes with the load as it is: [`Store::buffer`](crate::Store::buffer) says
    /// what was chosen, and why. It begins with what the store has. The store remembers what was chosen, and not that it
    /// was: opened without this, it stays as it is.
    Auto {
        /// Percent.
        most: u8,
    },
}

impl StoreBuffer {
    pub(super) fn check(self) -> Result<(), Error> {
        let (StoreBuffer::Percent(percent) | StoreBuffer::Auto { most: percent }) = self;
        if percent > MOST_BUFFER_PERCENT {
            let text = format!("the buffer must be at most {MOST_BUFFER_PERCENT} percent");
            return Err(Error::Options(text));
        }
        Ok(())
    }
}

/// Options of a [`Store`](crate::Store). The defaults suit most programs.
///
/// ```
/// use landfall::StoreOptions;
///
/// let options = StoreOptions::default().memory_bytes(256 << 20);
/// assert_eq!(options.memory_bytes, 256 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bytes of memory, from 4 KiB: changes that wait to be written take half of it at most (removals on a full disk thrice that), what is known
    /// of where leaves are about 230 bytes for each and what its first key has over 32, and leaves that were read what these leave, an eighth at least. What the allocator needs besides is not in it. Default 64
    /// MiB.
    pub memory_bytes: usize,
    /// When commits become durable. Default [`Policy::EveryCommit`].
    pub policy: Policy,
    /// What is done so that a power cut takes no leaf of keyspaces that are [in place](KeyspaceOptions::in_place). `None`, the
    /// default: what the store has, and [`Protection::Shadow`] if it is new. With another one the store is opened as if
    /// [`Store::set_protection`](crate::Store::set_protection) had been called.
    pub protection: Option<Protection>,
    /// How much may wait in runs. `None`, the default: what the store has, and nothing if it is new. With another one the store is
    /// opened as if [`Store::set_buffer`](crate::Store::set_buffer) had been called.
    pub buffer: Option<StoreBuffer>,
    /// How long opening after a crash may take. A checkpoint is made when applying the log again would take longer, at the speed
    /// that was measured. Default 5 s.
    pub max_recovery_time: Duration,
    /// Options of the log.
    pub log: Options,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            memory_bytes: 64 << 20,
            policy: Policy::EveryCommit,
            protection: None,
            buffer: None,
            max_recovery_time: Duration::from_secs(5),
            log: Options::default(),
        }
    }
}

impl StoreOptions {
    /// Sets [`memory_bytes`](StoreOptions::memory_bytes).
    #[must_use]
    pub fn memory_bytes(mut self, bytes: usize) -> StoreOptions {
        self.memory_bytes = bytes;
        self
    }

    /// Sets [`policy`](StoreOptions::policy).
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> StoreOptions {
        self.policy = policy;
        self
    }

    /// Sets [`protection`](StoreOptions::protection).
    #[must_use]
    pub fn protection(mut self, protection: Protection) -> StoreOptions {
        self.protection = Some(protection);
        self
    }

    /// Sets [`buffer`](StoreOptions::buffer) to so many percent.
    #[must_use]
    pub fn buffer_percent(self, percent: u8) -> StoreOptions {
        self.buffer(StoreBuffer::Percent(percent))
    }

    /// Sets [`buffer`](StoreOptions::buffer).
    #[must_use]
    pub fn buffer(mut self, buffer: StoreBuffer) -> StoreOptions {
        self.buffer = Some(buffer);
        self
    }

    /// Sets [`max_recovery_time`](StoreOptions::max_recovery_time).
    #[must_use]
    pub fn max_recovery_time(mut self, time: Duration) -> StoreOptions {
        self.max_recovery_time = time;
        self
    }

    /// Sets [`log`](StoreOptions::log).
    #[must_use]
    pub fn log(mut self, log: Options) -> StoreOptions {
        self.log = log;
        self
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.memory_bytes < LEAST_MEMORY {
            let text = format!("memory_bytes must be at least {LEAST_MEMORY}");
            return Err(Error::Options(text));
        }
        if self.policy == Policy::Interval(Duration::ZERO) {
            let text = "an interval is longer than 0: for every commit there is EveryCommit";
            return Err(Error::Options(text.to_owned()));
        }
        self.buffer.map_or(Ok(()), StoreBuffer::check)
    }
}

/// Options of a keyspace, which it keeps as it was made with them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceOptions {
    /// Bytes of a leaf, before compression: what a point read reads, and what is written for a change that is alone. From
    /// 256 bytes to 1 MiB. Default 16 KiB.
    pub leaf_bytes: u32,
    /// How leaves are compressed. Default LZ4; none in place.
    pub compression: Compression,
    /// Each leaf has a home of `leaf_bytes`, which are 4, 8 or 16 KiB, and is written over there, unless the store's
    /// [`Protection`] is `Shadow`. A leaf that is larger, since a single value is, has none. Default `false`: leaves are written
    /// elsewhere each time.
    pub in_place: bool,
    /// A leaf that has changes takes `leaf_bytes` of [`memory_bytes`](StoreOptions::memory_bytes), besides these, as in engines that
    /// change pages in memory. That is charged only, and not kept; it makes leaves be written for fewer changes. It is here to be
    /// compared with. Default `false`.
    pub whole_leaves: bool,
}

impl Default for KeyspaceOptions {
    fn default() -> KeyspaceOptions {
        KeyspaceOptions {
            leaf_bytes: 16 << 10,
            compression: Compression::Lz4,
            in_place: false,
            whole_leaves: false,
        }
    }
}

impl KeyspaceOptions {
    /// Sets [`leaf_bytes`](KeyspaceOptions::leaf_bytes).
    #[must_use]
    pub fn leaf_bytes(mut self, bytes: u32) -> KeyspaceOptions {
        self.leaf_bytes = bytes;
        self
    }

    /// Sets [`compression`](KeyspaceOptions::compression).
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> KeyspaceOptions {
        self.compression = compression;
        self
    }

    /// Sets [`in_place`](KeyspaceOptions::in_place), and no compression with it.
    #[must_use]
    pub fn in_place(mut self, is_in_place: bool) -> KeyspaceOptions {
        self.in_place = is_in_place;
        if is_in_place {
            self.compression = Compression::None;
        }
        self
    }

    /// Sets [`whole_leaves`](KeyspaceOptions::whole_leaves).
    #[must_use]
    pub fn whole_leaves(mut self, is_whole: bool) -> KeyspaceOptions {
        self.whole_leaves = is_whole;
        self
    }

    /// Whether a store can have them, and this program read and write it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_form()?;
        if Compressor::new(self.compression).is_err() {
            let name = self.compression.name();
            let text = format!(
                "this program cannot compress by {name}: build the crate `landfall` with the feature `{name}`"
            );
            return Err(Error::Options(text));
        }
        Ok(())
    }

    /// Whether a store can have them.
    pub(crate) fn check_form(&self) -> Result<(), Error> {
        if self.in_place {
            let bytes = self.leaf_bytes;
            if !bytes.is_power_of_two() || !HOME_BYTES.contains(&bytes) {
                let text = "leaf_bytes must be 4096, 8192 or 16384 in place";
                return Err(Error::Options(text.to_owned()));
            }
            if self.compression != Compression::None {
                let text = "leaves in place are not compressed: compression must be none";
                return Err(Error::Options(text.to_owned()));
            }
        }
        if !LEAF_BYTES.contains(&self.leaf_bytes) {
            let (least, most) = (LEAF_BYTES.start(), LEAF_BYTES.end());
            let text = format!("leaf_bytes must be from {least} to {most}");
            return Err(Error::Options(text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_refused() {
        assert!(StoreOptions::default().check().is_ok());
        assert!(StoreOptions::default().memory_bytes(4095).check().is_err());
        for (nanos, is_right) in [(0, false), (1, true)] {
            let policy = Policy::Interval(Duration::from_nanos(nanos));
            let options = StoreOptions::default().policy(policy);
            assert_eq!(options.check().is_ok(), is_right, "{nanos}");
        }
        for (bytes, is_right) in [
            (255, false),
            (256, true),
            (1 << 20, true),
            ((1 << 20) + 1, false),
        ] {
            let options = KeyspaceOptions::default().leaf_bytes(bytes);
            assert_eq!(options.check().is_ok(), is_right, "{bytes}");
        }
        for (bytes, is_right) in [(256, false), (512, true), (6000, false), (32 << 10, false)] {
            let options = KeyspaceOptions::default().leaf_bytes(bytes).in_place(true);
            assert_eq!(options.check().is_ok(), is_right, "{bytes}");
            assert!(options.compression(Compression::Lz4).check().is_err());
        }
    }
}
