//! Draws what `examples/buffer_curve.rs` of the crate `landfall` printed: bytes written for each byte updated, by the percent of the
//! buffer, on a logarithmic scale. Measured are points, the formula is a line. Other stores have marks to the right.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use crate::Fallible;
use crate::picture::{colour, escaped, page};
use crate::results::show;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 430.0;
const TOP: f64 = 70.0;
const BOTTOM: f64 = 340.0;
/// Where the groups of marks stand, and how far apart.
const GROUPS: f64 = 458.0;
const GROUP: f64 = 130.0;
/// Values that the scale is labelled with.
const LABELS: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];
/// A curve's colour: that of one of the stores in other pictures.
const CURVES: [&str; 3] = ["landfall", "redb", "lmdb"];

#[derive(Args)]
pub struct Options {
    /// What the example printed, and what it is to be called: NAME=FILE
    #[arg(long, required = true, value_name = "NAME=FILE")]
    curve: Vec<Curve>,
    /// Marks of stores beside the curves; `|` begins another line of the title
    #[arg(long, value_name = "TITLE:STORE=BYTES,…")]
    marks: Vec<Marks>,
    /// Where to draw it
    #[arg(long)]
    svg: PathBuf,
}

/// A column of points.
#[derive(Clone, Debug, PartialEq)]
struct Curve {
    name: String,
    points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    percent: f64,
    measured: f64,
    formula: f64,
}

impl FromStr for Curve {
    type Err = String;

    fn from_str(text: &str) -> Result<Curve, String> {
        let (name, path) = text.split_once('=').ok_or("it is NAME=FILE")?;
        let table = std::fs::read_to_string(Path::new(path));
        let table = table.map_err(|error| format!("{path}: {error}"))?;
        let points = points(&table).ok_or_else(|| format!("{path} is no table of the example"))?;
        Ok(Curve {
            name: name.to_owned(),
            points,
        })
    }
}

