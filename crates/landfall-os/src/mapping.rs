//! A shared file mapping that is written by copying and made durable by `msync(2)`.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};

/// A shared, writable mapping of the first `len` bytes of a file.
///
/// The owner must not let the file become shorter than what is written through the mapping: the
/// kernel answers a store beyond the end of the file with SIGBUS. So it does where there is no space
/// (a sparse file on a full disk), and therefore pages are asked for before they are stored to.
pub(crate) struct Mapping {
    base: NonNull<c_void>,
    len: usize,
    page: usize,
}

// SAFETY: the mapping is plain memory owned by this value; no thread-local state is tied to it.
unsafe impl Send for Mapping {}

impl Mapping {
    pub(crate) fn new(file: &File, len: u64) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: no address is asked for, so no existing memory of this process is replaced; the
        // result is unmapped only in `drop`.
        let base = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping {
            base,
            len,
            page: rustix::param::page_size(),
        })
    }

    /// Copies `bytes` to `offset` and waits until the kernel has made those pages durable.
    ///
    /// `EFAULT` means that there is no page to store to; nothing was written, and a write to the file
    /// itself would tell why.
    pub(crate) fn write_durable(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let end = start
            .checked_add(bytes.len())
            .filter(|&end| end <= self.len)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let first_page = start - start % self.page;
        let base = self.base.as_ptr().cast::<u8>();
        // This takes the place of the page faults that the copy would cause, one call for all.
        // SAFETY: the range is aligned and inside the mapping; only page tables are filled, and
        // blocks allocated, as by a store.
        let populated = unsafe {
            rustix::mm::madvise(
                base.add(first_page).cast(),
                end - first_page,
                Advice::LinuxPopulateWrite,
            )
        };
        match populated {
            // Before Linux 5.14 there is no such call, and a full disk is still a SIGBUS.
            Ok(()) | Err(Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        // SAFETY: `start..end` lies inside the mapping (checked above), `&mut self` makes this the
        // only writer through this value, and `bytes` cannot overlap it because the mapping is
        // never lent out. `first_page` is a page boundary at or before `start`, so the range given
        // to msync is aligned and inside the mapping.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), base.add(start), bytes.len());
            rustix::mm::msync(
                base.add(first_page).cast(),
                end - first_page,
                MsyncFlags::SYNC,
            )?;
        }
        Ok(())
    }

    /// Pages of the mapping that are in memory, and pages in all.
    pub(crate) fn resident(&self) -> io::Result<(usize, usize)> {
        let pages = self.len.div_ceil(self.page);
        let mut map = vec![0u8; pages];
        // SAFETY: `base..base+len` is this mapping, and `map` has one byte for each of its pages.
        let result = unsafe { libc::mincore(self.base.as_ptr(), self.len, map.as_mut_ptr()) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((map.iter().filter(|&&byte| byte & 1 == 1).count(), pages))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` and `len` are what mmap returned, and nothing borrows the mapping. A
        // failure would leak address space and nothing else, so there is nothing to do about it.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr(), self.len) };
    }
}
