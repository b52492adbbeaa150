//! The tables of experiment `sync`.

use std::fmt::Write as _;

use landfall_lab::Results;
use landfall_lab::numbers::{interval, short, thousands};
use landfall_lab::section::Section;
use landfall_lab::sync::{Safety, SyncResults, safety, sections};
use landfall_os::humanize::bytes_text;
use landfall_results::{Axis, Metric, Series};

use super::layout::{align, lines, or_nothing, plain_table, wrapped};
use crate::terminal::style::{BAD, FAINT, GOOD, STRONG, styled};

/// Everything that the experiment found, without its claims.
pub(super) fn tables(results: &Results, sync: &SyncResults) -> String {
    let mut text = String::new();
    if sync.series.iter().any(|one| one.proof.is_some()) {
        // Which setting is the fastest on a disk cannot be told in main memory.
        let mut safe = if results.is_in_memory() {
            Vec::new()
        } else {
            safety::sentences(sync)
        };
        if let Some(first) = safe.first_mut() {
            *first = styled(STRONG, first);
        }
        safe.push(safety::place(results, sync));
        let paragraphs: String = safe.iter().map(|sentence| wrapped(0, sentence)).collect();
        let _ = write!(text, "\n{paragraphs}");
    }
    for section in sections(sync) {
        let _ = write!(
            text,
            "\n{}\n{}",
            styled(STRONG, &section.title),
            section_table(&section)
        );
    }
    text + &preparation(sync)
}

fn section_table(section: &Section<'_>) -> String {
    let mut table = plain_table();
    let is_proven = section.rows.iter().any(|(_, one)| one.proof.is_some());
    // The pages axis is about reads; elsewhere there are none. What was lost matters more than the first
    // operation, and there is not room for both.
    let extra = match (section.axis, is_proven) {
        (Some(Axis::Pages), _) => Some(Extra::Reads),
        (_, false) => Some(Extra::First),
        (_, true) => None,
    };
    let mut header = vec!["", "ops/s", "95% interval", "p50 µs", "p99 µs"];
    header.extend(extra.map(Extra::name));
    header.extend(["CPU µs", "writes", "KiB", "flushes"]);
    header.extend(is_proven.then_some("lost in"));
    let columns = header.len();
    table.set_header(header);
    let mut notes = Vec::new();
    for (label, strategy) in &section.rows {
        if strategy.is_measured() {
            let mark = if section.is_durable(strategy) {
                ""
            } else {
                " *"
            };
            let mut row = strategy_row(format!("{label}{mark}"), strategy, extra);
            if is_proven {
                row.push(lost_in(strategy));
            }
            table.add_row(row);
        } else {
            let reason = strategy.unsupported.as_deref();
            notes.push(format!("{label}: {}", reason.unwrap_or("not measured")));
        }
    }
    let is_lax = |series: &Series| !section.is_durable(series) && series.is_measured();
    if section.rows.iter().any(|(_, series)| is_lax(series)) {
        notes.push("* not durable: a power cut loses these writes".to_owned());
    }
    if is_proven {
        notes.push(
            "lost in: crash states that lack an acknowledged write, of those tried".to_owned(),
        );
    }
    align(&mut table, columns);
    let mut text = lines(&table);
    for note in notes {
        let _ = writeln!(text, "{}", styled(FAINT, &format!("  {note}")));
    }
    text
}

/// What preparations cost, since no figure of a trial holds it.
fn preparation(sync: &SyncResults) -> String {
    let mut costs = Vec::new();
    if sync.preparation.bytes > 0 {
        costs.push(format!(
            "files kept for overwriting {} in {:.1} s",
            bytes_text(sync.preparation.bytes),
            sync.preparation.seconds
        ));
    }
    for series in &sync.series {
        let total = |metric| series.values(metric).into_iter().sum::<f64>();
        let bytes = total(Metric::PreparationBytes) as u64;
        if bytes > 0 {
            costs.push(format!(
                "{} {} in {:.1} s",
                series.key,
                bytes_text(bytes),
                total(Metric::PreparationSeconds)
            ));
        }
    }
    if costs.is_empty() {
        return String::new();
    }
    let text = format!(
        "Preparation, in none of these figures: {}.",
        costs.join("; ")
    );
    format!("\n{}", wrapped(1, &text))
}

/// In how many crash states an acknowledged write was lost.
fn lost_in(series: &Series) -> String {
    let style = match safety::safety(series) {
        Safety::LostNothing => GOOD,
        Safety::Lost => BAD,
        Safety::NotProven => FAINT,
    };
    styled(style, &safety::lost_in(series))
}

/// A column that not every table has.
#[derive(Clone, Copy)]
enum Extra {
    Reads,
    First,
}

impl Extra {
    fn name(self) -> &'static str {
        match self {
            Extra::Reads => "reads",
            Extra::First => "first ms",
        }
    }

    fn cell(self, series: &Series) -> String {
        match self {
            Extra::Reads => series.text(Metric::Reads),
            Extra::First => {
                let first = series.median(Metric::FirstUs);
                or_nothing(first.map(|first| short(first / 1e3)))
            }
        }
    }
}

