//! Disks that differ from their peers by more than chance does.
//!
//! The chance that one figure of one disk is called an outlier without cause is [`EXPECTED_FALSE`] over the number of figures
//! that are judged. The expected number of false ones is then no more than that in the whole fleet, however much the figures
//! of a disk depend on each other: expectations add up. It holds as far as [`Scatter::limit`] does.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::figure::Figure;
use super::peers::{Class, FEWEST_PEERS, Peers};
use super::robust;
use super::scatter::Scatter;
use landfall_results::numbers::two;
use landfall_results::stats::{self, Estimate};

/// Outliers that are expected in a whole fleet of which none is one.
pub const EXPECTED_FALSE: f64 = 0.1;
/// Nobody takes a machine out of service for less, however sure the difference is.
pub const LEAST_RATIO: f64 = 1.2;
/// So many that differ alike are outliers whatever share of their peers they are.
const ALWAYS_OUTLIERS: usize = 3;
/// A greater share of their peers is a group of its own.
const MOST_OUTLIERS: f64 = 0.1;

/// By what rule outliers were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rule {
    /// Figures of disks that were judged.
    pub judged: usize,
    /// Disks that were not, since there are too few to compare with.
    pub unjudged_disks: usize,
    /// Outliers that are expected if all disks differ by chance alone, with log-normal scatter.
    pub expected_false: f64,
    /// The ratio to its peers below which no disk is one.
    pub least_ratio: f64,
    /// The fewest disks that a disk is compared with, itself among them.
    pub fewest_peers: usize,
}

/// How a disk differs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// It is slower.
    Slow,
    /// Its slowest operations are slower, the others are not.
    SlowTail,
    /// It is faster.
    Fast,
}

/// One figure by which a disk differs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deviation {
    /// Index into the fleet's figures.
    pub figure: usize,
    /// The disk's value.
    pub value: f64,
    /// The median of the others, with its 95% interval.
    pub others: Estimate,
    /// How many others have this figure.
    pub count: usize,
    /// How many times as slow it is as they are; below 1 it is faster.
    pub slowness: f64,
    /// Its distance from them over the distance from which on it is an outlier.
    pub strength: f64,
}

/// A disk that differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Outlier {
    /// Index into the fleet's disks.
    pub disk: usize,
    /// Its label.
    pub label: String,
    /// How it differs.
    pub kind: Kind,
    /// With what it was compared.
    pub peers: Peers,
    /// By what it differs, the strongest first.
    pub deviations: Vec<Deviation>,
    /// Why, in a sentence.
    pub reason: String,
}

/// Disks that differ alike, and are too many to be outliers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Apart {
    /// Their indices among the fleet's disks.
    pub disks: Vec<usize>,
    /// Whether they are slower than the others.
    pub slower: bool,
    /// With what they were compared.
    pub peers: Peers,
    /// What there is to say of it, in a sentence.
    pub reason: String,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub outliers: Vec<Outlier>,
    pub apart: Vec<Apart>,
    pub rule: Rule,
}

/// A figure within a class: logarithms of slowness of those that have it.
struct Test<'a> {
    class: &'a Class,
    figure: usize,
    /// Disk and value, of all that are judged by.
    values: Vec<(usize, f64)>,
    /// Those that are judged.
    judged: Vec<(usize, f64)>,
}

/// All outliers among the disks, by their classes.
pub(super) fn find(disks: &[Disk], figures: &[Figure], classes: &[Class]) -> Found {
    let mut tests = Vec::new();
    for class in classes {
        let numbers = 0..figures.len();
        tests.extend(numbers.filter_map(|figure| Test::new(disks, class, figure)));
    }
    let judged: usize = tests.iter().map(|test| test.judged.len()).sum();
    let probability = EXPECTED_FALSE / judged.max(1) as f64;
    let mut deviations: Vec<(usize, &Class, Deviation)> = Vec::new();
    let mut apart: Vec<Apart> = Vec::new();
    for test in &tests {
        let (some, groups) = test.judge(probability, &figures[test.figure]);
        deviations.extend(some.into_iter().map(|(disk, one)| (disk, test.class, one)));
        // That models differ is no news.
        if test.class.peers.model.is_some() {
            groups
                .into_iter()
                .for_each(|group| add_apart(&mut apart, group));
        }
    }
    let judged_disks: BTreeSet<usize> = tests
        .iter()
        .flat_map(|test| test.judged.iter().map(|(disk, _)| *disk))
        .collect();
    Found {
        outliers: outliers(disks, figures, deviations),
        apart,
        rule: Rule {
            judged,
            unjudged_disks: disks.len() - judged_disks.len(),
            expected_false: EXPECTED_FALSE,
            least_ratio: LEAST_RATIO,
            fewest_peers: FEWEST_PEERS,
        },
    }
}

