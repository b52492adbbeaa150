//! A snapshot as it is read back: everything is compared with its checksum before it is believed.

use std::io::{self, Read};
use std::path::PathBuf;

use super::format::{CHUNK, Chunk, Found, HEADER, Header, VERSION};
use super::options::Compression;
use crate::Error;
use crate::environment::{Environment, Fault, File};
use crate::log::buffer::Buffer;

/// Bytes that are read at once.
const READ: usize = 1 << 20;

/// Reads the parts of a snapshot one after the other; the bytes of one of them are read from it.
pub(crate) struct Reader<E: Environment> {
    environment: E,
    file: E::File,
    name: String,
    pub header: Header,
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
    /// The chunk that is being given out.
    chunk: Option<Chunk>,
    raw: Vec<u8>,
    at: usize,
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

impl<E: Environment> Reader<E> {
    pub fn open(environment: &E, name: &str, granule: u64) -> Result<Reader<E>, Error> {
        let reading = || Error::io(format!("read {name}"));
        let file = environment.open(name).map_err(reading())?;
        let size = file.size().map_err(reading())? / granule * granule;
        let mut reader = Reader {
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
            chunk: None,
            raw: Vec::new(),
            at: 0,
            raw_bytes: 0,
            failure: None,
        };
        if !reader.fill(HEADER)? {
            return Err(reader.corrupt("it ends before its header does"));
        }
        reader.header = match Header::decode(reader.buffer.bytes(0..HEADER)) {
            Found::Header(header) => header,
            Found::Version(found) => {
                return Err(Error::Version {
                    found,
                    known: VERSION,
                });
            }
            Found::Damage => return Err(reader.corrupt("its header is not valid")),
        };
        reader.next = HEADER as u64;
        Ok(reader)
    }

    /// Bytes of the file up to here.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Goes on to the next part.
    pub fn next_part(&mut self) -> Result<Next, Error> {
        let chunk = self.read_chunk()?;
        Ok(match chunk.ends_all {
            true if chunk.length > 0 || chunk.part != self.header.parts => {
                return Err(self.corrupt("its end does not fit what is before"));
            }
            true => Next::End { lsn: chunk.lsn },
            false => Next::Part {
                part: chunk.part,
                lsn: chunk.lsn,
            },
        })
    }

    /// Ends a part, of which everything must have been read; why it could not be read, if it could not.
    pub fn end_part(&mut self) -> Result<(), Error> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        let is_read = self.at == self.raw.len() && self.chunk.is_some_and(|chunk| chunk.ends_part);
        match is_read {
            true => Ok(()),
            false => Err(self.corrupt("its state did not read all of a part")),
        }
    }

    fn read_chunk(&mut self) -> Result<Chunk, Error> {
        if !self.fill(CHUNK)? {
            return Err(self.corrupt("it ends before its end"));
        }
        let at = (self.next - self.base) as usize;
        let Some(chunk) = Chunk::decode(self.buffer.bytes(at..at + CHUNK)) else {
            return Err(self.corrupt("a chunk is not valid"));
        };
        let len = CHUNK + chunk.stored as usize;
        if !self.fill(len)? {
            return Err(self.corrupt("it ends within a chunk"));
        }
        let at = (self.next - self.base) as usize;
        let (header, payload) = self.buffer.bytes(at..at + len).split_at(CHUNK);
        let is_right = Chunk::is_right(header, payload)
            || self.environment.is_planted(Fault::SkipChunkChecksum);
        if !is_right || chunk.number != self.header.number || chunk.index != self.chunks {
            return Err(self.corrupt("a chunk is not valid"));
        }
        self.raw.resize(chunk.length as usize, 0);
        let is_whole = match (chunk.is_compressed, self.header.compression) {
            (false, _) => {
                self.raw.copy_from_slice(payload);
                true
            }
            (true, Compression::None) => false,
            (true, Compression::Lz4) => {
                let len = lz4_flex::block::decompress_into(payload, &mut self.raw);
                len.is_ok_and(|len| len == self.raw.len())
            }
            (true, Compression::Zstd) => {
                let len = zstd::bulk::decompress_to_buffer(payload, &mut self.raw);
                len.is_ok_and(|len| len == self.raw.len())
            }
        };
        if !is_whole {
            return Err(self.corrupt("a chunk cannot be decompressed"));
        }
        self.next += len as u64;
        self.chunks += 1;
        self.raw_bytes += u64::from(chunk.length);
        (self.chunk, self.at) = (Some(chunk), 0);
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
        let len =
            (self.size - base).min(self.buffer.capacity() as u64 / self.granule * self.granule);
        self.filled = 0;
        let read = self.file.read(self.buffer.bytes_mut(0..len as usize), base);
        read.map_err(Error::io(format!("read {}", self.name)))?;
        (self.base, self.filled) = (base, len as usize);
        Ok(true)
    }

    /// It is damaged where the next chunk is.
    pub fn corrupt(&self, what: &str) -> Error {
        Error::Snapshot {
            file: PathBuf::from(&self.name),
            offset: self.next,
            what: what.to_owned(),
        }
    }
}

/// Reads the bytes of the part that was begun, to its end.
impl<E: Environment> Read for Reader<E> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.raw.len() {
            let Some(before) = self
                .chunk
                .filter(|chunk| !chunk.ends_part && !chunk.ends_all)
            else {
                return Ok(0);
            };
            let read = self.read_chunk().and_then(|chunk| {
                match (chunk.part, chunk.lsn, chunk.ends_all) == (before.part, before.lsn, false) {
                    true => Ok(()),
                    false => Err(self.corrupt("a part does not end")),
                }
            });
            if let Err(error) = read {
                let text = error.to_string();
                self.chunk = None;
                self.failure = Some(error);
                return Err(io::Error::other(text));
            }
        }
        let taken = out.len().min(self.raw.len() - self.at);
        out[..taken].copy_from_slice(&self.raw[self.at..self.at + taken]);
        self.at += taken;
        Ok(taken)
    }
}
