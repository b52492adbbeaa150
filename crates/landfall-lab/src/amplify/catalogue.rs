//! The configurations, each with what is set of its database and why.
//!
//! Page size, compression and doublewrite are tested with data several times larger than the pool: every
//! request then brings pages in and drives others out, which are dirty. Redo log, dirty-page limit and
//! neighbours are tested with data that fits: there pages are written because the log comes round or too
//! many are dirty, and only then does it matter when.

#[cfg(test)]
mod tests;

use super::plan::Plan;
use super::updates;
use crate::configuration::{Configuration, Settings};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Memtables that a pool is as large as: so many that a tree has written out twenty, before which its load is
/// not steady, within the time that a trial has.
const MEMTABLES_IN_POOL: u64 = 24;
/// Memory with which a database is loaded, whatever it has when it is measured.
const LOADING_POOL: u64 = 256 * MIB;

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// InnoDB by page size and compression, and MyRocks, with data larger than the pool.
    Pages,
    /// Landfall's own store by page size, protection and what it keeps in memory, with data larger than it.
    Landfall,
    /// Landfall's own store by how much of its changes waits on disk, with data larger than its memory.
    Buffer,
    /// The same store along the same knob where rows are updated at random, and every other database beside it.
    Curve,
    /// That where some rows are updated much more often than others.
    CurveZipf,
    /// What can be set of InnoDB and PostgreSQL, with data that fits the pool.
    Knobs,
    /// Every other database, with data larger than its cache.
    Databases,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 7] = [
        Part::Pages,
        Part::Landfall,
        Part::Buffer,
        Part::Curve,
        Part::CurveZipf,
        Part::Knobs,
        Part::Databases,
    ];

    /// Those that are measured unless others are chosen: within half an hour.
    pub const STANDARD: [Part; 4] = [Part::Pages, Part::Landfall, Part::Knobs, Part::Databases];

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Part::Pages => "pages",
            Part::Landfall => "landfall",
            Part::Buffer => "buffer",
            Part::Curve => "curve",
            Part::CurveZipf => "curve-zipf",
            Part::Knobs => "knobs",
            Part::Databases => "databases",
        }
    }

    /// Whether rows are updated at random, and LinkBench is not asked.
    pub fn is_of_updates(self) -> bool {
        matches!(self, Part::Curve | Part::CurveZipf)
    }
}

/// Pages whose sizes are compared, in KiB.
const PAGES: [u64; 3] = [16, 8, 4];
const COMPRESSIONS: [&str; 3] = ["none", "zlib", "zstd"];
/// Percent of what leaves take that runs of changes may take on disk: all that the knob has, from end to end.
pub(super) const BUFFERS: [u8; 6] = [0, 2, 5, 8, 11, 16];

// Names that claims and sections look for.
pub(super) const PAGES_16: &str = "innodb 16k";
pub(super) const PAGES_8: &str = "innodb 8k";
pub(super) const PAGES_4: &str = "innodb 4k";
pub(super) const PAGES_8_COMPRESSED: &str = "innodb 8k+2x";
pub(super) const NO_DOUBLEWRITE: &str = "innodb 16k doublewrite=off";
pub(super) const LANDFALL_16: &str = "landfall 16k doublewrite";
pub(super) const LANDFALL_8: &str = "landfall 8k doublewrite";
pub(super) const LANDFALL_4: &str = "landfall 4k doublewrite";
pub(super) const LANDFALL_16_UNPROTECTED: &str = "landfall 16k unprotected";
pub(super) const LANDFALL_16_RECORDS: &str = "landfall 16k records doublewrite";
pub(super) const LANDFALL_4_RECORDS: &str = "landfall 4k records doublewrite";
pub(super) const BUFFER_0: &str = "landfall buffer 0%";
pub(super) const BUFFER_11: &str = "landfall buffer 11%";
pub(super) const UNIFORM_0: &str = "uniform buffer 0%";
pub(super) const UNIFORM_11: &str = "uniform buffer 11%";
pub(super) const WRITE_OPTIMISED: &str = "myrocks zstd";
pub(super) const IN_POOL: &str = "innodb in pool";
pub(super) const SMALL_REDO: &str = "innodb in pool redo=small";
pub(super) const FEW_DIRTY: &str = "innodb in pool dirty=10%";
pub(super) const NEIGHBOURS: &str = "innodb in pool redo=small neighbours";
pub(super) const POSTGRES_IN_POOL: &str = "postgres in pool";
pub(super) const POSTGRES_OFTEN: &str = "postgres in pool checkpoints=often";

