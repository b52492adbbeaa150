//! Files in one directory, and how writes to them are made durable.

use std::io;
use std::ops::RangeInclusive;

/// Buffers of reads and writes begin at multiples of this many bytes: enough for direct I/O on every device.
pub(crate) const ALIGNMENT: usize = 4096;

/// When a write must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Once the file was synced.
    Later,
    /// When the call returns.
    OnReturn,
}

/// How writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `O_DIRECT`, and a write that is durable when it returns (`RWF_DSYNC`).
    DirectDsync,
    /// `O_DIRECT`, and `fdatasync` behind it.
    DirectFdatasync,
    /// Through the page cache, and `fdatasync` (or what the system has for it) behind it: where direct I/O cannot
    /// be had.
    Buffered,
}

impl Method {
    const ALL: [Method; 3] = [
        Method::DirectDsync,
        Method::DirectFdatasync,
        Method::Buffered,
    ];

    /// As it is called elsewhere: `direct+rwf_dsync`.
    pub fn name(self) -> &'static str {
        match self {
            Method::DirectDsync => "direct+rwf_dsync",
            Method::DirectFdatasync => "direct+fdatasync",
            Method::Buffered => "fdatasync",
        }
    }

    /// As it is kept in a file.
    pub fn code(self) -> u32 {
        match self {
            Method::DirectDsync => 1,
            Method::DirectFdatasync => 2,
            Method::Buffered => 3,
        }
    }

    pub fn of_code(code: u32) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.code() == code)
    }
}

/// A file of the directory. Offsets and lengths of reads and writes are multiples of the directory's granule, and
/// buffers begin at multiples of [`ALIGNMENT`].
pub(crate) trait File: Send + Sync + 'static {
    /// Bytes that it has.
    fn size(&self) -> io::Result<u64>;
    /// Makes it `len` bytes long, with the space for them; what is in it stays.
    fn allocate(&self, len: u64) -> io::Result<()>;
    /// Reads from `offset` on, perhaps less than the buffer takes: 0 at the end of the file. One call of the system,
    /// which may be interrupted.
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes from `offset` on, perhaps less than all of it. One call of the system, which may be interrupted.
    /// [`Durability::OnReturn`] holds for what was written once [`settle`](File::settle) returns.
    fn write_some(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<usize>;
    /// Completes writes that are to be durable on return, if writing alone does not make them so.
    fn settle(&self) -> io::Result<()>;
    /// Makes durable what was written, and the length.
    fn sync(&self) -> io::Result<()>;
    /// Writes all of `bytes` by one write of which a power cut leaves everything or nothing; durable once the file was synced. Their
    /// number is a power of two of which `offset` is a multiple, and one of [`atomic_writes`](Storage::atomic_writes).
    fn write_atomic(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer` from `offset` on.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read_some(&mut buffer[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`, which were allocated before.
    fn write(&self, bytes: &[u8], offset: u64, durability: Durability) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write_some(&bytes[done..], offset + done as u64, durability) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => done += written,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match durability {
            Durability::Later => Ok(()),
            Durability::OnReturn => self.settle(),
        }
    }
}

/// A directory, and the files in it.
pub(crate) trait Storage: Clone + Send + Sync + 'static {
    /// An open file.
    type File: File;

    /// Makes the directory if it is not there.
    fn make_directory(&self) -> io::Result<()>;
    /// Makes durable that the directory is there.
    fn sync_parent(&self) -> io::Result<()>;
    /// Names of everything in the directory.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Takes the directory for this handle and its clones; `false`: somebody has it.
    fn lock(&self) -> io::Result<bool>;
    /// Gives the directory back.
    fn unlock(&self);
    /// The number of this process. One that was forked since has what locked the directory as well, and another number.
    fn process(&self) -> u64;
    /// Makes a file that is not there.
    fn create(&self, name: &str) -> io::Result<Self::File>;
    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Self::File>;
    /// Gives a file another name, which may be that of one that then goes.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes durable which files there are.
    fn sync(&self) -> io::Result<()>;
    /// Bytes that files may grow by, if that is known. Others may take them meanwhile.
    fn available(&self) -> Option<u64>;
    /// What the directory is on: another one may want another method.
    fn device(&self) -> io::Result<u64>;
    /// Bytes of which offsets and lengths are multiples, and which a device writes whole.
    fn granule(&self) -> io::Result<u32>;
    /// Bytes that a write may have which is not torn, with direct I/O; `0..=0`: none is promised.
    fn atomic_writes(&self) -> io::Result<RangeInclusive<u32>>;
    /// Which method is the soonest durable for `granule` bytes at `offset` of `file`, which are overwritten.
    fn calibrate(&self, file: &Self::File, offset: u64, granule: u32) -> io::Result<Method>;
    /// Has files that are opened from now on use it.
    fn use_method(&self, method: Method);
}
