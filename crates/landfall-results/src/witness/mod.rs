//! What a witness on another host saw of a disk: what was promised to it, and what the disk has after a power cut.
//!
//! Nobody who stands on the disk can know whether it keeps its flushes. The witness does: it heard of each write after
//! the disk had said that it is durable, and its power was not cut.
//!
//! A disk is accused of a loss only after a cut that somebody knows of: the witness that commanded it, or the operator
//! who says so. After anything else a loss is *suspicious*, and no more.

mod bound;
mod summary_text;

pub use bound::losing_at_most;

use landfall_os::{DiskIdentity, SyncMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the document's schema.
pub const WITNESS_SCHEMA: &str = "landfall-witness/1";

/// What a witness knows of disks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Landfall witness")]
pub struct WitnessDocument {
    /// Name and version of this schema.
    pub schema: String,
    /// Version of the program that made it.
    pub version: String,
    /// One for each stream of writes that it names.
    pub witnessed: Vec<Witnessed>,
}

/// A disk, what power cuts did to it so far, and the last verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Witnessed {
    /// What the witness calls the stream of writes.
    pub stream: String,
    /// What was written to.
    pub target: Target,
    /// How.
    pub strategy: Strategy,
    /// The cuts of this disk that count, whatever was written to it by whichever strategy.
    pub tally: Tally,
    /// What was found last; absent if nothing was checked yet.
    pub verdict: Option<Verdict>,
}

/// What is written to, and which disks that is on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// The directory, or the block device.
    pub path: String,
    /// The filesystem's type and where it is mounted; absent of a block device.
    pub filesystem: Option<MountedFilesystem>,
    /// Size of the block device in bytes, or of that which the filesystem is on; 0 if it is on none or on several.
    pub device_bytes: u64,
    /// The disks below it.
    pub disks: Vec<DiskIdentity>,
}

/// A filesystem, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MountedFilesystem {
    /// Type: `ext4`.
    pub kind: String,
    /// Where it is mounted.
    pub mount_point: String,
}

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Strategy {
    /// What makes a write durable. One that is not meant to is a control: a setup that never sees a loss shows nothing.
    pub method: SyncMethod,
    /// Bytes of a write.
    pub block_bytes: u32,
    /// Blocks that are written over and over.
    pub blocks: u32,
    /// In which order.
    pub order: Order,
}

/// In which order blocks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One behind the other.
    Sequential,
    /// Far from each other, all of them before any a second time.
    Scattered,
}

/// Power cuts of a disk, and how many of them lost something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Cuts, commanded or declared, after which the disk was checked.
    pub cuts: u64,
    /// Of them, cuts after which an acknowledged write was not there.
    pub losing: u64,
    /// Checks that found a loss without a known cut.
    pub suspicious: u64,
    /// With 95% confidence no larger share of cuts loses something (Clopper and Pearson, one-sided); absent without a cut.
    pub losing_at_most: Option<f64>,
}

/// What is known of the power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// The witness's own command cut the power.
    Commanded,
    /// The operator says that the power was cut.
    Declared,
    /// The machine started anew, and nobody says why.
    Restart,
    /// None, as far as is known.
    None,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// After a cut or a restart everything that was promised is there.
    Kept,
    /// After a power cut something that was promised is not there.
    Lost,
    /// Something is not there, and no power cut is known of.
    Suspicious,
    /// Somebody else wrote there: nothing can be said.
    Changed,
    /// Everything is there, and there was no cut: that shows nothing.
    NoCut,
    /// Nothing was acknowledged that could be missing.
    NothingPromised,
}

/// Why a check after a cut or a restart is not one more [cut](Tally::cuts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Uncounted {
    /// The machine started anew, and nobody says that its power was cut.
    Restart,
    /// The writer had said that it ends: no write was under way.
    WriterEnded,
    /// The writer's connection was closed in good order, as a shutdown does it and a power cut cannot.
    WriterGone,
    /// The witness has started anew since the last write, and does not know how the writer ended.
    WitnessAway,
    /// It was written by a strategy that promises nothing, as a control.
    Control,
    /// Another stream of the same disk has counted this cut.
    CountedBefore,
}

/// What was found on a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// What it comes to.
    pub outcome: Outcome,
    /// Why, as far as the power is concerned.
    pub cut: Cut,
    /// Whether the writer had said that it ends: then no write was under way when the power was cut.
    pub writer_had_ended: bool,
    /// Whether it counts among the [cuts](Tally::cuts).
    pub is_counted: bool,
    /// Why not, of what was kept, lost or suspicious.
    #[serde(default)]
    pub uncounted: Option<Uncounted>,
    /// The run of the writer, in hexadecimal.
    pub run: String,
    /// When it was checked, by the witness's clock, in RFC 3339.
    pub checked: String,
    /// Writes that were acknowledged.
    pub acknowledged: u64,
    /// When the last was, by the witness's clock; absent if none was.
    pub last_acknowledged: Option<String>,
    /// Blocks that were promised, and looked at.
    pub promised: u64,
    /// Blocks of them that do not have what was promised.
    pub lost: u64,
    /// The first of them, the last acknowledged first.
    pub losses: Vec<Loss>,
}

/// A block that does not have what was promised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Its number.
    pub block: u32,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// The write that was promised: the how manyth of its run.
    pub promised: u64,
    /// What is there.
    pub found: Found,
    /// When the write was acknowledged, by the witness's clock.
    pub acknowledged: String,
    /// How many seconds that was before the last acknowledgement.
    pub seconds_before_last: f64,
}

