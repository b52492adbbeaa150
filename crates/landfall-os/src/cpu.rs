//! CPU time: this process's, another one's with all that it started, and everybody's.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use procfs::process::{Stat, all_processes};
use procfs::{CurrentSI, KernelStats};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// CPU time that this process has used, user and system, all threads (also the kernel's io_uring
/// workers that act for it).
pub fn process_cpu() -> Duration {
    of_clock(ClockId::ProcessCPUTime)
}

/// CPU time that the calling thread has used, user and system.
pub fn thread_cpu() -> Duration {
    of_clock(ClockId::ThreadCPUTime)
}

fn of_clock(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// CPU time that a process and all that it started have used, user and system; those among them that have
/// ended and were waited for are counted. `None` if there is no such process any more.
///
/// The kernel tells it in ticks of its timer, mostly 10 ms, for each process.
pub fn tree_cpu(process: u32) -> io::Result<Option<Duration>> {
    let root = i32::try_from(process).map_err(io::Error::other)?;
    // A process that ends while it is read is in the times of whoever waited for it, as a rule.
    let stats: BTreeMap<i32, Stat> = all_processes()
        .map_err(io::Error::other)?
        .filter_map(|process| process.ok()?.stat().ok())
        .map(|stat| (stat.pid, stat))
        .collect();
    if !stats.contains_key(&root) {
        return Ok(None);
    }
    let ticks: u64 = stats
        .values()
        .filter(|stat| is_below(stat.pid, root, &stats))
        .map(|stat| {
            let waited_for = stat.cutime.max(0) + stat.cstime.max(0);
            stat.utime + stat.stime + waited_for as u64
        })
        .sum();
    let seconds = ticks as f64 / procfs::ticks_per_second() as f64;
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// Whether `process` is `root` or was started by it, directly or not.
fn is_below(process: i32, root: i32, stats: &BTreeMap<i32, Stat>) -> bool {
    let parent = |&process: &i32| stats.get(&process).map(|stat| stat.ppid);
    // Numbers that were given anew while they were read could make a circle.
    std::iter::successors(Some(process), parent)
        .take(stats.len())
        .any(|one| one == root)
}

/// What all CPUs of the machine have done since it started, from `/proc/stat`, in seconds.
///
/// The kernel samples these at its timer tick: over a second they are good to a few percent.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTimes {
    /// User, system and interrupt time of everything on the machine, kernel threads included.
    pub busy: f64,
    /// Time that a hypervisor gave to somebody else while a CPU of this machine had work.
    pub stolen: f64,
}

impl CpuTimes {
    /// Reads the counters.
    pub fn now() -> io::Result<CpuTimes> {
        let total = KernelStats::current().map_err(io::Error::other)?.total;
        let ticks = total.user
            + total.nice
            + total.system
            + total.irq.unwrap_or(0)
            + total.softirq.unwrap_or(0);
        let per_second = procfs::ticks_per_second() as f64;
        Ok(CpuTimes {
            busy: ticks as f64 / per_second,
            stolen: total.steal.unwrap_or(0) as f64 / per_second,
        })
    }

    /// What happened from `earlier` to `self`.
    pub fn since(&self, earlier: &CpuTimes) -> CpuTimes {
        CpuTimes {
            busy: self.busy - earlier.busy,
            stolen: self.stolen - earlier.stolen,
        }
    }
}

/// Keeps the calling thread on the processor that it is on, until this is dropped; threads that it starts
/// meanwhile are kept there too.
#[derive(Debug)]
pub struct OneProcessor {
    before: CpuSet,
}

impl OneProcessor {
    /// From now on.
    pub fn stay() -> io::Result<OneProcessor> {
        let before = sched_getaffinity(None)?;
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        sched_setaffinity(None, &one)?;
        Ok(OneProcessor { before })
    }
}

impl Drop for OneProcessor {
    fn drop(&mut self) {
        // It was allowed a moment ago.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_until_it_may_go() {
        let before = sched_getaffinity(None).unwrap();
        let staying = OneProcessor::stay().unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        drop(staying);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn the_work_of_what_a_process_started_is_its_own() {
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        // The outer shell waits for the inner one, and is then still there.
        let script = format!("sh -c '{script}'; echo done; read line");
        let mut shell = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut word = [0; 4];
        let stdout = shell.stdout.as_mut().unwrap();
        io::Read::read_exact(stdout, &mut word).unwrap();
        let used = tree_cpu(shell.id()).unwrap();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(used.is_some_and(|used| used > Duration::ZERO), "{used:?}");
        // Its number may have been given to another one by now, which is no child of ours.
        let mine = tree_cpu(std::process::id()).unwrap();
        assert!(mine >= used, "{mine:?}");
    }

    #[test]
    fn work_shows_in_the_process_clock() {
        let before = process_cpu();
        let mut x = 1u64;
        while process_cpu() - before < Duration::from_millis(20) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(CpuTimes::now().unwrap().busy > 0.0);
    }
}
