//! What a campaign is to do, as a document that never changes.

use serde::{Deserialize, Serialize};

/// What a campaign is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What it is called, for people: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Into how many shards it is cut. A shard is one process on one machine.
    pub shards: u32,
}
