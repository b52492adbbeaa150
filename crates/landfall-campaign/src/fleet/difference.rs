//! A firmware or a kernel with which disks of one model are slower than with others.
//!
//! Decided by ranks (Mann and Whitney 1947): no outlier and no scale matters to them. The chance of one false difference among all
//! that are looked for is 5% at most (Bonferroni), and the ratio of the medians must be 1.1 or more. Its interval is the bootstrap
//! of that ratio, as everywhere in Landfall where two samples are not paired.

use std::collections::BTreeMap;

use landfall_results::stats::Estimate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, Identity};
use super::figure::Figure;
use super::outlier::times;
use super::peers::{FEWEST_PEERS, Peers, of_model};
use super::student::exceeded_with;

/// The chance of one false difference in the whole fleet.
pub const FALSE_DIFFERENCE: f64 = 0.05;
/// Smaller differences matter to nobody.
pub const LEAST_DIFFERENCE: f64 = 1.1;

/// What disks of one model may differ by.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Factor {
    /// The disk's firmware.
    Firmware,
    /// The machine's kernel.
    Kernel,
}

/// Disks of a model that are slower with one firmware, or under one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// The model.
    pub model: String,
    /// The filesystem.
    pub filesystem: String,
    /// By what they differ.
    pub factor: Factor,
    /// The firmware or kernel with which they are slower.
    pub value: String,
    /// Disks that have it.
    pub disks: usize,
    /// Disks of the model that have another.
    pub others: usize,
    /// Index into the fleet's figures: where the difference is clearest.
    pub figure: usize,
    /// How many figures differ.
    pub figures: usize,
    /// How many times as slow they are, with its 95% interval.
    pub slowness: Estimate,
    /// A firmware or kernel that nine in ten of these disks have too, and of the others no more than one in ten: which of the two
    /// it is cannot be told.
    pub or_else: Option<String>,
    /// All of it in a sentence.
    pub reason: String,
}

/// Two samples of slowness that are held against each other.
struct Test<'a> {
    identity: &'a Identity,
    factor: Factor,
    value: &'a str,
    figure: usize,
    these: Vec<f64>,
    those: Vec<f64>,
}

/// A test with its score.
type Scored<'a> = (f64, &'a Test<'a>);

/// All that are slower than the rest of their model on the same filesystem.
pub(super) fn find(disks: &[Disk], figures: &[Figure]) -> Vec<Difference> {
    let mut models: BTreeMap<Peers, Vec<&Disk>> = BTreeMap::new();
    for disk in disks {
        models
            .entry(of_model(&disk.identity))
            .or_default()
            .push(disk);
    }
    let mut tests = Vec::new();
    for some in models.values() {
        for factor in [Factor::Firmware, Factor::Kernel] {
            tests.extend(tests_of(some, figures, factor));
        }
    }
    let probability = FALSE_DIFFERENCE / tests.len().max(1) as f64;
    let limit = exceeded_with(probability, f64::INFINITY);
    let mut found: BTreeMap<(Peers, Factor, &str), Vec<Scored<'_>>> = BTreeMap::new();
    for test in &tests {
        let score = rank_score(&test.these, &test.those);
        if score > limit && median_ratio(test) >= LEAST_DIFFERENCE {
            let key = (of_model(test.identity), test.factor, test.value);
            found.entry(key).or_default().push((score, test));
        }
    }
    let clearest = found.values().filter_map(|some| {
        let clearer = |one: &&Scored<'_>, other: &&Scored<'_>| {
            one.0
                .total_cmp(&other.0)
                .then(other.1.figure.cmp(&one.1.figure))
        };
        let (_, test) = some.iter().max_by(clearer)?;
        let peers = models.get(&of_model(test.identity))?;
        Difference::of(test, some.len(), peers, figures)
    });
    clearest.collect()
}

impl Factor {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Factor::Firmware => "firmware",
            Factor::Kernel => "kernel",
        }
    }

    fn of(self, identity: &Identity) -> Option<&str> {
        match self {
            Factor::Firmware => identity.firmware.as_deref(),
            Factor::Kernel => Some(&identity.kernel),
        }
    }

    fn other(self) -> Factor {
        match self {
            Factor::Firmware => Factor::Kernel,
            Factor::Kernel => Factor::Firmware,
        }
    }
}

