//! A snapshot as it is read back: everything is compared with its checksum before it is believed.
//!
//! Threads: whoever reads the parts, and `landfall-read-ahead`, which reads, checks and decompresses the chunks behind. So
//! both are at work at the same time.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::format::{CHUNK, Chunk, Found, HEADER, Header, VERSION};
use super::hand_over::HandOver;
use crate::Compression;
use crate::Error;
use crate::compression;
use crate::environment::Buffer;
use crate::environment::{Environment, File, FileOf, Storage, planted};

/// Bytes that are read at once.
const READ: usize = 1 << 20;
/// Chunks that are read ahead.
const AHEAD: usize = 4;

/// Reads the parts of a snapshot one after the other; the bytes of one of them are read from it.
pub(crate) struct Reader<E: Environment> {
    environment: E,
    name: String,
    pub header: Header,
    /// Until reading ahead is begun.
    chunks: Option<Chunks<E>>,
    ahead: Option<Ahead<E>>,
    /// The chunk that is being given out.
    piece: Option<Piece>,
    /// How far.
    at: usize,
    /// Where the next chunk begins.
    position: u64,
    /// All bytes that were given out.
    pub raw_bytes: u64,
    failure: Option<Error>,
}

/// What a part begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Records before `lsn` are in it.
    Part { part: u32, lsn: u64 },
    /// There is no other one, and no record from this one on is in any.
    End { lsn: u64 },
}

/// A chunk that was read, or why it could not be.
struct Piece {
    chunk: Result<Chunk, Error>,
    raw: Vec<u8>,
    /// Where it ends.
    end: u64,
}

/// The thread that reads ahead.
struct Ahead<E: Environment> {
    pieces: Arc<HandOver<E, Piece>>,
    thread: Option<E::Thread>,
}

impl<E: Environment> Drop for Ahead<E> {
    fn drop(&mut self) {
        self.pieces.refuse();
        if let Some(thread) = self.thread.take() {
            E::join(thread);
        }
    }
}

impl<E: Environment> Reader<E> {
    pub fn open(environment: &E, name: &str, granule: u64) -> Result<Reader<E>, Error> {
        let (header, chunks) = Chunks::open(environment, name, granule)?;
        if header.compression == Compression::Zstd && !cfg!(feature = "zstd") {
            return Err(Error::Options(format!(
                "{name} is compressed by Zstandard: open it with a program that has the feature zstd of the crate landfall"
            )));
        }
        Ok(Reader {
            environment: environment.clone(),
            name: name.to_owned(),
            header,
            chunks: Some(chunks),
            ahead: None,
            piece: None,
            at: 0,
            position: HEADER as u64,
            raw_bytes: 0,
            failure: None,
        })
    }

    /// Bytes of the file up to here.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Goes on to the next part.
    pub fn next_part(&mut self) -> Result<Next, Error> {
        let chunk = self.next_chunk()?;
        if !chunk.ends_all {
            return Ok(Next::Part {
                part: chunk.part,
                lsn: chunk.lsn,
            });
        }
        if chunk.length > 0 || chunk.part != self.header.parts {
            return Err(self.corrupt("its end does not fit what is before"));
        }
        Ok(Next::End { lsn: chunk.lsn })
    }

    /// Ends a part, of which everything must have been read; why it could not be read, if it could not.
    pub fn end_part(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let is_read = self.piece.as_ref().is_some_and(|piece| {
            let ends = piece.chunk.as_ref().is_ok_and(|chunk| chunk.ends_part);
            ends && self.at == piece.raw.len()
        });
        if !is_read {
            return Err(self.corrupt("its state did not read all of a part"));
        }
        Ok(())
    }

    /// Reads what is left of a part, and says how much that was; why it could not be read, if it could not, or what was read before.
    pub fn read_rest(&mut self) -> Result<u64, Error> {
        let left = io::copy(self, &mut io::sink());
        match self.failure.take() {
            Some(error) => Err(error),
            None => left.map_err(Error::io("read a snapshot")),
        }
    }

