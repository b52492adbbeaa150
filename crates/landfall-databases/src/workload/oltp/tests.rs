use crate::Value;
use crate::conformance::{Fixture, sql};
use crate::workload::fixtures::loaded;

/// id, k, length of c, length of pad.
fn rows(fixture: &Fixture) -> Vec<Vec<i64>> {
    let mut session = sql(&*fixture.running);
    let query = session
        .prepare("SELECT id, k, length(c), length(pad) FROM sbtest1 ORDER BY id")
        .unwrap();
    let rows = session.query(query, &[]).unwrap();
    let numbers = |row: &Vec<Value>| row.iter().filter_map(Value::integer).collect();
    rows.iter().map(numbers).collect()
}

/// The rows before and after so many transactions of two clients each.
fn ran(test: &str, transactions: usize) -> [Vec<Vec<i64>>; 2] {
    let (fixture, workload) = loaded("sqlite", test, "rows=10000");
    let before = rows(&fixture);
    for number in 0..2 {
        let session = fixture.running.session().unwrap();
        let mut client = workload.client(session, number, 1).unwrap();
        (0..transactions).for_each(|_| assert_eq!(client.request(), Ok(0)));
    }
    assert_eq!(
        fixture.running.verify(&crate::Stop::default()).unwrap(),
        None
    );
    [before, rows(&fixture)]
}

#[test]
fn loaded_rows_are_as_sysbench_has_them() {
    let [rows, same] = ran("oltp_update_index", 0);
    assert_eq!(rows, same);
    assert_eq!(rows.len(), 10_000);
    for (row, id) in rows.iter().zip(1..) {
        assert_eq!((row[0], row[2], row[3]), (id, 119, 59));
        assert!((1..=10_000).contains(&row[1]));
    }
}

#[test]
fn an_index_update_adds_one_to_a_row() {
    let [before, after] = ran("oltp_update_index", 50);
    let k = |rows: &[Vec<i64>]| rows.iter().map(|row| row[1]).sum::<i64>();
    assert_eq!(k(&after) - k(&before), 100);
    assert_eq!(after.len(), before.len());
}

#[test]
fn a_non_index_update_leaves_all_but_one_column() {
    let [before, after] = ran("oltp_update_non_index", 50);
    assert_eq!(before, after);
}

#[test]
fn an_insert_goes_behind_the_last_row() {
    let [before, after] = ran("oltp_insert", 50);
    assert_eq!(after[..before.len()], before);
    let ids: Vec<i64> = after[before.len()..].iter().map(|row| row[0]).collect();
    assert_eq!(ids, (10_001..=10_100).collect::<Vec<i64>>());
}

#[test]
fn other_transactions_replace_rows_and_keep_their_number() {
    for test in ["oltp_write_only", "oltp_read_write"] {
        let [before, after] = ran(test, 50);
        let ids = |rows: &[Vec<i64>]| rows.iter().map(|row| row[0]).collect::<Vec<i64>>();
        assert_eq!(ids(&before), ids(&after));
        let changed = before.iter().zip(&after).filter(|(old, new)| old != new);
        // An update and a replacement each, some of which meet.
        assert!((190..=200).contains(&changed.count()), "{test}");
        assert!(after.iter().all(|row| (row[2], row[3]) == (119, 59)));
    }
}
