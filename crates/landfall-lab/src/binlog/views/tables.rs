//! The tables of experiment `binlog` as a terminal shows them.

use landfall_results::Metric;
use landfall_results::view::{Block, Column, Row, Table, or_nothing};

use crate::binlog::{BinlogResults, Section, beside, sections, summary_text};
use crate::configuration::views::tables::{brief as of_configurations, from_to, preparation};
use crate::numbers::{interval, thousands, two};
use crate::views;

/// What a terminal shows of the experiment, without its claims.
pub(crate) fn brief(binlog: &BinlogResults) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, summary_text::sentences(binlog))
        .into_iter()
        .collect();
    for section in sections(binlog) {
        blocks.extend(Block::titled(of_section(&section)));
    }
    for (title, rows) in beside(binlog) {
        blocks.extend(Block::titled(of_configurations(&title, &rows)));
    }
    blocks.extend(views::preparation_sentence(preparation(
        &binlog.measurements,
    )));
    blocks
}

fn of_section(section: &Section<'_>) -> Table {
    let caption = format!(
        "{}: sync_binlog 0 against 1, and what a transaction costs the device",
        section.title
    );
    let columns = [
        "0 tps",
        "1 tps",
        "95% interval",
        "1/0",
        "95% interval",
        "flushes 0\u{a0}→\u{a0}1",
        "writes 0\u{a0}→\u{a0}1",
        "KiB 0\u{a0}→\u{a0}1",
    ];
    let mut rows = Vec::new();
    for row in &section.rows {
        let both = [row.without, row.with];
        for one in both {
            if let Some(reason) = &one.unsupported {
                rows.push(Row::without(&row.label, reason));
            }
        }
        if both.iter().all(|one| !one.is_measured()) {
            continue;
        }
        let rate = row.with.estimate(Metric::RequestsPerSecond);
        let from_to = |metric| from_to(row.without, row.with, metric);
        rows.push(Row::of(
            row.label.as_str(),
            [
                row.without.text(Metric::RequestsPerSecond),
                row.with.text(Metric::RequestsPerSecond),
                or_nothing(rate.map(|rate| interval(&rate, thousands))),
                or_nothing(row.left.map(|left| two(left.median))),
                or_nothing(row.left.map(|left| interval(&left, two))),
                from_to(Metric::Flushes),
                from_to(Metric::Writes),
                from_to(Metric::Kib),
            ],
        ));
    }
    Table::new(caption, "", columns.map(Column::new).into()).with_rows(rows)
}
