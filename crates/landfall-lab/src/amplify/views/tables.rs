//! The tables of experiment `amplify`: those beneath its charts, and those of a terminal.

use landfall_results::view::{Block, SeriesColumn, Table, or_nothing, series_table};
use landfall_results::{Metric, Series};

use super::curve;
use crate::amplify::{AmplifyResults, Section, sections, summary_text};
use crate::configuration::views::tables::preparation;
use crate::numbers::{interval, short, thousands, two};
use crate::views;

pub(super) fn loaded(one: &Series) -> Option<f64> {
    Some(one.data_bytes(one.loaded_bytes? as f64) / 1e6)
}

pub(super) fn at_end(one: &Series) -> Option<f64> {
    let bytes = one.median(Metric::DatabaseBytes)?;
    Some(one.data_bytes(bytes) / 1e6)
}

pub(super) fn of_section(
    caption: &str,
    section: &Section<'_>,
    columns: impl IntoIterator<Item = SeriesColumn>,
) -> Table {
    let rows = section.rows.iter().map(|one| (one.name(), *one));
    let caption = match caption {
        "" => section.title.clone(),
        caption => format!("{caption}. {}", section.title),
    };
    series_table(caption, "Configuration", columns, rows)
}

pub(super) fn bytes_table(section: &Section<'_>) -> Table {
    let of_wear = |metric: Metric| {
        SeriesColumn::new(metric.description().heading, move |one| {
            let figure = summary_text::wear(one).and_then(|trial| trial.get(metric));
            or_nothing(figure.map(two))
        })
    };
    let columns = [
        estimate(Metric::Kib),
        estimate(Metric::OwedKib),
        SeriesColumn::median(Metric::Writes),
        SeriesColumn::median(Metric::Flushes),
        estimate(Metric::NandKib),
        amplification(),
        of_wear(Metric::Rounding),
        of_wear(Metric::Copying),
        of_wear(Metric::Rewrites),
        years(),
        steady(),
    ];
    of_section("Bytes per request", section, columns)
}

/// When the load was steady.
pub(super) fn steady() -> SeriesColumn {
    SeriesColumn::new("steady after", |one| {
        let steady = one.trials.last().and_then(|one| one.steadiness.as_ref());
        or_nothing(steady.map(|steady| {
            if steady.reached {
                format!("{} s", thousands(steady.seconds))
            } else {
                "not yet".to_owned()
            }
        }))
    })
}

/// A median with its interval in one cell, unless all rounds were the same.
pub(super) fn estimate(metric: Metric) -> SeriesColumn {
    SeriesColumn::new(metric.description().heading, move |one| {
        or_nothing(one.estimate(metric).map(|one| {
            if one.low < one.high {
                format!("{} ({})", short(one.median), interval(&one, short))
            } else {
                short(one.median)
            }
        }))
    })
}

/// What the flash makes of a byte; with a mark where that is too good to be believed.
fn amplification() -> SeriesColumn {
    SeriesColumn::new(Metric::Amplification.description().heading, |one| {
        or_nothing(summary_text::wear(one).and_then(|trial| {
            let is_doubtful = summary_text::is_seldom_rewritten(trial);
            let mark = if is_doubtful { "*" } else { "" };
            Some(format!("{}{mark}", two(trial.get(Metric::Amplification)?)))
        }))
    })
}

fn years() -> SeriesColumn {
    SeriesColumn::new(Metric::Years.description().heading, |one| {
        or_nothing(summary_text::years(one).map(short))
    })
}

pub(super) fn sizes_columns() -> [SeriesColumn; 2] {
    [
        SeriesColumn::new("MB loaded", |one| or_nothing(loaded(one).map(short))),
        SeriesColumn::new("MB at the end", |one| or_nothing(at_end(one).map(short))),
    ]
}

pub(super) fn sizes_table(section: &Section<'_>) -> Table {
    of_section("MB of data and indexes", section, sizes_columns())
}

fn brief_columns() -> impl Iterator<Item = SeriesColumn> {
    let median = SeriesColumn::median;
    let columns = [
        median(Metric::Kib),
        median(Metric::OwedKib),
        median(Metric::Writes),
        median(Metric::Flushes),
        median(Metric::RequestsPerSecond),
        median(Metric::NandKib),
        amplification(),
        years(),
    ];
    columns.into_iter().chain(sizes_columns())
}

/// What a terminal shows of the experiment, without its claims.
pub(crate) fn brief(amplify: &AmplifyResults) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, summary_text::summary(amplify))
        .into_iter()
        .collect();
    for section in sections(amplify) {
        let mut table = if section.part.is_of_updates() {
            of_section("", &section, curve::columns())
        } else {
            of_section("", &section, brief_columns())
        };
        table.corner = "".into();
        for one in &section.rows {
            if let Some(why) = summary_text::why_unsteady(one) {
                table.note(format!("{}: {why}", one.name()));
            }
        }
        blocks.extend(Block::titled(table));
    }
    let about = [summary_text::reading(amplify)]
        .into_iter()
        .chain(summary_text::about_flash(amplify))
        .chain([summary_text::STANDS_FOR.to_owned()]);
    let about = about.collect::<Vec<_>>().join(" ");
    blocks.extend(Block::prose(1, [about]));
    blocks.extend(views::preparation_sentence(preparation(
        &amplify.measurements,
    )));
    blocks
}
