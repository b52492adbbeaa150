//! The curve: what Landfall's store writes, wears, reads and takes along its knob, and other databases beside it.
//!
//! It is drawn wherever the store was measured at two positions of the knob or more. Where rows are updated at random, bytes are
//! told for each byte that is updated, and the store's formula has a line; elsewhere they are told per request.

use landfall_results::view::chart::{
    Chart, Drawing, Knob, KnobLine, KnobMark, KnobPanel, KnobPoint, is_wide,
};
use landfall_results::view::{SeriesColumn, Table, or_nothing};
use landfall_results::{Metric, Series};

use super::tables::{estimate, of_section, sizes_columns, steady};
use crate::amplify::Section;
use crate::amplify::summary_text::flash_per_byte;
use crate::numbers::short;
use crate::stats::Estimate;

/// What lines and marks are of; their names.
const SERIES: [&str; 3] = ["at the device", "in flash", "at the device, by formula"];
const DEVICE: usize = 0;
const FLASH: usize = 1;
const FORMULA: usize = 2;

const PER_BYTE: &str = "bytes written for each byte updated";
const PER_REQUEST: &str = "KiB written per request";

/// A figure of a series with its interval.
type Value = fn(&Series) -> Option<Estimate>;

/// What is drawn of a series, and how.
struct Curve {
    series: usize,
    is_computed: bool,
    value: Value,
}

const fn measured(series: usize, value: Value) -> Curve {
    Curve {
        series,
        is_computed: false,
        value,
    }
}

/// The chart of a section, if there is a curve in it.
pub(super) fn chart(section: &Section<'_>) -> Option<Chart> {
    let rows = || section.rows.iter().filter(|one| one.is_measured());
    let mut along: Vec<(f64, &Series)> = rows()
        .filter_map(|one| Some((f64::from(one.axes.buffer?), *one)))
        .collect();
    along.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let mut positions: Vec<f64> = along.iter().map(|(at, _)| *at).collect();
    positions.dedup();
    if positions.len() < 2 {
        return None;
    }
    let written = written(section);
    let most = |one: &Series| written(one).map_or(0.0, |bytes| bytes.median);
    let mut beside: Vec<&Series> = rows()
        .filter(|one| one.axes.buffer.is_none())
        .copied()
        .collect();
    beside.sort_by(|one, other| most(other).total_cmp(&most(one)));
    let panel = |(name, curves): (&'static str, Vec<Curve>)| panel(name, &curves, &along, &beside);
    let knob = Knob {
        axis: "buffer, %".into(),
        series: SERIES.map(Into::into).into(),
        beside: beside.iter().map(|one| label(one)).collect(),
        panels: panels(section)
            .into_iter()
            .map(panel)
            .filter(|panel| !panel.lines.is_empty())
            .collect(),
        positions,
    };
    Chart::new(
        format!("amplify-{}", section.part.name()),
        Drawing::Knob(knob),
    )
    .if_any()
}

/// The database alone: each stands beside a curve once.
fn label(one: &Series) -> String {
    one.axes.database.clone().unwrap_or_else(|| one.name())
}

fn written(section: &Section<'_>) -> Value {
    if section.part.is_of_updates() {
        |one| one.estimate(Metric::WrittenPerByte)
    } else {
        |one| one.estimate(Metric::Kib)
    }
}

fn panels(section: &Section<'_>) -> [(&'static str, Vec<Curve>); 3] {
    let device = measured(DEVICE, written(section));
    let reads = vec![measured(DEVICE, |one| one.estimate(Metric::Reads))];
    let space = vec![measured(DEVICE, megabytes)];
    if section.part.is_of_updates() {
        let formula = Curve {
            series: FORMULA,
            is_computed: true,
            value: |one| one.estimate(Metric::ForecastPerByte),
        };
        let bytes = vec![formula, measured(FLASH, flash_per_byte), device];
        [
            (PER_BYTE, bytes),
            ("reads per 100 rows updated", reads),
            ("MB at the end", space),
        ]
    } else {
        let flash = measured(FLASH, |one| one.estimate(Metric::NandKib));
        [
            (PER_REQUEST, vec![flash, device]),
            ("reads per request", reads),
            ("MB at the end", space),
        ]
    }
}

fn megabytes(one: &Series) -> Option<Estimate> {
    let bytes = one.estimate(Metric::DatabaseBytes)?;
    let of = |bytes| one.data_bytes(bytes) / 1e6;
    Some(Estimate {
        median: of(bytes.median),
        low: of(bytes.low),
        high: of(bytes.high),
    })
}

fn panel(
    name: &'static str,
    curves: &[Curve],
    along: &[(f64, &Series)],
    beside: &[&Series],
) -> KnobPanel {
    let line = |curve: &Curve| KnobLine {
        series: curve.series,
        is_computed: curve.is_computed,
        points: along
            .iter()
            .filter_map(|(x, one)| {
                let value = (curve.value)(one)?;
                Some(KnobPoint {
                    x: *x,
                    value: value.median,
                    low: value.low,
                    high: value.high,
                    text: short(value.median),
                })
            })
            .collect(),
    };
    let lines = curves.iter().map(line);
    let lines: Vec<KnobLine> = lines.filter(|line| !line.points.is_empty()).collect();
    let mark = |curve: &Curve, of: usize, one: &Series| {
        let value = (curve.value)(one)?;
        Some(KnobMark {
            of,
            series: curve.series,
            value: value.median,
            low: value.low,
            high: value.high,
            text: short(value.median),
        })
    };
    let marks = beside.iter().enumerate().flat_map(|(of, one)| {
        let curves = curves.iter().filter(|curve| !curve.is_computed);
        curves.filter_map(move |curve| mark(curve, of, one))
    });
    let marks: Vec<KnobMark> = marks.collect();
    let points = lines.iter().flat_map(|line| &line.points);
    let values = points
        .map(|point| point.value)
        .chain(marks.iter().map(|mark| mark.value));
    KnobPanel {
        name: name.into(),
        log: is_wide(values),
        lines,
        marks,
    }
}

