//! Putting a file's pages into the page cache, and out of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::Advice;

use crate::mapping::Mapping;
use crate::stream_file::sync_file_range;

/// Drops the file's clean pages from the page cache; dirty ones are written first.
///
/// Needs no privilege. The kernel may keep pages: ask [`resident_share`] what became of them.
pub fn evict(file: &File) -> io::Result<()> {
    file.sync_data()?;
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

/// Reads the file from `0` to `len`, so that its pages are in the page cache.
pub fn load(file: &File, len: u64) -> io::Result<()> {
    let mut buffer = vec![0u8; 1 << 20];
    let mut offset = 0;
    while offset < len {
        let want = (len - offset).min(buffer.len() as u64) as usize;
        match file.read_at(&mut buffer[..want], offset)? {
            0 => break,
            read => offset += read as u64,
        }
    }
    Ok(())
}

/// Hands the file's dirty pages to the device and waits until it has them. **Not durable**: neither
/// metadata nor the device's cache is flushed.
pub fn write_out(file: &File) -> io::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // No bytes means to the end.
    sync_file_range(file, 0, 0, flags)
}

/// Writes everything that is dirty on the filesystem of `directory`, whoever made it so, and waits until
/// it is durable.
pub fn sync_filesystem(directory: &File) -> io::Result<()> {
    Ok(rustix::fs::syncfs(directory)?)
}

/// The share of the file's first `len` bytes that is in the page cache, from 0 to 1. The file must be
/// open for reading and writing.
pub fn resident_share(file: &File, len: u64) -> io::Result<f64> {
    if len == 0 {
        return Ok(0.0);
    }
    let (resident, pages) = Mapping::new(file, len)?.resident()?;
    Ok(resident as f64 / pages as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_on_a_disk_is_evicted_and_loaded() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
        assert_eq!(resident_share(&file, 1 << 20).unwrap(), 1.0);
        evict(&file).unwrap();
        if resident_share(&file, 1 << 20).unwrap() > 0.0 {
            println!("skipped: this filesystem keeps its pages in memory");
            return;
        }
        load(&file, 1 << 20).unwrap();
        assert_eq!(resident_share(&file, 1 << 20).unwrap(), 1.0);
    }
}
