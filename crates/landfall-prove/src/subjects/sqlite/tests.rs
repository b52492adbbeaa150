use std::fs;

use super::super::fixtures::*;
use super::*;

#[test]
fn every_mode_and_level_keeps_what_was_committed() {
    for mode in ["delete", "truncate", "persist", "wal", "memory", "off"] {
        for level in ["off", "normal", "full", "extra"] {
            let settings = format!("journal_mode={mode} synchronous={level}");
            runs_and_finds_all("sqlite", &settings);
        }
        let exclusive = format!("journal_mode={mode} locking_mode=exclusive page_size=512");
        runs_and_finds_all("sqlite", &exclusive);
    }
    runs_and_finds_all("sqlite", "page_size=64K mmap_size=1M");
    runs_and_finds_all("sqlite", "journal_mode=wal wal_autocheckpoint=1");
    runs_and_finds_all("sqlite", "journal_mode=wal wal_autocheckpoint=0");
}

#[test]
fn every_slot_is_written_and_no_transaction_writes_one_twice() {
    let mut written = [0; SLOTS as usize];
    for transaction in 1..=SLOTS {
        let mut slots = slots(transaction).to_vec();
        slots.iter().for_each(|&slot| written[slot as usize] += 1);
        slots.dedup();
        assert_eq!(slots.len(), 3);
    }
    assert_eq!(written, [3; SLOTS as usize]);
}

/// Copies the directory, as a cut of the program's power would leave it, at every acknowledgement.
struct Copying<'a>(Counting, &'a Path, Vec<tempfile::TempDir>);

impl AckSink for Copying<'_> {
    fn send(&mut self) -> Option<u64> {
        self.0.send()
    }

    fn acknowledge(&mut self, transaction: u64) {
        self.0.acknowledge(transaction);
        let copy = directory();
        for entry in fs::read_dir(self.1).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        self.2.push(copy);
    }
}

#[test]
fn a_database_that_was_never_closed_is_recovered() {
    for settings in [
        "journal_mode=wal",
        "journal_mode=wal locking_mode=exclusive",
        "journal_mode=persist",
        "journal_mode=delete",
    ] {
        let subject = subject("sqlite", settings);
        let directory = directory();
        subject.prepare(directory.path(), &Stop::default()).unwrap();
        let mut sink = Copying(Counting::new(20), directory.path(), Vec::new());
        subject
            .run(directory.path(), &mut sink, &Stop::default())
            .unwrap();
        for (before, copy) in sink.2.iter().enumerate() {
            let found = check(subject.as_ref(), copy.path());
            assert_eq!(found, all_whole(before as u64 + 1), "{settings}");
        }
    }
}

/// What is found after these statements were executed on 20 transactions.
fn found_after(statements: &str) -> Recovered {
    let subject = subject("sqlite", "");
    let directory = run(subject.as_ref(), 20).unwrap();
    let connection = Connection::open(directory.path().join(DATABASE)).unwrap();
    connection.execute_batch(statements).unwrap();
    connection.close().unwrap();
    check(subject.as_ref(), directory.path())
}

fn without(transactions: &[u64]) -> Recovered {
    let mut found = all_whole(20);
    found.whole.retain(|one| !transactions.contains(one));
    found
}

#[test]
fn a_row_that_is_gone_is_a_transaction_that_is_gone() {
    // Others have written its slots since.
    let found = found_after("DELETE FROM history WHERE n = 3");
    assert_eq!(found, without(&[3]));
}

#[test]
fn a_part_of_a_transaction_is_seen() {
    let mut expected = without(&[20]);
    expected.partial = set(&[20]);
    // The slots without the row, then the row without one of its slots.
    assert_eq!(found_after("DELETE FROM history WHERE n = 20"), expected);
    let [slot, ..] = slots(20);
    let undo = format!("UPDATE slots SET n = 0 WHERE slot = {slot}");
    assert_eq!(found_after(&undo), expected);
    let undo = format!("UPDATE slots SET n = 13 WHERE slot = {slot}");
    assert_eq!(found_after(&undo).partial, set(&[20]));
}

#[test]
fn what_nobody_wrote_is_invented() {
    let found = found_after("UPDATE history SET payload = randomblob(300) WHERE n = 3");
    assert_eq!(
        found.invented,
        ["row 3 of history, with a payload that nobody wrote"]
    );
    assert!(!found.whole.contains(&3));
    assert_eq!(
        found_after("INSERT INTO history VALUES (-1, 'x')").invented,
        ["row -1 of history, with a payload that nobody wrote"]
    );
    let found = found_after("UPDATE slots SET n = 99 WHERE slot = 0");
    assert_eq!(found.invented, ["slot 0 holds 99, which did not write it"]);
    let slot_of_20 = slots(20)[0];
    let found = found_after(&format!(
        "UPDATE slots SET n = -5 WHERE slot = {slot_of_20}"
    ));
    assert_eq!(found.partial, set(&[20]));
    assert_eq!(found.invented.len(), 1);
}

