//! Things the user must know before believing a figure.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a notice matters.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Good to know.
    Note,
    /// Figures may mislead without it.
    Warning,
    /// Durability itself is in doubt.
    Danger,
}

/// One thing that was noticed about the target or the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// A stable word for programs: `memory`, `foreign-cpu`, ….
    pub code: String,
    /// How much it matters.
    pub weight: Weight,
    /// One sentence for people.
    pub text: String,
}

impl Notice {
    /// Of this code and weight, in one sentence.
    pub fn new(code: &str, weight: Weight, text: impl Into<String>) -> Notice {
        Notice {
            code: code.to_owned(),
            weight,
            text: text.into(),
        }
    }
}

/// A notice for each reason to leave strategies out, given as their names and reasons.
pub fn left_out<'a>(excluded: impl Iterator<Item = (String, &'a str)>) -> Vec<Notice> {
    let mut by_reason: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (key, reason) in excluded {
        by_reason.entry(reason).or_default().push(key);
    }
    by_reason
        .into_iter()
        .map(|(reason, keys)| {
            let first = keys.first().map_or("", String::as_str);
            let text = match keys.len() - 1 {
                0 => format!("{first} was left out: {reason}."),
                more => format!("{first} and {more} more were left out: {reason}."),
            };
            Notice::new("left-out", Weight::Note, text)
        })
        .collect()
}
