//! The configurations: who protects pages from being torn, on which disk, under which conditions.
//!
//! Landfall's store is one engine with every protection, in which nothing else differs: its ratios are those of the
//! protections, where two servers differ in everything.

use std::thread;

use super::Plan;
use crate::SiteSpec;
use crate::configuration::{Configuration, Settings};
use crate::scratch_fs::{FilesystemSpec, Kind};

const MIB: u64 = 1 << 20;
/// Bytes that a row takes in its page.
const ROW: u64 = 250;
/// Clients of each database.
const CLIENTS: u32 = 8;
/// Bytes of the redo log: so few that pages must be written all the time, as published (two files of 32 MiB
/// beside 20 GiB of pages).
const SMALL_LOG: u64 = 4 * MIB;
/// Bytes of one that is not full before a trial ends.
const LARGE_LOG: u64 = 192 * MIB;
/// Threads that take CPU time, for each processor, where there is to be none to spare.
const BUSY: u32 = 4;
/// Bytes of a value that Landfall's store is given: a row of the table's size.
const VALUE: u64 = 200;

/// Who protects pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// InnoDB writes each page twice; the filesystem journals metadata only.
    Doublewrite,
    /// Nobody.
    Nobody,
    /// Both InnoDB and the filesystem write it twice.
    Both,
    /// The filesystem journals data as well, and InnoDB writes each page once: the published cure.
    Journal,
}

impl Protection {
    /// All of them.
    pub const ALL: [Protection; 4] = [
        Protection::Doublewrite,
        Protection::Nobody,
        Protection::Both,
        Protection::Journal,
    ];

    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            Protection::Doublewrite => "doublewrite",
            Protection::Nobody => "nothing",
            Protection::Both => "doublewrite and data=journal",
            Protection::Journal => "data=journal",
        }
    }

    pub(super) fn doublewrite(self) -> &'static str {
        match self {
            Protection::Doublewrite | Protection::Both => "ON",
            Protection::Nobody | Protection::Journal => "OFF",
        }
    }

    /// The filesystem that it takes.
    pub(super) fn filesystem_spec(self) -> FilesystemSpec {
        match self {
            Protection::Doublewrite | Protection::Nobody => FilesystemSpec::plain(Kind::Ext4),
            Protection::Both | Protection::Journal => {
                FilesystemSpec::plain(Kind::Ext4).mounted("data=journal")
            }
        }
    }
}

/// What keeps leaves of Landfall's store whole. Atomic writes are not among them: no ext4 on a recorder promises any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreProtection {
    /// A leaf is written elsewhere, and the old one stays until the new one counts.
    Shadow,
    /// It is written twice: first a copy, then at home.
    Doublewrite,
    /// It goes into the log when it is first written after a checkpoint, then home.
    Image,
    /// Nothing: it is written at home.
    Nobody,
    /// Nothing in the store; the filesystem journals data as well.
    Journal,
}

impl StoreProtection {
    /// All of them.
    pub const ALL: [StoreProtection; 5] = [
        StoreProtection::Shadow,
        StoreProtection::Doublewrite,
        StoreProtection::Image,
        StoreProtection::Nobody,
        StoreProtection::Journal,
    ];

    /// In a few words.
    pub fn text(self) -> &'static str {
        match self {
            StoreProtection::Shadow => "shadow",
            StoreProtection::Doublewrite => "doublewrite",
            StoreProtection::Image => "image",
            StoreProtection::Nobody => "nothing",
            StoreProtection::Journal => "data=journal",
        }
    }

    /// The store's own part of it, as it is set.
    fn protection(self) -> &'static str {
        match self {
            StoreProtection::Shadow => "shadow",
            StoreProtection::Doublewrite => "doublewrite",
            StoreProtection::Image => "image",
            StoreProtection::Nobody | StoreProtection::Journal => "none",
        }
    }

    /// The filesystem that it takes.
    pub(super) fn filesystem_spec(self) -> FilesystemSpec {
        match self {
            StoreProtection::Journal => Protection::Journal.filesystem_spec(),
            _ => FilesystemSpec::plain(Kind::Ext4),
        }
    }

    /// The name of a store with it.
    pub(super) fn name(self) -> String {
        format!("landfall-store protection={}", self.protection())
    }
}

