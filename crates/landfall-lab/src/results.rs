//! The results document: one versioned JSON text from which everything else is made.

use std::path::Path;

use landfall_os::{Filesystem, Host};
use landfall_results::Series;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::advice::{is_same_machine, is_same_storage};
use crate::claim::ClaimResult;
use crate::configuration::Measurements;
use crate::torn::{TornProof, TornResults};
use crate::{
    Error, Findings, Found, Notice, SiteDescription, SiteKind, Weight, canonical_directory, facts,
};
use landfall_results::proof::{Outcome, ProofResults};

/// Name and version of the document's schema. The number is raised when a reader of the old one would
/// misunderstand the new one.
pub const SCHEMA_NAME: &str = "landfall-results/4";

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
    pub experiments: Vec<Found>,
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
    /// What is known of a directory before anything is measured in it. Nothing is written there, so it may be one that
    /// cannot be written. `command` is what a user types to repeat it.
    pub fn unmeasured(directory: &Path, command: &str) -> Result<Results, Error> {
        let directory = canonical_directory(directory)?;
        let filesystem = Filesystem::of(&directory).map_err(Error::io(format!(
            "cannot find out what {} stands on",
            directory.display()
        )))?;
        Ok(Results {
            schema: SCHEMA_NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command.to_owned(),
            started: jiff::Timestamp::now().to_string(),
            seconds: 0.0,
            host: Host::this(),
            directory: directory.display().to_string(),
            site: SiteDescription::default(),
            notices: facts::notices(&filesystem),
            filesystem,
            experiments: Vec::new(),
        })
    }

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

    /// What an experiment of this kind found: of several documents that were merged, all of them, the newest first.
    pub fn all<T: Findings>(&self) -> impl Iterator<Item = &T> {
        self.experiments.iter().filter_map(Found::of)
    }

    /// The first of them, if it was run.
    pub fn first<T: Findings>(&self) -> Option<&T> {
        self.all().next()
    }

    /// Whether an experiment of this kind measured something.
    pub fn has_measured<T: Findings>(&self) -> bool {
        let mut experiments = self.experiments.iter();
        experiments.any(|one| one.of::<T>().is_some() && !one.is_empty())
    }

    /// What experiments found, without proofs.
    pub fn findings(&self) -> impl Iterator<Item = &dyn Findings> {
        self.experiments.iter().filter_map(Found::findings)
    }

    /// What was measured of databases, by all experiments that did.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurements> {
        self.findings().filter_map(Findings::measurements)
    }

    /// All proofs.
    pub fn proofs(&self) -> impl Iterator<Item = &ProofResults> {
        self.experiments.iter().filter_map(Found::proof)
    }

    /// Whether everything that an earlier document has was done again for this one: every experiment in the same place of the
    /// same machine, of databases with the same settings, and no loss less; every proof of the same in the same way, in as many
    /// states, and with no loss less.
    pub fn replaces(&self, earlier: &Results) -> bool {
        let is_place = (&self.directory, &self.site) == (&earlier.directory, &earlier.site)
            && is_same_machine(&self.host, &earlier.host)
            // A device that was made for it has another name each time.
            && (self.site.kind != SiteKind::Directory
                || is_same_storage(&self.filesystem, &earlier.filesystem));
        earlier.experiments.iter().all(|old| {
            self.experiments
                .iter()
                .any(|new| match (old.proof(), new.proof()) {
                    (Some(old), Some(new)) => {
                        is_made_alike(old, new)
                            && old.coverage.checked <= new.coverage.checked
                            && is_no_milder(old, new)
                    }
                    _ => is_place && was_done_again(old, new),
                })
        })
    }

    /// Whether there is nothing but proofs, which concern a filesystem that was made for them and no
    /// directory of the user's.
    pub fn has_only_proofs(&self) -> bool {
        !self.experiments.is_empty() && self.findings().next().is_none()
    }

    /// The claims of all experiments.
    pub fn claims(&self) -> impl Iterator<Item = &ClaimResult> {
        self.findings().flat_map(Findings::claims)
    }

    /// Whether everything written here is lost with the power, whatever was asked of the system.
    pub fn is_in_memory(&self) -> bool {
        facts::is_in_memory(&self.filesystem)
    }

    /// Whether a notice puts durability itself in doubt.
    pub fn is_in_doubt(&self) -> bool {
        self.notices
            .iter()
            .any(|notice| notice.weight == Weight::Danger)
    }

    /// Whether nothing could be measured: this system supports none of the plan's strategies.
    pub fn is_empty(&self) -> bool {
        self.experiments.iter().all(Found::is_empty)
    }

    /// Code of the notice that an experiment failed when another had found something, or a proof of what was timed.
    pub(crate) const FAILED: &'static str = "failed";
    /// Code of the notice that an experiment was refused, of several.
    pub(crate) const NOT_MEASURED: &'static str = "not-measured";
    /// Code of the notice that a filesystem has no journal, though it could have one.
    pub(crate) const NO_JOURNAL: &'static str = "no-journal";
    /// Code of the notice that something which was made for the run could not be removed.
    pub(crate) const LEFT_BEHIND: &'static str = "left-behind";

    /// Whether an experiment failed, of several, or a proof of what was timed.
    pub fn has_failed(&self) -> bool {
        self.has_notice(Self::FAILED)
    }

    /// Whether something that was made for the run could not be removed.
    pub fn has_left_something(&self) -> bool {
        self.has_notice(Self::LEFT_BEHIND)
    }

    /// What failed or was left behind, of a run that has results all the same.
    pub fn failures(&self) -> impl Iterator<Item = &Notice> {
        let codes = [Self::FAILED, Self::LEFT_BEHIND];
        let notices = self.notices.iter();
        notices.filter(move |notice| codes.contains(&notice.code.as_str()))
    }

    fn has_notice(&self, code: &str) -> bool {
        self.notices.iter().any(|notice| notice.code == code)
    }

    /// Whether the run was too noisy to conclude anything from: of most strategies that were measured
    /// more than once, the interval is wider than the figure itself.
    pub fn is_too_noisy(&self) -> bool {
        // By the figure that says how fast it is: that of a part alone may have two humps on a quiet machine too.
        let widths: Vec<f64> = self
            .experiments
            .iter()
            .flat_map(Found::series)
            .filter(|series| series.trials.len() > 1)
            .filter_map(Series::headline)
            .map(|estimate| estimate.relative_width())
            .collect();
        let wide = widths.iter().filter(|width| **width > 1.0).count();
        wide * 2 > widths.len()
    }
}

