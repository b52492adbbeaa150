//! What can be chosen. Everything has a default that needs no touching.

use crate::Error;
use crate::log::format::MOST_BLOCK;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// How a log is kept. [`segment_bytes`](Options::segment_bytes) is of a log that is made; one that is there
/// stays as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a segment: files are made, written ahead and truncated by these. 16 MiB.
    pub segment_bytes: u64,
    /// Segments that are made ahead of need, and kept when they are not needed any more. 2.
    pub spare_segments: u32,
    /// Bytes of records that wait in memory to be written, before appending waits too; there are two such
    /// buffers. 4 MiB.
    pub buffer_bytes: u64,
    /// Bytes of records after which they are written without anybody committing. 1 MiB.
    pub write_bytes: u64,
    /// Bytes that are written and not durable, after which they are made durable without anybody
    /// committing. Who never commits can lose these, and what is still in the buffers. 64 MiB.
    pub unsynced_bytes: u64,
    /// Commits whose callbacks or futures wait, before another one has to wait. 65,536.
    pub waiting_commits: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 16 * MIB,
            spare_segments: 2,
            buffer_bytes: 4 * MIB,
            write_bytes: MIB,
            unsynced_bytes: 64 * MIB,
            waiting_commits: 1 << 16,
        }
    }
}

impl Options {
    /// Bytes of the largest block: as much is written by one call at the most.
    pub(crate) fn block_bytes(&self, segment: u64, granule: u64) -> u64 {
        let most = MOST_BLOCK.min(self.buffer_bytes / 2).min(segment - granule);
        most / granule * granule
    }

    /// Whether a log can be kept with these, with blocks of whole `granule`s.
    pub(crate) fn check(&self, granule: u64) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Options(text));
        if !self.segment_bytes.is_multiple_of(granule) || self.segment_bytes < 4 * granule {
            return refuse(format!(
                "segments of {} bytes are not 4 times {granule} bytes or more, and a multiple of that",
                self.segment_bytes
            ));
        }
        if self.segment_bytes > 64 << 30 {
            return refuse("segments have at most 64 GiB".into());
        }
        if self.buffer_bytes < 4 * granule || self.buffer_bytes > 1 << 30 {
            return refuse(format!("a buffer has from {} bytes to 1 GiB", 4 * granule));
        }
        if !(1..=self.buffer_bytes).contains(&self.write_bytes) {
            return refuse("records are written before a buffer is full: write_bytes is from 1 to buffer_bytes".into());
        }
        if self.unsynced_bytes < KIB || self.waiting_commits == 0 {
            return refuse("unsynced_bytes is at least 1 KiB, waiting_commits at least 1".into());
        }
        if !(1..=1024).contains(&self.spare_segments) {
            return refuse("from 1 to 1024 segments can be made ahead of need".into());
        }
        Ok(())
    }
}
