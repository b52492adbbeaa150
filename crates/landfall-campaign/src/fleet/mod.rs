//! The report of a fleet: what many machines measured, and which of their disks differ.
//!
//! [`Fleet::of`] is a pure function of the documents: their order, and whether one is there twice, change nothing, since disks and
//! figures are sorted, and rounds too, before anything is computed from them. It uses no random numbers but those of the bootstrap
//! of a ratio, whose seed is fixed.
//!
//! - `disk` and `figure` say what was measured of what; `group` what disks have in common;
//! - `robust`, `student` and `scatter` are the statistics, and `peers` says who is compared with whom;
//! - `outlier`, `difference` and `flush` say what is strange;
//! - [`report`] shows it, as data that a terminal and a page lay out.
//!
//! How outliers are decided, and how often without cause: `docs/explanation/fleet-outliers.md`.

mod difference;
mod disk;
#[cfg(test)]
mod false_rates;
mod figure;
mod flush;
mod group;
mod outlier;
mod peers;
pub mod report;
mod robust;
mod scatter;
mod student;
#[cfg(any(test, feature = "fixtures"))]
pub mod synthetic;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use landfall_lab::{Results, Weight};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use difference::{Difference, FALSE_DIFFERENCE, Factor, LEAST_DIFFERENCE};
pub use disk::{Disk, Identity, Measured, States};
pub use figure::Figure;
pub use flush::{NEXT_TO_NOTHING, Sign, Suspicion};
pub use group::{By, Group, GroupFigure};
pub use outlier::{Apart, Deviation, EXPECTED_FALSE, Kind, LEAST_RATIO, Outlier, Rule};
pub use peers::{FEWEST_PEERS, Peers};

/// Name and version of the document's schema. The number is raised when a reader of the old one would misunderstand the new one.
pub const SCHEMA_NAME: &str = "landfall-fleet/1";

/// A document, and the machine that made it.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// What the machine is called; two of one name are one.
    pub machine: &'a str,
    /// What it found.
    pub results: &'a Results,
}

/// What is known of a fleet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Landfall fleet")]
pub struct Fleet {
    /// Name and version of this schema.
    pub schema: String,
    /// Machines that measured or proved anything.
    pub machines: Vec<String>,
    /// Different documents that all of this is made from.
    pub documents: usize,
    /// Everything that was measured of any disk.
    pub figures: Vec<Figure>,
    /// All disks, by their machines.
    pub disks: Vec<Disk>,
    /// Disks by model, firmware, filesystem and kernel.
    pub groups: Vec<Group>,
    /// By what rule outliers were found.
    pub rule: Rule,
    /// Disks that differ from their peers: slow ones, those that are slow in the tail, fast ones; the clearest first.
    pub outliers: Vec<Outlier>,
    /// Disks that differ alike, and are too many to be outliers.
    pub apart: Vec<Apart>,
    /// Firmware and kernels with which disks are slower.
    pub differences: Vec<Difference>,
    /// Disks whose flush is suspicious.
    pub suspicions: Vec<Suspicion>,
    /// What the machines noticed that puts their figures, or durability, in doubt.
    pub doubts: Vec<Doubt>,
    /// Crash states that were tried on all machines, and those in which something was lost.
    pub states: States,
}

/// A notice, and the machines that had it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// The notice's code.
    pub code: String,
    /// How much it matters.
    pub weight: Weight,
    /// What one of the machines noticed.
    pub text: String,
    /// The machines.
    pub machines: Vec<String>,
}

impl Fleet {
    /// Everything that these documents say together. The same document twice counts once.
    pub fn of(members: &[Member<'_>]) -> Fleet {
        let members = distinct(members);
        let (disks, figures) = disk::collect(&members);
        let differences = difference::find(&disks, &figures);
        let classes = peers::classes(&disks, &differences);
        let found = outlier::find(&disks, &figures, &classes);
        let states = members.iter().map(|member| States::of(member.results));
        let mut machines: Vec<String> = members.iter().map(|one| one.machine.to_owned()).collect();
        machines.dedup();
        Fleet {
            schema: SCHEMA_NAME.to_owned(),
            machines,
            documents: members.len(),
            groups: group::groups(&disks),
            suspicions: flush::suspicious(&disks, &figures, &found.outliers),
            rule: found.rule,
            outliers: found.outliers,
            apart: found.apart,
            differences,
            doubts: doubts(&members),
            states: states.fold(States::default(), States::and),
            disks,
            figures,
        }
    }

    /// The document as JSON text, on one line: of a thousand disks it is long enough.
    pub fn to_json(&self) -> String {
        // Texts and numbers only: serialisation cannot fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// The JSON Schema of the document.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Fleet);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// Each document once, those of a machine together, machines in the order of their names.
fn distinct<'a>(members: &[Member<'a>]) -> Vec<Member<'a>> {
    let mut machines: BTreeMap<&str, Vec<Member<'a>>> = BTreeMap::new();
    for member in members {
        let known = machines.entry(member.machine).or_default();
        if !known.iter().any(|one| one.results == member.results) {
            known.push(*member);
        }
    }
    machines.into_values().flatten().collect()
}

/// What machines noticed that is more than a note, by its code; of several texts the first in the order of the alphabet.
fn doubts(members: &[Member<'_>]) -> Vec<Doubt> {
    let mut by_code: BTreeMap<&str, Doubt> = BTreeMap::new();
    for member in members {
        let notices = member.results.notices.iter();
        for notice in notices.filter(|one| one.weight > Weight::Note) {
            let doubt = by_code.entry(&notice.code).or_insert_with(|| Doubt {
                code: notice.code.clone(),
                weight: notice.weight,
                text: notice.text.clone(),
                machines: Vec::new(),
            });
            doubt.weight = doubt.weight.max(notice.weight);
            if notice.text < doubt.text {
                doubt.text = notice.text.clone();
            }
            if doubt.machines.last().map(String::as_str) != Some(member.machine) {
                doubt.machines.push(member.machine.to_owned());
            }
        }
    }
    let mut doubts: Vec<Doubt> = by_code.into_values().collect();
    // The weightiest first; those of one weight stay in the order of their codes.
    doubts.sort_by_key(|doubt| std::cmp::Reverse(doubt.weight));
    doubts
}