/// A configuration without its site and what all have in common.
pub(super) struct Entry {
    pub part: Part,
    pub name: String,
    pub database: &'static str,
    pub loaded_with: Settings,
    pub settings: Settings,
    /// Of the workload, besides the number of ids.
    pub workload: Settings,
    /// Percent of buffer, where that is varied.
    pub buffer: Option<u8>,
}

/// Every configuration of `plan`'s parts.
pub(super) fn configurations(plan: &Plan) -> Vec<Configuration> {
    let has = |part| plan.parts.contains(&part);
    let mut entries = Vec::new();
    if has(Part::Pages) {
        entries.extend(pages(plan));
    } else if has(Part::Buffer) || has(Part::Databases) {
        // What these are held against.
        entries.push(innodb(plan, 16, false));
        entries.push(myrocks(plan, "zstd"));
    }
    if has(Part::Landfall) {
        entries.extend(landfall(plan));
    }
    if has(Part::Buffer) {
        entries.extend(BUFFERS.map(|percent| buffer(plan, percent)));
    }
    for part in [Part::Curve, Part::CurveZipf] {
        if has(part) {
            entries.extend(updates::entries(plan, part));
        }
    }
    if has(Part::Databases) {
        entries.extend(databases(plan));
    }
    if has(Part::Knobs) {
        entries.extend(knobs(plan));
    }
    let configuration = |entry: Entry| {
        let (workload, common) = if entry.part.is_of_updates() {
            (updates::WORKLOAD, updates::settings(plan, entry.part))
        } else {
            ("linkbench", settings(&[("ids", plan.ids.to_string())]))
        };
        Configuration {
            part: Some(entry.part.name().to_owned()),
            name: entry.name,
            buffer: entry.buffer,
            site: plan.site.clone(),
            database: entry.database.to_owned(),
            loaded_with: entry.loaded_with,
            settings: entry.settings,
            workload: workload.to_owned(),
            workload_settings: [common, entry.workload].concat(),
            clients: plan.clients,
            ..Configuration::default()
        }
    };
    entries.into_iter().map(configuration).collect()
}

fn pages(plan: &Plan) -> Vec<Entry> {
    let mut entries: Vec<Entry> = PAGES.map(|page| innodb(plan, page, false)).into();
    entries.extend(PAGES.map(|page| innodb(plan, page, true)));
    let mut unsafe_one = innodb(plan, 16, false);
    unsafe_one.name = NO_DOUBLEWRITE.to_owned();
    replace(&mut unsafe_one.settings, "innodb_doublewrite", "OFF");
    entries.push(unsafe_one);
    entries.extend(COMPRESSIONS.map(|compression| myrocks(plan, compression)));
    entries
}

/// InnoDB with pages of so many KiB; compressed: those of links and counts kept as half as much, those of
/// nodes as they are, as published.
pub(super) fn innodb(plan: &Plan, page: u64, compressed: bool) -> Entry {
    let name = format!("innodb {page}k{}", if compressed { "+2x" } else { "" });
    let redo = plan.redo_bytes();
    let mut workload = Settings::new();
    if compressed {
        workload = settings(&[("compression", "yes".to_owned())]);
    }
    Entry {
        part: Part::Pages,
        name,
        database: "mariadb",
        loaded_with: innodb_loading(page * KIB, redo),
        settings: innodb_running(plan.pool_bytes(), redo),
        workload,
        buffer: None,
    }
}

