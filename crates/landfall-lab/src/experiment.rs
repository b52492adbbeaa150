//! What an experiment is, and the one list of them.
//!
//! An experiment is a folder of this crate, and a line in [`experiments!`](crate::experiments). It gives
//!
//! - a plan, which is an [`Experiment`]: how long it takes, what it needs, how it is run;
//! - what it found, which are [`Findings`]: series, claims, and what is shown of them;
//! - its arguments on a command line, `ExperimentArguments`.
//!
//! Everything else goes by these: the run, the document, tables, the page, comparison, the program's help. Nothing but
//! what the list makes here knows which experiments there are.

use std::any::Any;
use std::time::Duration;

use landfall_results::Series;
use landfall_results::proof::ProofResults;
use landfall_results::view::{Block, Part};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::ClaimResult;
use crate::configuration::Measurements;
use crate::views;
use crate::{Error, Notice, PlanKind, Progress, Results, Site, Stop};

/// A question and the plan that answers it.
pub trait Experiment {
    /// Its name, as the document and the command line have it.
    fn name(&self) -> &'static str;

    /// Trials in all.
    fn trials(&self) -> usize;

    /// How long it is expected to take, before anything is known about the disk.
    fn expected(&self) -> Duration;

    /// Bytes that it may need in its directory at once, whatever the disk turns out to be like.
    fn required_bytes(&self) -> u64;

    /// What is measured, line by line, and what it takes.
    fn listing(&self) -> String;

    /// Runs it on `site`; returns what was found and what must be known about it.
    fn run(
        &self,
        site: &Site,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> Result<(Found, Vec<Notice>), Error>;
}

/// What an experiment found, as the document keeps it.
pub trait Findings: Any {
    /// Which plan was run.
    fn plan(&self) -> PlanKind;

    /// How often everything was measured.
    fn rounds(&self) -> u32;

    /// What was measured, series by series.
    fn series(&self) -> &[Series];

    /// The published claims, with verdicts.
    fn claims(&self) -> &[ClaimResult];

    /// The same, for whoever leaves some out.
    fn claims_mut(&mut self) -> &mut Vec<ClaimResult>;

    /// Whether nothing could be measured.
    fn is_empty(&self) -> bool {
        self.series().iter().all(|one| one.trials.is_empty())
    }

    /// What it found, for one screen: a heading, a few rows, why. The sentences of its part, unless it has better.
    fn answer(&self, results: &Results) -> Vec<Block> {
        views::in_sentences(self.part(results))
    }

    /// All that a terminal shows of it, without claims and notices; `results` are the document that it stands in.
    fn brief(&self, results: &Results) -> Vec<Block>;

    /// Its part of the page.
    fn part(&self, results: &Results) -> Part;

    /// What was measured of databases, if that is what it is about: they have sites of their own.
    fn measurements(&self) -> Option<&Measurements> {
        None
    }
}

/// All experiments, each with the folder that holds it, the type of what it finds, and its name in the document and on
/// the command line: gives them to a macro.
///
/// What stands above each is what help says of it.
#[macro_export]
macro_rules! experiments {
    ($then:ident) => {
        $then! {
            /// What does one durable write cost, by allocation, sync method, size and threads?
            Sync: sync::SyncResults = "sync",
            /// How fast can a large state be handed over and made durable?
            Stream: stream::StreamResults = "stream",
            /// What does it take to keep a state durable, and when does a log of its changes beat dumping it?
            DumpVsLog: dump_vs_log::DumpVsLogResults = "dump-vs-log",
            /// What does replacing a small file cost, by how it is replaced, what is synced, and the filesystem?
            Rename: rename::RenameResults = "rename",
            /// What does syncing a growing commit log cost MariaDB, by filesystem and clients, and what do
            /// PostgreSQL, Redis, etcd and SQLite on the same disk?
            Binlog: binlog::BinlogResults = "binlog",
            /// What does protection against torn pages cost MariaDB, PostgreSQL and Landfall's store, by disk, and does it
            /// protect?
            Torn: torn::TornResults = "torn",
            /// How many bytes reach the device per request of LinkBench: InnoDB by page size, compression and settings
            /// against MyRocks and others, and what that makes of a drive's flash?
            Amplify: amplify::AmplifyResults = "amplify",
        }
    };
}

macro_rules! found {
    ($($(#[$question:meta])* $name:ident: $module:ident::$results:ident = $title:literal,)+) => {
        /// What one experiment found, or a proof.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "experiment", rename_all = "kebab-case")]
        pub enum Found {
            $(
                $(#[$question])*
                #[serde(rename = $title)]
                $name(Box<crate::$module::$results>),
            )+
            /// What does a subject lose when the power is cut?
            Prove(Box<ProofResults>),
        }

        $(impl From<crate::$module::$results> for Found {
            fn from(found: crate::$module::$results) -> Found {
                Found::$name(Box::new(found))
            }
        })+

        impl Found {
            /// The experiments' names, in the order in which they are shown.
            pub const EXPERIMENTS: &'static [&'static str] = &[$($title,)+];

            /// The experiment's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Found::$name(_) => $title,)+
                    Found::Prove(_) => "prove",
                }
            }

            /// What an experiment found; `None` of proofs.
            pub fn findings(&self) -> Option<&dyn Findings> {
                match self {
                    $(Found::$name(found) => Some(found.as_ref()),)+
                    Found::Prove(_) => None,
                }
            }

            /// The same, to be changed.
            pub(crate) fn findings_mut(&mut self) -> Option<&mut dyn Findings> {
                match self {
                    $(Found::$name(found) => Some(found.as_mut()),)+
                    Found::Prove(_) => None,
                }
            }
        }
    };
}

experiments!(found);

impl Found {
    /// What an experiment of this kind found, if this is one.
    pub fn of<T: Findings>(&self) -> Option<&T> {
        (self.findings()? as &dyn Any).downcast_ref()
    }

    /// The same, to be changed.
    pub fn of_mut<T: Findings>(&mut self) -> Option<&mut T> {
        (self.findings_mut()? as &mut dyn Any).downcast_mut()
    }

    /// The proof, if it is one.
    pub fn proof(&self) -> Option<&ProofResults> {
        match self {
            Found::Prove(proof) => Some(proof),
            _ => None,
        }
    }

    /// What it measured, series by series; nothing of proofs.
    pub fn series(&self) -> &[Series] {
        self.findings().map_or(&[], Findings::series)
    }
}