impl Found {
    /// Whether it found nothing: no experiment measured something, and no proof tried a state.
    pub fn is_empty(&self) -> bool {
        match self.proof() {
            Some(proof) => proof.coverage.checked == 0,
            None => self.findings().is_none_or(Findings::is_empty),
        }
    }
}

/// Whether an experiment measured again what another one had; if it measured nothing, it did not. Of writes to files the newest
/// run says what the disk is like now, but for what was proven of them; of databases each speaks of the settings that it was
/// told.
fn was_done_again(old: &Found, new: &Found) -> bool {
    if new.is_empty() && !old.is_empty() {
        return false;
    }
    let is_measured = |old: &Series, new: &Series| old.trials.is_empty() || !new.trials.is_empty();
    let has_series = |series: &Series| {
        let mut all = new.series().iter();
        all.any(|one| {
            one.key == series.key && is_measured(series, one) && is_no_milder_series(series, one)
        })
    };
    let is_of_databases = old
        .findings()
        .is_some_and(|all| all.measurements().is_some());
    let mut needed = old.series().iter();
    let has_all = needed.all(|one| {
        let is_needed = is_of_databases || one.proven().is_some();
        !is_needed || has_series(one)
    });
    let has_proofs = match (old.of::<TornResults>(), new.of::<TornResults>()) {
        (Some(old), Some(new)) => old
            .proofs
            .iter()
            .all(|old| new.proofs.iter().any(|new| is_no_milder_torn(old, new))),
        _ => true,
    };
    old.name() == new.name() && has_all && has_proofs
}

/// Whether a newer series was proven on the same filesystem if the older one was, and lost something if that did.
fn is_no_milder_series(old: &Series, new: &Series) -> bool {
    let Some(old) = old.proven() else { return true };
    new.proven().is_some_and(|new| {
        new.filesystem_spec == old.filesystem_spec && (new.losing > 0 || old.losing == 0)
    })
}

/// Whether a newer proof is of the same setting, and broke every promise that the older one did.
fn is_no_milder_torn(old: &TornProof, new: &TornProof) -> bool {
    let is_same = (&old.subject, &old.filesystem_spec, &old.model)
        == (&new.subject, &new.filesystem_spec, &new.model);
    let counts = |proof: &TornProof| [proof.damaged, proof.wrong, proof.losing];
    let pairs = counts(old).into_iter().zip(counts(new));
    let is_as_bad = pairs.into_iter().all(|(old, new)| old == 0 || new > 0);
    // How many distinct states there are differs a little from run to run.
    let is_proven =
        new.not_proven.is_none() && new.states.saturating_mul(10) >= old.states.saturating_mul(9);
    is_same && (old.not_proven.is_some() || (is_proven && is_as_bad))
}

/// Whether two proofs are of the same, and tried states of the same kind.
fn is_made_alike(old: &ProofResults, new: &ProofResults) -> bool {
    let made = |proof: &ProofResults| {
        (
            proof.subject.clone(),
            proof.filesystem_spec.clone(),
            proof.model.clone(),
            proof.atomic_bytes,
            proof.faults.clone(),
            proof.creation,
            proof.writeback,
            proof.shard,
            // What the cuts came to differs from run to run.
            proof.cluster.as_ref().map(|of| (of.nodes, of.rolling)),
        )
    };
    made(old) == made(new)
}

/// Whether the newer proof broke every promise that the older one did: what was lost once is not undone by luck.
fn is_no_milder(old: &ProofResults, new: &ProofResults) -> bool {
    let is_broken = |proof: &ProofResults, violation| {
        let mut broken = proof.violations.iter();
        broken.any(|count| count.violation == violation)
    };
    let as_bad = (old.violations.iter()).all(|count| is_broken(new, count.violation));
    as_bad
        && match old.outcome() {
            Outcome::LostSomething => new.outcome() == Outcome::LostSomething,
            Outcome::LostNothing => new.outcome() != Outcome::NotProven,
            Outcome::NotProven => true,
        }
}

/// The JSON Schema of the document.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(Results);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}
