//! How a recording was made: it is kept in the recording's note, so that whoever cuts the power in it later says the same of
//! it as whoever made it.
//!
//! The note has a line each for the subject and the filesystem, and one of JSON for the rest, which recordings of the time
//! before it lack.

use landfall_recorder::{Fault, Offer};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// How a recording was made, besides of which subject on which filesystem.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Making {
    /// Whether the subject's creation is recorded too.
    pub creation: bool,
    /// What the disk offered.
    pub offer: Offer,
    /// Whether write-back was injected.
    pub writeback: bool,
    /// What went wrong.
    pub faults: Vec<Fault>,
    /// Why the subject ended before it was told to, if it did.
    pub ended: Option<String>,
}

/// The third line of the note.
#[derive(Serialize, Deserialize)]
struct Line {
    creation: bool,
    force_unit_access: bool,
    writeback: bool,
    faults: Vec<String>,
    ended: Option<String>,
}

impl Making {
    /// As the plan says.
    pub fn planned(plan: &Plan) -> Making {
        Making {
            creation: plan.creation,
            offer: plan.offer,
            writeback: plan.writeback,
            faults: plan.faults.clone(),
            ended: None,
        }
    }

    /// The note of a recording that was made so.
    pub fn note(&self, plan: &Plan) -> String {
        let line = Line {
            creation: self.creation,
            force_unit_access: self.offer == Offer::ForceUnitAccess,
            writeback: self.writeback,
            faults: self.faults.iter().map(Fault::to_string).collect(),
            ended: self.ended.clone(),
        };
        // Texts and booleans only: serialisation cannot fail.
        let line = serde_json::to_string(&line).unwrap_or_default();
        format!("{}\n{}\n{line}", plan.subject.name(), plan.filesystem)
    }

    /// How a recording with this note was made: as the plan says, if it is of the time before notes said it.
    ///
    /// The error says what it is a recording of, or that a later version made it.
    pub fn read(note: &str, plan: &Plan) -> Result<Making, String> {
        let mut lines = note.splitn(3, '\n');
        let mut line = || lines.next().unwrap_or_default();
        let (subject, filesystem, line) = (line(), line(), line());
        let is_planned =
            subject == plan.subject.name().to_string() && filesystem == plan.filesystem.to_string();
        if !is_planned {
            return Err(format!(
                "is a recording of '{subject}' on '{filesystem}': name that subject with its settings, and that filesystem with --fs"
            ));
        }
        if line.is_empty() {
            return Ok(Making::planned(plan));
        }
        let unknown = |what: String| {
            format!(
                "was made by another version of landfall, in a way that this one does not know: {what}"
            )
        };
        let line: Line = serde_json::from_str(line).map_err(|error| unknown(error.to_string()))?;
        let faults = line
            .faults
            .iter()
            .map(|fault| fault.parse().map_err(unknown));
        Ok(Making {
            creation: line.creation,
            offer: if line.force_unit_access {
                Offer::ForceUnitAccess
            } else {
                Offer::Flushes
            },
            writeback: line.writeback,
            faults: faults.collect::<Result<_, _>>()?,
            ended: line.ended,
        })
    }
}

#[cfg(all(test, feature = "subjects"))]
mod tests {
    use super::*;

    fn plan(fs: &str) -> Plan {
        Plan::named("files", &[], fs.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_recording_knows_how_it_was_made() {
        let plan = plan("ext4,data=journal");
        let making = Making {
            creation: true,
            offer: Offer::ForceUnitAccess,
            writeback: true,
            faults: vec![Fault::LyingFlush],
            ended: Some("it was full".into()),
        };
        assert_eq!(Making::read(&making.note(&plan), &plan), Ok(making));
    }

    #[test]
    fn one_of_the_time_before_is_taken_as_the_plan_says() {
        let plan = Plan {
            writeback: true,
            ..plan("ext4")
        };
        let note = format!("{}\next4", plan.subject.name());
        assert_eq!(Making::read(&note, &plan), Ok(Making::planned(&plan)));
    }

    #[test]
    fn one_of_another_subject_or_filesystem_is_refused() {
        let plan = plan("ext4");
        let note = Making::planned(&plan).note(&plan);
        let other = Making::read(&note, &self::plan("xfs")).unwrap_err();
        assert!(other.contains("on 'ext4'"), "{other}");
        assert!(Making::read("", &plan).is_err());
        // What a later version wrote is not taken for nothing.
        for (old, new) in [("[]", "[\"new-fault\"]"), ("false", "3"), ("}", "")] {
            let changed = note.replace(old, new);
            assert_ne!(changed, note);
            let error = Making::read(&changed, &plan).unwrap_err();
            assert!(error.contains("another version"), "{error}");
        }
    }
}
