//! What the report says of experiment `sync` before anything else: what is fastest and safe, why appending costs more,
//! and what is not safe.
//!
//! Only a strategy whose writes are meant to survive a power cut is ever called the fastest, nothing is called safe
//! that was not proven, and nothing durable without reserve where a notice puts durability itself in doubt.

use super::lead::Lead;
use super::safety::is_at_risk;
use crate::Results;
use crate::numbers::{interval, thousands, two};
use crate::stats::Estimate;
use crate::sync::safety::{Ranking, Timed, is_comparable, lost_in, ranking, safety, timed, way};
use crate::sync::{Safety, SyncResults};
use landfall_os::Allocation;
use landfall_results::{Axis, Metric, Series};

/// Strategies named in a sentence.
const MOST_NAMED: usize = 2;

/// What the report says of the experiment before anything else.
pub(crate) fn sentences(results: &Results, sync: &SyncResults) -> Vec<String> {
    let append = append_or_overwrite(results, sync);
    let ranking = ranking(sync);
    let lead = Lead::of(sync);
    let first = match (&ranking, &lead) {
        // Of another size something may have been safe.
        (Some(ranking), _) if ranking.best.is_none() => none(Some(ranking)),
        (_, Some(lead)) => fastest(results, lead),
        (_, None) => none(ranking.as_ref()),
    };
    match (ranking, results.is_in_memory()) {
        (None, true) => vec![append],
        (None, false) => [first, append].into_iter().chain(lead.and_then(|lead| not_synced(sync, &lead))).collect(),
        (Some(ranking), true) => vec![
            "Which settings lose data was proven on the recorder; which is the fastest on a disk cannot be told in main memory.".to_owned(),
            append,
            not_safe(&ranking),
        ],
        (Some(ranking), false) => {
            let mut all = vec![first, append, not_safe(&ranking)];
            all.extend(not_proven(&ranking));
            all
        }
    }
}

fn is_broken(series: &Series) -> bool {
    series.axes.is_durable() && safety(series) == Safety::Lost
}

/// The fastest that is safe, as far as that is known. What is as fast would push the picture off the first screen of a phone: that shows
/// some, and the terminal and the data name all.
fn fastest(results: &Results, lead: &Lead<'_>) -> String {
    let size = lead.series.axes.text(Axis::Size);
    let mut rate = lead.series.text(Metric::OpsPerSecond);
    rate += &format!(" writes of {size} a second");
    let estimate = lead.series.estimate(Metric::OpsPerSecond);
    if let Some(estimate) = estimate.filter(|_| lead.has_spread()) {
        rate += &format!(" ({})", interval(&estimate, thousands));
    }
    let mut said = vec![lead.advice(results, &rate)];
    if !lead.has_spread() {
        said.push("One round cannot say how far chance moved it.".to_owned());
    }
    said.push(lead.standing(results));
    said.join(" ")
}

/// That nothing can be named, and why.
fn none(ranking: Option<&Ranking<'_>>) -> String {
    let said = match ranking {
        None => {
            "No durable write was measured: every strategy measured here leaves its writes to a power cut."
        }
        Some(ranking) if ranking.all.iter().any(|(one, _)| is_broken(one)) => {
            "No way of writing durably lost nothing here."
        }
        Some(_) => "No way of writing durably was proven to lose nothing.",
    };
    said.to_owned()
}

