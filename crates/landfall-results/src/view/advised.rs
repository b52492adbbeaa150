//! What is advised: settings, what a disk carries of a workload, and what configuration files risk.

use super::{Block, Cell, References, Table};

/// Everything that is advised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advised {
    /// Why nothing is.
    pub refused: Option<String>,
    /// All of it in one sentence, if there is anything to say.
    pub sentence: Option<String>,
    /// What to change, if there is anything.
    pub changes: Option<Table>,
    /// How what is said of settings is to be read.
    pub introduction: String,
    /// The settings of each system.
    pub groups: Vec<AdvisedGroup>,
    /// What else a page shows beneath them, such as a fold of systems that are not installed.
    pub beneath: Vec<Block>,
    /// What they rest on.
    pub documents: References,
    /// What is not known.
    pub missing: Vec<Lacking>,
    /// What the disk makes of a workload, if one was named.
    pub workload: Option<Workload>,
    /// Configuration files that were looked at.
    pub files: Vec<CheckedFile>,
}

/// The settings of one system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisedGroup {
    /// The system.
    pub name: String,
    /// Those of which there is anything to say.
    pub settings: Vec<AdvisedSetting>,
}

/// A setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisedSetting {
    /// What it is called.
    pub name: String,
    /// The setting with the value that is advised; good where that is a change, bad where no value is safe, and plain
    /// where the usual one is right.
    pub heading: Cell,
    /// What it is advised for, where there is more to say than its figures do.
    pub because: String,
    /// What else must be known of it.
    pub notes: Vec<String>,
    /// Number of the document that it rests on.
    pub document: usize,
    /// Its values, the advised one first.
    pub choices: Vec<AdvisedChoice>,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisedChoice {
    /// The value, with what else has to be set.
    pub value: String,
    /// What to make of it.
    pub recommendation: Cell,
    /// How many times as fast it is as what is usual, with its 95% interval.
    pub gain: String,
    /// In how many crash states something was lost.
    pub proof: String,
    /// What it risks; may be empty.
    pub risk: String,
}

/// What is not known, and the command that gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Of which settings what is lacking.
    pub text: String,
    /// The command.
    pub command: String,
}

/// Whether a disk carries a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The workload.
    pub name: String,
    /// The verdict.
    pub answer: Cell,
    /// What else there is to say.
    pub reasons: Vec<String>,
    /// What could be changed so that it does.
    pub changes: Vec<String>,
    /// How long the flash lasts, where that can be reckoned.
    pub flash: Option<Table>,
}

/// What a configuration file risks, and leaves unused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedFile {
    /// The file, and whose it is.
    pub name: String,
    /// What is to be said of its settings.
    pub findings: Vec<CheckedSetting>,
    /// What was not looked at, and why.
    pub passed_over: Vec<String>,
    /// How many settings risk data, of how many.
    pub summary: Cell,
}

/// A setting of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedSetting {
    /// What is to be said of it.
    pub finding: Cell,
    /// Where its document is.
    pub address: String,
}
