//! The file that a trial writes: made, drained before, and removed.
//!
//! There is one file at a time, so that the largest state needs no more space than itself.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use landfall_os::{Allocation, Medium, Payload, dirty_bytes, evict, resident_share, zero_fill};

use super::Strategy;
use super::plan::written_bytes;
use crate::preparation::{PrepareError, reserve};
use crate::{Preparation, Site, Stop};

const CHUNK: u64 = 4 << 20;
/// The share of a file that may still be in memory after it was evicted.
const STILL_COLD: f64 = 0.01;

/// A file that is ready for a trial.
#[derive(Debug)]
pub(super) struct Prepared {
    pub path: PathBuf,
    pub preparation: Preparation,
    /// Bytes that others had left dirty on the machine before it was prepared.
    pub dirty_before: u64,
}

/// Makes and removes the files of a run.
pub(super) struct Workbench<'a> {
    pub site: &'a Site,
    pub stop: &'a Stop,
}

impl Workbench<'_> {
    fn path(&self) -> PathBuf {
        self.site.private().join("state")
    }

    /// Writes out whatever earlier trials left, then makes the file for a trial of `strategy`. `seed`
    /// makes what an existing file holds unlike what the trial will write.
    pub fn prepare(&self, strategy: &Strategy, seed: u64) -> Result<Prepared, PrepareError> {
        self.site.drain()?;
        let dirty_before = dirty_bytes().unwrap_or(0);
        let begin = Instant::now();
        let path = self.path();
        self.make(strategy, seed)?;
        Ok(Prepared {
            path,
            preparation: Preparation {
                seconds: begin.elapsed().as_secs_f64(),
                bytes: written_bytes(strategy) - strategy.size,
            },
            dirty_before,
        })
    }

    fn make(&self, strategy: &Strategy, seed: u64) -> Result<(), PrepareError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(self.path())?;
        let len = strategy.size;
        reserve(&file, strategy.allocation, len)?;
        match strategy.allocation {
            Allocation::ZeroFilledSettled => {
                zero_fill(&file, 0, len, &|| self.stop.is_requested())?;
            }
            Allocation::Overwrite => self.fill(&file, len, seed)?,
            _ => {}
        }
        // The name, the size and what must have settled are durable before the trial begins.
        file.sync_all()?;
        File::open(self.site.private())?.sync_all()?;
        match strategy.allocation {
            // After the sync: these zeros are still dirty when the trial begins.
            Allocation::ZeroFilled => {
                zero_fill(&file, 0, len, &|| self.stop.is_requested())?;
            }
            // An existing file is as a restart leaves it: not in memory.
            Allocation::Overwrite => self.evict(&file, len)?,
            Allocation::ZeroFilledSettled if strategy.method.direct => evict(&file)?,
            _ => {}
        }
        Ok(())
    }

    /// Evicts the file, and sees to it that it is gone: a mapping of warm pages would read nothing. In
    /// main memory there is nowhere else for it to be.
    fn evict(&self, file: &File, len: u64) -> Result<(), PrepareError> {
        evict(file)?;
        let resident = resident_share(file, len)?;
        let in_memory = self.site.filesystem().storage().medium == Medium::Memory;
        if resident <= STILL_COLD || in_memory {
            Ok(())
        } else {
            Err(PrepareError::Unsupported(format!(
                "{:.0}% of the file stay in memory after being evicted",
                resident * 100.0
            )))
        }
    }

    fn fill(&self, file: &File, len: u64, seed: u64) -> io::Result<()> {
        let mut payload = Payload::new(len.min(CHUNK) as usize, seed);
        let mut offset = 0;
        while offset < len {
            if self.stop.is_requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let chunk = (len - offset).min(CHUNK);
            let bytes = payload.part(0, chunk as usize, offset);
            file.write_all_at(bytes, offset)?;
            offset += chunk;
        }
        Ok(())
    }

    /// Removes the file, if there is one; what of it was not written is forgotten.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
