//! What is known to come out one way or the other: the self-test tries some of it, and the catalogue all known faults.
//!
//! The cases are those that other tools and the systems' own documents agree on, and those of our own findings; each was
//! also seen to come out this way here.

mod list;

use std::path::Path;

use landfall_recorder::{Fault, Offer};
use landfall_results::proof::Expectation;

use crate::{Error, Plan};

pub use list::CASES;

/// One thing that must come out as expected.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The subject's name.
    pub subject: &'static str,
    /// Its settings.
    pub settings: &'static [(&'static str, &'static str)],
    /// The filesystem.
    pub filesystem: &'static str,
    /// Whether its creation is recorded too.
    pub creation: bool,
    /// Bytes that the disk writes whole.
    pub atomic_bytes: u64,
    /// What the disk offers.
    pub offer: Offer,
    /// Whether write-back is injected.
    pub writeback: bool,
    /// What goes wrong besides the power.
    pub faults: &'static [Fault],
    /// Transactions that it may send.
    pub transactions: u64,
    /// Crash states tried at most.
    pub states: usize,
    /// States of a second cut, during the recovery from the first, that are tried at most.
    pub second_cuts: usize,
    /// What it must come to.
    pub expected: Expectation,
    /// Where a fault is documented.
    pub source: Option<&'static str>,
    /// Whether the self-test tries it: what takes long, or needs hundreds of states, is in the catalogue only.
    pub in_self_test: bool,
}

impl Case {
    /// The plan that proves it.
    pub fn plan(&self, directory: Option<&Path>) -> Result<Plan, Error> {
        let settings: Vec<(String, String)> = self
            .settings
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let filesystem = self.filesystem.parse().map_err(Error::Usage)?;
        let mut plan = Plan::named(self.subject, &settings, filesystem)?;
        if let Some(directory) = directory {
            plan.directory = directory.to_owned();
        }
        plan.transactions = self.transactions;
        plan.states = self.states;
        plan.second_cuts = self.second_cuts;
        plan.creation = self.creation;
        plan.atomic = self.atomic_bytes.try_into().map_err(Error::Usage)?;
        plan.offer = self.offer;
        plan.writeback = self.writeback;
        plan.faults = self.faults.to_vec();
        plan.again = self.command();
        Ok(plan)
    }

    /// The command that proves it, without states and seed.
    pub fn command(&self) -> String {
        let mut command = format!("landfall prove {}", self.subject);
        for (key, value) in self.settings {
            command += &format!(" --set {key}={value}");
        }
        for fault in self.faults {
            command += &format!(" --fault {fault}");
        }
        for (is_set, option) in [
            (self.creation, " --creation"),
            (self.offer == Offer::ForceUnitAccess, " --fua"),
            (self.writeback, " --writeback"),
        ] {
            if is_set {
                command += option;
            }
        }
        if self.atomic_bytes > 512 {
            command += &format!(" --atomic {}", self.atomic_bytes);
        }
        let filesystem = landfall_os::humanize::quoted(self.filesystem);
        command += &format!(" --fs {filesystem} --transactions {}", self.transactions);
        command
    }
}
