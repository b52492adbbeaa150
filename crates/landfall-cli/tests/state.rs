//! `landfall state`: a state of the engine's looked at from outside.

mod common;

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use common::{run, scratch};
use landfall::{Journaled, Serde, SerdeState, StateOptions};
use serde::{Deserialize, Serialize};

#[derive(Clone, Default, Serialize, Deserialize)]
struct Lines(Vec<String>);

impl SerdeState for Lines {
    type Command = String;
    type Output = ();

    const PARTS: u32 = 2;

    fn part(line: &String) -> u64 {
        line.len() as u64
    }

    fn apply(&mut self, line: String) {
        self.0.push(line);
    }
}

#[test]
fn a_state_is_dumped_and_verified_and_what_is_damaged_is_said() {
    let dir = scratch();
    let path = dir.path().join("state");
    let state = Journaled::<Serde<Lines>>::open(&path, StateOptions::default()).unwrap();
    for line in ["a first command", "another one"] {
        state.apply(line.into()).unwrap();
        state.snapshot().unwrap();
    }
    state.apply("a last command".into()).unwrap();
    let open = run(dir.path(), ["state", "verify", "state"]);
    assert_eq!(open.code, Some(4), "{open:#?}");
    state.close().unwrap();

    let dumped = run(dir.path(), ["state", "dump", "state"]);
    assert_eq!(dumped.code, Some(0), "{dumped:#?}");
    for part in [
        "a last command",
        "snapshot-000001  18 bytes in 2 parts, 4 KiB as lz4; commands from 2 on are applied behind it",
        "snapshot-000002  30 bytes in 2 parts",
        "records 2 to 3",
    ] {
        assert!(dumped.stdout.contains(part), "{part}: {}", dumped.stdout);
    }
    let verified = run(dir.path(), ["state", "verify", "state"]);
    assert_eq!(verified.code, Some(0), "{verified:#?}");
    assert!(
        verified
            .stdout
            .ends_with("whole: every snapshot, and the log\n")
    );

    let rot = |name: &str| {
        let snapshot = path.join(name);
        let file = OpenOptions::new().write(true).open(snapshot).unwrap();
        file.write_all_at(b"rot", 4096 + 20).unwrap();
    };
    rot("snapshot-000002");
    let damaged = run(dir.path(), ["state", "verify", "state"]);
    assert_eq!(damaged.code, Some(1), "{damaged:#?}");
    assert!(
        damaged
            .stderr
            .contains("of 2 snapshots 1 cannot be used; the others and the log are whole"),
        "{damaged:#?}"
    );
    let why = "snapshot-000002  cannot be used: snapshot-000002 is damaged at byte 4096: a chunk is not valid";
    assert!(damaged.stdout.contains(why), "{damaged:#?}");
    rot("snapshot-000001");
    let lost = run(dir.path(), ["state", "verify", "state"]);
    assert_eq!(lost.code, Some(1), "{lost:#?}");
    let why = "the state is lost: its log begins at command 2, and no snapshot can be used";
    assert!(lost.stderr.contains(why), "{lost:#?}");
}

#[test]
fn what_is_left_of_a_damaged_state_is_copied() {
    let dir = scratch();
    let path = dir.path().join("state");
    let state = Journaled::<Serde<Lines>>::open(&path, StateOptions::default()).unwrap();
    for line in ["one", "two", "three"] {
        state.apply(line.into()).unwrap();
        state.snapshot().unwrap();
    }
    state.apply("four".into()).unwrap();
    state.close().unwrap();
    let salvage = || run(dir.path(), ["state", "salvage", "state", "--to", "new"]);
    let lines = || {
        let new = dir.path().join("new");
        let state = Journaled::<Serde<Lines>>::open(&new, StateOptions::default()).unwrap();
        let mut lines = Vec::new();
        state.read_all(|part| lines.extend(part.0.0.iter().cloned()));
        state.close().unwrap();
        lines.sort_unstable();
        lines
    };
    let whole = salvage();
    assert_eq!(whole.code, Some(0), "{whole:#?}");
    assert!(whole.stdout.contains("nothing is missing"), "{whole:#?}");
    assert_eq!(lines(), ["four", "one", "three", "two"]);
    let refused = salvage();
    assert_eq!(refused.code, Some(2), "{refused:#?}");

    std::fs::remove_dir_all(dir.path().join("new")).unwrap();
    let snapshot = dir.path().join("state/snapshot-000003");
    let file = OpenOptions::new().write(true).open(snapshot).unwrap();
    file.write_all_at(b"rot", 4096 + 48).unwrap();
    let segment = dir.path().join("state/segment-000001");
    let file = OpenOptions::new().write(true).open(segment).unwrap();
    let last = place_of(dir.path(), "four");
    file.write_all_at(b"rot", last).unwrap();
    let salvaged = salvage();
    assert_eq!(salvaged.code, Some(0), "{salvaged:#?}");
    assert!(
        salvaged.stdout.contains("snapshot-000003 cannot be used")
            && salvaged.stdout.contains("command 4 is lost\n"),
        "{salvaged:#?}"
    );
    assert_eq!(lines(), ["one", "three", "two"]);
}

/// Where these bytes are in the first segment.
fn place_of(dir: &std::path::Path, text: &str) -> u64 {
    let bytes = std::fs::read(dir.join("state/segment-000001")).unwrap();
    let found = bytes
        .windows(text.len())
        .position(|one| one == text.as_bytes());
    found.expect("the command") as u64
}
