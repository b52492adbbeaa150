//! What is seen of a state from outside, and what opening it says of the same.

use std::io::{self, Read};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::fixtures::{Files, Sum, Ways, World, open, open_as, snapshot_of, with, with_snapshots};
use super::format::{CHUNK, Chunk, DRAFT, Found, HEADER, Header};
use super::inspect::{SnapshotFile, StateInspection, read};
use super::{Handle, Policy, StateOptions};
use crate::environment::Environment;
use crate::{Error, Lsn, Options};

fn inspect(files: &Files) -> Result<StateInspection, Error> {
    read(&with(files.clone()), &mut |_| ())
}

/// From now on this byte of a file cannot be read.
fn fail(world: &World, name: &str, byte: u64) {
    let device = world.storage().device();
    *device.bad_files.lock().unwrap() = Some(name.to_owned());
    device.bad_byte.store(byte, Relaxed);
}

/// Waits until the thread that makes segments has nothing to do.
fn settle(state: &Handle<Sum, World>) {
    while !World::lock(&state.shared.log.shared.state)
        .segments
        .is_settled()
    {
        std::thread::yield_now();
    }
}

/// The one snapshot that there is said to be damaged, and why.
fn damage(files: &Files) -> String {
    let mut snapshots = inspect(files).unwrap().snapshots;
    snapshots.retain(|snapshot| snapshot.damage.is_some());
    let [
        SnapshotFile {
            damage: Some(damage),
            ..
        },
    ] = &snapshots[..]
    else {
        panic!("{snapshots:?}");
    };
    damage.to_string()
}

#[test]
fn snapshots_are_shown_as_they_were_taken() {
    let mut files = with_snapshots(2);
    let found = inspect(&files).unwrap();
    assert_eq!((found.log.next_lsn, found.draft), (Lsn(31), None));
    assert_eq!(found.snapshots.len(), 2);
    for (index, snapshot) in found.snapshots.iter().enumerate() {
        assert!(snapshot.damage.is_none(), "{snapshot:?}");
        let number = index as u64 + 1;
        assert_eq!(snapshot.name, format!("snapshot-{number:06}"));
        let lsn = Lsn(10 * number + 1);
        assert_eq!(
            (snapshot.first, snapshot.end, snapshot.parts),
            (lsn, lsn, 2)
        );
        assert_eq!(snapshot.raw_bytes, 16);
        assert_eq!(snapshot.bytes, files[&snapshot.name].len() as u64);
    }
    files.insert(DRAFT.to_owned(), Vec::new());
    assert_eq!(inspect(&files).unwrap().draft.as_deref(), Some(DRAFT));
    let world = with(files);
    let state = open(&world).unwrap();
    assert!(!world.storage().files().contains_key(DRAFT));
    assert_eq!(state.restart.snapshot.as_deref(), Some("snapshot-000002"));
    {
        let taking = World::lock(&state.shared.taking);
        assert_eq!((taking.kept.len(), taking.unusable.len()), (2, 0));
    }
    assert_eq!(state.restart.commands, 10);
    assert_eq!(state.read(1, |sum| sum.0), 15 * 15);
}

