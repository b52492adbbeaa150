//! Several writes in flight at once, through io_uring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use io_uring::{IoUring, opcode, types};

use crate::Payload;

/// Writes in flight at once.
pub(crate) const IN_FLIGHT: usize = 8;

/// How often, and how far apart, the kernel is asked again that had no memory for a request.
const ATTEMPTS: u32 = 2_000;
const RETRY: Duration = Duration::from_millis(1);

/// What the kernel may be reading.
#[derive(Clone, Copy)]
struct Flying {
    offset: u64,
    len: u32,
    number: u64,
}

/// An io_uring that writes from a payload of its own.
///
/// The payload is divided into as many slots as there are writes in flight. A slot is stamped anew
/// only when its last write has completed, and the payload is freed only when all have.
pub(crate) struct WriteRing {
    ring: IoUring,
    file: File,
    /// Absent once it had to be left to a kernel that may still read it.
    payload: Option<Payload>,
    chunk: usize,
    flying: [Option<Flying>; IN_FLIGHT],
    /// Why a write failed that was not waited for yet.
    failed: Option<io::Error>,
}

impl WriteRing {
    /// A ring that writes chunks of at most `chunk` bytes to `file`. Fails with `ENOSYS` or `EPERM`
    /// where the kernel or an administrator has switched io_uring off.
    pub(crate) fn new(
        file: File,
        chunk: usize,
        payload: fn(usize, u64) -> Payload,
        seed: u64,
    ) -> io::Result<WriteRing> {
        // A chunk starts where direct I/O can read it.
        let chunk = chunk.next_multiple_of(crate::ALIGNMENT);
        Ok(WriteRing {
            ring: IoUring::new(IN_FLIGHT as u32)?,
            file,
            payload: Some(payload(chunk * IN_FLIGHT, seed)),
            chunk,
            flying: [None; IN_FLIGHT],
            failed: None,
        })
    }

    /// Starts write number `number`; waits for the one that had its slot, if that is still in flight.
    pub(crate) fn write(&mut self, number: u64, offset: u64, len: usize) -> io::Result<()> {
        let slot = (number % IN_FLIGHT as u64) as usize;
        while self.flying[slot].is_some() {
            self.reap(1)?;
        }
        let Some(payload) = &mut self.payload else {
            return Err(io::Error::other("the io_uring failed earlier"));
        };
        let bytes = payload.part(slot * self.chunk, len, number);
        let len = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let entry = opcode::Write::new(types::Fd(self.file.as_raw_fd()), bytes.as_ptr(), len)
            .offset(offset)
            .build()
            .user_data(slot as u64);
        // SAFETY: the kernel reads `len` bytes of the slot and uses the descriptor until the request
        // completes. The descriptor and the payload belong to this value; the slot is not written to
        // while it is `flying`, and neither is freed before all have completed (see `drop`).
        unsafe {
            self.ring
                .submission()
                .push(&entry)
                .map_err(|_| io::ErrorKind::ResourceBusy)?;
        }
        self.flying[slot] = Some(Flying {
            offset,
            len,
            number,
        });
        self.reap(0)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until nothing is in flight.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        while self.flying.iter().any(Option::is_some) {
            self.reap(1)?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Hands over what is queued and waits for at least `wanted` completions. An error is one of the
    /// ring itself; of writes that failed the first is kept.
    fn reap(&mut self, wanted: usize) -> io::Result<()> {
        for attempt in 1.. {
            match self.ring.submit_and_wait(wanted) {
                Ok(_) => break,
                // Memory may be short for a moment, or a signal come; not for ever.
                Err(error) if is_transient(&error) && attempt < ATTEMPTS => {
                    std::thread::sleep(RETRY);
                }
                Err(error) => return Err(error),
            }
        }
        let mut done = [None; IN_FLIGHT];
        for entry in self.ring.completion() {
            if let Some(place) = done.get_mut(entry.user_data() as usize) {
                *place = Some(entry.result());
            }
        }
        for (slot, result) in done.into_iter().enumerate() {
            if let Some(result) = result
                && let Some(flying) = self.flying[slot].take()
                && let Err(error) = self.complete(slot, flying, result)
            {
                self.failed.get_or_insert(error);
            }
        }
        Ok(())
    }

    /// A write may have been cut short, by a full disk say: the rest of it is written plainly, which
    /// either works or tells why not.
    fn complete(&mut self, slot: usize, flying: Flying, result: i32) -> io::Result<()> {
        let written = match usize::try_from(result) {
            Ok(written) => written,
            Err(_) => return Err(io::Error::from_raw_os_error(-result)),
        };
        if written == flying.len as usize {
            return Ok(());
        }
        let Some(payload) = &mut self.payload else {
            return Err(io::ErrorKind::WriteZero.into());
        };
        let bytes = payload.part(slot * self.chunk, flying.len as usize, flying.number);
        self.file
            .write_all_at(&bytes[written..], flying.offset + written as u64)
    }

    /// The file that is written.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for WriteRing {
    fn drop(&mut self) {
        let _ = self.finish();
        if self.flying.iter().any(Option::is_some) {
            // The kernel may still read it. Memory that is never freed harms nobody.
            std::mem::forget(self.payload.take());
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}
