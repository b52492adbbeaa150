//! What experiment `dump-vs-log` gives to the page, and to a terminal.

pub(crate) mod answer;
mod charts;
mod crossing;
mod prose;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use tables::brief;

use super::{Cost, DumpVsLogResults};
use crate::Results;
use landfall_results::view::{Chapter, Figure, Part};

/// Its part of the page.
pub(crate) fn part(results: &Results, found: &DumpVsLogResults) -> Part {
    Part {
        title: "What dumping a state and logging its changes cost".to_owned(),
        sentences: prose::break_even(found)
            .into_iter()
            .chain(prose::stalls(found))
            .collect(),
        front: None,
        chapters: chapters(found, results.is_in_memory()),
        unmeasured: None,
        run: None,
        preparation: None,
    }
}

fn chapters(found: &DumpVsLogResults, in_memory: bool) -> Vec<Chapter> {
    let mut figures = Vec::new();
    for (cost, heading) in [
        (Cost::Seconds, "By the seconds that the program spends"),
        (Cost::Bytes, "By the bytes that are written"),
    ] {
        let Some(chart) = crossing::chart(found, cost) else {
            continue;
        };
        let table = tables::break_even_table(found, cost, heading);
        figures.push(Figure::new(heading, chart, "", table));
    }
    let introduction = "A dump costs the same whatever has changed since the last one; a log costs the more, the more changes. Logs differ in when they are synced: never, every second, for a group of updates, or for every update; log is the engine's, and file a plain file that is appended to. Left of a crossing the log is cheaper, right of it the dump; the figures beside the logs are those shares. Beyond 100% records have changed more than once. Both scales are logarithmic.";
    let break_even =
        Chapter::of_figures("When a dump is cheaper than a log", introduction, figures);
    let costs = charts::costs(found).map(|chart| {
        let legend = prose::losses(in_memory);
        Figure::new(tables::heading(found), chart, legend, tables::table(found))
    });
    let introduction = "A dump stops the program for its hand-over; a log, and a snapshot of the engine's, for as long as an update waits to be accepted. A restart reads the last dump and the log that came after it, or the engine opens its snapshot and its log.";
    let costs = costs.into_iter().collect();
    let costs = Chapter::of_figures("What a dump and a log ask for", introduction, costs);
    [break_even, costs].into_iter().flatten().collect()
}
