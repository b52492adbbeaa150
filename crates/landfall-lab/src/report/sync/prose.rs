//! What the report says of experiment `sync` before anything else.
//!
//! Only a strategy whose writes are meant to survive a power cut is ever called the cheapest, and
//! nothing is called durable without reserve where a notice puts durability itself in doubt.

use crate::Results;
use crate::numbers::{interval, thousands, two};
use crate::stats::Estimate;
use crate::sync::{DeviceCost, Strategy, StrategyResult, Summary, SyncResults, safety};
use landfall_os::humanize::bytes_text;

/// What the report says of the experiment before anything else.
pub(in crate::report) fn sentences(results: &Results, sync: &SyncResults) -> Vec<String> {
    let is_proven = sync.strategies.iter().any(|one| one.proof.is_some());
    let mut sentences = match (results.is_in_memory(), is_proven) {
        (true, false) => Vec::new(),
        (true, true) => vec!["Which settings lose data was proven on the recorder; which of them is the fastest on a disk cannot be told in main memory.".to_owned()],
        (false, true) => safety::sentences(sync),
        (false, false) => vec![cheapest(results, sync)],
    };
    sentences.push(append_or_overwrite(sync));
    sentences
}

fn cheapest(results: &Results, sync: &SyncResults) -> String {
    let measured: Vec<(&StrategyResult, &Summary)> = sync
        .strategies
        .iter()
        .filter(|strategy| strategy.durable)
        .filter_map(|strategy| Some((strategy, strategy.summary.as_ref()?)))
        .collect();
    let baseline = Strategy::BASELINE.key();
    let centre = measured
        .iter()
        .find(|(strategy, _)| strategy.key == baseline)
        .or(measured.first());
    let Some((centre, _)) = centre else {
        return "No durable write was measured: every strategy measured here leaves its writes to a power cut."
            .to_owned();
    };
    let mut rivals: Vec<&(&StrategyResult, &Summary)> = measured
        .iter()
        .filter(|(strategy, _)| strategy.is_comparable_with(centre))
        .collect();
    rivals.sort_by(|a, b| {
        b.1.ops_per_second
            .median
            .total_cmp(&a.1.ops_per_second.median)
    });
    let Some((best, summary)) = rivals.first() else {
        return String::new();
    };
    let rate = &summary.ops_per_second;
    let reserve = if results.is_in_doubt() {
        "The cheapest write that is meant to be durable"
    } else {
        "The cheapest durable write"
    };
    let equals = rivals
        .iter()
        .skip(1)
        .filter(|(_, other)| other.ops_per_second.high >= rate.low)
        .count();
    let by = best.way();
    let begin = format!(
        "{reserve} of {} here: {} a second",
        bytes_text(best.size),
        thousands(rate.median)
    );
    if best.trials.len() < 2 {
        return format!("{begin}, by {by}; one round cannot say how far chance moved it.");
    }
    let tail = match (rivals.len(), equals) {
        (1, _) => "; nothing else of its kind was measured".to_owned(),
        (_, 0) => "; the intervals of all others lie below its own".to_owned(),
        (_, 1) => "; the interval of one other reaches into its own".to_owned(),
        (_, some) => format!("; the intervals of {some} others reach into its own"),
    };
    format!(
        "{begin} (95% interval {}), by {by}{tail}.",
        interval(rate, thousands)
    )
}

fn append_or_overwrite(sync: &SyncResults) -> String {
    let twins = sync.strategies.iter().find_map(|append| {
        let overwrite = sync.strategies.iter().find(|other| {
            other.allocation == "overwrite"
                && other.is_comparable_with(append)
                && other.method == append.method
        })?;
        (append.allocation == "append" && append.durable).then_some((append, overwrite))
    });
    let compared = twins.and_then(|(append, overwrite)| {
        let pairs: Vec<(f64, f64)> = append
            .trials
            .iter()
            .filter_map(|trial| {
                let other = overwrite.trials.iter().find(|o| o.round == trial.round)?;
                Some((other.ops_per_second, trial.ops_per_second))
            })
            .collect();
        Some((append, overwrite, Estimate::of_ratio(&pairs)?))
    });
    let Some((append, overwrite, ratio)) = compared else {
        return "Appending and overwriting were not both measured, so this run cannot say what separates them."
            .to_owned();
    };
    let device = |strategy: &StrategyResult| strategy.summary.as_ref()?.device;
    let spread = match append.trials.len() {
        1 => "one round".to_owned(),
        _ => format!("95% interval {}", interval(&ratio, two)),
    };
    let times = format!("{} times as fast ({spread})", two(ratio.median));
    let unclear = if append.trials.len() > 1 && ratio.low <= 1.0 && 1.0 <= ratio.high {
        ", which shows no difference"
    } else {
        ""
    };
    match (device(overwrite), device(append)) {
        (Some(over), Some(app)) => format!(
            "Overwriting costs {}, appending {}: overwriting is {times}{unclear}.",
            cost(&over),
            cost(&app)
        ),
        _ => format!(
            "Overwriting is {} times as fast as appending ({spread}){unclear}; writes and flushes could not be counted.",
            two(ratio.median)
        ),
    }
}

fn cost(device: &DeviceCost) -> String {
    let writes = match device.writes {
        Some(writes) => count(writes, "write"),
        None => format!("at most {}", count(device.write_requests, "write")),
    };
    format!("{writes} and {}", count(device.flushes, "flush"))
}

/// A rounded count with its noun: `1 write`, `2.5 writes`.
fn count(value: f64, noun: &str) -> String {
    let number = format!("{value:.1}");
    let number = number.strip_suffix(".0").unwrap_or(&number);
    match (number, noun) {
        ("1", noun) => format!("1 {noun}"),
        (number, "flush") => format!("{number} flushes"),
        (number, noun) => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_as_english() {
        assert_eq!(count(1.02, "write"), "1 write");
        assert_eq!(count(0.0, "flush"), "0 flushes");
        assert_eq!(count(2.5, "write"), "2.5 writes");
    }
}