/// What lost acknowledged writes: first what should not have.
fn not_safe(ranking: &Ranking<'_>) -> String {
    let lost = ranking
        .all
        .iter()
        .filter(|(one, _)| safety(one) == Safety::Lost);
    let (meant, lax): (Vec<&Timed<'_>>, Vec<_>) = lost.partition(|(one, _)| one.axes.is_durable());
    if meant.is_empty() && lax.is_empty() {
        return "Nothing that was tested lost an acknowledged write.".to_owned();
    }
    let mut said = Vec::new();
    if !meant.is_empty() {
        said.push(format!("Not safe, although it syncs: {}.", lost_by(&meant)));
    }
    if !lax.is_empty() {
        said.push(format!("Not safe, whatever its speed: {}.", lost_by(&lax)));
    }
    said.join(" ")
}

fn lost_by(those: &[&Timed<'_>]) -> String {
    listed(those, |(one, rate)| {
        let rate = thousands(rate.median);
        let lost = match one.proof.as_ref().map(|proof| proof.states) {
            Some(1) => "nothing of it had reached the disk".to_owned(),
            _ => format!("lost in {} power cuts", lost_in(one).replace('/', " of ")),
        };
        format!("{} ({rate} a second; {lost})", way(one))
    })
}

fn not_proven(ranking: &Ranking<'_>) -> Option<String> {
    let faster = ranking.faster.iter();
    let those: Vec<&Timed<'_>> = faster
        .filter(|(one, _)| safety(one) == Safety::NotProven)
        .collect();
    (!those.is_empty()).then(|| {
        let listed = listed(&those, |(one, rate)| {
            format!("{} ({} a second)", way(one), thousands(rate.median))
        });
        format!("Faster, and not proven: {listed}.")
    })
}

/// The first of these, and how many more there are.
fn listed(those: &[&Timed<'_>], text: impl Fn(&Timed<'_>) -> String) -> String {
    // One more is no longer than saying that there is one.
    let named = match those.len() {
        few if few <= MOST_NAMED + 1 => few,
        _ => MOST_NAMED,
    };
    let mut texts: Vec<String> = those.iter().take(named).map(|one| text(one)).collect();
    let rest = those.len() - named;
    if rest > 0 {
        texts.push(format!("{rest} others"));
    }
    match texts.pop() {
        Some(last) if !texts.is_empty() => format!("{} and {last}", texts.join(", ")),
        last => last.unwrap_or_default(),
    }
}

/// How fast what a power cut loses for certain is.
fn not_synced(sync: &SyncResults, lead: &Lead<'_>) -> Option<String> {
    let unsynced =
        timed(sync).filter(|(one, _)| !one.axes.is_durable() && is_comparable(one, lead.series));
    let (_, rate) = unsynced.max_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))?;
    Some(format!(
        "Without a sync up to {} a second are accepted, and a power cut can take them.",
        thousands(rate.median)
    ))
}

fn append_or_overwrite(results: &Results, sync: &SyncResults) -> String {
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
        _ => format!("round by round, {}", interval(&ratio, two)),
    };
    let times = two(ratio.median);
    let is_clear = append.trials.len() < 2 || !(ratio.low..=ratio.high).contains(&1.0);
    let (Some(over), Some(app)) = (cost(overwrite), cost(append)) else {
        let counted = "writes and flushes could not be counted";
        return if is_clear {
            format!("Overwriting is {times} times as fast as appending ({spread}); {counted}.")
        } else {
            format!(
                "Whether overwriting is faster than appending cannot be told here ({times} times as fast, {spread}); {counted}."
            )
        };
    };
    let why = if costs_more(append, overwrite) {
        ": the file's new size is written too"
    } else {
        ""
    };
    let faster = if is_clear {
        format!(" and is {times} times as fast ({spread})")
    } else {
        format!("; whether it is faster cannot be told here ({times} times as fast, {spread})")
    };
    let can_be_lost = is_at_risk(&results.filesystem, append) && safety(append) != Safety::Lost;
    let risk = match (can_be_lost, results.site.spec()) {
        (false, _) => "",
        (true, None) => {
            " Appending is at risk: there is no journal (tune2fs -O has_journal adds one, unmounted)."
        }
        (true, Some(_)) => " Appending is at risk: there is no journal.",
    };
    let by = append.axes.text(Axis::Method);
    format!("Appending with {by} costs {app}{why}. Overwriting costs {over}{faster}.{risk}")
}

/// Whether one takes more writes or flushes than another, by more than what others wrote meanwhile can explain.
fn costs_more(one: &Series, other: &Series) -> bool {
    const CLEARLY: f64 = 0.25;
    [Metric::Writes, Metric::WriteRequests, Metric::Flushes]
        .into_iter()
        .filter_map(|metric| Some((one.median(metric)?, other.median(metric)?)))
        .any(|(one, other)| one > other + CLEARLY)
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