/// With what InnoDB is loaded: fast, since nothing is lost if it is lost. The redo log is that of the run,
/// so that a copy has written all of it, and no trial pays for its first time round.
fn innodb_loading(page: u64, redo: u64) -> Settings {
    settings(&[
        ("innodb_page_size", page.to_string()),
        ("innodb_log_file_size", redo.to_string()),
        ("innodb_buffer_pool_size", LOADING_POOL.to_string()),
        ("innodb_flush_log_at_trx_commit", "0".to_owned()),
        ("innodb_doublewrite", "OFF".to_owned()),
        // In files of its own, which shrink again: in the system tablespace what loading needed for a
        // moment would be a part of the database for ever.
        ("innodb_undo_tablespaces", "2".to_owned()),
        ("innodb_undo_log_truncate", "ON".to_owned()),
    ])
}

fn innodb_running(pool: u64, redo: u64) -> Settings {
    settings(&[
        ("innodb_buffer_pool_size", pool.to_string()),
        ("innodb_log_file_size", redo.to_string()),
        ("innodb_flush_log_at_trx_commit", "1".to_owned()),
        ("innodb_doublewrite", "ON".to_owned()),
        ("innodb_flush_neighbors", "0".to_owned()),
        ("innodb_max_dirty_pages_pct", "90".to_owned()),
    ])
}

pub(super) fn myrocks(plan: &Plan, compression: &str) -> Entry {
    let cache = plan.pool_bytes();
    Entry {
        part: Part::Pages,
        name: format!("myrocks {compression}"),
        database: "myrocks",
        // The memtable is a share of the cache, and decides how large the files of the tree are: as in
        // the run.
        loaded_with: settings(&[
            ("compression", compression.to_owned()),
            ("memtable", (cache / MEMTABLES_IN_POOL).to_string()),
            ("rocksdb_block_cache_size", cache.to_string()),
            ("rocksdb_flush_log_at_trx_commit", "0".to_owned()),
        ]),
        settings: settings(&[("rocksdb_flush_log_at_trx_commit", "1".to_owned())]),
        workload: Settings::new(),
        buffer: None,
    }
}

fn postgres(part: Part, name: &str, pool: u64, wal: u64) -> Entry {
    let megabytes = |bytes: u64| format!("{}MB", bytes.div_ceil(MIB));
    Entry {
        part,
        name: name.to_owned(),
        database: "postgres",
        loaded_with: settings(&[
            ("shared_buffers", megabytes(LOADING_POOL)),
            ("synchronous_commit", "off".to_owned()),
        ]),
        settings: settings(&[
            ("shared_buffers", megabytes(pool)),
            ("synchronous_commit", "on".to_owned()),
            // The least that it takes, so that a run of minutes has several checkpoints.
            ("checkpoint_timeout", "30s".to_owned()),
            ("min_wal_size", megabytes(32 * MIB)),
            ("max_wal_size", megabytes(wal.max(32 * MIB))),
        ]),
        workload: Settings::new(),
        buffer: None,
    }
}

/// Our own engine made to write as InnoDB does: a change takes a whole page of memory, and pages are written again
/// where they are. Then what it does otherwise: changes take memory as records, and pages are written elsewhere.
fn landfall(plan: &Plan) -> Vec<Entry> {
    let whole = |protection| {
        PAGES.map(move |page| landfall_store(plan, page, Changes::WholeLeaves, protection))
    };
    let records = |page, protection| landfall_store(plan, page, Changes::Records, protection);
    [whole("doublewrite"), whole("none")]
        .into_iter()
        .flatten()
        .chain([
            records(16, "doublewrite"),
            records(4, "doublewrite"),
            records(16, "shadow"),
        ])
        .collect()
}

/// What takes memory in Landfall's store until it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Changes {
    Records,
    WholeLeaves,
}

/// Landfall's store with pages of so many KiB, which have places of their own.
fn landfall_store(plan: &Plan, page: u64, changes: Changes, protection: &str) -> Entry {
    let (changes, kept) = match changes {
        Changes::Records => ("records", " records"),
        Changes::WholeLeaves => ("whole-leaves", ""),
    };
    let protected = match protection {
        "none" => "unprotected",
        other => other,
    };
    Entry {
        part: Part::Landfall,
        name: format!("landfall {page}k{kept} {protected}"),
        database: "landfall-store",
        // A keyspace keeps the first three for ever. Memory and policy are those of a load that is fast, as InnoDB's.
        loaded_with: settings(&[
            ("leaf", (page * KIB).to_string()),
            ("in-place", "yes".to_owned()),
            ("changes", changes.to_owned()),
            ("memory", LOADING_POOL.to_string()),
            ("policy", "interval".to_owned()),
        ]),
        settings: settings(&[
            ("memory", plan.pool_bytes().to_string()),
            ("policy", "every-commit".to_owned()),
            ("protection", protection.to_owned()),
        ]),
        workload: Settings::new(),
        buffer: None,
    }
}

