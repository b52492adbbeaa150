//! A page as it lies in the data file: a header, and what it holds, perhaps compressed.
//!
//! Whoever points to a page knows its checksum, which is that of its header too: so what is read is that page as it was
//! written, or damage is reported. An older page in the same place, or one that lies elsewhere, has another one.
//!
//! A page at its *home* is overwritten in place, so what is there may also be what came later and never came to count. It is
//! valid by itself then: by its own checksum, its place, and a *generation* that is higher than the one known. No two writes of a
//! home have the same.

use crc32c::crc32c;

use super::bytes::{Cursor, put_number};
use crate::compression::{Compressor, decompress};
use crate::{Compression, Error};

/// Bytes before what a page holds.
const HEADER: usize = 48;
const MAGIC: &[u8; 4] = b"LFpg";
/// Bytes that one page may stand for: more is no page of a store's.
const MOST_RAW: u32 = if cfg!(test) { 8 << 20 } else { 1 << 30 };

/// What a page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Entries.
    Leaf,
    /// Where the leaves of a group are.
    Group,
    /// Where the groups of all keyspaces are.
    Root,
    /// Where the blocks of a run are.
    Run,
}

impl Kind {
    fn code(self) -> u8 {
        match self {
            Kind::Leaf => 1,
            Kind::Group => 2,
            Kind::Root => 3,
            Kind::Run => 4,
        }
    }
}

/// Where a page is, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    /// The byte of the data file.
    pub offset: u64,
    /// Bytes, which are padded with zeros to whole granules.
    pub length: u32,
    pub crc: u32,
    /// Its generation at its home, where a later one may overwrite it; `None`: it has none.
    pub home: Option<u64>,
}

impl Pointer {
    /// Bytes that it takes of a file of such granules.
    pub fn extent(self, granule: u64) -> u64 {
        u64::from(self.length).next_multiple_of(granule)
    }

    pub fn put(self, granule: u64, out: &mut Vec<u8>) {
        put_number(out, self.offset / granule);
        put_number(
            out,
            u64::from(self.length) << 1 | u64::from(self.home.is_some()),
        );
        if let Some(generation) = self.home {
            put_number(out, generation);
        }
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    pub fn take(granule: u64, cursor: &mut Cursor<'_>) -> Option<Pointer> {
        let offset = cursor.number()?.checked_mul(granule)?;
        let length = cursor.number()?;
        let home = if length & 1 == 0 {
            None
        } else {
            Some(cursor.number()?)
        };
        let crc = cursor.take(4)?.try_into().ok()?;
        let pointer = Pointer {
            offset,
            length: (length >> 1).try_into().ok()?,
            crc: u32::from_le_bytes(crc),
            home,
        };
        let header = match home {
            Some(_) => HOME_HEADER,
            None => HEADER,
        };
        let has_header = pointer.length as usize >= header;
        (has_header && pointer.makes_sense(granule)).then_some(pointer)
    }

    pub fn makes_sense(self, granule: u64) -> bool {
        self.length as usize >= HEADER
            && self.offset < crate::log::format::MOST
            && self.offset.is_multiple_of(granule)
    }
}

/// A page that has no place yet.
pub(crate) struct Sealed {
    bytes: Vec<u8>,
    home: Option<u64>,
}

/// Bytes before what a page holds at its home: the newest commit that it may have something of is there, too.
const HOME_HEADER: usize = HEADER + 8;

/// Bytes that a page of a home may hold, of so many that the home has.
pub(crate) const fn room_at_home(bytes: u32) -> usize {
    bytes as usize - HOME_HEADER
}

/// When a page was written at its home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub generation: u64,
    /// The newest commit that it may have something of.
    pub newest: u64,
}

impl Written {
    /// Of a page at its home, which is valid.
    pub fn of(bytes: &[u8]) -> Written {
        Written {
            generation: u64_at(bytes, 32),
            newest: u64_at(bytes, HEADER),
        }
    }
}

impl Sealed {
    /// `store` is the number of the store, and `checkpoint` that of the checkpoint that writes it.
    pub fn new(
        kind: Kind,
        compression: Compression,
        store: u64,
        checkpoint: u64,
        raw: &[u8],
    ) -> Result<Sealed, Error> {
        let most = usize::try_from(MOST_RAW).unwrap_or(usize::MAX);
        if raw.len() > most {
            return Err(Error::TooLarge {
                what: match kind {
                    Kind::Leaf => "leaf with every version of a key that a snapshot reads",
                    _ => "page of a store",
                },
                bytes: raw.len(),
                most,
            });
        }
        let mut compressed = Vec::new();
        let is_compressed = Compressor::new(compression)
            .and_then(|mut compressor| compressor.compress(raw, &mut compressed))
            .map_err(Error::io("compress a page of a store"))?;
        let payload = if is_compressed { &compressed } else { raw };
        let method = if is_compressed {
            compression
        } else {
            Compression::None
        };
        let mut bytes = vec![0; HEADER];
        bytes.extend_from_slice(payload);
        let length = bytes.len() as u32;
        bytes[4..8].copy_from_slice(MAGIC);
        bytes[8] = kind.code();
        bytes[9] = method.code() as u8;
        bytes[12..16].copy_from_slice(&length.to_le_bytes());
        bytes[16..20].copy_from_slice(&(raw.len() as u32).to_le_bytes());
        bytes[24..32].copy_from_slice(&store.to_le_bytes());
        bytes[32..40].copy_from_slice(&checkpoint.to_le_bytes());
        Ok(Sealed { bytes, home: None })
    }

