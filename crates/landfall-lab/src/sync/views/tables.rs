//! The tables of experiment `sync`: those beneath its charts, and those of a terminal.

use landfall_os::humanize::bytes_text;
use landfall_results::view::chart::{Chart, Drawing};
use landfall_results::view::{
    Block, Cell, Row, SeriesColumn, Table, Tone, or_nothing, series_table, with_interval,
};
use landfall_results::{Axis, Metric};

use crate::Results;
use crate::numbers::{NOTHING, short, two};
use crate::section::Section;
use crate::sync::{Safety, SyncResults, safety, sections};
use crate::views::{self, of_trial};

/// Percentiles that get a column, with its heading.
const PERCENTILES: [(f64, &str); 9] = [
    (0.0, "least"),
    (5.0, "5%"),
    (25.0, "25%"),
    (50.0, "50%"),
    (75.0, "75%"),
    (90.0, "90%"),
    (99.0, "99%"),
    (99.9, "99.9%"),
    (100.0, "greatest"),
];

/// The table that belongs to `chart`, which shows `section`.
pub(super) fn of(chart: &Chart, section: &Section<'_>) -> Table {
    let (caption, columns) = match &chart.drawing {
        Drawing::Latency(_) => (
            "Latency in microseconds at percentiles, over all rounds, without first operations",
            PERCENTILES.map(percentile).into(),
        ),
        Drawing::Costs(_) => (
            "Writes, KiB, flushes and reads per operation, as the device counts them",
            [
                Metric::Writes,
                Metric::WriteRequests,
                Metric::Kib,
                Metric::Flushes,
                Metric::Reads,
            ]
            .map(SeriesColumn::median)
            .into(),
        ),
        _ => (
            "Operations per second, latencies in microseconds and CPU time per operation",
            rates(section),
        ),
    };
    let caption = format!("{caption}. {}", section.title);
    let mut table = series_table(caption, "Strategy", columns, section.named());
    if is_proven(section) && table.columns.iter().any(|one| one.heading == LOST_IN) {
        table.note(format!(
            "Lost in: crash states in which an acknowledged write was missing, of those that were tried; {NOTHING} where nothing was proven."
        ));
    }
    table
}

/// Heading of the column that says what power cuts took.
const LOST_IN: &str = "lost in";

fn is_proven(section: &Section<'_>) -> bool {
    section.rows.iter().any(|(_, one)| one.proof.is_some())
}

fn rates(section: &Section<'_>) -> Vec<SeriesColumn> {
    let mut columns = Vec::from(with_interval(Metric::OpsPerSecond));
    columns.extend([Metric::P50Us, Metric::P99Us].map(SeriesColumn::median));
    columns.push(first());
    columns.extend([Metric::CpuUs, Metric::Drift].map(SeriesColumn::median));
    columns.extend(is_proven(section).then(lost_in));
    columns
}

/// The first operation, in milliseconds.
fn first() -> SeriesColumn {
    SeriesColumn::new("first ms", |series| {
        let first = series.median(Metric::FirstUs);
        or_nothing(first.map(|first| short(first / 1e3)))
    })
}

/// In how many crash states an acknowledged write was lost.
fn lost_in() -> SeriesColumn {
    SeriesColumn::new(LOST_IN, |series| {
        let tone = match safety::safety(series) {
            Safety::LostNothing => Tone::Good,
            Safety::Lost => Tone::Bad,
            Safety::NotProven => Tone::Faint,
        };
        Cell::toned(tone, safety::lost_in(series))
    })
}

fn percentile((percentile, heading): (f64, &'static str)) -> SeriesColumn {
    SeriesColumn::new(heading, move |series| {
        let mut all = series.distribution.iter();
        let found = all.find(|(other, _)| *other == percentile);
        or_nothing(found.map(|(_, latency)| short(*latency)))
    })
}

/// What a terminal shows of the experiment, without its claims.
pub(crate) fn brief(results: &Results, sync: &SyncResults) -> Vec<Block> {
    let mut blocks = Vec::new();
    if sync.series.iter().any(|one| one.proof.is_some()) {
        // Which setting is the fastest on a disk cannot be told in main memory.
        let mut sentences: Vec<(Tone, String)> = if results.is_in_memory() {
            Vec::new()
        } else {
            let said = safety::sentences(sync).into_iter();
            said.map(|sentence| (Tone::Plain, sentence)).collect()
        };
        if let Some((tone, _)) = sentences.first_mut() {
            *tone = Tone::Strong;
        }
        sentences.push((Tone::Plain, safety::place(results, sync)));
        blocks.push(Block::Prose {
            indent: 0,
            sentences,
        });
    }
    for section in sections(sync) {
        blocks.extend(Block::titled(brief_table(&section)));
    }
    blocks.extend(views::preparation_sentence(preparation(sync)));
    blocks
}

fn brief_table(section: &Section<'_>) -> Table {
    let is_proven = is_proven(section);
    let mut columns = Vec::from(with_interval(Metric::OpsPerSecond));
    columns.extend([Metric::P50Us, Metric::P99Us].map(SeriesColumn::median));
    // The pages axis is about reads; elsewhere there are none. What was lost matters more than the first
    // operation, and there is not room for both.
    if section.axis == Some(Axis::Pages) {
        columns.push(SeriesColumn::median(Metric::Reads));
    } else if !is_proven {
        columns.push(first());
    }
    columns.extend(
        [Metric::CpuUs, Metric::Writes, Metric::Kib, Metric::Flushes].map(SeriesColumn::median),
    );
    columns.extend(is_proven.then(lost_in));
    let mut table = series_table(section.title.as_str(), "", columns, section.marked());
    if section.has_marks() {
        table.note("* not durable: a power cut loses these writes");
    }
    if is_proven {
        table.note("lost in: crash states that lack an acknowledged write, of those tried");
    }
    table
}

/// What preparations cost.
pub(super) fn preparation(sync: &SyncResults) -> Option<Table> {
    let mut rows = Vec::new();
    if sync.preparation.bytes > 0 {
        rows.push(Row::of(
            "files kept for overwriting, once for the run",
            [
                bytes_text(sync.preparation.bytes),
                two(sync.preparation.seconds),
            ],
        ));
    }
    rows.extend(sync.series.iter().filter_map(of_trial));
    views::preparation("Bytes written and seconds taken to prepare files", rows)
}
