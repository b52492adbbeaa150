//! Which settings are measured, on which filesystems, with how many clients.

use crate::configuration::{self, Configuration, Settings};
use crate::scratch_fs::{FilesystemSpec, Kind};
use crate::{Error, PlanKind, SiteSpec};

const MIB: u64 = 1 << 20;
/// Bytes of an empty MariaDB, with its redo log; the others are smaller.
const EMPTY: u64 = 160 * MIB;
/// Bytes of a row, its index entry and the space that pages leave free.
const ROW: u64 = 400;
/// Bytes that logs grow by in a second, at the most.
const GROWTH: u64 = 64 * MIB;
/// Sites of the standard plan: the published filesystems, and those of today.
const SITES: [&str; 9] = [
    "loop:ext2",
    "loop:ext3",
    "loop:ext3,data=writeback",
    "loop:ext3,data=journal",
    "loop:ext4",
    "loop:ext4,barrier=0",
    "loop:xfs",
    "loop:btrfs",
    "memory:ext3",
];
/// More of them, for the full plan.
const MORE_SITES: [&str; 3] = ["dir", "memory:ext4", "memory:xfs"];
/// Clients of MariaDB.
const CLIENTS: [u32; 3] = [1, 2, 16];
/// Clients of Redis: the most that the published figures of it have.
const REDIS_CLIENTS: [u32; 2] = [1, 50];
/// Ways of PostgreSQL to make its log durable.
const WAL_SYNC_METHODS: [&str; 4] = ["fdatasync", "open_datasync", "fsync", "open_sync"];
/// Microseconds for which PostgreSQL waits for others before it syncs.
const COMMIT_DELAY: &str = "1000";
/// Clients of those that let several commits share a sync.
const SHARING_CLIENTS: [u32; 2] = [1, 16];
const APPEND_FSYNC: [&str; 3] = ["always", "everysec", "no"];
/// SQLite's journals, and when they are synced.
const JOURNALS: [(&str, &str); 4] = [
    ("wal", "full"),
    ("wal", "normal"),
    ("delete", "full"),
    ("delete", "extra"),
];

/// What the user chose; what is empty is as in the standard plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Where to measure.
    pub sites: Vec<SiteSpec>,
    /// Databases: of [`Plan::DATABASES`].
    pub databases: Vec<String>,
    /// Clients.
    pub clients: Vec<u32>,
    /// Settings that are tried, all together, against what is durable without them; of the one database that
    /// is named.
    pub tried: Settings,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which plan it is.
    pub kind: PlanKind,
    /// What the user chose.
    pub selection: Selection,
    /// Values of `innodb_flush_log_at_trx_commit`.
    pub flush_logs: Vec<u32>,
    /// Rows of the table.
    pub rows: u64,
    /// How often each configuration is measured.
    pub rounds: u32,
    /// Seconds that a trial is measured for.
    pub seconds: f64,
}

impl Plan {
    /// Rounds, unless chosen.
    pub const ROUNDS: u32 = 5;
    /// Seconds of a trial, unless chosen: five rounds make three seconds, after which counts stand still.
    pub const SECONDS: f64 = 0.6;
    /// Rows, unless chosen: as published.
    pub const ROWS: u64 = 100_000;
    /// Seconds before a trial: the pool is read back from the disk meanwhile.
    const WARM_UP: f64 = 0.25;
    /// The databases that there are in it, MariaDB first.
    pub const DATABASES: [&str; 5] = ["mariadb", "postgres", "redis", "etcd", "sqlite"];

    /// The binary log synced or not, on nine sites, with 1, 2 and 16 clients; the others on ext4.
    pub fn standard() -> Plan {
        Plan {
            kind: PlanKind::Standard,
            selection: Selection::default(),
            flush_logs: vec![1],
            rows: Self::ROWS,
            rounds: Self::ROUNDS,
            seconds: Self::SECONDS,
        }
    }

    /// Every way to sync InnoDB's log as well, and more sites.
    pub fn full() -> Plan {
        Plan {
            kind: PlanKind::Full,
            flush_logs: vec![1, 0, 2],
            ..Self::standard()
        }
    }

    /// The standard or the full plan, restricted to what the user chose.
    pub fn chosen(selection: Selection, full: bool) -> Result<Plan, Error> {
        for name in &selection.databases {
            if !Self::DATABASES.contains(&name.as_str()) {
                return Err(Error::Usage(format!(
                    "binlog has no database '{name}'; it has: {}",
                    Self::DATABASES.join(", ")
                )));
            }
        }
        if !selection.tried.is_empty() && selection.databases.len() != 1 {
            return Err(Error::Usage(
                "settings are tried of one database; name it, as in --database mariadb".into(),
            ));
        }
        let plan = if full { Self::full() } else { Self::standard() };
        Ok(Plan {
            kind: if selection == Selection::default() {
                plan.kind
            } else {
                PlanKind::Chosen
            },
            selection,
            ..plan
        })
    }

