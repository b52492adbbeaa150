//! The results document: one versioned JSON text from which everything else is made.

use landfall_os::{Filesystem, Host, Medium};
use landfall_results::Series;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amplify::AmplifyResults;
use crate::binlog::BinlogResults;
use crate::claim::ClaimResult;
use crate::configuration::Measurements;
use crate::stream::StreamResults;
use crate::sync::SyncResults;
use crate::torn::TornResults;
use crate::{Notice, PlanKind, SiteDescription, Weight};
use landfall_results::proof::ProofResults;

/// Name and version of the document's schema. The number is raised when a reader of the old one would
/// misunderstand the new one.
pub const SCHEMA_NAME: &str = "landfall-results/2";

/// Everything that a run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Landfall results")]
pub struct Results {
    /// Name and version of this schema.
    pub schema: String,
    /// Version of the program that made it.
    pub version: String,
    /// The command that repeats the run.
    pub command: String,
    /// When the run began, in UTC (RFC 3339).
    pub started: String,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The machine.
    pub host: Host,
    /// The directory that was measured in.
    pub directory: String,
    /// Whether that directory itself was measured in, or a filesystem that was made for the purpose.
    #[serde(default)]
    pub site: SiteDescription,
    /// What was measured on: what the directory stands on, or the filesystem that was made.
    pub filesystem: Filesystem,
    /// What must be known before a figure is believed, the weightiest first.
    pub notices: Vec<Notice>,
    /// The experiments.
    pub experiments: Vec<Experiment>,
}

/// One experiment's results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "experiment", rename_all = "kebab-case")]
pub enum Experiment {
    /// What does one durable write cost?
    Sync(SyncResults),
    /// How fast can a large state be handed over and made durable?
    Stream(Box<StreamResults>),
    /// What does syncing a growing commit log cost under concurrency, by filesystem?
    Binlog(Box<BinlogResults>),
    /// How many bytes reach the device per request?
    Amplify(Box<AmplifyResults>),
    /// What does protection against torn pages cost, and does it protect?
    Torn(Box<TornResults>),
    /// What does a subject lose when the power is cut?
    Prove(Box<ProofResults>),
}

impl Experiment {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Experiment::Sync(_) => "sync",
            Experiment::Stream(_) => "stream",
            Experiment::Binlog(_) => "binlog",
            Experiment::Amplify(_) => "amplify",
            Experiment::Torn(_) => "torn",
            Experiment::Prove(_) => "prove",
        }
    }

    /// How often everything was measured; `None` of proofs.
    pub fn rounds(&self) -> Option<u32> {
        match self {
            Experiment::Sync(sync) => Some(sync.rounds),
            Experiment::Stream(stream) => Some(stream.rounds),
            Experiment::Binlog(_) | Experiment::Amplify(_) | Experiment::Torn(_) => {
                self.measurements().map(|all| all.rounds)
            }
            Experiment::Prove(_) => None,
        }
    }

    /// Which plan was run; `None` of proofs.
    pub fn plan(&self) -> Option<PlanKind> {
        match self {
            Experiment::Sync(sync) => Some(sync.plan),
            Experiment::Stream(stream) => Some(stream.plan),
            Experiment::Binlog(binlog) => Some(binlog.plan),
            Experiment::Amplify(amplify) => Some(amplify.plan),
            Experiment::Torn(torn) => Some(torn.plan),
            Experiment::Prove(_) => None,
        }
    }

    /// Its claims; `None` of proofs.
    pub(crate) fn claims_mut(&mut self) -> Option<&mut Vec<ClaimResult>> {
        match self {
            Experiment::Sync(sync) => Some(&mut sync.claims),
            Experiment::Stream(stream) => Some(&mut stream.claims),
            Experiment::Binlog(binlog) => Some(&mut binlog.claims),
            Experiment::Amplify(amplify) => Some(&mut amplify.claims),
            Experiment::Torn(torn) => Some(&mut torn.claims),
            Experiment::Prove(_) => None,
        }
    }

    /// What it measured, series by series; nothing of proofs.
    pub fn series(&self) -> &[Series] {
        match self {
            Experiment::Sync(sync) => &sync.series,
            Experiment::Stream(stream) => &stream.series,
            Experiment::Binlog(_) | Experiment::Amplify(_) | Experiment::Torn(_) => {
                self.measurements().map_or(&[], |all| &all.series)
            }
            Experiment::Prove(_) => &[],
        }
    }

    /// What it measured of databases, if that is what it is about.
    pub fn measurements(&self) -> Option<&Measurements> {
        match self {
            Experiment::Binlog(binlog) => Some(&binlog.measurements),
            Experiment::Amplify(amplify) => Some(&amplify.measurements),
            Experiment::Torn(torn) => Some(&torn.measurements),
            Experiment::Sync(_) | Experiment::Stream(_) | Experiment::Prove(_) => None,
        }
    }
}

/// Why a text is no results document.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not of the schema's shape.
    #[error("is not a results document of landfall: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Of a schema that this version does not read.
    #[error("has schema '{0}', and this version of landfall reads '{SCHEMA_NAME}'")]
    OtherSchema(String),
}

