//! Advice, as it stands in its own document: made from results and from nothing else.

use landfall_results::proof::Hazard;
use landfall_results::{FilesystemSpec, Notice, Weight};
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity::Capacity;
use super::check::Check;
use crate::rules::System;
use crate::stats::Estimate;

/// Name and version of the document's schema.
pub const ADVICE_SCHEMA: &str = "landfall-advice/2";

/// What is advised on one directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Landfall advice")]
pub struct Advice {
    /// Name and version of this schema.
    pub schema: String,
    /// Version of the program that made it.
    pub version: String,
    /// The directory.
    pub directory: String,
    /// What it stands on, in short.
    pub place: String,
    /// Whether the disk keeps its flushes, as far as a witness on another host knows; absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flushes: Option<Notice>,
    /// Why there is no advice but this; then there are no settings.
    pub refused: Option<String>,
    /// The settings of which something is known here.
    pub settings: Vec<Setting>,
    /// What was not measured or proven, and how it is.
    pub missing: Vec<Missing>,
    /// What this disk can carry of a target, if one was named.
    pub capacity: Option<Capacity>,
    /// What was found of configurations, if any were named.
    pub checks: Vec<Check>,
}

/// A setting with what is known of its values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// The rule that this comes from.
    pub rule: String,
    /// What is set.
    pub system: System,
    /// The setting, as the system calls it.
    pub setting: String,
    /// The value that is advised; absent if none can be.
    pub value: Option<String>,
    /// Whether that is what it is where nobody sets it.
    pub is_default: bool,
    /// What was seen here that the rule speaks of; empty if it always does.
    pub because: String,
    /// Its values: what the others are held against first.
    pub choices: Vec<Choice>,
    /// What else must be known; empty if nothing.
    pub note: String,
    /// Why it is not to be changed on a server that has data, and how it is; empty if it may be.
    pub by_hand: String,
    /// The official document's title.
    pub document: String,
    /// Where that is.
    pub address: String,
}

/// A value, and what is known of it here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The value.
    pub value: String,
    /// Other settings that go with it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub with: BTreeMap<String, String>,
    /// What is to be made of it.
    pub recommendation: Recommendation,
    /// What it gives against the first choice, measured here.
    pub gain: Option<Gain>,
    /// What its document says may be lost; empty if nothing.
    pub risk: String,
    /// What power cuts did to it here.
    pub proof: Option<Proof>,
}

/// What is to be made of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recommendation {
    /// The fastest that lost nothing, as far as is known: this one.
    Use,
    /// As safe, and not shown to be faster.
    NoGain,
    /// Meant to be durable, and not proven here, or not measured.
    NotShown,
    /// It may lose what was acknowledged: by its document, or it did here.
    Unsafe,
}

impl Recommendation {
    /// In a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Recommendation::Use => "use",
            Recommendation::NoGain => "no gain",
            Recommendation::NotShown => "not shown",
            Recommendation::Unsafe => "unsafe",
        }
    }
}

/// What a value gives against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// How many times as much; above 1 is better.
    pub times: Estimate,
    /// What of: `rate`, or `bytes` at the device saved.
    pub of: Quantity,
    /// What was measured: `mariadb, 16 clients, on loop:ext4`, or the writes that it rests on.
    pub measured: String,
    /// What was measured: the system itself, or what stands in for it.
    pub basis: Basis,
    /// Whether it was measured in enough rounds for an interval.
    pub is_certain: bool,
}

/// What a figure or a proof is of, the best first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Of the system itself.
    System,
    /// Of what works alike: of MariaDB, for MySQL; on such a filesystem that was mounted otherwise.
    Alike,
    /// Of writes to a plain file such as the system makes: a bound, since it does other things besides.
    Writes,
}

impl Basis {
    /// What marks it where it is not of the system itself.
    pub fn mark(self) -> &'static str {
        match self {
            Basis::System => "",
            Basis::Alike => "†",
            Basis::Writes => "*",
        }
    }

    /// What it is of, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Basis::System => "of the system itself",
            Basis::Alike => {
                "of what works alike: MariaDB for MySQL, or the same filesystem made or mounted otherwise"
            }
            Basis::Writes => "of plain writes of this kind, not of the system itself",
        }
    }
}

/// What is gained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Requests, commits or writes per second.
    Rate,
    /// Requests per byte that reaches the device.
    Bytes,
}

/// What power cuts did to a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proof {
    /// What was proven.
    pub subject: String,
    /// The filesystem.
    pub filesystem_spec: FilesystemSpec,
    /// Distinct crash states that were checked.
    pub states: u64,
    /// States in which something was lost or damaged.
    pub losing: u64,
    /// What was proven: the system itself, or what stands in for it.
    pub basis: Basis,
    /// What the setting is there to protect from, if no crash state fell into it as far as is known: then that nothing
    /// was lost says nothing of the setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untried: Option<Hazard>,
}

/// Something that was not measured or proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// What is set.
    pub system: System,
    /// The settings that it is missing for.
    pub settings: Vec<String>,
    /// What is missing.
    pub what: Lack,
    /// The command that gets it.
    pub command: String,
}

/// What is missing.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// What its values cost.
    Measurement,
    /// What its values lose.
    Proof,
}

impl Proof {
    /// Whether it says something of the value: it lost something, or met what the setting protects from.
    pub fn is_evidence(&self) -> bool {
        self.losing > 0 || self.untried.is_none()
    }
}

impl Setting {
    /// The value that is advised, with what is known of it.
    pub fn advised(&self) -> Option<&Choice> {
        self.choices
            .iter()
            .find(|choice| choice.recommendation == Recommendation::Use)
    }

    /// Whether it is the one that all are held against.
    pub fn is_reference(&self, choice: &Choice) -> bool {
        self.choices.first() == Some(choice)
    }

    /// Whether another value than the usual one is advised.
    pub fn is_change(&self) -> bool {
        self.value.is_some() && !self.is_default
    }
}

impl Advice {
    /// Goes by what a witness found of the disk. On one that lost acknowledged writes nothing is durable, whatever is set.
    pub fn heed(&mut self, flushes: Notice) {
        if flushes.weight == Weight::Danger {
            self.refused = Some(flushes.text.clone());
            self.settings.clear();
            self.missing.clear();
            self.capacity = None;
        }
        self.flushes = Some(flushes);
    }

    /// As JSON text.
    pub fn to_json(&self) -> String {
        // Numbers and texts only: serialisation cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Its settings of one system.
    pub fn of(&self, system: System) -> impl Iterator<Item = &Setting> {
        self.settings
            .iter()
            .filter(move |setting| setting.system == system)
    }
}

/// The JSON Schema of the document.
pub fn advice_schema() -> String {
    let schema = schemars::schema_for!(Advice);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