/// Each value of a factor against all others, for each figure that enough disks have.
fn tests_of<'a>(disks: &[&'a Disk], figures: &[Figure], factor: Factor) -> Vec<Test<'a>> {
    let mut values: BTreeMap<&'a str, &'a Identity> = BTreeMap::new();
    for disk in disks {
        if let Some(value) = factor.of(&disk.identity) {
            values.entry(value).or_insert(&disk.identity);
        }
    }
    let mut tests = Vec::new();
    for (value, identity) in values {
        for (number, figure) in figures.iter().enumerate() {
            let (mut these, mut those) = (Vec::new(), Vec::new());
            for disk in disks {
                let Some(measured) = disk.get(number) else {
                    continue;
                };
                let slowness = figure.slowness(measured.estimate.median, 1.0);
                match factor.of(&disk.identity) {
                    Some(its) if its == value => these.push(slowness),
                    Some(_) => those.push(slowness),
                    None => {}
                }
            }
            if these.len() >= FEWEST_PEERS && those.len() >= FEWEST_PEERS {
                tests.push(Test {
                    identity,
                    factor,
                    value,
                    figure: number,
                    these,
                    those,
                });
            }
        }
    }
    tests
}

fn median_ratio(test: &Test<'_>) -> f64 {
    let median = |values: &[f64]| landfall_results::stats::median(values).unwrap_or(1.0);
    median(&test.these) / median(&test.those)
}

/// By how many standard deviations the ranks of `these` among all lie above what chance gives, ties shared.
fn rank_score(these: &[f64], those: &[f64]) -> f64 {
    let mut all: Vec<(f64, bool)> = these.iter().map(|value| (*value, true)).collect();
    all.extend(those.iter().map(|value| (*value, false)));
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut sum, mut ties, mut before) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|one, other| one.0 == other.0) {
        let count = equal.len() as f64;
        let rank = before + (count + 1.0) / 2.0;
        sum += rank * equal.iter().filter(|(_, is_this)| *is_this).count() as f64;
        ties += count * (count * count - 1.0);
        before += count;
    }
    let (n, m) = (these.len() as f64, those.len() as f64);
    let total = n + m;
    let variance = n * m / 12.0 * (total + 1.0 - ties / (total * (total - 1.0)));
    let excess = sum - n * (total + 1.0) / 2.0;
    if variance > 0.0 {
        // Half a rank for continuity.
        (excess - 0.5) / variance.sqrt()
    } else {
        0.0
    }
}

impl Difference {
    fn of(
        test: &Test<'_>,
        figures_that_differ: usize,
        disks: &[&Disk],
        figures: &[Figure],
    ) -> Option<Difference> {
        let slowness = Estimate::of_unpaired_ratio(&test.these, &test.those)?;
        let Identity {
            model, filesystem, ..
        } = test.identity;
        let or_else = confounded(test, disks);
        let more = match figures_that_differ {
            1 => String::new(),
            2 => "; one more figure differs".to_owned(),
            several => format!("; {} more figures differ", several - 1),
        };
        let doubt = or_else.as_ref().map_or_else(String::new, |other| {
            let name = test.factor.other().name();
            format!(" They also share {name} {other}, so which of the two it is cannot be told.")
        });
        let figure = figures.get(test.figure)?;
        let with = match test.factor {
            Factor::Firmware => "with firmware",
            Factor::Kernel => "under Linux",
        };
        let reason = format!(
            "{model} on {filesystem} are slower {with} {}: {} takes {} times [{}, {}] as long on its {} disks as on {} others{more}.{doubt}",
            test.value,
            of_metric(figure),
            times(slowness.median),
            times(slowness.low),
            times(slowness.high),
            test.these.len(),
            test.those.len(),
        );
        Some(Difference {
            model: model.clone(),
            filesystem: filesystem.clone(),
            factor: test.factor,
            value: test.value.to_owned(),
            disks: test.these.len(),
            others: test.those.len(),
            figure: test.figure,
            figures: figures_that_differ,
            slowness,
            or_else,
            reason,
        })
    }
}

/// What a figure is of, with its percentile if it is a tail.
fn of_metric(figure: &Figure) -> String {
    if figure.is_tail() {
        let heading = figure.metric.description().heading;
        let name = heading.split(' ').next().unwrap_or(heading);
        format!("the {name} of {}", figure.what)
    } else {
        figure.what.clone()
    }
}

/// The value of the other factor that nearly all of these disks have, and hardly any of the others.
fn confounded(test: &Test<'_>, disks: &[&Disk]) -> Option<String> {
    let other = test.factor.other();
    let (mut these, mut those): (BTreeMap<&str, usize>, BTreeMap<&str, usize>) = Default::default();
    let (mut all_these, mut all_those) = (0, 0);
    for disk in disks {
        let is_this = test.factor.of(&disk.identity) == Some(test.value);
        let (counts, all) = if is_this {
            (&mut these, &mut all_these)
        } else {
            (&mut those, &mut all_those)
        };
        *all += 1;
        if let Some(value) = other.of(&disk.identity) {
            *counts.entry(value).or_default() += 1;
        }
    }
    let shared = these.into_iter().find(|(value, count)| {
        let of_others = those.get(value).copied().unwrap_or(0);
        count * 10 >= all_these * 9 && of_others * 10 <= all_those
    });
    shared.map(|(value, _)| value.to_owned())
}
