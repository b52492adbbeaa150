//! The tables of experiment `stream`.

use std::fmt::Write as _;

use landfall_lab::numbers::{interval, short, thousands, two};
use landfall_lab::stats::{Spread, median};
use landfall_lab::stream::{Section, StreamResults, Summary, sections, sentences};
use landfall_os::humanize::bytes_text;

use super::layout::{at_least, or_nothing, plain_table, with_notes, wrapped};
use super::saving;
use crate::terminal::style::{FAINT, STRONG, styled};

/// Columns that a name gets, if it needs them.
const LONGEST_NAME: usize = 24;

/// Everything that the experiment found, without its claims.
pub(super) fn tables(stream: &StreamResults) -> String {
    let mut text = String::new();
    for section in sections(stream) {
        let _ = write!(
            text,
            "\n{}\n{}",
            styled(STRONG, &section.title),
            section_table(&section)
        );
        if section.axis == "size" {
            text.push_str(&around_sizes(stream));
        }
    }
    if let Some(ceilings) = sentences::ceilings(&stream.ceilings) {
        let _ = write!(text, "\n{}", wrapped(1, &ceilings));
    }
    if let Some(data) = sentences::data(stream.data) {
        text.push_str(&wrapped(1, data));
    }
    text.push_str(&preparation(stream));
    if let Some(saving) = &stream.saving {
        text.push_str(&saving::tables(saving));
    }
    text
}

fn section_table(section: &Section<'_>) -> String {
    // Labels on these axes are long, and the flushes of a state are few.
    let flushes = !["allocation", "other"].contains(&section.axis);
    let mut table = plain_table();
    let mut header = vec![
        "",
        "hand-over\nMB/s",
        "95%\ninterval",
        "\nmean ± sd",
        "sync\ns",
        "total\nMB/s",
        "95%\ninterval",
        "stall\nms",
        "peak\nMiB",
        "CPU\ns/GiB",
        "disk\nMiB",
    ];
    if flushes {
        header.push("flu-\nshes");
    }
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    let mut group = "";
    let mut widest = 0;
    for (label, strategy) in &section.rows {
        // The method is said once, above its rows.
        let own = label
            .strip_prefix(strategy.method.as_str())
            .and_then(|rest| rest.strip_prefix(", "));
        match (&strategy.summary, &strategy.unsupported) {
            (Some(summary), _) => {
                if own.is_some() && group != strategy.method {
                    group = &strategy.method;
                    table.add_row(vec![group]);
                }
                let label = own.map_or(label.clone(), |own| format!("  {own}"));
                widest = widest.max(label.chars().count()).max(group.chars().count());
                let mut row = strategy_row(label, summary);
                row.truncate(columns);
                table.add_row(row);
            }
            (None, reason) => notes.push(format!(
                "{label}: {}",
                reason.as_deref().unwrap_or("not measured")
            )),
        }
    }
    // Names are not broken, unless they are so long that figures would be.
    at_least(&mut table, 0, widest.min(LONGEST_NAME) as u16 + 1);
    with_notes(table, columns, notes)
}

fn strategy_row(label: String, summary: &Summary) -> Vec<String> {
    let of =
        |rate: Option<Spread>, print: fn(&Spread) -> String| or_nothing(rate.as_ref().map(print));
    let hand_over = summary.hand_over.mb_per_s;
    let total = summary.total.mb_per_s;
    vec![
        label,
        of(hand_over, |rate| megabytes(rate.estimate.median)),
        of(hand_over, |rate| interval(&rate.estimate, megabytes)),
        of(hand_over, |rate| {
            let deviation = megabytes(rate.standard_deviation);
            format!("{} ±{deviation}", megabytes(rate.mean))
        }),
        short(summary.sync.seconds.estimate.median),
        of(total, |rate| megabytes(rate.estimate.median)),
        of(total, |rate| interval(&rate.estimate, megabytes)),
        short(summary.longest_stall_ms.median),
        or_nothing(summary.peak_resident_mib.map(|peak| thousands(peak.median))),
        two(summary.cpu_s_per_gib.median),
        or_nothing(summary.device.map(|device| thousands(device.written_mib))),
        or_nothing(
            summary
                .device
                .map(|device| format!("{:.0}", device.flushes)),
        ),
    ]
}

/// MB per second. There are many of them in a line: four digits do without a comma.
fn megabytes(rate: f64) -> String {
    match rate {
        rate if rate < 9_999.5 => format!("{rate:.0}"),
        rate => thousands(rate),
    }
}

