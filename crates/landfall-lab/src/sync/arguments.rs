//! Experiment `sync` on the command line.

use clap::{Args, ValueEnum};
use landfall_os::humanize::parse_size;
use landfall_os::{Allocation, SyncMethod};

use super::{CacheState, Files, Operations, Placement, Plan, Selection};
use crate::Error;
use crate::arguments::{ExperimentArguments, Request, SiteArguments, names, seconds};

/// What experiment `sync` is asked for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    site: SiteArguments,

    #[command(flatten)]
    options: Options,
}

impl ExperimentArguments for Arguments {
    fn request(self) -> Result<Request, Error> {
        Ok(Request {
            site: self.site.spec()?,
            dir: self.site.dir,
            plan: Box::new(self.options.plan()),
        })
    }
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
struct Options {
    /// Measure the product of all axes, not each axis on its own; takes hours.
    #[arg(long)]
    full: bool,

    /// How the file comes by its space: append, overwrite, zero-filled, zero-filled-settled, unwritten, sparse,
    /// write-zeroes, recycled, step-4m, step-64m (or step-Nm, steps of N MiB).
    #[arg(long, long_help = allocations(), value_delimiter = ',', value_name = "NAME,…")]
    allocation: Vec<Allocation>,

    /// Sync methods: fdatasync, fsync, o_dsync, o_sync, rwf_dsync, io_uring, msync,
    /// sync_file_range, none; direct+NAME for O_DIRECT.
    #[arg(long, long_help = methods(), value_delimiter = ',', value_name = "NAME,…")]
    sync: Vec<SyncMethod>,

    /// Bytes in a write: 512, 8K, ….
    #[arg(long, value_delimiter = ',', value_name = "SIZE,…", value_parser = write_size)]
    size: Vec<u64>,

    /// Threads that write.
    #[arg(long, value_delimiter = ',', value_name = "N,…", value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Vec<u32>,

    /// Whether threads write one file together or a file each.
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

    /// Also cut the power: prove each strategy on a recorder, on the filesystem that was made or on one
    /// like that of the directory, and say in how many crash states it lost an acknowledged write.
    /// Needs root.
    #[arg(long)]
    prove: bool,

    /// Crash states that each strategy is held against at most, 2 or more.
    #[arg(long, value_name = "N", default_value_t = Plan::PROOF_STATES, requires = "prove", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    prove_states: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum FilesArgument {
    #[value(help = Files::Shared.meaning())]
    Shared,
    #[value(help = Files::Each.meaning())]
    Each,
}

#[derive(Clone, Copy, ValueEnum)]
enum PlacementArgument {
    #[value(help = Placement::Sequential.meaning())]
    Sequential,
    #[value(help = Placement::Spaced.meaning())]
    Spaced,
    #[value(help = Placement::Unaligned.meaning())]
    Unaligned,
}

#[derive(Clone, Copy, ValueEnum)]
enum CacheArgument {
    #[value(help = CacheState::Warm.meaning())]
    Warm,
    #[value(help = CacheState::Cold.meaning())]
    Cold,
}

impl Options {
    /// The plan that these arguments ask for.
    fn plan(&self) -> Plan {
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
            proof_states: self.prove.then_some(self.prove_states as usize),
            ..plan
        }
    }
}

fn allocations() -> String {
    let named = Allocation::ALL.map(|one| (one.to_string(), one.meaning().to_owned()));
    let all = names("How the file comes by its space:", named);
    format!("{all}\n\nstep-Nm grows by steps of N MiB.")
}

fn methods() -> String {
    let named = SyncMethod::all()
        .into_iter()
        .filter(|method| !method.direct)
        .map(|method| (method.to_string(), method.meaning()));
    let all = names("What makes a write durable:", named);
    format!("{all}\n\ndirect+NAME opens the file with O_DIRECT: the data bypasses the page cache.")
}

fn write_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size @ 1..=0x0400_0000 => Ok(size),
        _ => Err("a write has from 1 byte to 64 MiB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    /// One state alone is said of what left no other, since nothing of it had reached the disk.
    #[test]
    fn one_crash_state_is_no_limit() {
        let states = |count: &str| {
            let line = ["sync", "--prove", "--prove-states", count];
            let line = Line::try_parse_from(line).ok()?;
            line.options.plan().proof_states
        };
        assert_eq!(states("1"), None);
        assert_eq!(states("2"), Some(2));
    }
}
