//! What experiment `torn` gives to the page.

mod tables;
#[cfg(test)]
mod tests;

pub(crate) use tables::brief;

use landfall_results::view::chart::{Chart, Drawing, Rate, Rates, is_wide};
use landfall_results::view::{Chapter, Column, Figure, Part, Row, Table};
use landfall_results::{Metric, Series};

use crate::configuration::views::charts::{Row as Named, costs, rates};
use crate::configuration::views::tables::{measured, preparation};
use crate::numbers::{NOTHING, interval, two};
use crate::stats::Estimate;
use crate::torn::{
    Protection, Sides, StoreProtection, TornResults, base, conditions, disk_text, disks, sections,
    stores, summary_text,
};
use crate::views;

/// Its part of the page.
pub(crate) fn part(torn: &TornResults) -> Part {
    let chapters = [
        of_proofs(torn),
        of_conditions(torn),
        of_disks(torn),
        of_postgres(torn),
        of_store(torn),
    ];
    Part {
        title: "What protection against torn pages costs".to_owned(),
        sentences: summary_text::sentences(torn),
        front: None,
        chapters: chapters.into_iter().flatten().collect(),
        unmeasured: views::unmeasured(&torn.measurements.series),
        run: None,
        preparation: preparation(&torn.measurements),
    }
}

/// Which settings survived, in words.
fn of_proofs(torn: &TornResults) -> Option<Chapter> {
    if torn.proofs.is_empty() {
        return None;
    }
    Some(Chapter::of_table(
        "Which of them protect",
        "The real server runs on a recorded filesystem and writes pages all the time; then it is recovered from what power cuts could have left, pages that are half written among them.",
        tables::proofs(torn),
    ))
}

fn of_conditions(torn: &TornResults) -> Option<Chapter> {
    let pairs = conditions(torn);
    let rows: Vec<Rate> = pairs
        .iter()
        .map(|pair| Rate::of(pair.label.clone(), true, pair.gain, two))
        .collect();
    let rates = Rates {
        unit: "times the rate of the doublewrite buffer".into(),
        reference: Some(1.0),
        log: is_wide(rows.iter().filter_map(|row| row.value)),
        rows,
    };
    let chart = Chart::new("torn-conditions", Drawing::Rates(rates)).if_any()?;
    let table_rows = pairs.iter().map(|pair| {
        let figures = |one: &Series| {
            [Metric::RequestsPerSecond, Metric::Kib, Metric::Flushes]
                .map(|metric| one.text(metric))
                .to_vec()
        };
        let gain = |print: &dyn Fn(&Estimate) -> String| {
            pair.gain.as_ref().map_or(NOTHING.to_owned(), print)
        };
        let mut cells = figures(pair.usual);
        cells.extend(figures(pair.cure));
        cells.push(gain(&|gain| two(gain.median)));
        cells.push(gain(&|gain| interval(gain, two)));
        Row::of(pair.label.clone(), cells)
    });
    let columns = [
        "doublewrite/s",
        "KiB",
        "flushes",
        "data=journal/s",
        "KiB",
        "flushes",
        "gain",
        "95% interval",
    ];
    let table = Table::new(
        "data=journal without the doublewrite buffer over ext4 with it",
        "Condition",
        columns.map(Column::new).into(),
    )
    .with_rows(table_rows);
    let of = format!(
        "One condition changed, on {}",
        base(torn).map_or("", disk_text)
    );
    let figure = Figure::new(of, chart, "", table);
    let introduction = "Published was a gain of 55%, on a spinning disk whose cache was off, with processors to spare, few reads, data that fits the buffer pool, a redo log so small that pages are written all the time, and commits that wait for no sync. All of that is set up on a recorder that takes the times of such a disk; then one condition at a time is changed.";
    Chapter::of_figures(
        "The gain, and what becomes of it",
        introduction,
        vec![figure],
    )
}

/// Every protection on every disk.
fn of_disks(torn: &TornResults) -> Option<Chapter> {
    let figures = of_sides("torn-disk", &disks(torn), Protection::text);
    let introduction = "Without protection a page that was half written when the power went is lost. The doublewrite buffer writes each page to a place of its own first; data=journal lets ext4 do that, with everything else that is written too. Both together protect no better.";
    Chapter::of_figures("Every protection on every disk", introduction, figures)
}

/// A chart of each disk, with all protections of one engine.
fn of_sides<P: Copy>(id: &str, disks: &[Sides<'_, P>], text: fn(P) -> &'static str) -> Vec<Figure> {
    let of_disk = |(index, sides): (usize, &Sides<'_, P>)| {
        let all = sides.protections.iter();
        let rows: Vec<Named<'_>> = all
            .map(|side| Named {
                label: text(side.protection).to_owned(),
                one: side.series,
                durable: true,
            })
            .collect();
        let id = format!("{id}-{index}");
        named(disk_text(sides.disk), &id, &rows).collect::<Vec<Figure>>()
    };
    disks.iter().enumerate().flat_map(of_disk).collect()
}

/// Rates and costs of some configurations, with their table.
fn named(what: &str, id: &str, rows: &[Named<'_>]) -> impl Iterator<Item = Figure> {
    let table = |of: &str| {
        let labelled = rows.iter().map(|row| (row.label.clone(), row.one));
        measured(format!("{of}: {what}"), labelled)
    };
    let rates = rates(id, rows).map(|chart| Figure::new(what, chart, "", table("Rates")));
    let costs = costs(&format!("{id}-cost"), rows).map(|chart| {
        let title = format!("{what}: what a transaction costs the device");
        Figure::new(title, chart, "", table("Costs"))
    });
    rates.into_iter().chain(costs)
}

fn of_postgres(torn: &TornResults) -> Option<Chapter> {
    let mut figures = Vec::new();
    for (index, section) in sections(torn).iter().enumerate() {
        let row = |label: &str, one| Named {
            label: label.to_owned(),
            one,
            durable: true,
        };
        let rows = [
            row("full_page_writes=on", section.on),
            row("full_page_writes=off", section.off),
        ];
        let id = format!("torn-postgres-{index}");
        figures.extend(named(disk_text(section.disk), &id, &rows));
    }
    let introduction = "PostgreSQL keeps an image of each page in its log when it is first changed after a checkpoint. Checkpoints follow each other closely here, so that there is always something to keep. Commits are synced.";
    Chapter::of_figures("PostgreSQL", introduction, figures)
}

fn of_store(torn: &TornResults) -> Option<Chapter> {
    let figures = of_sides("torn-landfall", &stores(torn), StoreProtection::text);
    let introduction = "One engine with every protection: nothing else differs. Its leaves of 16 KiB are written in place by single puts of 200 bytes, with so little memory that they are written all the time; commits wait for no sync. Compare these rates with each other only: other engines do other work for a request. Atomic writes are missing, because ext4 on a recorder promises none.";
    Chapter::of_figures("Landfall's store", introduction, figures)
}
