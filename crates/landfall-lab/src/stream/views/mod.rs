//! What experiment `stream` gives to the page.

pub(crate) mod answer;
pub(super) mod charts;
pub(super) mod prose;
pub(crate) mod tables;
#[cfg(test)]
mod tests;

use crate::Results;
use crate::section::Section;
use crate::stream::{StreamResults, sections, summary_text};
use crate::views;
use landfall_results::view::chart::{Drawing, MOST_ROWS};
use landfall_results::view::{Chapter, Figure, Part};
use landfall_results::{Axis, Series};

/// Its part of the page.
pub(crate) fn part(results: &Results, stream: &StreamResults) -> Part {
    let in_memory = results.is_in_memory();
    let sections = sections(stream);
    let chapters: Vec<Chapter> = [
        by_size(stream, &sections, in_memory),
        by_others(stream, &sections, in_memory),
        costs(&sections),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_measured = stream.series.iter().any(Series::is_measured);
    Part {
        title: "What saving a large state costs".to_owned(),
        sentences: if is_measured {
            prose::sentences(results, stream)
        } else {
            Vec::new()
        },
        front: None,
        chapters,
        unmeasured: views::unmeasured(&stream.series),
        run: None,
        preparation: tables::preparation(stream),
    }
}

/// How the marks are to be read.
fn reading(stream: &StreamResults) -> &'static str {
    if stream.series.iter().any(|s| s.trials.len() > 1) {
        "A large mark is the median over the rounds, a bar its 95% interval, and a small faint mark a single round: hand-over often has two humps, and then no single number says much."
    } else {
        "A mark is a single measurement. Without more rounds there are no intervals, and no difference is shown."
    }
}

fn phases(in_memory: bool) -> &'static str {
    if in_memory {
        "In the hand-over the program gives all its bytes to the kernel, and must wait for it. The sync follows; in main memory there is nothing for it to do."
    } else {
        "In the hand-over the program gives all its bytes to the kernel, and must wait for it. The sync then takes until the bytes are durable: its MB/s are those of what the hand-over left to it. The total is the whole state over both."
    }
}

fn by_size(stream: &StreamResults, sections: &[Section<'_>], in_memory: bool) -> Option<Chapter> {
    let section = sections
        .iter()
        .find(|section| section.axis == Some(Axis::Size))?;
    let chart = charts::sizes(stream, section, in_memory)?;
    let mut legend = tables::around_sizes(stream);
    if let Drawing::Sizes(sizes) = &chart.drawing {
        legend.extend(sizes.legend());
    }
    let table = tables::rates(section);
    let methods = section.rows.iter();
    let methods = methods.filter_map(|(_, series)| series.axes.term(Axis::Method));
    let figure = Figure::new(section.title.as_str(), chart, legend.join(" "), table);
    let figure = figure.with_terms(methods);
    let introduction = introduction(stream, in_memory);
    Chapter::of_figures("MB per second by size", introduction, vec![figure])
}

fn by_others(stream: &StreamResults, sections: &[Section<'_>], in_memory: bool) -> Option<Chapter> {
    let axes = ["method", "allocation", "chunk", "other"];
    let title = if sections
        .iter()
        .any(|section| section.axis == Some(Axis::Size))
    {
        "MB per second at one size"
    } else {
        "MB per second"
    };
    let figures = of_axes(sections, &axes, |section| {
        let chart = charts::phases(section, in_memory)?;
        let legend = if section.rows.len() > MOST_ROWS {
            format!(
                "The {MOST_ROWS} of {} strategies with the fastest total.",
                section.rows.len()
            )
        } else {
            String::new()
        };
        let table = tables::rates(section);
        Some(Figure::new(section.title.as_str(), chart, legend, table).with_terms(section.terms()))
    });
    let introduction = match title {
        "MB per second" => introduction(stream, in_memory),
        _ => "What the bytes are handed over with, how the space came to be and how much a call takes, each on its own.".to_owned(),
    };
    Chapter::of_figures(title, introduction, figures)
}

fn introduction(stream: &StreamResults, in_memory: bool) -> String {
    let ceilings = summary_text::ceilings(stream);
    let texts = [
        Some(phases(in_memory)),
        Some(reading(stream)),
        ceilings.as_deref(),
        summary_text::data(stream.data),
        Some("A MB is 1,000,000 bytes."),
    ];
    texts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn costs(sections: &[Section<'_>]) -> Option<Chapter> {
    let axes: &[&str] = match sections {
        [only] if only.axis.is_none() => &["other"],
        _ => &["method", "allocation"],
    };
    let figures = of_axes(sections, axes, |section| {
        let chart = charts::costs(section)?;
        let table = tables::costs(section);
        Some(Figure::new(section.title.as_str(), chart, "", table).with_terms(section.terms()))
    });
    let introduction = "The longest stall is the longest single call of the hand-over: for so long the program cannot do anything else. Peak memory is that of this process, in which pages of a mapped file count. Medians over the rounds.";
    Chapter::of_figures("What it costs besides time", introduction, figures)
}

fn of_axes(
    sections: &[Section<'_>],
    axes: &[&str],
    make: impl Fn(&Section<'_>) -> Option<Figure>,
) -> Vec<Figure> {
    let shown = sections
        .iter()
        .filter(|section| axes.contains(&section.name()));
    shown.filter_map(make).collect()
}
