//! What is known of a machine, a filesystem and a device.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One fact and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact {
    /// What it is about: `host`, `filesystem`, or the device's name.
    pub subject: String,
    /// What is stated.
    pub name: String,
    /// Its value.
    pub value: String,
    /// What it means for durable writes; empty where it means nothing in particular.
    pub meaning: String,
}