    /// Reads all of it, and compares it with its checksums and its number; the first record that is in no part.
    pub fn verify(&mut self, number: u64) -> Result<u64, Error> {
        if self.header.number != number {
            return Err(self.corrupt("it is the snapshot of another name"));
        }
        let mut parts = 0;
        loop {
            match self.next_part()? {
                Next::Part { part, .. } if part != parts => {
                    return Err(self.corrupt("a part is not the next one"));
                }
                Next::Part { .. } => {
                    let copied = io::copy(self, &mut io::sink());
                    self.end_part()?;
                    copied.map_err(Error::io("read a snapshot"))?;
                    parts += 1;
                }
                Next::End { .. } if parts != self.header.parts => {
                    return Err(self.corrupt("parts are missing"));
                }
                Next::End { lsn } => return Ok(lsn),
            }
        }
    }

    fn next_chunk(&mut self) -> Result<Chunk, Error> {
        if let Some(chunks) = self.chunks.take() {
            self.ahead = Some(self.read_ahead(chunks)?);
        }
        let Some(ahead) = &self.ahead else {
            return Err(self.corrupt("it ends before its end"));
        };
        if let Some(used) = self.piece.take() {
            ahead.pieces.give_back(used);
        }
        let Some(piece) = ahead.pieces.take() else {
            return Err(self.corrupt("it ends before its end"));
        };
        let chunk = piece.chunk.clone()?;
        (self.at, self.position) = (0, piece.end);
        self.raw_bytes += u64::from(chunk.length);
        self.piece = Some(piece);
        Ok(chunk)
    }

    fn read_ahead(&self, mut chunks: Chunks<E>) -> Result<Ahead<E>, Error> {
        let piece = || Piece {
            chunk: Err(Error::Closed),
            raw: Vec::new(),
            end: 0,
        };
        let pieces = Arc::new(HandOver::new((0..AHEAD).map(|_| piece()).collect()));
        let own: Arc<HandOver<E, Piece>> = pieces.clone();
        let work = move || {
            let _completing = own.completing();
            while let Some(mut piece) = own.empty() {
                piece.chunk = chunks.read(&mut piece.raw);
                piece.end = chunks.next;
                let is_last = piece.chunk.as_ref().map_or(true, |chunk| chunk.ends_all);
                own.put(piece);
                if is_last {
                    break;
                }
            }
        };
        let thread = self.environment.spawn("landfall-read-ahead", work);
        let thread = thread.map_err(Error::io("start a thread of the state"))?;
        Ok(Ahead {
            pieces,
            thread: Some(thread),
        })
    }

    /// It is damaged where the next chunk is.
    pub fn corrupt(&self, what: &str) -> Error {
        corrupt(&self.name, self.position, what)
    }
}

fn corrupt(name: &str, offset: u64, what: &str) -> Error {
    Error::Snapshot {
        file: PathBuf::from(name),
        offset,
        what: what.to_owned(),
    }
}

/// Reads the bytes of the part that was begun, to its end.
impl<E: Environment> Read for Reader<E> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(piece) = &self.piece else {
                return Ok(0);
            };
            let rest = &piece.raw[self.at..];
            if !rest.is_empty() {
                let taken = out.len().min(rest.len());
                out[..taken].copy_from_slice(&rest[..taken]);
                self.at += taken;
                return Ok(taken);
            }
            let before = match &piece.chunk {
                Ok(chunk) if !chunk.ends_part && !chunk.ends_all => *chunk,
                _ => return Ok(0),
            };
            let read = self.next_chunk().and_then(|chunk| {
                let is_next = (chunk.part, chunk.lsn, chunk.ends_all);
                if is_next == (before.part, before.lsn, false) {
                    Ok(())
                } else {
                    Err(self.corrupt("a part does not end"))
                }
            });
            if let Err(error) = read {
                let text = error.to_string();
                self.piece = None;
                self.failure = Some(error);
                return Err(io::Error::other(text));
            }
        }
    }
}

