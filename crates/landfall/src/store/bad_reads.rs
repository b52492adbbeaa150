//! A store on a disk that cannot read some of its bytes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::checkpoint::Goal;
use super::control::{CONTROL_NAME, COPY};
use super::handle::Handle;
use super::record::Write;
use super::{KeyspaceOptions, StoreOptions, tree};
use crate::environment::{Environment, System};
use crate::fuzzing::memory::Memory;
use crate::{Error, Options, Policy};

type World = System<Memory>;
type Keyspace = Arc<tree::Keyspace<World>>;
type Files = BTreeMap<String, Vec<u8>>;

fn open(world: &World, buffer_percent: u8) -> Result<Handle<World>, Error> {
    let log = Options::default()
        .segment_bytes(64 << 10)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    let options = StoreOptions {
        memory_bytes: 16 << 10,
        policy: Policy::Group,
        log,
        ..StoreOptions::default()
    };
    Handle::open(world, options.buffer_percent(buffer_percent))
}

fn with(files: Files) -> World {
    System::new(Memory::new(files))
}

fn keyspace(store: &Handle<World>, name: &str) -> Keyspace {
    let small = KeyspaceOptions::default().leaf_bytes(512);
    store.shared.open_keyspace(name, &small).unwrap()
}

fn put(store: &Handle<World>, keyspace: &Keyspace, number: u32, value: u8) -> Result<(), Error> {
    let write = Write {
        keyspace: keyspace.id,
        key: number.to_be_bytes().to_vec(),
        value: Some(vec![value; 40]),
    };
    store.shared.commit(vec![write], None)
}

fn get(store: &Handle<World>, keyspace: &Keyspace, number: u32) -> Result<Option<u8>, Error> {
    let found = store.shared.get(keyspace, &number.to_be_bytes(), None)?;
    Ok(found.map(|value| value[0]))
}

fn checkpoint(store: &Handle<World>) -> Result<(), Error> {
    store.shared.checkpoint(Goal::Everything)
}

/// From now on this byte of files whose names begin so cannot be read.
fn fail(world: &World, files: &str, byte: u64) {
    let device = world.storage().device();
    *device.bad_files.lock().unwrap() = Some(files.to_owned());
    device.bad_byte.store(byte, Relaxed);
}

#[test]
fn one_copy_of_the_control_record_is_enough() {
    let world = with(Files::new());
    let store = open(&world, 0).unwrap();
    let rows = keyspace(&store, "rows");
    put(&store, &rows, 1, 1).unwrap();
    checkpoint(&store).unwrap();
    put(&store, &rows, 2, 2).unwrap();
    store.shared.close().unwrap();
    drop((rows, store));
    let files = world.storage().files();
    for copy in [0, COPY] {
        for byte in [copy, copy + COPY - 1] {
            let world = with(files.clone());
            fail(&world, CONTROL_NAME, byte as u64);
            let store = open(&world, 0).unwrap();
            let rows = keyspace(&store, "rows");
            let found = [1, 2, 3].map(|number| get(&store, &rows, number).unwrap());
            assert_eq!(found, [Some(1), Some(2), None]);
        }
        // Of the other one nothing is right.
        let mut files = files.clone();
        files.get_mut(CONTROL_NAME).unwrap()[COPY - copy..][..COPY].fill(0);
        let world = with(files.clone());
        fail(&world, CONTROL_NAME, copy as u64);
        assert!(matches!(open(&world, 0), Err(Error::Io { .. })));
        assert!(world.storage().files() == files);
    }
}