impl Results {
    /// The document as JSON text.
    pub fn to_json(&self) -> String {
        // Maps with text keys, numbers and texts only: serialisation cannot fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a document.
    pub fn from_json(text: &str) -> Result<Results, ReadError> {
        #[derive(Deserialize)]
        struct Header {
            schema: String,
        }
        let header: Header = serde_json::from_str(text)?;
        if header.schema != SCHEMA_NAME {
            return Err(ReadError::OtherSchema(header.schema));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The results of experiment `sync`, if it was run.
    pub fn sync(&self) -> Option<&SyncResults> {
        self.experiments
            .iter()
            .find_map(|experiment| match experiment {
                Experiment::Sync(sync) => Some(sync),
                _ => None,
            })
    }

    /// The results of experiment `stream`, if it was run.
    pub fn stream(&self) -> Option<&StreamResults> {
        self.experiments
            .iter()
            .find_map(|experiment| match experiment {
                Experiment::Stream(stream) => Some(stream.as_ref()),
                _ => None,
            })
    }

    /// The results of experiment `binlog`: of several documents that were merged, all of them, the newest first.
    pub fn binlog(&self) -> impl Iterator<Item = &BinlogResults> {
        self.experiments
            .iter()
            .filter_map(|experiment| match experiment {
                Experiment::Binlog(binlog) => Some(binlog.as_ref()),
                _ => None,
            })
    }

    /// The results of experiment `amplify`: of several documents that were merged, all of them, the newest first.
    pub fn amplify(&self) -> impl Iterator<Item = &AmplifyResults> {
        self.experiments
            .iter()
            .filter_map(|experiment| match experiment {
                Experiment::Amplify(amplify) => Some(amplify.as_ref()),
                _ => None,
            })
    }

    /// The results of experiment `torn`: of several documents that were merged, all of them, the newest first.
    pub fn torn(&self) -> impl Iterator<Item = &TornResults> {
        self.experiments
            .iter()
            .filter_map(|experiment| match experiment {
                Experiment::Torn(torn) => Some(torn.as_ref()),
                _ => None,
            })
    }

    /// What was measured of databases, by all experiments that did.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurements> {
        self.experiments.iter().filter_map(Experiment::measurements)
    }

    /// All proofs.
    pub fn proofs(&self) -> impl Iterator<Item = &ProofResults> {
        self.experiments
            .iter()
            .filter_map(|experiment| match experiment {
                Experiment::Prove(proof) => Some(proof.as_ref()),
                _ => None,
            })
    }

    /// Whether everything that an earlier document has was done again for this one: every experiment in the same place,
    /// every proof of the same in as many states.
    pub fn replaces(&self, earlier: &Results) -> bool {
        let is_place = (&self.directory, &self.site) == (&earlier.directory, &earlier.site);
        earlier.experiments.iter().all(|old| {
            self.experiments.iter().any(|new| match (old, new) {
                (Experiment::Prove(old), Experiment::Prove(new)) => {
                    (&old.subject, &old.filesystem_spec) == (&new.subject, &new.filesystem_spec)
                        && old.coverage.checked <= new.coverage.checked
                }
                _ => is_place && old.name() == new.name(),
            })
        })
    }

    /// Whether there is nothing but proofs, which concern a filesystem that was made for them and no
    /// directory of the user's.
    pub fn has_only_proofs(&self) -> bool {
        let is_proof = |experiment| matches!(experiment, &Experiment::Prove(_));
        !self.experiments.is_empty() && self.experiments.iter().all(is_proof)
    }

    /// The claims of all experiments.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimResult> {
        self.experiments
            .iter()
            .flat_map(|experiment| match experiment {
                Experiment::Sync(sync) => sync.claims.as_slice(),
                Experiment::Stream(stream) => &stream.claims,
                Experiment::Binlog(binlog) => &binlog.claims,
                Experiment::Amplify(amplify) => &amplify.claims,
                Experiment::Torn(torn) => &torn.claims,
                Experiment::Prove(_) => &[],
            })
    }

    /// Whether everything written here is lost with the power, whatever was asked of the system.
    pub fn is_in_memory(&self) -> bool {
        self.filesystem.storage().medium == Medium::Memory
            || self
                .notices
                .iter()
                .any(|notice| notice.code == "memory-disk")
    }

    /// Whether a notice puts durability itself in doubt.
    pub fn is_in_doubt(&self) -> bool {
        self.notices
            .iter()
            .any(|notice| notice.weight == Weight::Danger)
    }

    /// Whether nothing could be measured: this system supports none of the plan's strategies.
    pub fn is_empty(&self) -> bool {
        self.experiments.iter().all(|experiment| match experiment {
            Experiment::Prove(proof) => proof.coverage.checked == 0,
            Experiment::Stream(stream) if stream.saving.is_some() => false,
            measured => measured.series().iter().all(|one| one.trials.is_empty()),
        })
    }

    /// Whether the run was too noisy to conclude anything from: of most strategies that were measured
    /// more than once, the interval is wider than the figure itself.
    pub fn is_too_noisy(&self) -> bool {
        // By the figure that says how fast it is: that of a part alone may have two humps on a quiet machine too.
        let widths: Vec<f64> = self
            .experiments
            .iter()
            .flat_map(Experiment::series)
            .filter(|series| series.trials.len() > 1)
            .filter_map(Series::headline)
            .map(|estimate| estimate.relative_width())
            .collect();
        let wide = widths.iter().filter(|width| **width > 1.0).count();
        wide * 2 > widths.len()
    }
}

/// The JSON Schema of the document.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Results);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
