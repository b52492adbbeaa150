//! What a campaign came to: its shards' documents made one.
//!
//! A pure function of the documents: neither their order nor their number of copies changes anything. Of a shard that was
//! run more than once one run counts, for each task: one that did it before one that did not, of proofs the one that lost
//! most, and else the one that began first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use landfall_lab::Results;
use landfall_results::proof::merge::{MergeError, merge_recordings, merge_shards, verdict_of};
use landfall_results::proof::{Outcome as ProofOutcome, ProofResults, Shard};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::content::{CampaignId, Digest};
use crate::document::{Outcome, ShardDocument};
use crate::plan::{Plan, Share, Task};

/// Name and version of the document's schema.
pub const SCHEMA: &str = "landfall-campaign/1";

/// What a campaign came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Name and version of this schema.
    pub schema: String,
    /// The campaign.
    pub id: CampaignId,
    /// What it is called.
    pub name: String,
    /// How many shards it has.
    pub shards: u32,
    /// Shards of which there is no document.
    pub missing: Vec<Shard>,
    /// What could not be done.
    pub failed: Vec<FailedTask>,
    /// Shards that were run more than once and did not come to the same verdict.
    pub disagreeing: Vec<Shard>,
    /// Seconds that machines were busy with it, all together.
    pub machine_seconds: f64,
    /// When the first shard began, in UTC (RFC 3339).
    pub started: Option<String>,
    /// When the last one ended.
    pub ended: Option<String>,
    /// What was proven, a verdict for each of the plan's proofs.
    pub proofs: Vec<Proof>,
    /// What was measured, a document for each machine and measurement.
    pub measured: Vec<Measured>,
}

/// A task of a shard that could not be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTask {
    /// Of which shard.
    pub shard: Shard,
    /// On which machine.
    pub machine: String,
    /// What.
    pub command: String,
    /// Why not.
    pub why: String,
}

/// What was proven.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// The command.
    pub command: String,
    /// The recording that all shards cut the power in; where each made one, that of the shortest failing state.
    pub recording: Option<Digest>,
    /// Recordings in which something was lost, of shards that made their own.
    pub lost_in: Vec<Digest>,
    /// Shards that did their part.
    pub shards: u32,
    /// What all of them found together; none if none did.
    pub results: Option<ProofResults>,
}

/// What was measured on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// By which shard.
    pub shard: Shard,
    /// What the machine is called.
    pub machine: String,
    /// What was found.
    pub results: Box<Results>,
}

/// A task of a shard as one of its runs did it.
struct Candidate<'a> {
    digest: Digest,
    document: &'a ShardDocument,
    outcome: &'a Outcome,
}

impl Campaign {
    /// What these documents come to. Those of other campaigns are none of this one's.
    pub fn merge(plan: &Plan, documents: &[(Digest, ShardDocument)]) -> Result<Campaign, Error> {
        let id = plan.id();
        let ours: BTreeMap<Digest, &ShardDocument> = documents
            .iter()
            .filter(|(_, document)| document.campaign == id && document.shard.of() == plan.shards)
            .map(|(digest, document)| (*digest, document))
            .collect();
        let present: BTreeSet<Shard> = ours.values().map(|document| document.shard).collect();
        let mut campaign = Campaign {
            schema: SCHEMA.to_owned(),
            id,
            name: plan.name.clone(),
            shards: plan.shards,
            missing: Shard::all(plan.shards)
                .filter(|shard| !present.contains(shard))
                .collect(),
            failed: Vec::new(),
            disagreeing: Vec::new(),
            // A sum of nothing is -0.
            machine_seconds: 0.0 + ours.values().map(|document| document.seconds).sum::<f64>(),
            started: ours.values().map(|document| document.started.clone()).min(),
            ended: ours.values().filter_map(|document| ended(document)).max(),
            proofs: Vec::new(),
            measured: Vec::new(),
        };
        for (number, task) in plan.tasks.iter().enumerate() {
            campaign.add(task, number, &ours, &present)?;
        }
        campaign.disagreeing.sort();
        campaign.disagreeing.dedup();
        Ok(campaign)
    }

