//! One trial: a file replaced again and again, for a time.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use landfall_os::DeviceCounters;
use landfall_results::metric::Figures;
use landfall_results::{Metric, Trial};

use super::Way;
use super::way::Replaced;
use crate::readings::Readings;
use crate::{Site, Stop};

/// The longest time that is told apart, in nanoseconds.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// What is to be done.
pub(super) struct Task<'a> {
    pub way: Way,
    pub size: u64,
    pub round: u32,
    pub duration: Duration,
    pub site: &'a Site,
    pub stop: &'a Stop,
}

/// Replaces a file, at least once, in a directory of its own, which is there durably before the time begins. What of it had not been
/// written when the time was over is written out, and counted.
pub(super) fn run(task: &Task<'_>) -> io::Result<Trial> {
    let place = task.site.private().join("rename");
    fs::create_dir(&place)?;
    let measured = measure(task, &place);
    let removed = fs::remove_dir_all(&place);
    let trial = measured?;
    removed?;
    Ok(trial)
}

fn measure(task: &Task<'_>, place: &Path) -> io::Result<Trial> {
    let (path, new) = (place.join("file"), place.join("file.new"));
    let replaced = Replaced {
        path: &path,
        new: &new,
        directory: &File::open(place)?,
    };
    let mut content = vec![0; task.size as usize];
    fastrand::Rng::with_seed(u64::from(task.round)).fill(&mut content);
    replaced.replace(Way::FileRenameDirectory, &content)?;
    task.site.drain()?;

    let mut latencies =
        Histogram::<u64>::new_with_bounds(1, LONGEST_NS, 3).map_err(io::Error::other)?;
    let before = Readings::take(task.site);
    let begin = Instant::now();
    let mut last = begin;
    while last - begin < task.duration {
        if task.stop.is_requested() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        // No content is the one before it.
        let count = latencies.len().to_le_bytes();
        let stamped = content.len().min(count.len());
        content[..stamped].copy_from_slice(&count[..stamped]);
        replaced.replace(task.way, &content)?;
        let now = Instant::now();
        let took = u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX);
        latencies.saturating_record(took);
        last = now;
    }
    let seconds = (last - begin).as_secs_f64();
    let cpu = Readings::take(task.site).since(&before);
    task.site.drain()?;
    let settled = Readings::take(task.site).since(&before);

    let operations = latencies.len() as f64;
    let (foreign_cpus, stolen_cpus) = cpu.foreign(seconds);
    let each = |count: fn(&DeviceCounters) -> f64| {
        settled.device.as_ref().map(|all| count(all) / operations)
    };
    let percentile = |share: f64| latencies.value_at_quantile(share) as f64 / 1e3;
    Ok(Trial {
        round: task.round,
        figures: Figures::default()
            .with(Metric::Seconds, seconds)
            .with(Metric::Operations, latencies.len() as f64)
            .with(Metric::OpsPerSecond, operations / seconds)
            .with(Metric::P50Us, percentile(0.5))
            .with(Metric::P99Us, percentile(0.99))
            .with(Metric::MaxUs, latencies.max() as f64 / 1e3)
            .with(Metric::CpuUs, cpu.cpu.as_secs_f64() * 1e6 / operations)
            .with(
                Metric::WriteRequests,
                each(|device| device.write_requests as f64),
            )
            .with(
                Metric::Kib,
                each(|device| device.write_bytes as f64 / 1024.0),
            )
            .with(Metric::Flushes, each(|device| device.flushes as f64))
            .with(Metric::ForeignCpus, foreign_cpus)
            .with(Metric::StolenCpus, stolen_cpus),
        ..Trial::default()
    })
}
