//! What a proof found: what power cuts did to a subject.
//!
//! `summary_text` says it in words, `timeline_text` what a failing state lacks; `merge` makes one of what several machines found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::FilesystemSpec;

mod cluster;
pub mod cluster_text;
mod counted;
mod exercised;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
pub mod merge;
mod shard;
mod subject_name;
pub mod summary_text;
pub mod timeline_text;

pub use cluster::{ClusterCuts, HeldRecord, VictimCuts};
pub use exercised::{Exercised, Hazard, has_tried};
pub use shard::Shard;
pub use subject_name::SubjectName;

/// Bytes that any disk writes whole or not at all.
const SECTOR: u64 = 512;

/// What power cuts did to a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProofResults {
    /// The subject with its settings.
    pub subject: SubjectName,
    /// Whether the subject promises that a transaction is there whole or not at all.
    pub promises_atomic: bool,
    /// Whether the subject promises that no transaction is there without all those before it.
    pub promises_order: bool,
    /// The filesystem, with mount and mkfs options.
    pub filesystem_spec: FilesystemSpec,
    /// Size of the recorded device in bytes.
    pub device_bytes: u64,
    /// Which crash states were tried: flushed, prefix or subset.
    pub model: String,
    /// What the disk writes whole or not at all, in bytes.
    #[serde(default = "sector")]
    pub atomic_bytes: u64,
    /// What random choices were made from.
    pub seed: u64,
    /// What else went wrong with the device.
    pub faults: Vec<String>,
    /// Whether the power was cut while the subject was created too.
    #[serde(default)]
    pub creation: bool,
    /// Whether write-back was injected: dirty pages forced out between transactions.
    pub writeback: bool,
    /// The part of the planned states that was tried, if other machines have the rest; places are those in the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// What of all this was of how many nodes, if it was a cluster that was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterCuts>,
    /// What was recorded.
    pub workload: Workload,
    /// Which crash states there are, and which were checked.
    pub coverage: Coverage,
    /// What happened that the subject must be protected from, and what did not: the most important first. Empty in
    /// documents of the time before it was counted.
    #[serde(default)]
    pub exercised: Vec<Exercised>,
    /// Promises that were broken, the worst first; empty if nothing was lost.
    pub violations: Vec<ViolationCount>,
    /// The place of the first state in which a promise was broken, in the order in which they were tried; the first of all
    /// is 1. States of a second power cut have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_failing: Option<u64>,
    /// States in which any promise was broken.
    pub failing_states: u64,
    /// States in which an acknowledged transaction was not there.
    pub losing_states: u64,
    /// Acknowledged transactions that were missing in the worst of these states.
    pub worst_lost: u64,
    /// Whether it was the transaction acknowledged last, and no other, in each of these states.
    pub only_last: bool,
    /// The failing state that differs least from one that is whole.
    pub shortest: Option<FailingState>,
    /// Why some states could not be checked, if any could not.
    pub unchecked: Option<Unchecked>,
    /// What it should have come to, if that is known: see `landfall prove --self-test`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expectation>,
}

/// What any disk writes whole or not at all, and all that documents of the time before it could be
/// chosen mean.
fn sector() -> u64 {
    SECTOR
}

/// What a proof should come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Expectation {
    /// Every promise is kept.
    LosesNothing,
    /// Acknowledged transactions are lost.
    Loses,
    /// The transaction acknowledged last is lost, and never another.
    LosesOnlyLast,
    /// Transactions are half-applied.
    Tears,
    /// The subject does not recover.
    Damages,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// Transactions sent.
    pub sent: u64,
    /// Transactions acknowledged.
    pub acknowledged: u64,
    /// Writes that reached the device.
    pub writes: u64,
    /// Bytes of them.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Writes that the disk made durable by themselves (force unit access, FUA); absent if it did not offer that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced_writes: Option<u64>,
    /// Bytes of the recording that did not fit into memory.
    pub spilled_bytes: u64,
    /// Why the subject ended before it was told to, if it did.
    pub ended: Option<String>,
}

