//! What the report says of experiment `stream` before anything else.

use crate::Results;
use crate::stats::Estimate;
use crate::stream::summary_text::{seconds_text, walls, way};
use crate::stream::{StreamResults, centre_size};
use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Series};

/// What the report says of the experiment before anything else.
pub(crate) fn sentences(results: &Results, stream: &StreamResults) -> Vec<String> {
    let fastest = fastest(results, stream);
    let wall = first_wall(stream);
    [fastest, wall].into_iter().flatten().collect()
}

/// How long the program stops and how long it takes until the state is durable, at the size at which
/// most was measured.
fn fastest(results: &Results, stream: &StreamResults) -> Option<String> {
    let (size, rivals) = saved(stream)?;
    let by_total = |a: &&Saved<'_>, b: &&Saved<'_>| a.total.median.total_cmp(&b.total.median);
    let by_hand_over =
        |a: &&Saved<'_>, b: &&Saved<'_>| a.hand_over.median.total_cmp(&b.hand_over.median);
    let soonest = rivals.iter().min_by(by_total)?;
    let shortest = rivals.iter().min_by(by_hand_over)?;
    let rounds = soonest.series.trials.len();
    let equals = rivals
        .iter()
        .filter(|other| {
            other.series.key != soonest.series.key && other.total.low <= soonest.total.high
        })
        .count();
    let durable = match (results.is_in_memory(), results.is_in_doubt()) {
        (true, _) => "handed over and synced",
        (false, true) => "meant to be durable",
        (false, false) => "durable",
    };
    let chance = match (rounds, equals, rivals.len()) {
        (1, ..) => " One round cannot say how far chance moved it.".to_owned(),
        (_, _, 1) => " Nothing else was measured at this size.".to_owned(),
        (_, 0, _) => " No other is as quick.".to_owned(),
        (_, 1, _) => " One other ties with it: their intervals overlap.".to_owned(),
        (_, some, _) => format!(" {some} others are not shown to differ: their intervals overlap."),
    };
    let mut text = format!(
        "The quickest save of {} is {durable} after {}{}, by {}; the program waits {} of that.{chance}",
        bytes_text(size),
        seconds_text(soonest.total.median),
        certainty(&soonest.total, rounds),
        way(&soonest.series.axes),
        seconds_text(soonest.hand_over.median),
    );
    if shortest.series.key != soonest.series.key {
        text.push_str(&format!(
            " The program waits least with {}: {}{}; that save is {durable} after {}.",
            way(&shortest.series.axes),
            seconds_text(shortest.hand_over.median),
            certainty(&shortest.hand_over, shortest.series.trials.len()),
            seconds_text(shortest.total.median),
        ));
    }
    Some(text)
}

/// How long a save took, over the rounds.
pub(super) struct Saved<'a> {
    pub series: &'a Series,
    pub hand_over: Estimate,
    pub total: Estimate,
}

/// The size at which most was measured, and how long saving a state of it took by each strategy.
pub(super) fn saved(stream: &StreamResults) -> Option<(u64, Vec<Saved<'_>>)> {
    let measured = stream.series.iter().filter(|series| series.is_measured());
    let measured: Vec<&Series> = measured.collect();
    let size = centre_size(measured.iter().copied())?;
    let at_size = measured
        .iter()
        .filter(|series| series.axes.size == Some(size));
    let rivals = at_size.filter_map(|series| {
        Some(Saved {
            series,
            hand_over: series.estimate(Metric::HandOverSeconds)?,
            total: series.estimate(Metric::Seconds)?,
        })
    });
    Some((size, rivals.collect()))
}

fn certainty(seconds: &Estimate, rounds: usize) -> String {
    if rounds < 2 {
        return String::new();
    }
    let (low, high) = (seconds_text(seconds.low), seconds_text(seconds.high));
    format!(" (95% interval {low} to {high})")
}

/// The first wall in a sentence, and which methods have one too.
fn first_wall(stream: &StreamResults) -> Option<String> {
    let mut text = walls(stream).into_iter().next()?;
    let mut others: Vec<String> = Vec::new();
    for wall in stream.walls.iter().skip(1) {
        let method = wall.method.to_string();
        if wall.method != stream.walls[0].method && !others.contains(&method) {
            others.push(method);
        }
    }
    if !others.is_empty() {
        text.push_str(&format!(" So it does with {}.", others.join(", ")));
    }
    Some(text)
}
