//! The files that trials write: made, settled, kept and removed.
//!
//! Files of written blocks are kept for the whole run and serve every trial that overwrites, so
//! that they are prepared once. All others are made for one trial and removed after it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use landfall_os::{Allocation, Payload, evict, load, resident_share, zero_fill};

use super::{CacheState, Strategy};
use crate::preparation::{PrepareError, reserve};
use crate::{Preparation, Site, Stop};

const CHUNK: usize = 1 << 20;

/// Files ready for one trial.
pub(super) struct Prepared {
    /// One file, or one for each thread.
    pub paths: Vec<PathBuf>,
    /// What it took, for this trial alone.
    pub preparation: Preparation,
    kept: bool,
}

/// Makes and keeps the files of a run.
pub(super) struct Workbench<'a> {
    site: &'a Site,
    stop: &'a Stop,
    settle: Option<Duration>,
    /// Preparation of the files that are kept.
    pub kept: Preparation,
}

impl<'a> Workbench<'a> {
    pub fn new(site: &'a Site, stop: &'a Stop, settle_seconds: Option<f64>) -> Workbench<'a> {
        Workbench {
            site,
            stop,
            settle: settle_seconds.map(Duration::from_secs_f64),
            kept: Preparation::default(),
        }
    }

    /// Prepares files for a trial of `strategy` with `writes` writes to each file.
    pub fn prepare(&mut self, strategy: &Strategy, writes: u64) -> Result<Prepared, PrepareError> {
        let len = strategy.span(writes);
        if strategy.allocation == Allocation::Overwrite {
            let paths = (0..strategy.file_count())
                .map(|index| self.kept_file(&format!("written-{index}"), len))
                .collect::<io::Result<Vec<_>>>()?;
            self.set_caches(&paths, strategy, len)?;
            return Ok(Prepared {
                paths,
                preparation: Preparation::default(),
                kept: true,
            });
        }
        if strategy.allocation == Allocation::Recycled {
            for index in 0..strategy.file_count() {
                self.kept_file(&format!("old-{index}"), len)?;
            }
        }
        let begin = Instant::now();
        let mut preparation = Preparation::default();
        let mut paths = Vec::new();
        for index in 0..strategy.file_count() {
            let path = self.site.private().join(format!("trial-{index}"));
            preparation.bytes += self.make(strategy.allocation, index, &path, len)?;
            paths.push(path);
        }
        // Zeros that settled stay in the cache as they were written, like those that did not, unless
        // the trial bypasses it; the other allocations have no written blocks.
        let settled = strategy.allocation == Allocation::ZeroFilledSettled;
        if strategy.allocation == Allocation::Recycled || settled && strategy.method.direct {
            self.set_caches(&paths, strategy, len)?;
        }
        preparation.seconds = begin.elapsed().as_secs_f64();
        Ok(Prepared {
            paths,
            preparation,
            kept: false,
        })
    }

    /// Makes the file of one trial; returns the bytes written for it.
    fn make(
        &self,
        allocation: Allocation,
        index: u32,
        path: &Path,
        len: u64,
    ) -> Result<u64, PrepareError> {
        if allocation == Allocation::Recycled {
            fs::rename(self.site.private().join(format!("old-{index}")), path)?;
            self.sync_directory()?;
            return Ok(0);
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        reserve(&file, allocation, len)?;
        // The name and the size are durable before the trial begins: they are not what it measures.
        file.sync_all()?;
        self.sync_directory()?;
        if !matches!(
            allocation,
            Allocation::ZeroFilled | Allocation::ZeroFilledSettled
        ) {
            return Ok(0);
        }
        zero_fill(&file, 0, len, &|| self.stop.is_requested())?;
        if allocation == Allocation::ZeroFilledSettled {
            self.settle(&file)?;
        }
        Ok(len)
    }

    /// Zeros have settled when they are durable; or, as in the published measurement, when one has
    /// waited long enough.
    fn settle(&self, file: &File) -> io::Result<()> {
        let Some(wait) = self.settle else {
            return file.sync_data();
        };
        let until = Instant::now() + wait;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.stop.is_requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        Ok(())
    }

    /// A file of at least `len` written, durable bytes.
    fn kept_file(&mut self, name: &str, len: u64) -> io::Result<PathBuf> {
        let path = self.site.private().join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let mut offset = file.metadata()?.len();
        if offset >= len {
            return Ok(path);
        }
        let begin = Instant::now();
        // No more than is needed: a full chunk takes a millisecond to make, as long as a short run.
        let mut payload = Payload::new((len - offset).min(CHUNK as u64) as usize, 1);
        while offset < len {
            if self.stop.is_requested() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let chunk = (len - offset).min(CHUNK as u64) as usize;
            file.write_all_at(&payload.stamped(offset)[..chunk], offset)?;
            self.kept.bytes += chunk as u64;
            offset += chunk as u64;
        }
        file.sync_all()?;
        self.sync_directory()?;
        self.kept.seconds += begin.elapsed().as_secs_f64();
        Ok(path)
    }

    fn set_caches(
        &self,
        paths: &[PathBuf],
        strategy: &Strategy,
        len: u64,
    ) -> Result<(), PrepareError> {
        paths
            .iter()
            .try_for_each(|path| self.set_cache(path, strategy, len))
    }

    /// Brings the cache into the state that the strategy names, whatever earlier trials left: empty,
    /// then for a warm buffered trial read in again.
    ///
    /// It matters more than one would think. On Linux 6.18 a direct write to a file that has pages in
    /// the cache takes another path through the kernel, at two thirds of the CPU time, than one to a
    /// file that has none; and `msync` writes back whole folios, whose size depends on how the pages
    /// came into the cache: for 8 KiB, 1 MiB after large writes and 110 KiB after reading.
    fn set_cache(&self, path: &Path, strategy: &Strategy, len: u64) -> Result<(), PrepareError> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        evict(&file)?;
        if strategy.cache == CacheState::Warm {
            // Direct methods begin with an empty cache, as in a program that uses nothing else.
            return if strategy.method.direct {
                Ok(())
            } else {
                Ok(load(&file, len)?)
            };
        }
        let Ok(resident) = resident_share(&file, len) else {
            let reason = "it cannot be told what of the file is in memory";
            return Err(PrepareError::Unsupported(reason.to_owned()));
        };
        if resident > 0.01 {
            return Err(PrepareError::Unsupported(format!(
                "{:.0}% of the file stay in memory after being evicted",
                resident * 100.0
            )));
        }
        Ok(())
    }

    /// Drains what the trial left in the cache, so that the next one does not pay for it, and removes
    /// its files or puts them back.
    pub fn clear(&self, prepared: Prepared, allocation: Allocation) -> io::Result<()> {
        for (index, path) in prepared.paths.iter().enumerate() {
            if prepared.kept {
                OpenOptions::new().write(true).open(path)?.sync_data()?;
            } else if allocation == Allocation::Recycled {
                OpenOptions::new().write(true).open(path)?.sync_data()?;
                fs::rename(path, self.site.private().join(format!("old-{index}")))?;
            } else {
                fs::remove_file(path)?;
            }
        }
        if !prepared.kept {
            self.sync_directory()?;
        }
        Ok(())
    }

    /// Removes whatever a failed preparation or trial left for this strategy.
    pub fn discard(&self, strategy: &Strategy) -> io::Result<()> {
        for index in 0..strategy.file_count() {
            match fs::remove_file(self.site.private().join(format!("trial-{index}"))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(self.site.private())?.sync_all()
    }
}
