//! What experiment `sync` gives to the page.

pub(super) mod charts;
pub(super) mod prose;
pub(super) mod safety;
pub(super) mod tables;

use landfall_results::view::chart::{Chart, Drawing, MOST_ROWS};
use landfall_results::{Metric, Series};

use super::part::{Chapter, Figure, Part, chapter};
use super::table;
use crate::Results;
use crate::section::Section;
use crate::sync::{SyncResults, sections};

/// Its part of the page; `charts` receives what is drawn.
pub(super) fn part(results: &Results, sync: &SyncResults, charts: &mut Vec<Chart>) -> Part {
    let mut shown = sections(sync);
    for section in &mut shown {
        section.in_memory = results.is_in_memory();
    }
    let first = safety::of(results, sync, charts);
    let rest = chapters(&shown, charts);
    Part {
        title: match first {
            Some(_) => "What a durable write costs, and whether it is safe",
            None => "What a durable write costs",
        }
        .to_owned(),
        sentences: if sync.series.iter().any(Series::is_measured) {
            prose::sentences(results, sync)
        } else {
            Vec::new()
        },
        front: first,
        chapters: rest,
        unmeasured: table::unmeasured(&sync.series),
        preparation: tables::preparation(sync),
    }
}

fn chapters(sections: &[Section<'_>], charts: &mut Vec<Chart>) -> Vec<Chapter> {
    let mut figures = |title, make: fn(&Section<'_>) -> Option<Chart>, axes: &[_]| {
        sections
            .iter()
            .filter(|section| axes.contains(&section.name()))
            .filter_map(|section| {
                let chart = make(section)?;
                let figure = figure(&chart, section, title);
                charts.push(chart);
                Some(figure)
            })
            .collect::<Vec<Figure>>()
    };
    // Where nothing is varied on its own, the strategies as they are named get all charts.
    let main: &[&str] = match sections {
        [only] if only.axis.is_none() => &["other"],
        _ => &["allocation", "method"],
    };
    let with_pages = [main, &["pages"]].concat();
    let measured = || {
        sections
            .iter()
            .flat_map(|section| section.rows.iter().map(move |(_, one)| (section, *one)))
            .filter(|(_, series)| series.is_measured())
    };
    let rates = if measured().any(|(section, series)| section.is_durable(series)) {
        "Durable writes per second"
    } else {
        "Writes per second, none of them durable"
    };
    let spread = if measured().any(|(_, series)| series.trials.len() > 1) {
        "A dot is the median over the rounds, a bar its 95% interval. Where bars overlap, do not conclude a difference from the chart."
    } else {
        "A dot is a single measurement. Without more rounds there are no intervals, and no difference is shown."
    };
    let all = ["allocation", "method", "size", "threads", "pages", "other"];
    let latency = "Latency";
    let costs = "What an operation costs the device";
    [
        chapter(rates, spread, figures(rates, charts::rates, &all)),
        chapter(
            latency,
            "How long an operation took, from the quickest to the slowest: 99 on the lower scale means that 99 of 100 took no longer. Both scales are logarithmic, and the lower one stretches the slow end. Each panel has one strategy in colour and the others in grey.",
            figures(latency, charts::latency, main),
        ),
        chapter(
            costs,
            "Counted by the kernel at the device, per operation. A sync that changes metadata writes the journal as well; each flush empties the disk's cache.",
            figures(costs, charts::costs, &with_pages),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn figure(chart: &Chart, section: &Section<'_>, chapter: &str) -> Figure {
    let measured = |test: &dyn Fn(&Series) -> bool| {
        let mut rows = section.rows.iter();
        rows.any(|(_, series)| series.is_measured() && test(series))
    };
    let mut legend = Vec::new();
    let lax = measured(&|series| !section.is_durable(series));
    let latency = matches!(chart.drawing, Drawing::Latency(_));
    let cost = matches!(chart.drawing, Drawing::Costs(_));
    let rate = !latency && !cost;
    if lax && rate {
        legend.push("A hollow dot is not durable: a power cut loses these writes.".to_owned());
    }
    if latency {
        legend.push("Microseconds against percentile.".to_owned());
    }
    if lax && latency {
        legend.push("Panels marked * are not durable.".to_owned());
    }
    if rate && section.axis.is_none() && section.rows.len() > MOST_ROWS {
        legend.push(format!(
            "The fastest {MOST_ROWS} of {} strategies, durable ones first.",
            section.rows.len()
        ));
    }
    let bounded = measured(&|series| {
        let requests = series.median(Metric::WriteRequests);
        requests.is_some() && series.median(Metric::Writes).is_none()
    });
    if cost && bounded {
        legend.push(
            "A hollow bar with ≤ is an upper bound: empty flushes could not be told from writes."
                .to_owned(),
        );
    }
    let table = tables::of(chart, section);
    Figure::new(chart, chapter, &section.title, legend.join(" "), table)
}
