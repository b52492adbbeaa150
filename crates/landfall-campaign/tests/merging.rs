//! Merging is a pure function of the documents: no order, no copy and no later run changes what a campaign came to.

mod common;

use common::shards::{
    Checked, Named, document, done, failed, losing, numbered, parts, plan, proof_of, shard_of,
};
use landfall_campaign::{Campaign, CampaignId, Digest, Share, Task};
use landfall_results::proof::merge::{merge_recordings, merge_shards, verdict_of};
use landfall_results::proof::{Outcome as ProofOutcome, ProofResults, Shard};
use proptest::prelude::*;

fn checked() -> impl Strategy<Value = Checked> {
    let any = (0..4_u64, any::<bool>(), any::<bool>(), 0..5_u64);
    any.prop_map(|(lost, damaged, crashed, omitted)| Checked {
        lost,
        damaged,
        crashed: damaged && crashed,
        omitted,
    })
}

fn text(proof: &ProofResults) -> String {
    serde_json::to_string(&verdict_of(proof)).unwrap()
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
    let changes: [Change; 6] = [
        ("seed", |proof| proof.seed = 9),
        ("recording", |proof| proof.workload.writes += 1),
        ("subject", |proof| proof.subject = "other".into()),
        ("model of the disk", |proof| proof.model = "prefix".into()),
        ("plan of crash states", |proof| proof.coverage.epochs += 1),
        // As many states, in another order.
        ("plan of crash states", |proof| {
            proof.coverage.states_digest = Some("of another list".into())
        }),
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