/// Puts what was found of each disk together.
fn outliers(
    disks: &[Disk],
    figures: &[Figure],
    mut deviations: Vec<(usize, &Class, Deviation)>,
) -> Vec<Outlier> {
    deviations.sort_by(|(one, _, its), (other, _, others)| {
        one.cmp(other)
            .then(others.strength.total_cmp(&its.strength))
            .then(its.figure.cmp(&others.figure))
    });
    let mut outliers: Vec<Outlier> = deviations
        .chunk_by(|(one, ..), (other, ..)| one == other)
        .filter_map(|some| {
            let (disk, class, strongest) = some.first()?;
            let all: Vec<Deviation> = some.iter().map(|(.., one)| *one).collect();
            let is_tail = |one: &Deviation| figures[one.figure].is_tail();
            let kind = if strongest.slowness < 1.0 {
                Kind::Fast
            } else if all.iter().any(|one| one.slowness > 1.0 && !is_tail(one)) {
                Kind::Slow
            } else {
                Kind::SlowTail
            };
            let label = disks[*disk].label.clone();
            let reason = reason(&label, kind, &class.peers, figures, &all);
            Some(Outlier {
                disk: *disk,
                label,
                kind,
                peers: class.peers.clone(),
                deviations: all,
                reason,
            })
        })
        .collect();
    let strength = |one: &Outlier| one.deviations.first().map_or(0.0, |first| first.strength);
    outliers.sort_by(|one, other| {
        one.kind
            .cmp(&other.kind)
            .then(strength(other).total_cmp(&strength(one)))
            .then(one.disk.cmp(&other.disk))
    });
    outliers
}

/// Why a disk is an outlier, in a sentence.
fn reason(label: &str, kind: Kind, peers: &Peers, figures: &[Figure], all: &[Deviation]) -> String {
    // Of one that is slow in everything the rate says more than the tail, and what is durable more than what is not.
    let told = all.iter().min_by_key(|one| {
        let figure = &figures[one.figure];
        let is_side = figure.is_tail() && kind == Kind::Slow;
        let is_other = (one.slowness < 1.0) != (kind == Kind::Fast);
        (is_other, is_side, !figure.durable)
    });
    let Some(told) = told else {
        return String::new();
    };
    let figure = &figures[told.figure];
    let (of_disk, theirs) = (figure.text(told.value), figure.number(told.others.median));
    let (low, high) = (
        figure.number(told.others.low),
        figure.number(told.others.high),
    );
    let mut text = format!(
        "{label}: {} takes {} times what the other {} {} take ({of_disk}, theirs {theirs} [{low}, {high}])",
        figure.what,
        times(told.slowness),
        told.count,
        peers.text(),
    );
    match kind {
        Kind::SlowTail => text += "; only its tail is slow",
        Kind::Slow | Kind::Fast => {}
    }
    match all.len() {
        1 => {}
        2 => text += "; one more figure differs",
        several => text += &format!("; {} more figures differ", several - 1),
    }
    text + "."
}

/// A ratio with as many digits as say something.
pub(super) fn times(ratio: f64) -> String {
    if ratio >= 1.95 {
        format!("{ratio:.1}")
    } else {
        two(ratio)
    }
}

/// Keeps one group for disks that differ alike in several figures.
fn add_apart(groups: &mut Vec<Apart>, group: Apart) {
    let alike = |known: &&mut Apart| (&known.peers, known.slower) == (&group.peers, group.slower);
    match groups.iter_mut().find(alike) {
        Some(known) if known.disks.len() >= group.disks.len() => {}
        Some(known) => *known = group,
        None => groups.push(group),
    }
}

