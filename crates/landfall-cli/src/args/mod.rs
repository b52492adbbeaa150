//! The command line.

mod advise;
mod campaign;
mod log;
mod prove;
mod state;
mod store;
mod witness;
pub mod words;

use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use landfall_lab::arguments::{ExperimentArguments, Request, SiteArguments};
use landfall_lab::config_file::NamedConfig;
use landfall_lab::rules::System;
use landfall_lab::{Experiment, SiteSpec, experiments, standard_plans};

use crate::exit::Failure;

pub use advise::Advise;
pub use campaign::{
    Campaign, CampaignCommand, CampaignEmit, CampaignFetch, CampaignMerge, CampaignPlan,
    CampaignReport, CampaignRun, WORK,
};
pub use log::{Log, LogCommand, LogDirectory, LogSalvage};
pub use prove::{Prove, StateName, States, Workload};
pub use state::{State, StateCommand};
pub use store::{Store, StoreCommand, StoreDirectory, StoreDump, StoreStat};
pub use witness::{
    TokenArguments, Witness, WitnessCheck, WitnessCommand, WitnessServe, WitnessStatus,
    WitnessTarget, WitnessWrite,
};

/// Of any command.
const ALL_EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed, 2 wrong command line, 3 a promise is broken or at risk, 4 target refused (no space, no \
permission), 5 too noisy to conclude, 130 stopped by Ctrl-C.";
/// Of measuring.
const EXIT_CODES: &str = "\
Exit codes: 0 measured, 1 failed, 2 wrong command line, 4 target refused (no space, no \
permission), 5 too noisy to conclude, 130 stopped by Ctrl-C.";
/// Of commands that only look at something.
const EXIT_CODES_OF_LOOKING: &str = "Exit codes: 0 done, 1 failed, 2 wrong command line.";

/// Of removing what was left.
const EXIT_CODES_OF_CLEANING: &str = "\
Exit codes: 0 removed, or nothing was there, 1 something could not be removed, 2 wrong command line, or no such directory, \
4 directory cannot be opened.";

/// Measures what durable writes cost on your disk, and why.
#[derive(Parser)]
#[command(name = "landfall", version, after_help = ALL_EXIT_CODES, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    /// Print results and errors only, no progress.
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Print without colours; the NO_COLOR environment variable does the same.
    #[arg(long, global = true)]
    pub no_color: bool,
}

#[derive(Subcommand)]
pub enum Command {
    /// Measure durable writes in a directory (the current one, unless another is named).
    ///
    /// With no further word this runs the standard plan of experiment `sync` (every allocation and
    /// every sync method at 8 KiB, sizes from 512 bytes to 64 KiB, and 1 to 16 threads), then a short
    /// `stream` (states of 128 to 512 MiB handed over and synced) and a short `dump-vs-log` (dumping a state
    /// of 128 MiB against logging its changes). It takes two to three minutes, writes only inside a private subdirectory, and removes
    /// that.
    Lab(Box<Lab>),
    /// Cut the power thousands of times, and say what was lost.
    ///
    /// Runs numbered transactions on a filesystem whose every write and flush is recorded, then makes
    /// what a power cut could have left at each moment, mounts it, lets filesystem and subject recover,
    /// and looks for acknowledged transactions that are gone. Needs root, FUSE and loop devices, or User-mode Linux.
    Prove(Box<Prove>),
    /// Say which settings of databases and mount options to change here: the fastest that lost nothing.
    ///
    /// Begins with what to change: from, to, what it gives, and what the default lost in simulated power cuts. Goes by
    /// what earlier runs found, and measures the directory if none did. Advises on what is installed, or named.
    Advise(Box<Advise>),
    /// Prove and measure on many machines: shards for any scheduler, results in one place, one verdict.
    Campaign(Campaign),
    /// Show whether a disk keeps its flushes, by a real power cut and a witness on another host.
    ///
    /// No software on one host can know: what it remembers goes with the power. `serve` runs on another host, `write` tells it
    /// of each write that the disk has acknowledged, and after the power was cut `check` says what the disk had acknowledged
    /// and does not have.
    Witness(Witness),
    /// Print the databases that can be measured and proven, with where they are, and what else can be proven.
    Subjects(Subjects),
    /// Look at a durable log of the engine's.
    Log(Log),
    /// Look at a durable state of the engine's: its snapshots, and the log of its commands.
    State(State),
    /// Look at a key-value store of the engine's.
    Store(Store),
    /// Remove what killed runs left: private directories, and what hangs on them.
    Clean(Clean),
    /// Show what a directory stands on, and what that means for durable writes.
    Inspect(Inspect),
    /// Show a run again, from its results document.
    Show(Show),
    /// Hold two runs against each other.
    Compare(Compare),
    /// Print shell completions.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one per command into a directory.
    Man {
        /// Directory for landfall.1, landfall-lab.1, ….
        #[arg(value_hint = ValueHint::DirPath)]
        directory: Option<PathBuf>,
    },
}

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, after_help = EXIT_CODES)]
pub struct Lab {
    #[command(subcommand)]
    pub experiment: Option<LabExperiment>,