    /// A leaf that takes a home of so many bytes; `None`: there is no room for it.
    pub fn for_home(size: u32, store: u64, written: Written, raw: &[u8]) -> Option<Sealed> {
        if raw.len() > room_at_home(size) {
            return None;
        }
        let generation = written.generation;
        let sealed = Sealed::new(Kind::Leaf, Compression::None, store, generation, raw);
        let mut bytes = sealed.ok()?.bytes;
        bytes.splice(HEADER..HEADER, written.newest.to_le_bytes());
        bytes.resize(size as usize, 0);
        bytes[12..16].copy_from_slice(&size.to_le_bytes());
        Some(Sealed {
            bytes,
            home: Some(generation),
        })
    }

    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// What leads to it but for its place, and what depends on that.
    pub fn pointer(&self) -> Pointer {
        Pointer {
            offset: 0,
            length: self.bytes.len() as u32,
            crc: 0,
            home: self.home,
        }
    }

    /// Gives it a place.
    pub fn at(mut self, offset: u64) -> (Pointer, Vec<u8>) {
        self.bytes[40..48].copy_from_slice(&offset.to_le_bytes());
        let crc = crc32c(&self.bytes[4..]);
        self.bytes[..4].copy_from_slice(&crc.to_le_bytes());
        let pointer = Pointer {
            offset,
            length: self.bytes.len() as u32,
            crc,
            home: self.home,
        };
        (pointer, self.bytes)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// What the page holds that was read from where `pointer` says; why it is not that page.
pub(crate) fn unseal(
    bytes: &[u8],
    pointer: Pointer,
    kind: Kind,
    store: u64,
    trusts: bool,
) -> Result<Vec<u8>, &'static str> {
    let bytes = bytes.get(..pointer.length as usize);
    let bytes = bytes.filter(|bytes| bytes.len() >= HEADER);
    let Some(bytes) = bytes else {
        return Err("the page is cut off");
    };
    let crc = u32_at(bytes, 0);
    let is_whole = crc32c(&bytes[4..]) == crc;
    let is_later = |generation: u64| u64_at(bytes, 32) > generation;
    let is_right = is_whole && (crc == pointer.crc || pointer.home.is_some_and(is_later));
    if !is_right && !trusts {
        return Err("the page is not the one that was written there");
    }
    // What is behind is so by its checksum, unless the program that wrote it was wrong.
    let is_this = bytes[4..8] == *MAGIC
        && bytes[8] == kind.code()
        && u32_at(bytes, 12) == pointer.length
        && bytes[24..32] == store.to_le_bytes()
        && bytes[40..48] == pointer.offset.to_le_bytes();
    let raw_length = u32_at(bytes, 16);
    if !is_this || raw_length > MOST_RAW {
        return Err("the page is of another kind, or of another place");
    }
    let mut payload = &bytes[HEADER..];
    if pointer.home.is_some() {
        // What is behind is zeros.
        let payload_at_home = bytes.get(HOME_HEADER..HOME_HEADER + raw_length as usize);
        payload = payload_at_home.unwrap_or(payload);
    }
    let Some(method) = Compression::of_code(bytes[9].into()) else {
        return Err("the page is compressed in a way that is not known");
    };
    if method == Compression::None {
        let is_whole = payload.len() == raw_length as usize;
        return is_whole
            .then(|| payload.to_vec())
            .ok_or("the page has another length");
    }
    // It makes at most so many bytes of one.
    let most = 255 * payload.len() as u64;
    if method == Compression::Lz4 && u64::from(raw_length) > most {
        return Err("the page has another length");
    }
    let mut raw = vec![0; raw_length as usize];
    if decompress(method, payload, &mut raw) {
        Ok(raw)
    } else {
        Err("the page cannot be decompressed by this program")
    }
}

/// The home of a page that is valid by itself, and its bytes; `None`: here none begins.
pub(crate) fn home_of(bytes: &[u8], store: u64) -> Option<(u64, usize)> {
    let head = bytes.get(..HEADER)?;
    let length = u32_at(head, 12) as usize;
    let is_page = head[4..8] == *MAGIC && head[24..32] == store.to_le_bytes();
    let page = bytes
        .get(..length)
        .filter(|_| is_page && length >= HEADER)?;
    let is_whole = crc32c(&page[4..]) == u32_at(page, 0);
    is_whole.then(|| (u64_at(page, 40), length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(compression: Compression) -> (Pointer, Vec<u8>) {
        let sealed = Sealed::new(Kind::Leaf, compression, 7, 3, &[5; 300]).unwrap();
        sealed.at(8192)
    }

    #[test]
    fn what_is_sealed_is_unsealed() {
        for compression in [Compression::None, Compression::Lz4] {
            let (pointer, bytes) = page(compression);
            assert_eq!(bytes.len() < 300, compression == Compression::Lz4);
            let raw = unseal(&bytes, pointer, Kind::Leaf, 7, false);
            assert_eq!(raw.unwrap(), [5; 300]);
            let mut out = Vec::new();
            pointer.put(512, &mut out);
            assert_eq!(Pointer::take(512, &mut Cursor::new(&out)), Some(pointer));
            assert_eq!(
                pointer.extent(512),
                bytes.len().next_multiple_of(512) as u64
            );
        }
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let (pointer, bytes) = page(Compression::Lz4);
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(
                unseal(&bytes, pointer, Kind::Leaf, 7, false).is_err(),
                "{bit}"
            );
        }
    }

    /// As it was written with this generation.
    fn home(generation: u64, fill: u8) -> (Pointer, Vec<u8>) {
        let written = Written {
            generation,
            newest: 77,
        };
        let sealed = Sealed::for_home(1024, 7, written, &[fill; 300]).unwrap();
        let (pointer, bytes) = sealed.at(8192);
        assert_eq!(Written::of(&bytes), written);
        (pointer, bytes)
    }

    #[test]
    fn at_home_a_later_page_counts_and_an_older_one_does_not() {
        let room = room_at_home(1024);
        let written = Written {
            generation: 3,
            newest: 1,
        };
        assert!(Sealed::for_home(1024, 7, written, &vec![0; room]).is_some());
        assert!(Sealed::for_home(1024, 7, written, &vec![0; room + 1]).is_none());
        let (third, bytes_of_third) = home(3, 1);
        let (fourth, bytes_of_fourth) = home(4, 2);
        assert_eq!((bytes_of_third.len(), third.length), (1024, 1024));
        let read =
            |bytes: &[u8], pointer| unseal(bytes, pointer, Kind::Leaf, 7, false).map(|raw| raw[0]);
        assert_eq!(read(&bytes_of_third, third), Ok(1));
        assert_eq!(read(&bytes_of_fourth, third), Ok(2));
        assert!(read(&bytes_of_third, fourth).is_err());
        // Of the same generation it is that very page.
        assert!(read(&home(3, 9).1, third).is_err());
        for cut in [1, 100, 512, 1023] {
            let torn = [&bytes_of_fourth[..cut], &bytes_of_third[cut..]].concat();
            let is_whole = torn == bytes_of_third || torn == bytes_of_fourth;
            assert_eq!(read(&torn, third).is_ok(), is_whole, "{cut}");
        }
        for pointer in [third, fourth] {
            let mut out = Vec::new();
            pointer.put(512, &mut out);
            assert_eq!(Pointer::take(512, &mut Cursor::new(&out)), Some(pointer));
        }
        for bit in 0..bytes_of_third.len() * 8 {
            let mut bytes = bytes_of_third.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&bytes, third).is_err(), "{bit}");
        }
    }

