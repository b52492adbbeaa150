//! MySQL with InnoDB, as of 8.4.
//!
//! It is not tried here: what MariaDB did, which has InnoDB from the same root, stands in for it.

use landfall_os::{SyncCall, SyncMethod};
use landfall_results::proof::Hazard;

use super::mariadb::{self, LAST_SECOND, PAGE};
use super::{APPEND, OVERWRITE, UNSYNCED, overwrite};
use crate::rules::{Choice, Condition, NO_BINLOG, Rule, Source, System, Value};

const PARAMETERS: &str = "InnoDB Startup Options and System Variables, MySQL 8.4 Reference Manual";

const BLANK: Rule = Rule {
    system: System::Mysql,
    ..Rule::BLANK
};

pub(super) static RULES: [Rule; 10] = [
    Rule {
        id: "mysql-log-at-commit",
        setting: "innodb_flush_log_at_trx_commit",
        default: "1",
        choices: &[
            Choice::durable("1", Some(OVERWRITE)),
            Choice::loses("2", Some(UNSYNCED), LAST_SECOND),
            Choice::loses("0", Some(UNSYNCED), LAST_SECOND),
        ],
        as_in: "mariadb-log-at-commit",
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_flush_log_at_trx_commit",
        },
        ..BLANK
    },
    Rule {
        id: "mysql-sync-binlog",
        setting: "sync_binlog",
        default: "1",
        choices: &[
            Choice::durable("1", Some(APPEND)),
            Choice::loses(
                "0",
                Some(UNSYNCED),
                "the commits whose binary log is not on disk yet",
            ),
            Choice::loses_above(1, "that many of the last commits"),
        ],
        idle_with: Some(NO_BINLOG),
        as_in: "mariadb-sync-binlog",
        source: Source {
            title: "Binary Logging Options and Variables, MySQL 8.4 Reference Manual",
            address: "https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html#sysvar_sync_binlog",
        },
        note: "The binary log is on by default. With many clients, binlog_group_commit_sync_delay lets one sync serve more commits.",
        ..BLANK
    },
    Rule {
        id: "mysql-doublewrite",
        setting: "innodb_doublewrite",
        default: "ON",
        choices: &[
            Choice::durable("ON", None),
            Choice::durable("DETECT_AND_RECOVER", None).untried(),
            Choice::damages(
                "DETECT_ONLY",
                None,
                "pages torn by the power cut, which it reports",
            )
            .untried(),
            Choice::damages("OFF", None, "pages torn by the power cut"),
        ],
        when: &[Condition::Torn(PAGE)],
        protects_from: Some(Hazard::PageTorn),
        as_in: "mariadb-doublewrite",
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_doublewrite",
        },
        note: "Turn it off only where device, filesystem and alignment guarantee that a page is written whole. A proof without torn pages is no guarantee.",
        ..BLANK
    },
    Rule {
        id: "mysql-doublewrite-untorn",
        system: System::Mysql,
        measured_by: None,
        as_in: "mariadb-doublewrite-untorn",
        ..mariadb::UNTORN
    },
    Rule {
        id: "mysql-flush-method",
        setting: "innodb_flush_method",
        default: "O_DIRECT",
        choices: &[
            Choice::durable(
                "O_DIRECT",
                Some(overwrite(SyncMethod::direct(SyncCall::Fdatasync))),
            ),
            Choice::durable(
                "fsync",
                Some(overwrite(SyncMethod::buffered(SyncCall::Fdatasync))),
            ),
            Choice::durable(
                "O_DSYNC",
                Some(overwrite(SyncMethod::buffered(SyncCall::ODsync))),
            ),
            Choice::loses(
                "O_DIRECT_NO_FSYNC",
                Some(overwrite(SyncMethod::direct(SyncCall::None))),
                "pages in the disk's cache, if the redo log is on another disk",
            ),
            Choice::loses("littlesync", None, "what the kernel has not written yet").untried(),
            Choice::loses("nosync", None, "what the kernel has not written yet").untried(),
        ],
        as_in: "mariadb-flush-method",
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_flush_method",
        },
        note: "O_DIRECT is the default since MySQL 8.4, if the filesystem has it; before it was fsync.",
        ..BLANK
    },
    Rule {
        id: "mysql-use-fdatasync",
        setting: "innodb_use_fdatasync",
        since: "MySQL 8.0",
        default: "ON",
        choices: &[
            Choice::durable("ON", Some(OVERWRITE)),
            Choice::durable(
                "OFF",
                Some(overwrite(SyncMethod::buffered(SyncCall::Fsync))),
            ),
        ],
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_use_fdatasync",
        },
        note: "Before MySQL 8.4 the default is OFF.",
        ..BLANK
    },
    Rule {
        id: "mysql-io-capacity",
        system: System::Mysql,
        default: "10000",
        choices: &[
            Choice::neutral(Value::Fixed("10000"), None),
            mariadb::FITTING,
        ],
        note: "The default is 10000 in MySQL 8.4; before it was 200. As low as possible while background work keeps up; at least 100. Landfall suggests half the page writes that 16 threads can sync here.",
        ..mariadb::IO_CAPACITY
    },
    Rule {
        id: "mysql-redo-size",
        setting: "innodb_redo_log_capacity",
        default: "100M",
        choices: &[
            Choice::neutral(Value::Fixed("100M"), None),
            Choice::neutral(Value::HourOfWrites, None),
        ],
        as_in: "mariadb-redo-size",
        since: "MySQL 8.0",
        source: Source {
            title: "Optimizing InnoDB Redo Logging, MySQL 8.4 Reference Manual",
            address: "https://dev.mysql.com/doc/refman/8.4/en/optimizing-innodb-logging.html",
        },
        note: "--workload computes it. Recovery takes longer. Before MySQL 8.0.30 it is innodb_log_file_size, for each file.",
        ..BLANK
    },
    Rule {
        id: "mysql-dirty-pages",
        setting: "innodb_max_dirty_pages_pct",
        default: "90",
        choices: &[
            Choice::neutral(Value::Fixed("90"), None),
            Choice::neutral(Value::Fixed("10"), None),
        ],
        as_in: "mariadb-dirty-pages",
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_max_dirty_pages_pct",
        },
        note: "A target for flushing. Fewer dirty pages cost writes.",
        ..BLANK
    },
    Rule {
        id: "mysql-page-size",
        system: System::Mysql,
        measured_by: None,
        as_in: "mariadb-page-size",
        ..mariadb::PAGE_SIZE
    },
];
