//! What one shard has done: the document that it leaves.

use landfall_lab::Results;
use landfall_results::proof::Shard;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::content::{CampaignId, Digest};

/// Name and version of the document's schema.
const SCHEMA: &str = "landfall-campaign-shard/1";
/// The environment variable in which whoever starts a shard says what the machine is called.
const MACHINE: &str = "LANDFALL_MACHINE";

/// What one shard has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardDocument {
    /// Name and version of this schema.
    pub schema: String,
    /// Of which campaign.
    pub campaign: CampaignId,
    /// Which of its shards.
    pub shard: Shard,
    /// When it began, in UTC (RFC 3339).
    pub started: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What the machine is called; results documents do not say it, since people show them to others.
    pub machine: String,
    /// What came of each of the plan's tasks, in their order.
    pub outcomes: Vec<Outcome>,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was done.
    Done {
        /// What was found.
        results: Box<Results>,
        /// The recording in which something was lost, if this shard made one.
        recording: Option<Digest>,
    },
    /// It could not be done.
    Failed {
        /// The exit code; none if a signal ended it.
        code: Option<i32>,
        /// What it said.
        why: String,
    },
}

impl ShardDocument {
    /// One with the schema of this version.
    pub fn new(campaign: CampaignId, shard: Shard, started: String) -> ShardDocument {
        ShardDocument {
            schema: SCHEMA.to_owned(),
            campaign,
            shard,
            started,
            seconds: 0.0,
            machine: machine(std::env::var(MACHINE).ok()),
            outcomes: Vec::new(),
        }
    }

    /// The document as JSON text.
    pub fn to_json(&self) -> String {
        // Maps with text keys, numbers and texts only: serialisation cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Reads the document that is called so.
    pub fn read(digest: Digest, bytes: &[u8]) -> Result<ShardDocument, Error> {
        #[derive(Deserialize)]
        struct Header {
            schema: String,
        }
        let unreadable =
            |error| Error::Document(format!("document {digest} cannot be read: {error}"));
        let header: Header = serde_json::from_slice(bytes).map_err(unreadable)?;
        if header.schema != SCHEMA {
            return Err(Error::Document(format!(
                "document {digest} has schema '{}', and this version of landfall reads '{SCHEMA}': run all of a campaign with one version",
                header.schema
            )));
        }
        serde_json::from_slice(bytes).map_err(unreadable)
    }
}

/// What the machine is called: as is said, or else by its host name. That of a container is the container's own.
fn machine(said: Option<String>) -> String {
    said.filter(|name| !name.is_empty())
        .unwrap_or_else(landfall_os::host_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_called_as_is_said_or_else_by_its_host_name() {
        assert_eq!(machine(Some("node-7".to_owned())), "node-7");
        let host = machine(None);
        assert!(!host.is_empty());
        assert_eq!(machine(Some(String::new())), host);
    }
}
