//! What is done before a trial and charged to none.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use landfall_os::{PrepareError, WriteCall as Call, reserve};

/// What it took to prepare a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Preparation {
    /// Seconds.
    pub seconds: f64,
    /// Bytes written for it.
    pub bytes: u64,
}
