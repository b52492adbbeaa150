//! Made-up proofs for tests.

use crate::{FilesystemSpec, Kind};

use super::{
    Coverage, Exercised, FailingState, Happening, Hazard, Moment, ProofResults, Violation,
    ViolationCount, Workload,
};

/// A proof in which nothing was lost.
pub fn proof() -> ProofResults {
    ProofResults {
        subject: "sqlite journal_mode=wal synchronous=full".to_owned().into(),
        promises_atomic: true,
        promises_order: true,
        filesystem_spec: FilesystemSpec::plain(Kind::Ext4),
        device_bytes: 64 << 20,
        model: "subset".to_owned(),
        seed: 1,
        faults: Vec::new(),
        atomic_bytes: 512,
        creation: false,
        writeback: false,
        shard: None,
        cluster: None,
        workload: Workload {
            sent: 24,
            acknowledged: 24,
            writes: 72,
            written_bytes: 312 << 10,
            flushes: 49,
            forced_writes: None,
            spilled_bytes: 0,
            ended: None,
        },
        coverage: Coverage {
            epochs: 50,
            surveyed: 50,
            every_write: 40,
            every_sector: 12,
            possible: 40_000.0,
            planned: 1_234,
            sampled: 300,
            equal: 7,
            states_digest: None,
            equal_files: 0,
            checked: 1_234,
            states_per_minute: 6_000.0,
            workers: 2,
            second_cuts: None,
        },
        exercised: vec![exercised(Hazard::PageTorn, 40, 12, &[])],
        violations: Vec::new(),
        first_failing: None,
        failing_states: 0,
        losing_states: 0,
        worst_lost: 0,
        only_last: false,
        shortest: None,
        unchecked: None,
        expected: None,
    }
}

/// Something that happened so often, in so many crash states.
pub fn exercised(what: Hazard, happened: u64, states: u64, protected_by: &[&str]) -> Exercised {
    Exercised {
        what,
        happened: Some(happened),
        states: Some(states),
        protected_by: protected_by.iter().map(|&name| name.to_owned()).collect(),
    }
}

/// A proof in which acknowledged transactions were lost.
pub fn failing() -> ProofResults {
    let sound = proof();
    ProofResults {
        subject: "sqlite journal_mode=wal synchronous=off".to_owned().into(),
        coverage: Coverage {
            planned: 300,
            checked: 300,
            ..sound.coverage.clone()
        },
        violations: vec![ViolationCount {
            violation: Violation::Lost,
            states: 40,
            example: "1:2:none".to_owned(),
            detail: "of 9 acknowledged transactions 3 are not there: 7-9".to_owned(),
            place: Some(4),
            crashed: false,
        }],
        failing_states: 40,
        losing_states: 40,
        worst_lost: 3,
        shortest: Some(state(vec![
            moment(1.0, Happening::Send { transaction: 6 }, false),
            moment(1.5, write(9 << 20, 8, 0), false),
            moment(1.6, Happening::Flush, false),
            moment(1.7, Happening::Acknowledge { transaction: 6 }, false),
            moment(1.8, Happening::Send { transaction: 7 }, false),
            moment(1.9, write((9 << 20) + 4096, 8, 8), false),
            moment(2.0, write(16 << 20, 8, 3), false),
            moment(2.1, write((16 << 20) + 4096, 2, 0), false),
            moment(2.2, Happening::Acknowledge { transaction: 7 }, false),
            moment(2.3, Happening::Flush, true),
            moment(2.4, write((16 << 20) + 8192, 2, 2), true),
        ])),
        ..sound
    }
}

/// A failing state with this timeline.
pub fn state(timeline: Vec<Moment>) -> FailingState {
    FailingState {
        name: "1:2:s2a0".to_owned(),
        command: "landfall prove sqlite --state 1:2:s2a0".to_owned(),
        details: vec!["transaction 7, the last one acknowledged, is not there".to_owned()],
        timeline,
        found: None,
    }
}

/// Something that happened at this time.
pub fn moment(ms: f64, what: Happening, after_cut: bool) -> Moment {
    Moment {
        ms,
        node: None,
        what,
        after_cut,
    }
}

/// A write of so many sectors, of which some are missing.
pub fn write(offset: u64, sectors: u64, missing: u64) -> Happening {
    Happening::Write {
        offset,
        bytes: sectors * 512,
        sectors,
        missing,
        file: None,
    }
}
