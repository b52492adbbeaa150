//! What a disk can carry of a target, and what to change where that, or how long its flash lasts, is not enough.
//!
//! The rate is measured: of one writer by the size of a write, and of several by how much more they do than
//! one. What group commit makes of it is reckoned: a flush for all clients at once. More at once than was measured has
//! an interval that it cannot leave, so that no verdict rests on what was not measured.

use landfall_recorder::wear::Drive;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::{Evidence, FLUSH, faster};
use super::flash::{Flash, flash};
use super::target::Target;
use crate::numbers::{interval, short, thousands};
use crate::stats::{Estimate, FEWEST_ROUNDS};
use crate::sync::safety::timed;
use crate::sync::{Strategy, SyncResults};
use landfall_os::humanize::bytes_text;
use landfall_os::{SyncCall, SyncMethod};
use landfall_results::{Axes, Axis, Files, Metric, Series};

/// A drive is meant to last so many years.
const YEARS: f64 = 5.0;
/// What was found of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Capacity {
    /// The target.
    pub target: Target,
    /// Whether the disk carries it.
    pub verdict: Verdict,
    /// Commits a second that these clients reach where each has a flush of its own.
    pub each: Option<Estimate>,
    /// Commits a second where one flush serves all clients: reckoned, and the most that there can be. Where so much
    /// at once was not measured, the interval is from what several flushes reach to what one does if the rest costs
    /// nothing.
    pub together: Option<Estimate>,
    /// The drive whose wear is reckoned.
    pub drive: String,
    /// What becomes of its flash, by how values are written.
    pub flash: Vec<Flash>,
    /// What was found, in sentences.
    pub sentences: Vec<String>,
    /// What to change where the disk or its flash does not carry it.
    pub changes: Vec<String>,
}

/// Whether a disk carries a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Whoever commits, and however.
    Carries,
    /// Only where clients share flushes: group commit.
    Together,
    /// Not with so many clients, even if they share every flush.
    CannotCarry,
    /// The interval of what they reach holds the target, or there were too few rounds for one.
    CannotBeTold,
    /// What it takes was not measured.
    NotKnown,
}

/// Holds the target against what was measured.
pub(super) fn capacity(target: &Target, drive: &Drive, evidence: &Evidence<'_>) -> Capacity {
    let each = each(target, evidence);
    // Whoever shares flushes does no worse than whoever does not, at either end of the interval.
    let together = together(target, evidence).map(|together| match each {
        Some(each) => Estimate {
            median: together.median.max(each.median),
            low: together.low.max(each.low),
            high: together.high.max(each.high),
        },
        None => together,
    });
    let log = single(target.size, evidence).map(|(_, device)| device);
    let verdict = match (&each, &together) {
        (None, _) | (_, None) if log.is_some() => Verdict::CannotBeTold,
        (None, _) | (_, None) => Verdict::NotKnown,
        (Some(each), _) if target.commits <= each.low => Verdict::Carries,
        (_, Some(together)) if target.commits <= together.low => Verdict::Together,
        (_, Some(together)) if target.commits <= together.high => Verdict::CannotBeTold,
        _ => Verdict::CannotCarry,
    };
    let mut capacity = Capacity {
        target: target.clone(),
        verdict,
        each,
        together,
        drive: drive.to_string(),
        flash: log.map_or_else(Vec::new, |log| flash(target, log, drive, evidence)),
        sentences: Vec::new(),
        changes: Vec::new(),
    };
    capacity.sentences = sentences(&capacity, evidence);
    capacity.changes = changes(&capacity, drive, evidence);
    capacity
}

/// A writer of 8 KiB or so, of whom the standard plan measures every size and number.
fn plain<'a>(evidence: &Evidence<'a>, fits: impl Fn(&Axes) -> bool) -> Vec<Writer<'a>> {
    let plain = |axes: &Axes| {
        let rest = axes.without(Axis::Size).without(Axis::Threads);
        let baseline = Axes::from(Strategy::BASELINE);
        rest == baseline.without(Axis::Size).without(Axis::Threads)
    };
    let all = evidence.results.first::<SyncResults>().into_iter();
    all.flat_map(timed)
        .filter(|(one, _)| plain(&one.axes) && fits(&one.axes))
        .filter_map(|(series, rate)| {
            Some(Writer {
                series,
                rate,
                size: series.axes.size?,
                threads: series.axes.threads?,
            })
        })
        .collect()
}

/// What was measured of writers of written blocks.
struct Writer<'a> {
    series: &'a Series,
    rate: Estimate,
    size: u64,
    threads: u32,
}

impl Writer<'_> {
    /// Whether there were enough rounds for an interval.
    fn is_certain(&self) -> bool {
        self.series.values(Metric::OpsPerSecond).len() >= FEWEST_ROUNDS
    }
}

