//! The results in the order in which people read them: MariaDB by the number of clients, each filesystem with
//! the binary log not synced and synced; then the other databases.
//!
//! The terminal's tables and the report's charts are made from these sections, so that both show the same.

use landfall_results::{Metric, Series};

use super::BinlogResults;
use super::plan::name;
use crate::SiteResult;
use crate::configuration::Measurements;
use crate::facts;
use crate::stats::Estimate;

/// One filesystem with the binary log not synced and synced.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    /// The site, without what goes without saying: `ext3,data=journal`, `memory:ext3`.
    pub label: String,
    /// Whether a sync flushes the disk's cache there.
    pub has_barrier: bool,
    /// `sync_binlog=0`.
    pub without: &'a Series,
    /// `sync_binlog=1`.
    pub with: &'a Series,
    /// Rate with over rate without, formed round by round.
    pub left: Option<Estimate>,
}

/// MariaDB with so many clients, filesystem by filesystem.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// `innodb_flush_log_at_trx_commit`.
    pub flush_log: u32,
    /// Clients.
    pub clients: u32,
    /// What all rows have in common.
    pub title: String,
    /// The filesystems.
    pub rows: Vec<Sides<'a>>,
}

/// What was measured of MariaDB.
pub fn sections(results: &BinlogResults) -> Vec<Section<'_>> {
    let all = &results.measurements;
    let mut sections = Vec::new();
    for flush_log in [1, 0, 2] {
        let mut clients: Vec<u32> = of_mariadb(all)
            .filter(|one| one.axes.case == Some(name("1", flush_log)))
            .filter_map(|one| one.axes.clients)
            .collect();
        clients.sort_unstable();
        clients.dedup();
        for clients in clients {
            let sides = |site: &'_ SiteResult| {
                let find = |sync| all.find(&site.key, &name(sync, flush_log), clients);
                let (without, with) = (find("0")?, find("1")?);
                Some(Sides {
                    label: site.label.clone(),
                    has_barrier: site
                        .filesystem
                        .as_ref()
                        .is_none_or(|made| facts::dangerous_option(made.storage()).is_none()),
                    left: with.ratio(without, Metric::RequestsPerSecond),
                    without,
                    with,
                })
            };
            let rows: Vec<Sides<'_>> = all.sites.iter().filter_map(sides).collect();
            if !rows.is_empty() {
                sections.push(Section {
                    flush_log,
                    clients,
                    title: title(flush_log, clients),
                    rows,
                });
            }
        }
    }
    sections
}

fn of_mariadb(all: &Measurements) -> impl Iterator<Item = &Series> {
    of_database(&all.series, "mariadb")
}

fn of_database<'a>(all: &'a [Series], name: &str) -> impl Iterator<Item = &'a Series> {
    all.iter()
        .filter(move |one| one.axes.database.as_deref() == Some(name))
}

fn title(flush_log: u32, clients: u32) -> String {
    let clients = match clients {
        1 => "1 client".to_owned(),
        some => format!("{some} clients"),
    };
    match flush_log {
        1 => format!("MariaDB with {clients}"),
        other => format!("MariaDB with {clients}, innodb_flush_log_at_trx_commit={other}"),
    }
}

/// What was measured of the other databases, by database: what it is called, and where it stood. MariaDB is
/// among them where settings of it were tried.
pub fn beside(results: &BinlogResults) -> Vec<(String, Vec<&Series>)> {
    let all = &results.measurements.series;
    let is_tried = all.iter().any(|one| one.axes.tried.is_some());
    let mariadb = is_tried.then_some(("mariadb", "MariaDB"));
    let others = [
        ("postgres", "PostgreSQL"),
        ("redis", "Redis"),
        ("etcd", "etcd"),
        ("sqlite", "SQLite"),
    ];
    mariadb
        .into_iter()
        .chain(others)
        .filter_map(|(database, title)| {
            let rows: Vec<&Series> = of_database(all, database).collect();
            let axes = &rows.first()?.axes;
            let (site, workload) = (axes.site.as_deref()?, axes.workload.as_deref()?);
            let mut sites = results.measurements.sites.iter();
            let site = &sites.find(|one| one.key == site)?.label;
            let title = format!("{title} on {site} ({workload})");
            Some((title, rows))
        })
        .collect()
}

/// What settings that were tried came to, on one site with so many clients.
#[derive(Clone, Debug)]
pub struct Tried<'a> {
    /// Without them.
    pub without: &'a Series,
    /// With them.
    pub with: &'a Series,
    /// The settings: `innodb_flush_neighbors=0 …`.
    pub settings: &'a str,
    /// Rate with over rate without, formed round by round.
    pub ratio: Option<Estimate>,
}

/// Everything that was tried.
pub fn tried(results: &BinlogResults) -> Vec<Tried<'_>> {
    let all = &results.measurements;
    let one = |with: &'_ Series| {
        let axes = &with.axes;
        let (site, case) = (axes.site.as_deref()?, axes.case.as_deref()?);
        all.find(site, case, axes.clients?)
    };
    all.series
        .iter()
        .filter_map(|with| {
            let settings = with.axes.tried.as_deref()?;
            let without = one(with)?;
            Some(Tried {
                without,
                with,
                settings,
                ratio: with.ratio(without, Metric::RequestsPerSecond),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::fixtures::binlog_results;

    #[test]
    fn filesystems_stand_below_each_other_for_each_number_of_clients() {
        let results = binlog_results();
        let sections = sections(&results);
        let shape: Vec<_> = sections
            .iter()
            .map(|one| (one.clients, one.rows.len()))
            .collect();
        assert_eq!(shape, [(1, 7), (2, 7)]);
        assert_eq!(sections[0].title, "MariaDB with 1 client");
        let ext3 = &sections[1].rows[1];
        assert_eq!(ext3.label, "ext3");
        assert!((ext3.left.unwrap().median - 610.0 / 1_912.0).abs() < 0.01);
        assert_eq!(sections[0].rows[6].label, "memory:ext3");
        let beside = beside(&results);
        assert_eq!(beside.len(), 2);
        assert_eq!(beside[1].1.len(), 2);
        assert!(beside[0].0.starts_with("PostgreSQL on ext4"));
    }
}
