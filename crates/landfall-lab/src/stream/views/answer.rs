//! What saving a large state costs here, on one screen: how long the program waits, and when the state is durable.

use landfall_os::humanize::bytes_text;
use landfall_os::{Allocation, StreamMethod};
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

use crate::Results;
use crate::facts::may_lose_new_files;
use crate::stream::summary_text::{seconds_text, seconds_with_interval, way};
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
    let durable = if results.is_in_memory() || results.is_in_doubt() {
        "synced after"
    } else {
        "durable after"
    };
    // Only where it is shown to be shorter.
    let is_shorter = shortest.hand_over.high < soonest.hand_over.low;
    let remarks = [
        (Some(soonest), "soonest"),
        (Some(shortest).filter(|_| is_shorter), "shortest wait"),
        (plain, "usual"),
    ];
    let mut shown: Vec<&Saved<'_>> = Vec::new();
    let mut rows: Vec<Row> = Vec::new();
    for (one, remark) in remarks {
        let is_shown =
            |one: &&Saved<'_>| shown.iter().any(|other| other.series.key == one.series.key);
        if let Some(one) = one.filter(|one| !is_shown(one)) {
            let is_new = one.series.axes.allocation == Some(Allocation::Append);
            let remark = match remark {
                _ if is_new && may_lose_new_files(&results.filesystem) => {
                    format!("{remark}, at risk")
                }
                _ => remark.to_owned(),
            };
            rows.push(row(one, &remark, shown.is_empty()));
            shown.push(one);
        }
    }
    let mut columns: Vec<Column> = ["program waits", durable].map(Column::new).into();
    columns.push(Column::text(""));
    let title = format!("Saving a state of {}", bytes_text(size));
    let mut table = Table::new(title.clone(), title, columns).with_rows(rows);
    let is_written_over = |one: &Saved<'_>| one.series.axes.allocation != Some(Allocation::Append);
    let only_copy = shown.iter().any(|one| is_written_over(one)).then(|| {
        "A power cut can destroy the only copy that is written over: alternate two.".to_owned()
    });
    let limits = stream.dirty_limits.as_ref();
    let wall = stream.walls.first();
    let wall = wall.map(|wall| summary_text::wall_in_short(wall, limits));
    let notes = tie(soonest, &rivals).into_iter();
    let notes = notes.chain(only_copy).chain(wall);
    notes.for_each(|note| table.note(note));
    Some(vec![Block::Table(table)])
}

fn row(one: &Saved<'_>, remark: &str, is_best: bool) -> Row {
    let tone = if is_best { Tone::Good } else { Tone::Plain };
    Row::of(
        way(&one.series.axes),
        [
            seconds_text(one.hand_over.median).into(),
            seconds_with_interval(&one.total).into(),
            Cell::toned(tone, remark),
        ],
    )
}

fn tie(soonest: &Saved<'_>, rivals: &[Saved<'_>]) -> Option<String> {
    if soonest.series.trials.len() < 2 {
        return Some("One round cannot say how far chance moved these figures.".to_owned());
    }
    let is_tied = |other: &&Saved<'_>| {
        other.series.key != soonest.series.key && other.total.low <= soonest.total.high
    };
    let tied: Vec<String> = rivals
        .iter()
        .filter(is_tied)
        .map(|other| way(&other.series.axes))
        .collect();
    match &tied[..] {
        [] => None,
        [one] => Some(format!("As soon as row 1: {one}.")),
        [first, rest @ ..] => Some(format!(
            "As soon as row 1: {first} and {} more.",
            rest.len()
        )),
    }
}