/// The chunks of a snapshot, one after the other.
struct Chunks<E: Environment> {
    #[cfg(any(test, feature = "mistakes"))]
    environment: E,
    file: FileOf<E>,
    name: String,
    header: Header,
    /// Of whole granules.
    size: u64,
    granule: u64,
    buffer: Buffer,
    /// Where in the file the buffer begins, and what of it is there.
    base: u64,
    filled: usize,
    /// Where the next chunk begins.
    next: u64,
    chunks: u64,
}

impl<E: Environment> Chunks<E> {
    fn open(environment: &E, name: &str, granule: u64) -> Result<(Header, Chunks<E>), Error> {
        let reading = || Error::io(format!("read {name}"));
        let file = environment.storage().open(name).map_err(reading())?;
        let size = file.size().map_err(reading())? / granule * granule;
        let mut chunks = Chunks {
            #[cfg(any(test, feature = "mistakes"))]
            environment: environment.clone(),
            file,
            name: name.to_owned(),
            header: Header {
                log: 0,
                number: 0,
                first: 0,
                parts: 0,
                compression: Compression::None,
            },
            size,
            granule,
            buffer: Buffer::new(READ),
            base: 0,
            filled: 0,
            next: 0,
            chunks: 0,
        };
        if !chunks.fill(HEADER)? {
            return Err(corrupt(name, 0, "it ends before its header does"));
        }
        chunks.header = match Header::decode(chunks.buffer.bytes(0..HEADER)) {
            Found::Header(header) => header,
            Found::Version(found) => {
                return Err(Error::Version {
                    found,
                    known: VERSION,
                });
            }
            Found::Damage => return Err(corrupt(name, 0, "its header is not valid")),
        };
        chunks.next = HEADER as u64;
        Ok((chunks.header, chunks))
    }

    /// Reads the next chunk, and puts what it stands for into `raw`.
    fn read(&mut self, raw: &mut Vec<u8>) -> Result<Chunk, Error> {
        if !self.fill(CHUNK)? {
            return Err(corrupt(&self.name, self.next, "it ends before its end"));
        }
        let at = (self.next - self.base) as usize;
        let Some(chunk) = Chunk::decode(self.buffer.bytes(at..at + CHUNK)) else {
            return Err(corrupt(&self.name, self.next, "a chunk is not valid"));
        };
        let len = CHUNK + chunk.stored as usize;
        if !self.fill(len)? {
            return Err(corrupt(&self.name, self.next, "it ends within a chunk"));
        }
        let at = (self.next - self.base) as usize;
        let (header, payload) = self.buffer.bytes(at..at + len).split_at(CHUNK);
        let is_right =
            Chunk::is_right(header, payload) || planted!(self.environment, SkipChunkChecksum);
        if !is_right || chunk.number != self.header.number || chunk.index != self.chunks {
            return Err(corrupt(&self.name, self.next, "a chunk is not valid"));
        }
        raw.resize(chunk.length as usize, 0);
        let is_whole = if chunk.is_compressed {
            compression::decompress(self.header.compression, payload, raw)
        } else {
            raw.copy_from_slice(payload);
            true
        };
        if !is_whole {
            return Err(corrupt(
                &self.name,
                self.next,
                "a chunk cannot be decompressed",
            ));
        }
        self.next += len as u64;
        self.chunks += 1;
        Ok(chunk)
    }

