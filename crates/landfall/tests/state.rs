//! A state on this machine: what its users see. Power cuts are the simulator's.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use landfall::{
    BoxedError, Compression, Error, Journaled, Lsn, Options, Policy, Serde, SerdeState, State,
    StateInspection, StateOptions, part_of,
};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// How often each key was counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counts(HashMap<u64, u64>);

const POISON: u64 = u64::MAX;

impl SerdeState for Counts {
    type Command = u64;
    type Output = u64;

    const PARTS: u32 = 8;

    fn part(key: &u64) -> u64 {
        part_of(&key.to_le_bytes())
    }

    fn apply(&mut self, key: u64) -> u64 {
        let count = self.0.entry(key).or_default();
        *count += 1;
        assert_ne!(key, POISON, "as was planned");
        *count
    }
}

type CountsState = Journaled<Serde<Counts>>;

fn options() -> StateOptions {
    let log = Options::default()
        .segment_bytes(64 << 10)
        .buffer_bytes(32 << 10)
        .max_unwritten_bytes(16 << 10);
    StateOptions::default().chunk_bytes(1000).log(log)
}

/// A directory, and that of a state in it which is not there yet.
fn directory() -> (TempDir, PathBuf) {
    let outside = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let place = outside.path().join("state");
    (outside, place)
}

fn open(place: &Path) -> CountsState {
    CountsState::open(place, options()).unwrap()
}

fn all(state: &CountsState) -> HashMap<u64, u64> {
    let mut all = HashMap::new();
    state.read_all(|counts| all.extend(&counts.0.0));
    all
}

fn snapshots(place: &Path) -> Vec<String> {
    let names = fs::read_dir(place).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("snapshot")).collect();
    names.sort();
    names
}

/// Flips a bit of every page of a file.
fn damage(file: &Path) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(file)
        .unwrap();
    for page in 0..file.metadata().unwrap().len() / 4096 {
        let mut byte = [0];
        file.read_exact_at(&mut byte, page * 4096 + 99).unwrap();
        file.write_all_at(&[byte[0] ^ 4], page * 4096 + 99).unwrap();
    }
}

#[test]
fn many_threads_change_it_while_snapshots_are_taken() {
    let mut compressions = vec![Compression::None, Compression::Lz4];
    if cfg!(feature = "zstd") {
        compressions.push(Compression::Zstd);
    }
    for compression in compressions {
        let (_outside, place) = directory();
        let options = options().compression(compression);
        let state = CountsState::open(&place, options.clone()).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..4u64)
                .map(|thread| {
                    let state = &state;
                    scope.spawn(move || {
                        for number in 0..300 {
                            state.apply((thread * number) % 97).unwrap();
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let snapshot = state.snapshot().unwrap();
                    assert!(snapshot.bytes > 4096, "{snapshot:?}");
                }
            });
            threads
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            over.store(true, Ordering::Relaxed);
        });
        let before = all(&state);
        assert_eq!(before.values().sum::<u64>(), 1200);
        assert!(state.counters().snapshots > 0);
        state.close().unwrap();
        assert!(snapshots(&place).len() <= 2);
        let state = CountsState::open(&place, options).unwrap();
        assert_eq!(all(&state), before, "{compression:?}");
        assert!(state.restart().snapshot.is_some());
        assert!(state.restart().commands < 1200, "{:?}", state.restart());
    }
}

