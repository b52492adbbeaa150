//! The tables of experiment `stream`.

use std::fmt::Write as _;

use landfall_lab::numbers::{interval, short, thousands};
use landfall_lab::section::Section;
use landfall_lab::stats::median;
use landfall_lab::stream::{StreamResults, sections, summary_text};
use landfall_os::humanize::bytes_text;
use landfall_results::{Axis, Metric, Series};

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
        if section.axis == Some(Axis::Size) {
            text.push_str(&around_sizes(stream));
        }
    }
    if let Some(ceilings) = summary_text::ceilings(&stream.ceilings) {
        let _ = write!(text, "\n{}", wrapped(1, &ceilings));
    }
    if let Some(data) = summary_text::data(stream.data) {
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
    let flushes = !matches!(section.axis, None | Some(Axis::Allocation));
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
    let mut group = String::new();
    let mut widest = 0;
    for (label, series) in &section.rows {
        if !series.is_measured() {
            let reason = series.unsupported.as_deref();
            notes.push(format!("{label}: {}", reason.unwrap_or("not measured")));
            continue;
        }
        // The method is said once, above its rows.
        let mut label = label.clone();
        if let Some(axis) = section.axis.filter(|_| section.is_grouped) {
            let method = series.axes.text(Axis::Method);
            if group != method {
                table.add_row(vec![&method]);
                group = method;
            }
            label = format!("  {}", series.axes.text(axis));
        }
        widest = widest.max(label.chars().count()).max(group.chars().count());
        let mut row = strategy_row(label, series);
        row.truncate(columns);
        table.add_row(row);
    }
    // Names are not broken, unless they are so long that figures would be.
    at_least(&mut table, 0, widest.min(LONGEST_NAME) as u16 + 1);
    with_notes(table, columns, notes)
}

fn strategy_row(label: String, series: &Series) -> Vec<String> {
    let print = |metric, print: fn(f64) -> String| or_nothing(series.median(metric).map(print));
    let rates = |metric| {
        series
            .estimate(metric)
            .map(|rate| interval(&rate, megabytes))
    };
    let hand_over = series.spread(Metric::HandOverMbPerS);
    vec![
        label,
        print(Metric::HandOverMbPerS, megabytes),
        or_nothing(rates(Metric::HandOverMbPerS)),
        or_nothing(hand_over.map(|rate| {
            let deviation = megabytes(rate.standard_deviation);
            format!("{} ±{deviation}", megabytes(rate.mean))
        })),
        print(Metric::SyncSeconds, short),
        print(Metric::TotalMbPerS, megabytes),
        or_nothing(rates(Metric::TotalMbPerS)),
        series.text(Metric::LongestStallMs),
        print(Metric::PeakResidentMib, thousands),
        series.text(Metric::CpuSPerGib),
        print(Metric::DeviceWrittenMib, thousands),
        print(Metric::DeviceFlushes, |flushes| format!("{flushes:.0}")),
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
    for wall in summary_text::walls(stream) {
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
        .series
        .iter()
        .filter_map(|series| {
            let bytes = series.values(Metric::PreparationBytes);
            let seconds = series.values(Metric::PreparationSeconds);
            let bytes = median(&bytes).filter(|bytes| *bytes > 0.0)?;
            Some(format!(
                "{} {} in {}",
                series.key,
                bytes_text(bytes as u64),
                summary_text::seconds_text(median(&seconds)?)
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

    fn strategy(allocation: &str, method: &str, size: u64, rate: f64) -> Value {
        let figures = [
            ("seconds", 12.3),
            ("hand_over_seconds", 12.3),
            ("sync_seconds", 12.3),
            ("hand_over_mb_per_s", rate),
            ("sync_mb_per_s", rate),
            ("total_mb_per_s", rate),
            ("longest_stall_ms", 12_345.6),
            ("left_mib", 4_096.0),
            ("peak_resident_mib", 12_345.6),
            ("cpu_s_per_gib", 12.34),
            ("device_written_mib", 12_345.6),
            ("device_flushes", 12.0),
        ];
        let summary: Value = figures
            .into_iter()
            .map(|(name, median)| {
                let spread = json!({
                    "mean": median, "standard_deviation": median / 2.0, "median": median,
                    "low": median * 0.9, "high": median * 1.1,
                });
                (name.to_owned(), spread)
            })
            .collect();
        json!({
            "key": format!("{allocation}/{method}/{size}"),
            "axes": {
                "allocation": allocation, "stream_method": method, "size": size,
                "chunk": 1 << 20, "data": "incompressible",
            },
            "summary": summary,
        })
    }

    fn results(strategies: Vec<Value>, data: &str) -> StreamResults {
        serde_json::from_value(json!({
            "plan": "standard", "rounds": 5, "data": data,
            "dirty_limits": null, "sizes_left_out": [1_u64 << 40], "ceilings": [],
            "series": strategies, "walls": [], "saving": null, "claims": [],
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
        let summary = unknown["summary"].as_object_mut().expect("a summary");
        for missing in ["peak_resident_mib", "device_written_mib", "device_flushes"] {
            summary.remove(missing);
        }
        let mut missing = strategy("append", "paced", 1 << 30, 500.0);
        missing["summary"] = json!({});
        missing["unsupported"] = json!("not here");
        let text = tables(&results(vec![unknown, missing], "incompressible"));
        assert!(
            text.contains(NOTHING) && text.contains("paced: not here"),
            "{text}"
        );
        assert!(!text.contains("Dump against log") && !text.contains("wall"));
    }
}
