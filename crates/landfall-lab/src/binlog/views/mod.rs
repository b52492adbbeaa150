//! What experiment `binlog` gives to the page.

mod tables;
#[cfg(test)]
mod tests;

pub(crate) use tables::brief;

use landfall_results::view::{Chapter, Figure, Part, Table};
use landfall_results::{Metric, Series};

use crate::binlog::{BinlogResults, Section, beside, sections, summary_text};
use crate::configuration::views::charts::{Line, Row, clients, costs, rates};
use crate::configuration::views::tables::{clients_text, measured, preparation};
use crate::rules::{self, System};
use crate::views;

const SETTINGS: [&str; 2] = ["sync_binlog=0", "sync_binlog=1"];

/// Its part of the page.
pub(crate) fn part(binlog: &BinlogResults) -> Part {
    let sections = sections(binlog);
    let chapters = [
        of_mariadb(
            &sections,
            "Transactions per second, by filesystem and clients",
            "Each transaction is written to InnoDB's log, which was preallocated, and to the binary log, which grows. sync_binlog says whether the binary log is synced with it. Bars are 95% intervals of the median.",
            ("rate", "transactions per second"),
            Metric::RequestsPerSecond,
        ),
        of_mariadb(
            &sections,
            "Flushes per transaction",
            "What the device was asked to make durable, counted. A sync that finds metadata to commit costs two flushes on a disk without FUA, and one that finds none costs one; clients that commit at the same time share them.",
            ("flushes", "flushes per transaction"),
            Metric::Flushes,
        ),
        of_mariadb(
            &sections,
            "KiB per transaction",
            "Until nothing of it was left in the page cache: where the binary log is not synced, the kernel writes it some time, and in fewer pieces.",
            ("kib", "KiB per transaction"),
            Metric::Kib,
        ),
        others(binlog),
    ];
    Part {
        title: "What syncing a growing log costs".to_owned(),
        sentences: summary_text::sentences(binlog),
        front: None,
        chapters: chapters.into_iter().flatten().collect(),
        unmeasured: views::unmeasured(&binlog.measurements.series),
        run: None,
        preparation: preparation(&binlog.measurements),
    }
}

fn of_mariadb(
    sections: &[Section<'_>],
    title: &'static str,
    introduction: &str,
    (id, axis): (&str, &str),
    metric: Metric,
) -> Option<Chapter> {
    let mut figures = Vec::new();
    for group in sections.chunk_by(|a, b| a.flush_log == b.flush_log) {
        let Some(first) = group.first() else {
            continue;
        };
        let panels = panels(group);
        let id = format!("binlog-{id}-{}", first.flush_log);
        let Some(chart) = clients(&id, axis, &SETTINGS, &panels, metric) else {
            continue;
        };
        let of = format!(
            "MariaDB, innodb_flush_log_at_trx_commit={}",
            first.flush_log
        );
        let table = of_group(group, format!("{title}: {of}"));
        figures.push(Figure::new(of, chart, "", table));
    }
    Chapter::of_figures(title, introduction, figures)
}

/// A panel for each filesystem: both settings along the number of clients.
fn panels<'a>(group: &[Section<'a>]) -> Vec<(String, Vec<Line<'a>>)> {
    let mut panels: Vec<(String, Vec<Line<'a>>)> = Vec::new();
    for row in group.iter().flat_map(|section| &section.rows) {
        let place = match panels.iter().position(|(label, _)| *label == row.label) {
            Some(place) => place,
            None => {
                let none = vec![(0, Vec::new()), (1, Vec::new())];
                panels.push((row.label.clone(), none));
                panels.len() - 1
            }
        };
        let (_, series) = &mut panels[place];
        series[0].1.push(row.without);
        series[1].1.push(row.with);
    }
    panels
}

fn of_group(group: &[Section<'_>], caption: String) -> Table {
    let rows = group.iter().flat_map(|section| {
        section.rows.iter().flat_map(|row| {
            [row.without, row.with]
                .into_iter()
                .zip(SETTINGS)
                .map(|(one, setting)| {
                    (
                        format!("{}, {}, {setting}", row.label, clients_text(one)),
                        one,
                    )
                })
        })
    });
    measured(caption, rows)
}

/// What must be known of a database to read its figures.
const ABOUT: [(&str, &str); 4] = [
    (
        "postgres",
        "PostgreSQL has one log, whose segments it preallocates and uses again; wal_sync_method says how it is synced, and commit_delay how long a commit waits for others (in microseconds).",
    ),
    (
        "redis",
        "Redis appends to a file that grows; appendfsync says when it is synced.",
    ),
    (
        "etcd",
        "etcd writes a log into space that it reserved, and syncs it, unless it is told unsafe-no-fsync, before it answers; its pages follow ten times a second.",
    ),
    (
        "sqlite",
        "SQLite has a write-ahead log, or a journal that is made and removed with each transaction.",
    ),
];

/// Databases beside MariaDB, and settings that were tried.
fn others(binlog: &BinlogResults) -> Option<Chapter> {
    let beside = beside(binlog);
    let is_there = |name: &str| {
        let mut ones = beside.iter().flat_map(|(_, ones)| ones);
        ones.any(|one| one.axes.database.as_deref() == Some(name))
    };
    let about: Vec<&str> = ABOUT
        .into_iter()
        .filter_map(|(name, about)| is_there(name).then_some(about))
        .collect();
    let title = if about.is_empty() {
        "Settings that were tried"
    } else {
        "Other databases on the same disk"
    };
    let mut figures = Vec::new();
    for (of, ones) in &beside {
        let rows: Vec<Row<'_>> = ones
            .iter()
            .map(|one| {
                let settings = one.axes.varied_text(None);
                Row {
                    label: format!("{settings}, {}", clients_text(one)),
                    one,
                    durable: is_durable(one),
                }
            })
            .collect();
        let database = ones.first().and_then(|one| one.axes.database.as_deref());
        let database = database.unwrap_or_default();
        let labelled = || rows.iter().map(|row| (row.label.clone(), row.one));
        let figures_of = |what: &str| measured(format!("{what}: {of}"), labelled());
        if let Some(chart) = rates(&format!("binlog-{database}"), &rows) {
            figures.push(Figure::new(of.as_str(), chart, "", figures_of("Rates")));
        }
        if let Some(chart) = costs(&format!("binlog-{database}-cost"), &rows) {
            let of = format!("{of}: what a request costs the device");
            figures.push(Figure::new(of, chart, "", figures_of("Costs")));
        }
    }
    Chapter::of_figures(title, about.join(" "), figures)
}

/// Whether what is acknowledged is meant to be durable: no setting has a value that may lose or damage it by its document, or that is not
/// known.
fn is_durable(one: &Series) -> bool {
    let database = one.axes.database.as_deref();
    let system = System::ALL
        .into_iter()
        .find(|system| Some(system.key()) == database);
    let get = |setting: &str| one.axes.settings.get(setting).map(String::as_str);
    let mut rules = system.into_iter().flat_map(rules::of);
    rules.all(|rule| get(rule.setting).is_none_or(|value| rule.is_safe(value, get)))
}
