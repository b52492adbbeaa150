//! Cost against safety: which settings lost nothing when the power was cut, and which of those is the
//! fastest.
//!
//! Rates are compared only between writes of one size, by as many threads, to the same places. Nothing is
//! called safe that was not proven, nor what is not meant to be durable: that it was not caught is luck.

use landfall_os::{SyncCall, SyncMethod};
use landfall_results::{Axes, Axis, CacheState, Metric, Placement, Series};

use super::{Strategy, SyncResults};
use std::collections::BTreeSet;

use crate::numbers::{NOTHING, interval, thousands};
use crate::scratch_fs::FilesystemSpec;
use crate::stats::Estimate;
use crate::{Results, facts};

/// Strategies named in a sentence.
const MOST_NAMED: usize = 2;

/// What power cuts did to a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Safety {
    /// It was proven, and all was always as was promised.
    LostNothing,
    /// An acknowledged write was missing in some crash state, or the file or its filesystem was not as was promised.
    Lost,
    /// Nobody knows.
    NotProven,
}

/// What power cuts did to a strategy.
pub fn safety(series: &Series) -> Safety {
    match &series.proof {
        Some(proof) if proof.losing > 0 => Safety::Lost,
        Some(proof) if proof.lost_nothing() => Safety::LostNothing,
        _ => Safety::NotProven,
    }
}

/// In how many crash states a strategy lost an acknowledged write, of how many: `0/300`.
pub fn lost_in(series: &Series) -> String {
    match (&series.proof, safety(series)) {
        (Some(proof), Safety::LostNothing | Safety::Lost) => format!(
            "{}/{}",
            thousands(proof.losing as f64),
            thousands(proof.states as f64)
        ),
        _ => NOTHING.to_owned(),
    }
}

/// How a strategy makes a write durable, in words: `overwrite with fdatasync`.
pub fn way(series: &Series) -> String {
    let axes = &series.axes;
    let allocation = axes.text(Axis::Allocation);
    let mut text = match axes.sync_method {
        Some(SyncMethod {
            direct: false,
            call: SyncCall::None,
        }) => format!("{allocation}, not synced"),
        Some(SyncMethod {
            direct: true,
            call: SyncCall::None,
        }) => format!("{allocation}, direct, not synced"),
        _ => format!("{allocation} with {}", axes.text(Axis::Method)),
    };
    if let Some(threads) = axes.threads.filter(|threads| *threads > 1) {
        text.push_str(&format!(", {threads} threads together"));
    }
    if (axes.placement, axes.cache) != (Some(Placement::Sequential), Some(CacheState::Warm)) {
        text.push_str(&format!(" ({})", series.key));
    }
    text
}

/// How these make writes durable, each allocation once with its calls: `overwrite with fsync, o_dsync; append with fsync`.
pub(crate) fn ways<'a>(those: impl IntoIterator<Item = &'a Series>) -> String {
    let mut by_allocation: Vec<(String, Vec<String>)> = Vec::new();
    for one in those {
        let allocation = one.axes.text(Axis::Allocation);
        let method = one.axes.text(Axis::Method);
        let mut known = by_allocation.iter_mut();
        match known.find(|(known, _)| *known == allocation) {
            Some((_, methods)) => methods.push(method),
            None => by_allocation.push((allocation, vec![method])),
        }
    }
    let named = by_allocation
        .iter()
        .map(|(allocation, methods)| format!("{allocation} with {}", methods.join(", ")));
    named.collect::<Vec<String>>().join("; ")
}

/// Whether the rates of both can be compared: they differ in allocation and method only.
pub(crate) fn is_comparable(one: &Series, other: &Series) -> bool {
    let fixed = |series: &Series| series.axes.without(Axis::Allocation).without(Axis::Method);
    fixed(one) == fixed(other)
}

/// A strategy that was timed, and its operations per second.
pub type Timed<'a> = (&'a Series, Estimate);

/// All strategies that were timed.
pub(crate) fn timed(sync: &SyncResults) -> impl Iterator<Item = Timed<'_>> {
    let rate = |one: &'_ Series| one.estimate(Metric::OpsPerSecond);
    sync.series
        .iter()
        .filter_map(move |one| Some((one, rate(one)?)))
}

