//! Configurations as people have them, held against what was recorded.

use std::sync::LazyLock;

use landfall_recorder::wear::Drive;
use landfall_results::Metric;

use super::*;
use crate::advice::fixtures::recorded;
use crate::advice::{Advice, Target, advise};
use crate::amplify::AmplifyResults;
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

/// What a file leaves unused, in words.
fn unused(advice: &Advice, system: System, text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, text).unwrap();
    let read = ConfigFile::read(system, &path).unwrap();
    let found = check(system, &path, &read, advice);
    assert!(found.set > 0, "{text}");
    let is_shown = |one: &Finding| !one.evidence.is_empty();
    assert!(found.unused.iter().all(is_shown), "{:?}", found.unused);
    let said = found.findings();
    let said = said.filter(|(concern, ..)| *concern == Concern::Unused);
    let said = said.map(|(_, finding, sentence)| match &finding.at {
        Some(at) => sentence.replacen(at.as_str(), "file", 1),
        None => sentence,
    });
    said.collect()
}

/// Neither is a page size that cannot be changed, nor what is no slower, nor what is not known to be.
#[test]
fn nothing_is_called_unused_that_is_not() {
    use System::{Kafka, Mariadb, Mysql, Postgres};
    let disk = advice();
    let btrfs = advise(&recorded("btrfs"), "landfall-report", None);
    for (advice, system, text) in [
        (&disk, Mariadb, "[mysqld]\ninnodb_flush_method=fsync\n"),
        (&disk, Mysql, "[mysqld]\ninnodb_flush_method=fsync\n"),
        (&disk, Mariadb, "[mysqld]\ninnodb_flush_neighbors = 0\n"),
        (
            &disk,
            Mariadb,
            "[mysqld]\ninnodb_max_dirty_pages_pct = 10\n",
        ),
        // Such writes to a plain file were faster.
        (&btrfs, Postgres, "wal_recycle = off\n"),
        // They were slower, and are not what a broker does.
        (&disk, Kafka, "log.flush.interval.messages=1\n"),
    ] {
        assert_eq!(unused(advice, system, text), [""; 0], "{text}");
    }
}

#[test]
fn what_is_slower_or_does_not_fit_is_shown_to_be() {
    let text = "PRAGMA journal_mode=delete;\nPRAGMA synchronous=extra;\n";
    let slower = "file: journal_mode=delete could be faster: 0.35 (0.29–0.95) times as fast as wal (sqlite, 16 clients, on loop:ext4); set wal";
    assert_eq!(unused(&advice(), System::Sqlite, text), [slower]);
    let text = "[mysqld]\ninnodb_io_capacity=200\n";
    let spinning = advise(&recorded("spinning"), "landfall-report", None);
    let said = unused(&spinning, System::Mariadb, text).join("\n");
    let words = "innodb_io_capacity=200 does not fit this disk: overwrite/fdatasync/8K/16";
    assert!(said.contains(words), "{said}");
}

/// However many power cuts such writes were proven in.
#[test]
fn what_was_measured_of_plain_writes_alone_is_not_called_unused() {
    let mut advice = advice();
    let mut choices = advice.settings.iter().flat_map(|one| &one.choices);
    let proof = choices.find_map(|choice| choice.proof.clone()).unwrap();
    for (basis, expected) in [(Basis::Alike, 1), (Basis::Writes, 0)] {
        let mut settings = advice.settings.iter_mut();
        let setting = settings.find(|one| one.setting == "journal_mode").unwrap();
        setting.value = Some("delete".to_owned());
        for choice in &mut setting.choices {
            choice.recommendation = Recommendation::NoGain;
            if choice.value == "delete" {
                choice.recommendation = Recommendation::Use;
                choice.proof = Some(Proof {
                    basis,
                    ..proof.clone()
                });
                let gain = choice.gain.as_mut().unwrap();
                (gain.basis, gain.times.low, gain.times.high) = (basis, 2.0, 3.0);
            }
        }
        let text = "PRAGMA journal_mode=wal;\nPRAGMA synchronous=extra;\n";
        let said = unused(&advice, System::Sqlite, text);
        let of_it = said.iter().filter(|one| one.contains("journal_mode=wal"));
        assert_eq!(of_it.count(), expected, "{said:?}");
    }
}

/// How large an hour of writes is only a target can tell.
#[test]
fn a_small_log_is_said_to_write_more_where_the_better_size_is_known() {
    let mut results = recorded("disk");
    let amplify = results.experiments.iter_mut();
    let amplify = amplify.filter_map(|one| one.of_mut::<AmplifyResults>());
    let mut series = amplify.flat_map(|one| &mut one.measurements.series);
    let small = series.find(|one| one.name() == "innodb in pool redo=small");
    for trial in &mut small.unwrap().trials {
        trial.figures.set(Metric::Kib, 100.0);
    }
    let text = "[mysqld]\ninnodb_log_file_size=96M\n";
    let unknown = advise(&results, "landfall-report", None);
    assert_eq!(unused(&unknown, System::Mariadb, text), [""; 0]);
    let target: Target = "commits=1000,size=10K".parse().unwrap();
    let drive = Drive::default();
    let known = advise(&results, "landfall-report", Some((&target, &drive)));
    let said = unused(&known, System::Mariadb, text).join("\n");
    let words = "file: innodb_log_file_size=96M writes more than it must: writes 0.03 (";
    assert!(said.starts_with(words), "{said}");
    assert!(said.ends_with("; set 35157M"), "{said}");
}
