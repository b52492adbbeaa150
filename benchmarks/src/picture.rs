//! Draws results as one SVG: for each phase a bar for each store, whose value is written beside it.
//!
//! Bars of a phase are to scale with each other, and not with those of another: their units differ. The colours fit a
//! light and a dark page.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;

use crate::Fallible;
use crate::results::{Figure, MORE_IS_BETTER, Phase, Results, show};

const WIDTH: f64 = 720.0;
/// Where bars begin, and how long the longest is.
const LEFT: f64 = 170.0;
const LONGEST: f64 = 310.0;
const ROW: f64 = 18.0;
const HEADING: f64 = 36.0;

/// Colours on a light page and on a dark one. Landfall's is the only strong one.
const COLOURS: [(&str, &str, &str); 7] = [
    ("landfall", "#c2410c", "#fb923c"),
    ("landfall, no checkpoint", "#e9a27c", "#9a5a35"),
    ("redb", "#8aa0b8", "#64788f"),
    ("lmdb", "#86b09a", "#5c8571"),
    ("fjall", "#a99bc4", "#7d6f9b"),
    ("canopydb", "#c2b280", "#8f8257"),
    ("rocksdb", "#9aa0a6", "#70757a"),
];

#[derive(Args)]
pub struct Options {
    /// Files that a workload wrote with --json
    #[arg(long, required = true, num_args = 1..)]
    json: Vec<PathBuf>,
    /// Where to draw it
    #[arg(long)]
    svg: PathBuf,
    /// Only the phase of this name; can be repeated
    #[arg(long)]
    phase: Vec<String>,
}

pub fn run(options: &Options) -> Fallible<()> {
    let mut all = Vec::new();
    for path in &options.json {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        let mut results: Results = serde_json::from_str(&text).map_err(|error| named(&error))?;
        let wanted = &options.phase;
        results
            .phases
            .retain(|phase| wanted.is_empty() || wanted.contains(&phase.name));
        if results.phases.is_empty() {
            return Err(named(&"there is no such phase in it").into());
        }
        all.push(results);
    }
    let written = std::fs::write(&options.svg, draw(&all)?);
    Ok(written.map_err(|error| format!("cannot write {}: {error}", options.svg.display()))?)
}

fn draw(all: &[Results]) -> Result<String, std::fmt::Error> {
    let mut body = String::new();
    let mut y = 0.0;
    for results in all {
        y += HEADING;
        let title = escaped(&results.workload);
        writeln!(body, r#"<text class="title" x="12" y="{y}">{title}</text>"#)?;
        for phase in &results.phases {
            y += HEADING;
            draw_phase(&mut body, results, phase, y)?;
            y += ROW * phase.figures.len() as f64;
        }
    }
    let height = y + 16.0;
    page(&summary(all), WIDTH, height, &body)
}

/// An SVG with this in it, which is light or dark as the page around it. `cN` fills with a colour and `sN` strokes with it.
pub fn page(label: &str, width: f64, height: f64, body: &str) -> Result<String, std::fmt::Error> {
    let mut text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{}">
<style>
text {{ font: 12px system-ui, sans-serif; fill: #1f2328; }}
.title {{ font-size: 18px; font-weight: 600; }}
.phase, .own {{ font-weight: 600; }}
.quiet {{ fill: #59636e; }}
.spread {{ stroke: #1f2328; stroke-width: 1.5; }}
.grid {{ stroke: #d1d9e0; }}
.line {{ fill: none; stroke-width: 1.5; }}
.halo {{ stroke: #ffffff; stroke-width: 4; paint-order: stroke; }}
.paper {{ fill: #ffffff; }}
"#,
        escaped(label)
    );
    for (at, (_, light, _)) in COLOURS.iter().enumerate() {
        writeln!(
            text,
            ".c{at} {{ fill: {light}; }} .s{at} {{ stroke: {light}; }}"
        )?;
    }
    text += "@media (prefers-color-scheme: dark) {\ntext { fill: #e6edf3; }\n.quiet { fill: #9198a1; }\n\
             .spread { stroke: #e6edf3; }\n.grid { stroke: #3d444d; }\n.halo { stroke: #0d1117; }\n\
             .paper { fill: #0d1117; }\n";
    for (at, (_, _, dark)) in COLOURS.iter().enumerate() {
        writeln!(
            text,
            ".c{at} {{ fill: {dark}; }} .s{at} {{ stroke: {dark}; }}"
        )?;
    }
    writeln!(text, "}}\n</style>")?;
    writeln!(text, r#"<rect class="paper" width="100%" height="100%"/>"#)?;
    Ok(text + body + "</svg>\n")
}

/// Which colour a store has.
pub fn colour(store: &str) -> usize {
    let known = COLOURS.iter().position(|(name, ..)| *name == store);
    known.unwrap_or(COLOURS.len() - 1)
}

fn draw_phase(
    body: &mut String,
    results: &Results,
    phase: &Phase,
    top: f64,
) -> Result<(), std::fmt::Error> {
    let (unit, better) = match phase.unit.as_str() {
        MORE_IS_BETTER => ("per second", "more is better"),
        unit => (unit, "less is better"),
    };
    writeln!(
        body,
        r#"<text x="12" y="{top}"><tspan class="phase">{}</tspan><tspan class="quiet" dx="8">{}, {better}</tspan></text>"#,
        escaped(&phase.name),
        escaped(unit)
    )?;
    let most = phase.figures.iter().map(|figure| figure.max);
    let scale = LONGEST / most.fold(f64::MIN_POSITIVE, f64::max);
    let figures = results.engines.iter().map(|engine| phase.of(&engine.name));
    for (at, figure) in figures.flatten().enumerate() {
        draw_bar(body, figure, scale, top + 6.0 + ROW * at as f64)?;
    }
    Ok(())
}

fn draw_bar(
    body: &mut String,
    figure: &Figure,
    scale: f64,
    top: f64,
) -> Result<(), std::fmt::Error> {
    let colour = colour(&figure.engine);
    let class = match figure.engine.as_str() {
        "landfall" => "own",
        _ => "quiet",
    };
    let (base, middle) = (top + 13.0, top + ROW / 2.0);
    let long = (figure.median * scale).max(1.0);
    let mut end = LEFT + long;
    writeln!(
        body,
        r#"<text class="{class}" x="{:.0}" y="{base}" text-anchor="end">{}</text><rect class="c{colour}" x="{LEFT}" y="{}" width="{long:.1}" height="{}" rx="2"/>"#,
        LEFT - 8.0,
        escaped(&figure.engine),
        top + 2.0,
        ROW - 4.0
    )?;
    let mut text = show(figure.median);
    if figure.rounds.len() > 1 {
        let (low, high) = (LEFT + figure.min * scale, LEFT + figure.max * scale);
        writeln!(
            body,
            r#"<line class="spread" x1="{low:.1}" x2="{high:.1}" y1="{middle}" y2="{middle}"/>"#
        )?;
        text += &format!(" ({}–{})", show(figure.min), show(figure.max));
        end = end.max(high);
    }
    writeln!(
        body,
        r#"<text class="{class}" x="{:.1}" y="{base}">{text}</text>"#,
        end + 6.0
    )
}

/// What is read aloud.
fn summary(all: &[Results]) -> String {
    let names: Vec<&str> = all
        .iter()
        .map(|results| results.workload.as_str())
        .collect();
    format!("Embedded key-value stores compared: {}", names.join(", "))
}

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}
