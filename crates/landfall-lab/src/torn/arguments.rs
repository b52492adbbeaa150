//! Experiment `torn` on the command line.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use landfall_recorder::Profile;

use super::{Plan, Selection};
use crate::arguments::{ExperimentArguments, Request, seconds};
use crate::{Error, SiteSpec};

/// What experiment `torn` is asked for.
#[derive(Args)]
#[command(next_help_heading = "What to measure")]
pub struct Arguments {
    /// Directory whose disk holds the databases, and the images and recordings of filesystems that are made.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    dir: PathBuf,

    /// Measure only these parts: disks (every protection on every disk), conditions (each of those under
    /// which the gain was published removed in turn), postgres (full_page_writes), landfall (every protection of
    /// Landfall's own store, with nothing else different).
    #[arg(long, value_delimiter = ',', value_name = "PART,…")]
    part: Vec<String>,

    /// Disks, by the times that a recorder takes: hdd-7200,cache=off and others as in lab sync; none for the
    /// directory's own. May be given several times [default: hdd-7200,cache=off, hdd-15k-bbwc, ssd-consumer,
    /// none].
    #[arg(long, value_name = "PROFILE", value_parser = disk)]
    latency: Vec<String>,

    /// Rows of the table.
    #[arg(long, value_name = "N", default_value_t = Plan::ROWS, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    rows: u64,

    /// Rounds: how often each configuration is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Seconds that a trial is measured for, after a warm-up.
    #[arg(long, value_name = "S", default_value_t = Plan::SECONDS, value_parser = seconds)]
    seconds: f64,

    /// Also cut the power: prove each protection on a recorder, with pages torn at 512 bytes, and say from
    /// how many crash states the database did not recover.
    #[arg(long)]
    prove: bool,

    /// Crash states that each setting is held against at most.
    #[arg(long, value_name = "N", default_value_t = Plan::PROOF_STATES as u32, requires = "prove", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    prove_states: u32,
}

impl ExperimentArguments for Arguments {
    fn request(self) -> Result<Request, Error> {
        Ok(Request {
            // Each protection takes a filesystem of its own, which it makes in the directory.
            site: SiteSpec::Directory,
            plan: Box::new(self.plan()?),
            dir: self.dir,
        })
    }
}

impl Arguments {
    /// The plan that these arguments ask for.
    fn plan(&self) -> Result<Plan, Error> {
        let mut latencies: Vec<String> = Vec::new();
        for latency in &self.latency {
            if !latencies.contains(latency) {
                latencies.push(latency.clone());
            }
        }
        let selection = Selection {
            latencies,
            parts: self.part.clone(),
        };
        Ok(Plan {
            rows: self.rows,
            rounds: self.rounds,
            seconds: self.seconds,
            proof_states: self.prove.then_some(self.prove_states as usize),
            ..Plan::chosen(selection)?
        })
    }
}

/// A disk as it is named in full, however it was written.
fn disk(text: &str) -> Result<String, String> {
    match text {
        "none" => Ok(text.to_owned()),
        profile => Ok(profile.parse::<Profile>()?.to_string()),
    }
}