    /// The same where no filesystem can be made: in the directory alone.
    pub(super) fn in_directory(&self) -> Plan {
        let mut plan = self.clone();
        plan.selection.sites = vec![SiteSpec::Directory];
        plan
    }

    /// Whether the user named the sites.
    pub(super) fn sites_are_chosen(&self) -> bool {
        !self.selection.sites.is_empty()
    }

    fn sites(&self) -> Vec<SiteSpec> {
        if self.sites_are_chosen() {
            return self.selection.sites.clone();
        }
        let more = match self.flush_logs.len() {
            1 => &[][..],
            _ => &MORE_SITES[..],
        };
        let all = SITES.iter().chain(more);
        // All of them can be read: a test does.
        all.filter_map(|site| site.parse().ok()).collect()
    }

    /// Those that the user chose, each once, or else the usual ones.
    fn clients(&self, usual: &[u32]) -> Vec<u32> {
        let mut clients: Vec<u32> = Vec::new();
        for one in &self.selection.clients {
            if !clients.contains(one) {
                clients.push(*one);
            }
        }
        if clients.is_empty() {
            clients.extend(usual);
        }
        clients
    }

    fn has(&self, database: &str) -> bool {
        let chosen = &self.selection.databases;
        chosen.is_empty() || chosen.iter().any(|name| name == database)
    }

    /// Everything that is measured.
    pub fn configurations(&self) -> configuration::Plan {
        let mut configurations = Vec::new();
        let sites = self.sites();
        if !self.selection.tried.is_empty() {
            configurations.extend(sites.iter().flat_map(|site| self.trying(site)));
        } else if self.has("mariadb") {
            for site in &sites {
                configurations.extend(self.mariadb(site));
            }
        }
        let beside = beside(&sites).filter(|_| self.selection.tried.is_empty());
        if let Some(site) = beside {
            if self.has("postgres") {
                configurations.extend(self.postgres(site));
            }
            if self.has("redis") {
                configurations.extend(self.redis(site));
            }
            if self.has("etcd") {
                configurations.extend(self.etcd(site));
            }
            if self.has("sqlite") {
                configurations.extend(self.sqlite(site));
            }
        }
        configuration::Plan {
            configurations,
            rounds: self.rounds,
            warm_up_seconds: Self::WARM_UP,
            steady: None,
            seconds: self.seconds,
            // What is looked at is logs, which a trial only ever extends.
            shares_starts: true,
            settles: false,
            drive: None,
            loads_in_place: false,
            loaded_bytes: EMPTY + self.rows.saturating_mul(ROW),
            added_bytes: ((self.seconds + Self::WARM_UP) * GROWTH as f64) as u64,
        }
    }

    fn mariadb(&self, site: &SiteSpec) -> Vec<Configuration> {
        let mut all = Vec::new();
        for flush_log in &self.flush_logs {
            for sync in ["0", "1"] {
                let mut varied = vec![("sync_binlog", sync.to_owned())];
                if *flush_log != 1 {
                    varied.push(("innodb_flush_log_at_trx_commit", flush_log.to_string()));
                }
                let settings = [
                    ("sync_binlog", sync.to_owned()),
                    ("innodb_flush_log_at_trx_commit", flush_log.to_string()),
                    // All of the table is back in the pool before it is measured.
                    ("innodb_buffer_pool_load_at_startup", "ON".to_owned()),
                    ("innodb_buffer_pool_dump_at_shutdown", "OFF".to_owned()),
                ];
                let loaded_with = [
                    ("innodb_buffer_pool_size", self.pool()),
                    ("innodb_flush_log_at_trx_commit", "2".to_owned()),
                    ("innodb_buffer_pool_dump_at_shutdown", "ON".to_owned()),
                    ("innodb_buffer_pool_dump_pct", "100".to_owned()),
                ];
                let one = |clients| Configuration {
                    name: name(sync, *flush_log),
                    varied: owned(&varied),
                    site: site.clone(),
                    database: "mariadb".into(),
                    loaded_with: owned(&loaded_with),
                    settings: owned(&settings),
                    clients,
                    ..self.oltp()
                };
                all.extend(self.clients(&CLIENTS).into_iter().map(one));
            }
        }
        all
    }

    /// Bytes of a pool that holds the whole table.
    fn pool(&self) -> String {
        let bytes = (self.rows * ROW).max(64 * MIB).next_multiple_of(64 * MIB) * 2;
        format!("{}M", bytes / MIB)
    }