/// The points of a table in Markdown, if it is one of the example.
fn points(table: &str) -> Option<Vec<Point>> {
    let mut lines = table.lines().filter(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let head = cells(lines.next()?);
    let column = |name| head.iter().position(|one| one == name);
    let columns = (column("buffer")?, column("all")?, column("formula")?);
    let number = |text: &String| text.trim_end_matches('%').parse::<f64>().ok();
    let points: Option<Vec<Point>> = lines
        .skip(1)
        .map(|line| {
            let cells = cells(line);
            Some(Point {
                percent: number(cells.get(columns.0)?)?,
                measured: number(cells.get(columns.1)?)?,
                formula: number(cells.get(columns.2)?)?,
            })
        })
        .collect();
    points.filter(|points| !points.is_empty())
}

#[derive(Clone, Debug, PartialEq)]
struct Marks {
    title: String,
    stores: Vec<(String, f64)>,
}

impl FromStr for Marks {
    type Err = String;

    fn from_str(text: &str) -> Result<Marks, String> {
        let (title, stores) = text.split_once(':').ok_or("it is TITLE:STORE=BYTES,…")?;
        let store = |text: &str| {
            let (name, bytes) = text.split_once('=')?;
            Some((name.to_owned(), bytes.parse().ok()?))
        };
        let stores: Option<Vec<_>> = stores.split(',').map(store).collect();
        Ok(Marks {
            title: title.to_owned(),
            stores: stores.ok_or("a store is STORE=BYTES")?,
        })
    }
}

pub fn run(options: &Options) -> Fallible<()> {
    let written = std::fs::write(&options.svg, draw(&options.curve, &options.marks)?);
    Ok(written.map_err(|error| format!("cannot write {}: {error}", options.svg.display()))?)
}

/// Where values lie.
struct Axes {
    most_percent: f64,
    /// Of bytes.
    least: f64,
    most: f64,
}

impl Axes {
    fn of(curves: &[Curve], marks: &[Marks]) -> Axes {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let marked = marks.iter().flat_map(|one| &one.stores).map(|one| one.1);
        let bytes: Vec<f64> = points()
            .flat_map(|point| [point.measured, point.formula])
            .chain(marked)
            .collect();
        Axes {
            most_percent: points().map(|point| point.percent).fold(1.0, f64::max),
            least: bytes.iter().copied().fold(1.0, f64::min),
            most: bytes.iter().copied().fold(1.0, f64::max) * 1.2,
        }
    }

    fn x(&self, percent: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * percent / self.most_percent
    }

    fn y(&self, bytes: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * (bytes / self.least).ln() / (self.most / self.least).ln()
    }
}

fn draw(curves: &[Curve], marks: &[Marks]) -> Result<String, std::fmt::Error> {
    let axes = Axes::of(curves, marks);
    let mut body = String::from(
        r#"<text class="title" x="12" y="30">Bytes written for each byte updated, by size of the buffer</text>
"#,
    );
    draw_scales(&mut body, &axes, curves)?;
    for (at, curve) in curves.iter().enumerate() {
        draw_curve(&mut body, &axes, curve, at)?;
    }
    for (at, marks) in marks.iter().enumerate() {
        draw_marks(&mut body, &axes, marks, GROUPS + GROUP * at as f64)?;
    }
    let label = "Bytes written for each byte updated, by the percent of the buffer";
    page(label, WIDTH, HEIGHT, &body)
}

fn draw_scales(body: &mut String, axes: &Axes, curves: &[Curve]) -> std::fmt::Result {
    let end = WIDTH - 12.0;
    let labels = LABELS
        .iter()
        .filter(|one| (axes.least..axes.most).contains(*one));
    for bytes in labels {
        let y = axes.y(*bytes);
        writeln!(
            body,
            r#"<line class="grid" x1="{LEFT}" x2="{end}" y1="{y:.1}" y2="{y:.1}"/><text class="quiet" x="{}" y="{:.1}" text-anchor="end">{bytes}</text>"#,
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    let mut percents: Vec<f64> = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|point| point.percent))
        .collect();
    percents.sort_by(f64::total_cmp);
    percents.dedup();
    for percent in percents {
        writeln!(
            body,
            r#"<text class="quiet" x="{:.1}" y="{}" text-anchor="middle">{percent}</text>"#,
            axes.x(percent),
            BOTTOM + 20.0
        )?;
    }
    writeln!(
        body,
        r#"<text class="quiet" x="{}" y="{}" text-anchor="middle">buffer_percent: points are measured, lines are the formula</text>"#,
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 42.0
    )
}

fn draw_curve(body: &mut String, axes: &Axes, curve: &Curve, at: usize) -> std::fmt::Result {
    let colour = colour(CURVES[at % CURVES.len()]);
    let mut line = String::new();
    for point in &curve.points {
        let (x, y) = (axes.x(point.percent), axes.y(point.formula));
        write!(line, "{x:.1},{y:.1} ")?;
    }
    let line = line.trim_end();
    writeln!(
        body,
        r#"<polyline class="line s{colour}" points="{line}"/>"#
    )?;
    for point in &curve.points {
        let (x, y) = (axes.x(point.percent), axes.y(point.measured));
        writeln!(
            body,
            r#"<circle class="c{colour}" cx="{x:.1}" cy="{y:.1}" r="4.5"><title>{}%: {}, formula {}</title></circle>"#,
            point.percent,
            show(point.measured),
            show(point.formula)
        )?;
    }
    // The names stand in the corner, where no curve comes.
    let y = TOP + 10.0 + 20.0 * at as f64;
    writeln!(
        body,
        r#"<circle class="c{colour}" cx="{}" cy="{}" r="4.5"/><text x="{}" y="{y}">{}</text>"#,
        RIGHT - 200.0,
        y - 4.0,
        RIGHT - 188.0,
        escaped(&curve.name)
    )
}

fn draw_marks(body: &mut String, axes: &Axes, marks: &Marks, x: f64) -> std::fmt::Result {
    for (at, line) in marks.title.split('|').enumerate() {
        writeln!(
            body,
            r#"<text class="quiet" x="{x}" y="{}">{}</text>"#,
            BOTTOM + 20.0 + 16.0 * at as f64,
            escaped(line)
        )?;
    }
    for (name, bytes) in &marks.stores {
        let store = name.split(' ').next().unwrap_or_default().to_lowercase();
        let (colour, y) = (colour(&store), axes.y(*bytes));
        writeln!(
            body,
            r#"<rect class="c{colour}" x="{x}" y="{:.1}" width="9" height="9"/><text class="halo" x="{}" y="{:.1}">{} {}</text>"#,
            y - 4.5,
            x + 14.0,
            y + 4.0,
            escaped(name),
            show(*bytes)
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_example_is_a_curve() {
        let table = "| buffer | leaves | all | formula |\n|---|---|---|---|\n| 0% | 25 | 25.4 | 26.1 |\n| 11% | 2 | 2.9 | 2.92 |\n";
        let point = |percent, measured, formula| Point {
            percent,
            measured,
            formula,
        };
        assert_eq!(
            points(table),
            Some(vec![point(0.0, 25.4, 26.1), point(11.0, 2.9, 2.92)])
        );
        for other in [
            "",
            "| buffer | all |\n|---|---|\n| 0% | 1 |\n",
            "| buffer | all | formula |\n",
        ] {
            assert_eq!(points(other), None, "{other}");
        }
    }

    #[test]
    fn fewer_bytes_are_lower_and_a_larger_buffer_is_to_the_right() {
        let curve = Curve {
            name: "uniform".into(),
            points: vec![Point {
                percent: 16.0,
                measured: 2.0,
                formula: 20.0,
            }],
        };
        let axes = Axes::of(&[curve], &[]);
        assert!(axes.y(2.0) > axes.y(20.0) && axes.y(20.0) > TOP && axes.y(1.0) == BOTTOM);
        assert_eq!((axes.x(0.0), axes.x(16.0)), (LEFT, RIGHT));
    }

    #[test]
    fn marks_are_a_title_and_stores() {
        let marks: Marks = "40 times:RocksDB=16.0,landfall 11%=5.21".parse().unwrap();
        assert_eq!(marks.title, "40 times");
        assert_eq!(marks.stores[1], ("landfall 11%".into(), 5.21));
        for wrong in ["RocksDB=1", "a:b", "a:b=c"] {
            wrong.parse::<Marks>().unwrap_err();
        }
    }
}