/// Which crash states there are, and which were checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Stretches between two flushes, the one after the last flush among them.
    pub epochs: u64,
    /// Epochs of which any states were planned.
    pub surveyed: u64,
    /// Epochs of which every subset of whole writes was planned, in all shards together; 0 if a shard is missing, or if
    /// others were not tried once one state failed.
    pub every_write: u64,
    /// Epochs of which every subset of changed sectors was planned; else as of the writes.
    pub every_sector: u64,
    /// States that the model has in all, those with equal images in one epoch counted once.
    pub possible: f64,
    /// Distinct states that were planned.
    pub planned: u64,
    /// States among them that chance picked.
    pub sampled: u64,
    /// States that equal another one, and were planned once.
    pub equal: u64,
    /// What tells the list of these states from others, in hexadecimal: equal for the same names in the same order, whatever part of
    /// the list was tried. Absent of clusters, of several recordings, and in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states_digest: Option<String>,
    /// Checked states whose recovered files were equal to another's: of those the subject checked again only what failed.
    #[serde(default)]
    pub equal_files: u64,
    /// Distinct states that were checked.
    pub checked: u64,
    /// States checked per minute, by all workers together.
    pub states_per_minute: f64,
    /// Workers.
    pub workers: u64,
    /// What of all this was after a second power cut, if any was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_cuts: Option<SecondCuts>,
}

/// States that a second power cut has left, during the recovery from the first. They are among those planned and checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecondCuts {
    /// Recoveries that were recorded, each from another crash state, and cut off.
    pub recoveries: u64,
    /// Writes that they made, all together.
    pub writes: u64,
    /// Flushes that they made, all together.
    pub flushes: u64,
    /// States that were planned.
    pub planned: u64,
    /// States that were left out since they tear the filesystem's superblock, which has nothing to do with the subject.
    pub torn_superblocks: u64,
    /// States that were checked.
    pub checked: u64,
    /// States in which a promise was broken.
    pub failing: u64,
}

/// A way of breaking a promise.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Violation {
    /// The filesystem could not be mounted, or complained, or could not be written to any more.
    Filesystem,
    /// The subject did not recover, or its own integrity check failed.
    Damaged,
    /// A transaction that had been acknowledged is not there.
    Lost,
    /// A part of a transaction is there, of a subject that promises all or nothing.
    HalfApplied,
    /// Something is there that was never sent.
    Invented,
    /// The subject's own record of its transactions, which replicas follow, differs from what it has.
    Diverged,
    /// A transaction is there without one before it, of a subject that promises order.
    OutOfOrder,
    /// The nodes of a cluster have not the same, and do not come to have it.
    Disagreed,
    /// A cluster did not come back: it has no leader, gives no answer, or takes nothing new. What it has is not known.
    Unavailable,
}

impl Violation {
    /// All of them, the worst first.
    pub const ALL: [Violation; 9] = [
        Violation::Filesystem,
        Violation::Damaged,
        Violation::Invented,
        Violation::HalfApplied,
        Violation::Diverged,
        Violation::OutOfOrder,
        Violation::Lost,
        Violation::Disagreed,
        Violation::Unavailable,
    ];

    /// In a few words, as in "in 3 states …".
    pub fn words(self) -> &'static str {
        match self {
            Violation::Filesystem => "the filesystem did not recover",
            Violation::Damaged => "the subject did not recover",
            Violation::Lost => "acknowledged transactions were lost",
            Violation::HalfApplied => "a transaction was half-applied",
            Violation::Invented => "something was there that had never been sent",
            Violation::Diverged => "the log for replicas and the database did not have the same",
            Violation::OutOfOrder => "a transaction was there without one before it",
            Violation::Disagreed => "the nodes did not come to have the same",
            Violation::Unavailable => "the cluster did not come back",
        }
    }
}

/// One kind of violation, and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ViolationCount {
    /// What was broken.
    pub violation: Violation,
    /// In how many states.
    pub states: u64,
    /// One of them: the first, but of damage the first crash.
    pub example: String,
    /// What was wrong there.
    pub detail: String,
    /// The example's place in the order of the states; none after a second power cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// Whether the example is a crash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crashed: bool,
}

impl ViolationCount {
    /// Whether its example is shown rather than the other's: of all damage a crash is what a user must know of, and else
    /// the first in the order of the states.
    pub fn is_better_example_than(&self, other: &ViolationCount) -> bool {
        let key = |one: &ViolationCount| (!one.crashed, one.place.unwrap_or(u64::MAX));
        key(self) < key(other)
    }
}