#[test]
fn a_damaged_snapshot_is_made_up_for_by_the_one_before() {
    let (_outside, place) = directory();
    let state = open(&place);
    let mut expected = HashMap::new();
    for round in 0..4u64 {
        for key in 0..50 {
            expected.insert(key, state.apply(key).unwrap());
        }
        assert_eq!(
            state.snapshot().unwrap().name,
            format!("snapshot-{:06}", round + 1)
        );
    }
    state.apply(7).unwrap();
    *expected.get_mut(&7).unwrap() += 1;
    state.close().unwrap();
    assert_eq!(snapshots(&place), ["snapshot-000003", "snapshot-000004"]);

    damage(&place.join("snapshot-000004"));
    let looked = StateInspection::read(&place, &mut |_| {}).unwrap();
    let damages: Vec<bool> = looked
        .snapshots
        .iter()
        .map(|one| one.damage.is_some())
        .collect();
    assert_eq!(damages, [false, true]);
    assert_eq!(
        (looked.log.first_lsn, looked.log.next_lsn),
        (Lsn(151), Lsn(202))
    );
    let state = open(&place);
    assert_eq!(all(&state), expected);
    let restart = state.restart();
    assert_eq!(restart.snapshot.as_deref(), Some("snapshot-000003"));
    assert_eq!(restart.skipped[0].0, "snapshot-000004");
    assert!(
        restart.skipped[0]
            .1
            .to_string()
            .contains("is damaged at byte")
    );
    // It is there to be looked at until another one is.
    assert_eq!(snapshots(&place).len(), 2);
    state.snapshot().unwrap();
    state.close().unwrap();
    assert_eq!(snapshots(&place), ["snapshot-000003", "snapshot-000005"]);

    for name in snapshots(&place) {
        damage(&place.join(name));
    }
    let refused = CountsState::open(&place, options()).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::NoSnapshot {
                first: Lsn(151),
                ..
            }
        ),
        "{refused}"
    );
    assert_eq!(snapshots(&place).len(), 2, "nothing is removed");
}

