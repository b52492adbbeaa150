//! What tells disk images apart without comparing them.
//!
//! An image's identity is the exclusive or, over all sectors that differ from what was on the device
//! when the recording began, of a hash of the sector's number and content, and of the same hash of what
//! was there (as chess programs tell positions apart, after Zobrist). So equal images of one recording
//! have equal identities however they came about, and changing a sector costs one hash, not the disk.
//! Different images have different identities but for one chance in 2^128 for each pair: the hash
//! (XXH3) is not made to withstand somebody who looks for such a pair.

use std::fmt;

use twox_hash::XxHash3_128;

/// Equal for equal images of one recording, and different for different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u128);

impl Identity {
    /// What was on the device when the recording began.
    pub const BASE: Identity = Identity(0);

    /// The image with other contents in one sector or in several.
    pub(super) fn with(self, delta: Delta) -> Identity {
        Identity(self.0 ^ delta.0)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What a sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content(u128);

impl Content {
    pub fn of(sector: &[u8]) -> Content {
        Content(XxHash3_128::oneshot(sector))
    }
}

/// How an identity differs when some sectors hold something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delta(u128);

impl Delta {
    /// Nothing differs.
    pub const NONE: Delta = Delta(0);

    /// `sector` holds `new` in place of `old`.
    pub fn of(sector: u64, old: Content, new: Content) -> Delta {
        Delta(term(sector, old) ^ term(sector, new))
    }

    /// This and another one: of other sectors, or of the same one, which then takes it back.
    pub fn and(self, other: Delta) -> Delta {
        Delta(self.0 ^ other.0)
    }
}

fn term(sector: u64, content: Content) -> u128 {
    let mut bytes = [0; 24];
    bytes[..8].copy_from_slice(&sector.to_le_bytes());
    bytes[8..].copy_from_slice(&content.0.to_le_bytes());
    XxHash3_128::oneshot(&bytes)
}

/// A seed of its own for each use of a user's seed.
pub(super) fn seed_of(parts: &[u64]) -> u64 {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
    XxHash3_128::oneshot(&bytes) as u64
}
