//! How long the flash of a drive lasts under a target.
//!
//! What flash wears is the wear model's, for writes of which the kind is named; where experiment `amplify` measured
//! databases, theirs. Those are of requests, of which not all commit, or which commit many rows: a figure is taken of one
//! commit, or of as many bytes as the target's, and left out where that cannot be told.

use landfall_databases::workload;
use landfall_os::humanize::bytes_text;
use landfall_recorder::wear::{Drive, Wear, Writes};
use landfall_results::{KindOfRequest, Metric, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::target::Target;
use crate::numbers::short;

/// Bytes of the miniature that the wear model writes on.
const MINIATURE: u64 = 64 << 20;
/// Passes through it by writes at random: enough that pages are rewritten soon and late.
const PASSES: u64 = 4;
/// A page of the kernel's cache, and the least that is written without it.
const CACHE_PAGE: u64 = 4 << 10;
const SECTOR: u64 = 512;
/// A page of most databases.
const PAGE: u64 = 16 << 10;

/// How long flash lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Flash {
    /// What writes in this way.
    pub what: String,
    /// Bytes a day that reach the device.
    pub device_per_day: f64,
    /// Bytes programmed into flash per byte that reaches the device, by the wear model.
    pub amplification: f64,
    /// Years until the drive's rating is used up.
    pub years: f64,
}

impl Flash {
    /// The years, to be read.
    pub fn years_text(&self) -> String {
        if self.years >= 1_000.0 {
            "> 1,000".to_owned()
        } else {
            short(self.years)
        }
    }
}

/// How long it lasts, by how values are written; a log costs the device `logged` bytes for each.
pub(super) fn flash(
    target: &Target,
    logged: f64,
    drive: &Drive,
    evidence: &Evidence<'_>,
) -> Vec<Flash> {
    const DAY: f64 = 24.0 * 3600.0;
    let commits = target.mean_commits();
    let mut all = Vec::new();
    let mut add = |what: String, device_bytes: f64, amplification: f64| {
        let per_second = commits * device_bytes;
        all.push(Flash {
            what,
            device_per_day: per_second * DAY,
            amplification,
            years: drive.years(per_second, amplification),
        });
    };
    let log = wear(drive, logged as u64, false);
    if let Some(log) = log {
        add("a log that flushes each value".to_owned(), logged, log);
    }
    if let (Some(log), Some(pages)) = (log, wear(drive, PAGE, true)) {
        let twice = 2.0 * PAGE as f64;
        let bytes = logged + twice;
        add(
            format!(
                "a log, and a random page of {} written twice for each value",
                bytes_text(PAGE)
            ),
            bytes,
            (logged * log + twice * pages) / bytes,
        );
    }
    let measured = evidence.results.measurements().flat_map(|all| &all.series);
    for one in measured {
        let figures = one.median(Metric::NandKib).zip(one.median(Metric::Kib));
        if let Some((nand, kib)) = figures.filter(|(_, kib)| *kib > 0.0)
            && let Some(bytes) = of_a_commit(one, kib, target)
        {
            let workload = one.axes.workload.as_deref().unwrap_or_default();
            add(format!("{} ({workload})", one.name()), bytes, nand / kib);
        }
    }
    all
}

/// Bytes that a commit of the target costs the device, of a database of which a request costs `kib`: by the bytes that it
/// updates, where that was measured, or else a request that commits.
fn of_a_commit(series: &Series, kib: f64, target: &Target) -> Option<f64> {
    match series.median(Metric::WrittenPerByte) {
        Some(per_byte) => Some(per_byte * target.size as f64),
        None => Some(kib * 1024.0 / commits_in(series)?),
    }
}

/// Commits in a request, on average; `None` where it is not known, or nothing was committed.
fn commits_in(series: &Series) -> Option<f64> {
    let name = series.axes.workload.as_deref()?.split(' ').next()?;
    let reads = workload::reads(name)?;
    if reads.is_empty() {
        return Some(1.0);
    }
    let kinds = series.trials.iter().flat_map(|trial| &trial.kinds);
    let (mut commits, mut requests) = (0.0, 0.0);
    for KindOfRequest { name, figures } in kinds {
        let done = figures.get(Metric::Requests)?;
        requests += done;
        if !reads.contains(&name.as_str()) {
            commits += done;
        }
    }
    (commits > 0.0).then(|| commits / requests)
}

/// What writes of so many bytes wear, by the model: one after the other, round and round, or at random.
fn wear(drive: &Drive, bytes: u64, at_random: bool) -> Option<f64> {
    // What is counted holds a little of others' writes; a write ends where a page of the cache does.
    let unit = if bytes < CACHE_PAGE {
        SECTOR
    } else {
        CACHE_PAGE
    };
    let bytes = ((bytes + unit / 2) / unit * unit).clamp(SECTOR, MINIATURE / 4);
    let slots = MINIATURE / bytes;
    let mut writes = Writes::new(MINIATURE).ok()?;
    let mut random = fastrand::Rng::with_seed(1);
    let count = if at_random { slots * PASSES } else { slots };
    for index in 0..count {
        let slot = if at_random {
            random.u64(..slots)
        } else {
            index
        };
        writes.push(slot * bytes, bytes);
    }
    Wear::of_writes(&writes, drive)
        .ok()
        .map(|wear| wear.amplification)
}