impl<'a> Test<'a> {
    /// A figure within a class, if enough disks have it.
    fn new(disks: &[Disk], class: &'a Class, figure: usize) -> Option<Test<'a>> {
        let value = |disk: &usize| Some((*disk, disks[*disk].get(figure)?.estimate.median));
        let values: Vec<(usize, f64)> = class.by.iter().filter_map(value).collect();
        let judged: Vec<(usize, f64)> = class.judged.iter().filter_map(value).collect();
        (values.len() >= FEWEST_PEERS && !judged.is_empty()).then_some(Test {
            class,
            figure,
            values,
            judged,
        })
    }

    /// Outliers, and groups of more disks than can be outliers: those are found first, on either side, and the rest is judged by
    /// itself.
    fn judge(&self, probability: f64, figure: &Figure) -> (Vec<(usize, Deviation)>, Vec<Apart>) {
        let slow = |value: f64| figure.slowness(value, 1.0).ln();
        let mut rest: BTreeMap<usize, f64> = self.values.iter().copied().collect();
        let mut groups = Vec::new();
        for is_slower in [true, false] {
            let scatter = Scatter::of(rest.values().map(|value| slow(*value)));
            let limit = scatter.normal_limit(probability).max(LEAST_RATIO.ln());
            let is_beyond = |value: f64| {
                let distance = slow(value) - scatter.middle;
                limit < if is_slower { distance } else { -distance }
            };
            let some: Vec<usize> = rest
                .iter()
                .filter(|(_, value)| is_beyond(**value))
                .map(|(disk, _)| *disk)
                .collect();
            let most = (MOST_OUTLIERS * rest.len() as f64).max(ALWAYS_OUTLIERS as f64);
            if some.len() as f64 > most {
                rest.retain(|_, value| !is_beyond(*value));
                groups.push(self.group(figure, some, is_slower));
            }
        }
        let scatter = Scatter::of(rest.values().map(|value| slow(*value)));
        let limit = scatter.limit(probability).max(LEAST_RATIO.ln());
        let judged = self
            .judged
            .iter()
            .filter(|(disk, _)| rest.contains_key(disk));
        let found = judged.filter_map(|(disk, value)| {
            let distance = (slow(*value) - scatter.middle).abs();
            let is_outlier = distance > limit;
            is_outlier.then(|| self.deviation(figure, &rest, *disk, *value, distance / limit))?
        });
        (found.collect(), groups)
    }

    fn deviation(
        &self,
        figure: &Figure,
        rest: &BTreeMap<usize, f64>,
        disk: usize,
        value: f64,
        strength: f64,
    ) -> Option<(usize, Deviation)> {
        let others = rest.iter().filter(|(one, _)| **one != disk);
        let others: Vec<f64> = others.map(|(_, value)| *value).collect();
        let estimate = robust::estimate(&others)?;
        let deviation = Deviation {
            figure: self.figure,
            value,
            others: estimate,
            count: others.len(),
            slowness: figure.slowness(value, estimate.median),
            strength,
        };
        Some((disk, deviation))
    }

    /// What is to be said of more than can be outliers.
    fn group(&self, figure: &Figure, disks: Vec<usize>, slower: bool) -> Apart {
        let (these, those): (Vec<_>, Vec<_>) = self
            .values
            .iter()
            .partition(|(disk, _)| disks.binary_search(disk).is_ok());
        let middle = |some: Vec<&(usize, f64)>| {
            let values: Vec<f64> = some.into_iter().map(|(_, value)| *value).collect();
            stats::median(&values).unwrap_or(1.0)
        };
        let slowness = figure.slowness(middle(these), middle(those));
        let reason = format!(
            "{} of {} {} are a group of their own, too many to be outliers: {} takes {} times what the others take.",
            disks.len(),
            self.values.len(),
            self.class.peers.text(),
            figure.what,
            times(slowness),
        );
        Apart {
            disks,
            slower,
            peers: self.class.peers.clone(),
            reason,
        }
    }
}