    #[command(flatten)]
    pub site: SiteArguments,

    #[command(flatten)]
    pub listing: Listing,

    #[command(flatten)]
    pub output: Output,
}

/// What `landfall lab` was asked to do, whichever way it was said.
pub struct LabRequest {
    pub dir: PathBuf,
    pub site: SiteSpec,
    pub plans: Vec<Box<dyn Experiment>>,
    pub list: bool,
    pub output: Output,
}

impl TryFrom<Lab> for LabRequest {
    type Error = Failure;

    fn try_from(lab: Lab) -> Result<LabRequest, Failure> {
        match lab.experiment {
            Some(experiment) => experiment.request(),
            None => Ok(LabRequest {
                site: lab.site.spec()?,
                dir: lab.site.dir,
                plans: standard_plans(),
                list: lab.listing.list,
                output: lab.output,
            }),
        }
    }
}

macro_rules! experiment {
    ($($(#[$question:meta])* $name:ident: $module:ident::$results:ident = $title:literal,)+) => {
        #[derive(Subcommand)]
        pub enum LabExperiment {
            $(
                $(#[$question])*
                #[command(name = $title)]
                $name(Box<OneExperiment<landfall_lab::$module::Arguments>>),
            )+
        }

        impl LabExperiment {
            fn request(self) -> Result<LabRequest, Failure> {
                match self {
                    $(LabExperiment::$name(one) => one.request(),)+
                }
            }
        }
    };
}

experiments!(experiment);

/// What an experiment is asked for, and what to do with what it finds.
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct OneExperiment<A: Args> {
    #[command(flatten)]
    experiment: A,

    #[command(flatten)]
    listing: Listing,

    #[command(flatten)]
    output: Output,
}

impl<A: ExperimentArguments> OneExperiment<A> {
    fn request(self) -> Result<LabRequest, Failure> {
        let Request { dir, site, plan } = self.experiment.request()?;
        Ok(LabRequest {
            dir,
            site,
            plans: vec![plan],
            list: self.listing.list,
            output: self.output,
        })
    }
}

#[derive(Args)]
pub struct Listing {
    /// Print the plan with its expected time and bytes, and run nothing.
    #[arg(long, help_heading = "What to measure")]
    pub list: bool,
}

#[derive(Args)]
#[command(next_help_heading = "What to print and write")]
pub struct Output {
    #[command(flatten)]
    pub documents: Documents,

    /// Write one line per trial, comma-separated, to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,

    /// Print one tab-separated line per trial, as it is measured, instead of the table.
    #[arg(long)]
    pub tsv: bool,

    /// Print all tables instead of the one screen.
    #[arg(long)]
    pub tables: bool,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_LOOKING)]
pub struct Show {
    /// The results document.
    #[arg(default_value = "landfall-report/results.json", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Print all tables instead of the one screen.
    #[arg(long)]
    pub tables: bool,

    /// Write the tables as Markdown to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,

    /// Write one line per trial, comma-separated, to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,

    /// Write the report (index.html) and the results document into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub report: Option<PathBuf>,
}

#[derive(Args)]
#[command(next_help_heading = "What to print and write")]
pub struct Documents {
    /// Write the results document to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write the tables as Markdown to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,

    /// Directory for the report (index.html), the results document (results.json) and those of earlier runs (history/): the
    /// last 20, and older ones that no newer run replaces, 200 at most.
    #[arg(long, value_name = "DIR", default_value = "landfall-report", value_hint = ValueHint::DirPath)]
    pub report: PathBuf,

    /// Write no report.
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong command line, 4 directory cannot be opened."
)]
pub struct Inspect {
    /// Directory to look at.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Print the facts as JSON.
    #[arg(long)]
    pub json: bool,

    /// What a witness found of this disk: a document of 'landfall witness check --json'.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub witness: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_LOOKING)]
pub struct Subjects {
    /// Print the settings of this one.
    pub name: Option<String>,

    /// Print them all, with their settings, as JSON.
    #[arg(long, conflicts_with = "name")]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_CLEANING)]
pub struct Clean {
    /// Directories to look into [default: the current one and the one for temporary files].
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: Vec<PathBuf>,

    /// Say what would be removed, and remove nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_LOOKING)]
pub struct Compare {
    /// Results document of the first run. Without it, the last measurement in the report's directory is compared with
    /// the one before it that measured the same.
    #[arg(value_hint = ValueHint::FilePath)]
    pub a: Option<PathBuf>,

    /// Results document of the second run [default: the last one in the report's directory that measured the same].
    #[arg(value_hint = ValueHint::FilePath)]
    pub b: Option<PathBuf>,

    /// Directory of the report in whose history earlier runs are.
    #[arg(long, value_name = "DIR", default_value = "landfall-report", value_hint = ValueHint::DirPath, conflicts_with = "b")]
    pub report: PathBuf,

    /// Print the comparison as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A configuration file of one system.
fn config_of_one(text: &str) -> Result<(System, PathBuf), String> {
    let NamedConfig { systems, path } = text.parse()?;
    if path == Path::new("-") {
        return Err("a configuration is written into a file: name one".to_owned());
    }
    match systems.as_slice() {
        [system] => Ok((*system, path)),
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|system| format!("{}={text}", system.key()))
                .collect();
            Err(format!(
                "whose configuration it is cannot be told; write {}",
                names.join(" or ")
            ))
        }
    }
}

/// Says of an option that `lab` does not have which experiments do.
pub fn with_hint(mut error: clap::Error) -> clap::Error {
    let mut words = std::env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .filter(|word| !word.starts_with('-'));
    let is_lab = words.next().as_deref() == Some("lab");
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let command = Arguments::command();
    let experiments: Vec<&str> = command
        .find_subcommand("lab")
        .filter(|_| is_lab)
        .into_iter()
        .flat_map(clap::Command::get_subcommands)
        .filter(|experiment| {
            let mut names = experiment.get_arguments().filter_map(clap::Arg::get_long);
            names.any(|name| unknown.strip_prefix("--") == Some(name))
        })
        .map(clap::Command::get_name)
        .collect();
    if let [first, others @ ..] = experiments.as_slice() {
        let others: String = others
            .iter()
            .map(|name| format!(" or 'lab {name}'"))
            .collect();
        let hint = format!("it is an option of 'lab {first}'{others}");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![hint.into()]),
        );
    }
    error
}

#[cfg(test)]
mod tests {
    use landfall_lab::Found;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    fn request(line: &str) -> LabRequest {
        let Command::Lab(lab) = Arguments::parse_from(line.split(' ')).command else {
            panic!("not lab");
        };
        let request = LabRequest::try_from(*lab).unwrap();
        assert_eq!(request.dir, PathBuf::from("/tmp"));
        request
    }

    #[test]
    fn lab_alone_runs_three_experiments_and_a_name_runs_one() {
        let names = |line: &str| -> Vec<&str> {
            let plans = request(line).plans;
            plans.iter().map(|plan| plan.name()).collect()
        };
        assert_eq!(
            names("landfall lab /tmp"),
            ["sync", "stream", "dump-vs-log"]
        );
        assert_eq!(names("landfall lab sync --rounds 3 /tmp"), ["sync"]);
        for name in Found::EXPERIMENTS {
            assert_eq!(names(&format!("landfall lab {name} /tmp")), [*name]);
        }
    }
}

#[cfg(test)]
mod documented;