/// The most bytes of a write that were measured of one writer.
fn largest(evidence: &Evidence<'_>) -> Option<u64> {
    let sizes = plain(evidence, |axes| axes.threads == Some(1));
    sizes.iter().map(|one| one.size).max()
}

/// The rate of one writer with writes of at least so many bytes, if there were enough rounds for an interval, and the
/// bytes that each then costs the device.
fn single(bytes: u64, evidence: &Evidence<'_>) -> Option<(Option<Estimate>, f64)> {
    let mut sizes = plain(evidence, |axes| axes.threads == Some(1));
    sizes.sort_by_key(|one| one.size);
    let fits = sizes.iter().find(|one| one.size >= bytes);
    let one = fits.or(sizes.last())?;
    let device = one.series.median(Metric::Kib);
    let device = device.map_or(one.size as f64, |kib| kib * 1024.0);
    if fits.is_some() {
        return Some((one.is_certain().then_some(one.rate), device));
    }
    let times = bytes.div_ceil(one.size) as f64;
    let smaller = sizes.iter().rev().find(|other| other.size < one.size);
    let is_certain = one.is_certain() && smaller.is_none_or(Writer::is_certain);
    let rate = is_certain.then(|| beyond(bytes, one, smaller));
    Some((rate, device * times))
}

/// The rate of writes that are larger than the largest that were measured. It is at least that of as many of those as it
/// takes, each with its flush, and at most that of one of them. Between, each further byte costs what it did from the next
/// smaller size to the largest.
fn beyond(bytes: u64, largest: &Writer<'_>, smaller: Option<&Writer<'_>>) -> Estimate {
    let seconds = |one: &Writer<'_>| 1.0 / one.rate.median;
    let per_byte = smaller.map_or(seconds(largest) / largest.size as f64, |smaller| {
        (seconds(largest) - seconds(smaller)) / (largest.size - smaller.size) as f64
    });
    let low = largest.rate.low / bytes.div_ceil(largest.size) as f64;
    let high = largest.rate.high;
    let median = 1.0 / (seconds(largest) + (bytes - largest.size) as f64 * per_byte.max(0.0));
    Estimate {
        median: median.max(low),
        low,
        high,
    }
}

fn scaled(estimate: &Estimate, factor: f64) -> Estimate {
    Estimate {
        median: estimate.median * factor,
        low: estimate.low * factor,
        high: estimate.high * factor,
    }
}

/// What so many clients reach, each with a flush of its own: the rate of one, as many times as several did
/// more here. `None`: too little was measured for an interval.
fn each(target: &Target, evidence: &Evidence<'_>) -> Option<Estimate> {
    let one = single(target.size, evidence)?.0?;
    let more = plain(evidence, |other| {
        let several = 2..=target.clients;
        other
            .threads
            .is_some_and(|threads| several.contains(&threads))
            && (other.files, other.size) == (Some(Files::Shared), Some(FLUSH.size))
    });
    let more = more
        .iter()
        .max_by_key(|other| other.threads)
        .and_then(|other| faster(other.series, evidence.strategy(FLUSH)?));
    match more {
        Some(gain) if !gain.is_certain => None,
        Some(gain) => Some(Estimate {
            median: one.median * gain.times.median,
            low: one.low * gain.times.low,
            high: one.high * gain.times.high,
        }),
        None => Some(one),
    }
}

fn together(target: &Target, evidence: &Evidence<'_>) -> Option<Estimate> {
    let clients = u64::from(target.clients);
    let flushes = single(target.size.saturating_mul(clients), evidence)?.0?;
    Some(scaled(&flushes, clients as f64))
}

fn rate(estimate: &Estimate) -> String {
    format!(
        "{} ({})",
        thousands(estimate.median),
        interval(estimate, thousands)
    )
}

