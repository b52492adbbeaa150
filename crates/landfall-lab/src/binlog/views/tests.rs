//! Reports of what experiment `binlog` finds.

use crate::binlog::fixtures::{binlog_results, mariadb, of_all};
use crate::report::tests::{HOSTILE, body, page};
use crate::sync::fixtures::results;

fn document(binlog: crate::binlog::BinlogResults) -> crate::Results {
    let mut document = results(Vec::new());
    document.experiments = vec![binlog.into()];
    document
}

#[test]
fn every_filesystem_is_in_every_chart() {
    let html = page(&document(binlog_results()));
    let body = body(&html);
    // Seven filesystems, two settings, one and two clients.
    for id in ["binlog-rate-1", "binlog-flushes-1", "binlog-kib-1"] {
        assert!(body.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert_eq!(body.matches("data-expected=\"28\"").count(), 3);
    assert!(body.contains("What syncing a growing log costs"));
    assert!(body.contains("Redis is not installed"));
    assert!(body.contains("1,060 to 610 a second"));
    assert!(body.contains("percona.com"));
    assert!(!body.contains("data-expected=\"0\""));
}

#[test]
fn one_site_with_one_client_is_a_report_and_so_is_nothing() {
    let mut binlog = binlog_results();
    binlog.measurements = of_all(&["dir"]);
    binlog.measurements.series.truncate(2);
    binlog.claims.clear();
    let html = page(&document(binlog.clone()));
    assert_eq!(body(&html).matches("data-expected=\"2\"").count(), 3);
    binlog.measurements.series.clear();
    let html = page(&document(binlog));
    assert!(body(&html).contains("Nothing was measured"));
}

#[test]
fn what_may_lose_something_by_its_document_is_not_durable() {
    let is = |database: &str, settings: &[(&str, &str)]| {
        let mut one = mariadb("dir", "1", 1, 1_000.0);
        one.axes.database = Some(database.to_owned());
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        one.axes.settings = settings.iter().map(owned).collect();
        super::is_durable(&one)
    };
    for (database, safe, unsafe_) in [
        ("etcd", ("unsafe-no-fsync", "false"), "true"),
        ("redis", ("appendfsync", "always"), "everysec"),
        ("redis", ("appendonly", "yes"), "no"),
        ("mariadb", ("sync_binlog", "1"), "0"),
        ("mariadb", ("innodb_flush_log_at_trx_commit", "3"), "2"),
        ("mariadb", ("innodb_flush_method", "O_DIRECT"), "nosync"),
        ("postgres", ("synchronous_commit", "local"), "off"),
        ("postgres", ("commit_delay", "0"), "1000"),
        ("sqlite", ("synchronous", "extra"), "normal"),
    ] {
        assert!(is(database, &[safe]), "{database} {safe:?}");
        let loses = is(database, &[(safe.0, unsafe_)]);
        assert_eq!(loses, safe.0 == "commit_delay", "{database} {unsafe_}");
    }
    let delete = |synchronous| {
        let settings = [("journal_mode", "delete"), ("synchronous", synchronous)];
        is("sqlite", &settings)
    };
    assert!(delete("extra") && !delete("full"));
}

#[test]
fn what_a_server_says_is_only_text() {
    let mut binlog = binlog_results();
    for one in &mut binlog.measurements.series {
        one.unsupported = Some(HOSTILE.to_owned());
        one.axes.workload = Some(HOSTILE.to_owned());
    }
    binlog.measurements.series[0].summary.clear();
    let html = page(&document(binlog));
    assert!(!html.contains(HOSTILE));
}
