//! Experiment `rename` on the command line.

use clap::Args;
use landfall_os::humanize::parse_size;

use super::{Plan, Selection, Way};
use crate::arguments::{ExperimentArguments, Request, SitesArguments, seconds};
use crate::{Error, SiteSpec};

/// What experiment `rename` is asked for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    sites: SitesArguments,

    #[command(flatten)]
    options: Options,
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
struct Options {
    /// Ways: truncate+fdatasync, rename, rename+directory, fdatasync+rename, fdatasync+rename+directory.
    #[arg(long, value_delimiter = ',', value_name = "NAME,…")]
    way: Vec<Way>,

    /// Bytes of the file.
    #[arg(long, value_name = "SIZE", default_value_t = Plan::SIZE, value_parser = file_size)]
    size: u64,

    /// Rounds: how often each way is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds that a trial is measured for.
    #[arg(long, value_name = "S", default_value_t = Plan::SECONDS, value_parser = seconds)]
    seconds: f64,

    /// Also cut the power: prove each way on a recorder, on the filesystem that was made or on one like that of the
    /// directory, and say in how many crash states the last content that was acknowledged was gone. Needs root.
    #[arg(long)]
    prove: bool,

    /// Crash states that each way is held against at most.
    #[arg(long, value_name = "N", default_value_t = Plan::PROOF_STATES, requires = "prove", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    prove_states: u32,
}

impl ExperimentArguments for Arguments {
    fn request(self) -> Result<Request, Error> {
        let options = self.options;
        let selection = Selection {
            sites: self.sites.specs()?,
            ways: options.way,
        };
        let plan = Plan {
            size: options.size,
            rounds: options.rounds,
            seconds: options.seconds,
            proof_states: options.prove.then_some(options.prove_states as usize),
            ..Plan::chosen(selection)
        };
        Ok(Request {
            // It makes its sites itself, in the directory.
            site: SiteSpec::Directory,
            dir: self.sites.dir,
            plan: Box::new(plan),
        })
    }
}

fn file_size(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size @ 1..=0x0400_0000 => Ok(size),
        _ => Err("a file has from 1 byte to 64 MiB".into()),
    }
}