#[test]
fn a_command_that_panics_has_not_happened() {
    let (_outside, place) = directory();
    let state = open(&place);
    let keys: Vec<u64> = (0..40).collect();
    for key in &keys {
        state.apply(*key).unwrap();
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| state.apply(POISON)));
    assert!(panicked.is_err());
    // Its part may be half changed; others are not.
    let (mut refused, mut applied) = (0, 0);
    for key in &keys {
        match state.apply(*key) {
            Ok(_) => applied += 1,
            Err(Error::Unlogged) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(
        refused > 0 && applied > 0,
        "{refused} refused, {applied} applied"
    );
    assert!(matches!(state.snapshot(), Err(Error::Unlogged)));
    assert_eq!(state.counters().failed_snapshots, 1);
    state.close().unwrap();
    let state = open(&place);
    let there = all(&state);
    assert!(!there.contains_key(&POISON));
    assert_eq!(there.values().sum::<u64>(), 40 + applied);
    assert_eq!(state.apply(keys[0]).unwrap(), there[&keys[0]] + 1);
}

#[test]
fn each_policy_makes_durable_what_it_promises() {
    for policy in [
        Policy::EveryCommit,
        Policy::Group,
        Policy::Interval(Duration::from_millis(5)),
    ] {
        let (_outside, place) = directory();
        let options = options().policy(policy);
        let state = CountsState::open(&place, options).unwrap();
        for key in 0..100 {
            state.apply(key).unwrap();
        }
        if policy != Policy::EveryCommit {
            // Nobody commits, and it becomes durable nevertheless.
            let begin = std::time::Instant::now();
            while state.counters().log.record_bytes < 100 * 5 {
                assert!(begin.elapsed() < Duration::from_secs(60), "{policy:?}");
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(state.counters().log.flushes > 0);
        drop(state);
        assert_eq!(all(&open(&place)).len(), 100, "{policy:?}");
    }
}

#[test]
fn snapshots_are_taken_when_a_restart_would_take_too_long() {
    let (_outside, place) = directory();
    let options = options()
        .max_recovery_time(Duration::from_micros(200))
        .policy(Policy::Interval(Duration::from_secs(1)));
    let state = CountsState::open(&place, options).unwrap();
    let begin = std::time::Instant::now();
    let mut key = 0;
    while state.counters().snapshots == 0 {
        state.apply(key % 1000).unwrap();
        key += 1;
        assert!(begin.elapsed() < Duration::from_secs(60));
    }
    let last = state.counters().last_snapshot.unwrap();
    assert!(last.longest_capture <= last.took, "{last:?}");
}

#[test]
fn a_future_is_ready_when_its_command_is_durable() {
    let (_outside, place) = directory();
    let state = open(&place);
    let (count, commit) = state.apply_async(5).unwrap();
    assert_eq!(count, 1);
    state.commit().unwrap();
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let mut commit = std::pin::pin!(commit);
    let ready = loop {
        if let std::task::Poll::Ready(ready) = commit.as_mut().poll(&mut context) {
            break ready;
        }
        thread::yield_now();
    };
    assert_eq!(ready.unwrap(), Lsn(1));
}

/// As [`Counts`], cut into fewer parts, and with commands that cannot all be written.
#[derive(Default)]
struct Fewer;

impl State for Fewer {
    type Command = bool;
    type Output = ();
    type Capture = ();

    fn apply(&mut self, _: bool) {}

    fn encode(can: &bool, _: &mut Vec<u8>) -> Result<(), BoxedError> {
        can.then_some(())
            .ok_or_else(|| "it cannot be written".into())
    }

    fn decode(_: &[u8]) -> Result<bool, BoxedError> {
        Err("it cannot be read".into())
    }

    fn capture(&self) {}

    fn write((): (), _: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }

    fn read(_: &mut dyn Read) -> std::io::Result<Fewer> {
        Ok(Fewer)
    }
}

#[test]
fn what_makes_no_sense_is_refused_in_a_sentence() {
    let (_outside, place) = directory();
    let state = open(&place);
    state.apply(1).unwrap();
    let locked = CountsState::open(&place, options()).unwrap_err();
    assert!(matches!(locked, Error::Locked), "{locked}");
    state.snapshot().unwrap();
    state.close().unwrap();
    let refused = Journaled::<Fewer>::open(&place, options()).unwrap_err();
    let text = "snapshot-000001 has 8 parts and the state has 1";
    assert!(refused.to_string().starts_with(text), "{refused}");
    let none = options().keep_snapshots(0);
    let refused = CountsState::open(&place, none).unwrap_err();
    assert_eq!(refused.to_string(), "keep_snapshots is at least 1");
    if !cfg!(feature = "zstd") {
        let unknown = options().compression(Compression::Zstd);
        let refused = CountsState::open(&place, unknown).unwrap_err();
        assert!(
            refused.to_string().contains("needs the feature zstd"),
            "{refused}"
        );
    }

    let (_outside, place) = directory();
    let state = Journaled::<Fewer>::open(&place, options()).unwrap();
    let refused = state.apply(false).unwrap_err();
    assert!(
        refused.to_string().contains("it cannot be written"),
        "{refused}"
    );
    let refused = state.apply(true).unwrap_err();
    let text = "it cannot be read back: it cannot be read";
    assert!(refused.to_string().ends_with(text), "{refused}");
    state.close().unwrap();

    let (_outside, place) = directory();
    let state = open(&place);
    state.apply(1).unwrap();
    state.close().unwrap();
    let refused = Journaled::<Fewer>::open(&place, options()).unwrap_err();
    let text = "command 1 cannot be applied again: it cannot be read";
    assert!(refused.to_string().starts_with(text), "{refused}");
}

/// What postcard writes and cannot read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    Set { to: u64 },
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct OfTaggedCommands;

impl SerdeState for OfTaggedCommands {
    type Command = Tagged;
    type Output = ();

    fn apply(&mut self, _: Tagged) {}
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct TaggedState(Option<Tagged>);

impl SerdeState for TaggedState {
    type Command = u64;
    type Output = ();

    fn apply(&mut self, to: u64) {
        self.0 = Some(Tagged::Set { to });
    }
}

#[test]
fn a_command_that_cannot_be_read_back_is_not_applied() {
    let (_outside, place) = directory();
    let open = || Journaled::<Serde<OfTaggedCommands>>::open(&place, options()).unwrap();
    let state = open();
    for _ in 0..2 {
        let refused = state.apply(Tagged::Set { to: 7 }).unwrap_err();
        assert!(
            matches!(&refused, Error::Encode(why) if why.starts_with("it cannot be read back")),
            "{refused}"
        );
    }
    state.close().unwrap();
    assert_eq!(open().next_lsn(), Lsn(1));
}

#[test]
fn a_state_that_cannot_be_read_back_keeps_its_log() {
    let (_outside, place) = directory();
    let options = options().keep_snapshots(1);
    let open = || Journaled::<Serde<TaggedState>>::open(&place, options.clone()).unwrap();
    let state = open();
    state.apply(7).unwrap();
    for _ in 0..2 {
        let refused = state.snapshot().unwrap_err();
        let text = "cannot write a snapshot: it cannot be read back";
        assert!(refused.to_string().starts_with(text), "{refused}");
        assert!(snapshots(&place).is_empty());
    }
    state.close().unwrap();
    let kept = open().read(0, |state| state.0.0.clone());
    assert_eq!(kept, Some(Tagged::Set { to: 7 }));
}

const CHILD: &str = "LANDFALL_STATE_CHILD";

/// The process that is killed: counts with four threads while snapshots are taken, and says what is durable.
#[test]
fn child() {
    let Ok(place) = std::env::var(CHILD) else {
        return;
    };
    let state = open(Path::new(&place));
    let number = AtomicU64::new(state.next_lsn().0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let key = number.fetch_add(1, Ordering::Relaxed);
                    let count = state.apply(key % 500).unwrap();
                    println!("durable {} {count}", key % 500);
                }
            });
        }
        scope.spawn(|| {
            loop {
                state.snapshot().unwrap();
            }
        });
    });
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_said_was_durable() {
    let (_outside, place) = directory();
    let mut durable: HashMap<u64, u64> = HashMap::new();
    for round in 0..12u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(CHILD, &place)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut left = 20 + round * 37 % 300;
        for line in lines {
            let line = line.unwrap();
            if let Some((_, said)) = line.split_once("durable ")
                && let Some((key, count)) = said.split_once(' ')
                // The last line may be cut off.
                && let (Ok(key), Ok(count), true) = (key.parse(), count.parse::<u64>(), left < u64::MAX)
            {
                let most = durable.entry(key).or_default();
                *most = count.max(*most);
                left = left.saturating_sub(1);
            }
            if left == 0 {
                child.kill().unwrap();
                left = u64::MAX;
            }
        }
        child.wait().unwrap();
        let state = open(&place);
        assert!(state.restart().skipped.is_empty(), "{:?}", state.restart());
        let there = all(&state);
        for (key, count) in &durable {
            let found = there.get(key).copied().unwrap_or(0);
            assert!(
                found >= *count,
                "round {round}: {key} was {count}, is {found}"
            );
        }
        state.close().unwrap();
    }
    assert!(durable.len() > 100);
}

#[test]
fn a_log_that_lacks_one_command_of_a_snapshot_is_refused() {
    let (outside, place) = directory();
    let killed = outside.path().join("killed");
    let state = open(&place);
    // The headers of segments that are made later would promise the command as well.
    let is_made = |bytes: Vec<u8>| bytes.get(4..16) == Some(b"Landfall seg");
    while !fs::read(place.join("segment-000004")).is_ok_and(is_made) {
        thread::sleep(Duration::from_millis(1));
    }
    let older = fs::read(place.join("segment-000001")).unwrap();
    state.apply(5).unwrap();
    state.snapshot().unwrap();
    fs::create_dir(&killed).unwrap();
    for entry in fs::read_dir(&place).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), killed.join(entry.file_name())).unwrap();
    }
    fs::write(killed.join("segment-000001"), older).unwrap();
    let refused = CountsState::open(&killed, options()).unwrap_err();
    assert!(matches!(refused, Error::LogLost { .. }), "{refused}");
}
