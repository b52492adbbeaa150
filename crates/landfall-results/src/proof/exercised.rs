//! What a proof has exercised: what must have happened for it to say something of what protects from it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a subject does besides appending, and what a power cut then can do to it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Hazard {
    /// A durable page was torn while it was written over. It happens in a recording when a page is written over that
    /// a power cut can tear.
    PageTorn,
    /// A durable page was written over.
    PageOverwritten,
    /// A checkpoint: what is in the log was written to where it stays.
    Checkpoint,
    /// A new file of the log was begun.
    LogRotation,
    /// The log was rewritten to a new, shorter one.
    LogRewrite,
    /// Everything was written to a new file.
    Snapshot,
    /// Old versions were removed.
    Compaction,
    /// The file was made anew without what is free in it.
    Defragmentation,
}

/// How often something happened, and in how many crash states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exercised {
    /// What.
    pub what: Hazard,
    /// How often it happened in the recording; null: that is not known.
    pub happened: Option<u64>,
    /// In how many of the checked crash states the power was cut meanwhile, before all of it was durable; of pages, in
    /// how many such a page was torn, or not all of them arrived. Null: that is not known.
    pub states: Option<u64>,
    /// Settings of the subject that are there to protect it then: where no state fell into it, they were not tried.
    pub protected_by: Vec<String>,
}

impl Hazard {
    /// All of them.
    pub const ALL: [Hazard; 8] = [
        Hazard::PageTorn,
        Hazard::PageOverwritten,
        Hazard::Checkpoint,
        Hazard::LogRotation,
        Hazard::LogRewrite,
        Hazard::Snapshot,
        Hazard::Compaction,
        Hazard::Defragmentation,
    ];

    /// Its name, as in the document.
    pub fn name(self) -> &'static str {
        match self {
            Hazard::PageTorn => "page-torn",
            Hazard::PageOverwritten => "page-overwritten",
            Hazard::Checkpoint => "checkpoint",
            Hazard::LogRotation => "log-rotation",
            Hazard::LogRewrite => "log-rewrite",
            Hazard::Snapshot => "snapshot",
            Hazard::Compaction => "compaction",
            Hazard::Defragmentation => "defragmentation",
        }
    }

    /// What happened, counted: `14 checkpoints`.
    pub fn counted(self) -> [&'static str; 2] {
        match self {
            Hazard::PageTorn => [
                "overwritten page that can be torn",
                "overwritten pages that can be torn",
            ],
            Hazard::PageOverwritten => ["overwritten page", "overwritten pages"],
            Hazard::Checkpoint => ["checkpoint", "checkpoints"],
            Hazard::LogRotation => ["new log file", "new log files"],
            Hazard::LogRewrite => ["rewrite of the log", "rewrites of the log"],
            Hazard::Snapshot => ["snapshot", "snapshots"],
            Hazard::Compaction => ["compaction", "compactions"],
            Hazard::Defragmentation => ["defragmentation", "defragmentations"],
        }
    }

    /// That it never happened.
    fn absent(self) -> &'static str {
        match self {
            Hazard::PageTorn => "no page was torn while it was written over",
            Hazard::PageOverwritten => "no page was written over",
            Hazard::Checkpoint => "no checkpoint was made",
            Hazard::LogRotation => "no new log file was begun",
            Hazard::LogRewrite => "the log was not rewritten",
            Hazard::Snapshot => "no snapshot was made",
            Hazard::Compaction => "nothing was compacted",
            Hazard::Defragmentation => "nothing was defragmented",
        }
    }

    /// That no power cut met it.
    pub fn unmet(self) -> &'static str {
        match self {
            Hazard::PageTorn => "no page was torn while it was written over",
            Hazard::PageOverwritten => "the power was never cut while a page was written over",
            Hazard::Checkpoint => "the power was never cut during a checkpoint",
            Hazard::LogRotation => "the power was never cut while a new log file was begun",
            Hazard::LogRewrite => "the power was never cut while the log was rewritten",
            Hazard::Snapshot => "the power was never cut during a snapshot",
            Hazard::Compaction => "the power was never cut during a compaction",
            Hazard::Defragmentation => "the power was never cut during a defragmentation",
        }
    }
}

/// Whether crash states fell into something, by what a proof has exercised; `None`: nobody knows.
pub fn has_tried(exercised: &[Exercised], what: Hazard) -> Option<bool> {
    exercised.iter().find(|one| one.what == what)?.is_tried()
}

impl Exercised {
    /// Whether a crash state fell into it; `None`: nobody knows.
    pub fn is_tried(&self) -> Option<bool> {
        match (self.happened, self.states) {
            (Some(0), _) => Some(false),
            (_, states) => states.map(|states| states > 0),
        }
    }

    /// What was not seen, if that is known: `no checkpoint was made`.
    pub fn gap(&self) -> Option<&'static str> {
        let is_absent = self.happened == Some(0);
        (self.is_tried() == Some(false)).then(|| {
            if is_absent {
                self.what.absent()
            } else {
                self.what.unmet()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_document() {
        for hazard in Hazard::ALL {
            let json = serde_json::to_value(hazard).unwrap();
            assert_eq!(json, hazard.name());
        }
    }
}
