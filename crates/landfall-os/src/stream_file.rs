//! One file, and one way to hand a large amount of data to it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::bus_error::Watch;
use crate::mapping::Mapping;
use crate::write_ring::WriteRing;
use crate::{Payload, StreamCall, StreamMethod};

/// A payload repeats itself after this many bytes: longer than what any filesystem compresses as one.
const PAYLOAD: usize = 4 << 20;
/// A paced writer starts the write-back of so many bytes at a time, and waits for those before them.
const WINDOW: u64 = 8 << 20;

/// What the chunks hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Pseudo-random bytes with a stamp in every sector; the seed makes files differ.
    Random {
        /// The same seed gives the same bytes.
        seed: u64,
    },
    /// Zeros.
    Zeros,
}

/// A file that takes one large state, chunk after chunk.
///
/// First every chunk is [handed over](StreamFile::hand_over), then [`finish`](StreamFile::finish) ends
/// the hand-over, then [`sync`](StreamFile::sync) makes all of it durable. After an error nothing is
/// known about what reached the disk.
pub struct StreamFile {
    sink: Sink,
    chunk: usize,
}

enum Sink {
    Write(File, Payload),
    Paced(File, Payload, Pace),
    Mapped {
        // Dropped before the mapping that it watches.
        watch: Watch,
        mapping: Mapping,
        file: File,
        payload: Payload,
        populate: bool,
    },
    Ring(Box<WriteRing>),
    Nowhere(Payload),
}

impl StreamFile {
    /// Opens an existing file, for a state of `len` bytes in chunks of `chunk`; a mapping needs the
    /// file to have that length.
    ///
    /// Errors that mean "not supported here" are `EINVAL` (no direct I/O on this filesystem), `ENODEV`
    /// (no shared mappings), and `ENOSYS` or `EPERM` (io_uring switched off).
    pub fn open(
        path: &Path,
        method: StreamMethod,
        len: u64,
        chunk: u64,
        content: Content,
    ) -> io::Result<StreamFile> {
        let flags = if method.direct { libc::O_DIRECT } else { 0 };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path)?;
        StreamFile::on(file, method, len, chunk, content)
    }

    /// The same in main memory, for what the loop can do where no disk is involved. Direct methods do
    /// not exist there.
    pub fn in_memory(
        method: StreamMethod,
        len: u64,
        chunk: u64,
        content: Content,
    ) -> io::Result<StreamFile> {
        let name = "landfall";
        let file = File::from(rustix::fs::memfd_create(
            name,
            rustix::fs::MemfdFlags::CLOEXEC,
        )?);
        if method.is_mapped() {
            file.set_len(len)?;
        }
        StreamFile::on(file, method, len, chunk, content)
    }

    /// Takes chunks and gives them to nobody, for what making the bytes costs alone: they are those that
    /// `write` hands over.
    pub fn nowhere(chunk: u64, content: Content) -> io::Result<StreamFile> {
        let chunk = usize::try_from(chunk).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(StreamFile {
            sink: Sink::Nowhere(payload(content, chunk)),
            chunk,
        })
    }

    fn on(
        file: File,
        method: StreamMethod,
        len: u64,
        chunk: u64,
        content: Content,
    ) -> io::Result<StreamFile> {
        let chunk = usize::try_from(chunk).map_err(|_| io::ErrorKind::InvalidInput)?;
        let payload = || payload(content, chunk);
        let sink = match method.call {
            StreamCall::Write => Sink::Write(file, payload()),
            StreamCall::Paced => Sink::Paced(file, payload(), Pace::default()),
            StreamCall::Mmap | StreamCall::MmapPopulate => {
                let mapping = Mapping::new(&file, len)?;
                Sink::Mapped {
                    watch: mapping.watch()?,
                    mapping,
                    file,
                    payload: payload(),
                    populate: method.call == StreamCall::MmapPopulate,
                }
            }
            StreamCall::IoUring => {
                let (make, seed): (fn(usize, u64) -> Payload, u64) = match content {
                    Content::Random { seed } => (Payload::new, seed),
                    Content::Zeros => (|len, _| Payload::zeros(len), 0),
                };
                Sink::Ring(Box::new(WriteRing::new(file, chunk, make, seed)?))
            }
        };
        Ok(StreamFile { sink, chunk })
    }

    /// Hands over chunk number `number`, of `len` bytes: fewer than a whole chunk at the end only.
    ///
    /// Chunks must come in order. With io_uring the write may still be in flight on return.
    #[inline]
    pub fn hand_over(&mut self, number: u64, len: usize) -> io::Result<()> {
        let offset = number * self.chunk as u64;
        match &mut self.sink {
            Sink::Write(file, payload) => {
                file.write_all_at(chunk_of(payload, self.chunk, number, len), offset)
            }
            Sink::Paced(file, payload, pace) => {
                file.write_all_at(chunk_of(payload, self.chunk, number, len), offset)?;
                pace.advance(file, offset + len as u64)
            }
            Sink::Mapped {
                watch,
                mapping,
                file,
                payload,
                populate,
            } => {
                let bytes = chunk_of(payload, self.chunk, number, len);
                let stored = if *populate {
                    mapping.populate(offset, len)
                } else {
                    Ok(())
                };
                let stored = stored.and_then(|()| mapping.store(bytes, offset));
                if stored.is_ok() && !watch.was_hit() {
                    return Ok(());
                }
                // No page to store to, and no word why: a write says it. If it has nothing to say, there
                // was no space, and some has come free in the meantime.
                file.write_all_at(bytes, offset)?;
                Err(match stored {
                    Err(error) if error.raw_os_error() != Some(libc::EFAULT) => error,
                    _ => io::Error::new(
                        io::ErrorKind::StorageFull,
                        "there was no space for a store into the mapping",
                    ),
                })
            }
            Sink::Ring(ring) => ring.write(number, offset, len),
            Sink::Nowhere(payload) => {
                std::hint::black_box(chunk_of(payload, self.chunk, number, len));
                Ok(())
            }
        }
    }

    /// Ends the hand-over: waits for writes that are in flight, and for nothing else.
    pub fn finish(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Ring(ring) => ring.finish(),
            _ => Ok(()),
        }
    }

    /// Makes everything that was handed over durable: `msync(2)` for a mapping, `fdatasync(2)` for
    /// everything else.
    pub fn sync(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Write(file, _) | Sink::Paced(file, _, _) => file.sync_data(),
            Sink::Mapped { mapping, .. } => mapping.sync_all(),
            Sink::Ring(ring) => ring.file().sync_data(),
            Sink::Nowhere(_) => Ok(()),
        }
    }
}

