//! A store on a filesystem that is full, on a real kernel. Needs root; says so and passes elsewhere.

use std::fs::{self, File};
use std::path::Path;

use landfall::{Error, Keyspace, Options, Store, StoreOptions};
use landfall_prove::Stop;
use landfall_prove::scratch_fs::{BackingDevice, FilesystemSpec, Kind, ScratchFilesystem};

const BATCH: u64 = 100;

fn open(directory: &Path) -> (Store, Keyspace) {
    let log = Options::default().segment_bytes(1 << 20);
    let options = StoreOptions::default().memory_bytes(1 << 20).log(log);
    let store = Store::open(directory, options).unwrap();
    let rows = store.keyspace("rows", Default::default()).unwrap();
    (store, rows)
}

/// Inserts so many rows of 108 bytes that do not compress, at random places, or until the disk is full. Returns how many.
fn fill(store: &Store, rows: &Keyspace, most: u64, random: &mut fastrand::Rng) -> u64 {
    let mut count = 0;
    while count < most {
        let mut batch = store.batch();
        for _ in 0..BATCH {
            let value: [u8; 100] = std::array::from_fn(|_| random.u8(..));
            batch.insert(rows, random.u64(..).to_be_bytes(), value);
        }
        match batch.commit() {
            Ok(()) => count += BATCH,
            Err(Error::NoSpace { .. }) => break,
            Err(other) => panic!("{other}"),
        }
    }
    count
}

/// Takes all that a filesystem has left.
fn take_the_rest(directory: &Path) {
    let file = File::create(directory.join("others")).unwrap();
    let (mut bytes, mut end) = (1 << 30, 0);
    while bytes >= 4096 {
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), end, bytes) {
            Ok(()) => end += bytes,
            Err(_) => bytes /= 2,
        }
    }
}

#[test]
fn a_store_on_a_full_filesystem_opens_and_can_be_emptied() {
    for kind in [Kind::Ext4, Kind::Xfs] {
        let spec = FilesystemSpec::plain(kind);
        let outside = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let made = BackingDevice::image(outside.path(), spec.small_size(), &stop)
            .and_then(|backing| ScratchFilesystem::make(&spec, backing, &stop));
        let filesystem = match made {
            Ok(made) => made,
            Err(error) if std::env::var_os("LANDFALL_NO_SKIP").is_none() => {
                println!("skipped: no {spec} can be made here: {error}");
                return;
            }
            Err(error) => panic!("no {spec} can be made here: {error}"),
        };
        let directory = filesystem.directory().join("store");
        let mut random = fastrand::Rng::with_seed(1);
        let (store, rows) = open(&directory);
        fill(&store, &rows, 20_000, &mut random);
        store.checkpoint().unwrap();
        take_the_rest(filesystem.directory());
        fill(&store, &rows, u64::MAX, &mut random);
        let count = rows.iter().map(Result::unwrap).count();
        assert!(count >= 20_000, "{kind:?}: {count}");
        drop((store, rows));
        if kind == Kind::Xfs {
            // It reserves space to rename a file, whether or not that takes any.
            let others = File::options()
                .write(true)
                .open(filesystem.directory().join("others"));
            let others = others.unwrap();
            others
                .set_len(others.metadata().unwrap().len() - (1 << 20))
                .unwrap();
        }

        let (store, rows) = open(&directory);
        assert_eq!(rows.iter().map(Result::unwrap).count(), count, "{kind:?}");
        // A half, and then all.
        for end in [vec![128], vec![255; 9]] {
            let before = rows.iter().count() as u64;
            rows.remove_range(..end).unwrap();
            let removed = before - rows.iter().count() as u64;
            let written = store.checkpoint();
            let filled = fill(&store, &rows, u64::MAX, &mut random);
            println!("{kind:?}: {count} rows, {removed} removed, {written:?}, {filled} filled");
            assert!(
                filled > removed / 2,
                "{kind:?}: of {count} rows {removed} were removed ({written:?}), and {filled} had space"
            );
        }
        assert!(store.verify().damage.is_empty(), "{kind:?}");
        drop((store, rows));
        fs::remove_file(filesystem.directory().join("others")).unwrap();
        filesystem.close().unwrap();
    }
}
