//! One write and one `fdatasync`, linked, in one io_uring submission.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::squeue::Flags;
use io_uring::{IoUring, opcode, types};

const WRITE: u64 = 1;
const SYNC: u64 = 2;

/// A private io_uring with room for one linked pair.
pub(crate) struct IoRing {
    ring: IoUring,
    /// Set when requests that were never submitted are left in the queue.
    unusable: bool,
}

impl IoRing {
    /// Fails with `ENOSYS` or `EPERM` where the kernel or an administrator has switched it off.
    pub(crate) fn new() -> io::Result<IoRing> {
        Ok(IoRing {
            ring: IoUring::new(2)?,
            unusable: false,
        })
    }

    /// Writes `bytes` at `offset`, then syncs the file's data; both have completed on return.
    pub(crate) fn write_durable(
        &mut self,
        file: &File,
        bytes: &[u8],
        offset: u64,
    ) -> io::Result<()> {
        if self.unusable {
            return Err(io::Error::other(
                "the io_uring failed earlier and is not used again",
            ));
        }
        let fd = types::Fd(file.as_raw_fd());
        let len = u32::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let write = opcode::Write::new(fd, bytes.as_ptr(), len)
            .offset(offset)
            .build()
            .flags(Flags::IO_LINK)
            .user_data(WRITE);
        let sync = opcode::Fsync::new(fd)
            .flags(types::FsyncFlags::DATASYNC)
            .build()
            .user_data(SYNC);
        // SAFETY: the kernel reads `bytes` and uses the descriptor until both requests complete.
        // Both outlive that: this function does not return, not even with an error, before it has
        // seen the two completions (see `reap`).
        unsafe {
            self.ring
                .submission()
                .push_multiple(&[write, sync])
                .map_err(|_| io::ErrorKind::ResourceBusy)?;
        }
        let (written, synced) = self.reap()?;
        if written < 0 {
            return Err(io::Error::from_raw_os_error(-written));
        }
        if written as u32 != len {
            return Err(io::ErrorKind::WriteZero.into());
        }
        if synced < 0 {
            return Err(io::Error::from_raw_os_error(-synced));
        }
        Ok(())
    }

    /// Submits what was pushed and waits for both completions; their results are negated errors or
    /// counts.
    ///
    /// While a request is in flight the kernel may read the caller's buffer, so an error of the ring
    /// itself is returned only when nothing is in flight any more.
    fn reap(&mut self) -> io::Result<(i32, i32)> {
        let (mut written, mut synced) = (None, None);
        loop {
            for entry in self.ring.completion() {
                match entry.user_data() {
                    WRITE => written = Some(entry.result()),
                    _ => synced = Some(entry.result()),
                }
            }
            let missing = match (written, synced) {
                (Some(written), Some(synced)) => return Ok((written, synced)),
                (None, None) => 2,
                _ => 1,
            };
            let Err(error) = self.ring.submit_and_wait(missing) else {
                continue;
            };
            let queued = self.ring.submission().len();
            if queued == missing && !is_transient(&error) {
                self.unusable = true;
                return Err(error);
            }
            std::thread::yield_now();
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}
