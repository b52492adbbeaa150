//! What a store counts that it wrote, by cause, against what a device was given, by file. Needs root; says so and passes
//! elsewhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::thread;
use std::time::Duration;

use fiemap::Fiemap;
use landfall::{
    KeyspaceOptions, Options as LogOptions, Protection, Store, StoreCounters, StoreOptions,
};
use landfall_prove::Stop;
use landfall_prove::scratch_fs::{BackingDevice, FilesystemSpec, Kind, ScratchFilesystem};
use landfall_recorder::{EventKind, Options, Recording};

const SECTOR: usize = 512;
const PAGE: u64 = 4096;
const SEGMENT: u64 = 512 << 10;

/// What was written to the device for a file, or for the filesystem itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    LogSegments,
    LogControl,
    Data,
    Control,
    Filesystem,
}

impl Cause {
    fn of(path: &Path) -> Cause {
        let name = path.file_name().unwrap().to_string_lossy();
        match &*name {
            "landfall-log" => Cause::LogControl,
            "landfall-store" => Cause::Control,
            name if name.starts_with("data-") => Cause::Data,
            name if name.starts_with("segment-") => Cause::LogSegments,
            _ => panic!("a store has a file {}", path.display()),
        }
    }
}

/// Where the files of a store lie on the device.
fn layout(directory: &Path) -> Vec<(Range<u64>, Cause)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        for extent in Fiemap::new(&File::open(&path).unwrap()) {
            let extent = extent.unwrap();
            let start = extent.fe_physical;
            found.push((start..start + extent.fe_length, Cause::of(&path)));
        }
    }
    found
}

/// Bytes of sectors that the device was given: those with something, and those of zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Given {
    bytes: u64,
    zeros: u64,
}

fn given(recording: &Recording, layout: &[(Range<u64>, Cause)]) -> BTreeMap<Cause, Given> {
    let mut all: BTreeMap<Cause, Given> = BTreeMap::new();
    for event in recording.events() {
        let EventKind::Write { offset, data } = event.kind else {
            continue;
        };
        let owner = layout.iter().find(|(range, _)| range.contains(&offset));
        let given = all
            .entry(owner.map_or(Cause::Filesystem, |(_, cause)| *cause))
            .or_default();
        // Around a write to part of a block that was never written the filesystem writes zeros, in the same request.
        for sector in recording.bytes(data).unwrap().chunks(SECTOR) {
            let is_zero = sector.iter().all(|byte| *byte == 0);
            let bytes = if is_zero {
                &mut given.zeros
            } else {
                &mut given.bytes
            };
            *bytes += sector.len() as u64;
        }
    }
    all
}

