//! One trial: clients ask a database for so many seconds, after a warm-up, and the counters say what that
//! took.
//!
//! Between warm-up and measurement all clients pause, and what is dirty in the page cache is written out, so
//! that what is counted belongs to the requests that are; a database that works in the background goes on
//! meanwhile. Afterwards what they left in the page cache is written out too, and its bytes are counted with
//! theirs: when the kernel would have done so is chance. Flushes and requests are those of the measured time.
//! Where a steady load is waited for, the device is read at the end of each window by the thread that looks
//! on, and the database is asked what it owes, over a session that no client uses.

use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use landfall_os::DeviceCounters;
use landfall_recorder::Recorder;
use landfall_recorder::wear::Drive;

use super::busy::Busy;
use super::loaded::failed;
use super::steady::{self, Windows};
use super::{UntilSteady, device_cost, wear};
use crate::readings::Readings;
use crate::{Preparation, Site, Stop};
use landfall_databases::workload::clients::{self, Worked};
use landfall_databases::workload::{Client, Workload};
use landfall_databases::{DatabaseError, Forecast, Running};
use landfall_os::directory_bytes;
use landfall_results::metric::Figures;
use landfall_results::{KindOfRequest, Metric, Steadiness, Trial};

const WRITING_OUT: &str = "write out what is dirty";

/// What is to be done.
pub(super) struct Task<'a> {
    pub round: u32,
    pub site: &'a Site,
    /// Where the disk below the site is, where that is another one.
    pub below: Option<&'a Site>,
    pub running: &'a dyn Running,
    /// Where the database is.
    pub directory: &'a Path,
    pub workload: &'a dyn Workload,
    pub clients: u32,
    /// Threads that take CPU time meanwhile.
    pub busy: u32,
    /// What is asked is drawn from it.
    pub seed: u64,
    pub warm_up: Duration,
    /// Whether the warm-up goes on until the load is steady.
    pub steady: Option<UntilSteady>,
    pub duration: Duration,
    /// The drive whose wear is reckoned.
    pub drive: Option<&'a Drive>,
    /// Whether the database must write afterwards what it owes.
    pub settles: bool,
    pub stop: &'a Stop,
}

/// All counters at one moment, or what they counted between two.
struct Counted {
    site: Readings,
    below: Option<DeviceCounters>,
    server_cpu: Duration,
    /// Of the threads that do nothing else.
    busy_cpu: Duration,
}

impl Counted {
    /// Takes the bytes of a later look.
    fn add_bytes(&mut self, later: &Counted) {
        let take = |device: &mut Option<DeviceCounters>, later: Option<DeviceCounters>| {
            if let (Some(device), Some(later)) = (device, later) {
                device.write_bytes = later.write_bytes;
            }
        };
        take(&mut self.site.device, later.site.device);
        take(&mut self.below, later.below);
    }
}

