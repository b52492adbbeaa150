//! The prover's teeth: what is known to be safe, and faults that it must catch.
//!
//! The cases are those that other tools and the systems' own documents agree on; each was also seen to
//! come out this way here. A case whose filesystem or call is missing on this machine is refused, not
//! passed over.

use std::path::Path;

use landfall_recorder::Fault;
use landfall_results::proof::Expectation;
use landfall_results::{Notice, Weight};

use crate::{Error, Plan, Progress, Proof, Stop, prove, subjects};

/// One thing that must come out as expected.
pub struct Case {
    /// The subject's name.
    pub subject: &'static str,
    /// Its settings.
    pub settings: &'static [(&'static str, &'static str)],
    /// The filesystem.
    pub filesystem: &'static str,
    /// Whether write-back is injected.
    pub writeback: bool,
    /// What goes wrong besides the power.
    pub faults: &'static [Fault],
    /// Crash states tried at most.
    pub states: usize,
    /// What it must come to.
    pub expected: Expectation,
}

use Expectation::{Loses, LosesNothing, LosesOnlyLast, Tears};

const fn case(
    subject: &'static str,
    settings: &'static [(&'static str, &'static str)],
    filesystem: &'static str,
    expected: Expectation,
) -> Case {
    Case {
        subject,
        settings,
        filesystem,
        writeback: false,
        faults: &[],
        states: 300,
        expected,
    }
}

/// A database, of which a crash state takes longer: a server is started on it.
const fn database(
    subject: &'static str,
    settings: &'static [(&'static str, &'static str)],
    expected: Expectation,
) -> Case {
    Case {
        states: 30,
        ..case(subject, settings, "ext4", expected)
    }
}

/// Everything that is tried.
pub static CASES: &[Case] = &[
    case("files", &[], "ext4", LosesNothing),
    case(
        "files",
        &[("method", "direct+o_dsync"), ("allocation", "overwrite")],
        "ext4",
        LosesNothing,
    ),
    case("files", &[("method", "none")], "ext4", Loses),
    case("files", &[("acknowledge", "early")], "ext4", Loses),
    case(
        "files",
        &[("method", "direct+none"), ("allocation", "overwrite")],
        "ext4",
        Loses,
    ),
    case(
        "files",
        &[("method", "sync_file_range"), ("allocation", "overwrite")],
        "ext4",
        Loses,
    ),
    case("files", &[], "ext4,barrier=0", Loses),
    Case {
        faults: &[Fault::LyingFlush],
        ..case("files", &[], "ext4", Loses)
    },
    case(
        "replace",
        &[("file-sync", "fsync"), ("directory-sync", "yes")],
        "ext4",
        LosesNothing,
    ),
    case(
        "replace",
        &[("file-sync", "fsync"), ("directory-sync", "no")],
        "ext4",
        LosesOnlyLast,
    ),
    case(
        "replace",
        &[("file-sync", "none"), ("directory-sync", "no")],
        "ext4",
        Loses,
    ),
    case("landfall-log", &[], "ext4", LosesNothing),
    case(
        "landfall-log",
        &[("clients", "1")],
        "ext4,data=journal",
        LosesNothing,
    ),
    case("landfall-log", &[("size", "5000")], "xfs", LosesNothing),
    Case {
        faults: &[Fault::LyingFlush],
        ..case("landfall-log", &[], "ext4", Loses)
    },
    case("landfall-state", &[], "ext4", LosesNothing),
    case("landfall-state", &[("parts", "1")], "xfs", LosesNothing),
    Case {
        faults: &[Fault::LyingFlush],
        ..case("landfall-state", &[], "ext4", Loses)
    },
    case("pages", &[], "ext4", Tears),
    case("pages", &[], "xfs", Tears),
    case("pages", &[("atomic", "yes")], "xfs", LosesNothing),
    case(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "ext4",
        LosesNothing,
    ),
    case(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "normal")],
        "ext4",
        Loses,
    ),
    case(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "off")],
        "ext4",
        Loses,
    ),
    case(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "full")],
        "ext4",
        LosesOnlyLast,
    ),
    case(
        "sqlite",
        &[("journal_mode", "delete"), ("synchronous", "extra")],
        "ext4",
        LosesNothing,
    ),
    case(
        "sqlite",
        &[("journal_mode", "persist"), ("synchronous", "full")],
        "ext4",
        LosesNothing,
    ),
    case(
        "sqlite",
        &[("journal_mode", "truncate"), ("synchronous", "full")],
        "ext4",
        LosesNothing,
    ),
    case(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "xfs",
        LosesNothing,
    ),
    case(
        "sqlite",
        &[("journal_mode", "wal"), ("synchronous", "full")],
        "btrfs",
        LosesNothing,
    ),
    database("mariadb", &[], LosesNothing),
    database("mariadb", &[("innodb_flush_log_at_trx_commit", "2")], Loses),
    database("postgres", &[], LosesNothing),
    database("postgres", &[("synchronous_commit", "off")], Loses),
    database("redis", &[("appendfsync", "always")], LosesNothing),
    database("redis", &[("appendfsync", "everysec")], Loses),
    database("etcd", &[], LosesNothing),
    database("etcd", &[("unsafe-no-fsync", "true")], Loses),
    database("lmdb", &[], LosesNothing),
    database("lmdb", &[("sync", "no")], Loses),
    database("redb", &[], LosesNothing),
    database("fjall", &[], LosesNothing),
    // Nobody planted it: the flush that a commit waits for is sync_file_range.
    database("sled", &[], Loses),
];

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
        plan.transactions = TRANSACTIONS;
        plan.states = self.states;
        plan.again = format!("landfall prove {}", self.subject);
        for (key, value) in self.settings {
            plan.again += &format!(" --set {key}={value}");
        }
        for fault in self.faults {
            plan.again += &format!(" --fault {fault}");
        }
        plan.again += &format!(" --fs {} --transactions {TRANSACTIONS}", self.filesystem);
        plan.writeback = self.writeback;
        plan.faults = self.faults.to_vec();
        Ok(plan)
    }
}

/// Transactions of each case.
const TRANSACTIONS: u64 = 24;

/// What came of all cases.
pub struct SelfTest {
    /// Of each what it came to, and what it should.
    pub proofs: Vec<Proof>,
    /// Cases that this machine cannot try.
    pub notices: Vec<Notice>,
}

/// Tries every case; mount points, and what does not fit into memory, go to `directory`, or else to the system's
/// temporary directory.
pub fn run(
    directory: Option<&Path>,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<SelfTest, Error> {
    let mut proofs = Vec::new();
    let mut notices = Vec::new();
    for case in CASES {
        let mut not_tried = |name: &str, why: &str| {
            let text = format!("{name} on {} was not tried: {why}.", case.filesystem);
            notices.push(Notice::new("not-tried", Weight::Warning, text));
        };
        if !subjects::list().any(|known| known.name == case.subject) {
            not_tried(case.subject, "it is left out of this build");
            continue;
        }
        let plan = case.plan(directory)?;
        match prove(&plan, stop, progress) {
            Ok(mut proof) => {
                proof.results.expected = Some(case.expected);
                proofs.push(proof);
            }
            // Where not even the first can be tried, nothing can.
            Err(Error::Refused(why) | Error::Subject(why)) if !proofs.is_empty() => {
                not_tried(&plan.subject.name().to_string(), &why);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(SelfTest { proofs, notices })
}
