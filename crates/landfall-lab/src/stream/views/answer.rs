//! What saving a large state costs here, on one screen: how long the program waits, and when the state is durable.

use landfall_os::StreamMethod;
use landfall_os::humanize::bytes_text;
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};
use landfall_results::{Axis, Metric, Series};

use crate::Results;
use crate::stream::summary_text::seconds_text;
use crate::stream::views::prose::{Saved, saved};
use crate::stream::{StreamResults, summary_text};

/// The answer; nothing where nothing was measured.
pub(crate) fn answer(results: &Results, stream: &StreamResults) -> Option<Vec<Block>> {
    let (size, rivals) = saved(stream)?;
    let by = |time: fn(&Saved<'_>) -> f64| {
        let mut all = rivals.iter().collect::<Vec<_>>();
        all.sort_by(|a, b| time(a).total_cmp(&time(b)));
        all.first().copied()
    };
    let soonest = by(|one| one.total.median)?;
    let shortest = by(|one| one.hand_over.median)?;
    let plain = rivals.iter().find(|one| {
        one.series.axes.stream_method == Some(StreamMethod::WRITE)
            && one.series.axes.has_usual_chunk()
    });
    let durable = match (results.is_in_memory(), results.is_in_doubt()) {
        (true, _) | (false, true) => "synced",
        (false, false) => "durable",
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    let is_same = soonest.series.key == shortest.series.key;
    let remarks = [
        (
            Some(soonest),
            if is_same { "both soonest" } else { "soonest" },
        ),
        (Some(shortest).filter(|_| !is_same), "shortest wait"),
        (plain, "plain write(2)"),
    ];
    for (one, remark) in remarks {
        let Some(one) = one.filter(|one| !shown.contains(&one.series.key.as_str())) else {
            continue;
        };
        shown.push(&one.series.key);
        rows.push(row(one, remark, one.series.key == soonest.series.key));
    }
    let mut columns: Vec<Column> = ["program waits", durable, "longest stall"]
        .map(Column::new)
        .into();
    columns.push(Column::text(""));
    let title = format!("Saving a state of {}", bytes_text(size));
    let mut table = Table::new(title.clone(), title, columns).with_rows(rows);
    let wall = stream.walls.first().map(|wall| {
        let limits = stream.dirty_limits.as_ref();
        summary_text::wall(wall, limits)
    });
    let notes = tie(soonest, &rivals).into_iter().chain(wall);
    notes.for_each(|note| table.note(note));
    Some(vec![Block::Table(table)])
}

fn row(one: &Saved<'_>, remark: &str, is_best: bool) -> Row {
    let stall = one.series.median(Metric::LongestStallMs);
    let stall = stall.map_or_else(String::new, |ms| seconds_text(ms / 1e3));
    let tone = if is_best { Tone::Good } else { Tone::Plain };
    Row::of(
        way(one.series),
        [
            seconds_text(one.hand_over.median).into(),
            seconds_text(one.total.median).into(),
            stall.into(),
            Cell::toned(tone, remark),
        ],
    )
}

fn way(series: &Series) -> String {
    let axes = &series.axes;
    format!(
        "{}, {}",
        axes.text(Axis::Method),
        axes.text(Axis::Allocation)
    )
}

fn tie(soonest: &Saved<'_>, rivals: &[Saved<'_>]) -> Option<String> {
    if soonest.series.trials.len() < 2 {
        return Some("One round cannot say how far chance moved these figures.".to_owned());
    }
    let is_tied = |other: &&Saved<'_>| {
        other.series.key != soonest.series.key && other.total.low <= soonest.total.high
    };
    match rivals.iter().filter(is_tied).count() {
        0 => None,
        1 => Some("One other way is durable as soon within the noise.".to_owned()),
        some => Some(format!(
            "{some} other ways are durable as soon within the noise."
        )),
    }
}
