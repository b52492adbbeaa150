//! Applying again what is in the log and not in the snapshot.
//!
//! Threads: whoever examines the log hands its records over; `landfall-replay`, which has the parts meanwhile, decodes and
//! applies them. So both are at work at the same time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::State;
use super::hand_over::HandOver;
use super::restart::Loaded;
use crate::environment::{Environment, planted};
use crate::log::batch_assembler::{BatchAssembler, Place};
use crate::log::examine::Visited;
use crate::{Error, Lsn};

/// Bytes of records after which they are handed over.
const ENOUGH: usize = 256 << 10;
/// Rows of records that go round.
const ROWS: usize = 3;

/// Records in their order.
#[derive(Default)]
struct Row {
    bytes: Vec<u8>,
    /// Of each record its number, and where it ends.
    records: Vec<(u64, usize)>,
}

/// What came of it: the parts, and how many commands were applied.
type Replayed<S> = Result<(Vec<S>, u64), Error>;

struct Shared<S: State, E: Environment> {
    rows: HandOver<E, Row>,
    replayed: E::Mutex<Option<Replayed<S>>>,
}

pub(super) struct Replay<S: State, E: Environment> {
    shared: Arc<Shared<S, E>>,
    thread: Option<E::Thread>,
    assembler: BatchAssembler,
    /// Records before it are in every part.
    first: u64,
    /// What is being filled; `None`: nothing more is applied, and the log is only examined to its end.
    row: Option<Row>,
}

impl<S: State, E: Environment> Replay<S, E> {
    /// Begins to apply records to what a snapshot had.
    pub fn start(environment: &E, loaded: Loaded<S>) -> Result<Replay<S, E>, Error> {
        let shared = Arc::new(Shared {
            rows: HandOver::new((1..ROWS).map(|_| Row::default()).collect()),
            replayed: E::mutex(None),
        });
        let (own, first) = (shared.clone(), loaded.first);
        let environment_of_thread = environment.clone();
        let work = move || {
            let applying = || apply_all(&environment_of_thread, &own, loaded);
            // What is caught for each command leaves the parts, which may panic when they are dropped.
            let replayed = catch_unwind(AssertUnwindSafe(applying)).unwrap_or_else(|_| {
                let source = io::Error::other("a part of the state panicked");
                Err(Error::io("apply the log")(source))
            });
            *E::lock(&own.replayed) = Some(replayed);
            own.rows.refuse();
        };
        let thread = environment.spawn("landfall-replay", work);
        let thread = thread.map_err(Error::io("start a thread of the state"))?;
        Ok(Replay {
            shared,
            thread: Some(thread),
            assembler: BatchAssembler::new(),
            first,
            row: Some(Row::default()),
        })
    }

    /// Takes the next block of the log.
    pub fn take(&mut self, visited: &Visited<'_>) -> Result<(), Error> {
        let Some(row) = &mut self.row else {
            return Ok(());
        };
        let entered = self.assembler.enter(visited.header, visited.payload.len());
        entered.map_err(Error::broken)?;
        while let Some((lsn, place)) = self
            .assembler
            .next(visited.payload)
            .map_err(Error::broken)?
        {
            if lsn < self.first {
                continue;
            }
            let bytes = match place {
                Place::Payload(range) => &visited.payload[range],
                Place::Kept(range) => self.assembler.kept(range),
            };
            row.bytes.extend_from_slice(bytes);
            row.records.push((lsn, row.bytes.len()));
        }
        if row.bytes.len() + row.records.len() >= ENOUGH {
            self.shared.rows.put(std::mem::take(row));
            self.row = self.shared.rows.empty().map(|mut row| {
                row.bytes.clear();
                row.records.clear();
                row
            });
        }
        Ok(())
    }

    /// Waits until everything is applied.
    pub fn finish(mut self) -> Replayed<S> {
        if let Some(row) = self.row.take() {
            self.shared.rows.put(row);
        }
        self.end();
        let replayed = E::lock(&self.shared.replayed).take();
        replayed.unwrap_or_else(|| Err(Error::broken("a thread ended without a word")))
    }

    fn end(&mut self) {
        self.shared.rows.complete();
        if let Some(thread) = self.thread.take() {
            E::join(thread);
        }
    }
}

impl<S: State, E: Environment> Drop for Replay<S, E> {
    fn drop(&mut self) {
        self.end();
    }
}

