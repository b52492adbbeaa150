//! Configurations as people have them, held against what was recorded.

use std::sync::LazyLock;

use super::*;
use crate::advice::fixtures::recorded;
use crate::advice::{Advice, advise};
use crate::config_file::ConfigFile;

fn advice() -> Advice {
    static ADVICE: LazyLock<Advice> =
        LazyLock::new(|| advise(&recorded("disk"), "landfall-report", None));
    ADVICE.clone()
}

#[test]
fn a_configuration_that_risks_data_is_told_so_by_file_and_line() {
    let advice = advice();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.cnf");
    std::fs::write(
        &path,
        "[mysqld]\nlog_bin\ninnodb_flush_log_at_trx_commit = 2\n",
    )
    .unwrap();
    let read = ConfigFile::read(System::Mariadb, &path).unwrap();
    let found = check(System::Mariadb, &path, &read, &advice);
    let risks: Vec<(&str, &str, bool)> = found
        .risks
        .iter()
        .map(|risk| {
            (
                risk.setting.as_str(),
                risk.value.as_str(),
                risk.at.is_some(),
            )
        })
        .collect();
    // The binary log is there, and nobody set when it is synced.
    assert_eq!(
        risks,
        [
            ("innodb_flush_log_at_trx_commit", "2", true),
            ("sync_binlog", "0", false)
        ]
    );
    assert!(found.risks[0].at.as_deref().unwrap().ends_with("my.cnf:3"));
    assert!(found.risks[0].proof.as_ref().unwrap().losing > 0);
    assert_eq!(found.risks[0].better.as_deref(), Some("1"));
    std::fs::write(&path, "[mysqld]\nskip-log-bin\n").unwrap();
    let read = ConfigFile::read(System::Mariadb, &path).unwrap();
    assert_eq!(check(System::Mariadb, &path, &read, &advice).risks, []);
    // MySQL has a binary log unless told otherwise, and syncs it.
    std::fs::write(&path, "[mysqld]\n[mariadb]\nsync_binlog=0\n").unwrap();
    let read = ConfigFile::read(System::Mysql, &path).unwrap();
    assert_eq!(check(System::Mysql, &path, &read, &advice).risks, []);
    std::fs::write(&path, "[mysqld-8.4]\nsync_binlog=0\n").unwrap();
    let read = ConfigFile::read(System::Mysql, &path).unwrap();
    let found = check(System::Mysql, &path, &read, &advice);
    assert_eq!(found.risks[0].setting, "sync_binlog");
}

/// What a file risks, setting by setting.
fn risks(system: System, files: &[(&str, &str)]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().to_str().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text.replace("HERE", here)).unwrap();
    }
    let path = directory.path().join(files[0].0);
    let read = ConfigFile::read(system, &path).unwrap();
    let found = check(system, &path, &read, &advice());
    assert_eq!(found.not_known, [], "{files:?}");
    let risks = found.risks.into_iter();
    risks
        .map(|risk| format!("{}={}", risk.setting, risk.value))
        .collect()
}

