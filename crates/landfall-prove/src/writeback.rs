//! The write-back injector: forces out to the device what a program leaves dirty.
//!
//! Only what reached the device can be lost halfway: a program that leaves everything in the page cache
//! loses all of it, and never meets the state in which a rename is there and the data is not. On a real
//! machine other programs and the kernel's timers bring that about; here the injector does, between
//! transactions, in a way that its seed decides. Of several clients it does so while others go on.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use landfall_os::{sync_filesystem, write_out};

/// Files looked at for dirty pages.
const MOST_FILES: usize = 256;

/// Injects write-back on one filesystem.
#[derive(Debug)]
pub(crate) struct WritebackInjector {
    root: PathBuf,
    own: File,
    random: fastrand::Rng,
    turn: u64,
}

impl WritebackInjector {
    /// An injector with a file of its own in `root`, the root of a filesystem.
    pub fn new(root: &Path, seed: u64) -> io::Result<WritebackInjector> {
        let own = File::create(root.join(".landfall-writeback"))?;
        own.write_all_at(&[0; 4096], 0)?;
        own.sync_all()?;
        Ok(WritebackInjector {
            root: root.to_owned(),
            own,
            random: fastrand::Rng::with_seed(seed),
            turn: 0,
        })
    }

    /// Does one of: nothing; sync another file, with which a journal commits whatever metadata it has;
    /// hand everybody's dirty data to the device without a flush; sync the whole filesystem.
    pub fn inject(&mut self) -> io::Result<()> {
        self.turn += 1;
        match self.random.u8(..8) {
            0..3 => {
                // A new block each time, so that there is metadata to commit.
                self.own.write_all_at(&[1; 512], self.turn * 4096)?;
                self.own.sync_all()
            }
            3..5 => {
                let mut left = MOST_FILES;
                write_out_all(&self.root, &mut left)
            }
            5 => sync_filesystem(&self.own),
            _ => Ok(()),
        }
    }
}

fn write_out_all(directory: &Path, left: &mut usize) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            write_out_all(&entry.path(), left)?;
        } else if kind.is_file() && *left > 0 {
            *left -= 1;
            // The program may have removed it in the meantime.
            if let Ok(file) = File::open(entry.path()) {
                write_out(&file)?;
            }
        }
    }
    Ok(())
}
