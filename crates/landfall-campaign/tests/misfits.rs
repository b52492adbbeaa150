//! Which of a shard's runs count, and what does not fit: nothing is believed that cannot be, and no loss is lost.

mod common;

use common::shards::{document, done, losing, numbered, parts, plan, proof_of, shard_of};
use landfall_campaign::{Campaign, Digest, Outcome, ShardDocument};
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
