//! Merging is a pure function of the documents: no order, no copy and no later run changes what a campaign came to.

use landfall_campaign::{Campaign, CampaignId, Digest, Outcome, Plan, ShardDocument, Share, Task};
use landfall_lab::{Found, Results};
use landfall_results::proof::merge::{merge_recordings, merge_shards, verdict_of};
use landfall_results::proof::{
    Coverage, Origin, Outcome as ProofOutcome, ProofResults, Shard, Violation, ViolationCount,
    fixtures,
};
use proptest::prelude::*;

/// A state as it was checked.
#[derive(Clone, Debug, Default)]
struct Checked {
    lost: u64,
    damaged: bool,
    crashed: bool,
    omitted: u64,
}

fn checked() -> impl Strategy<Value = Checked> {
    let any = (0..4_u64, any::<bool>(), any::<bool>(), 0..5_u64);
    any.prop_map(|(lost, damaged, crashed, omitted)| Checked {
        lost,
        damaged,
        crashed: damaged && crashed,
        omitted,
    })
}

/// What a machine that tried these states would say of them; each has its place in the whole.
fn proof_of(states: &[(u64, Checked)], shard: Option<Shard>) -> ProofResults {
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

fn numbered(states: Vec<Checked>) -> Vec<(u64, Checked)> {
    (1..).zip(states).collect()
}

/// The parts of a proof of these states, a shard each.
fn parts(states: &[(u64, Checked)], of: u32) -> Vec<ProofResults> {
    let indices: Vec<usize> = (0..states.len()).collect();
    let part = |shard: Shard| -> Vec<(u64, Checked)> {
        let part = shard.part(&indices).into_iter();
        part.map(|index| states[index].clone()).collect()
    };
    Shard::all(of)
        .map(|shard| proof_of(&part(shard), Some(shard)))
        .collect()
}

fn text(proof: &ProofResults) -> String {
    serde_json::to_string(&verdict_of(proof)).unwrap()
}

fn losing(lost: u64) -> Checked {
    Checked {
        lost,
        omitted: 1,
        ..Checked::default()
    }
}

proptest! {
    #[test]
    fn shards_come_to_what_one_machine_would_have_found(
        states in prop::collection::vec(checked(), 0..40),
        of in 1..8_u32,
        turn in 0..8_usize,
    ) {
        let states = numbered(states);
        let whole = proof_of(&states, None);
        let mut parts = parts(&states, of);
        let len = parts.len();
        parts.rotate_left(turn % len);
        prop_assert_eq!(text(&merge_shards(&parts).unwrap()), text(&whole));
    }
}

#[test]
fn no_epoch_counts_as_tried_in_every_subset_while_a_shard_is_missing() {
    let parts = parts(&numbered(vec![losing(0); 6]), 3);
    let exhausted = |parts: &[ProofResults]| merge_shards(parts).unwrap().exhausted();
    assert_eq!(exhausted(&parts), Some((40, 12)));
    assert_eq!(exhausted(&parts[1..]), Some((0, 0)));
}

#[test]
fn what_are_no_parts_of_one_is_refused() {
    let states = numbered(vec![losing(1); 6]);
    let good = parts(&states, 3);
    assert!(merge_shards(&[]).is_err());
    assert!(merge_shards(&[good[0].clone(), good[0].clone()]).is_err());
    assert!(merge_shards(&[good[0].clone(), parts(&states, 2)[1].clone()]).is_err());
    type Change = (&'static str, fn(&mut ProofResults));
    let changes: [Change; 5] = [
        ("seed", |proof| proof.seed = 9),
        ("recording", |proof| proof.workload.writes += 1),
        ("subject", |proof| proof.subject = "other".into()),
        ("model of the disk", |proof| proof.model = "prefix".into()),
        ("plan of crash states", |proof| proof.coverage.epochs += 1),
    ];
    for (what, change) in changes {
        let mut other = good[1].clone();
        change(&mut other);
        let error = merge_shards(&[good[0].clone(), other]).unwrap_err();
        assert!(error.to_string().contains(what), "{what}: {error}");
    }
}

#[test]
fn several_recordings_are_added() {
    let of_seed = |seed, states: Vec<Checked>| ProofResults {
        seed,
        ..proof_of(&numbered(states), None)
    };
    let one = of_seed(7, vec![losing(0), losing(1)]);
    let other = of_seed(8, vec![losing(3), losing(0), losing(0)]);
    let merged = merge_recordings(&[other.clone(), one.clone()]).unwrap();
    assert_eq!(merged, merge_recordings(&[one, other]).unwrap());
    assert_eq!((merged.seed, merged.coverage.checked), (7, 5));
    let loss = (merged.failing_states, merged.worst_lost, merged.only_last);
    assert_eq!(loss, (2, 3, false));
    assert_eq!(merged.workload.acknowledged, 48);
}

fn plan(shards: u32) -> Plan {
    let task = Task {
        command: "landfall prove files".into(),
        words: vec!["prove".into(), "files".into()],
        share: Share::States {
            recording: Digest::of(b"recording"),
        },
    };
    Plan::new("test".into(), shards, vec![task])
}

type Named = (Digest, ShardDocument);

fn document(campaign: &CampaignId, shard: Shard, day: u32, outcome: Outcome) -> Named {
    let started = format!("2026-01-{day:02}T00:00:00Z");
    let mut document = ShardDocument::new(campaign.clone(), shard, started);
    document.outcomes.push(outcome);
    (Digest::of(document.to_json().as_bytes()), document)
}

fn done(proof: ProofResults) -> Outcome {
    let mut results = Results::from_json(include_str!("results.json")).unwrap();
    results.version = env!("CARGO_PKG_VERSION").to_owned();
    results.experiments = vec![Found::Prove(Box::new(proof))];
    Outcome::Done {
        results: Box::new(results),
        recording: None,
    }
}

fn failed() -> Outcome {
    Outcome::Failed {
        code: Some(1),
        why: "a proof needs root".into(),
    }
}

fn shard_of(part: &ProofResults) -> Shard {
    part.shard.unwrap()
}

proptest! {
    #[test]
    fn no_order_no_copy_and_no_later_run_changes_a_verdict(
        states in prop::collection::vec(checked(), 4..30),
        of in 1..6_u32,
        again in prop::collection::vec((0..6_usize, any::<bool>()), 0..6),
        turn in 0..20_usize,
    ) {
        let plan = plan(of);
        let id = plan.id();
        let parts = parts(&numbered(states), of);
        let first: Vec<Named> = parts
            .iter()
            .map(|part| document(&id, shard_of(part), 1, done(part.clone())))
            .collect();
        let once = Campaign::merge(&plan, &first).unwrap();
        prop_assert!(once.is_whole());
        let mut more = first.clone();
        for (which, has_failed) in again {
            let part = &parts[which % parts.len()];
            let outcome = if has_failed { failed() } else { done(part.clone()) };
            more.push(document(&id, shard_of(part), 2, outcome));
            more.push(first[which % first.len()].clone());
        }
        // Another campaign's are none of this one's.
        let other = CampaignId::of(Digest::of(b"other"));
        more.push(document(&other, Shard::WHOLE, 1, failed()));
        let len = more.len();
        more.rotate_left(turn % len);
        let twice = Campaign::merge(&plan, &more).unwrap();
        prop_assert_eq!(&twice.proofs, &once.proofs);
        prop_assert!(twice.is_whole() && twice.disagreeing.is_empty());
    }
}

#[test]
fn what_is_missing_or_failed_is_named_and_nothing_is_proven_then() {
    let plan = plan(3);
    let id = plan.id();
    let parts = parts(&numbered(vec![losing(0); 9]), 3);
    let of = |index: usize, outcome| document(&id, shard_of(&parts[index]), 1, outcome);
    let all = [
        of(0, done(parts[0].clone())),
        of(1, failed()),
        of(2, done(parts[2].clone())),
    ];
    let merged = Campaign::merge(&plan, &all[..2]).unwrap();
    assert_eq!(merged.missing, [shard_of(&parts[2])]);
    assert_eq!(merged.failed[0].why, "a proof needs root");
    assert_eq!(merged.outcome(), ProofOutcome::NotProven);
    let merged = Campaign::merge(&plan, &all).unwrap();
    assert!(merged.missing.is_empty() && !merged.is_whole());
    assert_eq!(merged.proofs[0].shards, 2);
    // Once it has been done the failure is forgotten.
    let mut mended = all.to_vec();
    mended.push(of(1, done(parts[1].clone())));
    let merged = Campaign::merge(&plan, &mended).unwrap();
    assert!(merged.is_whole());
    assert_eq!(merged.outcome(), ProofOutcome::LostNothing);
}

#[test]
fn of_runs_that_disagree_the_worse_counts_and_is_named() {
    let plan = plan(1);
    let id = plan.id();
    let of = |lost| done(proof_of(&numbered(vec![losing(lost)]), Some(Shard::WHOLE)));
    let kept = document(&id, Shard::WHOLE, 1, of(0));
    let lost = document(&id, Shard::WHOLE, 2, of(2));
    let merged = Campaign::merge(&plan, &[kept, lost]).unwrap();
    assert_eq!(merged.disagreeing, [Shard::WHOLE]);
    assert_eq!(merged.outcome(), ProofOutcome::LostSomething);
}

#[test]
fn no_proof_at_all_is_no_proof() {
    let merged = Campaign::merge(&plan(2), &[]).unwrap();
    assert_eq!(merged.missing.len(), 2);
    assert_eq!(merged.proofs[0].results, None);
    assert_eq!(merged.outcome(), ProofOutcome::NotProven);
}

#[test]
fn a_measurement_that_could_not_be_made_takes_nothing_from_a_proof() {
    let mut plan = plan(1);
    let measurement = Task {
        share: Share::Machines,
        ..plan.tasks[0].clone()
    };
    plan.tasks.push(measurement);
    let part = &parts(&numbered(vec![losing(0); 3]), 1)[0];
    let (_, mut document) = document(&plan.id(), Shard::WHOLE, 1, done(part.clone()));
    document.outcomes.push(failed());
    let digest = Digest::of(document.to_json().as_bytes());
    let merged = Campaign::merge(&plan, &[(digest, document)]).unwrap();
    assert_eq!(merged.outcome(), ProofOutcome::LostNothing);
    assert!(!merged.is_whole() && merged.failed.len() == 1);
}

/// A document of shard 2 of 2 as somebody might have forged or damaged it, beside shard 1's, which lost `lost`.
fn beside(lost: u64, change: impl Fn(&mut ShardDocument)) -> Campaign {
    let plan = plan(2);
    let id = plan.id();
    let mut states = vec![losing(0); 8];
    states[0] = losing(lost);
    let parts = parts(&numbered(states), 2);
    let first = document(&id, shard_of(&parts[0]), 1, done(parts[0].clone()));
    let (_, mut second) = document(&id, shard_of(&parts[1]), 1, done(parts[1].clone()));
    change(&mut second);
    let digest = Digest::of(second.to_json().as_bytes());
    Campaign::merge(&plan, &[first, (digest, second)]).unwrap()
}

fn proof_in(document: &mut ShardDocument) -> &mut ProofResults {
    let Outcome::Done { results, .. } = &mut document.outcomes[0] else {
        panic!("it was done");
    };
    match &mut results.experiments[0] {
        Found::Prove(proof) => proof,
        _ => panic!("it is a proof"),
    }
}

#[test]
fn what_a_shard_cannot_have_found_proves_nothing_and_hides_no_loss() {
    assert_eq!(beside(0, |_| ()).outcome(), ProofOutcome::LostNothing);
    type Forgery = (&'static str, fn(&mut ShardDocument));
    let forgeries: [Forgery; 9] = [
        ("0 outcomes of 1 tasks", |one| one.outcomes.clear()),
        ("0 proofs where one belongs", |one| {
            if let Outcome::Done { results, .. } = &mut one.outcomes[0] {
                results.experiments.clear();
            }
        }),
        ("another shard's proof", |one| {
            proof_in(one).shard = Some(Shard::new(1, 2).unwrap())
        }),
        ("another shard's proof", |one| {
            proof_in(one).shard = Some(Shard::new(2, 9).unwrap())
        }),
        ("another shard's proof", |one| proof_in(one).shard = None),
        ("it tried 0 of its 4 states", |one| {
            proof_in(one).coverage.checked = 0
        }),
        ("9.9.9", |one| {
            if let Outcome::Done { results, .. } = &mut one.outcomes[0] {
                results.version = "9.9.9".into();
            }
        }),
        ("landfall-results/99", |one| {
            if let Outcome::Done { results, .. } = &mut one.outcomes[0] {
                results.schema = "landfall-results/99".into();
            }
        }),
        ("plan of crash states differs", |one| {
            proof_in(one).coverage.surveyed += 1
        }),
    ];
    for (why, forge) in forgeries {
        let campaign = beside(0, forge);
        assert_eq!(campaign.outcome(), ProofOutcome::NotProven, "{why}");
        assert!(!campaign.is_whole());
        assert!(
            campaign.failed[0].why.contains(why),
            "{:?}",
            campaign.failed
        );
        let campaign = beside(2, forge);
        assert_eq!(campaign.outcome(), ProofOutcome::LostSomething, "{why}");
    }
}

#[test]
fn no_count_is_so_large_that_a_loss_becomes_none() {
    let campaign = beside(1, |one| proof_in(one).failing_states = u64::MAX);
    assert_eq!(campaign.outcome(), ProofOutcome::LostSomething);
}

#[test]
fn a_run_that_checked_all_counts_before_one_that_could_not() {
    let plan = plan(1);
    let id = plan.id();
    let whole = proof_of(&numbered(vec![losing(0); 3]), Some(Shard::WHOLE));
    let mut partly = whole.clone();
    partly.coverage.checked = 1;
    partly.unchecked = Some(landfall_results::proof::Unchecked {
        states: 2,
        reason: "there was no memory".into(),
    });
    for days in [[1, 2], [2, 1]] {
        let first = document(&id, Shard::WHOLE, days[0], done(partly.clone()));
        let second = document(&id, Shard::WHOLE, days[1], done(whole.clone()));
        let merged = Campaign::merge(&plan, &[first, second]).unwrap();
        assert_eq!(merged.outcome(), ProofOutcome::LostNothing);
        assert!(merged.disagreeing.is_empty());
    }
}
