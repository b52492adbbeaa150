//! That the public methods do what they say: a log in a directory of this machine.

use super::{Log, Lsn};
use crate::environment::{Environment, Machine};
use crate::{Error, Options};

fn options() -> Options {
    Options::default()
        .segment_bytes(64 << 10)
        .buffer_bytes(32 << 10)
        .max_unwritten_bytes(16 << 10)
}

#[test]
fn what_is_appended_is_committed_read_and_discarded() {
    let outside = tempfile::tempdir().unwrap();
    let log = Log::open(outside.path().join("log"), options()).unwrap();
    log.append(b"one").unwrap();
    log.append_batch(&[b"two", b"three"]).unwrap();
    log.commit_to(Lsn(2)).unwrap();
    assert!(log.durable_end() > Lsn(2));
    log.commit().unwrap();
    assert_eq!((log.durable_end(), log.next_lsn()), (Lsn(4), Lsn(4)));
    assert!(log.counters().commits > 0, "{:?}", log.counters());

    let mut reader = log.read(Lsn(1)).unwrap();
    let first = reader.next().unwrap().unwrap();
    assert_eq!((first.lsn, first.bytes), (Lsn(1), &b"one"[..]));
    let mut tail = log.tail(Lsn(3)).unwrap();
    let last = tail.next().unwrap().unwrap();
    assert_eq!((last.lsn, last.bytes), (Lsn(3), &b"three"[..]));

    log.truncate_before(Lsn(3)).unwrap();
    assert_eq!(log.first_lsn(), Lsn(3));
    assert!(log.append_then(b"four", |_| ()).is_ok());
    log.close().unwrap();
    assert!(
        tail.next().unwrap().is_some(),
        "what was committed by closing"
    );
    assert!(tail.next().unwrap().is_none());
}

#[test]
fn closing_says_that_it_could_not_commit() {
    let outside = tempfile::tempdir().unwrap();
    let log = Log::open(outside.path().join("log"), options()).unwrap();
    log.append(b"one").unwrap();
    let shared = &log.handle.shared;
    let failed = std::io::Error::other("planned");
    shared.poison(Machine::lock(&shared.state), "appending", failed);
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
}

#[test]
fn a_log_that_is_dropped_is_closed() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("log");
    let log = Log::open(&place, options()).unwrap();
    log.append(b"one").unwrap();
    drop(log);
    let log = Log::open(&place, options()).unwrap();
    assert_eq!(log.durable_end(), Lsn(2));
}
