//! What a shard's document says of a task, as far as it fits the plan.
//!
//! Documents are not believed beyond what they can be: what does not fit counts as not done.

use landfall_lab::{Results, SCHEMA_NAME};
use landfall_results::proof::{Outcome as ProofOutcome, ProofResults, Shard, summary_text};

use crate::content::Digest;
use crate::document::{Outcome, ShardDocument};
use crate::plan::{Plan, Share, Task};

/// What came of a task, as far as it fits the plan.
pub(crate) enum Seen<'a> {
    /// It was done; the recording is that in which something was lost, of a shard that made its own.
    Done(&'a Results, Option<Digest>),
    /// It was not, and why.
    Failed(String),
}

/// What a document says of a task, if that can be true.
pub(crate) fn seen<'a>(document: &'a ShardDocument, plan: &Plan, number: usize) -> Seen<'a> {
    if document.outcomes.len() != plan.tasks.len() {
        let (has, tasks) = (document.outcomes.len(), plan.tasks.len());
        return Seen::Failed(format!("its document has {has} outcomes of {tasks} tasks"));
    }
    match &document.outcomes[number] {
        Outcome::Failed { why, .. } => Seen::Failed(why.clone()),
        Outcome::Done { results, recording } => {
            match misfit(results, document.shard, plan, &plan.tasks[number]) {
                Some(why) => Seen::Failed(why),
                None => Seen::Done(results, *recording),
            }
        }
    }
}

/// Why results are not those of this shard's part of a task, if they are not.
fn misfit(results: &Results, shard: Shard, plan: &Plan, task: &Task) -> Option<String> {
    if results.schema != SCHEMA_NAME || results.version != plan.version {
        return Some(format!(
            "it was done by landfall {} ({}), and planned by landfall {}",
            results.version, results.schema, plan.version
        ));
    }
    let proofs: Vec<&ProofResults> = results.proofs().collect();
    let (of, seed) = match task.share {
        Share::Machines => return None,
        Share::States { .. } => (Some(shard), None),
        Share::Recordings { seed } => (None, Some(seed.wrapping_add(u64::from(shard.index()) - 1))),
    };
    let [proof] = proofs.as_slice() else {
        return Some(format!(
            "its document has {} proofs where one belongs",
            proofs.len()
        ));
    };
    let unchecked = proof
        .unchecked
        .as_ref()
        .map_or(0, |unchecked| unchecked.states);
    let tried = proof.coverage.checked.saturating_add(unchecked);
    if proof.shard != of || seed.is_some_and(|seed| seed != proof.seed) {
        Some("its document has another shard's proof".to_owned())
    } else if of.is_some() && tried != proof.coverage.planned {
        Some(format!(
            "it tried {tried} of its {} states",
            proof.coverage.planned
        ))
    } else if of.is_none() && is_vain(proof) {
        // In the sum with the others' it would look like a part of what was proven.
        Some(summary_text::why_not_proven(proof))
    } else {
        None
    }
}

/// Whether nothing was lost because there was nothing to lose, or nothing was tried.
fn is_vain(proof: &ProofResults) -> bool {
    let is_empty = proof.coverage.checked == 0 || proof.workload.acknowledged == 0;
    is_empty && proof.outcome() == ProofOutcome::NotProven
}

impl ShardDocument {
    /// Whether it has all that its shard is to find. If not, running the shard again may.
    pub fn is_whole(&self, plan: &Plan) -> bool {
        let came_to_something =
            |proof: &ProofResults| proof.is_idle() || proof.outcome() != ProofOutcome::NotProven;
        let is_done = |(number, task): (usize, &Task)| match seen(self, plan, number) {
            Seen::Failed(_) => false,
            Seen::Done(..) if task.share == Share::Machines => true,
            Seen::Done(results, _) => results.proofs().all(came_to_something),
        };
        plan.tasks.iter().enumerate().all(is_done)
    }
}