fn strategy_row(label: String, series: &Series, extra: Option<Extra>) -> Vec<String> {
    let rate = series.estimate(Metric::OpsPerSecond);
    let mut row = vec![
        label,
        series.text(Metric::OpsPerSecond),
        or_nothing(rate.map(|rate| interval(&rate, thousands))),
        series.text(Metric::P50Us),
        series.text(Metric::P99Us),
    ];
    row.extend(extra.map(|extra| extra.cell(series)));
    row.extend([
        series.text(Metric::CpuUs),
        series.writes_text(),
        series.text(Metric::Kib),
        series.text(Metric::Flushes),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn strategy(allocation: &str, method: &str, rate: f64, proof: Option<Value>) -> Value {
        let figures = [
            ("ops_per_second", rate),
            ("first_us", 1_234_567.0),
            ("p50_us", 12_345.0),
            ("p99_us", 123_456.0),
            ("cpu_us", 12_345.0),
            ("writes", 12.0),
            ("write_requests", 12.0),
            ("kib", 12_345.0),
            ("flushes", 12.0),
            ("reads", 0.0),
        ];
        let summary: Value = figures
            .into_iter()
            .map(|(name, median)| {
                let spread = json!({
                    "mean": median, "standard_deviation": 0.0, "median": median,
                    "low": median * 0.9, "high": median * 1.1,
                });
                (name.to_owned(), spread)
            })
            .collect();
        json!({
            "key": format!("{allocation}/{method}/8K"),
            "axes": {
                "allocation": allocation, "sync_method": method, "size": 8192, "threads": 1,
                "files": "shared", "placement": "sequential", "cache": "warm",
            },
            "summary": summary,
            "proof": proof,
        })
    }

    fn results(strategies: Vec<Value>) -> Results {
        serde_json::from_value(json!({
            "schema": "landfall-results/2", "version": "0", "command": "landfall lab",
            "started": "2026-01-02T03:04:05Z", "seconds": 1.0,
            "host": {
                "kernel": "6", "architecture": "x86_64", "cpu": null, "cpus": 1,
                "memory_bytes": 1, "hypervisor": null,
            },
            "directory": "/data",
            "filesystem": {
                "kind": "ext4", "mount_point": "/", "source": "/dev/sda", "options": ["rw"],
                "medium": "device", "copy_on_write": false, "compression": null,
                "direct_io": null, "atomic_write_bytes": 0,
                "space": { "total_bytes": 1, "available_bytes": 1 },
                "upper": null, "devices": [],
            },
            "notices": [],
            "experiments": [{
                "experiment": "sync", "plan": "standard", "rounds": 5,
                "seconds_per_trial": 0.25, "operations": "by-time", "settle_seconds": null,
                "pilot": null, "preparation": { "bytes": 0, "seconds": 0.0 },
                "series": strategies, "claims": [],
            }],
        }))
        .expect("a document")
    }

    fn text(results: &Results) -> String {
        let text = tables(results, results.sync().expect("the experiment"));
        anstream::adapter::strip_str(&text).to_string()
    }

    fn proof(losing: u64) -> Option<Value> {
        Some(json!({
            "recipe": "ext4", "states": 1_234, "losing": losing, "worst_lost": losing.min(1),
            "not_proven": null,
        }))
    }

    #[test]
    fn what_was_lost_stands_beside_what_it_costs() {
        let mut found = results(vec![
            strategy("overwrite", "fdatasync", 123_456.0, proof(0)),
            strategy("zero-filled-settled", "fdatasync", 100_000.0, proof(1_234)),
            strategy("append", "fdatasync", 50_000.0, None),
        ]);
        let printed = text(&found);
        for words in [
            "lost in",
            "0/1,234",
            "1,234/1,234",
            "The fastest setting that lost nothing:",
            "Timed on /data (ext4, mounted rw), proven on the same filesystem type",
        ] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
        let is_narrow = |line: &str| line.chars().count() <= 100;
        assert!(printed.lines().all(is_narrow), "{printed}");
        assert!(!printed.contains("first ms"), "{printed}");
        let notice = json!({ "code": "memory-disk", "weight": "note", "text": "in memory" });
        found.notices = vec![serde_json::from_value(notice).expect("a notice")];
        let in_memory = text(&found);
        assert!(!in_memory.contains("The fastest setting"), "{in_memory}");
    }

    #[test]
    fn without_proofs_nothing_is_said_of_losses() {
        let found = results(vec![
            strategy("overwrite", "fdatasync", 1_000.0, None),
            strategy("append", "fdatasync", 500.0, None),
        ]);
        let printed = text(&found);
        assert!(
            printed.contains("first ms") && !printed.contains("lost in"),
            "{printed}"
        );
    }
}