/// What is in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// What was promised.
    Kept,
    /// An earlier write of the same run, by its number.
    Older(u64),
    /// A write of an earlier run.
    EarlierRun,
    /// A whole block that the witness never heard of: of a later run, or a later write of this one.
    Foreign,
    /// Zeros.
    Zeros,
    /// Neither a whole block nor zeros: torn, or something else.
    Damaged,
    /// The disk cannot read it.
    Unreadable,
    /// The file does not reach so far, or is not there.
    Missing,
}

impl Outcome {
    /// Of a check that compared so many blocks, of which some are lost and some foreign.
    pub fn of(cut: Cut, promised: u64, lost: u64, foreign: u64) -> Outcome {
        match cut {
            _ if promised == 0 => Outcome::NothingPromised,
            _ if foreign > 0 => Outcome::Changed,
            Cut::Commanded | Cut::Declared if lost > 0 => Outcome::Lost,
            Cut::Restart | Cut::None if lost > 0 => Outcome::Suspicious,
            Cut::None => Outcome::NoCut,
            Cut::Commanded | Cut::Declared | Cut::Restart => Outcome::Kept,
        }
    }
}

impl Tally {
    /// With one more check, and why it is not a cut of its own. What would count for more than was shown makes the bound
    /// better than it is: a cut of an idle disk, or one cut twice. `has_lost`: whether the cut that was counted before has
    /// counted as a loss.
    ///
    /// Returns whether it is one more cut. Of a control nothing is counted.
    pub fn count(
        &mut self,
        outcome: Outcome,
        uncounted: Option<Uncounted>,
        has_lost: bool,
    ) -> bool {
        let is_cut = matches!(outcome, Outcome::Kept | Outcome::Lost) && uncounted.is_none();
        let is_loss = match uncounted {
            None => outcome == Outcome::Lost,
            Some(Uncounted::CountedBefore) => outcome == Outcome::Lost && !has_lost,
            Some(_) => false,
        };
        self.cuts += u64::from(is_cut);
        self.losing += u64::from(is_loss);
        self.suspicious += u64::from(outcome == Outcome::Suspicious && uncounted.is_none());
        self.losing_at_most = losing_at_most(self.losing, self.cuts);
        is_cut
    }
}

impl Target {
    /// Why the other cannot be the same target; `None` if it can be.
    pub fn difference(&self, now: &Target) -> Option<String> {
        let filesystem = |target: &Target| match &target.filesystem {
            Some(one) => format!("{} mounted on {}", one.kind, one.mount_point),
            None => "a block device".to_owned(),
        };
        if self.filesystem != now.filesystem {
            let (then, now) = (filesystem(self), filesystem(now));
            return Some(format!("it was {then}, and is {now}"));
        }
        if !self.is_on_the_same_disks(now) {
            let (then, now) = (self.disks_text(), now.disks_text());
            return Some(format!("it was on {then}, and is on {now}"));
        }
        let (then, now) = (self.device_bytes, now.device_bytes);
        (then != now).then(|| format!("its device had {then} bytes, and has {now}"))
    }

    /// Whether the disks below can be the same, in any order.
    pub fn is_on_the_same_disks(&self, other: &Target) -> bool {
        let has =
            |disks: &[DiskIdentity], one: &DiskIdentity| disks.iter().any(|disk| disk.is_same(one));
        self.disks.len() == other.disks.len()
            && self.disks.iter().all(|one| has(&other.disks, one))
            && other.disks.iter().all(|one| has(&self.disks, one))
    }

    /// Whether what a witness says of this target says something of the disks of another: they are the same by serial number
    /// or world-wide name, or have neither and are the same place.
    pub fn is_evidence_for(&self, other: &Target) -> bool {
        match (self.unique(), other.unique()) {
            (Some(_), Some(_)) => self.is_on_the_same_disks(other),
            (None, None) => self.path == other.path && self.difference(other).is_none(),
            _ => false,
        }
    }

    /// What the disks below are known by, if each has a serial number or a name of its own.
    pub fn unique(&self) -> Option<String> {
        let mut names: Vec<&str> = self
            .disks
            .iter()
            .map(DiskIdentity::unique)
            .collect::<Option<_>>()?;
        names.sort_unstable();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

impl WitnessDocument {
    /// Of this version of the program.
    pub fn new(witnessed: Vec<Witnessed>) -> WitnessDocument {
        WitnessDocument {
            schema: WITNESS_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            witnessed,
        }
    }

    /// The document in this text; an error says what is wrong with it.
    pub fn parse(text: &str) -> Result<WitnessDocument, String> {
        let document: WitnessDocument = serde_json::from_str(text)
            .map_err(|error| format!("it is no verdict of a witness: {error}"))?;
        if document.schema != WITNESS_SCHEMA {
            let schema = document.schema;
            return Err(format!(
                "its schema is '{schema}', and this program reads {WITNESS_SCHEMA}"
            ));
        }
        Ok(document)
    }

    /// As JSON text.
    pub fn to_json(&self) -> String {
        // Numbers and texts only: serialisation cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// The JSON Schema of the document.
pub fn witness_schema() -> String {
    let schema = schemars::schema_for!(WitnessDocument);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests;