    fn add(
        &mut self,
        task: &Task,
        number: usize,
        documents: &BTreeMap<Digest, &ShardDocument>,
        present: &BTreeSet<Shard>,
    ) -> Result<(), Error> {
        let mut done = Vec::new();
        for &shard in present {
            let of_shard = documents
                .iter()
                .filter(|(_, document)| document.shard == shard);
            let mut candidates: Vec<Candidate<'_>> = of_shard
                .filter_map(|(digest, document)| {
                    Some(Candidate {
                        digest: *digest,
                        document,
                        outcome: document.outcomes.get(number)?,
                    })
                })
                .collect();
            candidates.sort_by_cached_key(Candidate::rank);
            let verdicts: BTreeSet<String> =
                candidates.iter().filter_map(Candidate::verdict).collect();
            if verdicts.len() > 1 {
                self.disagreeing.push(shard);
            }
            let Some(best) = candidates.first() else {
                continue;
            };
            match best.outcome {
                Outcome::Done { results, recording } => {
                    done.push((best.document, results, recording));
                }
                Outcome::Failed { why, .. } => self.failed.push(FailedTask {
                    shard,
                    machine: best.document.machine.clone(),
                    command: task.command.clone(),
                    why: why.clone(),
                }),
            }
        }
        if task.share == Share::Machines {
            let measured = done.into_iter().map(|(document, results, _)| Measured {
                shard: document.shard,
                machine: document.machine.clone(),
                results: results.clone(),
            });
            self.measured.extend(measured);
            return Ok(());
        }
        let parts: Vec<ProofResults> = done
            .iter()
            .flat_map(|(_, results, _)| results.proofs().cloned())
            .collect();
        let merged = match task.share {
            Share::Recordings { .. } => merge_recordings(&parts),
            _ => merge_shards(&parts),
        };
        let results = match merged {
            Ok(results) => Some(results),
            Err(MergeError::Nothing) => None,
            Err(error) => {
                return Err(Error::Document(format!("{}: {error}", task.command)));
            }
        };
        let shortest =
            |proof: &ProofResults| proof.shortest.as_ref().map(|state| state.name.clone());
        // Its name begins with the seed of its recording.
        let shown = results.as_ref().and_then(shortest);
        let has_it = |found: &Results| found.proofs().any(|proof| shortest(proof) == shown);
        let shortest_in = shown.as_ref().and_then(|_| {
            let of_it = done.iter().find(|(_, found, _)| has_it(found));
            of_it.and_then(|(_, _, recording)| **recording)
        });
        let mut lost_in: Vec<Digest> = done
            .iter()
            .filter_map(|(_, _, recording)| **recording)
            .collect();
        lost_in.sort();
        self.proofs.push(Proof {
            command: task.command.clone(),
            recording: match task.share {
                Share::States { recording } => Some(recording),
                _ => shortest_in,
            },
            lost_in,
            shards: done.len() as u32,
            results,
        });
        Ok(())
    }

    /// Whether every shard did all that it had to.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.failed.is_empty()
    }

    /// What its proofs came to, whatever became of measurements. Without all shards nothing is proven, but what was lost is
    /// lost; without a proof there is nothing to lose.
    pub fn outcome(&self) -> ProofOutcome {
        let of = |proof: &Proof| match &proof.results {
            Some(results) if results.outcome() == ProofOutcome::LostSomething => {
                ProofOutcome::LostSomething
            }
            Some(results) if proof.shards == self.shards => results.outcome(),
            _ => ProofOutcome::NotProven,
        };
        let outcomes: Vec<ProofOutcome> = self.proofs.iter().map(of).collect();
        if outcomes.contains(&ProofOutcome::LostSomething) {
            ProofOutcome::LostSomething
        } else if outcomes.contains(&ProofOutcome::NotProven) {
            ProofOutcome::NotProven
        } else {
            ProofOutcome::LostNothing
        }
    }

    /// The document as JSON text.
    pub fn to_json(&self) -> String {
        // Maps with text keys, numbers and texts only: serialisation cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

impl Candidate<'_> {
    /// The least counts.
    fn rank(&self) -> impl Ord + use<> {
        let losing = match self.outcome {
            Outcome::Done { results, .. } => {
                results.proofs().map(|proof| proof.failing_states).sum()
            }
            Outcome::Failed { .. } => 0_u64,
        };
        let is_failed = matches!(self.outcome, Outcome::Failed { .. });
        (
            is_failed,
            Reverse(losing),
            self.document.started.clone(),
            self.digest,
        )
    }

    /// What its proofs came to, for comparing; none of a measurement, which never comes to the same.
    fn verdict(&self) -> Option<String> {
        let Outcome::Done { results, .. } = self.outcome else {
            return None;
        };
        let verdicts: Vec<ProofResults> = results.proofs().map(verdict_of).collect();
        let text = serde_json::to_string(&verdicts).unwrap_or_default();
        (!verdicts.is_empty()).then_some(text)
    }
}

/// When a shard had ended.
fn ended(document: &ShardDocument) -> Option<String> {
    let started: jiff::Timestamp = document.started.parse().ok()?;
    let took = jiff::SignedDuration::try_from_secs_f64(document.seconds).ok()?;
    Some(started.checked_add(took).ok()?.to_string())
}
