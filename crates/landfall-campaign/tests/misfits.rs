//! Which of a shard's runs count, and what does not fit: nothing is believed that cannot be, and no loss is lost.

mod common;

use common::shards::{
    Named, document, done, failed, losing, numbered, parts, plan, proof_of, shard_of,
};
use landfall_campaign::{Campaign, Digest, Outcome, Plan, ShardDocument, Share};
use landfall_lab::Found;
use landfall_results::proof::{Outcome as ProofOutcome, ProofResults, Shard};

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

/// A campaign of two shards that record for themselves, and what the first of them and the second might leave.
fn own_recordings() -> (Plan, [ProofResults; 2]) {
    let mut plan = plan(2);
    plan.tasks[0].share = Share::Recordings { seed: 1 };
    let of_seed = |seed| ProofResults {
        seed,
        ..proof_of(&numbered(vec![losing(0); 3]), None)
    };
    (plan, [of_seed(1), of_seed(2)])
}

#[test]
fn a_recording_that_proves_nothing_is_no_part_of_a_proof() {
    let (plan, [one, two]) = own_recordings();
    let id = plan.id();
    let [first, second] = [1, 2].map(|index| Shard::new(index, 2).unwrap());
    let good = document(&id, first, 1, done(one));
    type Change = (&'static str, fn(&mut ProofResults));
    let changes: [Change; 2] = [
        ("no transaction was acknowledged", |proof| {
            proof.workload.acknowledged = 0
        }),
        ("no crash state was checked", |proof| {
            proof.coverage.checked = 0
        }),
    ];
    for (why, change) in changes {
        let mut vain = two.clone();
        change(&mut vain);
        let vain = document(&id, second, 1, done(vain));
        let merged = Campaign::merge(&plan, &[good.clone(), vain.clone()]).unwrap();
        assert_eq!(merged.outcome(), ProofOutcome::NotProven, "{why}");
        assert!(!merged.is_whole());
        assert_eq!(merged.failed[0].why, why);
        assert!(!vain.1.is_whole(&plan) && good.1.is_whole(&plan));
        // A later run that proves something counts, though it began later.
        let again = document(&id, second, 2, done(two.clone()));
        let merged = Campaign::merge(&plan, &[good.clone(), vain, again]).unwrap();
        assert_eq!(merged.outcome(), ProofOutcome::LostNothing);
        assert!(merged.is_whole() && merged.disagreeing.is_empty());
    }
    // What it lost it lost all the same.
    let mut losing = two;
    (losing.workload.acknowledged, losing.failing_states) = (0, 1);
    let losing = document(&id, second, 1, done(losing));
    let merged = Campaign::merge(&plan, &[good, losing]).unwrap();
    assert_eq!(merged.outcome(), ProofOutcome::LostSomething);
}

#[test]
fn a_shard_is_to_be_run_again_unless_it_did_what_counts() {
    let plan = plan(2);
    let id = plan.id();
    // Of one state the second shard has none, and nothing to do.
    let parts = parts(&numbered(vec![losing(0)]), 2);
    let [(_, good), (_, idle)] =
        [0, 1].map(|index| document(&id, shard_of(&parts[index]), 1, done(parts[index].clone())));
    assert!(good.is_whole(&plan) && idle.is_whole(&plan));
    type Change = fn(&mut ShardDocument);
    let changes: [Change; 4] = [
        |one| {
            let proof = proof_in(one);
            proof.coverage.checked = 0;
            proof.unchecked = Some(landfall_results::proof::Unchecked {
                states: 1,
                reason: "there was no memory".into(),
            });
        },
        |one| one.outcomes[0] = failed(),
        |one| proof_in(one).shard = None,
        |one| one.outcomes.clear(),
    ];
    for change in changes {
        let mut other = good.clone();
        change(&mut other);
        assert!(!other.is_whole(&plan), "{other:#?}");
    }
}

/// Documents of all shards of a plan, each of a part in which nothing was lost.
fn lossless(plan: &Plan) -> Vec<Named> {
    let parts = parts(&numbered(vec![losing(0); 9]), plan.shards);
    let documents = parts
        .iter()
        .map(|part| document(&plan.id(), shard_of(part), 2, done(part.clone())));
    documents.collect()
}

/// The same document of the day before, and of another plan of crash states; this many of them failed.
fn odd((_, of): &Named, failing: u64) -> Named {
    let mut odd = of.clone();
    odd.started = "2026-01-01T00:00:00Z".to_owned();
    let proof = proof_in(&mut odd);
    proof.coverage.surveyed += 1;
    proof.failing_states = failing;
    (Digest::of(odd.to_json().as_bytes()), odd)
}

#[test]
fn a_run_that_fits_the_others_counts_before_one_that_does_not() {
    let plan = plan(2);
    let mut documents = lossless(&plan);
    let good = documents.pop().unwrap();
    documents.push(odd(&good, 0));
    let merged = Campaign::merge(&plan, &documents).unwrap();
    assert_eq!(merged.failed.len(), 1, "{:?}", merged.failed);
    documents.push(good);
    let merged = Campaign::merge(&plan, &documents).unwrap();
    assert_eq!(merged.outcome(), ProofOutcome::LostNothing);
    assert!(merged.is_whole() && merged.disagreeing.is_empty());
}

#[test]
fn most_shards_say_which_proof_it_is_and_a_loss_in_another_one_is_a_loss() {
    let plan = plan(3);
    for failing in [0, 2] {
        let mut documents = lossless(&plan);
        documents[0] = odd(&documents[0], failing);
        let merged = Campaign::merge(&plan, &documents).unwrap();
        let failed: Vec<Shard> = merged.failed.iter().map(|one| one.shard).collect();
        assert_eq!(failed, [documents[0].1.shard]);
        assert!(merged.failed[0].why.contains("plan of crash states"));
        let proof = &merged.proofs[0];
        assert_eq!(proof.shards, 2);
        assert_eq!(proof.results.as_ref().unwrap().failing_states, 0);
        let lost = proof.odd_losses.iter().map(|one| one.failing_states);
        let (lost, outcome) = (lost.sum::<u64>(), merged.outcome());
        match failing {
            0 => assert_eq!((lost, outcome), (0, ProofOutcome::NotProven)),
            _ => assert_eq!((lost, outcome), (2, ProofOutcome::LostSomething)),
        }
    }
    // Nor does it go away with a run that fits.
    let mut documents = lossless(&plan);
    documents.push(odd(&documents[0], 2));
    let merged = Campaign::merge(&plan, &documents).unwrap();
    assert_eq!(merged.proofs[0].shards, 3);
    assert_eq!(merged.proofs[0].odd_losses.len(), 1);
    assert_eq!(merged.outcome(), ProofOutcome::LostSomething);
}
