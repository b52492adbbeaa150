//! What will be asked for next, read by a thread of its own while what was read before is looked at: else the disk waits for the
//! processor, and the processor for the disk.
//!
//! Whatever goes wrong here is no failure: then it is not there, and whoever needs it reads it himself.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::environment::{Buffer, Environment, File, FileOf};

/// Bytes of a segment that are being read, or were.
pub(super) struct Ahead<E: Environment> {
    pub sequence: u64,
    /// Where in its file they are.
    pub offsets: Range<u64>,
    /// `None`: it was waited for.
    thread: Option<E::Thread>,
    /// `None`: they could not be read, or are being read.
    read: Arc<E::Mutex<Option<Buffer>>>,
}

impl<E: Environment> Ahead<E> {
    /// How many they are.
    pub fn len(&self) -> usize {
        (self.offsets.end - self.offsets.start) as usize
    }

    /// Begins to read these bytes of a file; `buffer` has room for them.
    pub fn begin(
        environment: &E,
        (sequence, file): (u64, Arc<FileOf<E>>),
        offsets: Range<u64>,
        mut buffer: Buffer,
    ) -> io::Result<Ahead<E>> {
        let offset = offsets.start;
        let all = 0..(offsets.end - offset) as usize;
        let read = Arc::new(E::mutex(None));
        let theirs = read.clone();
        let work = move || {
            if file.read(buffer.bytes_mut(all), offset).is_ok() {
                *E::lock(&theirs) = Some(buffer);
            }
        };
        let thread = environment.spawn("landfall-log-ahead", work)?;
        Ok(Ahead {
            sequence,
            offsets,
            thread: Some(thread),
            read,
        })
    }

    /// Waits for them; `None`: they could not be read.
    pub fn wait(mut self) -> Option<Buffer> {
        self.join();
        E::lock(&self.read).take()
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            E::join(thread);
        }
    }
}

impl<E: Environment> Drop for Ahead<E> {
    /// Nobody reads in a directory any more that is not locked.
    fn drop(&mut self) {
        self.join();
    }
}