/// A condition under which the gain was published that is taken away, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None: all conditions are as published.
    Published,
    /// Commits that nothing waits for: here each is synced.
    LaxCommits,
    /// Processors to spare: here others take them.
    SpareProcessors,
    /// Few reads in the mix: here there are 14 for 4 changes.
    FewReads,
    /// Data that fits the buffer pool: here a third of it does.
    FittingPool,
    /// A continuous load of page writes: here the redo log is so large that pages can wait.
    ContinuousWrites,
    /// Neighbours of a dirty page that are written with it, as on any disk that rotates unless told
    /// otherwise: here each page is written by itself. It was not named.
    Neighbours,
}

impl Condition {
    /// Those that can be taken away on any disk.
    pub const REMOVED: [Condition; 6] = [
        Condition::LaxCommits,
        Condition::SpareProcessors,
        Condition::FewReads,
        Condition::FittingPool,
        Condition::ContinuousWrites,
        Condition::Neighbours,
    ];

    /// What there is instead, in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Condition::Published => "as published",
            Condition::LaxCommits => "each commit synced",
            Condition::SpareProcessors => "no processors to spare",
            Condition::FewReads => "reads in the mix",
            Condition::FittingPool => "data larger than the pool",
            Condition::ContinuousWrites => "pages that can wait",
            Condition::Neighbours => "neighbours not flushed",
        }
    }

    /// What it adds to the name of a configuration.
    fn suffix(self) -> String {
        match self {
            Condition::Published => String::new(),
            other => format!(", {}", other.text()),
        }
    }
}

/// Bytes that so many rows take.
pub(super) fn data(rows: u64) -> u64 {
    rows.saturating_mul(ROW)
}

/// Bytes of a pool that so many rows do not fit into, if they are enough.
pub(super) fn small_pool(rows: u64) -> u64 {
    (data(rows) / 3).next_multiple_of(MIB).max(6 * MIB)
}

/// Bytes of memory of Landfall's store, which so many rows do not fit into if they are enough.
pub(super) fn store_memory(rows: u64) -> u64 {
    (data(rows) / 4).next_multiple_of(MIB).max(MIB)
}

/// The name of MariaDB with this protection and without this condition.
pub(super) fn name(protection: Protection, condition: Condition) -> String {
    let doublewrite = protection.doublewrite();
    format!(
        "mariadb innodb_doublewrite={doublewrite}{}",
        condition.suffix()
    )
}

/// A site with this filesystem, on a recorder with these times or, without, on an image.
pub(super) fn site(filesystem: FilesystemSpec, latency: Option<&str>) -> Option<SiteSpec> {
    Some(match latency {
        None => SiteSpec::Loop(filesystem),
        Some(profile) => SiteSpec::Recorder(filesystem, Some(profile.parse().ok()?)),
    })
}

