//! The bytes of a snapshot: what `docs/snapshot-format.md` says, and nothing else.
//!
//! Numbers are little-endian. Whatever is read here may be anything: nothing panics, and nothing is
//! believed before its checksum was compared.

use crc32c::{crc32c, crc32c_append};

use crate::Compression;

/// Of the layout in `docs/snapshot-format.md`.
pub(crate) const VERSION: u32 = 1;
/// Bytes of the header, of which the file begins with.
pub(crate) const HEADER: usize = 4096;
/// Bytes before each chunk.
pub(crate) const CHUNK: usize = 48;
/// Bytes that a chunk stands for, at most.
pub(crate) const MOST_CHUNK: u32 = 16 << 20;
/// Parts of a state, at most.
pub(crate) const MOST_PARTS: u32 = 1 << 20;

/// Numbers of snapshots are less.
const MOST_NUMBER: u64 = 1 << 62;

/// The name that a snapshot has until it is durable.
pub(crate) const DRAFT: &str = "snapshot.new";
const PREFIX: &str = "snapshot-";
const MAGIC: &[u8; 16] = b"Landfall snp\r\n\x1a\n";

/// The name of snapshot number `number`.
pub(crate) fn snapshot_name(number: u64) -> String {
    format!("{PREFIX}{number:06}")
}

/// The number of a snapshot of that name.
pub(crate) fn snapshot_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (snapshot_name(number) == name && number < MOST_NUMBER).then_some(number)
}

/// Numbers one after the other, as they are in a file.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> u32 {
        let (word, rest) = self.0.split_at(4);
        self.0 = rest;
        u32::from_le_bytes([word[0], word[1], word[2], word[3]])
    }

    fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }
}

/// What a snapshot is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The log that goes on from it.
    pub log: u64,
    /// 1 for the first that the state ever had, then one by one.
    pub number: u64,
    /// The first record that may have to be applied behind it.
    pub first: u64,
    pub parts: u32,
    pub compression: Compression,
}

/// What stands where a header should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Header(Header),
    /// Another version's.
    Version(u32),
    Damage,
}

