//! What experiment `amplify` gives to the page.

#[cfg(test)]
mod tests;

use super::charts::{Bar, Chart, Drawing, MOST_ROWS, Panel, Print};
use super::configuration::tables;
use super::part::{Chapter, Figure, Part, chapter};
use super::table::{Row, Table};
use crate::amplify::{self, AmplifyResults, Section, sections, sentences};
use crate::configuration::{ConfigurationResult, Summary};
use crate::numbers::{NOTHING, interval, short, thousands, two};
use crate::stats::Estimate;

/// Its part of the page; `charts` receives what is drawn.
pub(super) fn part(amplify: &AmplifyResults, charts: &mut Vec<Chart>) -> Part {
    let sections = sections(amplify);
    let chapters: Vec<Chapter> = [
        bytes(amplify, &sections, charts),
        sizes(&sections, charts),
        time(&sections),
    ]
    .into_iter()
    .flatten()
    .collect();
    Part {
        title: "How many bytes reach the device".to_owned(),
        sentences: sentences::summary(amplify),
        front: None,
        chapters,
        unmeasured: tables::unmeasured(&amplify.measurements),
        preparation: tables::preparation(&amplify.measurements),
    }
}

/// KiB per request at the device, and beside them what a drive makes of them.
fn bytes(
    amplify: &AmplifyResults,
    sections: &[Section<'_>],
    charts: &mut Vec<Chart>,
) -> Option<Chapter> {
    let title = "Bytes per request, at the device and in its flash";
    let figures = figures(sections, title, charts, |section| {
        let chart = panels(
            &format!("amplify-{}", section.id),
            section,
            &[
                ("KiB written", &|one| summary(one)?.kib.map(median), short),
                (
                    "KiB of flash",
                    &|one| summary(one)?.nand_kib.map(median),
                    short,
                ),
                ("writes", &|one| summary(one)?.device?.writes, two),
            ],
        )?;
        let legend = unsteady(section);
        Some((chart, legend, byte_table(section)))
    });
    let mut about = vec![sentences::reading(amplify)];
    about.extend(sentences::about_flash(amplify));
    about.push(sentences::STANDS_FOR.to_owned());
    chapter(title, about.join(" "), figures)
}

fn sizes(sections: &[Section<'_>], charts: &mut Vec<Chart>) -> Option<Chapter> {
    let title = "How large the database is";
    let figures = figures(sections, title, charts, |section| {
        if section.part == amplify::Part::Knobs {
            // The same data, whatever is set.
            return None;
        }
        let chart = panels(
            &format!("amplify-size-{}", section.id),
            section,
            &[
                ("MB after loading", &|one| loaded(one), short),
                ("MB at the end", &|one| at_end(one), short),
            ],
        )?;
        Some((chart, String::new(), size_table(section)))
    });
    let introduction = "Bytes that its files take on the disk, without those of an empty database: a server's own tables, and logs that are as large as they are told to be. A MB is 1,000,000 bytes.";
    chapter(title, introduction, figures)
}

/// Requests per second are no picture here: they are those of a recorder.
fn time(sections: &[Section<'_>]) -> Option<Chapter> {
    let labelled = sections.iter().flat_map(|section| {
        let own = section.rows.iter();
        own.map(|one| (one.name.clone(), *one))
    });
    let mut seen = Vec::new();
    let each_once = labelled.filter(|(name, _)| {
        let is_new = !seen.contains(name);
        seen.push(name.clone());
        is_new
    });
    let table = tables::measured("Requests, and what they cost".to_owned(), each_once);
    (!table.rows.is_empty()).then(|| Chapter {
        title: "Time, CPU and flushes",
        introduction: "How fast requests were is a matter of the device: on a recorder they wait for a program that counts, unless it was given the times of a disk. Byte ranks are not time ranks: what writes less may wait longer.".to_owned(),
        tables: vec![table],
        figures: Vec::new(),
    })
}

fn figures(
    sections: &[Section<'_>],
    title: &str,
    charts: &mut Vec<Chart>,
    make: impl Fn(&Section<'_>) -> Option<(Chart, String, Table)>,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    for section in sections {
        if let Some((chart, legend, table)) = make(section) {
            figures.push(Figure::new(&chart, title, &section.title, legend, table));
            charts.push(chart);
        }
    }
    figures
}

type Value<'a> = &'a dyn Fn(&ConfigurationResult) -> Option<f64>;

/// A panel for each figure, a bar for each configuration; panels that nothing is known for are left out.
fn panels(
    id: &str,
    section: &Section<'_>,
    all: &[(&'static str, Value<'_>, Print)],
) -> Option<Chart> {
    let rows = || {
        let measured = section.rows.iter().filter(|one| one.summary.is_some());
        measured.take(MOST_ROWS)
    };
    let panels = all.iter().map(|(name, value, print)| Panel {
        name,
        bars: rows()
            .filter_map(|one| {
                let value = value(one)?;
                Some(Bar {
                    label: one.name.clone(),
                    value,
                    bound: false,
                    text: print(value),
                })
            })
            .collect(),
    });
    Chart {
        id: id.to_owned(),
        drawing: Drawing::Costs {
            labels: rows().map(|one| one.name.clone()).collect(),
            panels: panels.filter(|panel| !panel.bars.is_empty()).collect(),
        },
    }
    .if_any()
}

fn summary(one: &ConfigurationResult) -> Option<&Summary> {
    one.summary.as_ref()
}

fn median(estimate: Estimate) -> f64 {
    estimate.median
}

fn loaded(one: &ConfigurationResult) -> Option<f64> {
    Some(one.data_bytes(one.loaded_bytes? as f64) / 1e6)
}

fn at_end(one: &ConfigurationResult) -> Option<f64> {
    let bytes = summary(one)?.database_bytes?.median;
    Some(one.data_bytes(bytes) / 1e6)
}

/// Which loads were not steady, and why.
fn unsteady(section: &Section<'_>) -> String {
    let said = section.rows.iter().filter_map(|one| {
        let why = sentences::why_unsteady(one)?;
        Some(format!("{}: {why}.", one.name))
    });
    said.collect::<Vec<_>>().join(" ")
}

fn byte_table(section: &Section<'_>) -> Table {
    let rows = section.rows.iter().map(|one| match &one.summary {
        Some(summary) => Row::of(one.name.clone(), byte_cells(one, summary)),
        None => not_measured(one),
    });
    Table {
        caption: format!("Bytes per request. {}", section.title),
        corner: "Configuration",
        columns: vec![
            "KiB written",
            "owed",
            "writes",
            "flushes",
            "KiB of flash",
            "NAND bytes per byte",
            "by rounding",
            "by copying",
            "rewrites",
            "years of a drive",
            "steady after",
        ],
        rows: rows.collect(),
        ..Table::default()
    }
}

fn byte_cells(one: &ConfigurationResult, summary: &Summary) -> Vec<String> {
    let or_nothing = |text: Option<String>| text.unwrap_or_else(|| NOTHING.to_owned());
    let estimate = |estimate: Option<Estimate>| {
        or_nothing(estimate.map(|one| {
            if one.low < one.high {
                format!("{} ({})", short(one.median), interval(&one, short))
            } else {
                short(one.median)
            }
        }))
    };
    let wear = sentences::wear(one).map(|(wear, _)| wear);
    let mark = match wear {
        Some(wear) if wear.rewrites < sentences::FEW_REWRITES => "*",
        _ => "",
    };
    let of_wear = |figure: fn(&crate::configuration::FlashWear) -> f64| {
        or_nothing(wear.as_ref().map(|wear| two(figure(wear))))
    };
    let steady = one
        .trials
        .last()
        .and_then(|trial| trial.steadiness.as_ref());
    vec![
        estimate(summary.kib),
        estimate(summary.owed_kib),
        or_nothing(summary.device.and_then(|device| device.writes).map(two)),
        or_nothing(summary.device.map(|device| two(device.flushes))),
        estimate(summary.nand_kib),
        or_nothing(wear.map(|wear| format!("{}{mark}", two(wear.amplification)))),
        of_wear(|wear| wear.rounding),
        of_wear(|wear| wear.copying),
        of_wear(|wear| wear.rewrites),
        or_nothing(sentences::years(one).map(short)),
        or_nothing(steady.map(|steady| {
            if steady.reached {
                format!("{} s", thousands(steady.seconds))
            } else {
                "not yet".to_owned()
            }
        })),
    ]
}

fn size_table(section: &Section<'_>) -> Table {
    let rows = section.rows.iter().map(|one| {
        let cell = |value: Option<f64>| value.map_or_else(|| NOTHING.to_owned(), short);
        match &one.summary {
            Some(_) => Row::of(one.name.clone(), vec![cell(loaded(one)), cell(at_end(one))]),
            None => not_measured(one),
        }
    });
    Table {
        caption: format!("MB of data and indexes. {}", section.title),
        corner: "Configuration",
        columns: vec!["after loading", "at the end"],
        rows: rows.collect(),
        ..Table::default()
    }
}

fn not_measured(one: &ConfigurationResult) -> Row {
    let reason = one.unsupported.as_deref().unwrap_or(NOTHING);
    Row::without(one.name.clone(), format!("not measured: {reason}"))
}
