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
    /// What was noticed, in one short sentence.
    pub text: String,
    /// What that means, and what can be done; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
}

impl Notice {
    /// Of this code and weight, in one sentence.
    pub fn new(code: &str, weight: Weight, text: impl Into<String>) -> Notice {
        Notice {
            code: code.to_owned(),
            weight,
            text: text.into(),
            details: String::new(),
        }
    }

    /// The same, with what it means and what can be done.
    pub fn because(self, details: impl Into<String>) -> Notice {
        Notice {
            details: details.into(),
            ..self
        }
    }

    /// What it is about, where there is no room for its sentence.
    pub fn topic(&self) -> &str {
        match self.code.as_str() {
            "busy-machine" => "a busy machine",
            "cut" => "trials cut short",
            "directory-only" => "a directory alone",
            "drift" => "rounds that drift",
            "failed" => "parts that failed",
            "foreign-cpu" => "other programs ran",
            "foreign-traffic" => "others on this disk",
            "left-behind" => "files left behind",
            "left-out" => "ways left out",
            "leftover" => "files of another run",
            "log-cannot-keep-up" => "a log that falls behind",
            "made-on-image" => "a disk in a file",
            "made-on-recorder" => "a disk in user space",
            "memory" => "main memory",
            "memory-disk" => "a disk in memory",
            "nearly-full" => "a nearly full disk",
            "network" => "a network filesystem",
            "no-barrier" => "no barriers",
            "no-flush" => "no flushes",
            "no-journal" => "no journal",
            "no-volatile-cache" => "no volatile cache",
            "not-measured" => "parts not measured",
            "passthrough" => "a directory of the host",
            "proven-elsewhere" => "proven elsewhere",
            "run-drift" => "a machine that drifts",
            "slow-memory" => "slow memory",
            "stolen-cpu" => "CPU taken by the host",
            "suspicious-flush" => "flushes too quick",
            "unknown-device" => "an unknown device",
            "virtual-disk" => "a virtual disk",
            "warm-restart" => "warm restarts",
            code => code,
        }
    }

    /// All that is to be said of it.
    pub fn full(&self) -> String {
        let both = [self.text.as_str(), self.details.as_str()];
        both.join(" ").trim_end().to_owned()
    }
}

/// What these are about, each once.
pub fn topics<'a>(those: impl IntoIterator<Item = &'a Notice>) -> Vec<&'a str> {
    let mut topics = Vec::new();
    for one in those {
        if !topics.contains(&one.topic()) {
            topics.push(one.topic());
        }
    }
    topics
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