#[test]
fn a_snapshot_that_does_not_belong_there_is_told_of() {
    let whole = with_snapshots(2);
    let mut renamed = whole.clone();
    let other = renamed.remove("snapshot-000002").unwrap();
    renamed.insert("snapshot-000003".to_owned(), other);
    assert!(damage(&renamed).contains("another name"));
    // An older one, from before the log was truncated.
    let mut older = with_snapshots(1);
    let world = with(older.clone());
    let state = open(&world).unwrap();
    for _ in 0..2 {
        state.shared.apply(1).unwrap();
        state.shared.snapshot().unwrap();
    }
    state.shared.close().unwrap();
    let mut files = world.storage().files();
    assert!(!files.contains_key("snapshot-000001"), "two are kept");
    files.insert(
        "snapshot-000001".to_owned(),
        older.remove("snapshot-000001").unwrap(),
    );
    assert!(damage(&files).contains("does not go back to it"));
    // The process ended before it was removed: nothing is wrong with it.
    let opened = open(&with(files)).unwrap();
    assert!(opened.restart.skipped.is_empty(), "{:?}", opened.restart);
    {
        let taking = World::lock(&opened.shared.taking);
        assert_eq!((taking.kept.len(), taking.unusable.len()), (2, 1));
    }
    // What is ahead of the log, which is an older one of the same state.
    let mut ahead = older;
    let newest = world.storage().files().remove("snapshot-000003").unwrap();
    ahead.insert("snapshot-000003".to_owned(), newest);
    let error = inspect(&ahead).unwrap().snapshots.remove(0).damage;
    assert!(matches!(error, Some(Error::LogLost { .. })), "{error:?}");
    // Also if of what is ahead only the beginning can be read: it is longer than what is read at once.
    let Found::Header(header) = Header::decode(&ahead["snapshot-000003"]) else {
        panic!("no header");
    };
    let long = Chunk {
        number: header.number,
        index: 0,
        part: 0,
        lsn: header.first,
        length: 1_500_000,
        stored: 1_500_000,
        is_compressed: false,
        ends_part: false,
        ends_all: false,
    };
    let mut longer = ahead.clone();
    longer.insert("snapshot-000003".to_owned(), snapshot_of(header, &[long]));
    let behind_header = HEADER as u64 + 10;
    let some = [
        (ahead.clone(), u64::MAX),
        (ahead, behind_header),
        (longer, (1 << 20) + 10),
    ];
    for (files, bad) in some {
        let world = with(files);
        fail(&world, "snapshot-000003", bad);
        let opened = open(&world).map(drop);
        assert!(matches!(opened, Err(Error::LogLost { .. })), "{opened:?}");
    }
}

#[test]
fn what_opening_refuses_inspecting_refuses() {
    let whole = with_snapshots(1);
    let mut foreign = whole.clone();
    let other = with_snapshots(1).remove("snapshot-000001").unwrap();
    foreign.insert("snapshot-000001".to_owned(), other);
    let mut numbered = whole.clone();
    numbered.insert(
        "snapshot-4611686018427387903".to_owned(),
        whole["snapshot-000001"].clone(),
    );
    for (files, what) in [(foreign, "another state"), (numbered, "so many snapshots")] {
        for error in [
            inspect(&files).map(drop),
            open(&with(files.clone())).map(drop),
        ] {
            let error = error.unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{error}");
            assert!(error.to_string().contains(what), "{error}");
        }
    }
}

#[test]
fn what_is_done_is_counted() {
    let world = with(Files::new());
    let state = open(&world).unwrap();
    for number in 1..=5 {
        state.shared.apply(number).unwrap();
    }
    let first = state.shared.snapshot().unwrap();
    let second = state.shared.snapshot().unwrap();
    assert_eq!(
        (&*first.name, &*second.name),
        ("snapshot-000001", "snapshot-000002")
    );
    let counters = state.shared.counters();
    assert_eq!((counters.snapshots, counters.failed_snapshots), (2, 0));
    assert_eq!(counters.last_snapshot, Some(second));
    assert_eq!(counters.log.commits, 5);
}