    fn postgres(&self, site: &SiteSpec) -> Vec<Configuration> {
        let clients = self.clients(&SHARING_CLIENTS);
        let mut all = Vec::new();
        let mut add = |settings: &[(&str, String)], clients: u32| {
            let varied = owned(settings);
            all.push(Configuration {
                name: format!("postgres {}", words(&varied)),
                varied,
                site: site.clone(),
                database: "postgres".into(),
                settings: owned(settings),
                clients,
                ..self.oltp()
            });
        };
        for method in WAL_SYNC_METHODS {
            for clients in &clients {
                add(&[("wal_sync_method", method.to_owned())], *clients);
            }
        }
        // It waits only where others are in the middle of a transaction.
        for clients in clients.iter().filter(|clients| **clients > 5) {
            let delay = [
                ("wal_sync_method", WAL_SYNC_METHODS[0].to_owned()),
                ("commit_delay", COMMIT_DELAY.to_owned()),
            ];
            add(&delay, *clients);
        }
        all
    }

    /// The usual durable configurations of a database, each without and with what is tried.
    fn trying(&self, site: &SiteSpec) -> Vec<Configuration> {
        let tried = &self.selection.tried;
        let usual: Vec<Configuration> = match self.selection.databases.first().map(String::as_str) {
            Some("postgres") => self.postgres(site),
            Some("redis") => self.redis(site),
            Some("etcd") => self.etcd(site),
            Some("sqlite") => self.sqlite(site),
            _ => self.mariadb(site),
        };
        let is_reference = |one: &Configuration| REFERENCES.contains(&one.name.as_str());
        let mut all = Vec::new();
        for one in usual.into_iter().filter(is_reference) {
            let replaced = |key: &str| tried.iter().any(|(other, _)| other == key);
            let kept = one.settings.iter().filter(|(key, _)| !replaced(key));
            let with = Configuration {
                tried: Some(words(tried)),
                settings: kept.chain(tried).cloned().collect(),
                ..one.clone()
            };
            all.extend([one, with]);
        }
        all
    }

    fn oltp(&self) -> Configuration {
        Configuration {
            workload: "oltp_write_only".into(),
            workload_settings: owned(&[("rows", self.rows.to_string())]),
            ..Configuration::default()
        }
    }

    fn redis(&self, site: &SiteSpec) -> Vec<Configuration> {
        let mut all = Vec::new();
        for policy in APPEND_FSYNC {
            let one = |clients| Configuration {
                name: format!("redis appendfsync={policy}"),
                varied: owned(&[("appendfsync", policy.to_owned())]),
                site: site.clone(),
                database: "redis".into(),
                settings: owned(&[("appendfsync", policy.to_owned())]),
                workload: "puts".into(),
                clients,
                ..Configuration::default()
            };
            all.extend(self.clients(&REDIS_CLIENTS).into_iter().map(one));
        }
        all
    }

    fn etcd(&self, site: &SiteSpec) -> Vec<Configuration> {
        let mut all = Vec::new();
        for unsynced in ["false", "true"] {
            let one = |clients| Configuration {
                name: format!("etcd unsafe-no-fsync={unsynced}"),
                varied: owned(&[("unsafe-no-fsync", unsynced.to_owned())]),
                site: site.clone(),
                database: "etcd".into(),
                settings: owned(&[("unsafe-no-fsync", unsynced.to_owned())]),
                workload: "puts".into(),
                clients,
                ..Configuration::default()
            };
            all.extend(self.clients(&SHARING_CLIENTS).into_iter().map(one));
        }
        all
    }

    /// One client, since SQLite has one writer at a time.
    fn sqlite(&self, site: &SiteSpec) -> Vec<Configuration> {
        let mut all = Vec::new();
        for (mode, level) in JOURNALS {
            let one = |clients| Configuration {
                name: format!("sqlite journal_mode={mode} synchronous={level}"),
                varied: owned(&[
                    ("journal_mode", mode.to_owned()),
                    ("synchronous", level.to_owned()),
                ]),
                site: site.clone(),
                database: "sqlite".into(),
                loaded_with: owned(&[("journal_mode", mode.to_owned())]),
                settings: owned(&[("synchronous", level.to_owned())]),
                workload: "puts".into(),
                clients,
                ..Configuration::default()
            };
            all.extend(self.clients(&[1]).into_iter().map(one));
        }
        all
    }
}

/// What settings are tried against: what is durable, and usual.
const REFERENCES: [&str; 5] = [
    "mariadb sync_binlog=1",
    "postgres wal_sync_method=fdatasync",
    "redis appendfsync=always",
    "etcd unsafe-no-fsync=false",
    "sqlite journal_mode=wal synchronous=full",
];

