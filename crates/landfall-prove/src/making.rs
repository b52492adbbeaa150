//! How a recording was made: it is kept in the recording's note, so that whoever cuts the power in it later says the same of
//! it as whoever made it.
//!
//! The note has the subject, which may have several lines, a line for the filesystem, and one of JSON for the rest, which
//! recordings of the time before it lack.

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

/// The last line of the note.
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
        format!("{}\n{line}", planned_of(plan))
    }

    /// How a recording with this note was made: as the plan says, if it is of the time before notes said it.
    ///
    /// The error says what it is a recording of, or that a later version made it.
    pub fn read(note: &str, plan: &Plan) -> Result<Making, String> {
        // Not line by line: a command may have several.
        let line = match note.strip_prefix(&planned_of(plan)) {
            Some("") => return Ok(Making::planned(plan)),
            Some(rest) => rest.strip_prefix('\n'),
            None => None,
        };
        let Some(line) = line else {
            let (subject, filesystem) = made_of(note);
            return Err(format!(
                "is a recording of '{subject}' on '{filesystem}': name that subject with its settings, and that filesystem with --fs"
            ));
        };
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

/// What the note of a recording of this subject on this filesystem begins with.
fn planned_of(plan: &Plan) -> String {
    format!("{}\n{}", plan.subject.name(), plan.filesystem)
}

/// The subject and the filesystem that a note names.
fn made_of(note: &str) -> (&str, &str) {
    let before = match note.rsplit_once('\n') {
        Some((before, line)) if line.is_empty() || line.starts_with('{') => before,
        _ => note,
    };
    before.rsplit_once('\n').unwrap_or((before, ""))
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
    fn a_command_may_have_several_lines() {
        let plan = |command: &str, fs: &str| {
            let settings = [("cmd", command), ("check", "true {dir}")]
                .map(|(key, value)| (key.into(), value.into()));
            Plan::named("command", &settings, fs.parse().unwrap()).unwrap()
        };
        let command = "sh -c 'cd {dir}\nexec ./writer {ack}'";
        let made = plan(command, "ext4");
        let making = Making {
            writeback: true,
            ..Making::planned(&made)
        };
        let note = making.note(&made);
        assert_eq!(Making::read(&note, &made), Ok(making));
        let (before, _) = note.rsplit_once('\n').unwrap();
        assert_eq!(Making::read(before, &made), Ok(Making::planned(&made)));
        for other in [plan("./writer {dir} {ack}", "ext4"), plan(command, "xfs")] {
            for note in [&note, before] {
                let error = Making::read(note, &other).unwrap_err();
                let named = format!("is a recording of '{}' on 'ext4': ", made.subject.name());
                assert!(error.starts_with(&named), "{error}");
            }
        }
        // A filesystem's name is not that of one with options.
        let options = plan(command, "ext4,data=journal");
        let note = Making::planned(&options).note(&options);
        let error = Making::read(&note, &made).unwrap_err();
        assert!(error.contains("on 'ext4,data=journal'"), "{error}");
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
