//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use landfall_lab::parse_size;
use landfall_lab::sync::{CacheState, Files, Operations, Placement, Plan, Selection};
use landfall_os::{Allocation, SyncMethod};

const EXIT_CODES: &str = "\
Exit codes: 0 measured, 1 failed, 2 wrong command line, 4 target refused (no space, no \
permission), 5 too noisy to conclude, 130 stopped by Ctrl-C.";

/// Measures what durable writes cost on your disk, and why.
#[derive(Parser)]
#[command(name = "landfall", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
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
    /// With no further word this runs the standard plan of experiment `sync`: every allocation and
    /// every sync method at 8 KiB, sizes from 512 bytes to 64 KiB, and 1 to 16 threads. It takes
    /// about a minute, writes only inside a private subdirectory, and removes that.
    Lab(Box<Lab>),
    /// Show what a directory stands on, and what that means for durable writes.
    Inspect(Inspect),
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
    pub sync: Sync,
}

impl Lab {
    /// The arguments of experiment `sync`, with or without its name.
    pub fn into_sync(self) -> Sync {
        match self.experiment {
            Some(LabExperiment::Sync(sync)) => *sync,
            None => self.sync,
        }
    }
}

#[derive(Subcommand)]
pub enum LabExperiment {
    /// What does one durable write cost, by allocation, sync method, size and threads?
    Sync(Box<Sync>),
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct Sync {
    /// Directory to measure in.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    #[command(flatten)]
    pub plan: PlanArguments,

    #[command(flatten)]
    pub output: Output,
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
pub struct PlanArguments {
    /// Measure the product of all axes, not each axis on its own; takes hours.
    #[arg(long)]
    full: bool,

    /// Print the plan with its expected time and bytes, and run nothing.
    #[arg(long)]
    pub list: bool,

    /// Allocations: append, overwrite, zero-filled, zero-filled-settled, unwritten, sparse,
    /// write-zeroes, recycled, step-4m, step-64m (or step-Nm, steps of N MiB).
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    allocation: Vec<Allocation>,

    /// Sync methods: fdatasync, fsync, o_dsync, o_sync, rwf_dsync, io_uring, msync,
    /// sync_file_range, none; direct+NAME for O_DIRECT.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    sync: Vec<SyncMethod>,

    /// Bytes in a write: 512, 8K, ….
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…", value_parser = write_size)]
    size: Vec<u64>,

    /// Threads that write.
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,

    /// Whether threads write one file or a file each.
    #[arg(long, value_delimiter = ',', value_name = "HOW,…")]
    files: Vec<FilesArgument>,

    /// Where writes land, relative to pages.
    #[arg(long, value_delimiter = ',', value_name = "WHERE,…")]
    placement: Vec<PlacementArgument>,

    /// What the page cache holds of the file.
    #[arg(long, value_delimiter = ',', value_name = "STATE,…")]
    cache: Vec<CacheArgument>,

    /// Operations in a trial [default: as many as fit into --seconds].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    ops: Option<u64>,

    /// Rounds: how often each strategy is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds that a trial is meant to take.
    #[arg(long, value_name = "S", default_value_t = Plan::SECONDS, value_parser = seconds, conflicts_with = "ops")]
    seconds: f64,

    /// Let zeros settle by waiting this many seconds instead of syncing them.
    #[arg(long, value_name = "S", value_parser = seconds)]
    settle: Option<f64>,
}

#[derive(Args)]
#[command(next_help_heading = "What to print and write")]
pub struct Output {
    /// Write the results document to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Write one line per trial, comma-separated, to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub csv: Option<PathBuf>,

    /// Print one tab-separated line per trial, as it is measured, instead of the table.
    #[arg(long)]
    pub tsv: bool,

    /// Directory for the report (index.html) and the results document (results.json).
    #[arg(long, value_name = "DIR", default_value = "landfall-report", value_hint = ValueHint::DirPath)]
    pub report: PathBuf,

    /// Write no report.
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct Inspect {
    /// Directory to look at.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Print the facts as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct Compare {
    /// Results document of the first run.
    #[arg(value_hint = ValueHint::FilePath)]
    pub a: PathBuf,

    /// Results document of the second run.
    #[arg(value_hint = ValueHint::FilePath)]
    pub b: PathBuf,

    /// Print the comparison as JSON.
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FilesArgument {
    Shared,
    Each,
}

#[derive(Clone, Copy, ValueEnum)]
enum PlacementArgument {
    /// One after the other.
    Sequential,
    /// On page boundaries, a page apart.
    Spaced,
    /// 512 bytes into a page, a page apart.
    Unaligned,
}

#[derive(Clone, Copy, ValueEnum)]
enum CacheArgument {
    Warm,
    Cold,
}

impl PlanArguments {
    /// The plan that these arguments ask for.
    pub fn plan(&self) -> Plan {
        let selection = Selection {
            allocations: self.allocation.clone(),
            methods: self.sync.clone(),
            sizes: self.size.clone(),
            threads: self.threads.clone(),
            files: self
                .files
                .iter()
                .map(|files| match files {
                    FilesArgument::Shared => Files::Shared,
                    FilesArgument::Each => Files::Each,
                })
                .collect(),
            placements: self
                .placement
                .iter()
                .map(|placement| match placement {
                    PlacementArgument::Sequential => Placement::Sequential,
                    PlacementArgument::Spaced => Placement::Spaced,
                    PlacementArgument::Unaligned => Placement::Unaligned,
                })
                .collect(),
            caches: self
                .cache
                .iter()
                .map(|cache| match cache {
                    CacheArgument::Warm => CacheState::Warm,
                    CacheArgument::Cold => CacheState::Cold,
                })
                .collect(),
        };
        let plan = if self.full {
            Plan::full(&selection)
        } else {
            Plan::chosen(&selection)
        };
        Plan {
            rounds: self.rounds,
            seconds: self.seconds,
            operations: self.ops.map_or(Operations::ByTime, Operations::Exactly),
            settle_seconds: self.settle,
            ..plan
        }
    }
}

fn write_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size @ 1..=0x0400_0000 => Ok(size),
        _ => Err("a write has from 1 byte to 64 MiB".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("a time is from 0.001 to 86400 seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn lab_takes_its_options_with_and_without_the_experiment() {
        for line in [
            vec!["landfall", "lab", "--rounds", "3", "/tmp"],
            vec!["landfall", "lab", "sync", "--rounds", "3", "/tmp"],
        ] {
            let Command::Lab(lab) = Arguments::parse_from(line).command else {
                panic!("not lab");
            };
            let sync = lab.into_sync();
            assert_eq!(sync.dir, PathBuf::from("/tmp"));
            assert_eq!(sync.plan.plan().rounds, 3);
        }
    }
}
