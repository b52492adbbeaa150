//! A shared file mapping that is written by copying and made durable by `msync(2)`.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};

use crate::bus_error::Watch;

/// A shared, writable mapping of the first `len` bytes of a file.
///
/// The owner must not let the file become shorter than what is written through the mapping: the
/// kernel answers a store beyond the end of the file with SIGBUS. So it does where there is no space
/// (a sparse file on a full disk), and therefore pages are asked for before they are stored to, or the
/// mapping is watched.
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

    /// Copies `bytes` to `offset`; durable after [`sync`](Mapping::sync).
    ///
    /// `EFAULT` means that there is no page to store to; nothing was written, and a write to the file
    /// itself would tell why.
    pub(crate) fn write_populated(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        // This takes the place of the page faults that the copy would cause, one call for all.
        self.populate(offset, bytes.len())?;
        self.store(bytes, offset)
    }

    /// Asks for the pages from `offset` on, ready to be stored to.
    ///
    /// `EFAULT` means that there is none to be had. Before Linux 5.14 nothing is asked for.
    pub(crate) fn populate(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let (start, len) = self.pages(offset, len)?;
        // SAFETY: the range is aligned and inside the mapping; only page tables are filled, and
        // blocks allocated, as by a store.
        let populated = unsafe { rustix::mm::madvise(start, len, Advice::LinuxPopulateWrite) };
        match populated {
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies `bytes` to `offset`. A page that cannot be had is a SIGBUS, unless it was populated or
    /// the mapping is watched.
    pub(crate) fn store(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = self.position(offset, bytes.len())?;
        // SAFETY: `start..start + bytes.len()` lies inside the mapping (`position` checks), `&mut
        // self` makes this the only writer through this value, and `bytes` cannot overlap it because
        // the mapping is never lent out.
        unsafe {
            let to = self.base.as_ptr().cast::<u8>().add(start);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        Ok(())
    }

    /// Waits until the kernel has made the pages from `offset` on durable.
    pub(crate) fn sync(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let (start, len) = self.pages(offset, len)?;
        // SAFETY: the range is aligned and inside the mapping.
        unsafe { rustix::mm::msync(start, len, MsyncFlags::SYNC)? };
        Ok(())
    }

    /// Waits until the kernel has made all pages durable.
    pub(crate) fn sync_all(&mut self) -> io::Result<()> {
        self.sync(0, self.len)
    }

    /// Turns bus errors in this mapping into a flag, as long as the watch lives; it must not outlive
    /// the mapping.
    pub(crate) fn watch(&self) -> io::Result<Watch> {
        Watch::new(self.base.as_ptr(), self.len)
    }

    /// Where `len` bytes at `offset` begin, if they lie in the mapping.
    fn position(&self, offset: u64, len: usize) -> io::Result<usize> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        start
            .checked_add(len)
            .filter(|&end| end <= self.len)
            .ok_or(io::ErrorKind::InvalidInput)?;
        Ok(start)
    }

    /// The address of the page that holds `offset`, and the bytes from there to the end of the range.
    fn pages(&self, offset: u64, len: usize) -> io::Result<(*mut c_void, usize)> {
        let start = self.position(offset, len)?;
        let first = start - start % self.page;
        // SAFETY: `first` is not beyond `start`, which lies in the mapping.
        let address = unsafe { self.base.as_ptr().cast::<u8>().add(first) };
        Ok((address.cast(), start + len - first))
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
