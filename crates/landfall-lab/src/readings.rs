//! All counters at one moment.

use std::time::Duration;

use landfall_os::{CpuTimes, DeviceCounters, process_cpu};

use crate::Site;

/// Counters at one moment, or what they counted between two.
#[derive(Clone, Debug)]
pub(crate) struct Readings {
    /// The site's device, if there is one to ask.
    pub device: Option<DeviceCounters>,
    /// Commits of the site's journal.
    pub commits: Option<u64>,
    /// CPU of the whole machine.
    pub everybody: CpuTimes,
    /// CPU of this process.
    pub cpu: Duration,
}

impl Readings {
    /// Reads them.
    pub fn take(site: &Site) -> Readings {
        Readings {
            device: site.counters(),
            commits: site.journal().commits(),
            everybody: CpuTimes::now().unwrap_or_default(),
            cpu: process_cpu(),
        }
    }

    /// What happened from `earlier` to `self`.
    pub fn since(&self, earlier: &Readings) -> Readings {
        Readings {
            device: self
                .device
                .zip(earlier.device)
                .map(|(now, then)| now.since(&then)),
            commits: self
                .commits
                .zip(earlier.commits)
                .map(|(now, then)| now.saturating_sub(then)),
            everybody: self.everybody.since(&earlier.everybody),
            cpu: self.cpu.saturating_sub(earlier.cpu),
        }
    }

    /// Processors that others used, and that a hypervisor took away, in a time of `seconds`.
    pub fn foreign(&self, seconds: f64) -> (f64, f64) {
        let others = (self.everybody.busy - self.cpu.as_secs_f64()).max(0.0);
        (others / seconds, self.everybody.stolen.max(0.0) / seconds)
    }
}