fn apply_all<S: State, E: Environment>(
    environment: &E,
    shared: &Shared<S, E>,
    mut loaded: Loaded<S>,
) -> Replayed<S> {
    let mut commands = 0;
    while let Some(row) = shared.rows.take() {
        let mut at = 0;
        for &(lsn, end) in &row.records {
            let is_new = apply(environment, &mut loaded, lsn, &row.bytes[at..end])?;
            commands += u64::from(is_new);
            at = end;
        }
        shared.rows.give_back(row);
    }
    Ok((loaded.parts, commands))
}

/// Applies a command, unless its part has it.
fn apply<S: State, E: Environment>(
    environment: &E,
    loaded: &mut Loaded<S>,
    lsn: u64,
    bytes: &[u8],
) -> Result<bool, Error> {
    #[cfg(not(any(test, feature = "mistakes")))]
    let _ = environment;
    let wrong = |what: String| Error::Command {
        lsn: Lsn(lsn),
        what,
    };
    let applied = catch_unwind(AssertUnwindSafe(|| -> Result<bool, String> {
        // An error may panic as well: when it is printed, or dropped.
        let command = S::decode(bytes).map_err(|error| error.to_string())?;
        let part = (S::part(&command) % u64::from(S::PARTS)) as usize;
        let is_new = lsn >= loaded.lsns[part] || planted!(environment, ApplyTwice);
        if is_new {
            loaded.parts[part].apply(command);
        }
        Ok(is_new)
    }));
    let applied = applied.map_err(|_| wrong("it panicked".into()))?;
    applied.map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::log::Handle;
    use crate::log::directory::Directory;
    use crate::state::BoxedError;
    use crate::state::fixtures::{Files, Sum, Ways, World, with};

    #[test]
    fn commands_are_handed_over_when_they_are_enough_and_not_before() {
        const COMMANDS: u64 = 80_000;
        const MOST: usize = 256 << 10;
        let world: World = with(Files::new());
        let options = Options::default()
            .segment_bytes(1 << 20)
            .buffer_bytes(64 << 10)
            .max_unwritten_bytes(64 << 10);
        let log = Handle::open(&world, options).unwrap();
        for first in (0..COMMANDS).step_by(1000) {
            let commands: Vec<[u8; 8]> = (first..first + 1000).map(u64::to_le_bytes).collect();
            let commands: Vec<&[u8]> = commands.iter().map(|one| &one[..]).collect();
            log.append_batch(&commands).unwrap();
        }
        log.close().unwrap();
        let mut replay = Replay::start(&world, Loaded::<Sum>::empty()).unwrap();
        let (mut fullest, mut handed_over, mut before) = (0, 0, 0);
        let directory = Directory::locked(&world).unwrap();
        let examined = directory.examine(&mut |visited| {
            replay.take(&visited)?;
            let row = replay.row.as_ref().unwrap();
            // Each with its number.
            let held = row.bytes.len() + row.records.len();
            handed_over += u32::from(held < before);
            (fullest, before) = (fullest.max(held), held);
            Ok(())
        });
        examined.unwrap();
        // A block has no more than half a buffer.
        assert!((MOST - (32 << 10)..MOST).contains(&fullest), "{fullest}");
        assert_eq!(handed_over, 2);
        let (parts, commands) = replay.finish().unwrap();
        assert_eq!(commands, COMMANDS);
        assert_eq!(parts[0].0 + parts[1].0, COMMANDS * (COMMANDS - 1) / 2);
    }

    /// What it says of a command that it does not read panics.
    #[derive(Default)]
    struct Unspeakable;

    #[derive(Debug)]
    struct Unspoken;

    impl std::fmt::Display for Unspoken {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("nobody is to read this");
        }
    }

    impl std::error::Error for Unspoken {}

    impl Ways for Unspeakable {
        fn decode(_: &[u8]) -> Result<u64, BoxedError> {
            Err(Unspoken.into())
        }
    }

    #[test]
    fn an_error_that_panics_ends_the_opening_with_an_error() {
        let world: World = with(Files::new());
        let loaded = Loaded::<Sum<Unspeakable>>::empty();
        let mut replay = Replay::start(&world, loaded).unwrap();
        let row = replay.row.as_mut().unwrap();
        row.bytes.push(7);
        row.records.push((1, 1));
        let refused = replay.finish().err();
        assert!(
            matches!(&refused, Some(Error::Command { lsn: Lsn(1), what }) if what == "it panicked"),
            "{refused:?}"
        );
    }

    #[test]
    fn who_gives_up_leaves_no_thread() {
        let world: World = with(Files::new());
        let replay = Replay::start(&world, Loaded::<Sum>::empty()).unwrap();
        let shared = Arc::downgrade(&replay.shared);
        drop(replay);
        assert!(shared.upgrade().is_none());
    }
}