/// What chunks of `chunk` bytes are cut from.
fn payload(content: Content, chunk: usize) -> Payload {
    let len = payload_len(chunk);
    match content {
        Content::Random { seed } => Payload::new(len, seed),
        Content::Zeros => Payload::zeros(len),
    }
}

fn chunk_of(payload: &mut Payload, chunk: usize, number: u64, len: usize) -> &[u8] {
    payload.part(number as usize * chunk % payload_len(chunk), len, number)
}

/// Whole chunks, so that none is cut in two.
fn payload_len(chunk: usize) -> usize {
    PAYLOAD.next_multiple_of(chunk.max(1))
}

/// How far a paced writer has told the kernel to write.
#[derive(Default)]
struct Pace {
    /// End of what the kernel has been told to write.
    started: u64,
    /// End of what is known to have been written.
    written: u64,
}

impl Pace {
    /// Once a window is full: starts its write-back, and waits for the window before it, so that at
    /// most two are dirty and the disk always has something to do.
    fn advance(&mut self, file: &File, end: u64) -> io::Result<()> {
        if end - self.started < WINDOW {
            return Ok(());
        }
        sync_file_range(
            file,
            self.started,
            end - self.started,
            libc::SYNC_FILE_RANGE_WRITE,
        )?;
        if self.started > self.written {
            sync_file_range(
                file,
                self.written,
                self.started - self.written,
                libc::SYNC_FILE_RANGE_WAIT_BEFORE
                    | libc::SYNC_FILE_RANGE_WRITE
                    | libc::SYNC_FILE_RANGE_WAIT_AFTER,
            )?;
        }
        self.written = self.started;
        self.started = end;
        Ok(())
    }
}

/// `sync_file_range(2)`; see the man page for how little it promises.
pub(crate) fn sync_file_range(file: &File, offset: u64, len: u64, flags: u32) -> io::Result<()> {
    let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: the call takes a descriptor, which `file` keeps open, and numbers; no memory is shared.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const LEN: u64 = (20 << 20) + 4096;

    fn stream(file: &mut StreamFile, chunk: u64) -> io::Result<()> {
        let mut offset = 0;
        for number in 0.. {
            let len = (LEN - offset).min(chunk);
            file.hand_over(number, len as usize)?;
            offset += len;
            if offset == LEN {
                break;
            }
        }
        file.finish()?;
        file.sync()
    }

    #[test]
    fn every_method_writes_the_same_chunks() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for chunk in [64 << 10, 1 << 20, 8 << 20] {
            for method in StreamMethod::all() {
                let path = dir.path().join(method.to_string());
                File::create(&path).unwrap().set_len(LEN).unwrap();
                let content = Content::Random { seed: 5 };
                let mut file = match StreamFile::open(&path, method, LEN, chunk, content) {
                    Ok(file) => file,
                    Err(error) => {
                        println!("skipped: {method} is not supported here: {error}");
                        continue;
                    }
                };
                stream(&mut file, chunk).unwrap();
                let read = fs::read(&path).unwrap();
                assert_eq!(read.len() as u64, LEN);
                // Each sector has the number of its chunk, and no two chunks near each other are alike.
                for (number, chunk) in (0u64..).zip(read.chunks(chunk as usize)) {
                    for sector in chunk.chunks(512) {
                        assert_eq!(sector[..8], number.to_le_bytes(), "{method}");
                        assert!(sector[8..].iter().any(|&byte| byte != 0), "{method}");
                    }
                }
            }
        }
    }

    #[test]
    fn zeros_are_zeros() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("zeros");
        File::create(&path).unwrap();
        let mut file =
            StreamFile::open(&path, StreamMethod::WRITE, LEN, 1 << 20, Content::Zeros).unwrap();
        stream(&mut file, 1 << 20).unwrap();
        assert!(fs::read(&path).unwrap().iter().all(|&byte| byte == 0));
    }

    #[test]
    fn a_store_without_a_page_is_an_error_and_no_death() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("short");
        File::create(&path).unwrap().set_len(4096).unwrap();
        let content = Content::Random { seed: 1 };
        // A mapping longer than its file: what a full disk does, without filling one.
        for call in [StreamCall::Mmap, StreamCall::MmapPopulate] {
            let method = StreamMethod::buffered(call);
            let mut file = StreamFile::open(&path, method, 1 << 20, 1 << 20, content).unwrap();
            assert!(file.hand_over(0, 1 << 20).is_err(), "{method}");
            drop(file);
            File::create(&path).unwrap().set_len(4096).unwrap();
        }
    }

    #[test]
    fn memory_takes_all_buffered_methods() {
        for method in StreamMethod::all() {
            if !method.direct {
                let content = Content::Random { seed: 2 };
                let mut file = StreamFile::in_memory(method, LEN, 1 << 20, content).unwrap();
                stream(&mut file, 1 << 20).unwrap();
            }
        }
    }
}
