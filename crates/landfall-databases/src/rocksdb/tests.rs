use crate::DatabaseError;
use crate::conformance::*;
use landfall_os::Stop;

#[test]
fn what_was_acknowledged_is_kept_under_all_settings() {
    keeps_keys("rocksdb", "");
    keeps_keys("rocksdb", "sync=no compression=none cache_size=0");
    keeps_keys("rocksdb", "enable_pipelined_write=yes compression=zstd");
    keeps_keys("rocksdb", "recycle_log_file_num=2 write_buffer_size=64K");
    keeps_keys("rocksdb", "direct=yes");
}

#[test]
fn memtables_that_were_written_out_are_counted() {
    let fixture = fixture("rocksdb", "");
    let mut batch = crate::Batch::default();
    batch.put(*b"key", *b"value");
    keys(&*fixture.running).commit(&batch).unwrap();
    let before = fixture.running.pending_writes().unwrap();
    assert!(before.dirty_bytes.unwrap() > 0);
    fixture.running.drain(&Stop::default()).unwrap();
    let after = fixture.running.pending_writes().unwrap();
    assert_eq!(after.dirty_bytes, Some(0));
    assert_eq!(after.compaction_bytes, Some(0));
    let flushes = |pending: crate::PendingWrites| pending.memtable_flushes.unwrap();
    assert_eq!(flushes(after) - flushes(before), 1);
}

#[test]
fn what_is_no_database_does_not_start() {
    let rocksdb = database("rocksdb", "").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let started = rocksdb.start(directory.path(), &Stop::default());
    assert!(matches!(
        started.err(),
        Some(DatabaseError::DoesNotStart(_))
    ));
}

#[test]
fn its_version_is_the_one_that_is_linked() {
    let crate_version = linked("librocksdb-sys");
    let (_, version) = crate_version.split_once('+').unwrap();
    let presence = super::store::presence();
    let crate::Presence::Here { version: told, .. } = presence else {
        panic!("it is linked in");
    };
    assert_eq!(told, version);
}
