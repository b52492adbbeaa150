//! From who makes bytes to a file, so that both are at work at the same time.
//!
//! Threads: whoever fills it, and `landfall-snapshot`, which writes what is full. Three buffers go round: one is
//! filled, one is written, one is between them, so memory is bounded, and who is faster waits. A write that fails
//! is told to whoever fills, and nothing more is written.

use std::io;
use std::sync::Arc;

use crate::environment::{Durability, Environment, File};
use crate::log::buffer::Buffer;
use crate::log::waiters::Waiters;

/// Bytes that are written at once.
pub(super) const WRITE: usize = 1 << 20;

struct Full {
    buffer: Buffer,
    len: usize,
    offset: u64,
}

struct Between {
    full: Option<Full>,
    empty: Vec<Buffer>,
    failure: Option<io::Error>,
    is_over: bool,
}

struct Shared<E: Environment> {
    between: E::Mutex<Between>,
    changed: Waiters<E>,
}

/// Takes bytes in their order and has them written.
pub(super) struct Pipe<E: Environment> {
    file: Arc<E::File>,
    shared: Arc<Shared<E>>,
    thread: Option<E::Thread>,
    buffer: Buffer,
    len: usize,
    offset: u64,
    granule: u64,
}

impl<E: Environment> Pipe<E> {
    /// To the beginning of this file, `size` bytes at a time.
    pub fn new(environment: &E, file: E::File, size: usize, granule: u64) -> io::Result<Pipe<E>> {
        let size = size.next_multiple_of(granule as usize);
        let file = Arc::new(file);
        let between = Between {
            full: None,
            empty: vec![Buffer::new(size), Buffer::new(size)],
            failure: None,
            is_over: false,
        };
        let shared = Arc::new(Shared {
            between: E::mutex(between),
            changed: Waiters::new(),
        });
        let (own, to) = (shared.clone(), file.clone());
        let thread = environment.spawn("landfall-snapshot", move || write_all::<E>(&own, &to))?;
        Ok(Pipe {
            file,
            shared,
            thread: Some(thread),
            buffer: Buffer::new(size),
            len: 0,
            offset: 0,
            granule,
        })
    }

    /// Takes bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = bytes.len().min(self.buffer.capacity() - self.len);
            let (now, rest) = bytes.split_at(taken);
            self.buffer
                .bytes_mut(self.len..self.len + taken)
                .copy_from_slice(now);
            self.len += taken;
            bytes = rest;
            if self.len == self.buffer.capacity() {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// Bytes that were taken.
    pub fn position(&self) -> u64 {
        self.offset + self.len as u64
    }

    /// Has everything written, with zeros to the end of the last granule; returns the file, which was not synced.
    pub fn finish(mut self) -> io::Result<Arc<E::File>> {
        let end = self.len.next_multiple_of(self.granule as usize);
        self.buffer.bytes_mut(self.len..end).fill(0);
        self.len = end;
        if end > 0 {
            self.hand_over()?;
        }
        self.end();
        match E::lock(&self.shared.between).failure.take() {
            Some(error) => Err(error),
            None => Ok(self.file.clone()),
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        let mut between = E::lock(&self.shared.between);
        loop {
            if let Some(error) = between.failure.take() {
                between.is_over = true;
                return Err(error);
            }
            if between.is_over {
                return Err(io::Error::other("what came before could not be written"));
            }
            if between.full.is_none()
                && let Some(empty) = between.empty.pop()
            {
                between.full = Some(Full {
                    buffer: std::mem::replace(&mut self.buffer, empty),
                    len: self.len,
                    offset: self.offset,
                });
                break;
            }
            between = self.shared.changed.wait(between);
        }
        drop(between);
        self.shared.changed.wake_all();
        self.offset += self.len as u64;
        self.len = 0;
        Ok(())
    }

    fn end(&mut self) {
        E::lock(&self.shared.between).is_over = true;
        self.shared.changed.wake_all();
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

fn write_all<E: Environment>(shared: &Shared<E>, file: &E::File) {
    let mut between = E::lock(&shared.between);
    loop {
        if let Some(full) = between.full.take() {
            let has_failed = between.failure.is_some();
            drop(between);
            let written = match has_failed {
                true => Ok(()),
                false => file.write(
                    full.buffer.bytes(0..full.len),
                    full.offset,
                    Durability::Later,
                ),
            };
            between = E::lock(&shared.between);
            between.empty.push(full.buffer);
            if let Err(error) = written {
                between.failure = Some(error);
            }
            shared.changed.wake_all();
        } else if between.is_over {
            return;
        } else {
            between = shared.changed.wait(between);
        }
    }
}
