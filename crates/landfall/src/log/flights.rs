//! What threads do for each other: who writes, who is counted with whom, and who is told of a failure.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::Handle;
use super::format::{Geometry, SegmentHeader};
use super::gathering::Gather;
use super::preallocator;
use super::salvaging::{Files, GEOMETRY, World, open, record, settle, with};
use super::segments::Hurry;
use super::shared::Flight;
use crate::environment::{Durability, Environment, Storage};
use crate::fuzzing::memory::Call;
use crate::{Error, Lsn, Options};

fn begin() -> (World, Handle<World>) {
    let world = with(Files::new());
    let log = open(&world);
    settle(&log);
    (world, log)
}

/// What has been asked since this was asked last.
fn calls(world: &World) -> Vec<Call> {
    std::mem::take(&mut *world.storage().device().calls.lock().unwrap())
}

#[test]
fn who_comes_while_his_record_is_written_is_counted_with_the_others() {
    let (world, log) = begin();
    log.append(b"one").unwrap();
    let (joined, joins) = mpsc::channel();
    let shared = log.shared.clone();
    let during = move || {
        let other = shared.clone();
        joined
            .send(std::thread::spawn(move || other.commit(2)))
            .unwrap();
        while shared.done.iter().all(|done| done.waiting() == 0) {
            std::thread::yield_now();
        }
    };
    *world.storage().device().during.lock().unwrap() = Some(Box::new(during));
    log.commit().unwrap();
    // If nothing came between, nothing will.
    drop(world.storage().device().during.lock().unwrap().take());
    joins.recv().unwrap().join().unwrap().unwrap();
    assert_eq!(log.shared.counters().commits, 2);
    // The next one waits for the other.
    let mut state = World::lock(&log.shared.state);
    let decided = state.gathering.decide(1, || Duration::ZERO);
    assert!(matches!(decided, Gather::Lead(_)), "{decided:?}");
}

#[test]
fn what_blocks_promise_is_noted_when_they_are_durable() {
    let (_world, log) = begin();
    let promised = || World::lock(&log.shared.state).promised;
    let write = || log.shared.drive(World::lock(&log.shared.state));
    let first = GEOMETRY.first_block(1);
    log.append_durable(&record(1)).unwrap();
    assert_eq!(promised(), first);
    // It is written, and not durable: a power cut may take what it says of the first.
    log.append(&record(2)).unwrap();
    write();
    assert_eq!(log.shared.counters().bytes, 1024);
    assert_eq!(promised(), first);
    // It is made durable, by a group that has no block of its own.
    log.commit().unwrap();
    assert_eq!(log.shared.counters().bytes, 1024);
    assert_eq!(promised(), first);
    log.append_durable(&record(3)).unwrap();
    assert_eq!(promised(), first + 1024);
}

#[test]
fn a_promise_is_owed_when_no_block_is_about_to_say_so() {
    let (_world, log) = begin();
    let mut state = World::lock(&log.shared.state);
    let owes = |state: &super::shared::State<World>| log.shared.owes_promise(state);
    let durable = state.durable.position;
    state.durable.position = durable + 4095;
    assert!(!owes(&state), "it is little");
    state.durable.position = durable + 4096;
    assert!(owes(&state));
    let flight = Flight {
        parity: 0,
        end: 1,
        is_synced: true,
        joined: 0,
    };
    state.flight = Some(flight);
    assert!(!owes(&state), "one is written");
    state.flight = None;
    state.filling.waiting = 1;
    assert!(!owes(&state), "one is waited for");
    state.filling.waiting = 0;
    state.filling.callbacks.push((Lsn(1), Box::new(drop)));
    assert!(!owes(&state), "one is to be told of");
    state.filling.callbacks.clear();
    assert!(owes(&state));
    state.durable.position = durable;
}

#[test]
fn who_asks_to_be_called_does_not_write() {
    let (_world, log) = begin();
    let (called, calls) = mpsc::channel();
    for number in 1..=20 {
        let called = called.clone();
        let done = move |result: Result<Lsn, Error>| {
            let lsn = result.ok();
            called.send((std::thread::current().id(), lsn)).unwrap();
        };
        log.append_then(&record(number), done).unwrap();
        let (by, lsn) = calls.recv().unwrap();
        assert_ne!(by, std::thread::current().id(), "{number}");
        assert_eq!(lsn, Some(Lsn(number)));
    }
}

#[test]
fn one_write_that_is_durable_is_enough_for_one_block() {
    let (world, log) = begin();
    calls(&world);
    log.append_durable(&record(1)).unwrap();
    let written = Call::Write {
        name: "segment-000001".to_owned(),
        range: 512..1024,
        durability: Durability::OnReturn,
    };
    assert_eq!(calls(&world), [written]);
    // It must be made durable with what was written before.
    log.append(&record(2)).unwrap();
    log.shared.drive(World::lock(&log.shared.state));
    log.append_durable(&record(3)).unwrap();
    let durable = |call: &Call| match call {
        Call::Write { durability, .. } => *durability == Durability::OnReturn,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        calls(&world).iter().map(durable).collect::<Vec<_>>(),
        [false; 2]
    );
}