#[test]
fn a_transaction_that_was_never_sent_is_found() {
    let directory = directory();
    let subject = subject("sqlite", "");
    subject.prepare(directory.path(), &Stop::default()).unwrap();
    let connection = Connection::open(directory.path().join(DATABASE)).unwrap();
    commit(&connection, 1).unwrap();
    connection.close().unwrap();
    // The prover knows that it was not sent.
    assert_eq!(check(subject.as_ref(), directory.path()), all_whole(1));
}

#[test]
fn missing_tables_and_slots_are_damage() {
    let found = found_after("DROP TABLE history");
    assert_eq!(
        found.damage.unwrap(),
        "reading history: no such table: history"
    );
    let found = found_after("DELETE FROM slots WHERE slot = 15");
    assert!(found.damage.unwrap().starts_with("slots are [0, 1, "));
    assert_eq!(found.whole.len(), 20);
}

/// What is found after the bytes of the file were changed.
fn found_after_changing(change: impl FnOnce(&mut Vec<u8>)) -> Recovered {
    let subject = subject("sqlite", "");
    let directory = run(subject.as_ref(), 20).unwrap();
    let path = directory.path().join(DATABASE);
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    let found = check(subject.as_ref(), directory.path());
    assert!(is_closed(&path));
    found
}

/// Whether this process has no descriptor of the file.
fn is_closed(path: &Path) -> bool {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok())
        .all(|open| open != path)
}

#[test]
fn a_flipped_byte_of_a_payload_is_seen() {
    let wanted = &payload(7)[..100];
    let found = found_after_changing(|file| {
        // Also where a page that was split has left it behind.
        for at in 0..file.len() - wanted.len() {
            if &file[at..at + wanted.len()] == wanted {
                file[at + 50] ^= 1;
            }
        }
    });
    assert_eq!(found.invented.len(), 1);
    assert!(!found.whole.contains(&7) && found.whole.contains(&8));
}

#[test]
fn a_ruined_file_is_damage() {
    let damage = |change: fn(&mut Vec<u8>)| found_after_changing(change).damage.unwrap();
    let header = damage(|file| file[..4096].fill(7));
    assert_eq!(header, "integrity_check: file is not a database");
    let page = damage(|file| file[4096..8192].fill(0xff));
    assert!(page.starts_with("integrity_check: "), "{page}");
    assert_eq!(page.lines().count(), 1);
    let short = damage(|file| file.truncate(8192));
    assert!(short.contains("malformed"), "{short}");
}

#[test]
fn a_missing_database_is_damage_and_stays_missing() {
    let directory = directory();
    let found = check(subject("sqlite", "").as_ref(), directory.path());
    assert!(found.damage.unwrap().starts_with("opening: unable to open"));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn an_empty_database_has_lost_its_tables() {
    let subject = subject("sqlite", "");
    let directory = directory();
    fs::write(directory.path().join(DATABASE), "").unwrap();
    let found = check(subject.as_ref(), directory.path());
    assert_eq!(
        found.damage.unwrap(),
        "reading history: no such table: history"
    );
}

#[test]
fn a_locked_database_is_nobodys_damage() {
    let subject = subject("sqlite", "");
    let directory = run(subject.as_ref(), 3).unwrap();
    let connection = Connection::open(directory.path().join(DATABASE)).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = subject
        .check(directory.path(), &Stop::default())
        .unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
}

#[test]
fn settings_that_did_not_take_are_refused() {
    let directory = directory();
    subject("sqlite", "")
        .prepare(directory.path(), &Stop::default())
        .unwrap();
    // The page size of a database that exists stays as it is.
    let other = subject("sqlite", "page_size=8K");
    let error = other.run(directory.path(), &mut Counting::new(1), &Stop::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "SQLite does not do page_size=8192 here: it says 4096"
    );
    assert!(refusal("sqlite", &[("journal_mode", "log")]).contains("truncate, persist, wal"));
    assert!(refusal("sqlite", &[("synchronous", "2")]).contains("normal, full, extra"));
    assert!(refusal("sqlite", &[("page_size", "1000")]).contains("a power of two"));
}