    /// Has `len` bytes from `next` on in the buffer; `false`: there are not so many.
    fn fill(&mut self, len: usize) -> Result<bool, Error> {
        let end = self.next + len as u64;
        if end > self.size {
            return Ok(false);
        }
        if self.next >= self.base && end <= self.base + self.filled as u64 {
            return Ok(true);
        }
        let base = self.next / self.granule * self.granule;
        let needed = (end - base).next_multiple_of(self.granule) as usize;
        if needed > self.buffer.capacity() {
            self.buffer = Buffer::new(needed);
        }
        let most = self.buffer.capacity() as u64 / self.granule * self.granule;
        let len = (self.size - base).min(most) as usize;
        self.filled = 0;
        let mut read = |len: usize| self.file.read(self.buffer.bytes_mut(0..len), base);
        // What is read ahead may not be readable, and what is wanted be so.
        let filled = match read(len) {
            Ok(()) => Ok(len),
            Err(error) if needed >= len => Err(error),
            Err(_) => read(needed).map(|()| needed),
        };
        self.filled = filled.map_err(Error::io(format!("read {}", self.name)))?;
        self.base = base;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::state::fixtures::{Files, GRANULE, World, snapshot_of, with};
    use crate::state::format::snapshot_name;

    const HEAD: Header = Header {
        log: 7,
        number: 1,
        first: 3,
        parts: 2,
        compression: Compression::None,
    };

    fn chunk(part: u32, length: usize) -> Chunk {
        Chunk {
            number: HEAD.number,
            index: 0,
            part,
            lsn: 9,
            length: length as u32,
            stored: length as u32,
            is_compressed: false,
            ends_part: true,
            ends_all: false,
        }
    }

    fn end(part: u32, length: usize) -> Chunk {
        Chunk {
            ends_all: true,
            ..chunk(part, length)
        }
    }

    fn world(header: Header, chunks: &[Chunk]) -> World {
        let name = snapshot_name(header.number);
        with(Files::from([(name, snapshot_of(header, chunks))]))
    }

    fn reader(header: Header, chunks: &[Chunk]) -> Result<Reader<World>, Error> {
        let world = world(header, chunks);
        Reader::open(&world, &snapshot_name(header.number), GRANULE)
    }

    fn verified(number: u64, chunks: &[Chunk]) -> Result<u64, String> {
        let mut reader = reader(HEAD, chunks).unwrap();
        reader.verify(number).map_err(|error| error.to_string())
    }

    #[test]
    fn a_snapshot_that_is_not_what_its_header_says_is_damaged() {
        let (one, two) = (chunk(0, 8), chunk(1, 5));
        assert_eq!(verified(1, &[one, two, end(2, 0)]), Ok(9));
        for (number, chunks, what) in [
            (2, vec![one, two, end(2, 0)], "snapshot of another name"),
            (1, vec![two, one, end(2, 0)], "a part is not the next one"),
            (1, vec![one, end(2, 0)], "parts are missing"),
            (1, vec![one, two, end(1, 0)], "its end does not fit"),
            (1, vec![one, two, end(2, 1)], "its end does not fit"),
            (1, vec![one, two], "not valid"),
        ] {
            let damaged = verified(number, &chunks).unwrap_err();
            assert!(damaged.contains(what), "{what}: {damaged}");
        }
    }

    #[test]
    fn a_chunk_of_another_snapshot_or_another_place_is_none() {
        let chunks = [chunk(0, 8), chunk(1, 5), end(2, 0)];
        let other = Chunk {
            number: 2,
            ..chunks[1]
        };
        let foreign = verified(1, &[chunks[0], other, chunks[2]]).unwrap_err();
        assert!(foreign.contains("a chunk is not valid"), "{foreign}");
        // The second chunk is where the first should be.
        let mut file = snapshot_of(HEAD, &chunks);
        file.drain(HEADER..HEADER + CHUNK + 8);
        file.resize(file.len().next_multiple_of(GRANULE as usize), 0);
        let world = with(Files::from([(snapshot_name(1), file)]));
        let mut reader = Reader::open(&world, &snapshot_name(1), GRANULE).unwrap();
        let moved = reader.verify(1).unwrap_err().to_string();
        assert!(moved.contains("a chunk is not valid"), "{moved}");
    }

    #[test]
    fn a_snapshot_may_end_with_its_file() {
        // Two chunks and the end fill granules to the last byte, so that nothing pads the file.
        let length = 4 * GRANULE as usize - 3 * CHUNK - 5;
        let chunks = [chunk(0, length), chunk(1, 5), end(2, 0)];
        let file = snapshot_of(HEAD, &chunks);
        assert_eq!(file.len(), HEADER + 4 * GRANULE as usize);
        assert_eq!(verified(1, &chunks), Ok(9));
    }

    #[test]
    fn a_part_is_read_when_its_last_byte_is() {
        let first = Chunk {
            ends_part: false,
            ..chunk(0, 2)
        };
        let chunks = [first, chunk(0, 2), chunk(1, 1), end(2, 0)];
        // Nothing; a chunk that is not the last; all but a byte of the last; all.
        for (bytes, is_read) in [(0, false), (2, false), (3, false), (4, true)] {
            let mut reader = reader(HEAD, &chunks).unwrap();
            reader.next_part().unwrap();
            reader.read_exact(&mut vec![0; bytes]).unwrap();
            assert_eq!(reader.end_part().is_ok(), is_read, "{bytes}");
        }
    }

    #[test]
    fn chunks_are_found_behind_what_is_read_at_once() {
        let large = 7 * READ / 10;
        let mut all: Vec<Chunk> = (0..6)
            .map(|index| Chunk {
                ends_part: index == 5,
                ..chunk(0, large)
            })
            .collect();
        all.extend([chunk(1, 3), end(2, 0)]);
        let world = world(HEAD, &all);
        let mut reader = Reader::open(&world, &snapshot_name(1), GRANULE).unwrap();
        reader.next_part().unwrap();
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        reader.end_part().unwrap();
        let expected = (1..=6).flat_map(|number| vec![number; large]);
        assert!(bytes.into_iter().eq(expected));
        let chunks = 6 * (CHUNK + large);
        assert_eq!(reader.position(), (HEADER + chunks) as u64);
        // Each of the large ones is read with what comes before it and behind it, and no more at once.
        let device = world.storage().device();
        let (reads, read) = (device.reads.load(Relaxed), device.read.load(Relaxed));
        assert!(reads <= 7, "{reads} reads");
        assert!(read <= 7 * READ as u64, "{read} bytes");
        assert_eq!(device.largest_read.load(Relaxed), 1 << 20);
    }

    #[test]
    fn chunks_may_be_larger_than_what_is_read_at_once() {
        let large = 5 * READ / 2;
        let chunks = [chunk(0, large), chunk(1, large), end(2, 0)];
        assert_eq!(verified(1, &chunks), Ok(9));
    }

    #[test]
    fn small_chunks_are_read_together() {
        let mut chunks = vec![
            Chunk {
                ends_part: false,
                ..chunk(0, 100)
            };
            99
        ];
        chunks.extend([chunk(0, 100), chunk(1, 100), end(2, 0)]);
        let world = world(HEAD, &chunks);
        let mut reader = Reader::open(&world, &snapshot_name(1), GRANULE).unwrap();
        assert_eq!(reader.verify(1).unwrap(), 9);
        assert_eq!(world.storage().device().reads.load(Relaxed), 1);
    }

    #[test]
    fn who_reads_no_further_leaves_no_thread() {
        let mut chunks = vec![chunk(0, 1); 20];
        chunks.push(end(2, 0));
        let mut reader = reader(HEAD, &chunks).unwrap();
        reader.next_part().unwrap();
        let pieces = reader
            .ahead
            .as_ref()
            .map(|ahead| Arc::downgrade(&ahead.pieces));
        drop(reader);
        assert!(pieces.unwrap().upgrade().is_none());
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn what_this_program_cannot_decompress_is_no_damage() {
        let header = Header {
            compression: Compression::Zstd,
            ..HEAD
        };
        let refused = reader(header, &[end(2, 0)]).map(drop).unwrap_err();
        assert!(matches!(&refused, Error::Options(why) if why.contains("feature zstd")));
    }
}
