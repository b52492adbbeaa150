//! Whether each setting survives power cuts that tear pages.
//!
//! The database runs on a recorded filesystem, writes pages all the time, and is recovered from what the
//! power could have left: some of the writes since the last flush, torn at 512 bytes. What it cannot recover
//! is *damaged*: worse than a lost transaction, since nothing of the database can be read any more.

use std::time::Duration;

use landfall_prove::scratch_fs::{FilesystemSpec, Kind};
use landfall_prove::{Plan, Silent, prove as prove_one};
use landfall_recorder::crash::Model;
use landfall_results::proof::{Outcome, ProofResults, Violation, ViolationCount, summary_text};

use super::TornProof;
use crate::{Error, Notice, Progress, Site, Stop, proof};

/// Transactions that are sent: until pages have been written for a while.
const TRANSACTIONS: u64 = 600;

/// One setting.
struct Case {
    name: &'static str,
    /// Options with which ext4 is mounted.
    mounted: &'static str,
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
/// So that Landfall's store has leaves to write, and a checkpoint, all the time.
const LEAVES: [(&str, &str); 4] = [
    ("in-place", "yes"),
    ("segment", "64K"),
    ("rows", "1000"),
    ("clients", "8"),
];
const LEAF: (&str, &str) = ("leaf", "4K");
const MEMORY: (&str, &str) = ("memory", "16K");
/// Of several blocks of the filesystem: a journal of data keeps one block whole.
const LARGE_LEAF: (&str, &str) = ("leaf", "16K");
const LARGE_MEMORY: (&str, &str) = ("memory", "64K");
const DIRECT: (&str, &str) = ("innodb_flush_method", "O_DIRECT");
const BUFFERED: (&str, &str) = ("innodb_flush_method", "fsync");
/// As published: a commit waits for no sync.
const LAX: (&str, &str) = ("innodb_flush_log_at_trx_commit", "0");
const ON: (&str, &str) = ("innodb_doublewrite", "ON");
const OFF: (&str, &str) = ("innodb_doublewrite", "OFF");

static CASES: [Case; 13] = [
    Case {
        name: "doublewrite, O_DIRECT",
        mounted: "",
        subject: "mariadb",
        settings: &[ON, DIRECT],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "nothing, O_DIRECT",
        mounted: "",
        subject: "mariadb",
        settings: &[OFF, DIRECT],
        model: Model::Subset,
        protected: false,
    },
    Case {
        name: "nothing, buffered",
        mounted: "",
        subject: "mariadb",
        settings: &[OFF, BUFFERED],
        model: Model::Subset,
        protected: false,
    },
    Case {
        name: "data=journal, O_DIRECT",
        mounted: "data=journal",
        subject: "mariadb",
        settings: &[OFF, DIRECT],
        model: Model::Flushed,
        protected: true,
    },
    Case {
        name: "data=journal, O_DIRECT, commits not synced",
        mounted: "data=journal",
        subject: "mariadb",
        settings: &[OFF, DIRECT, LAX],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "data=journal, buffered",
        mounted: "data=journal",
        subject: "mariadb",
        settings: &[OFF, BUFFERED],
        model: Model::Flushed,
        protected: true,
    },
    Case {
        name: "full_page_writes",
        mounted: "",
        subject: "postgres",
        settings: &[("full_page_writes", "on")],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "nothing",
        mounted: "",
        subject: "postgres",
        settings: &[("full_page_writes", "off")],
        model: Model::Subset,
        protected: false,
    },
    Case {
        name: "protection=shadow",
        mounted: "",
        subject: "landfall-store",
        settings: &[("protection", "shadow"), LEAF, MEMORY],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "protection=doublewrite",
        mounted: "",
        subject: "landfall-store",
        settings: &[("protection", "doublewrite"), LEAF, MEMORY],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "protection=image",
        mounted: "",
        subject: "landfall-store",
        settings: &[("protection", "image"), LEAF, MEMORY],
        model: Model::Subset,
        protected: true,
    },
    Case {
        name: "protection=none",
        mounted: "",
        subject: "landfall-store",
        settings: &[("protection", "none"), LEAF, MEMORY],
        model: Model::Subset,
        protected: false,
    },
    Case {
        name: "protection=none, data=journal",
        mounted: "data=journal",
        subject: "landfall-store",
        settings: &[("protection", "none"), LARGE_LEAF, LARGE_MEMORY],
        model: Model::Flushed,
        protected: true,
    },
];

impl Case {
    fn settings(&self) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
        let load = match self.subject {
            "postgres" => &CHECKPOINTS[..],
            "landfall-store" => &LEAVES[..],
            _ => &WRITING[..],
        };
        self.settings.iter().chain(load)
    }
}

/// Proves each setting, with at most `states` crash states each; adds to the notices what failed.
pub(super) fn prove(
    site: &Site,
    states: usize,
    stop: &Stop,
    progress: &mut dyn Progress,
    notices: &mut Vec<Notice>,
) -> Result<Vec<TornProof>, Error> {
    let mut proofs = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        let what = format!("cutting the power on {} with {}", case.subject, case.name);
        progress.doing(&what, index, CASES.len(), Duration::ZERO);
        proofs.push(one(site, case, states, stop, notices)?);
    }
    Ok(proofs)
}

