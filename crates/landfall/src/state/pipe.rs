//! From who makes bytes to a file, so that both are at work at the same time.
//!
//! Threads: whoever fills it, and `landfall-snapshot`, which writes what is full. A write that fails is told to whoever
//! fills, and nothing more is written.

use std::io;
use std::sync::Arc;

use super::hand_over::HandOver;
use crate::environment::Buffer;
use crate::environment::{Durability, Environment, File, FileOf};

/// Bytes that are written at once.
pub(super) const WRITE: usize = 1 << 20;
/// Buffers that go round: one is filled, one is written, one is between them.
const BUFFERS: usize = 3;

/// Bytes, and where they belong.
struct Piece {
    buffer: Buffer,
    len: usize,
    offset: u64,
}

struct Shared<E: Environment> {
    pieces: HandOver<E, Piece>,
    failure: E::Mutex<Option<io::Error>>,
}

/// Takes bytes in their order and has them written.
pub(super) struct Pipe<E: Environment> {
    file: Arc<FileOf<E>>,
    shared: Arc<Shared<E>>,
    thread: Option<E::Thread>,
    /// What is being filled.
    piece: Option<Piece>,
    /// Where the next one begins.
    offset: u64,
    granule: u64,
}

impl<E: Environment> Pipe<E> {
    /// To the beginning of this file, `size` bytes at a time.
    pub fn new(environment: &E, file: FileOf<E>, size: usize, granule: u64) -> io::Result<Pipe<E>> {
        let size = size.next_multiple_of(granule as usize);
        let file = Arc::new(file);
        let piece = || Piece {
            buffer: Buffer::new(size),
            len: 0,
            offset: 0,
        };
        let shared = Arc::new(Shared {
            pieces: HandOver::new((1..BUFFERS).map(|_| piece()).collect()),
            failure: E::mutex(None),
        });
        let (own, to) = (shared.clone(), file.clone());
        let thread = environment.spawn("landfall-snapshot", move || write_all::<E>(&own, &to))?;
        Ok(Pipe {
            file,
            shared,
            thread: Some(thread),
            piece: Some(piece()),
            offset: 0,
            granule,
        })
    }

    /// Takes bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let Some(piece) = &mut self.piece else {
                return Err(self.failure());
            };
            let room = piece.buffer.capacity() - piece.len;
            let (now, rest) = bytes.split_at(bytes.len().min(room));
            let end = piece.len + now.len();
            piece.buffer.bytes_mut(piece.len..end).copy_from_slice(now);
            piece.len = end;
            bytes = rest;
            if end == piece.buffer.capacity() {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// Has everything written, with zeros to the end of the last granule; returns the file, which was not synced, and
    /// how many bytes it has.
    pub fn finish(mut self) -> io::Result<(Arc<FileOf<E>>, u64)> {
        if let Some(piece) = self.piece.as_mut().filter(|piece| piece.len > 0) {
            let end = piece.len.next_multiple_of(self.granule as usize);
            piece.buffer.bytes_mut(piece.len..end).fill(0);
            piece.len = end;
            self.hand_over()?;
        }
        self.end();
        match E::lock(&self.shared.failure).take() {
            Some(error) => Err(error),
            None => Ok((self.file.clone(), self.offset)),
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if let Some(mut piece) = self.piece.take() {
            piece.offset = self.offset;
            self.offset += piece.len as u64;
            self.shared.pieces.put(piece);
        }
        self.piece = self.shared.pieces.empty();
        match &mut self.piece {
            Some(piece) => {
                piece.len = 0;
                Ok(())
            }
            None => Err(self.failure()),
        }
    }

    /// Why nothing more is written.
    fn failure(&self) -> io::Error {
        let failure = E::lock(&self.shared.failure).take();
        failure.unwrap_or_else(|| io::Error::other("what came before could not be written"))
    }

    fn end(&mut self) {
        self.shared.pieces.complete();
        if let Some(thread) = self.thread.take() {
            E::join(thread);
        }
    }
}

impl<E: Environment> Drop for Pipe<E> {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_all<E: Environment>(shared: &Shared<E>, file: &FileOf<E>) {
    while let Some(piece) = shared.pieces.take() {
        let bytes = piece.buffer.bytes(0..piece.len);
        if let Err(error) = file.write(bytes, piece.offset, Durability::Later) {
            *E::lock(&shared.failure) = Some(error);
            return shared.pieces.refuse();
        }
        shared.pieces.give_back(piece);
    }
}