/// MariaDB with InnoDB on a disk of these times.
pub(super) fn mariadb(
    plan: &Plan,
    protection: Protection,
    condition: Condition,
    latency: Option<&str>,
) -> Option<Configuration> {
    let data = data(plan.rows);
    let pool = (data * 3).next_multiple_of(MIB).max(64 * MIB);
    let log = match condition {
        Condition::ContinuousWrites => LARGE_LOG,
        _ => SMALL_LOG,
    };
    let loaded_with = [
        ("innodb_buffer_pool_size", pool.to_string()),
        ("innodb_log_file_size", log.to_string()),
        ("innodb_flush_log_at_trx_commit", "2".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "ON".to_owned()),
        ("innodb_buffer_pool_dump_pct", "100".to_owned()),
    ];
    let synced = match condition {
        Condition::LaxCommits => "1",
        _ => "0",
    };
    let mut settings = vec![
        ("innodb_doublewrite", protection.doublewrite().to_owned()),
        ("innodb_flush_log_at_trx_commit", synced.to_owned()),
        ("innodb_flush_method", "O_DIRECT".to_owned()),
        ("innodb_write_io_threads", "8".to_owned()),
        ("innodb_buffer_pool_load_at_startup", "ON".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "OFF".to_owned()),
    ];
    if condition == Condition::ContinuousWrites {
        // Or pages would be written once a tenth of the log is full.
        settings.push(("innodb_adaptive_flushing", "OFF".to_owned()));
    }
    if condition == Condition::Neighbours {
        settings.push(("innodb_flush_neighbors", "0".to_owned()));
    }
    if condition == Condition::FittingPool {
        let small = small_pool(plan.rows);
        settings.push(("innodb_buffer_pool_size", small.to_string()));
    }
    let workload = match condition {
        Condition::FewReads => "oltp_read_write",
        _ => "oltp_update_non_index",
    };
    let processors = thread::available_parallelism().map_or(1, usize::from) as u32;
    Some(Configuration {
        name: name(protection, condition),
        site: site(protection.filesystem_spec(), latency)?,
        database: "mariadb".into(),
        loaded_with: owned(&loaded_with),
        settings: owned(&settings),
        workload: workload.into(),
        workload_settings: owned(&[("rows", plan.rows.to_string())]),
        clients: CLIENTS,
        busy: match condition {
            Condition::SpareProcessors => BUSY * processors,
            _ => 0,
        },
        ..Configuration::default()
    })
}

/// The name of PostgreSQL with or without images of pages in its log.
pub(super) fn postgres_name(full_page_writes: bool) -> String {
    let value = if full_page_writes { "on" } else { "off" };
    format!("postgres full_page_writes={value}")
}

/// PostgreSQL on ext4, with checkpoints all the time.
pub(super) fn postgres(
    plan: &Plan,
    full_page_writes: bool,
    latency: Option<&str>,
) -> Option<Configuration> {
    let value = if full_page_writes { "on" } else { "off" };
    let settings = [
        ("full_page_writes", value.to_owned()),
        ("max_wal_size", "8MB".to_owned()),
        ("checkpoint_timeout", "30s".to_owned()),
    ];
    Some(Configuration {
        name: postgres_name(full_page_writes),
        site: site(FilesystemSpec::plain(Kind::Ext4), latency)?,
        database: "postgres".into(),
        loaded_with: owned(&[("wal_segment_size", "1M".to_owned())]),
        settings: owned(&settings),
        workload: "oltp_update_non_index".into(),
        workload_settings: owned(&[("rows", plan.rows.to_string())]),
        clients: CLIENTS,
        ..Configuration::default()
    })
}

/// Landfall's store with its leaves in place, under the published conditions as far as it has them: commits wait for no
/// sync, and so little memory that leaves are written all the time.
pub(super) fn store(
    plan: &Plan,
    protection: StoreProtection,
    latency: Option<&str>,
) -> Option<Configuration> {
    let memory = store_memory(plan.rows);
    let loaded_with = [
        ("in-place", "yes".to_owned()),
        ("leaf", "16K".to_owned()),
        ("changes", "whole-leaves".to_owned()),
        ("memory", memory.to_string()),
        ("policy", "interval".to_owned()),
    ];
    let workload_settings = [
        ("size", VALUE.to_string()),
        ("batch", "1".to_owned()),
        ("keys", plan.rows.to_string()),
    ];
    Some(Configuration {
        name: protection.name(),
        site: site(protection.filesystem_spec(), latency)?,
        database: "landfall-store".into(),
        loaded_with: owned(&loaded_with),
        settings: owned(&[("protection", protection.protection().to_owned())]),
        workload: "puts".into(),
        workload_settings: owned(&workload_settings),
        clients: CLIENTS,
        ..Configuration::default()
    })
}

fn owned(settings: &[(&str, String)]) -> Settings {
    let owned = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
    settings.iter().map(owned).collect()
}