fn words(settings: &Settings) -> String {
    let words = settings.iter().map(|(key, value)| format!("{key}={value}"));
    words.collect::<Vec<String>>().join(" ")
}

fn owned(settings: &[(&str, String)]) -> Settings {
    let owned = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
    settings.iter().map(owned).collect()
}

/// The name of MariaDB with these settings.
pub(super) fn name(sync_binlog: &str, flush_log: u32) -> String {
    let mut name = format!("mariadb sync_binlog={sync_binlog}");
    if flush_log != 1 {
        name += &format!(" innodb_flush_log_at_trx_commit={flush_log}");
    }
    name
}

/// The site that the other databases stand on: a plain ext4 if there is one, and otherwise the first.
fn beside(sites: &[SiteSpec]) -> Option<&SiteSpec> {
    let ext4 = FilesystemSpec::plain(Kind::Ext4);
    let is_plain = |site: &&SiteSpec| **site == SiteSpec::Loop(ext4.clone());
    sites.iter().find(is_plain).or(sites.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_plan_has_nine_sites_and_five_databases() {
        let plan = Plan::standard();
        let all = plan.configurations();
        assert_eq!(all.sites().len(), 9);
        let of = |name: &str| {
            let same = all.configurations.iter().filter(|one| one.database == name);
            same.count()
        };
        assert_eq!((of("mariadb"), of("postgres"), of("redis")), (54, 9, 6));
        assert_eq!((of("etcd"), of("sqlite")), (4, 4));
        assert_eq!(all.starts().len(), 18 + 5 + 3 + 2 + 4);
        let mut keys: Vec<String> = all.configurations.iter().map(Configuration::key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all.configurations.len(), "keys are unique");
        assert!(all.expected().as_secs() <= 10 * 60, "{:?}", all.expected());
    }

    #[test]
    fn the_full_plan_has_more_of_both() {
        let all = Plan::full().configurations();
        assert_eq!(all.sites().len(), 12);
        let of_mariadb = all
            .configurations
            .iter()
            .filter(|one| one.database == "mariadb");
        assert_eq!(of_mariadb.count(), 12 * 6 * 3);
    }

    #[test]
    fn what_is_chosen_restricts_the_plan() {
        let selection = Selection {
            sites: vec!["dir".parse().unwrap(), "loop:xfs".parse().unwrap()],
            databases: vec!["postgres".into()],
            clients: vec![4],
            ..Selection::default()
        };
        let plan = Plan::chosen(selection.clone(), false).unwrap();
        assert_eq!(plan.kind, PlanKind::Chosen);
        let all = plan.configurations();
        assert_eq!(all.sites(), [&SiteSpec::Directory]);
        assert_eq!(all.configurations.len(), 4);
        let wrong = Selection {
            databases: vec!["oracle".into()],
            ..selection
        };
        let refused = Plan::chosen(wrong, false).unwrap_err().to_string();
        assert!(
            refused.contains("it has: mariadb, postgres, redis, etcd, sqlite"),
            "{refused}"
        );
        assert_eq!(
            Plan::chosen(Selection::default(), true).unwrap(),
            Plan::full()
        );
    }

    #[test]
    fn a_number_of_clients_that_is_named_twice_is_measured_once() {
        let of = |clients: Vec<u32>| {
            let selection = Selection {
                clients,
                ..Selection::default()
            };
            Plan::chosen(selection, false).unwrap().configurations()
        };
        assert_eq!(of(vec![2, 1, 2]), of(vec![2, 1]));
    }

    #[test]
    fn settings_are_tried_against_what_is_durable_without_them() {
        let selection = Selection {
            sites: vec!["dir".parse().unwrap()],
            databases: vec!["mariadb".into()],
            clients: vec![1, 16],
            tried: owned(&[("innodb_flush_log_at_trx_commit", "2".to_owned())]),
        };
        let plan = Plan::chosen(selection.clone(), false).unwrap();
        let all = plan.configurations().configurations;
        assert_eq!(all.len(), 4);
        let with = &all[1];
        assert_eq!(
            with.key(),
            "dir/mariadb sync_binlog=1 with innodb_flush_log_at_trx_commit=2/1 client"
        );
        let value = |one: &Configuration, key: &str| {
            let all = one.all_settings();
            all.into_iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value)
        };
        let key = "innodb_flush_log_at_trx_commit";
        assert_eq!(value(&all[0], key).as_deref(), Some("1"));
        assert_eq!(value(with, key).as_deref(), Some("2"));
        assert_eq!(value(with, "sync_binlog").as_deref(), Some("1"));
        let several = Selection {
            databases: Vec::new(),
            ..selection
        };
        assert!(Plan::chosen(several, false).is_err());
    }
}
