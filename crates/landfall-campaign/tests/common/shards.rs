//! Shards' documents as machines might have left them.

use landfall_campaign::{CampaignId, Digest, Outcome, Plan, ShardDocument, Share, Task};
use landfall_lab::{Found, Results};
use landfall_results::proof::{
    Coverage, Origin, ProofResults, Shard, Violation, ViolationCount, fixtures,
};

/// A state as it was checked.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    pub lost: u64,
    pub damaged: bool,
    pub crashed: bool,
    pub omitted: u64,
}

/// What a machine that tried these states would say of them; each has its place in the whole.
pub fn proof_of(states: &[(u64, Checked)], shard: Option<Shard>) -> ProofResults {
    let mut proof = ProofResults {
        shard,
        ..fixtures::proof()
    };
    let count = states.len() as u64;
    proof.coverage = Coverage {
        planned: count,
        checked: count,
        states_per_minute: 60.0 + states.len() as f64,
        workers: 1 + count % 3,
        ..proof.coverage
    };
    for hazard in &mut proof.exercised {
        hazard.states = Some(states.iter().filter(|(place, _)| place % 2 == 0).count() as u64);
    }
    let mut only_last = true;
    for (place, state) in states {
        if state.lost == 0 && !state.damaged {
            continue;
        }
        proof.failing_states += 1;
        proof.first_failing = proof.first_failing.or(Some(*place));
        if state.lost > 0 {
            proof.losing_states += 1;
            proof.worst_lost = proof.worst_lost.max(state.lost);
            only_last &= state.lost == 1;
        }
        let broken = [
            (Violation::Damaged, state.damaged),
            (Violation::Lost, state.lost > 0),
        ];
        for (violation, _) in broken.into_iter().filter(|(_, is_broken)| *is_broken) {
            let this = ViolationCount {
                violation,
                states: 1,
                example: format!("1:{place}:none"),
                detail: format!("{state:?}"),
                place: Some(*place),
                crashed: violation == Violation::Damaged && state.crashed,
            };
            let known = proof.violations.iter_mut();
            match known.into_iter().find(|one| one.violation == violation) {
                None => proof.violations.push(this),
                Some(known) => {
                    let states = known.states + 1;
                    if this.crashed && !known.crashed {
                        *known = this;
                    }
                    known.states = states;
                }
            }
        }
        let origin = Origin {
            omitted: state.omitted,
            position: state.lost,
            place: *place,
        };
        let best = proof.shortest.as_ref().and_then(|best| best.found);
        if best.is_none_or(|best| origin < best) {
            let mut shortest = fixtures::state(Vec::new());
            shortest.name = format!("1:{place}:none");
            shortest.command = format!("by {shard:?}");
            shortest.found = Some(origin);
            proof.shortest = Some(shortest);
        }
    }
    let order = |one: &ViolationCount| {
        Violation::ALL
            .iter()
            .position(|known| *known == one.violation)
    };
    proof.violations.sort_by_key(order);
    proof.only_last = proof.losing_states > 0 && only_last;
    proof
}

pub fn numbered(states: Vec<Checked>) -> Vec<(u64, Checked)> {
    (1..).zip(states).collect()
}

/// The parts of a proof of these states, a shard each.
pub fn parts(states: &[(u64, Checked)], of: u32) -> Vec<ProofResults> {
    let indices: Vec<usize> = (0..states.len()).collect();
    let part = |shard: Shard| -> Vec<(u64, Checked)> {
        let part = shard.part(&indices).into_iter();
        part.map(|index| states[index].clone()).collect()
    };
    Shard::all(of)
        .map(|shard| proof_of(&part(shard), Some(shard)))
        .collect()
}

pub fn losing(lost: u64) -> Checked {
    Checked {
        lost,
        omitted: 1,
        ..Checked::default()
    }
}

pub fn plan(shards: u32) -> Plan {
    let task = Task {
        command: "landfall prove files".into(),
        words: vec!["prove".into(), "files".into()],
        share: Share::States {
            recording: Digest::of(b"recording"),
        },
    };
    Plan::new("test".into(), shards, vec![task])
}

pub type Named = (Digest, ShardDocument);

pub fn document(campaign: &CampaignId, shard: Shard, day: u32, outcome: Outcome) -> Named {
    let started = format!("2026-01-{day:02}T00:00:00Z");
    let mut document = ShardDocument::new(campaign.clone(), shard, started);
    document.outcomes.push(outcome);
    (Digest::of(document.to_json().as_bytes()), document)
}

pub fn done(proof: ProofResults) -> Outcome {
    let mut results = Results::from_json(include_str!("../results.json")).unwrap();
    results.version = env!("CARGO_PKG_VERSION").to_owned();
    results.experiments = vec![Found::Prove(Box::new(proof))];
    Outcome::Done {
        results: Box::new(results),
        recording: None,
    }
}

pub fn failed() -> Outcome {
    Outcome::Failed {
        code: Some(1),
        why: "a proof needs root".into(),
    }
}

pub fn shard_of(part: &ProofResults) -> Shard {
    part.shard.unwrap()
}
