//! Which run of each shard counts, for one task.
//!
//! Parts of one proof are equal in what all its parts have in common. Runs that are make a group, and the group of most shards
//! counts: an odd one makes none of the others odd, and a run that fits mends one that does not. In it the run that lost
//! most counts, then one that checked all of its states, and else the one that began first. What was lost in another group
//! is in no count of this one, and still lost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use landfall_lab::Results;
use landfall_results::proof::merge::{difference, difference_of_plan, verdict_of};
use landfall_results::proof::{ProofResults, Shard};

use crate::content::Digest;
use crate::document::ShardDocument;
use crate::fit::{Seen, seen};
use crate::plan::{Plan, Share};

/// The documents of each shard: one for each time that it was run.
pub(super) type Runs<'a> = BTreeMap<Shard, Vec<(Digest, &'a ShardDocument)>>;

/// What a run of a shard did for the task.
pub(super) struct Part<'a> {
    pub document: &'a ShardDocument,
    pub results: &'a Results,
    pub recording: Option<Digest>,
}

/// What came of the task, shard by shard.
#[derive(Default)]
pub(super) struct Choice<'a> {
    /// Of each shard that did it the run that counts.
    pub done: Vec<Part<'a>>,
    /// Of each other one a run, and why it does not count.
    pub failed: Vec<(&'a ShardDocument, String)>,
    /// Runs that lost something in another proof than those that count, and in what it differs.
    pub odd_losses: Vec<(Part<'a>, &'static str)>,
    /// Shards of which several runs are of this proof, and did not come to the same verdict.
    pub disagreeing: Vec<Shard>,
}

/// A run of a shard.
struct Candidate<'a> {
    digest: Digest,
    document: &'a ShardDocument,
    seen: Seen<'a>,
}

/// Runs of one proof.
struct Group<'a> {
    first: &'a Results,
    shards: BTreeSet<Shard>,
    failing_states: u64,
}

/// What the runs of each shard came to for the plan's task of this number.
pub(super) fn choose<'a>(plan: &Plan, number: usize, runs: &Runs<'a>) -> Choice<'a> {
    let share = &plan.tasks[number].share;
    let ranked = |(shard, documents): (&Shard, &Vec<(Digest, &'a ShardDocument)>)| {
        let candidates = documents.iter().map(|(digest, document)| Candidate {
            digest: *digest,
            document,
            seen: seen(document, plan, number),
        });
        let mut candidates: Vec<Candidate<'a>> = candidates.collect();
        candidates.sort_by_cached_key(Candidate::rank);
        (*shard, candidates)
    };
    let shards: Vec<(Shard, Vec<Candidate<'a>>)> = runs.iter().map(ranked).collect();
    let first = first_of_most(share, &shards);
    let mut choice = Choice::default();
    for (shard, candidates) in shards {
        let (mut fitting, mut others) = (Vec::new(), Vec::new());
        for Candidate { document, seen, .. } in candidates {
            let (results, recording) = match seen {
                Seen::Done(results, recording) => (results, recording),
                Seen::Failed(why) => {
                    others.push((document, why));
                    continue;
                }
            };
            let part = Part {
                document,
                results,
                recording,
            };
            let Some(what) = first.and_then(|first| differs(share, first, results)) else {
                fitting.push(part);
                continue;
            };
            let why = format!("it is of another proof than the others: its {what} differs");
            others.push((document, why));
            if part.failing_states() > 0 {
                choice.odd_losses.push((part, what));
            }
        }
        let verdicts: BTreeSet<String> = fitting.iter().filter_map(Part::verdict).collect();
        if verdicts.len() > 1 {
            choice.disagreeing.push(shard);
        }
        match fitting.into_iter().next() {
            Some(part) => choice.done.push(part),
            None => choice.failed.extend(others.into_iter().next()),
        }
    }
    choice
}

/// A run of the proof that counts: that of most shards, of several that which lost most. None if no shard did the task.
fn first_of_most<'a>(share: &Share, shards: &[(Shard, Vec<Candidate<'a>>)]) -> Option<&'a Results> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (shard, candidates) in shards {
        for candidate in candidates {
            let Seen::Done(results, _) = candidate.seen else {
                continue;
            };
            let failing = failing_states(results);
            let mut known = groups.iter_mut();
            match known.find(|group| differs(share, group.first, results).is_none()) {
                Some(group) => {
                    group.shards.insert(*shard);
                    group.failing_states = group.failing_states.saturating_add(failing);
                }
                None => groups.push(Group {
                    first: results,
                    shards: BTreeSet::from([*shard]),
                    failing_states: failing,
                }),
            }
        }
    }
    let least = |group: &Group<'a>| (Reverse(group.shards.len()), Reverse(group.failing_states));
    let most = groups.into_iter().min_by_key(least)?;
    Some(most.first)
}

/// In what two shards' results differ that should be of one proof, if in anything.
fn differs(share: &Share, one: &Results, other: &Results) -> Option<&'static str> {
    let of = match share {
        Share::States { .. } => difference,
        Share::Recordings { .. } => difference_of_plan,
        // Each measures its own machine.
        Share::Machines => return None,
    };
    let mut pairs = one.proofs().zip(other.proofs());
    pairs.find_map(|(one, other)| of(one, other))
}

fn failing_states(results: &Results) -> u64 {
    let of_each = results.proofs().map(|proof| proof.failing_states);
    of_each.fold(0, u64::saturating_add)
}

impl Part<'_> {
    /// States in which a promise was broken.
    pub fn failing_states(&self) -> u64 {
        failing_states(self.results)
    }

    /// What its proofs came to, for comparing; none of a measurement, which never comes to the same, and of states that
    /// could not be checked, of which nothing is known.
    fn verdict(&self) -> Option<String> {
        let verdicts: Vec<ProofResults> = self.results.proofs().map(verdict_of).collect();
        let is_known =
            !verdicts.is_empty() && verdicts.iter().all(|proof| proof.unchecked.is_none());
        is_known.then(|| serde_json::to_string(&verdicts).unwrap_or_default())
    }
}

impl Candidate<'_> {
    /// The least counts.
    fn rank(&self) -> impl Ord + use<> {
        let (mut failing, mut unchecked) = (0, 0_u64);
        if let Seen::Done(results, _) = self.seen {
            failing = failing_states(results);
            let of_each = results
                .proofs()
                .filter_map(|proof| proof.unchecked.as_ref());
            unchecked = of_each.fold(0, |sum, one| sum.saturating_add(one.states));
        }
        let is_failed = matches!(self.seen, Seen::Failed(_));
        let started = self.document.started.clone();
        (is_failed, Reverse(failing), unchecked, started, self.digest)
    }
}