/// How the chart is read.
pub(super) fn legend(section: &Section<'_>) -> &'static str {
    if section.part.is_of_updates() {
        "Left, Landfall's store by its buffer, in percent of what leaves take: points are measured, the dashed line is its own formula with the log as counted. Right, other databases with as much memory."
    } else {
        "Left, Landfall's store by its buffer, in percent of what leaves take. Right, other databases with as much memory."
    }
}

/// The columns that a curve is drawn from.
pub(super) fn columns() -> impl IntoIterator<Item = SeriesColumn> {
    let flash = SeriesColumn::new("flash bytes/byte", |one| {
        or_nothing(flash_per_byte(one).map(|bytes| short(bytes.median)))
    });
    [
        estimate(Metric::WrittenPerByte),
        estimate(Metric::ForecastPerByte),
        flash,
        SeriesColumn::median(Metric::Reads),
        SeriesColumn::median(Metric::Flushes),
    ]
    .into_iter()
    .chain(sizes_columns())
}

/// The table beneath the chart.
pub(super) fn table(section: &Section<'_>) -> Table {
    let columns = columns().into_iter().chain([steady()]);
    of_section("Bytes for each byte updated", section, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amplify::fixtures::{measured, results, updated};
    use crate::amplify::sections;

    fn knob(found: &crate::amplify::AmplifyResults) -> Option<Knob> {
        let sections = sections(found);
        match chart(sections.first()?)?.drawing {
            Drawing::Knob(knob) => Some(knob),
            _ => None,
        }
    }

    #[test]
    fn the_store_is_along_the_knob_and_the_heaviest_of_the_others_is_first_beside_it() {
        let mut unsupported = updated("uniform myrocks zstd", 9.0, None);
        unsupported.trials.clear();
        unsupported.summarize();
        let found = results(vec![
            updated("uniform buffer 11%", 4.0, 3.5),
            updated("uniform buffer 0%", 16.0, 15.0),
            updated("uniform sqlite", 40.0, None),
            updated("uniform innodb 16k", 300.0, None),
            unsupported,
        ]);
        let knob = knob(&found).unwrap();
        assert_eq!(knob.positions, [0.0, 11.0]);
        assert_eq!(knob.beside, ["mariadb", "sqlite"]);
        let [bytes, reads, space] = &knob.panels[..] else {
            panic!("{knob:?}")
        };
        type Shown<'a> = (usize, bool, Vec<(f64, &'a str)>);
        let lines: Vec<Shown<'_>> = bytes
            .lines
            .iter()
            .map(|line| {
                let points = line.points.iter().map(|one| (one.x, one.text.as_str()));
                (line.series, line.is_computed, points.collect())
            })
            .collect();
        assert_eq!(
            lines,
            [
                (FORMULA, true, vec![(0.0, "15.0"), (11.0, "3.50")]),
                // The fixture's drive programs two and a half times what is written.
                (FLASH, false, vec![(0.0, "40.0"), (11.0, "10.0")]),
                (DEVICE, false, vec![(0.0, "16.0"), (11.0, "4.00")]),
            ]
        );
        let marks = bytes.marks.iter();
        let marks: Vec<(usize, usize, f64)> = marks
            .map(|one| (one.of, one.series, one.value.round()))
            .collect();
        assert_eq!(
            marks,
            [
                (0, FLASH, 750.0),
                (0, DEVICE, 300.0),
                (1, FLASH, 100.0),
                (1, DEVICE, 40.0)
            ]
        );
        assert!(bytes.log && !reads.log && !space.log);
        // Of the bytes 4 points, a line and 4 marks; of the others 2 points and 2 marks.
        assert_eq!(knob.marks(), 9 + 4 + 4);
    }

    #[test]
    fn one_position_is_no_curve_and_linkbench_has_no_formula() {
        let one = results(vec![updated("uniform buffer 0%", 16.0, 15.0)]);
        assert_eq!(knob(&one), None);
        let found = results(vec![
            measured("landfall buffer 0%", 0.9, 80),
            measured("landfall buffer 2%", 0.5, 80),
            measured("innodb 16k", 48.0, 150),
        ]);
        let sections = sections(&found);
        let buffer = sections
            .iter()
            .find(|one| one.part == crate::amplify::Part::Buffer);
        let Some(Drawing::Knob(knob)) = buffer.and_then(chart).map(|chart| chart.drawing) else {
            panic!("no curve")
        };
        assert_eq!(knob.panels[0].name, PER_REQUEST);
        assert!(
            knob.panels[0]
                .lines
                .iter()
                .all(|line| line.series != FORMULA)
        );
        assert_eq!(knob.beside, ["mariadb"]);
    }

    #[test]
    fn its_table_says_what_the_formula_expects() {
        let found = results(vec![
            updated("uniform buffer 0%", 16.0, 15.0),
            updated("uniform sqlite", 40.0, None),
        ]);
        let sections = sections(&found);
        let table = table(&sections[0]);
        let headings: Vec<&str> = table
            .columns
            .iter()
            .map(|one| one.heading.as_ref())
            .collect();
        assert_eq!(
            headings[..3],
            ["bytes/byte", "by formula", "flash bytes/byte"]
        );
    }
}