fn one(
    site: &Site,
    case: &Case,
    states: usize,
    stop: &Stop,
    notices: &mut Vec<Notice>,
) -> Result<TornProof, Error> {
    let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
    let settings: Vec<(String, String)> = case.settings().map(own).collect();
    let filesystem_spec = FilesystemSpec::plain(Kind::Ext4).mounted(case.mounted);
    let blank = TornProof {
        name: case.name.to_owned(),
        filesystem_spec: filesystem_spec.clone(),
        model: case.model.to_string(),
        subject: case.subject.into(),
        protected: case.protected,
        states: 0,
        damaged: 0,
        is_least: false,
        wrong: 0,
        losing: 0,
        exercised: Vec::new(),
        said: None,
        again: again(case, &filesystem_spec, states),
        not_proven: None,
    };
    let not_proven = |why: String| TornProof {
        not_proven: Some(why),
        ..blank.clone()
    };
    let proven = Plan::named(case.subject, &settings, filesystem_spec).and_then(|plan| {
        let plan = Plan {
            directory: site.directory().to_owned(),
            transactions: TRANSACTIONS,
            states,
            model: case.model,
            again: blank.again.clone(),
            ..plan
        };
        prove_one(&plan, stop, &mut Silent)
    });
    Ok(match proven {
        Ok(proof) => of(&proof.results, &blank),
        // It is not installed, say: a row that says so, and what was timed stands.
        Err(error) => {
            let name = format!("{} with {}", case.subject, case.name);
            not_proven(proof::reason(error, &name, stop, notices)?)
        }
    })
}

/// The command that makes the proof again.
fn again(case: &Case, filesystem: &FilesystemSpec, states: usize) -> String {
    let set = case
        .settings()
        .map(|(key, value)| format!(" --set {key}={value}"));
    format!(
        "landfall prove {}{} --fs {filesystem} --transactions {TRANSACTIONS} --states {states} --model {}",
        case.subject,
        set.collect::<String>(),
        case.model
    )
}

fn of(proof: &ProofResults, blank: &TornProof) -> TornProof {
    let all = |these: [Violation; 2]| {
        let counted = proof.violations.iter();
        counted.filter(move |count| these.contains(&count.violation))
    };
    let most = |these| all(these).max_by_key(|count| count.states);
    let kinds = [
        [Violation::Damaged, Violation::Filesystem],
        [Violation::HalfApplied, Violation::Invented],
    ];
    let [damaged, wrong] = kinds.map(most);
    // A state may have both failures or one of them; more states than fail in any way there cannot be.
    let is_least = |these| {
        let most = most(these).map_or(0, |count| count.states);
        all(these).count() > 1 && most < proof.failing_states
    };
    let states = |count: Option<&ViolationCount>| count.map_or(0, |count| count.states);
    TornProof {
        subject: proof.subject.clone(),
        states: proof.coverage.checked,
        damaged: states(damaged),
        is_least: kinds.into_iter().any(is_least),
        wrong: states(wrong),
        losing: proof.losing_states,
        exercised: proof.exercised.clone(),
        said: damaged.or(wrong).map(|count| count.detail.clone()),
        not_proven: (proof.outcome() == Outcome::NotProven).then(|| summary_text::verdict(proof)),
        ..blank.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torn::fixtures::torn_results;
    use landfall_results::proof::fixtures::failing;

    #[test]
    fn two_kinds_of_damage_give_the_least_number_of_states() {
        let mut proof = failing();
        let of_kind = |violation, states| ViolationCount {
            violation,
            states,
            ..failing().violations.remove(0)
        };
        let blank = torn_results().proofs.remove(0);
        proof.failing_states = 9;
        proof.violations = vec![of_kind(Violation::Damaged, 5)];
        let torn = of(&proof, &blank);
        assert_eq!((torn.damaged, torn.is_least), (5, false));
        proof.violations.push(of_kind(Violation::Filesystem, 4));
        let torn = of(&proof, &blank);
        assert_eq!((torn.damaged, torn.is_least), (5, true));
        proof.failing_states = 5;
        assert!(!of(&proof, &blank).is_least, "no other state failed");
    }

    #[test]
    fn names_differ_and_a_proof_is_made_again_with_all_its_settings() {
        let mut names: Vec<_> = CASES.iter().map(|case| case.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CASES.len());
        let image = CASES.iter().find(|case| case.name == "protection=image");
        let command = again(image.unwrap(), &FilesystemSpec::plain(Kind::Ext4), 200);
        assert_eq!(
            command,
            "landfall prove landfall-store --set protection=image --set leaf=4K --set memory=16K --set in-place=yes --set segment=64K --set rows=1000 --set clients=8 --fs ext4 --transactions 600 --states 200 --model subset"
        );
    }

    #[test]
    fn every_store_is_one_that_can_be_had() {
        let stores = CASES.iter().filter(|case| case.subject == "landfall-store");
        for case in stores {
            let own = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
            let settings: Vec<_> = case.settings().map(own).collect();
            Plan::named(case.subject, &settings, FilesystemSpec::plain(Kind::Ext4)).unwrap();
        }
    }
}