/// The state that was found before it was made shorter, by what makes one shorter than another: of several machines' the
/// least is shown.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Origin {
    /// Changed sectors that did not arrive.
    pub omitted: u64,
    /// What had happened to the device before the cut.
    pub position: u64,
    /// Its place in the order of the states.
    pub place: u64,
}

/// One crash state in which a promise was broken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailingState {
    /// Its name, `seed:cut:choice`.
    pub name: String,
    /// The command that shows it again.
    pub command: String,
    /// What is wrong with it, in sentences.
    pub details: Vec<String>,
    /// What happened to the device around the cut, in order.
    pub timeline: Vec<Moment>,
    /// What it was made of, if it was the shortest of all that one power cut had left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Origin>,
}

/// One thing that happened to the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    /// When, in milliseconds since the recording began.
    pub ms: f64,
    /// To which node's device, of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// What it was.
    #[serde(flatten)]
    pub what: Happening,
    /// Whether it was after the power had gone.
    pub after_cut: bool,
}

/// What happened to the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Happening {
    /// Data was written.
    Write {
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u64,
        /// Sectors of it.
        sectors: u64,
        /// Sectors of it that the state lacks.
        missing: u64,
        /// The file that had this place when the recording began or ended, by its path in the subject's directory in which
        /// numbers are `#`; absent for the filesystem's own, and where no file is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// Everything before this is durable.
    Flush,
    /// A write is durable by itself (force unit access).
    Forced {
        /// Its first byte.
        offset: u64,
    },
    /// A flush that the device only said it had done.
    LyingFlush,
    /// A request that the device refused.
    Refused,
    /// A transaction was sent.
    Send {
        /// Its number.
        transaction: u64,
    },
    /// A transaction was acknowledged.
    Acknowledge {
        /// Its number.
        transaction: u64,
    },
}

/// States that could not be checked; nothing is known of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unchecked {
    /// How many.
    pub states: u64,
    /// Why the first of them could not.
    pub reason: String,
}

/// What a proof came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every state was whole.
    LostNothing,
    /// A promise was broken in some state.
    LostSomething,
    /// No promise was seen broken, but a state could not be checked, or none was, or nothing was acknowledged.
    NotProven,
}

impl ProofResults {
    /// What it came to.
    pub fn outcome(&self) -> Outcome {
        if self.failing_states > 0 {
            Outcome::LostSomething
        } else if self.unchecked.is_some()
            || self.coverage.checked == 0
            || self.workload.acknowledged == 0
        {
            Outcome::NotProven
        } else {
            Outcome::LostNothing
        }
    }

    /// Of how many epochs every subset was tried of the writes, and of the changed sectors; `None` if it cannot tell: it is a
    /// shard, which has a part of each epoch's states, or not all of them were tried.
    pub fn exhausted(&self) -> Option<(u64, u64)> {
        let is_part = self.shard.is_some_and(|shard| shard.of() > 1);
        let is_whole = !is_part && self.untried_states() == 0;
        is_whole.then_some((self.coverage.every_write, self.coverage.every_sector))
    }

    /// States that were planned and not tried.
    pub fn untried_states(&self) -> u64 {
        let unchecked = self.unchecked.as_ref().map_or(0, |one| one.states);
        let tried = self.coverage.checked.saturating_add(unchecked);
        self.coverage.planned.saturating_sub(tried)
    }

    /// Whether it is of a shard that has no states, since there are fewer of them than shards.
    pub fn is_idle(&self) -> bool {
        self.shard.is_some() && self.coverage.planned == 0
    }

    /// Whether it came to what it should; `None` if nothing was expected.
    pub fn is_as_expected(&self) -> Option<bool> {
        let has = |violation| {
            self.violations
                .iter()
                .any(|count| count.violation == violation)
        };
        Some(match self.expected? {
            Expectation::LosesNothing => self.outcome() == Outcome::LostNothing,
            Expectation::Loses => self.losing_states > 0,
            Expectation::LosesOnlyLast => self.losing_states > 0 && self.only_last,
            Expectation::Tears => has(Violation::HalfApplied),
            Expectation::Damages => has(Violation::Damaged),
        })
    }
}
