//! Columns, tables and charts that several experiments have.

use landfall_os::humanize::bytes_text;
use landfall_results::view::chart::{Bar, Chart, Costs, Drawing, Panel};
use landfall_results::view::{Block, Column, Part, Row, Table};
use landfall_results::{Metric, Series, numbers};

use crate::SiteResult;
use crate::numbers::two;
use crate::stats::median;

/// A part's heading and sentences alone.
pub(crate) fn in_sentences(part: Part) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(part.title)];
    blocks.extend(Block::prose(1, part.sentences));
    blocks
}

/// Those that could not be measured, by key, and why; nothing if all were.
pub(crate) fn unmeasured(series: &[Series]) -> Option<Table> {
    let missing = series.iter().filter(|one| !one.is_measured());
    let rows: Vec<Row> = missing
        .map(|one| {
            let reason = one.unsupported.as_deref();
            Row::without(&one.key, reason.unwrap_or(numbers::NOTHING))
        })
        .collect();
    let caption = "Strategies of the plan that could not be measured";
    (!rows.is_empty())
        .then(|| Table::new(caption, "Strategy", vec![Column::new("Why")]).with_rows(rows))
}

/// What preparations cost, which no figure of a trial holds: what, how much was written, and the seconds that took;
/// nothing if there were none.
pub(crate) fn preparation(caption: &str, rows: Vec<Row>) -> Option<Table> {
    let columns = vec![Column::new("written"), Column::new("seconds")];
    (!rows.is_empty()).then(|| Table::new(caption, "What", columns).with_rows(rows))
}

/// The images that were made for a run, as rows of such a table.
pub(crate) fn images(sites: &[SiteResult]) -> Vec<Row> {
    let made = sites.iter().filter(|site| site.preparation.bytes > 0);
    made.map(|site| {
        let made = site.preparation;
        Row::of(
            format!("{}, an image for the run", site.key),
            [bytes_text(made.bytes), two(made.seconds)],
        )
    })
    .collect()
}

/// The same as a sentence.
pub(crate) fn preparation_sentence(table: Option<Table>) -> Option<Block> {
    let rows = table?.rows;
    let costs = rows.iter().filter_map(|row| match row {
        Row::Cells { head, cells } => {
            let [written, seconds] = cells.as_slice() else {
                return None;
            };
            let (what, written) = (&head.text, &written.text);
            Some(format!("{what}: {written} in {} s", seconds.text))
        }
        Row::Group(_) | Row::Said(_) | Row::Without { .. } => None,
    });
    let costs: Vec<String> = costs.collect();
    let sentence = format!(
        "Preparation, in none of these figures: {}.",
        costs.join("; ")
    );
    Block::prose(1, [sentence])
}

/// What an operation of each of these costs the device, by these metrics, if its counters could be read.
pub(crate) fn device_costs<'a>(
    id: String,
    rows: impl Iterator<Item = (&'a str, &'a Series)>,
    metrics: &[Metric],
) -> Option<Chart> {
    let counted: Vec<_> = rows
        .filter(|(_, series)| series.median(Metric::WriteRequests).is_some())
        .collect();
    let panel = |metric: Metric| Panel {
        name: metric.description().label.into(),
        bars: counted
            .iter()
            .filter_map(|(label, series)| {
                let value = series.median(metric);
                let bound = match metric {
                    Metric::Writes => series.median(Metric::WriteRequests),
                    _ => None,
                };
                Some(Bar {
                    label: (*label).to_owned(),
                    value: value.or(bound)?,
                    bound: value.is_none(),
                    text: match metric {
                        Metric::Writes => series.writes_text(),
                        _ => series.text(metric),
                    },
                })
            })
            .collect(),
    };
    let labels = counted.iter().map(|(label, _)| (*label).to_owned());
    let costs = Costs {
        labels: labels.collect(),
        panels: metrics.iter().map(|metric| panel(*metric)).collect(),
    };
    (!counted.is_empty()).then(|| Chart::new(id, Drawing::Costs(costs)))
}

/// What preparing for one trial took, if anything did.
pub(crate) fn of_trial(series: &Series) -> Option<Row> {
    let of = |metric| median(&series.values(metric)).unwrap_or(0.0);
    let bytes = of(Metric::PreparationBytes);
    (bytes > 0.0).then(|| {
        let seconds = two(of(Metric::PreparationSeconds));
        Row::of(
            format!("{}, per trial", series.key),
            [bytes_text(bytes as u64), seconds],
        )
    })
}