impl Header {
    pub fn encode(&self, out: &mut [u8]) {
        out[..HEADER].fill(0);
        out[4..20].copy_from_slice(MAGIC);
        out[20..24].copy_from_slice(&VERSION.to_le_bytes());
        out[24..32].copy_from_slice(&self.log.to_le_bytes());
        out[32..40].copy_from_slice(&self.number.to_le_bytes());
        out[40..48].copy_from_slice(&self.first.to_le_bytes());
        out[48..52].copy_from_slice(&self.parts.to_le_bytes());
        out[52..56].copy_from_slice(&self.compression.code().to_le_bytes());
        let crc = crc32c(&out[4..HEADER]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    pub fn decode(bytes: &[u8]) -> Found {
        let mut fields = Fields(bytes);
        if fields.u32() != crc32c(&bytes[4..HEADER]) || bytes[4..20] != *MAGIC {
            return Found::Damage;
        }
        let mut fields = Fields(&bytes[20..]);
        let version = fields.u32();
        if version != VERSION {
            return Found::Version(version);
        }
        let (log, number, first) = (fields.u64(), fields.u64(), fields.u64());
        let (parts, code) = (fields.u32(), fields.u32());
        match Compression::of_code(code) {
            Some(compression) if (1..=MOST_PARTS).contains(&parts) => Found::Header(Header {
                log,
                number,
                first,
                parts,
                compression,
            }),
            _ => Found::Damage,
        }
    }
}

/// A row of bytes of a part, or the end of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// Of the snapshot that it belongs to.
    pub number: u64,
    /// How many chunks are before it.
    pub index: u64,
    /// The part; at the end of the snapshot, how many there are.
    pub part: u32,
    /// Records before this one are in the part already; at the end, in any of them.
    pub lsn: u64,
    /// Bytes that it stands for.
    pub length: u32,
    /// Bytes that follow.
    pub stored: u32,
    /// Whether what follows is compressed.
    pub is_compressed: bool,
    /// Whether the part ends with it.
    pub ends_part: bool,
    /// Whether the snapshot ends with it.
    pub ends_all: bool,
}

impl Chunk {
    /// Puts it into the first [`CHUNK`] bytes of `out`, for the bytes that follow.
    pub fn encode(&self, payload: &[u8], out: &mut [u8]) {
        let flags = u32::from(self.is_compressed)
            | u32::from(self.ends_part) << 1
            | u32::from(self.ends_all) << 2;
        out[..CHUNK].fill(0);
        out[4..8].copy_from_slice(&self.stored.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.index.to_le_bytes());
        out[24..32].copy_from_slice(&self.lsn.to_le_bytes());
        out[32..36].copy_from_slice(&self.part.to_le_bytes());
        out[36..40].copy_from_slice(&self.length.to_le_bytes());
        out[40..44].copy_from_slice(&flags.to_le_bytes());
        let crc = crc32c_append(crc32c(&out[4..CHUNK]), payload);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// What the first [`CHUNK`] bytes say, which is to be believed when [`is_right`](Chunk::is_right) says so;
    /// `None` if it could not be right whatever follows.
    pub fn decode(bytes: &[u8]) -> Option<Chunk> {
        let mut fields = Fields(&bytes[4..CHUNK]);
        let stored = fields.u32();
        let (number, index, lsn) = (fields.u64(), fields.u64(), fields.u64());
        let (part, length, flags) = (fields.u32(), fields.u32(), fields.u32());
        let chunk = Chunk {
            number,
            index,
            part,
            lsn,
            length,
            stored,
            is_compressed: flags & 1 != 0,
            ends_part: flags & 2 != 0,
            ends_all: flags & 4 != 0,
        };
        let fits = length <= MOST_CHUNK && stored <= length && flags < 8;
        let is_plain = chunk.is_compressed || stored == length;
        (fits && is_plain).then_some(chunk)
    }

    /// Whether these are the bytes of a chunk with what follows it.
    pub fn is_right(bytes: &[u8], payload: &[u8]) -> bool {
        let crc = crc32c_append(crc32c(&bytes[4..CHUNK]), payload);
        crc.to_le_bytes() == bytes[..4]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_every_flipped_bit_is_seen() {
        let header = Header {
            log: 7,
            number: 3,
            first: 99,
            parts: 256,
            compression: Compression::Zstd,
        };
        let mut page = vec![0; HEADER];
        header.encode(&mut page);
        assert_eq!(Header::decode(&page), Found::Header(header));
        let chunk = Chunk {
            number: 3,
            index: 8,
            part: 255,
            lsn: u64::MAX,
            length: 9,
            stored: 5,
            is_compressed: true,
            ends_part: true,
            ends_all: false,
        };
        let mut bytes = vec![0; CHUNK];
        chunk.encode(b"bytes", &mut bytes);
        bytes.extend(b"bytes");
        assert_eq!(Chunk::decode(&bytes), Some(chunk));
        assert!(Chunk::is_right(&bytes, &bytes[CHUNK..]));
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!Chunk::is_right(&bytes, &bytes[CHUNK..]), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        for bit in 0..8 * HEADER {
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&page), Found::Damage, "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn another_version_is_told_from_damage() {
        let mut page = vec![0; HEADER];
        let header = Header {
            log: 1,
            number: 1,
            first: 1,
            parts: 1,
            compression: Compression::None,
        };
        header.encode(&mut page);
        page[20] = 9;
        let crc = crc32c(&page[4..]);
        page[..4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(Header::decode(&page), Found::Version(9));
    }

    #[test]
    fn names_are_those_that_are_made() {
        assert_eq!(snapshot_name(7), "snapshot-000007");
        assert_eq!(snapshot_number("snapshot-000007"), Some(7));
        assert_eq!(snapshot_number("snapshot-7"), None);
        assert_eq!(snapshot_number(DRAFT), None);
    }

    #[test]
    fn headers_and_chunks_that_cannot_be_right_are_refused() {
        assert_eq!(
            snapshot_number(&snapshot_name(MOST_NUMBER - 1)),
            Some(MOST_NUMBER - 1)
        );
        assert_eq!(snapshot_number(&snapshot_name(MOST_NUMBER)), None);
        let header = |parts| {
            let header = Header {
                log: 1,
                number: 2,
                first: 3,
                parts,
                compression: Compression::Lz4,
            };
            let mut bytes = vec![0; HEADER];
            header.encode(&mut bytes);
            Header::decode(&bytes) == Found::Header(header)
        };
        assert!(header(1) && header(MOST_PARTS));
        assert!(!header(0) && !header(MOST_PARTS + 1));
        let chunk = |length, stored, is_compressed| {
            let chunk = Chunk {
                number: 1,
                index: 2,
                part: 3,
                lsn: 4,
                length,
                stored,
                is_compressed,
                ends_part: false,
                ends_all: false,
            };
            let mut bytes = [0; CHUNK];
            chunk.encode(&[], &mut bytes);
            Chunk::decode(&bytes) == Some(chunk)
        };
        assert!(chunk(10, 10, false) && chunk(10, 9, true) && chunk(10, 10, true));
        assert!(chunk(MOST_CHUNK, 1, true) && chunk(0, 0, false));
        assert!(!chunk(10, 9, false) && !chunk(10, 11, true) && !chunk(MOST_CHUNK + 1, 1, true));
        // A flag that there is none of.
        let mut bytes = [0; CHUNK];
        bytes[40] = 8;
        assert_eq!(Chunk::decode(&bytes), None);
    }
}
