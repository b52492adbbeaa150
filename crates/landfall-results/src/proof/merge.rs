//! Proofs of parts become the proof of the whole.
//!
//! Of one recording that was cut into shards the result is, in all but its circumstances, what one machine would have
//! found: the same counts, the same examples, the same shortest failing state. Merging is a pure function of the parts,
//! whatever their order.

use std::collections::BTreeMap;

use super::{
    Coverage, Exercised, FailingState, ProofResults, SecondCuts, Shard, Unchecked, Violation,
    ViolationCount, Workload,
};

/// Why proofs are not parts of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// There is nothing to merge.
    #[error("there is no proof to merge")]
    Nothing,
    /// They were not made of the same recording, or not in the same way.
    #[error("shard {shard} is of another proof than the first: its {what} differs")]
    Different {
        /// The one that differs.
        shard: Shard,
        /// In what.
        what: &'static str,
    },
    /// The same shard twice, or one of a different number of shards.
    #[error("shard {0} is there twice, or was cut otherwise than the first")]
    Cut(Shard),
}

/// The proof of which these are parts: shards of one recording. Those that are missing are missing in its counts.
pub fn merge_shards(parts: &[ProofResults]) -> Result<ProofResults, MergeError> {
    let mut parts: Vec<(Shard, &ProofResults)> = parts
        .iter()
        .map(|part| (part.shard.unwrap_or(Shard::WHOLE), part))
        .collect();
    parts.sort_by_key(|(shard, _)| *shard);
    let Some(&(first_shard, first)) = parts.first() else {
        return Err(MergeError::Nothing);
    };
    for pair in parts.windows(2) {
        let (shard, part) = pair[1];
        if shard == pair[0].0 || shard.of() != first_shard.of() {
            return Err(MergeError::Cut(shard));
        }
        if let Some(what) = difference(first, part) {
            return Err(MergeError::Different { shard, what });
        }
    }
    let exercised = |known: &Exercised| {
        let same = |part: &&ProofResults| {
            let found = part.exercised.iter().find(|one| one.what == known.what);
            found.and_then(|one| one.states)
        };
        let states = parts
            .iter()
            .map(|(_, part)| same(part))
            .reduce(added)
            .flatten();
        Exercised {
            states,
            ..known.clone()
        }
    };
    let exercised = first.exercised.iter().map(exercised).collect();
    // Those that are missing have a part of each epoch's states.
    let exhausted = |epochs| {
        let is_whole = parts.len() == first_shard.of() as usize;
        if is_whole { epochs } else { 0 }
    };
    let of_recording = Coverage {
        planned: sum(&parts, |part| part.coverage.planned),
        equal_files: sum(&parts, |part| part.coverage.equal_files),
        checked: sum(&parts, |part| part.coverage.checked),
        states_per_minute: rate(&parts),
        workers: sum(&parts, |part| part.coverage.workers),
        second_cuts: second_cuts(&parts),
        every_write: exhausted(first.coverage.every_write),
        every_sector: exhausted(first.coverage.every_sector),
        ..first.coverage.clone()
    };
    Ok(together(
        first,
        &parts,
        of_recording,
        first.workload.clone(),
        exercised,
    ))
}