/// Strategies that can be compared with each other, the fastest first.
#[derive(Debug)]
pub struct Ranking<'a> {
    /// All that were timed, proven or not.
    pub all: Vec<Timed<'a>>,
    /// The fastest that is meant to be durable and lost nothing.
    pub best: Option<Timed<'a>>,
    /// Others of that kind that cannot be told from it.
    pub equals: Vec<Timed<'a>>,
    /// What is meant to be durable and is faster, and lost something or was not proven.
    pub faster: Vec<Timed<'a>>,
}

/// Of ways that can be compared the one that is named as the fastest, and those that cannot be told from it: their
/// intervals reach into that of the fastest. The plain one, overwriting with fdatasync, is named if it is among them.
pub(crate) fn fastest(mut rivals: Vec<Timed<'_>>) -> Option<(Timed<'_>, Vec<Timed<'_>>)> {
    rivals.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    let fastest = *rivals.first()?;
    // One round says nothing of chance.
    let has_spread = fastest.0.trials.len() > 1;
    rivals.retain(|(series, rate)| {
        series.key == fastest.0.key || (has_spread && rate.high >= fastest.1.low)
    });
    let baseline = Axes::from(Strategy::BASELINE);
    let plain = rivals
        .iter()
        .position(|(series, _)| series.axes == baseline);
    let first = rivals.remove(plain.unwrap_or(0));
    Some((first, rivals))
}

/// The fastest way that is meant to be durable, of those that are `trusted`, and what cannot be told from it. Where
/// sizes and threads differ, those of the plan's centre count.
pub(crate) fn fastest_durable(
    sync: &SyncResults,
    trusted: impl Fn(&Series) -> bool,
) -> Option<(Timed<'_>, Vec<Timed<'_>>)> {
    let baseline = Axes::from(Strategy::BASELINE);
    let durable: Vec<Timed<'_>> = timed(sync)
        .filter(|(series, _)| series.axes.is_durable() && trusted(series))
        .collect();
    let plain = durable.iter().find(|(series, _)| series.axes == baseline);
    let (centre, _) = plain.or(durable.first())?;
    let rivals = durable
        .iter()
        .filter(|(series, _)| is_comparable(series, centre));
    fastest(rivals.copied().collect())
}

/// The ranking of the strategies around the plan's centre; `None` if nothing was proven.
pub fn ranking(sync: &SyncResults) -> Option<Ranking<'_>> {
    let timed = || timed(sync);
    let baseline = Axes::from(Strategy::BASELINE);
    let is_proven = |(series, _): &Timed<'_>| safety(series) != Safety::NotProven;
    let (centre, _) = timed()
        .filter(is_proven)
        .find(|(series, _)| series.axes == baseline)
        .or_else(|| timed().find(is_proven))
        .or_else(|| timed().find(|(series, _)| series.proof.is_some()))?;
    let mut all: Vec<Timed<'_>> = timed()
        .filter(|(series, _)| is_comparable(series, centre))
        .collect();
    all.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    let is_safe =
        |(series, _): &Timed<'_>| series.axes.is_durable() && safety(series) == Safety::LostNothing;
    let (safe, others): (Vec<Timed<'_>>, Vec<Timed<'_>>) = all.iter().copied().partition(is_safe);
    let (best, equals) =
        fastest(safe).map_or((None, Vec::new()), |(best, equals)| (Some(best), equals));
    let is_faster = |(series, rate): &Timed<'_>| {
        series.axes.is_durable() && best.is_some_and(|(_, best)| rate.median > best.median)
    };
    let faster = others.into_iter().filter(is_faster).collect();
    Some(Ranking {
        all,
        best,
        equals,
        faster,
    })
}