/// Landfall's store as it is by default, but for so many percent of buffer.
pub(super) fn buffer(plan: &Plan, percent: u8) -> Entry {
    let pool = plan.pool_bytes();
    Entry {
        part: Part::Buffer,
        name: format!("landfall buffer {percent}%"),
        database: "landfall-store",
        // Buffer and memory decide how many leaves a group has, until it is merged again: both are as in the run, or
        // it would begin with groups that a store of this memory does not make. More than LOADING_POOL makes no larger
        // ones.
        loaded_with: settings(&[
            ("buffer", percent.to_string()),
            ("memory", pool.min(LOADING_POOL).to_string()),
            ("policy", "interval".to_owned()),
        ]),
        settings: settings(&[
            ("memory", pool.to_string()),
            ("policy", "every-commit".to_owned()),
        ]),
        workload: Settings::new(),
        buffer: Some(percent),
    }
}

fn databases(plan: &Plan) -> Vec<Entry> {
    let pool = plan.pool_bytes();
    let postgres = postgres(Part::Databases, "postgres", pool, plan.redo_bytes());
    [postgres].into_iter().chain(linked_in(plan)).collect()
}

/// What is part of this program.
pub(super) fn linked_in(plan: &Plan) -> impl Iterator<Item = Entry> {
    let pool = plan.pool_bytes();
    // As MyRocks has it.
    let memtable = (pool / MEMTABLES_IN_POOL).min(1 << 32);
    // What each store has of these. LMDB's cache is the kernel's, which cannot be told how large it is to be.
    let sizes = [
        ("cache_size", pool),
        ("memory", pool),
        ("map_size", plan.map_bytes()),
        ("max_memtable_size", memtable),
        ("write_buffer_size", memtable),
    ];
    landfall_databases::linked_in().map(move |database| {
        let has = |key| database.settings.iter().any(|one| one.name == key);
        let sizes = sizes.iter().filter(|(key, _)| has(*key));
        Entry {
            part: Part::Databases,
            name: database.name.to_owned(),
            database: database.name,
            // The memtable decides how large the files and levels of a tree are: as in the run.
            loaded_with: sizes
                .map(|&(key, bytes)| (key.to_owned(), bytes.to_string()))
                .collect(),
            settings: Settings::new(),
            workload: Settings::new(),
            buffer: None,
        }
    })
}

fn knobs(plan: &Plan) -> Vec<Entry> {
    let pool = plan.large_pool_bytes();
    let (small, large) = (plan.small_redo_bytes(), plan.large_redo_bytes());
    let innodb = |name: &str, redo: u64, others: &[(&str, &str)]| {
        let mut running = innodb_running(pool, redo);
        for (key, value) in others {
            replace(&mut running, key, value);
        }
        Entry {
            part: Part::Knobs,
            name: name.to_owned(),
            database: "mariadb",
            loaded_with: innodb_loading(16 * KIB, redo),
            settings: running,
            workload: Settings::new(),
            buffer: None,
        }
    };
    vec![
        innodb(IN_POOL, large, &[]),
        innodb(SMALL_REDO, small, &[]),
        innodb(FEW_DIRTY, large, &[("innodb_max_dirty_pages_pct", "10")]),
        innodb(NEIGHBOURS, small, &[("innodb_flush_neighbors", "1")]),
        postgres(Part::Knobs, POSTGRES_IN_POOL, pool, large * 4),
        postgres(Part::Knobs, POSTGRES_OFTEN, pool, small),
    ]
}

pub(super) fn settings(all: &[(&str, String)]) -> Settings {
    let owned = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
    all.iter().map(owned).collect()
}

fn replace(settings: &mut Settings, key: &str, value: &str) {
    for (_, old) in settings.iter_mut().filter(|(name, _)| name == key) {
        value.clone_into(old);
    }
}