/// What the sizes show together, and what was left out of them.
fn around_sizes(stream: &StreamResults) -> String {
    let mut text = String::new();
    for wall in sentences::walls(stream) {
        text.push_str(&wrapped(1, &wall));
    }
    if !stream.sizes_left_out.is_empty() {
        let sizes: Vec<String> = stream
            .sizes_left_out
            .iter()
            .map(|size| bytes_text(*size))
            .collect();
        let note = format!(
            "left out for want of space, memory or time: {}",
            sizes.join(", ")
        );
        let _ = writeln!(text, "{}", styled(FAINT, wrapped(1, &note).trim_end()));
    }
    text
}

/// What preparations cost, since no figure of a trial holds it.
fn preparation(stream: &StreamResults) -> String {
    let costs: Vec<String> = stream
        .strategies
        .iter()
        .filter_map(|strategy| {
            let trials = || strategy.trials.iter().map(|trial| &trial.preparation);
            let bytes: Vec<f64> = trials().map(|prepared| prepared.bytes as f64).collect();
            let seconds: Vec<f64> = trials().map(|prepared| prepared.seconds).collect();
            let bytes = median(&bytes).filter(|bytes| *bytes > 0.0)?;
            Some(format!(
                "{} {} in {}",
                strategy.key,
                bytes_text(bytes as u64),
                sentences::seconds_text(median(&seconds)?)
            ))
        })
        .collect();
    if costs.is_empty() {
        return String::new();
    }
    let text = format!(
        "Preparation of a trial, in none of these figures: {}.",
        costs.join("; ")
    );
    format!("\n{}", wrapped(1, &text))
}

#[cfg(test)]
mod tests {
    use landfall_lab::numbers::NOTHING;
    use serde_json::{Value, json};

    use super::*;

    fn spread(median: f64) -> Value {
        json!({
            "mean": median,
            "standard_deviation": median / 2.0,
            "estimate": { "median": median, "low": median * 0.9, "high": median * 1.1 },
        })
    }

    fn strategy(allocation: &str, method: &str, size: u64, rate: f64) -> Value {
        let phase = || json!({ "seconds": spread(12.3), "mb_per_s": spread(rate) });
        json!({
            "key": format!("{allocation}/{method}/{size}"),
            "allocation": allocation, "method": method, "size": size, "chunk": 1 << 20,
            "unsupported": null,
            "summary": {
                "hand_over": phase(), "sync": phase(), "total": phase(),
                "longest_stall_ms": spread(12_345.6)["estimate"],
                "left_mib": spread(4_096.0)["estimate"],
                "peak_resident_mib": spread(12_345.6)["estimate"],
                "cpu_s_per_gib": spread(12.34)["estimate"],
                "device": {
                    "written_mib": 12_345.6, "write_requests": 1e5, "flushes": 12.0, "read_mib": 0.0
                },
            },
            "trials": [],
        })
    }

    fn results(strategies: Vec<Value>, data: &str) -> StreamResults {
        serde_json::from_value(json!({
            "plan": "standard", "rounds": 5, "data": data,
            "dirty_limits": null, "sizes_left_out": [1_u64 << 40], "ceilings": [],
            "strategies": strategies, "walls": [], "saving": null, "claims": [],
        }))
        .expect("results")
    }

    #[test]
    fn tables_fit_even_where_names_and_figures_are_long() {
        let mut strategies = Vec::new();
        for size in [1 << 30, 4 << 30] {
            for method in ["write", "direct+io_uring"] {
                strategies.push(strategy("append", method, size, 12_345.6));
                strategies.push(strategy("zero-filled-settled", method, size, 12_345.6));
            }
        }
        let text = tables(&results(strategies, "zeros"));
        for heading in ["By size", "By method", "By allocation", "Other strategies"] {
            assert!(text.contains(heading), "{heading}: {text}");
        }
        assert!(text.contains("left out for want of") && text.contains("all zeros"));
        let plain = anstream::adapter::strip_str(&text).to_string();
        for line in plain.lines() {
            let width = line.chars().count();
            assert!(width <= 100, "{width} columns: {line}");
        }
    }

    #[test]
    fn what_is_not_there_takes_no_room() {
        assert_eq!(tables(&results(Vec::new(), "incompressible")), "");
        let mut unknown = strategy("append", "write", 1 << 30, 500.0);
        unknown["summary"]["peak_resident_mib"] = Value::Null;
        unknown["summary"]["device"] = Value::Null;
        let mut missing = strategy("append", "paced", 1 << 30, 500.0);
        missing["summary"] = Value::Null;
        missing["unsupported"] = json!("not here");
        let text = tables(&results(vec![unknown, missing], "incompressible"));
        assert!(
            text.contains(NOTHING) && text.contains("paced: not here"),
            "{text}"
        );
        assert!(!text.contains("Dump against log") && !text.contains("wall"));
    }
}
