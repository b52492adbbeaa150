//! Whether each setting survives power cuts that tear pages.
//!
//! The database runs on a recorded filesystem, writes pages all the time, and is recovered from what the
//! power could have left: some of the writes since the last flush, torn at 512 bytes. What it cannot recover
//! is *damaged*: worse than a lost transaction, since nothing of the database can be read any more.

use std::time::Duration;

use landfall_recorder::Options;
use landfall_recorder::crash::Model;

use super::TornProof;
use crate::prove::{
    Breach, BreachCount, Outcome, Plan, ProofResults, prove as prove_one, sentences, subject,
};
use crate::scratch_fs::{BackingDevice, FilesystemSpec};
use crate::{Error, Progress, Site, Stop};

/// Transactions that are sent: until pages have been written for a while.
const TRANSACTIONS: u64 = 600;
/// A device only to see whether one can be made.
const TRIAL_BYTES: u64 = 16 << 20;

/// One setting.
struct Case {
    name: &'static str,
    recipe: &'static str,
    subject: &'static str,
    settings: &'static [(&'static str, &'static str)],
    /// On data=journal a page is torn where the journal was committed in the middle of it, whatever the disk
    /// does: what was flushed then suffices to see it.
    model: Model,
    protected: bool,
}

/// So that MariaDB writes pages all the time: no dirty one may stay in memory.
const WRITING: [(&str, &str); 4] = [
    ("innodb_max_dirty_pages_pct", "0"),
    ("innodb_max_dirty_pages_pct_lwm", "0"),
    ("rows", "1000"),
    ("clients", "8"),
];
/// So that PostgreSQL has a checkpoint all the time.
const CHECKPOINTS: [(&str, &str); 3] =
    [("max_wal_size", "2MB"), ("rows", "1000"), ("clients", "8")];
const DIRECT: (&str, &str) = ("innodb_flush_method", "O_DIRECT");
const BUFFERED: (&str, &str) = ("innodb_flush_method", "fsync");
/// As published: a commit waits for no sync.
const LAX: (&str, &str) = ("innodb_flush_log_at_trx_commit", "0");
const ON: (&str, &str) = ("innodb_doublewrite", "ON");
const OFF: (&str, &str) = ("innodb_doublewrite", "OFF");

static CASES: [Case; 8] = [
    Case {
        name: "doublewrite, O_DIRECT",
        recipe: "ext4",
        subject: "mariadb",
        settings: &[ON, DIRECT],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "nothing, O_DIRECT",
        recipe: "ext4",
        subject: "mariadb",
        settings: &[OFF, DIRECT],
        model: Model::Subset,
        protected: false,
    },
    Case {
        name: "nothing, buffered",
        recipe: "ext4",
        subject: "mariadb",
        settings: &[OFF, BUFFERED],
        model: Model::Subset,
        protected: false,
    },
    Case {
        name: "data=journal, O_DIRECT",
        recipe: "ext4,data=journal",
        subject: "mariadb",
        settings: &[OFF, DIRECT],
        model: Model::Flushed,
        protected: true,
    },
    Case {
        name: "data=journal, O_DIRECT, commits not synced",
        recipe: "ext4,data=journal",
        subject: "mariadb",
        settings: &[OFF, DIRECT, LAX],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "data=journal, buffered",
        recipe: "ext4,data=journal",
        subject: "mariadb",
        settings: &[OFF, BUFFERED],
        model: Model::Flushed,
        protected: true,
    },
    Case {
        name: "full_page_writes",
        recipe: "ext4",
        subject: "postgres",
        settings: &[("full_page_writes", "on")],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "nothing",
        recipe: "ext4",
        subject: "postgres",
        settings: &[("full_page_writes", "off")],
        model: Model::Subset,
        protected: false,
    },
];

impl Case {
    fn settings(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let load = match self.subject {
            "postgres" => &CHECKPOINTS[..],
            _ => &WRITING[..],
        };
        self.settings.iter().chain(load)
    }
}

/// Refused where nothing can be proven.
pub(super) fn require(site: &Site) -> Result<(), Error> {
    let options = Options {
        directory: site.directory().to_owned(),
        ..Options::new(TRIAL_BYTES)
    };
    BackingDevice::recorder(&options, 0)?.close()
}

/// Proves each setting, with at most `states` crash states each.
pub(super) fn prove(
    site: &Site,
    states: usize,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Vec<TornProof>, Error> {
    let mut proofs = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        let what = format!("cutting the power on {} with {}", case.subject, case.name);
        progress.doing(&what, index, CASES.len(), Duration::ZERO);
        proofs.push(one(site, case, states, stop)?);
    }
    Ok(proofs)
}

fn one(site: &Site, case: &Case, states: usize, stop: &Stop) -> Result<TornProof, Error> {
    let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let settings: Vec<(String, String)> = case.settings().map(own).collect();
    let recipe: FilesystemSpec = case.recipe.parse().map_err(Error::Usage)?;
    let blank = TornProof {
        name: case.name.to_owned(),
        recipe: case.recipe.to_owned(),
        model: case.model.to_string(),
        subject: case.subject.to_owned(),
        protected: case.protected,
        states: 0,
        damaged: 0,
        wrong: 0,
        losing: 0,
        said: None,
        again: again(case, states),
        not_proven: None,
    };
    let not_proven = |why: String| TornProof {
        not_proven: Some(why),
        ..blank.clone()
    };
    let subject = subject::named(case.subject, &settings)?;
    let plan = Plan {
        directory: site.directory().to_owned(),
        transactions: TRANSACTIONS,
        states,
        model: case.model,
        again: blank.again.clone(),
        ..Plan::new(subject, recipe)
    };
    let results = match prove_one(&plan, "", stop, &mut crate::Silent) {
        Ok(results) => results,
        // It is not installed, say: a row that says so.
        Err(Error::Refused(why) | Error::Usage(why)) => return Ok(not_proven(why)),
        Err(error) => return Err(error),
    };
    Ok(match results.proofs().next() {
        Some(proof) => of(proof, &blank),
        None => not_proven("no state was checked".to_owned()),
    })
}

/// The command that makes the proof again.
fn again(case: &Case, states: usize) -> String {
    let set = case
        .settings
        .iter()
        .map(|(key, value)| format!(" --set {key}={value}"));
    format!(
        "landfall prove {}{} --fs {} --transactions {TRANSACTIONS} --states {states}",
        case.subject,
        set.collect::<String>(),
        case.recipe
    )
}

fn of(proof: &ProofResults, blank: &TornProof) -> TornProof {
    let of = |these: &[Breach]| {
        let counted = proof.breaches.iter();
        counted
            .filter(|count| these.contains(&count.breach))
            .max_by_key(|count| count.states)
    };
    let damaged = of(&[Breach::Damaged, Breach::Filesystem]);
    let wrong = of(&[Breach::HalfApplied, Breach::Invented]);
    let states = |count: Option<&BreachCount>| count.map_or(0, |count| count.states);
    TornProof {
        subject: proof.subject.clone(),
        states: proof.coverage.checked,
        damaged: states(damaged),
        wrong: states(wrong),
        losing: proof.losing_states,
        said: damaged.or(wrong).map(|count| count.detail.clone()),
        not_proven: (proof.outcome() == Outcome::NotProven).then(|| sentences::verdict(proof)),
        ..blank.clone()
    }
}