/// Which setting is the fastest that lost nothing, how sure that is, and what would be faster; nothing,
/// if nothing was proven.
pub fn sentences(sync: &SyncResults) -> Vec<String> {
    let Some(ranking) = ranking(sync) else {
        return Vec::new();
    };
    let Some((best, rate)) = ranking.best else {
        return vec![none(&ranking)];
    };
    let spread = match best.trials.len() {
        1 => "one round, which cannot say how far chance moved it".to_owned(),
        _ => format!("95% interval {}", interval(&rate, thousands)),
    };
    let mut sentences = vec![format!(
        "The fastest setting that lost nothing: {}, {} a write, {} ops/s ({spread}), acknowledged writes lost in {}.",
        way(best),
        best.axes.text(Axis::Size),
        thousands(rate.median),
        lost_states(best),
    )];
    if best.trials.len() > 1 && !ranking.equals.is_empty() {
        sentences.push(format!(
            "It cannot be told from {}: their intervals overlap.",
            named(&ranking.equals, |_| None)
        ));
    }
    let of = |so: Safety| -> Vec<Timed<'_>> {
        let faster = ranking.faster.iter().copied();
        faster.filter(|(one, _)| safety(one) == so).collect()
    };
    let (lost, unproven) = (of(Safety::Lost), of(Safety::NotProven));
    if !lost.is_empty() {
        sentences.push(format!(
            "Faster, but not safe: {}.",
            named(&lost, |one| Some(format!("lost in {}", lost_states(one))))
        ));
    }
    if !unproven.is_empty() {
        sentences.push(format!(
            "Faster, but not proven: {}.",
            named(&unproven, |_| None)
        ));
    }
    sentences
}

fn none(ranking: &Ranking<'_>) -> String {
    let of = |so: Safety| {
        let durable = ranking.all.iter().filter(|(one, _)| one.axes.is_durable());
        durable.filter(|(one, _)| safety(one) == so).count()
    };
    match (of(Safety::Lost), of(Safety::NotProven)) {
        (0, _) => "No setting was proven to lose nothing.".to_owned(),
        (lost, unproven) => {
            let settings = if lost == 1 { "setting" } else { "settings" };
            let rest = match unproven {
                0 => String::new(),
                some => format!("; {some} could not be proven"),
            };
            format!(
                "No setting lost nothing: {lost} {settings} meant to be durable lost acknowledged writes{rest}."
            )
        }
    }
}

pub(crate) fn lost_states(strategy: &Series) -> String {
    let (losing, states) = strategy
        .proof
        .as_ref()
        .map_or((0, 0), |proof| (proof.losing, proof.states));
    format!(
        "{} of {} crash states",
        thousands(losing as f64),
        thousands(states as f64)
    )
}

