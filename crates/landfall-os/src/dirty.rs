//! Data that programs have written and the kernel has not: how much there is, and how much there may be.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;

use procfs::{Current, Meminfo};

use crate::BlockDevice;
use crate::mapping::Mapping;

/// How many dirty bytes the kernel tolerates before it acts.
///
/// From `/proc/vmstat`, where the ratios of `vm.dirty_ratio` and `vm.dirty_background_ratio` (or the
/// bytes that replace them) have been applied to the memory that is available at the moment. Writers
/// run freely until dirty data reaches the middle between the two (`dirty_freerun_ceiling` in
/// mm/page-writeback.c); from there on the kernel makes them sleep, the longer the closer to the upper
/// limit, until they write as slowly as the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub struct DirtyLimits {
    /// The kernel starts writing at this many dirty bytes.
    pub background_bytes: u64,
    /// Writers never leave more dirty bytes than these.
    pub limit_bytes: u64,
    /// Writers begin to be slowed down at this many.
    pub throttle_bytes: u64,
    /// A limit of the device's own, below the machine's, where somebody has set a strict one.
    pub device_limit_bytes: Option<u64>,
    /// Dirty data is written after this many seconds in any case.
    pub expire_seconds: f64,
}

impl DirtyLimits {
    /// The limits in force now, for data that goes to `device`; `None` where the kernel does not tell.
    pub fn now(device: Option<&BlockDevice>) -> Option<DirtyLimits> {
        let vmstat = fs::read_to_string("/proc/vmstat").ok()?;
        let pages = |name: &str| -> Option<u64> {
            let line = vmstat.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(' ')?.trim().parse().ok()
        };
        let page = rustix::param::page_size() as u64;
        let background_bytes = pages("nr_dirty_background_threshold")? * page;
        let limit_bytes = pages("nr_dirty_threshold")? * page;
        let device_limit_bytes = device.and_then(strict_limit);
        let machine = (background_bytes + limit_bytes) / 2;
        // With a strict limit the device's share of the machine's limits is what counts, and the
        // background threshold shrinks in proportion.
        let own = device_limit_bytes
            .map(|own| own as f64 * machine as f64 / limit_bytes.max(1) as f64)
            .map_or(machine, |bytes| bytes as u64);
        let expire = fs::read_to_string("/proc/sys/vm/dirty_expire_centisecs").unwrap_or_default();
        Some(DirtyLimits {
            background_bytes,
            limit_bytes,
            throttle_bytes: machine.min(own),
            device_limit_bytes,
            expire_seconds: expire.trim().parse::<f64>().unwrap_or(3000.0) / 100.0,
        })
    }
}

/// The device's own limit, if it is a strict one.
fn strict_limit(device: &BlockDevice) -> Option<u64> {
    // A partition's data is that of its disk.
    let queue = *device.counted_on().first()?;
    let read = |name: &str| -> Option<u64> {
        let path = format!("/sys/class/bdi/{}/{name}", queue.number);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    (read("strict_limit")? == 1)
        .then(|| read("max_bytes"))
        .flatten()
}

/// `cachestat(2)`, since Linux 6.5; the same number on every architecture but Alpha.
const SYS_CACHESTAT: libc::c_long = 451;

/// What `cachestat` reads: the whole file, where the length is 0.
#[repr(C)]
#[derive(Default)]
struct CachestatRange {
    offset: u64,
    len: u64,
}

/// What it fills in, in pages.
#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Bytes of the file that are dirty or being written back.
///
/// Before Linux 6.5 the error is `ENOSYS`.
pub fn dirty_bytes_of(file: &File) -> io::Result<u64> {
    let stat = cachestat(file)?;
    Ok((stat.dirty + stat.writeback) * rustix::param::page_size() as u64)
}

/// Pages of the file, or of the block device, that are in the page cache. It must be open for reading
/// and writing.
pub(crate) fn cached_pages(mut file: &File) -> io::Result<u64> {
    match cachestat(file) {
        // Before Linux 6.5.
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            let len = file.seek(SeekFrom::End(0))?;
            Ok(Mapping::new(file, len)?.resident()?.0 as u64)
        }
        stat => Ok(stat?.cached),
    }
}

fn cachestat(file: &File) -> io::Result<Cachestat> {
    let range = CachestatRange::default();
    let mut stat = Cachestat::default();
    // SAFETY: the descriptor is open as long as `file` is borrowed; both structures are laid out as the
    // kernel's, and live until the call returns.
    let result = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            file.as_raw_fd(),
            &raw const range,
            &raw mut stat,
            0,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat)
}

/// Bytes on the whole machine that are dirty or being written back.
pub fn dirty_bytes() -> io::Result<u64> {
    let memory = Meminfo::current().map_err(io::Error::other)?;
    Ok(memory.dirty + memory.writeback + memory.writeback_tmp.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_dirty_until_it_is_synced() {
        use std::os::unix::fs::FileExt;
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.write_all_at(&vec![1; 1 << 20], 0).unwrap();
        match dirty_bytes_of(&file) {
            // The kernel may have written some of it already.
            Ok(dirty) => assert!(dirty <= 1 << 20, "{dirty}"),
            Err(error) => return println!("skipped: this kernel does not tell: {error}"),
        }
        file.sync_all().unwrap();
        assert_eq!(dirty_bytes_of(&file).unwrap(), 0);
    }

    #[test]
    fn limits_are_in_order() {
        let Some(limits) = DirtyLimits::now(None) else {
            println!("skipped: /proc/vmstat does not tell the dirty limits");
            return;
        };
        assert!(limits.background_bytes <= limits.throttle_bytes);
        assert!(limits.throttle_bytes <= limits.limit_bytes);
        dirty_bytes().unwrap();
    }
}