/// The proofs of several recordings of the same subject on the same filesystem, each from a seed of its own, as one: what is
/// counted is added, and its seed is the least.
pub fn merge_recordings(parts: &[ProofResults]) -> Result<ProofResults, MergeError> {
    let mut sorted: Vec<&ProofResults> = parts.iter().collect();
    sorted.sort_by_key(|part| part.seed);
    let Some(&first) = sorted.first() else {
        return Err(MergeError::Nothing);
    };
    let numbered = |(index, part)| {
        let shard = Shard::new(index, sorted.len() as u32);
        (shard.unwrap_or(Shard::WHOLE), part)
    };
    let parts: Vec<(Shard, &ProofResults)> =
        (1..).zip(sorted.iter().copied()).map(numbered).collect();
    for &(shard, part) in &parts[1..] {
        if let Some(what) = difference_of_plan(first, part) {
            return Err(MergeError::Different { shard, what });
        }
    }
    let workload = Workload {
        sent: sum(&parts, |part| part.workload.sent),
        acknowledged: sum(&parts, |part| part.workload.acknowledged),
        writes: sum(&parts, |part| part.workload.writes),
        written_bytes: sum(&parts, |part| part.workload.written_bytes),
        flushes: sum(&parts, |part| part.workload.flushes),
        forced_writes: parts
            .iter()
            .map(|(_, part)| part.workload.forced_writes)
            .reduce(added)
            .flatten(),
        spilled_bytes: sum(&parts, |part| part.workload.spilled_bytes),
        ended: parts
            .iter()
            .find_map(|(_, part)| part.workload.ended.clone()),
    };
    let coverage = Coverage {
        epochs: sum(&parts, |part| part.coverage.epochs),
        surveyed: sum(&parts, |part| part.coverage.surveyed),
        every_write: sum(&parts, |part| part.coverage.every_write),
        every_sector: sum(&parts, |part| part.coverage.every_sector),
        possible: parts
            .iter()
            .map(|(_, part)| part.coverage.possible)
            .sum::<f64>()
            .min(f64::MAX),
        planned: sum(&parts, |part| part.coverage.planned),
        sampled: sum(&parts, |part| part.coverage.sampled),
        equal: sum(&parts, |part| part.coverage.equal),
        // There are as many lists as recordings.
        states_digest: None,
        equal_files: sum(&parts, |part| part.coverage.equal_files),
        checked: sum(&parts, |part| part.coverage.checked),
        states_per_minute: rate(&parts),
        workers: sum(&parts, |part| part.coverage.workers),
        second_cuts: second_cuts(&parts),
    };
    // One that another recording has is not in all of them.
    let mut exercised: Vec<Exercised> = Vec::new();
    for one in parts.iter().flat_map(|(_, part)| &part.exercised) {
        match exercised.iter_mut().find(|known| known.what == one.what) {
            Some(known) => {
                known.happened = added(known.happened, one.happened);
                known.states = added(known.states, one.states);
            }
            None => exercised.push(one.clone()),
        }
    }
    Ok(together(first, &parts, coverage, workload, exercised))
}

/// What a proof came to, without what differs from run to run: how fast it was, by how many workers, how many equal files
/// they happened to find, and where this machine had the recording. Equal texts of it are equal verdicts.
pub fn verdict_of(proof: &ProofResults) -> ProofResults {
    let shown = |state: &FailingState| FailingState {
        command: String::new(),
        ..state.clone()
    };
    ProofResults {
        coverage: Coverage {
            equal_files: 0,
            states_per_minute: 0.0,
            workers: 0,
            ..proof.coverage.clone()
        },
        workload: Workload {
            spilled_bytes: 0,
            ..proof.workload.clone()
        },
        shortest: proof.shortest.as_ref().map(shown),
        ..proof.clone()
    }
}

/// The whole, of what is the same for both ways of cutting it.
fn together(
    first: &ProofResults,
    parts: &[(Shard, &ProofResults)],
    coverage: Coverage,
    workload: Workload,
    exercised: Vec<Exercised>,
) -> ProofResults {
    let losing = || parts.iter().filter(|(_, part)| part.losing_states > 0);
    let first_failing = parts.iter().filter_map(|(_, part)| part.first_failing);
    let clusters = parts.iter().filter_map(|(_, part)| part.cluster.clone());
    ProofResults {
        shard: None,
        cluster: clusters.reduce(|all, one| all.added(&one)),
        workload,
        coverage,
        exercised,
        violations: violations(parts),
        first_failing: first_failing.min(),
        failing_states: sum(parts, |part| part.failing_states),
        losing_states: sum(parts, |part| part.losing_states),
        worst_lost: parts
            .iter()
            .map(|(_, part)| part.worst_lost)
            .max()
            .unwrap_or(0),
        only_last: losing().next().is_some() && losing().all(|(_, part)| part.only_last),
        shortest: shortest(parts),
        unchecked: unchecked(parts),
        ..first.clone()
    }
}

/// The sum; of figures that nobody counted it is the greatest there is, and no loss becomes none.
fn sum(parts: &[(Shard, &ProofResults)], of: impl Fn(&ProofResults) -> u64) -> u64 {
    parts
        .iter()
        .map(|(_, part)| of(part))
        .fold(0, u64::saturating_add)
}