/// The first of these with their rates, and how many more there are.
fn named(those: &[Timed<'_>], more: impl Fn(&Series) -> Option<String>) -> String {
    let mut texts: Vec<String> = those
        .iter()
        .take(MOST_NAMED)
        .map(|(one, rate)| {
            let rate = thousands(rate.median);
            let more = more(one).map_or(String::new(), |more| format!(", {more}"));
            format!("{} ({rate} ops/s{more})", way(one))
        })
        .collect();
    match those.len().saturating_sub(MOST_NAMED) {
        0 => {}
        1 => texts.push("one other".to_owned()),
        some => texts.push(format!("{some} others")),
    }
    match texts.pop() {
        Some(last) if !texts.is_empty() => format!("{} and {last}", texts.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// What was timed and what was proven: two filesystems, which may be alike.
pub fn place(results: &Results, sync: &SyncResults) -> String {
    let proofs = sync.series.iter().filter_map(|one| one.proof.as_ref());
    let specs: BTreeSet<&FilesystemSpec> = proofs.map(|one| &one.filesystem_spec).collect();
    let timed = results.filesystem.storage();
    let same_type = specs.iter().all(|spec| spec.kind.name() == timed.kind);
    let options: Vec<&str> = specs
        .iter()
        .flat_map(|spec| spec.mount_options.split(','))
        .filter(|option| !option.is_empty())
        .collect();
    let has = |option: &&str| timed.options.iter().any(|known| known == option);
    let proven = match (same_type, options.is_empty()) {
        (true, false) if options.iter().all(has) => "with the same filesystem type and options",
        (true, _) => "with the same filesystem type",
        (false, _) => "with another filesystem",
    };
    let specs: Vec<String> = specs.iter().map(|spec| spec.to_string()).collect();
    let mut text = format!(
        "Timed on {} ({}, mounted {}); the power was cut on a recorder {proven} ({}), not on this disk.",
        results.directory,
        facts::place(&results.filesystem),
        timed.options.join(", "),
        specs.join("; ")
    );
    if !same_type {
        text.push_str(" What was lost there need not be lost here, nor the other way round.");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::{losing, measured, proven, sync_results, unproven};
    use landfall_os::Allocation;

    fn by(method: &str, rate: f64) -> Series {
        let strategy = Strategy {
            method: method.parse().unwrap(),
            ..Strategy::BASELINE
        };
        let rates: Vec<f64> = (0..5).map(|round| rate + f64::from(round)).collect();
        measured(strategy, &rates, 1.0, 1.0)
    }

    #[test]
    fn the_fastest_that_lost_nothing_is_named_first() {
        let found = sync_results(vec![
            proven(by("fdatasync", 1_000.0), 812),
            proven(by("fsync", 500.0), 300),
            losing(by("o_dsync", 2_000.0), 240, 300),
            unproven(by("o_sync", 1_500.0)),
            losing(by("none", 90_000.0), 300, 300),
        ]);
        assert_eq!(
            sentences(&found),
            [
                "The fastest setting that lost nothing: overwrite with fdatasync, 8 KiB a write, 1,002 ops/s (95% interval 1,000–1,004), acknowledged writes lost in 0 of 812 crash states.",
                "Faster, but not safe: overwrite with o_dsync (2,002 ops/s, lost in 240 of 300 crash states).",
                "Faster, but not proven: overwrite with o_sync (1,502 ops/s).",
            ]
        );
        let ways: Vec<String> = found.series.iter().map(lost_in).collect();
        assert_eq!(ways, ["0/812", "0/300", "240/300", "–", "300/300"]);
    }

    #[test]
    fn what_cannot_be_told_apart_is_not() {
        let found = sync_results(vec![
            proven(by("fdatasync", 1_000.0), 300),
            proven(by("fsync", 998.0), 300),
        ]);
        assert_eq!(
            sentences(&found)[1],
            "It cannot be told from overwrite with fsync (1,000 ops/s): their intervals overlap."
        );
    }

    #[test]
    fn nothing_is_safe_that_was_not_proven_or_is_not_meant_to_be() {
        let lucky = proven(by("none", 90_000.0), 300);
        let mut half = proven(by("fdatasync", 1_000.0), 300);
        if let Some(proof) = &mut half.proof {
            proof.not_proven = Some("the check ended after 10 s".into());
        }
        assert_eq!(safety(&half), Safety::NotProven);
        let found = sync_results(vec![half, lucky]);
        assert_eq!(
            sentences(&found),
            ["No setting was proven to lose nothing."]
        );
        let mut lost = losing(by("fdatasync", 1_000.0), 3, 300);
        if let Some(proof) = &mut lost.proof {
            proof.not_proven = Some("stopped".into());
        }
        assert_eq!(safety(&lost), Safety::Lost);
        assert_eq!(
            sentences(&sync_results(vec![lost])),
            ["No setting lost nothing: 1 setting meant to be durable lost acknowledged writes."]
        );
    }

    #[test]
    fn the_plain_way_is_named_among_those_that_cannot_be_told_apart() {
        let found = sync_results(vec![
            proven(by("o_dsync", 1_002.0), 300),
            proven(by("fdatasync", 1_000.0), 300),
            proven(by("fsync", 900.0), 300),
        ]);
        let ranking = ranking(&found).unwrap();
        let key = |(series, _): &Timed<'_>| series.key.clone();
        assert_eq!(key(&ranking.best.unwrap()), "overwrite/fdatasync/8K");
        let equals: Vec<String> = ranking.equals.iter().map(key).collect();
        assert_eq!(equals, ["overwrite/o_dsync/8K"]);
        assert!(ranking.faster.is_empty());
    }

    #[test]
    fn without_a_proof_there_is_nothing_to_say() {
        let found = sync_results(vec![by("fdatasync", 1_000.0)]);
        assert!(ranking(&found).is_none() && sentences(&found).is_empty());
    }

    #[test]
    fn only_like_is_compared_with_like() {
        let small = Strategy {
            size: 512,
            allocation: Allocation::Append,
            ..Strategy::BASELINE
        };
        let found = sync_results(vec![
            proven(by("fdatasync", 1_000.0), 300),
            proven(measured(small, &[9_000.0, 9_001.0], 1.0, 1.0), 300),
        ]);
        let ranking = ranking(&found).unwrap();
        assert_eq!(ranking.all.len(), 1);
        assert_eq!(ranking.best.unwrap().0.axes.size, Some(8192));
    }
}
