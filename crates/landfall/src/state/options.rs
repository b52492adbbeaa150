//! What can be chosen. Everything has a default that needs no touching.

use std::time::Duration;

use super::format::MOST_CHUNK;
use crate::{Error, Options};

/// When a command is durable, and so what a power cut can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Policy {
    /// When [`apply`](super::Journaled::apply) returns. A power cut takes nothing.
    #[default]
    EveryCommit,
    /// As soon as the disk is free, together with all that came in meanwhile; nobody waits for it. A power cut
    /// takes what was applied within the time of two flushes.
    Group,
    /// So long after it was applied at most, and a flush. A power cut takes what was applied within that time.
    Interval(Duration),
}

/// How a snapshot is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4: little work, and little gained.
    #[default]
    Lz4,
    /// Zstandard, at its lowest level: more work, and more gained.
    Zstd,
}

impl Compression {
    /// As it is kept in a file.
    pub(crate) fn code(self) -> u32 {
        match self {
            Compression::None => 0,
            Compression::Lz4 => 1,
            Compression::Zstd => 2,
        }
    }

    pub(crate) fn of_code(code: u32) -> Option<Compression> {
        let all = [Compression::None, Compression::Lz4, Compression::Zstd];
        all.into_iter()
            .find(|compression| compression.code() == code)
    }

    /// As it is called: `lz4`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// How a state is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateOptions {
    /// When commands are durable. With every commit.
    pub policy: Policy,
    /// How long opening may take: a snapshot is taken when reading the last one, and applying what was logged since,
    /// would take longer. 5 s.
    pub restart_within: Duration,
    /// Snapshots that are kept, so that one that is damaged can be done without; the log is kept from the oldest of
    /// them on. 2.
    pub snapshots: u32,
    /// How they are compressed. LZ4.
    pub compression: Compression,
    /// Bytes of a state that are compressed, and have a checksum, by themselves. 256 KiB.
    pub chunk_bytes: u32,
    /// Of its log.
    pub log: Options,
}

impl Default for StateOptions {
    fn default() -> StateOptions {
        StateOptions {
            policy: Policy::EveryCommit,
            restart_within: Duration::from_secs(5),
            snapshots: 2,
            compression: Compression::Lz4,
            chunk_bytes: 256 << 10,
            log: Options::default(),
        }
    }
}

impl StateOptions {
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Options(text.to_owned()));
        if !(64..=MOST_CHUNK).contains(&self.chunk_bytes) {
            return refuse("a chunk of a snapshot has from 64 bytes to 16 MiB");
        }
        if self.snapshots == 0 {
            return refuse("at least one snapshot is kept");
        }
        if self.policy == Policy::Interval(Duration::ZERO) {
            return refuse(
                "an interval is longer than nothing: for every commit there is a policy",
            );
        }
        Ok(())
    }
}