impl Task<'_> {
    fn count(&self) -> Counted {
        Counted {
            site: Readings::take(self.site),
            below: self.below.and_then(Site::counters),
            server_cpu: self.running.cpu(),
            busy_cpu: Duration::ZERO,
        }
    }

    fn count_since(&self, before: &Counted) -> Counted {
        let now = self.count();
        Counted {
            site: now.site.since(&before.site),
            below: now
                .below
                .zip(before.below)
                .map(|(now, then)| now.since(&then)),
            server_cpu: now.server_cpu.saturating_sub(before.server_cpu),
            busy_cpu: Duration::ZERO,
        }
    }

    /// Windows from now on, where the device tells what is written.
    fn windows(&self) -> Option<Windows> {
        let length = seconds(self.steady?.window_seconds);
        self.site.counters().map(|now| Windows::new(length, &now))
    }

    /// The recorder, where it is asked for the wear.
    fn worn(&self) -> Option<(&Recorder, &Drive)> {
        self.site.recorder().zip(self.drive)
    }

    /// What the database says that it writes, where its formula is of this workload.
    fn forecast(&self) -> Option<Forecast> {
        let updates = self.workload.updates()?;
        updates
            .is_uniform
            .then(|| self.running.forecast())
            .flatten()
    }

    fn clients(&self) -> Result<Vec<Box<dyn Client>>, DatabaseError> {
        (0..self.clients)
            .map(|number| {
                let session = self.running.session()?;
                self.workload.client(session, number, self.seed)
            })
            .collect()
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Warms the database up and measures it; what preceded the warm-up is in `before`. The second is why
/// something could not be told afterwards, which is then absent: what was measured stands.
pub(super) fn run(
    task: &Task<'_>,
    before: Preparation,
) -> Result<(Trial, Result<(), DatabaseError>), DatabaseError> {
    let begin = Instant::now();
    let kinds = task.workload.requests();
    let mut clients = task.clients()?;
    let busy = Busy::start(task.busy)?;
    let steadiness = warm_up(task, &mut clients)?;
    task.site.drain().map_err(failed(WRITING_OUT))?;
    let earlier = task.forecast();
    let preparation = Preparation {
        seconds: before.seconds + begin.elapsed().as_secs_f64(),
        ..before
    };
    if let Some((recorder, _)) = task.worn() {
        wear::begin(recorder)?;
    }
    let mut windows = task.windows();
    let mut is_enough = |elapsed: Duration, done: u64| {
        if let Some(windows) = &mut windows {
            windows.look(elapsed, done, || task.site.counters());
        }
        elapsed >= task.duration
    };
    let count = || (task.count(), busy.cpu());
    let ((begin, busy_before), worked) =
        clients::work(&mut clients, kinds.len(), task.stop, count, &mut is_enough)?;
    let mut counted = task.count_since(&begin);
    counted.busy_cpu = busy.cpu().saturating_sub(busy_before);
    drop(busy);
    let forecast = task.forecast();
    task.site.drain().map_err(failed(WRITING_OUT))?;
    counted.add_bytes(&task.count_since(&begin));
    drop(clients);
    let requests = worked.requests();
    if requests == 0 {
        return Err(DatabaseError::Failed(format!(
            "no request was done in {:.1} s ({} were rolled back)",
            task.duration.as_secs_f64(),
            worked.conflicts
        )));
    }
    let mut trial = Trial {
        windows: windows.map(|windows| windows.windows).unwrap_or_default(),
        steadiness,
        ..trial(task, preparation, &counted, &worked, kinds)
    };
    per_byte(task, earlier.zip(forecast), &mut trial);
    let bytes = database_bytes(task)?;
    trial.figures.set(Metric::DatabaseBytes, bytes as f64);
    let told = tell_aftermath(task, &worked, &mut trial);
    Ok((trial, told))
}

/// Puts into the trial what was written for each byte that was updated, where requests do nothing but that; and what the
/// database would have said, before and after.
fn per_byte(task: &Task<'_>, forecasts: Option<(Forecast, Forecast)>, trial: &mut Trial) {
    let Some(updates) = task.workload.updates() else {
        return;
    };
    let written = trial.get(Metric::Kib);
    let written = written.map(|kib| kib * 1024.0 / updates.bytes as f64);
    let forecast = forecasts.and_then(|(earlier, later)| later.per_byte(&earlier));
    let figures = &mut trial.figures;
    figures.set(Metric::WrittenPerByte, written);
    figures.set(Metric::ForecastPerByte, forecast);
}

/// Puts into the trial what can only be told when it is over.
fn tell_aftermath(
    task: &Task<'_>,
    worked: &Worked,
    trial: &mut Trial,
) -> Result<(), DatabaseError> {
    let requests = worked.requests();
    // The model takes seconds, in which a database pays what it owes: what is owed is told first.
    let writes = task.worn().and_then(|(recorder, _)| wear::end(recorder));
    let settled = if task.settles {
        settle(task, requests, trial)
    } else {
        Ok(())
    };
    if let Some((writes, drive)) = writes.zip(task.drive) {
        let rate = requests as f64 / worked.elapsed.as_secs_f64();
        wear::tell(&writes, drive, requests, rate, trial)?;
    }
    settled
}

fn database_bytes(task: &Task<'_>) -> Result<u64, DatabaseError> {
    directory_bytes(task.directory).map_err(failed("look at the database's files"))
}

/// Lets the clients ask for as long as a warm-up takes, and then until the load is steady, or it is too late
/// for that; says which, where it was waited for.
fn warm_up(
    task: &Task<'_>,
    clients: &mut [Box<dyn Client>],
) -> Result<Option<Steadiness>, DatabaseError> {
    let watched = task.steady.zip(task.windows());
    if task.warm_up.is_zero() && watched.is_none() {
        return Ok(None);
    }
    let (steady, mut windows) = watched.unzip();
    let most = steady.map_or(Duration::ZERO, |steady| seconds(steady.most_seconds));
    let mut found = Ok(None);
    let mut is_enough = |elapsed: Duration, done: u64| {
        let Some(windows) = &mut windows else {
            return elapsed >= task.warm_up;
        };
        let is_late = elapsed >= most;
        let is_new = windows.look(elapsed, done, || task.site.counters());
        if !(is_late || is_new && windows.is_due()) {
            return false;
        }
        found = task
            .running
            .pending_writes()
            .map(|pending| Some(steady::judge(windows, elapsed.as_secs_f64(), &pending)));
        let reached = match &found {
            Ok(Some(steadiness)) => steadiness.reached,
            Ok(None) => false,
            Err(_) => return true,
        };
        is_late || (reached && elapsed >= task.warm_up)
    };
    let kinds = task.workload.requests().len();
    clients::work(clients, kinds, task.stop, || (), &mut is_enough)?;
    found
}

fn trial(
    task: &Task<'_>,
    preparation: Preparation,
    counted: &Counted,
    worked: &Worked,
    kinds: &[&str],
) -> Trial {
    let requests = worked.requests();
    let seconds = worked.elapsed.as_secs_f64();
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / requests as f64;
    let device = counted.site.device;
    // The server's time is no more foreign than ours.
    let ours = Readings {
        cpu: counted.site.cpu + counted.server_cpu,
        ..counted.site.clone()
    };
    let (foreign_cpus, stolen_cpus) = ours.foreign(seconds);
    let each = |count: u64| count as f64 / requests as f64;
    let counted_by = |pick: fn(&DeviceCounters) -> u64| device.as_ref().map(pick).map(each);
    let writes = device.and_then(|device| {
        let commits = counted.site.commits;
        device_cost::writes(task.site, &device, commits, task.clients)
    });
    let foreign = counted.below.zip(device).map(|(below, own)| {
        let foreign = below.write_bytes.saturating_sub(own.write_bytes);
        foreign as f64 / 1024.0 / requests as f64
    });
    let mut figures = Figures::default()
        .with(Metric::Seconds, seconds)
        .with(Metric::RequestsPerSecond, requests as f64 / seconds)
        .with(Metric::Conflicts, worked.conflicts as f64)
        .with(Metric::ServerCpuUs, per_request(counted.server_cpu))
        .with(
            Metric::ClientCpuUs,
            per_request(counted.site.cpu.saturating_sub(counted.busy_cpu)),
        )
        .with(Metric::Writes, writes.map(each))
        .with(Metric::WriteRequests, counted_by(|d| d.write_requests))
        .with(
            Metric::Kib,
            counted_by(|d| d.write_bytes).map(|bytes| bytes / 1024.0),
        )
        .with(Metric::Flushes, counted_by(|d| d.flushes))
        .with(Metric::Reads, counted_by(|d| d.reads))
        .with(Metric::PreparationSeconds, preparation.seconds)
        .with(Metric::PreparationBytes, preparation.bytes as f64)
        .with(Metric::ForeignCpus, foreign_cpus)
        .with(Metric::StolenCpus, stolen_cpus)
        .with(Metric::ForeignKib, foreign);
    latencies(&worked.latency(), &mut figures);
    Trial {
        round: task.round,
        figures,
        kinds: match kinds {
            [_] => Vec::new(),
            several => several
                .iter()
                .zip(&worked.latencies)
                .map(|(name, histogram)| {
                    let mut figures = Figures::default();
                    latencies(histogram, &mut figures);
                    KindOfRequest {
                        name: (*name).to_owned(),
                        figures,
                    }
                })
                .collect(),
        },
        ..Trial::default()
    }
}

/// How many requests there were, and how long they took.
fn latencies(histogram: &Histogram<u64>, figures: &mut Figures) {
    let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
    let at = |quantile| microseconds(histogram.value_at_quantile(quantile));
    figures.set(Metric::Requests, histogram.len() as f64);
    if histogram.is_empty() {
        return;
    }
    for (metric, value) in [
        (Metric::P50Us, at(0.5)),
        (Metric::P90Us, at(0.9)),
        (Metric::P99Us, at(0.99)),
        (Metric::P999Us, at(0.999)),
        (Metric::MaxUs, microseconds(histogram.max())),
    ] {
        figures.set(metric, value);
    }
}

/// Asks the database what it owes, and makes it write that.
fn settle(task: &Task<'_>, requests: u64, trial: &mut Trial) -> Result<(), DatabaseError> {
    let pending = task.running.pending_writes()?;
    let (before, begin) = (task.site.counters(), Instant::now());
    task.running.drain(task.stop)?;
    task.site.drain().map_err(failed(WRITING_OUT))?;
    let seconds = begin.elapsed().as_secs_f64();
    let written = task.site.counters().zip(before);
    let kib =
        written.map(|(now, then)| now.since(&then).write_bytes as f64 / 1024.0 / requests as f64);
    let count = |count: Option<u64>| count.map(|count| count as f64);
    for (metric, value) in [
        (Metric::OwedKib, kib),
        (Metric::OwedSeconds, Some(seconds)),
        (Metric::DirtyBytes, count(pending.dirty_bytes)),
        (Metric::CompactionBytes, count(pending.compaction_bytes)),
        (Metric::MemtableFlushes, count(pending.memtable_flushes)),
    ] {
        trial.figures.set(metric, value);
    }
    let bytes = database_bytes(task)?;
    trial.figures.set(Metric::DatabaseBytes, bytes as f64);
    Ok(())
}
