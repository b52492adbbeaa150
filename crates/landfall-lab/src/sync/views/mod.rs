//! What experiment `sync` gives to the page.

mod answer;
mod charts;
mod lead;
mod prose;
mod safety;
mod tables;

pub(crate) use answer::answer;
pub(crate) use safety::proving_command;
pub(crate) use tables::brief;

use landfall_results::view::chart::{Chart, Drawing, MOST_ROWS};
use landfall_results::view::{Chapter, Figure, Part};
use landfall_results::{Metric, Series};

use crate::Results;
use crate::section::Section;
use crate::sync::{SyncResults, sections};
use crate::views;

/// Its part of the page.
pub(crate) fn part(results: &Results, sync: &SyncResults) -> Part {
    let mut shown = sections(sync);
    for section in &mut shown {
        section.in_memory = results.is_in_memory();
    }
    let proven = safety::of(results, sync);
    Part {
        title: match proven {
            Some(_) => "What a durable write costs, and whether it is safe",
            None => "What a durable write costs",
        }
        .to_owned(),
        sentences: if sync.series.iter().any(Series::is_measured) {
            prose::sentences(results, sync)
        } else {
            Vec::new()
        },
        front: safety::front(results, sync),
        chapters: proven.into_iter().chain(chapters(&shown)).collect(),
        unmeasured: views::unmeasured(&sync.series),
        run: None,
        preparation: tables::preparation(sync),
    }
}

fn chapters(sections: &[Section<'_>]) -> Vec<Chapter> {
    let figures = |make: fn(&Section<'_>) -> Option<Chart>, axes: &[_]| {
        sections
            .iter()
            .filter(|section| axes.contains(&section.name()))
            .filter_map(|section| Some(figure(make(section)?, section)))
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
    [
        Chapter::of_figures(rates, spread, figures(charts::rates, &all)),
        Chapter::of_figures(
            "Latency",
            "How long an operation took, from the quickest to the slowest: 99 on the lower scale means that 99 of 100 took no longer. Both scales are logarithmic, and the lower one stretches the slow end. Each panel has one strategy in colour and the others in grey.",
            figures(charts::latency, main),
        ),
        Chapter::of_figures(
            "What an operation costs the device",
            "Counted by the kernel at the device, per operation. A sync that changes metadata writes the journal as well; each flush empties the disk's cache.",
            figures(charts::costs, &with_pages),
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn figure(chart: Chart, section: &Section<'_>) -> Figure {
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
        legend.push("✕ before a name: not durable, a power cut loses these writes.".to_owned());
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
    let table = tables::of(&chart, section);
    Figure::new(section.title.as_str(), chart, legend.join(" "), table).with_terms(section.terms())
}