    #[test]
    fn another_page_is_not_taken_for_it() {
        let (pointer, bytes) = page(Compression::None);
        assert!(unseal(&bytes, pointer, Kind::Group, 7, false).is_err());
        assert!(unseal(&bytes, pointer, Kind::Leaf, 8, false).is_err());
        assert!(unseal(&bytes[..200], pointer, Kind::Leaf, 7, false).is_err());
        let elsewhere = Pointer {
            offset: 4096,
            ..pointer
        };
        assert!(unseal(&bytes, elsewhere, Kind::Leaf, 7, false).is_err());
    }

    proptest! {
        /// Also where the checksum is right.
        #[test]
        fn nothing_panics_on_anything(head: [u8; HEADER], tail: Vec<u8>, compression in 0_u8..4, is_home: bool, checkpoint: u64) {
            let mut bytes = [&head[..], &tail].concat();
            let length = bytes.len() as u32;
            bytes[4..8].copy_from_slice(MAGIC);
            (bytes[8], bytes[9]) = (1, compression);
            bytes[12..16].copy_from_slice(&length.to_le_bytes());
            // Not so long that memory is short.
            (bytes[18], bytes[19]) = (0, 0);
            bytes[24..32].copy_from_slice(&7_u64.to_le_bytes());
            bytes[40..48].copy_from_slice(&512_u64.to_le_bytes());
            let crc = crc32c(&bytes[4..]);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            let home = is_home.then_some(checkpoint);
            let pointer = Pointer { offset: 512, length, crc, home };
            let _ = unseal(&bytes, pointer, Kind::Leaf, 7, false);
            let _ = Pointer::take(512, &mut Cursor::new(&tail));
        }
    }
}
