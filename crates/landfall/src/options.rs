//! Options of a log. Every option has a default.

use crate::Error;
use crate::log::format::{Geometry, MOST_BLOCK};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Bytes of the largest blocks that a disk has: what suits them suits every disk.
const PAGE: u64 = 4096;
/// Segments that are made ahead, at most: each is an open file.
const MOST_SPARE: u32 = 16;

/// Options of a [`Log`](crate::Log). The defaults suit most programs.
///
/// ```
/// use landfall::Options;
///
/// let options = Options::default().segment_bytes(64 << 20).spare_segments(4);
/// assert_eq!(options.segment_bytes, 64 << 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of a segment, which is a file of the log. Truncating frees whole segments. An existing log keeps the size
    /// that it was made with. A multiple of 4,096, from 16 KiB to 64 GiB. Default 16 MiB.
    pub segment_bytes: u64,
    /// Segments that are made ahead of need, besides the one that is always behind the last in use. As many are kept
    /// after they were truncated. From 1 to 16. Default 2.
    pub spare_segments: u32,
    /// Bytes of records that wait in memory to be written. Appending waits when they are full. There are two such
    /// buffers. From 16 KiB to 1 GiB. Default 4 MiB.
    pub buffer_bytes: u64,
    /// Bytes of records that may wait in memory without a commit. Then they are written. From 1 to
    /// `buffer_bytes`. Default 1 MiB.
    pub max_unwritten_bytes: u64,
    /// Bytes that may be written without being durable. Then they are made durable without a commit. A program that
    /// never commits can lose these bytes, and those in the buffers. Opening a log that was not closed reads as many
    /// behind its end. From 1 KiB to 1 TiB. Default 64 MiB.
    pub max_unsynced_bytes: u64,
    /// Maximum asynchronous commits in flight before [`append_async`](crate::Log::append_async) and
    /// [`append_then`](crate::Log::append_then) block. At least 1. Default 65,536.
    pub max_pending_commits: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 16 * MIB,
            spare_segments: 2,
            buffer_bytes: 4 * MIB,
            max_unwritten_bytes: MIB,
            max_unsynced_bytes: 64 * MIB,
            max_pending_commits: 1 << 16,
        }
    }
}

impl Options {
    /// Sets [`segment_bytes`](Options::segment_bytes).
    #[must_use]
    pub fn segment_bytes(mut self, bytes: u64) -> Options {
        self.segment_bytes = bytes;
        self
    }

    /// Sets [`spare_segments`](Options::spare_segments).
    #[must_use]
    pub fn spare_segments(mut self, segments: u32) -> Options {
        self.spare_segments = segments;
        self
    }

    /// Sets [`buffer_bytes`](Options::buffer_bytes).
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: u64) -> Options {
        self.buffer_bytes = bytes;
        self
    }

    /// Sets [`max_unwritten_bytes`](Options::max_unwritten_bytes).
    #[must_use]
    pub fn max_unwritten_bytes(mut self, bytes: u64) -> Options {
        self.max_unwritten_bytes = bytes;
        self
    }

    /// Sets [`max_unsynced_bytes`](Options::max_unsynced_bytes).
    #[must_use]
    pub fn max_unsynced_bytes(mut self, bytes: u64) -> Options {
        self.max_unsynced_bytes = bytes;
        self
    }

    /// Sets [`max_pending_commits`](Options::max_pending_commits).
    #[must_use]
    pub fn max_pending_commits(mut self, commits: u32) -> Options {
        self.max_pending_commits = commits;
        self
    }

    /// Bytes of the largest block: as much is written by one call at the most.
    pub(crate) fn block_bytes(&self, geometry: Geometry) -> u64 {
        let most = MOST_BLOCK.min(self.buffer_bytes / 2);
        most.min(geometry.segment - geometry.granule) / geometry.granule * geometry.granule
    }

    /// How far apart the first and the last byte of a group may be: what a buffer takes, and what is left empty at
    /// ends of segments.
    pub(crate) fn group_extent(&self) -> u64 {
        2 * self.buffer_bytes
    }

    /// How far behind what is durable a block may end that is written.
    ///
    /// Before a group is written that is not made durable, what is not durable, with it, is no more than
    /// `max_unsynced_bytes`. It may reach further by its extent, a block that grew behind that, and what is left empty
    /// before it. Then a group comes that is made durable, of which the same is true.
    pub(crate) fn window(&self, geometry: Geometry) -> u64 {
        self.max_unsynced_bytes + 2 * self.group_extent() + 4 * self.block_bytes(geometry)
    }

    /// Whether they are as is documented, so that a log can be made with them on any disk.
    pub(crate) fn check_for_any_disk(&self) -> Result<(), Error> {
        self.check(PAGE)
    }

    /// Whether a log can be kept with these, with blocks of whole `granule`s.
    pub(crate) fn check(&self, granule: u64) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Options(text));
        if !self.segment_bytes.is_multiple_of(granule) || self.segment_bytes < 4 * granule {
            return refuse(format!(
                "segment_bytes is {}: it must be a multiple of {granule}, and at least 4 times that",
                self.segment_bytes
            ));
        }
        if self.segment_bytes > 64 << 30 {
            return refuse("segment_bytes is at most 64 GiB".into());
        }
        if self.buffer_bytes < 4 * granule || self.buffer_bytes > 1 << 30 {
            return refuse(format!(
                "buffer_bytes is from {} bytes to 1 GiB",
                4 * granule
            ));
        }
        if !(1..=self.buffer_bytes).contains(&self.max_unwritten_bytes) {
            return refuse("max_unwritten_bytes is from 1 to buffer_bytes".into());
        }
        if !(KIB..=1 << 40).contains(&self.max_unsynced_bytes) {
            return refuse("max_unsynced_bytes is from 1 KiB to 1 TiB".into());
        }
        if self.max_pending_commits == 0 {
            return refuse("max_pending_commits is at least 1".into());
        }
        if !(1..=MOST_SPARE).contains(&self.spare_segments) {
            return refuse(format!("spare_segments is from 1 to {MOST_SPARE}"));
        }
        Ok(())
    }
}
