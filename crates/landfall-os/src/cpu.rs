//! CPU time: this process's, and everybody's.

use std::io;
use std::time::Duration;

use procfs::{CurrentSI, KernelStats};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// CPU time that this process has used, user and system, all threads (also the kernel's io_uring
/// workers that act for it).
pub fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
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
    fn work_shows_in_the_process_clock() {
        let before = process_cpu();
        let mut x = 1u64;
        while process_cpu() - before < Duration::from_millis(20) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(CpuTimes::now().unwrap().busy > 0.0);
    }
}
