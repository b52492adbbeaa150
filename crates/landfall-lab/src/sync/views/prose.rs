//! What the report says of experiment `sync` before anything else.
//!
//! Only a strategy whose writes are meant to survive a power cut is ever called the cheapest, and
//! nothing is called durable without reserve where a notice puts durability itself in doubt.

use crate::Results;
use crate::numbers::{interval, thousands, two};
use crate::stats::Estimate;
use crate::sync::safety::{Timed, is_comparable, timed, way};
use crate::sync::{Strategy, SyncResults, safety};
use landfall_os::Allocation;
use landfall_results::{Axes, Axis, Metric, Series};

/// What the report says of the experiment before anything else.
pub(crate) fn sentences(results: &Results, sync: &SyncResults) -> Vec<String> {
    let is_proven = sync.series.iter().any(|one| one.proof.is_some());
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
    let measured: Vec<Timed<'_>> = timed(sync)
        .filter(|(series, _)| series.axes.is_durable())
        .collect();
    let baseline = Axes::from(Strategy::BASELINE);
    let centre = measured
        .iter()
        .find(|(series, _)| series.axes == baseline)
        .or(measured.first());
    let Some((centre, _)) = centre else {
        return "No durable write was measured: every strategy measured here leaves its writes to a power cut."
            .to_owned();
    };
    let mut rivals: Vec<&Timed<'_>> = measured
        .iter()
        .filter(|(series, _)| is_comparable(series, centre))
        .collect();
    rivals.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    let Some((best, rate)) = rivals.first() else {
        return String::new();
    };
    let reserve = if results.is_in_doubt() {
        "The cheapest write that is meant to be durable"
    } else {
        "The cheapest durable write"
    };
    let equals = rivals
        .iter()
        .skip(1)
        .filter(|(_, other)| other.high >= rate.low)
        .count();
    let by = way(best);
    let begin = format!(
        "{reserve} of {} here: {} a second",
        best.axes.text(Axis::Size),
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
    let allocated = |allocation| {
        let all = sync.series.iter();
        all.filter(move |series| series.axes.allocation == Some(allocation))
    };
    let compared = allocated(Allocation::Append)
        .filter(|append| append.axes.is_durable())
        .find_map(|append| {
            let fixed = append.axes.without(Axis::Allocation);
            let twin = |other: &&Series| other.axes.without(Axis::Allocation) == fixed;
            Some((append, allocated(Allocation::Overwrite).find(twin)?))
        })
        .and_then(|(append, overwrite)| {
            let pairs = overwrite.pairs(append, Metric::OpsPerSecond);
            Some((append, overwrite, Estimate::of_ratio(&pairs)?))
        });
    let Some((append, overwrite, ratio)) = compared else {
        return "Appending and overwriting were not both measured, so this run cannot say what separates them."
            .to_owned();
    };
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
    match (cost(overwrite), cost(append)) {
        (Some(over), Some(app)) => {
            format!("Overwriting costs {over}, appending {app}: overwriting is {times}{unclear}.")
        }
        _ => format!(
            "Overwriting is {} times as fast as appending ({spread}){unclear}; writes and flushes could not be counted.",
            two(ratio.median)
        ),
    }
}

pub(super) fn cost(series: &Series) -> Option<String> {
    let writes = match series.median(Metric::Writes) {
        Some(writes) => count(writes, "write"),
        None => {
            let requests = series.median(Metric::WriteRequests)?;
            format!("at most {}", count(requests, "write"))
        }
    };
    let flushes = count(series.median(Metric::Flushes)?, "flush");
    Some(format!("{writes} and {flushes}"))
}

/// To one decimal, unless that is none.
pub(super) fn rounded(value: f64) -> String {
    let number = format!("{value:.1}");
    number.strip_suffix(".0").unwrap_or(&number).to_owned()
}

/// A rounded count with its noun: `1 write`, `2.5 writes`.
pub(super) fn count(value: f64, noun: &str) -> String {
    let number = rounded(value);
    match (number.as_str(), noun) {
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
