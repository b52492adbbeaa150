//! What a campaign is to do, as a document that never changes and is called by its content.

use landfall_results::proof::Shard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::content::{CampaignId, Digest};

/// Name and version of the document's schema.
const SCHEMA: &str = "landfall-campaign-plan/1";

/// What a campaign is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Name and version of this schema.
    pub schema: String,
    /// Version of the program that planned it.
    pub version: String,
    /// When it was planned, in UTC (RFC 3339): the same campaign planned again is another one.
    pub planned: String,
    /// What it is called, for people.
    pub name: String,
    /// Into how many shards it is cut. A shard is one process on one machine.
    pub shards: u32,
    /// What each shard does, one after the other.
    pub tasks: Vec<Task>,
}

/// One thing that each shard does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// The command as a user would type it, for people.
    pub command: String,
    /// The words that the program is given, without those that differ from shard to shard.
    pub words: Vec<String>,
    /// How the shards share it.
    pub share: Share,
}

/// How the shards of a campaign share a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Share {
    /// A proof: each tries its part of the states of one recording.
    States {
        /// The recording.
        recording: Digest,
    },
    /// A proof: each makes a recording of its own, from this seed and its own number.
    Recordings {
        /// The seed of the first shard.
        seed: u64,
    },
    /// A measurement: each does all of it, on its own machine.
    Machines,
}

impl Plan {
    /// A plan that was made now.
    pub fn new(name: String, shards: u32, tasks: Vec<Task>) -> Plan {
        Plan {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            planned: jiff::Timestamp::now().to_string(),
            name,
            shards,
            tasks,
        }
    }

    /// The document.
    pub fn to_json(&self) -> String {
        // Maps with text keys, numbers and texts only: serialisation cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// What it is called by its content.
    pub fn id(&self) -> CampaignId {
        CampaignId::of(Digest::of(self.to_json().as_bytes()))
    }

    /// Reads the document of the campaign `id`.
    pub fn read(id: &CampaignId, bytes: &[u8]) -> Result<Plan, Error> {
        if CampaignId::of(Digest::of(bytes)) != *id {
            return Err(Error::Document(format!(
                "the plan of campaign {id} is damaged"
            )));
        }
        let plan: Plan = serde_json::from_slice(bytes).map_err(|error| {
            Error::Document(format!("the plan of campaign {id} cannot be read: {error}"))
        })?;
        if plan.schema != SCHEMA {
            return Err(Error::Document(format!(
                "the plan of campaign {id} has schema '{}', and this version of landfall reads '{SCHEMA}': run all of a campaign with one version",
                plan.schema
            )));
        }
        // Else it would be called otherwise once it has been read.
        if plan.to_json().as_bytes() != bytes {
            return Err(Error::Document(format!(
                "the plan of campaign {id} was not written by this version of landfall: run all of a campaign with one version"
            )));
        }
        Shard::new(1, plan.shards).map_err(|why| {
            Error::Document(format!("the plan of campaign {id} makes no sense: {why}"))
        })?;
        Ok(plan)
    }

    /// Its proofs, in the order of what each came to.
    pub fn proofs(&self) -> impl Iterator<Item = &Task> {
        let is_proof = |task: &&Task| task.share != Share::Machines;
        self.tasks.iter().filter(is_proof)
    }

    /// Whether this is one of its shards.
    pub fn check(&self, shard: Shard) -> Result<(), Error> {
        if shard.of() == self.shards {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "campaign {} ({}) has {} shards, and {shard} is one of {}",
            self.id(),
            self.name,
            self.shards,
            shard.of()
        )))
    }
}