fn added(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    Some(left?.saturating_add(right?))
}

/// States for each minute of a machine.
fn rate(parts: &[(Shard, &ProofResults)]) -> f64 {
    let (mut states, mut minutes) = (0.0, 0.0);
    for (_, part) in parts {
        let coverage = &part.coverage;
        if coverage.states_per_minute > 0.0 {
            states += coverage.checked as f64;
            minutes += coverage.checked as f64 / coverage.states_per_minute;
        }
    }
    if minutes > 0.0 { states / minutes } else { 0.0 }
}

fn second_cuts(parts: &[(Shard, &ProofResults)]) -> Option<SecondCuts> {
    let counts = parts
        .iter()
        .filter_map(|(_, part)| part.coverage.second_cuts);
    counts.reduce(|all, one| SecondCuts {
        recoveries: all.recoveries.saturating_add(one.recoveries),
        writes: all.writes.saturating_add(one.writes),
        flushes: all.flushes.saturating_add(one.flushes),
        planned: all.planned.saturating_add(one.planned),
        torn_superblocks: all.torn_superblocks.saturating_add(one.torn_superblocks),
        checked: all.checked.saturating_add(one.checked),
        failing: all.failing.saturating_add(one.failing),
    })
}

fn violations(parts: &[(Shard, &ProofResults)]) -> Vec<ViolationCount> {
    let mut all: BTreeMap<Violation, ViolationCount> = BTreeMap::new();
    for one in parts.iter().flat_map(|(_, part)| &part.violations) {
        match all.get_mut(&one.violation) {
            None => drop(all.insert(one.violation, one.clone())),
            Some(known) => {
                let states = known.states.saturating_add(one.states);
                if one.is_better_example_than(known) {
                    *known = one.clone();
                }
                known.states = states;
            }
        }
    }
    let worst_first = Violation::ALL.into_iter();
    worst_first
        .filter_map(|violation| all.remove(&violation))
        .collect()
}

fn shortest(parts: &[(Shard, &ProofResults)]) -> Option<FailingState> {
    let all = parts.iter().filter_map(|(_, part)| part.shortest.as_ref());
    // Those of a second cut are shown where no first one failed.
    let key = |state: &&FailingState| (state.found.is_none(), state.found);
    all.min_by_key(key).cloned()
}

fn unchecked(parts: &[(Shard, &ProofResults)]) -> Option<Unchecked> {
    let all = parts.iter().filter_map(|(_, part)| part.unchecked.clone());
    all.reduce(|all, one| Unchecked {
        states: all.states.saturating_add(one.states),
        ..all
    })
}

/// In what two proofs differ that should be shards of one, if in anything.
pub fn difference(first: &ProofResults, part: &ProofResults) -> Option<&'static str> {
    let recording = |proof: &ProofResults| (verdict_of(proof).workload, proof.device_bytes);
    let survey = |proof: &ProofResults| {
        let Coverage {
            epochs,
            surveyed,
            every_write,
            every_sector,
            sampled,
            equal,
            ref states_digest,
            ..
        } = proof.coverage;
        let counts = [epochs, surveyed, every_write, every_sector, sampled, equal];
        (counts, states_digest.clone())
    };
    difference_of_plan(first, part).or_else(|| {
        if first.seed != part.seed {
            Some("seed")
        } else if recording(first) != recording(part) {
            Some("recording")
        } else if survey(first) != survey(part) {
            Some("plan of crash states")
        } else {
            None
        }
    })
}

/// In what they differ that recordings of the same have in common.
pub fn difference_of_plan(first: &ProofResults, part: &ProofResults) -> Option<&'static str> {
    let disk = |proof: &ProofResults| {
        (
            proof.model.clone(),
            proof.atomic_bytes,
            proof.faults.clone(),
        )
    };
    let making = |proof: &ProofResults| (proof.creation, proof.writeback);
    if first.subject != part.subject {
        Some("subject")
    } else if first.filesystem_spec != part.filesystem_spec {
        Some("filesystem")
    } else if disk(first) != disk(part) {
        Some("model of the disk")
    } else if making(first) != making(part) {
        Some("way of recording")
    } else {
        None
    }
}
