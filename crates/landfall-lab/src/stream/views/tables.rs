//! The tables of experiment `stream`: those beneath the charts of phases and costs, and those of a terminal.

use landfall_os::humanize::bytes_text;
use landfall_results::view::{
    Block, Column, Row, SeriesColumn, Table, or_nothing, series_table, with_interval,
};
use landfall_results::{Axis, Metric, Series};

use crate::numbers::{NOTHING, interval};
use crate::section::Section;
use crate::stream::{StreamResults, sections, summary_text};
use crate::views::{self, of_trial};

/// A row for each phase of each strategy.
pub(super) fn rates(section: &Section<'_>) -> Table {
    let mut rows = Vec::new();
    for (label, series) in &section.rows {
        if !series.is_measured() {
            let reason = series.unsupported.as_deref().unwrap_or(NOTHING);
            rows.push(Row::without(label, format!("not measured: {reason}")));
            continue;
        }
        for (name, rate, seconds) in [
            ("hand-over", Metric::HandOverMbPerS, Metric::HandOverSeconds),
            ("sync", Metric::SyncMbPerS, Metric::SyncSeconds),
            ("total", Metric::TotalMbPerS, Metric::Seconds),
        ] {
            let cells = [rate, seconds].map(|metric| spread(series, metric));
            rows.push(Row::of(format!("{label}: {name}"), cells.concat()));
        }
    }
    let columns = [
        "MB/s mean",
        "± sd",
        "median",
        "95% interval",
        "seconds mean",
        "± sd",
        "median",
        "95% interval",
    ];
    Table::new(
        format!("MB/s and seconds of each phase. {}", section.title),
        "Strategy and phase",
        columns.map(Column::new).into(),
    )
    .with_rows(rows)
}

/// Mean, standard deviation, median and interval.
fn spread(series: &Series, metric: Metric) -> Vec<String> {
    let print = metric.description().print;
    match series.spread(metric) {
        Some(spread) => vec![
            print(spread.mean),
            print(spread.standard_deviation),
            print(spread.estimate.median),
            interval(&spread.estimate, print),
        ],
        None => vec![NOTHING.to_owned(); 4],
    }
}

pub(super) fn costs(section: &Section<'_>) -> Table {
    let mut columns: Vec<SeriesColumn> = [
        Metric::LongestStallMs,
        Metric::PeakResidentMib,
        Metric::CpuSPerGib,
    ]
    .into_iter()
    .flat_map(with_interval)
    .collect();
    columns.extend(
        [
            Metric::LeftMib,
            Metric::DeviceWrittenMib,
            Metric::DeviceWriteRequests,
            Metric::DeviceFlushes,
            Metric::DeviceReadMib,
        ]
        .map(SeriesColumn::median),
    );
    let caption = format!(
        "What a save costs besides its time: medians with 95% intervals; of the device, medians. {}",
        section.title
    );
    let rows = section
        .rows
        .iter()
        .map(|(label, series)| (label.as_str(), *series));
    series_table(caption, "Strategy", columns, rows)
}

/// What a terminal shows of the experiment, without its claims.
pub(crate) fn brief(stream: &StreamResults) -> Vec<Block> {
    let mut blocks = Vec::new();
    for section in sections(stream) {
        blocks.extend(Block::titled(brief_table(&section)));
        if section.axis == Some(Axis::Size) {
            blocks.extend(Block::prose(1, around_sizes(stream)));
        }
    }
    let ceilings = summary_text::ceilings(stream);
    let data = summary_text::data(stream.data).map(str::to_owned);
    blocks.extend(Block::prose(1, ceilings.into_iter().chain(data)));
    blocks.extend(views::preparation_sentence(preparation(stream)));
    blocks
}

/// What the sizes show together, and what was left out of them.
pub(super) fn around_sizes(stream: &StreamResults) -> Vec<String> {
    let mut sentences = summary_text::walls(stream);
    if !stream.sizes_left_out.is_empty() {
        let sizes: Vec<String> = stream
            .sizes_left_out
            .iter()
            .map(|size| bytes_text(*size))
            .collect();
        sentences.push(format!(
            "Left out for want of space, memory or time: {}.",
            sizes.join(", ")
        ));
    }
    sentences
}

fn brief_table(section: &Section<'_>) -> Table {
    let mut columns = Vec::from(with_interval(Metric::HandOverMbPerS));
    columns.push(SeriesColumn::new("mean ±\u{a0}sd", |series| {
        let print = Metric::HandOverMbPerS.description().print;
        let rate = series.spread(Metric::HandOverMbPerS);
        or_nothing(rate.map(|rate| {
            let deviation = print(rate.standard_deviation);
            format!("{} ±{deviation}", print(rate.mean))
        }))
    }));
    columns.push(SeriesColumn::median(Metric::SyncSeconds));
    columns.extend(with_interval(Metric::TotalMbPerS));
    columns.extend(
        [
            Metric::LongestStallMs,
            Metric::PeakResidentMib,
            Metric::CpuSPerGib,
            Metric::DeviceWrittenMib,
        ]
        .map(SeriesColumn::median),
    );
    // Labels on these axes are long, and the flushes of a state are few.
    if !matches!(section.axis, None | Some(Axis::Allocation)) {
        columns.push(SeriesColumn::median(Metric::DeviceFlushes));
    }
    let axis = section.axis.filter(|_| section.is_grouped);
    let rows = section.rows.iter().map(|(label, series)| {
        let label = axis.map_or_else(|| label.clone(), |axis| series.axes.text(axis));
        (label, *series)
    });
    let mut table = series_table(section.title.as_str(), "", columns, rows);
    if axis.is_some() {
        // The method is said once, above its rows.
        let mut method = String::new();
        let rows = std::mem::take(&mut table.rows).into_iter();
        table.rows = rows
            .zip(&section.rows)
            .flat_map(|(row, (label, series))| match row {
                Row::Without { reason, .. } => vec![Row::without(label, reason)],
                row => {
                    let own = series.axes.text(Axis::Method);
                    let group = (method != own).then(|| Row::Group(own.as_str().into()));
                    method = own;
                    group.into_iter().chain([row]).collect()
                }
            })
            .collect();
    }
    table
}

/// What preparations cost; nothing if there were none.
pub(super) fn preparation(stream: &StreamResults) -> Option<Table> {
    let rows = stream.series.iter().filter_map(of_trial).collect();
    let caption = "Bytes written and seconds taken to prepare files for a large state";
    views::preparation(caption, rows)
}
