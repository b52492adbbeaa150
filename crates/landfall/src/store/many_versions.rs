//! Versions of one key, which nobody can cut into several leaves.

use super::{Store, StoreOptions};

#[test]
fn a_key_with_more_versions_than_a_leaf_can_have_keeps_no_other_from_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let options = StoreOptions::default().memory_bytes(64 << 20);
    let store = Store::open(directory.path(), options.clone()).unwrap();
    let [large, small] = ["large", "small"].map(|name| {
        let keyspace = store.keyspace(name, Default::default());
        keyspace.unwrap()
    });
    let version = |byte: u8| vec![byte; 3 << 20];
    let mut snapshots = Vec::new();
    for byte in 0..4 {
        large.insert("key", version(byte)).unwrap();
        snapshots.push(store.snapshot());
    }
    small.insert("key", "value").unwrap();
    let refused = store.checkpoint().unwrap_err().to_string();
    assert!(refused.contains("too long"), "{refused}");
    let counters = store.counters();
    assert!(counters.checkpoints > 0 && counters.waiting_bytes > 12 << 20);
    assert!(counters.waiting_bytes < (12 << 20) + 1024, "{counters:?}");
    for (byte, snapshot) in (0..4).zip(&snapshots) {
        let found = snapshot.get(&large, "key").unwrap();
        assert!(found == Some(version(byte)), "version {byte}");
    }
    // Nobody reads them any more.
    drop(snapshots);
    store.checkpoint().unwrap();
    assert_eq!(store.counters().waiting_bytes, 0);
    assert_eq!(large.get("key").unwrap(), Some(version(3)));
    assert_eq!(store.verify().damage.len(), 0);
}
