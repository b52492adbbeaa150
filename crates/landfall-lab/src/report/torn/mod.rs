//! What experiment `torn` gives to the page.

pub(super) mod tables;
#[cfg(test)]
mod tests;

use landfall_results::view::chart::{Chart, Drawing, Rate, Rates, is_wide};
use landfall_results::view::{Column, Row, Table};
use landfall_results::{Metric, Series};

use super::configuration::charts::{Row as Named, costs, rates};
use super::configuration::tables::{measured, preparation};
use super::part::{Chapter, Figure, Part, chapter};
use super::table;
use crate::numbers::{NOTHING, interval, two};
use crate::stats::Estimate;
use crate::torn::{TornResults, base, conditions, disk_text, disks, sections, summary_text};

/// Its part of the page; `charts` receives what is drawn.
pub(super) fn part(torn: &TornResults, charts: &mut Vec<Chart>) -> Part {
    let chapters = [
        of_proofs(torn),
        of_conditions(torn, charts),
        of_disks(torn, charts),
        of_postgres(torn, charts),
    ];
    Part {
        title: "What protection against torn pages costs".to_owned(),
        sentences: summary_text::sentences(torn),
        front: None,
        chapters: chapters.into_iter().flatten().collect(),
        unmeasured: table::unmeasured(&torn.measurements.series),
        preparation: preparation(&torn.measurements),
    }
}

/// Which settings survived, in words.
fn of_proofs(torn: &TornResults) -> Option<Chapter> {
    if torn.proofs.is_empty() {
        return None;
    }
    let table = tables::proofs(torn);
    Some(Chapter {
        title: "Which of them protect",
        introduction: "The real server runs on a recorded filesystem and writes pages all the time; then it is recovered from what power cuts could have left, pages that are half written among them.".to_owned(),
        tables: vec![table],
        figures: Vec::new(),
    })
}

fn of_conditions(torn: &TornResults, charts: &mut Vec<Chart>) -> Option<Chapter> {
    let pairs = conditions(torn);
    let title = "The gain, and what becomes of it";
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
    let figure = Figure::new(&chart, title, &of, String::new(), table);
    charts.push(chart);
    let introduction = "Published was a gain of 55%, on a spinning disk whose cache was off, with processors to spare, few reads, data that fits the buffer pool, a redo log so small that pages are written all the time, and commits that wait for no sync. All of that is set up on a recorder that takes the times of such a disk; then one condition at a time is changed.";
    chapter(title, introduction, vec![figure])
}

/// Every protection on every disk.
fn of_disks(torn: &TornResults, charts: &mut Vec<Chart>) -> Option<Chapter> {
    let title = "Every protection on every disk";
    let mut figures = Vec::new();
    for (index, sides) in disks(torn).iter().enumerate() {
        let rows: Vec<Named<'_>> = sides
            .protections
            .iter()
            .map(|(protection, one)| Named {
                label: protection.text().to_owned(),
                one,
                durable: true,
            })
            .collect();
        let disk = disk_text(sides.disk);
        named(
            title,
            disk,
            &format!("torn-disk-{index}"),
            &rows,
            &mut figures,
            charts,
        );
    }
    let introduction = "Without protection a page that was half written when the power went is lost. The doublewrite buffer writes each page to a place of its own first; data=journal lets ext4 do that, with everything else that is written too. Both together protect no better.";
    chapter(title, introduction, figures)
}

/// Rates and costs of some configurations, with their table.
fn named(
    title: &str,
    what: &str,
    id: &str,
    rows: &[Named<'_>],
    figures: &mut Vec<Figure>,
    charts: &mut Vec<Chart>,
) {
    let figures_of = |of: &str| {
        let labelled = rows.iter().map(|row| (row.label.clone(), row.one));
        measured(format!("{of}: {what}"), labelled)
    };
    if let Some(chart) = rates(id, rows) {
        figures.push(Figure::new(
            &chart,
            title,
            what,
            String::new(),
            figures_of("Rates"),
        ));
        charts.push(chart);
    }
    if let Some(chart) = costs(&format!("{id}-cost"), rows) {
        let of = format!("{what}: what a transaction costs the device");
        figures.push(Figure::new(
            &chart,
            title,
            &of,
            String::new(),
            figures_of("Costs"),
        ));
        charts.push(chart);
    }
}

fn of_postgres(torn: &TornResults, charts: &mut Vec<Chart>) -> Option<Chapter> {
    let title = "PostgreSQL";
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
        let disk = disk_text(section.disk);
        named(
            title,
            disk,
            &format!("torn-postgres-{index}"),
            &rows,
            &mut figures,
            charts,
        );
    }
    let introduction = "PostgreSQL keeps an image of each page in its log when it is first changed after a checkpoint. Checkpoints follow each other closely here, so that there is always something to keep. Commits are synced.";
    chapter(title, introduction, figures)
}