#[test]
fn a_large_batch_that_does_not_end_says_why() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::PermissionDenied] {
        let (world, log) = begin();
        *world.storage().device().no_create.lock().unwrap() = Some(kind);
        // More than there are segments for.
        match log.append_batch(&[&[7; 20_000]]) {
            Err(Error::Poisoned { source, .. }) => assert_eq!(source.kind(), kind),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_failure_that_was_noted_is_told_to_those_who_wait() {
    let (_world, log) = begin();
    let told = Arc::new(AtomicU64::new(0));
    let telling = told.clone();
    let mut state = World::lock(&log.shared.state);
    let done = move |result: Result<_, _>| {
        assert!(matches!(result, Err(Error::Poisoned { doing: "this", .. })));
        telling.fetch_add(1, SeqCst);
    };
    state.filling.callbacks.push((Lsn(1), Box::new(done)));
    drop(state);
    log.shared.announce_poison();
    assert_eq!(told.load(SeqCst), 0, "nothing has failed");
    World::lock(&log.shared.state).fail("this", io::Error::other("planned"));
    log.shared.announce_poison();
    assert_eq!(told.load(SeqCst), 1);
}

#[test]
fn zeros_are_written_to_a_segment_as_long_as_nobody_needs_it() {
    let (world, log) = begin();
    let geometry = Geometry {
        segment: 4096,
        ..GEOMETRY
    };
    let file = world.storage().open("segment-000003").unwrap();
    let fill = |sequence: u64| {
        calls(&world);
        preallocator::fill(&log.shared, sequence, &file).unwrap();
        calls(&world).len() as u64
    };
    assert_eq!(fill(3), geometry.segment / geometry.granule - 1);
    assert_eq!(fill(1), 0, "it has records");
    let hurry = Hurry {
        past_zeros: false,
        to_last: false,
    };
    World::lock(&log.shared.state).segments.enter(99, 1, hurry);
    assert_eq!(fill(3), 0, "somebody waits for one");
    let (world, log) = begin();
    let file = world.storage().open("segment-000003").unwrap();
    World::lock(&log.shared.state).is_closing = true;
    calls(&world);
    preallocator::fill(&log.shared, 3, &file).unwrap();
    assert_eq!(calls(&world), [], "the log is being closed");
    World::lock(&log.shared.state).is_closing = false;
}

#[test]
fn the_first_segment_of_a_log_is_written_before_it_is_used() {
    let world = with(Files::new());
    let log = open(&world);
    let written = calls(&world);
    let zeros = |name: &str| {
        let of_it = written.iter().filter(|call| match call {
            Call::Write {
                name: of, range, ..
            } => of == name && range.start > 0,
            _ => false,
        });
        of_it.count()
    };
    assert_eq!(zeros("segment-000001"), 7);
    drop(log);
}

#[test]
fn names_are_durable_before_others_are_given() {
    let (world, log) = begin();
    log.append_durable(&record(1)).unwrap();
    let left = with(world.storage().files());
    let again = open(&left);
    settle(&again);
    let asked = calls(&left);
    let renamed = asked
        .iter()
        .position(|call| matches!(call, Call::Rename(name) if name.starts_with("segment")));
    let before = &asked[..renamed.unwrap()];
    assert_eq!(before, [Call::Sync]);
}

#[test]
fn a_file_that_is_used_again_keeps_its_name() {
    let (world, log) = begin();
    for lsn in 1..=30 {
        log.append_durable(&record(lsn)).unwrap();
        settle(&log);
    }
    log.truncate_before(Lsn(30)).unwrap();
    settle(&log);
    // From here on there is no segment whose name could not be made durable.
    world.storage().device().no_sync.store(true, Relaxed);
    for lsn in 31..=36 {
        log.append_durable(&record(lsn)).unwrap();
        settle(&log);
    }
    let bytes = world.storage().files().remove("segment-000002").unwrap();
    let sequence = SegmentHeader::decode(&bytes).unwrap().sequence;
    assert!(sequence > 5, "{sequence}");
}

#[test]
fn half_a_segment_can_be_promised() {
    let world = with(Files::new());
    let options = Options::default()
        .segment_bytes(9 * 512)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024);
    let log = Handle::open(&world, options).unwrap();
    // Half of eight granules: a block of three, and one.
    let bytes = 3 * 512 - 64 - 4;
    let promised = |bytes: usize| log.shared.reserve(bytes).unwrap().bytes;
    assert_eq!((promised(bytes), promised(bytes + 1)), (2048, 0));
}
