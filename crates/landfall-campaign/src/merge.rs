//! What a campaign came to: its shards' documents made one.
//!
//! A pure function of the documents: neither their order nor their number of copies changes anything. Of a shard that was
//! run more than once one run counts, for each task (`choice`).
//!
//! Documents are not believed beyond what they can be (`fit`), and a loss is never lost among them.

mod choice;

use std::collections::BTreeMap;

use landfall_lab::Results;
use landfall_results::proof::merge::{MergeError, merge_recordings, merge_shards};
use landfall_results::proof::{Outcome as ProofOutcome, ProofResults, Shard};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::content::{CampaignId, Digest};
use crate::document::ShardDocument;
use crate::plan::{Plan, Share};
use choice::{Choice, Part, Runs, choose};

/// Name and version of the document's schema.
pub const SCHEMA: &str = "landfall-campaign/1";

/// What a campaign came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What lies among the shards' documents and cannot be read, with the reason.
    pub unreadable: Vec<String>,
    /// What could not be done, or does not fit.
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// What was lost besides, in another proof than those that are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub odd_losses: Vec<OddLoss>,
}

/// What a run of a shard lost in another proof than the others: it is a loss, and in none of their counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OddLoss {
    /// Of which shard.
    pub shard: Shard,
    /// On which machine.
    pub machine: String,
    /// In what its proof differs from the others.
    pub differs: String,
    /// States in which any promise was broken.
    pub failing_states: u64,
}

/// What was measured on a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// By which shard.
    pub shard: Shard,
    /// What the machine is called.
    pub machine: String,
    /// What was found.
    pub results: Box<Results>,
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
        let mut runs = Runs::new();
        for (digest, document) in &ours {
            runs.entry(document.shard)
                .or_default()
                .push((*digest, document));
        }
        let mut campaign = Campaign {
            schema: SCHEMA.to_owned(),
            id,
            name: plan.name.clone(),
            shards: plan.shards,
            missing: Shard::all(plan.shards)
                .filter(|shard| !runs.contains_key(shard))
                .collect(),
            unreadable: Vec::new(),
            failed: Vec::new(),
            disagreeing: Vec::new(),
            // A sum of nothing is -0.
            machine_seconds: 0.0 + ours.values().map(|document| document.seconds).sum::<f64>(),
            started: ours.values().map(|document| document.started.clone()).min(),
            ended: ours.values().filter_map(|document| ended(document)).max(),
            proofs: Vec::new(),
            measured: Vec::new(),
        };
        for number in 0..plan.tasks.len() {
            campaign.add(plan, number, &runs)?;
        }
        campaign.disagreeing.sort();
        campaign.disagreeing.dedup();
        Ok(campaign)
    }

    /// Adds what came of the plan's task of this number.
    fn add(&mut self, plan: &Plan, number: usize, runs: &Runs<'_>) -> Result<(), Error> {
        let task = &plan.tasks[number];
        let Choice {
            done,
            failed,
            odd_losses,
            disagreeing,
        } = choose(plan, number, runs);
        self.disagreeing.extend(disagreeing);
        let failed = failed.into_iter().map(|(document, why)| FailedTask {
            shard: document.shard,
            machine: document.machine.clone(),
            command: task.command.clone(),
            why,
        });
        self.failed.extend(failed);
        let merge = match task.share {
            Share::Machines => {
                let measured = done.into_iter().map(|part| Measured {
                    shard: part.document.shard,
                    machine: part.document.machine.clone(),
                    results: Box::new(part.results.clone()),
                });
                self.measured.extend(measured);
                return Ok(());
            }
            Share::States { .. } => merge_shards,
            Share::Recordings { .. } => merge_recordings,
        };
        let proofs = done.iter().flat_map(|part| part.results.proofs().cloned());
        let proofs: Vec<ProofResults> = proofs.collect();
        let results = match merge(&proofs) {
            Ok(results) => Some(results),
            Err(MergeError::Nothing) => None,
            Err(error) => {
                return Err(Error::Document(format!("{}: {error}", task.command)));
            }
        };
        let losing = done.iter().chain(odd_losses.iter().map(|(part, _)| part));
        let mut lost_in: Vec<Digest> = losing.filter_map(|part| part.recording).collect();
        lost_in.sort();
        self.proofs.push(Proof {
            command: task.command.clone(),
            recording: match task.share {
                Share::States { recording } => Some(recording),
                _ => results
                    .as_ref()
                    .and_then(|results| recording_of_shortest(results, &done)),
            },
            lost_in,
            shards: done.len() as u32,
            results,
            odd_losses: odd_losses.iter().map(OddLoss::of).collect(),
        });
        Ok(())
    }

    /// Whether every shard did all that it had to.
    pub fn is_whole(&self) -> bool {
        let all = self.proofs.iter().all(|proof| proof.shards == self.shards);
        all && self.missing.is_empty() && self.failed.is_empty()
    }

    /// What its proofs came to, whatever became of measurements. Without all shards nothing is proven, but what was lost is
    /// lost; without a proof there is nothing to lose.
    pub fn outcome(&self) -> ProofOutcome {
        let of = |proof: &Proof| match &proof.results {
            _ if !proof.odd_losses.is_empty() => ProofOutcome::LostSomething,
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

    /// When the first shard began and the last one ended, for people; `None`: none has ended.
    pub fn when(&self) -> Option<String> {
        let shown = |time: &Option<String>| {
            let time: jiff::Timestamp = time.as_ref()?.parse().ok()?;
            Some(time.strftime("%-d %B %Y, %H:%M UTC").to_string())
        };
        let (started, ended) = (shown(&self.started)?, shown(&self.ended)?);
        Some(if started == ended {
            started
        } else {
            format!("{started}, to {ended}")
        })
    }

    /// The JSON Schema of the document.
    pub fn json_schema() -> String {
        let schema = schemars::schema_for!(Campaign);
        serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
    }

    /// The document as JSON text.
    pub fn to_json(&self) -> String {
        // Maps with text keys, numbers and texts only: serialisation cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

impl OddLoss {
    fn of((part, what): &(Part<'_>, &'static str)) -> OddLoss {
        OddLoss {
            shard: part.document.shard,
            machine: part.document.machine.clone(),
            differs: (*what).to_owned(),
            failing_states: part.failing_states(),
        }
    }
}

/// The recording in which the shortest failing state is, of shards that made their own: a state's name begins with the seed of
/// its recording.
fn recording_of_shortest(results: &ProofResults, parts: &[Part<'_>]) -> Option<Digest> {
    let shortest = |proof: &ProofResults| proof.shortest.as_ref().map(|state| state.name.clone());
    let name = shortest(results)?;
    let has_it = |part: &&Part<'_>| {
        part.results
            .proofs()
            .any(|proof| shortest(proof).as_ref() == Some(&name))
    };
    parts.iter().find(has_it)?.recording
}

/// When a shard had ended.
fn ended(document: &ShardDocument) -> Option<String> {
    let started: jiff::Timestamp = document.started.parse().ok()?;
    let took = jiff::SignedDuration::try_from_secs_f64(document.seconds).ok()?;
    Some(started.checked_add(took).ok()?.to_string())
}
