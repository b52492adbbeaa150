//! What is not published of a snapshot, and what comes between while one is written.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use super::fixtures::{Files, Sum, Usual, Ways, World, open, with, with_snapshots};
use super::format::DRAFT;
use super::{Handle, Policy, StateOptions};
use crate::environment::Environment;
use crate::fuzzing::memory::Call;
use crate::{Error, Lsn, Options};

#[test]
fn a_draft_that_cannot_be_removed_is_told_of() {
    let world = with(with_snapshots(1));
    let state = open(&world).unwrap();
    let mut files = world.storage().files();
    files.insert(DRAFT.to_owned(), vec![0; 512]);
    world.storage().replace(files);
    let no_remove = &world.storage().device().no_remove;
    *no_remove.lock().unwrap() = Some(ErrorKind::PermissionDenied);
    match state.shared.snapshot() {
        Err(Error::Io { source, .. }) => assert_eq!(source.kind(), ErrorKind::PermissionDenied),
        other => panic!("{other:?}"),
    }
    *no_remove.lock().unwrap() = None;
    state.shared.snapshot().unwrap();
}

#[test]
fn a_draft_is_removed_where_there_is_one() {
    for is_there in [false, true] {
        let mut files = with_snapshots(1);
        if is_there {
            files.insert(DRAFT.to_owned(), vec![0; 512]);
        }
        let world = with(files);
        let _state = open(&world).unwrap();
        let calls = world.storage().device().calls.lock().unwrap();
        let removed = calls.contains(&Call::Remove(DRAFT.to_owned()));
        assert_eq!(removed, is_there);
    }
}

thread_local! {
    /// What is done when the first part is being written.
    static BETWEEN: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// Others change the sum while it is written.
#[derive(Default)]
struct Busy;

impl Ways for Busy {
    fn write(sum: u64, out: &mut dyn Write) -> io::Result<()> {
        let between = BETWEEN.with(RefCell::take);
        between.into_iter().for_each(|between| between());
        Usual::write(sum, out)
    }
}

#[test]
fn a_snapshot_has_no_command_that_the_log_can_lose() {
    let world: World = with(Files::new());
    let options = StateOptions::default()
        .max_recovery_time(Duration::MAX)
        .policy(Policy::Interval(Duration::MAX))
        .log(Options::default().segment_bytes(4096));
    let state = Handle::<Sum, World>::open(&world, options).unwrap();
    // Of none there is nothing to wait for.
    state.shared.snapshot().unwrap();
    for number in 1..=3 {
        state.shared.apply(number).unwrap();
        assert_eq!(state.shared.log.durable_end(), Lsn(number));
        state.shared.snapshot().unwrap();
        assert_eq!(state.shared.log.durable_end(), Lsn(number + 1));
    }
}

#[test]
fn commands_come_while_a_snapshot_is_written() {
    let world: World = with(Files::new());
    let open = || {
        let options = StateOptions::default()
            .max_recovery_time(Duration::MAX)
            .log(Options::default().segment_bytes(4096));
        Handle::<Sum<Busy>, World>::open(&world, options).unwrap()
    };
    let state = open();
    state.shared.apply(2).unwrap();
    // One for the part that is being written, and one for the part that is captured then.
    let shared = Arc::clone(&state.shared);
    let between = move || {
        shared.apply(4).unwrap();
        shared.apply(5).unwrap();
    };
    BETWEEN.set(Some(Box::new(between)));
    let snapshot = state.shared.snapshot().unwrap();
    state.shared.close().unwrap();
    drop(state);
    let state = open();
    assert_eq!(state.restart.snapshot, Some(snapshot.name));
    // The second has it already.
    assert_eq!(state.restart.commands, 1);
    assert_eq!([0, 1].map(|part| state.read(part, |sum| sum.0)), [6, 5]);
}
