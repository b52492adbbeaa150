//! One way to write durably: a point in the space of the experiment's axes.

use std::fmt;
use std::io;

use landfall_os::{Allocation, SyncCall, SyncMethod};
use landfall_results::{Axes, CacheState, Files, Placement, Series};

use crate::preparation::Call;

/// Bytes that the threads of a strategy may hold together.
const MOST_BUFFERED: u64 = 1 << 30;
const PAGE: u64 = 4096;
/// Offset of an unaligned write into its first page: a sector, the least that a device can tell apart.
const MISALIGNMENT: u64 = 512;

/// One way to write durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strategy {
    /// How the space was allocated.
    pub allocation: Allocation,
    /// How the write is made durable.
    pub method: SyncMethod,
    /// Bytes in a write.
    pub size: u64,
    /// Threads that write.
    pub threads: u32,
    /// One file or a file each; always `Shared` with one thread.
    pub files: Files,
    /// Where writes land.
    pub placement: Placement,
    /// What the page cache holds.
    pub cache: CacheState,
}

impl Strategy {
    /// Overwriting written blocks, 8 KiB at a time, with fdatasync, by one thread: the centre of the
    /// standard plan, from which each axis is varied.
    pub const BASELINE: Strategy = Strategy {
        allocation: Allocation::Overwrite,
        method: SyncMethod::FDATASYNC,
        size: 8192,
        threads: 1,
        files: Files::Shared,
        placement: Placement::Sequential,
        cache: CacheState::Warm,
    };

    /// The same with another allocation.
    pub const fn allocated(self, allocation: Allocation) -> Strategy {
        Strategy { allocation, ..self }
    }

    /// The same with another method.
    pub const fn synced(self, method: SyncMethod) -> Strategy {
        Strategy { method, ..self }
    }

    /// Why this combination cannot be measured on any system, if it cannot.
    pub fn contradiction(&self) -> Option<String> {
        let direct = self.method.direct;
        if self.size * u64::from(self.threads) > MOST_BUFFERED {
            return Some("the threads' buffers together would take more than 1 GiB".into());
        }
        if self.method.call == SyncCall::Msync && self.allocation == Allocation::Append {
            return Some("a mapping cannot make a file grow".into());
        }
        if direct && !self.size.is_multiple_of(512) {
            return Some("direct I/O writes whole sectors".into());
        }
        if direct && self.cache == CacheState::Cold {
            return Some("direct I/O does not use the page cache".into());
        }
        let written = matches!(self.allocation, Allocation::Overwrite);
        if !written && (self.placement != Placement::Sequential || self.cache == CacheState::Cold) {
            return Some(
                "placement and cache are varied on written blocks (overwrite) only".into(),
            );
        }
        match self.allocation.step_bytes() {
            Some(step) if step < self.size => Some("a write is larger than the step".into()),
            _ => None,
        }
    }

    /// Why this system cannot do what the strategy asks for, if that is what the error means.
    pub(crate) fn unsupported(&self, error: &io::Error) -> Option<String> {
        Call::of(self.method, self.size, self.offset(0)).unsupported(error)
    }

    /// Where write number `number` of a file goes.
    pub fn offset(&self, number: u64) -> u64 {
        match self.placement {
            Placement::Sequential => number * self.size,
            Placement::Spaced => number * self.spacing(),
            Placement::Unaligned => number * self.spacing() + MISALIGNMENT,
        }
    }

    /// Length of a file that takes `writes` writes.
    pub fn span(&self, writes: u64) -> u64 {
        match self.placement {
            Placement::Sequential => writes * self.size,
            Placement::Spaced | Placement::Unaligned => writes * self.spacing(),
        }
    }

    fn spacing(&self) -> u64 {
        (MISALIGNMENT + self.size).next_multiple_of(PAGE) + PAGE
    }

    /// Files that this strategy writes.
    pub fn file_count(&self) -> u32 {
        match self.files {
            Files::Shared => 1,
            Files::Each => self.threads,
        }
    }

    /// Name of the strategy, unique in a plan and stable across runs:
    /// `overwrite/fdatasync/8K`, `overwrite/fdatasync/8K/16-threads-each`.
    pub fn key(&self) -> String {
        Axes::from(*self).key()
    }
}

impl From<Strategy> for Axes {
    fn from(strategy: Strategy) -> Axes {
        Axes {
            allocation: Some(strategy.allocation),
            sync_method: Some(strategy.method),
            size: Some(strategy.size),
            threads: Some(strategy.threads),
            files: Some(strategy.files),
            placement: Some(strategy.placement),
            cache: Some(strategy.cache),
            ..Axes::default()
        }
    }
}

/// What was measured of a strategy.
pub fn find<'a>(series: &'a [Series], strategy: &Strategy) -> Option<&'a Series> {
    let axes = Axes::from(*strategy);
    series.iter().find(|one| one.axes == axes)
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, proptest};

    #[test]
    fn keys_name_what_differs_from_a_plain_write() {
        assert_eq!(Strategy::BASELINE.key(), "overwrite/fdatasync/8K");
        let busy = Strategy {
            threads: 16,
            files: Files::Each,
            ..Strategy::BASELINE
        };
        assert_eq!(busy.key(), "overwrite/fdatasync/8K/16-threads-each");
        let cold = Strategy {
            placement: Placement::Unaligned,
            cache: CacheState::Cold,
            ..Strategy::BASELINE
        };
        assert_eq!(cold.key(), "overwrite/fdatasync/8K/unaligned/cold");
    }

    proptest! {
        /// Spaced writes share no page, and every write lies within the span.
        #[test]
        fn writes_stay_apart_and_inside(
            size in 1u64..200_000,
            number in 0u64..1000,
            placement in prop::sample::select(vec![Placement::Spaced, Placement::Unaligned]),
        ) {
            let strategy = Strategy { size, placement, ..Strategy::BASELINE };
            let end = strategy.offset(number) + size;
            prop_assert!(end.next_multiple_of(PAGE) <= strategy.offset(number + 1) / PAGE * PAGE);
            prop_assert!(end <= strategy.span(number + 1));
        }
    }
}
