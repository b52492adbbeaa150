//! What experiment `amplify` gives to the page.

mod curve;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use tables::brief;

use landfall_results::view::chart::{Bar, Chart, Costs, Drawing, MOST_ROWS, Panel};
use landfall_results::view::{Chapter, Figure, Part, Table};
use landfall_results::{Metric, Series};

use crate::amplify::{self, AmplifyResults, Section, sections, summary_text};
use crate::configuration::views::tables::{measured, preparation};
use crate::numbers::{Print, short, two};
use crate::views;
use tables::{at_end, bytes_table, loaded, sizes_table};

/// Its part of the page.
pub(crate) fn part(amplify: &AmplifyResults) -> Part {
    let sections = sections(amplify);
    let chapters: Vec<Chapter> = [bytes(amplify, &sections), sizes(&sections), time(&sections)]
        .into_iter()
        .flatten()
        .collect();
    Part {
        title: "How many bytes reach the device".to_owned(),
        sentences: summary_text::summary(amplify),
        front: None,
        chapters,
        unmeasured: views::unmeasured(&amplify.measurements.series),
        run: None,
        preparation: preparation(&amplify.measurements),
    }
}

/// KiB per request at the device, and beside them what a drive makes of them.
fn bytes(amplify: &AmplifyResults, sections: &[Section<'_>]) -> Option<Chapter> {
    let figures = sections.iter().filter_map(|section| {
        if let Some(chart) = curve::chart(section) {
            let legend = format!("{} {}", curve::legend(section), unsteady(section));
            let table = table(section);
            return Some(Figure::new(
                section.title.as_str(),
                chart,
                legend.trim_end(),
                table,
            ));
        }
        let chart = panels(
            &format!("amplify-{}", section.part.name()),
            section,
            &[
                ("KiB written", &|one| one.median(Metric::Kib), short),
                ("KiB of flash", &|one| one.median(Metric::NandKib), short),
                ("writes", &|one| one.median(Metric::Writes), two),
            ],
        )?;
        Some(Figure::new(
            section.title.as_str(),
            chart,
            unsteady(section),
            table(section),
        ))
    });
    let mut about = vec![summary_text::reading(amplify)];
    about.extend(summary_text::about_flash(amplify));
    about.push(summary_text::STANDS_FOR.to_owned());
    Chapter::of_figures(
        "Bytes per request, at the device and in its flash",
        about.join(" "),
        figures.collect(),
    )
}

fn table(section: &Section<'_>) -> Table {
    if section.part.is_of_updates() {
        curve::table(section)
    } else {
        bytes_table(section)
    }
}

fn sizes(sections: &[Section<'_>]) -> Option<Chapter> {
    let figures = sections.iter().filter_map(|section| {
        // The same data, whatever is set; and what its curve has.
        if section.part == amplify::Part::Knobs || section.part.is_of_updates() {
            return None;
        }
        let chart = panels(
            &format!("amplify-size-{}", section.part.name()),
            section,
            &[
                ("MB after loading", &|one| loaded(one), short),
                ("MB at the end", &|one| at_end(one), short),
            ],
        )?;
        let table = sizes_table(section);
        Some(Figure::new(section.title.as_str(), chart, "", table))
    });
    let introduction = "Bytes that its files take on the disk, without those of an empty database: a server's own tables, and logs that are as large as they are told to be. A MB is 1,000,000 bytes.";
    Chapter::of_figures("How large the database is", introduction, figures.collect())
}

/// Requests per second are no picture here: they are those of a recorder.
fn time(sections: &[Section<'_>]) -> Option<Chapter> {
    let labelled = sections.iter().flat_map(|section| {
        let own = section.rows.iter();
        own.map(|one| (one.name(), *one))
    });
    let mut seen = Vec::new();
    let each_once = labelled.filter(|(name, _)| {
        let is_new = !seen.contains(name);
        seen.push(name.clone());
        is_new
    });
    let table = measured("Requests, and what they cost".to_owned(), each_once);
    (!table.rows.is_empty()).then(|| Chapter::of_table(
        "Time, CPU and flushes",
        "How fast requests were is a matter of the device: on a recorder they wait for a program that counts, unless it was given the times of a disk. Byte ranks are not time ranks: what writes less may wait longer.",
        table,
    ))
}

type Value<'a> = &'a dyn Fn(&Series) -> Option<f64>;

/// A panel for each figure, a bar for each configuration; panels that nothing is known for are left out.
fn panels(
    id: &str,
    section: &Section<'_>,
    all: &[(&'static str, Value<'_>, Print)],
) -> Option<Chart> {
    let rows = || {
        let measured = section.rows.iter().filter(|one| one.is_measured());
        measured.take(MOST_ROWS)
    };
    let panels = all.iter().map(|(name, value, print)| Panel {
        name: (*name).into(),
        bars: rows()
            .filter_map(|one| {
                let value = value(one)?;
                Some(Bar {
                    label: one.name(),
                    value,
                    bound: false,
                    text: print(value),
                })
            })
            .collect(),
    });
    let costs = Costs {
        labels: rows().map(|one| one.name()).collect(),
        panels: panels.filter(|panel| !panel.bars.is_empty()).collect(),
    };
    Chart::new(id, Drawing::Costs(costs)).if_any()
}

/// Which loads were not steady, and why.
fn unsteady(section: &Section<'_>) -> String {
    let said = section.rows.iter().filter_map(|one| {
        let why = summary_text::why_unsteady(one)?;
        Some(format!("{}: {why}.", one.name()))
    });
    said.collect::<Vec<_>>().join(" ")
}