/// The counters once nothing is written any more.
fn settled(store: &Store) -> StoreCounters {
    let mut last = store.counters();
    let mut same = 0;
    while same < 10 {
        thread::sleep(Duration::from_millis(100));
        let now = store.counters();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

/// A filesystem on a device that is recorded; `None`: there is none.
fn recorded(kind: Kind) -> Option<ScratchFilesystem> {
    let outside = tempfile::tempdir().unwrap();
    let options = Options {
        directory: outside.path().to_owned(),
        ..Options::new(FilesystemSpec::plain(kind).small_size())
    };
    let made = BackingDevice::recorder(&options, 0).and_then(|backing| {
        ScratchFilesystem::make(&FilesystemSpec::plain(kind), backing, &Stop::default())
    });
    match made {
        Ok(made) => Some(made),
        Err(error) => {
            assert!(std::env::var_os("LANDFALL_NO_SKIP").is_none(), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

/// Updates rows in a new store, of which so many percent may wait in runs. What it counts and what the device was given meanwhile; `None`: there is no recorder.
fn run(kind: Kind, percent: u8) -> Option<(StoreCounters, BTreeMap<Cause, Given>)> {
    let made = recorded(kind)?;
    let directory = made.directory().join("store");
    // Of whatever is removed nobody knows where it was.
    let log = LogOptions::default().segment_bytes(SEGMENT);
    let log = log.spare_segments(16);
    let options = StoreOptions::default().log(log).buffer_percent(percent);
    let store = Store::open(&directory, options).unwrap();
    let keyspace = store.keyspace("rows", KeyspaceOptions::default()).unwrap();
    keyspace.insert(b"first", b"").unwrap();
    store.checkpoint().unwrap();
    let before = settled(&store);
    made.recorder().unwrap().record().unwrap();
    // Few at a time, or they are merged at once.
    let (rounds, updates): (u64, u64) = if percent == 0 { (9, 400) } else { (18, 60) };
    for round in 0..rounds {
        let first = if percent > 0 && round > 4 {
            round * 60
        } else {
            0
        };
        let updates = if round > 4 { updates } else { 400 };
        for number in first..first + updates {
            let key = (number * 7919 % 1000).to_be_bytes();
            let value: Vec<u8> = (0..300)
                .map(|at| (at * 31 + number * 7 + round) as u8)
                .collect();
            keyspace.insert(key, &value).unwrap();
        }
        // At first the log grows.
        if round > 4 {
            store.checkpoint().unwrap();
        }
        // Zeros are written ahead as long as nobody is behind them.
        settled(&store);
    }
    let mut counters = settled(&store);
    let recording = made.recorder().unwrap().finish().unwrap();
    let given = given(&recording, &layout(&directory));
    for (bytes, before) in [
        (&mut counters.log.bytes, before.log.bytes),
        (&mut counters.log.zero_bytes, before.log.zero_bytes),
        (&mut counters.log.control_bytes, before.log.control_bytes),
        (&mut counters.leaf_bytes, before.leaf_bytes),
        (&mut counters.merge_bytes, before.merge_bytes),
        (&mut counters.run_bytes, before.run_bytes),
        (&mut counters.tier_bytes, before.tier_bytes),
        (&mut counters.group_bytes, before.group_bytes),
        (&mut counters.root_bytes, before.root_bytes),
        (&mut counters.control_bytes, before.control_bytes),
    ] {
        *bytes -= before;
    }
    drop(keyspace);
    store.close().unwrap();
    made.close().unwrap();
    Some((counters, given))
}

#[test]
fn what_a_store_counts_is_what_the_device_was_given() {
    for (kind, percent) in [
        (Kind::Xfs, 0),
        (Kind::Xfs, 11),
        (Kind::Ext4, 0),
        (Kind::Ext3, 0),
    ] {
        let Some((counters, given)) = run(kind, percent) else {
            return;
        };
        println!("{kind}, {percent}%: {given:?}");
        let runs = counters.run_bytes + counters.tier_bytes;
        if percent > 0 {
            assert!(
                counters.run_bytes > 0 && counters.merge_bytes > 0,
                "{counters:?}"
            );
        }
        assert!(
            counters.leaf_bytes > 0 && counters.log.zero_bytes > 0,
            "{kind}"
        );
        let of = |cause: Cause| given.get(&cause).copied().unwrap_or_default();
        let data = counters.leaf_bytes + runs + counters.group_bytes + counters.root_bytes;
        assert_eq!(of(Cause::Data).bytes, data, "{kind}");
        // Of their records the rest of a page is zeros.
        let control = of(Cause::Control);
        assert_eq!(
            control.bytes + control.zeros,
            counters.control_bytes,
            "{kind}"
        );
        let (segments, control) = (of(Cause::LogSegments), of(Cause::LogControl));
        let log = segments.bytes + control.bytes + control.zeros;
        assert_eq!(
            log,
            counters.log.bytes + counters.log.control_bytes,
            "{kind}"
        );
        // Behind the header of a segment the filesystem writes the rest of its page. ext3 cannot allocate space: it is given
        // zeros for all of it.
        let made = counters.log.zero_bytes / (SEGMENT - SECTOR as u64);
        let rest = match kind {
            Kind::Ext3 => SEGMENT,
            _ => PAGE - SECTOR as u64,
        };
        let rest = made * rest;
        assert_eq!(segments.zeros, counters.log.zero_bytes + rest, "{kind}");
    }
}

/// Leaves of the store whose leaves are written in place.
const LEAVES: u64 = 16;

/// Bytes that were written for each byte of a leaf, by a store with this protection; `None`: there is no recorder.
fn bytes_in_place(protection: Protection) -> Option<f64> {
    let made = recorded(Kind::Xfs)?;
    let directory = made.directory().join("store");
    // Of whatever is removed nobody knows where it was.
    let log = LogOptions::default().spare_segments(16);
    let options = StoreOptions::default()
        .memory_bytes(512 << 10)
        .protection(protection)
        .log(log.segment_bytes(SEGMENT));
    let store = Store::open(&directory, options).unwrap();
    let whole = KeyspaceOptions::default().in_place(true).whole_leaves(true);
    let keyspace = store.keyspace("rows", whole).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let rows = LEAVES * 40;
    let mut put = |row: u64| {
        let mut value = [0; 300];
        random.fill(&mut value[..150]);
        keyspace.insert(row.to_be_bytes(), value).unwrap();
    };
    (0..rows).for_each(&mut put);
    // With the first checkpoint leaves get homes, and copies a place.
    for _ in 0..2 {
        store.checkpoint().unwrap();
        put(0);
    }
    let before = settled(&store);
    made.recorder().unwrap().record().unwrap();
    for number in 0..6_000 {
        put(number * 7919 % rows);
    }
    store.checkpoint().unwrap();
    let after = settled(&store);
    let recording = made.recorder().unwrap().finish().unwrap();
    let given = given(&recording, &layout(&directory));
    let data = given.get(&Cause::Data).copied().unwrap_or_default();
    let since = |of: fn(&StoreCounters) -> u64| of(&after) - of(&before);
    let leaves = since(|all| all.leaf_bytes);
    let others = since(|all| all.group_bytes) + since(|all| all.root_bytes);
    let images = since(|all| all.image_bytes);
    let checkpoints = since(|all| all.checkpoints);
    let rewrites = since(|all| all.leaves) as f64 / (checkpoints * LEAVES) as f64;
    println!(
        "{protection}: {data:?}, {checkpoints} checkpoints, each leaf {rewrites:.1} times for each, images {images}"
    );
    if protection == Protection::Image {
        assert!(
            rewrites >= 10.0,
            "a leaf is to be written often between two checkpoints: {rewrites}"
        );
    }
    assert_eq!(after.failed_checkpoints, 0);
    drop(keyspace);
    store.close().unwrap();
    made.close().unwrap();
    let of_leaves = data.bytes + data.zeros - others;
    Some((of_leaves + images) as f64 / leaves as f64)
}

#[test]
fn protections_cost_the_bytes_that_they_are_said_to_cost() {
    let Some(unprotected) = bytes_in_place(Protection::None) else {
        return;
    };
    let of = |protection| bytes_in_place(protection).unwrap() / unprotected;
    let (doublewrite, image, shadow) = (
        of(Protection::Doublewrite),
        of(Protection::Image),
        of(Protection::Shadow),
    );
    println!("doublewrite {doublewrite:.3}, image {image:.3}, shadow {shadow:.3}");
    assert!((1.9..2.1).contains(&doublewrite), "{doublewrite}");
    assert!(image < 1.3, "{image}");
    assert!((0.95..1.05).contains(&shadow), "{shadow}");
}

/// Of one checkpoint that writes each leaf in place once: what the device was given for each leaf, whatever it is for.
#[derive(Debug)]
struct PerLeaf {
    bytes: f64,
    writes: f64,
    flushes: f64,
}

impl PerLeaf {
    fn print(&self, protection: &str) {
        let PerLeaf {
            bytes,
            writes,
            flushes,
        } = self;
        println!(
            "{protection}: {bytes:.0} bytes, {writes:.2} writes and {flushes:.2} flushes for each leaf"
        );
    }
}

/// `None`: there is no recorder, or nobody promises what this protection needs.
fn one_checkpoint(protection: Protection) -> Option<PerLeaf> {
    const LEAVES: u64 = 64;
    let made = recorded(Kind::Xfs)?;
    let directory = made.directory().join("store");
    let options = StoreOptions::default().protection(protection);
    let store = match Store::open(&directory, options) {
        Ok(store) => store,
        Err(error) if protection == Protection::Atomic => {
            println!("skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let in_place = KeyspaceOptions::default().in_place(true);
    let keyspace = store.keyspace("rows", in_place).unwrap();
    // Each takes more than half of a leaf.
    for leaf in 0..LEAVES {
        keyspace.insert(leaf.to_be_bytes(), [1; 9000]).unwrap();
    }
    for _ in 0..2 {
        store.checkpoint().unwrap();
        keyspace.insert(0_u64.to_be_bytes(), [2; 9000]).unwrap();
    }
    for leaf in 0..LEAVES {
        keyspace.insert(leaf.to_be_bytes(), [3; 9000]).unwrap();
    }
    let before = settled(&store);
    made.recorder().unwrap().record().unwrap();
    store.checkpoint().unwrap();
    let after = settled(&store);
    let recording = made.recorder().unwrap().finish().unwrap();
    assert_eq!(after.leaves - before.leaves, LEAVES);
    assert_eq!(after.home_bytes - before.home_bytes, LEAVES * (16 << 10));
    let (mut bytes, mut writes, mut flushes) = (0, 0, 0);
    for event in recording.events() {
        match event.kind {
            EventKind::Write { data, .. } => {
                bytes += recording.bytes(data).unwrap().len();
                writes += 1;
            }
            EventKind::Flush { .. } => flushes += 1,
            _ => {}
        }
    }
    drop(keyspace);
    store.close().unwrap();
    made.close().unwrap();
    let each = |count: usize| count as f64 / LEAVES as f64;
    Some(PerLeaf {
        bytes: each(bytes),
        writes: each(writes),
        flushes: each(flushes),
    })
}

#[test]
fn atomic_writes_cost_what_the_kernel_takes_for_them() {
    let Some(unprotected) = one_checkpoint(Protection::None) else {
        return;
    };
    unprotected.print("nothing");
    let doublewrite = one_checkpoint(Protection::Doublewrite).unwrap();
    doublewrite.print("doublewrite");
    let Some(atomic) = one_checkpoint(Protection::Atomic) else {
        return;
    };
    atomic.print("atomic");
    // One of each leaf at least, and what xfs does in software besides: that is the kernel's, and may change.
    assert!(atomic.writes >= 1.0 && atomic.bytes >= f64::from(16 << 10));
    assert!(atomic.bytes < doublewrite.bytes, "{atomic:?}");
}