#[test]
fn snapshots_are_taken_and_commands_committed_by_themselves() {
    let world = with(Files::new());
    let options = StateOptions::default()
        .max_recovery_time(Duration::ZERO)
        .policy(Policy::Interval(Duration::from_micros(100)))
        .log(Options::default().segment_bytes(64 << 10));
    let state: Handle<Sum, World> = Handle::open(&world, options).unwrap();
    while state.shared.counters().snapshots == 0 {
        state.shared.apply(1).unwrap();
    }
    let end = state.shared.log.next_lsn();
    while state.shared.log.durable_end() < end {
        std::thread::yield_now();
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_state_that_serde_writes_is_the_same_again() {
    use super::{Serde, SerdeState, State};

    #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
    struct Words(Vec<String>);

    impl SerdeState for Words {
        type Command = String;
        type Output = usize;
        fn apply(&mut self, word: String) -> usize {
            self.0.push(word);
            self.0.len()
        }
    }

    let world = with(Files::new());
    let open = || {
        let options = StateOptions::default().log(Options::default().segment_bytes(4096));
        Handle::<Serde<Words>, World>::open(&world, options).unwrap()
    };
    let state = open();
    assert_eq!(state.shared.apply("one".to_owned()).unwrap(), 1);
    state.shared.snapshot().unwrap();
    assert_eq!(state.shared.apply("two".to_owned()).unwrap(), 2);
    state.shared.close().unwrap();
    drop(state);
    let state = open();
    assert_eq!(state.restart.snapshot.as_deref(), Some("snapshot-000001"));
    assert_eq!(state.restart.commands, 1);
    assert_eq!(state.read(0, |words| words.0.0.clone()), ["one", "two"]);
    // A command with more behind it is another type's.
    let mut command = Vec::new();
    Serde::<Words>::encode(&"one".to_owned(), &mut command).unwrap();
    assert!(Serde::<Words>::decode(&command).is_ok());
    command.push(0);
    assert!(Serde::<Words>::decode(&command).is_err());
}

#[test]
fn the_newest_snapshots_are_kept() {
    let world = with(with_snapshots(2));
    let state = open(&world).unwrap();
    state.shared.apply(1).unwrap();
    state.shared.snapshot().unwrap();
    state.shared.close().unwrap();
    let files = world.storage().files();
    let mut left = files.keys().filter(|name| name.starts_with("snapshot"));
    assert!(left.by_ref().eq(["snapshot-000002", "snapshot-000003"]));
}

#[test]
fn an_older_snapshot_of_another_state_is_refused() {
    let mut files = with_snapshots(3);
    let foreign = with_snapshots(1).remove("snapshot-000001").unwrap();
    files.insert("snapshot-000001".to_owned(), foreign);
    let world = with(files.clone());
    assert!(open(&world).map(drop).is_err());
    assert!(world.storage().files() == files);
}

#[test]
fn no_snapshot_is_taken_after_one_that_could_not_be_published() {
    let world = with(with_snapshots(1));
    let state = open(&world).unwrap();
    state.shared.apply(1).unwrap();
    settle(&state);
    let device = world.storage().device();
    device.no_sync.store(true, Relaxed);
    let first = state.shared.snapshot();
    device.no_sync.store(false, Relaxed);
    let second = state.shared.snapshot();
    for refused in [first, second] {
        assert!(matches!(refused, Err(Error::Unpublished(_))), "{refused:?}");
    }
    let counters = state.shared.counters();
    assert_eq!((counters.snapshots, counters.failed_snapshots), (0, 2));
    // Nobody who opens it again rests on its name.
    let files = world.storage().files();
    assert!(files.contains_key("snapshot-000001") && !files.contains_key("snapshot-000002"));
}

/// Snapshots of a usual sum are not read: it wants something else, leaves some, or panics.
#[derive(Default)]
struct Other<const HOW: u8>;

impl<const HOW: u8> Ways for Other<HOW> {
    fn read(input: &mut dyn Read) -> io::Result<u64> {
        input.read_exact(&mut [0])?;
        match HOW {
            0 => Err(io::Error::other("it begins with another byte")),
            1 => Ok(0),
            _ => panic!("as planned"),
        }
    }
}

#[test]
fn a_whole_snapshot_that_its_state_does_not_read_is_not_taken_for_damaged() {
    fn require_refused<const HOW: u8>(files: &Files) {
        let world = with(files.clone());
        let opened = open_as::<Sum<Other<HOW>>>(&world).map(drop);
        assert!(
            matches!(opened, Err(Error::Unreadable { .. })),
            "{opened:?}"
        );
        assert_eq!(world.storage().files(), *files);
        // Where it is damaged behind what the state has read, the one before is looked at.
        let mut damaged = files.clone();
        let newest = damaged.keys().rfind(|name| name.starts_with("snapshot"));
        let newest = newest.unwrap().clone();
        *damaged
            .get_mut(&newest)
            .unwrap()
            .get_mut(HEADER + CHUNK + 4)
            .unwrap() ^= 1;
        let opened = open_as::<Sum<Other<HOW>>>(&with(damaged)).map(drop);
        let is_last = files
            .keys()
            .filter(|name| name.starts_with("snapshot"))
            .count()
            == 1;
        match opened {
            Ok(()) => assert!(is_last),
            Err(Error::Unreadable { snapshot, .. }) => assert!(!is_last && snapshot < newest),
            Err(error) => panic!("{error}"),
        }
    }
    for snapshots in [1, 3] {
        let files = with_snapshots(snapshots);
        require_refused::<0>(&files);
        require_refused::<1>(&files);
        require_refused::<2>(&files);
    }
}

#[test]
fn a_snapshot_whose_parts_cannot_be_right_is_passed_over() {
    let whole = with_snapshots(1);
    let Found::Header(header) = Header::decode(&whole["snapshot-000001"]) else {
        panic!("no header");
    };
    let chunk = |part: u32, lsn: u64, length: u32| Chunk {
        number: 1,
        index: 0,
        part,
        lsn,
        length,
        stored: length,
        is_compressed: false,
        ends_part: true,
        ends_all: false,
    };
    let end = Chunk {
        ends_all: true,
        ..chunk(2, 11, 0)
    };
    for (parts, what) in [
        ([(1, 11), (0, 11)], "a part is not the next one"),
        ([(0, 11), (0, 11)], "a part is not the next one"),
        ([(0, 10), (1, 11)], "a part is not the next one"),
    ] {
        let chunks = parts.map(|(part, lsn)| chunk(part, lsn, 8));
        let chunks = [chunks[0], chunks[1], end];
        let mut files = whole.clone();
        files.insert("snapshot-000001".to_owned(), snapshot_of(header, &chunks));
        let state = open(&with(files)).unwrap();
        let (name, why) = &state.restart.skipped[0];
        assert_eq!(name, "snapshot-000001");
        assert!(why.to_string().contains(what), "{parts:?}: {why}");
        assert_eq!(state.read(1, |sum| sum.0), 100);
    }
}

#[test]
fn commands_are_committed_in_time_without_anybody_asking() {
    let world = with(Files::new());
    let options = StateOptions::default()
        .max_recovery_time(Duration::MAX)
        .policy(Policy::Interval(Duration::from_micros(100)))
        .log(Options::default().segment_bytes(64 << 10));
    let state: Handle<Sum, World> = Handle::open(&world, options).unwrap();
    state.shared.apply(1).unwrap();
    while state.shared.log.durable_end() < Lsn(2) {
        std::thread::yield_now();
    }
}

#[test]
fn a_number_that_leaves_none_for_the_next_snapshot_is_refused() {
    for number in [(1u64 << 32) + 9, (1 << 40) - 1, (1 << 62) - 1] {
        let mut files = with_snapshots(1);
        files.insert(format!("snapshot-{number:06}"), vec![0; 4096]);
        let world = with(files.clone());
        let opened = open(&world).map(drop);
        assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
        assert!(inspect(&files).is_err() && world.storage().files() == files);
    }
}

#[test]
fn keys_are_of_the_same_part_everywhere() {
    assert_eq!(crate::part_of(b"123456789"), 0xe306_9283);
    assert_eq!(crate::part_of(b""), 0);
    assert_eq!(Lsn(4).next(), Lsn(5));
    assert_eq!(Lsn(u64::MAX).next(), Lsn(u64::MAX));
    assert_eq!((Lsn::from(7), u64::from(Lsn(7))), (Lsn(7), 7));
}

#[test]
fn closing_it_in_a_process_that_was_forked_leaves_it_open() {
    let world = with(Files::new());
    let state = open(&world).unwrap();
    state.shared.apply(1).unwrap();
    let process = &world.storage().device().process;
    process.store(2, Relaxed);
    let refused = state.shared.apply(2);
    assert!(matches!(refused, Err(Error::Forked)), "{refused:?}");
    state.shared.close().unwrap();
    process.store(1, Relaxed);
    assert_eq!(state.shared.apply(3).unwrap(), 4);
    state.shared.close().unwrap();
}

#[test]
fn a_process_that_was_forked_takes_no_snapshot() {
    let world = with(with_snapshots(1));
    let state = open(&world).unwrap();
    settle(&state);
    let before = world.storage().files();
    let process = &world.storage().device().process;
    process.store(2, Relaxed);
    let refused = state.shared.snapshot();
    assert!(matches!(refused, Err(Error::Forked)), "{refused:?}");
    assert!(world.storage().files() == before);
    process.store(1, Relaxed);
    assert_eq!(state.shared.snapshot().unwrap().name, "snapshot-000002");
}

#[test]
fn an_older_snapshot_that_cannot_be_read_is_passed_over_and_stays() {
    let world = with(with_snapshots(2));
    fail(&world, "snapshot-000001", 10);
    let state = open(&world).unwrap();
    let [(name, Error::Io { .. })] = &state.restart.skipped[..] else {
        panic!("{:?}", state.restart);
    };
    assert_eq!(name, "snapshot-000001");
    assert_eq!(state.restart.snapshot.as_deref(), Some("snapshot-000002"));
    let sums = [0, 1].map(|part| state.read(part, |sum| sum.0));
    assert_eq!(sums, [240, 225]);
    state.shared.snapshot().unwrap();
    state.shared.close().unwrap();
    drop(state);
    assert!(world.storage().files().contains_key("snapshot-000001"));
    // It is not needed any more, as is seen once it can be read.
    fail(&world, "snapshot-", u64::MAX);
    let state = open(&world).unwrap();
    assert!(state.restart.skipped.is_empty(), "{:?}", state.restart);
    state.shared.snapshot().unwrap();
    assert!(!world.storage().files().contains_key("snapshot-000001"));
}

#[test]
fn the_one_before_is_taken_where_the_newest_snapshot_cannot_be_read() {
    // Its header, and one of its parts.
    let files = with_snapshots(2);
    let last = files["snapshot-000002"].len() as u64 - 1;
    for byte in [10, last] {
        let world = with(files.clone());
        fail(&world, "snapshot-000002", byte);
        let state = open(&world).unwrap();
        let [(name, Error::Io { .. })] = &state.restart.skipped[..] else {
            panic!("{:?}", state.restart);
        };
        assert_eq!(name, "snapshot-000002");
        assert_eq!(state.restart.snapshot.as_deref(), Some("snapshot-000001"));
        let sums = [0, 1].map(|part| state.read(part, |sum| sum.0));
        assert_eq!(sums, [240, 225]);
        let taken = state.shared.snapshot().unwrap();
        assert_eq!(taken.name, "snapshot-000003");
        state.shared.close().unwrap();
        drop(state);
        // It stays, and the one that was taken since is the newest.
        assert!(world.storage().files().contains_key("snapshot-000002"));
        let state = open(&world).unwrap();
        assert_eq!(state.restart.snapshot.as_deref(), Some("snapshot-000003"));
        assert_eq!([0, 1].map(|part| state.read(part, |sum| sum.0)), sums);
    }
    // Where there is none before, it may be another time.
    let mut files = with_snapshots(3);
    assert!(files.remove("snapshot-000002").is_some() && !files.contains_key("snapshot-000001"));
    let world = with(files);
    fail(&world, "snapshot-000003", 10);
    assert!(matches!(open(&world).map(drop), Err(Error::Io { .. })));
    fail(&world, "snapshot-", u64::MAX);
    assert!(open(&world).is_ok());
}