/// The verdict with what limits it, and then the figures.
fn sentences(capacity: &Capacity, evidence: &Evidence<'_>) -> Vec<String> {
    let target = &capacity.target;
    let wanted = format!(
        "{} durable commits of {} a second from {}",
        thousands(target.commits),
        bytes_text(target.size),
        clients(target.clients)
    );
    let reached = capacity.each.as_ref().zip(capacity.together.as_ref());
    let mut all = vec![match (capacity.verdict, reached) {
        (Verdict::NotKnown, _) => format!(
            "Not known: whether this disk carries {wanted}. Durable writes were not measured here; 'landfall lab sync' does."
        ),
        (Verdict::CannotBeTold, None) => format!(
            "Cannot be told: whether this disk carries {wanted}. Durable writes were measured here in fewer than {FEWEST_ROUNDS} rounds, which give no interval; 'landfall lab sync' measures more."
        ),
        (Verdict::CannotBeTold, Some(_)) => format!(
            "Cannot be told: {wanted} lies within the interval of what shared flushes reach."
        ),
        (Verdict::Carries, _) => {
            format!("Yes: this disk carries {wanted}, with a flush for each commit.")
        }
        (Verdict::Together, _) => format!(
            "Yes, if clients share flushes (group commit): this disk carries {wanted}. Its flushes limit it: one for each commit is too many."
        ),
        (Verdict::CannotCarry, _) => format!(
            "No: this disk does not carry {wanted}. Its flushes limit it, even if all clients share each one."
        ),
    }];
    all.extend(reached.map(|(each, together)| rates(target, each, together, evidence)));
    let by_years = |a: &&Flash, b: &&Flash| a.years.total_cmp(&b.years);
    let least = capacity.flash.iter().min_by(by_years);
    let most = capacity.flash.iter().max_by(by_years);
    if let (Some(least), Some(most)) = (least, most) {
        all.push(format!(
            "The drive's flash lasts {} ({}) to {} ({}), by its rating and the wear model.",
            years(least.years),
            least.what,
            years(most.years),
            most.what
        ));
    }
    all
}

/// What was reached, or reckoned from that.
fn rates(target: &Target, each: &Estimate, together: &Estimate, evidence: &Evidence<'_>) -> String {
    let mut reached = format!(
        "A flush for each commit reaches {} commits a second.",
        rate(each)
    );
    if together != each {
        reached += &format!(
            " One flush for all {} reaches at most {} (computed).",
            clients(target.clients),
            rate(together)
        );
        let at_once = target.size.saturating_mul(u64::from(target.clients));
        if let Some(most) = largest(evidence).filter(|most| *most < at_once) {
            reached += &format!(
                " Writes of more than {} were not measured.",
                bytes_text(most)
            );
        }
    }
    reached
}

fn clients(number: u32) -> String {
    match number {
        1 => "one client".to_owned(),
        some => format!("{some} clients"),
    }
}

fn years(years: f64) -> String {
    match years {
        years if years >= 100.0 => "more than 100 years".to_owned(),
        years if years >= 1.0 => format!("{} years", short(years)),
        years => match (years * 365.25).round() {
            1.0 => "1 day".to_owned(),
            days => format!("{days:.0} days"),
        },
    }
}

fn changes(capacity: &Capacity, drive: &Drive, evidence: &Evidence<'_>) -> Vec<String> {
    let target = &capacity.target;
    let mut all = Vec::new();
    let falls_short = matches!(
        capacity.verdict,
        Verdict::CannotCarry | Verdict::CannotBeTold
    );
    if let (true, Some(together)) = (falls_short, &capacity.together) {
        let clients = f64::from(target.clients);
        let flushes = target.commits / clients;
        all.push(format!(
            "A disk that flushes within {}: {} times a second; this one does {} to {}.",
            microseconds(1e6 / flushes),
            thousands(flushes),
            thousands(together.low / clients),
            thousands(together.high / clients)
        ));
        let many = (target.commits / together.low).ceil();
        all.push(format!(
            "Or {} values in each commit, or {} clients that commit at the same time.",
            thousands(many),
            thousands((clients * many).ceil())
        ));
    }
    if capacity.verdict == Verdict::Together {
        all.push("Let clients commit at the same time. MariaDB, PostgreSQL and Landfall's log then share flushes; a program that holds a lock while it syncs does not.".to_owned());
    }
    if (falls_short || capacity.verdict == Verdict::Together)
        && let Some(gain) =
            evidence.faster(FLUSH.synced(SyncMethod::buffered(SyncCall::None)), FLUSH)
        && gain.is_certain
    {
        all.push(format!(
            "Not syncing is {} times as fast for plain writes, and loses acknowledged commits.",
            short(gain.times.median)
        ));
    }
    let short_lived: Vec<&Flash> = capacity
        .flash
        .iter()
        .filter(|flash| flash.years < YEARS)
        .collect();
    if let Some(worst) = short_lived
        .iter()
        .min_by(|a, b| a.years.total_cmp(&b.years))
    {
        let needed = drive.tbw() as f64 * YEARS / worst.years;
        all.push(format!(
            "For {YEARS:.0} years the drive must be rated for {1} TB written instead of {2} ({0}).",
            worst.what,
            thousands((needed / 1e12).ceil()),
            thousands(drive.tbw() as f64 / 1e12)
        ));
        if short_lived.len() < capacity.flash.len() {
            all.push("Or write in a way that wears flash less: see the table.".to_owned());
        }
    }
    all
}

fn microseconds(us: f64) -> String {
    match us {
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us => format!("{:.1} ms", us / 1e3),
    }
}
