//! MySQL with InnoDB, as of 8.4.
//!
//! It is not tried here: what MariaDB did, which has InnoDB from the same root, stands in for it.

use landfall_os::{SyncCall, SyncMethod};

use super::mariadb::{self, LAST_SECOND, PAGE};
use super::{APPEND, OVERWRITE, UNSYNCED, overwrite};
use crate::rules::{Choice, Condition, Rule, Source, System, Value};

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
            Choice::loses("0", Some(UNSYNCED), "commits not yet in the binary log"),
            Choice::loses_above(1, "as many of the last commits as it says"),
        ],
        idle_with: Some(("log_bin", "OFF")),
        as_in: "mariadb-sync-binlog",
        source: Source {
            title: "Binary Logging Options and Variables, MySQL 8.4 Reference Manual",
            address: "https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html#sysvar_sync_binlog",
        },
        note: "There is a binary log unless it was taken off. Where many clients commit at the same time, binlog_group_commit_sync_delay has one sync serve more of them.",
        ..BLANK
    },
    Rule {
        id: "mysql-doublewrite",
        setting: "innodb_doublewrite",
        default: "ON",
        choices: &[
            Choice::durable("ON", None),
            Choice::durable("DETECT_AND_RECOVER", None).untried(),
            Choice::damages("DETECT_ONLY", None, "pages that are torn, and says so").untried(),
            Choice::damages("OFF", None, "pages that are torn"),
        ],
        when: &[Condition::Torn(PAGE)],
        as_in: "mariadb-doublewrite",
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_doublewrite",
        },
        note: "To be taken off only where device, filesystem and alignment together promise that a page is written whole; that nothing was seen torn is no promise.",
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
                "pages in the disk's own cache, where the redo log is on another disk",
            ),
            Choice::loses("littlesync", None, "what the kernel had not written").untried(),
            Choice::loses("nosync", None, "what the kernel had not written").untried(),
        ],
        as_in: "mariadb-flush-method",
        source: Source {
            title: PARAMETERS,
            address: "https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html#sysvar_innodb_flush_method",
        },
        note: "O_DIRECT is usual since MySQL 8.4, where the filesystem has it, and fsync before.",
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
        note: "Before MySQL 8.4 it is OFF unless set.",
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
        note: "10000 in MySQL 8.4 unless set, 200 before. As low as practical, but not so low that background work falls behind. No less than 100 is taken. Half of what 16 threads can sync here is our own reckoning.",
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
        note: "--workload reckons it. Recovery takes longer. In older versions it is innodb_log_file_size, for each of its files.",
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
        note: "A target for flushing: fewer dirty pages cost writes.",
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
