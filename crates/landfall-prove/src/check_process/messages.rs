//! What the two processes say to each other: a line of JSON each.
//!
//! `Hello`, answered by `Ready`; then again and again a directory, answered by what is found there.

use std::io;

use serde::{Deserialize, Serialize};

use crate::subject::Recovered;

/// The first word to the other process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// The subject; a test has it already.
    pub named: Option<Named>,
}

/// A subject that is made from its name and settings.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Named {
    pub name: String,
    pub settings: Vec<(String, String)>,
}

/// The other process can check, or why it cannot.
pub(super) type Ready = Result<(), String>;

/// What is left, or why that is not known.
pub(super) type Answer = Result<Recovered, String>;

/// A message as it goes over the line.
pub(super) fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
