//! What `landfall campaign` is asked for on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use landfall_campaign::emit::Scheduler;
use landfall_campaign::{Digest, Location};
use landfall_results::proof::Shard;

const EXIT_CODES: &str = "\
Exit codes: 0 done, and nothing was lost, 1 something failed, is missing or could not be proven, 2 wrong command line, 3 lost \
something, 130 stopped by Ctrl-C.";

/// Of what judges nothing.
const EXIT_CODES_OF_DOING: &str =
    "Exit codes: 0 done, 1 something failed, 2 wrong command line, 130 stopped by Ctrl-C.";

#[derive(Args)]
pub struct Campaign {
    #[command(subcommand)]
    pub command: CampaignCommand,
}

#[derive(Subcommand)]
pub enum CampaignCommand {
    /// Plan a campaign: record what its shards share, and keep the plan where results go.
    Plan(CampaignPlan),
    /// Print a job file of a campaign that was planned before.
    Emit(CampaignEmit),
    /// Do what one shard is to do, on this machine.
    Run(CampaignRun),
    /// Say what all shards that have ended came to, and what is missing.
    Merge(CampaignMerge),
    /// Write one report of all machines: the verdict, what is missing, disks that differ, and why.
    Report(CampaignReport),
    /// Fetch a recording, to try one of its states again.
    Fetch(CampaignFetch),
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_DOING)]
pub struct CampaignPlan {
    /// What is to be run, in how many shards, and where results go; a TOML file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Print a job file for this scheduler, and nothing else: slurm, kubernetes, github, ansible, sh.
    #[arg(long, value_name = "SCHEDULER")]
    pub emit: Option<Scheduler>,

    #[command(flatten)]
    pub work: Work,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_DOING)]
pub struct CampaignEmit {
    /// The campaign, as 'plan' printed it.
    #[arg(value_name = "RESULTS/CAMPAIGN")]
    pub campaign: Location,

    /// The scheduler: slurm, kubernetes, github, ansible, sh.
    pub scheduler: Scheduler,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct CampaignRun {
    /// The campaign, as 'plan' printed it.
    #[arg(value_name = "RESULTS/CAMPAIGN")]
    pub campaign: Location,

    /// Which shard: 3/16 is the third of sixteen.
    #[arg(long, value_name = "I/N")]
    pub shard: Shard,

    /// Run it again though it has been run: of a measurement the first run counts, of a proof the one that lost most.
    #[arg(long)]
    pub again: bool,

    #[command(flatten)]
    pub work: Work,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct CampaignMerge {
    /// The campaign, as 'plan' printed it.
    #[arg(value_name = "RESULTS/CAMPAIGN")]
    pub campaign: Location,

    /// Write all that was found to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 the report was written, 1 something failed, 2 wrong command line."
)]
pub struct CampaignReport {
    /// The campaign, as 'plan' printed it.
    #[arg(value_name = "RESULTS/CAMPAIGN")]
    pub campaign: Location,

    /// Directory for the page (index.html), the document that it is made from (campaign.json) and, where machines were measured,
    /// what was found of them (fleet.json).
    #[arg(long, value_name = "DIR", default_value = "landfall-campaign/report", value_hint = ValueHint::DirPath)]
    pub report: PathBuf,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES_OF_DOING)]
pub struct CampaignFetch {
    /// The campaign, as 'plan' printed it.
    #[arg(value_name = "RESULTS/CAMPAIGN")]
    pub campaign: Location,

    /// The recording, as 'merge' printed it.
    pub recording: Digest,

    #[command(flatten)]
    pub work: Work,
}

/// Where recordings are kept on a machine, unless said otherwise.
pub const WORK: &str = "landfall-campaign";

#[derive(Args)]
pub struct Work {
    /// Directory on this machine for recordings, and for what is written meanwhile.
    #[arg(long, value_name = "DIR", default_value = WORK, value_hint = ValueHint::DirPath)]
    pub work: PathBuf,
}