#[test]
fn what_servers_take_for_a_risk_is_one() {
    use System::{Etcd, Kafka, Mariadb, Mysql, Nats, Redis, Rocksdb};
    let none: [&str; 0] = [];
    for (system, text, expected) in [
        (Mysql, "[mysqld]\nsync_binlog=100", &["sync_binlog=100"][..]),
        (Mysql, "[mysqld]\nsync_binlog=100\nskip-log-bin", &none),
        // A file of that name.
        (
            Mysql,
            "[mysqld]\nsync_binlog=0\nlog_bin=OFF",
            &["sync_binlog=0"],
        ),
        (
            Mysql,
            "[mysqld]\nsync_binlog=0\nskip-log-bin=0",
            &["sync_binlog=0"],
        ),
        (
            Mysql,
            "[mysqld]\ninnodb_flush_method=nosync",
            &["innodb_flush_method=nosync"],
        ),
        (
            Mysql,
            "[mysqld]\ninnodb-doublewrite=DETECT_ONLY",
            &["innodb_doublewrite=DETECT_ONLY"],
        ),
        (
            Mariadb,
            "[mysqld]\nskip-innodb-doublewrite=1",
            &["innodb_doublewrite=OFF"],
        ),
        (
            Mariadb,
            "[mysqld]\ninnodb_doublewrite=fast",
            &["innodb_doublewrite=fast"],
        ),
        (Mariadb, "[mysqld]\ninnodb_flush_log_at_trx_commit=3", &none),
        (
            Mariadb,
            "[mysqld]\nlog_bin=mysql-bin\nsync_binlog=1000",
            &["sync_binlog=1000"],
        ),
        (
            Etcd,
            "ETCD_UNSAFE_NO_FSYNC=\"true\"",
            &["unsafe-no-fsync=true"],
        ),
        (Etcd, "\"unsafe-no-fsync\": true", &["unsafe-no-fsync=true"]),
        (
            Kafka,
            "log.flush.interval.messages=10000\nmin.insync.replicas=2",
            &none,
        ),
        // What is there where nobody sets it.
        (Kafka, "broker.id=1", &["min.insync.replicas=1"]),
        // It is set for each write, by the program.
        (Rocksdb, "[DBOptions]\n  recycle_log_file_num=0", &none),
        (
            Nats,
            "jetstream { sync_interval: 10m }",
            &["sync_interval=10m"],
        ),
        (Nats, "jetstream { sync_interval: always }", &none),
        (
            Redis,
            "appendonly yes\nappendfsync everysec",
            &["appendfsync=everysec"],
        ),
    ] {
        assert_eq!(risks(system, &[("file", text)]), expected, "{text}");
    }
    // What SET PERSIST wrote counts more, and so does what a glob brings in.
    let persisted = r#"{"Version": 2, "mysql_dynamic_variables": {"sync_binlog": {"Value": "0", "Metadata": {"Host": ""}}}}"#;
    let files = [
        ("my.cnf", "[mysqld]\ndatadir=HERE\nsync_binlog=1"),
        ("mysqld-auto.cnf", persisted),
    ];
    assert_eq!(risks(Mysql, &files), ["sync_binlog=0"]);
    let files = [
        ("redis.conf", "Include\tHERE/redis-*.conf"),
        ("redis-a.conf", "appendonly yes\nappendfsync no"),
        ("other.conf", "appendfsync always"),
    ];
    assert_eq!(risks(Redis, &files), ["appendfsync=no"]);
}

#[test]
fn sections_for_another_server_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.cnf");
    let text = "[mysqld@r1]\nsync_binlog=0\n[mariadb]\nsync_binlog=0\n[mysqldump]\nsync_binlog=0\n[mysqld2]\nport=1\n";
    std::fs::write(&path, text).unwrap();
    let read = ConfigFile::read(System::Mysql, &path).unwrap();
    assert_eq!(read.passed_over, ["mysqld@r1", "mariadb"]);
    assert_eq!(read.settings, []);
}

/// Which version will read the file is not known.
#[test]
fn a_section_for_one_version_hides_no_risk_and_is_named() {
    let unsafe_values = "innodb_flush_log_at_trx_commit=2\nsync_binlog=0\n";
    let safe_values = "innodb_flush_log_at_trx_commit=1\nsync_binlog=1\n";
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.cnf");
    let of = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let read = ConfigFile::read(System::Mysql, &path).unwrap();
        let found = check(System::Mysql, &path, &read, &advice());
        let named: Vec<String> = found.passed_over().collect();
        (found.risks.len(), found.set, named.join("\n"))
    };
    for text in [
        format!("[mysqld]\n{unsafe_values}[mysqld-5.7]\n{safe_values}"),
        format!("[mysqld]\n{safe_values}[mysqld-5.7]\n{unsafe_values}"),
        format!("[mysqld-5.7]\n{unsafe_values}[mysqld-8.4]\n{safe_values}"),
    ] {
        let (risks, set, named) = of(&text);
        assert_eq!((risks, set), (2, 2), "{text}");
        let words = "[mysqld-5.7] is for version 5.7 only; it counts where it risks more";
        assert!(named.contains(words), "{named}");
    }
    assert_eq!(of(&format!("[mysqld-5.7]\n{safe_values}")).0, 0);
}

/// Neither is a page size that cannot be changed, nor what is no slower.
#[test]
fn nothing_is_called_unused_that_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my.cnf");
    std::fs::write(&path, "[mysqld]\ninnodb_flush_method=fsync\n").unwrap();
    for system in [System::Mariadb, System::Mysql] {
        let read = ConfigFile::read(system, &path).unwrap();
        let found = check(system, &path, &read, &advice());
        assert_eq!(found.unused, []);
        assert_eq!(found.set, 1);
    }
}
