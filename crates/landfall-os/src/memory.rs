//! Memory of this process, and what is left of the machine's.

use std::fs;
use std::io;

use procfs::process::Process;
use procfs::{Current, Meminfo};

/// Forgets the highest resident memory of this process so far, so that [`peak_resident`] tells it from
/// now on.
pub fn reset_peak_resident() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

/// The highest resident memory of this process, in bytes: its own pages and those of files that it has
/// mapped and touched.
pub fn peak_resident() -> io::Result<u64> {
    let status = Process::myself().and_then(|process| process.status());
    let peak = status.map_err(io::Error::other)?.vmhwm;
    peak.map(|kib| kib * 1024)
        .ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Bytes of memory that programs could have without swapping: what the machine has left, or the limit of
/// this process's control group, whichever is less. What the group has in use is not taken off: most of
/// it is page cache, as a rule, which gives way.
pub fn available_memory() -> io::Result<u64> {
    let memory = Meminfo::current().map_err(io::Error::other)?;
    let machine = memory.mem_available.unwrap_or(memory.mem_free);
    Ok(group_limit().map_or(machine, |limit| limit.min(machine)))
}

/// The memory limit of this process's control group or of one above it, whichever is least.
fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        // "0::/user.slice", or with version 1 "4:memory:/some/group".
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            names if names.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // From the group itself up to the root, which is all that a container may see.
        let ancestors = std::path::Path::new(path).ancestors();
        ancestors
            .filter_map(|group| {
                let group = group.to_str()?.trim_start_matches('/');
                let limit = fs::read_to_string(format!("{root}/{group}/{file}")).ok()?;
                limit.trim().parse::<u64>().ok()
            })
            .min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_follows_what_is_touched() {
        assert!(available_memory().unwrap() > 0);
        if reset_peak_resident().is_err() {
            println!("skipped: the peak cannot be reset here");
            return;
        }
        let block = std::hint::black_box(vec![1u8; 32 << 20]);
        let peak = peak_resident().unwrap();
        drop(block);
        assert!(peak >= 32 << 20, "{peak}");
        // The kernel keeps it to within some pages for each processor.
        assert!(peak_resident().unwrap() >= peak / 10 * 9, "the peak stays");
    }
}
