//! A snapshot as it is written: parts, in chunks, each compressed and with a checksum.

use std::io::{self, Write};
use std::sync::Arc;

use super::format::{CHUNK, Chunk, HEADER, Header};
use super::pipe::{Pipe, WRITE};
use crate::compression::Compressor;
use crate::environment::{Environment, FileOf};

/// Makes chunks of what is written to it.
pub(super) struct Writer<'a, E: Environment> {
    pipe: Pipe<E>,
    number: u64,
    compressor: Compressor,
    /// What the chunk that is being made stands for.
    raw: Vec<u8>,
    chunk_bytes: usize,
    /// It, compressed.
    compressed: Vec<u8>,
    chunks: u64,
    part: u32,
    lsn: u64,
    raw_bytes: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

/// What came of it.
pub(super) struct Written<F> {
    pub file: Arc<F>,
    /// Of the file.
    pub bytes: u64,
    /// That they stand for.
    pub raw_bytes: u64,
}

impl<'a, E: Environment> Writer<'a, E> {
    /// To an empty file. It fails soon after `is_stopped` says so.
    pub fn new(
        environment: &E,
        file: FileOf<E>,
        header: Header,
        chunk_bytes: u32,
        granule: u64,
        is_stopped: &'a dyn Fn() -> bool,
    ) -> io::Result<Writer<'a, E>> {
        let size = WRITE.min(4 * chunk_bytes as usize);
        let mut pipe = Pipe::new(environment, file, size, granule)?;
        let mut page = vec![0; HEADER];
        header.encode(&mut page);
        pipe.push(&page)?;
        Ok(Writer {
            pipe,
            number: header.number,
            compressor: Compressor::new(header.compression)?,
            raw: Vec::with_capacity(chunk_bytes as usize),
            chunk_bytes: chunk_bytes as usize,
            compressed: Vec::new(),
            chunks: 0,
            part: 0,
            lsn: 0,
            raw_bytes: 0,
            is_stopped,
        })
    }

    /// What is written from here on is of this part, which has all its records before `lsn`.
    pub fn begin_part(&mut self, part: u32, lsn: u64) {
        (self.part, self.lsn) = (part, lsn);
    }

    /// Nothing more comes of this part.
    pub fn end_part(&mut self) -> io::Result<()> {
        self.emit(true, false)
    }

    /// Ends the snapshot of so many parts, which have no record from `lsn` on. The file was not synced.
    pub fn finish(mut self, parts: u32, lsn: u64) -> io::Result<Written<FileOf<E>>> {
        self.begin_part(parts, lsn);
        self.emit(false, true)?;
        let (file, bytes) = self.pipe.finish()?;
        Ok(Written {
            bytes,
            raw_bytes: self.raw_bytes,
            file,
        })
    }

    /// Makes a chunk of what has come so far.
    fn emit(&mut self, ends_part: bool, ends_all: bool) -> io::Result<()> {
        let raw = std::mem::take(&mut self.raw);
        self.emit_bytes(&raw, ends_part, ends_all)?;
        self.raw = raw;
        self.raw.clear();
        Ok(())
    }

    fn emit_bytes(&mut self, raw: &[u8], ends_part: bool, ends_all: bool) -> io::Result<()> {
        if (self.is_stopped)() {
            return Err(io::Error::other("the state is being closed"));
        }
        let is_compressed = self.compressor.compress(raw, &mut self.compressed)?;
        let payload = if is_compressed { &self.compressed } else { raw };
        let chunk = Chunk {
            number: self.number,
            index: self.chunks,
            part: self.part,
            lsn: self.lsn,
            length: raw.len() as u32,
            stored: payload.len() as u32,
            is_compressed,
            ends_part,
            ends_all,
        };
        let mut header = [0; CHUNK];
        chunk.encode(payload, &mut header);
        self.pipe.push(&header)?;
        self.pipe.push(payload)?;
        self.chunks += 1;
        self.raw_bytes += raw.len() as u64;
        Ok(())
    }
}

impl<E: Environment> Write for Writer<'_, E> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.raw.len() == self.chunk_bytes {
            self.emit(false, false)?;
        }
        // More than a chunk that comes at once need not be copied first.
        if self.raw.is_empty() && bytes.len() > self.chunk_bytes {
            self.emit_bytes(&bytes[..self.chunk_bytes], false, false)?;
            return Ok(self.chunk_bytes);
        }
        let taken = bytes.len().min(self.chunk_bytes - self.raw.len());
        self.raw.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compression;
    use crate::environment::Storage;
    use crate::state::fixtures::{Files, GRANULE, with};

    /// The bytes that each chunk of a part stands for, if it is written in these pieces.
    fn chunks_of(pieces: &[usize]) -> Vec<u32> {
        let world = with(Files::new());
        let file = world.storage().create("snapshot").unwrap();
        let header = Header {
            log: 1,
            number: 1,
            first: 1,
            parts: 1,
            compression: Compression::None,
        };
        let mut writer = Writer::new(&world, file, header, 1024, GRANULE, &|| false).unwrap();
        writer.begin_part(0, 1);
        for piece in pieces {
            writer.write_all(&vec![7; *piece]).unwrap();
        }
        writer.end_part().unwrap();
        let written = writer.finish(1, 1).unwrap();
        assert_eq!(written.raw_bytes, pieces.iter().sum::<usize>() as u64);
        let bytes = world.storage().files().remove("snapshot").unwrap();
        let (mut at, mut lengths) = (HEADER, Vec::new());
        loop {
            let chunk = Chunk::decode(&bytes[at..at + CHUNK]).unwrap();
            if chunk.ends_all {
                return lengths;
            }
            lengths.push(chunk.length);
            at += CHUNK + chunk.stored as usize;
        }
    }

    #[test]
    fn all_chunks_but_the_last_are_full() {
        for (pieces, lengths) in [
            (&[][..], &[0][..]),
            (&[1024], &[1024]),
            (&[400, 400, 400], &[1024, 176]),
            (&[1000, 24, 1], &[1024, 1]),
            (&[2500], &[1024, 1024, 452]),
            (&[1, 2500], &[1024, 1024, 453]),
            (&[1024, 1024], &[1024, 1024]),
        ] {
            assert_eq!(chunks_of(pieces), lengths, "{pieces:?}");
        }
    }
}
