//! What `landfall prove` is asked for on the command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueHint};
use landfall_lab::arguments::setting;
use landfall_prove::cluster::{ClusterPlan, ClusterStateName, Cuts, NODES};
use landfall_prove::scratch_fs::FilesystemSpec;
use landfall_prove::{CutName, Plan};
use landfall_recorder::crash::{Model, Order};
use landfall_recorder::{AtomicUnit, Fault};
use landfall_results::proof::Shard;

use super::Documents;

/// What makes no sense of several disks, or is not done with them.
const OF_ONE_DISK: [&str; 13] = [
    "self_test",
    "catalogue",
    "seeds",
    "in_uml",
    "creation",
    "fua",
    "writeback",
    "faults",
    "second_cuts",
    "shard",
    "keep_image",
    "atomic",
    "order",
];

/// What says how a recording is made, and is known of one that is there.
const OF_MAKING: [&str; 6] = [
    "keep_recording",
    "creation",
    "fua",
    "writeback",
    "faults",
    "transactions",
];

/// What is asked of one proof. Those of the self-test and the catalogue are made as they are.
const OF_ONE_PROOF: [&str; 26] = [
    "settings",
    "command",
    "check",
    "nodes",
    "filesystem",
    "transactions",
    "creation",
    "fua",
    "writeback",
    "faults",
    "keep_recording",
    "recording",
    "states",
    "minutes",
    "cuts",
    "replicas",
    "model",
    "order",
    "atomic",
    "seed",
    "workers",
    "check_all",
    "second_cuts",
    "shard",
    "only",
    "keep_image",
];

/// Where results go. The catalogue prints what it found, and makes no document of it.
const OF_RESULTS: [&str; 4] = ["json", "markdown", "report", "no_report"];

const EXIT_CODES: &str = "\
Exit codes: 0 lost nothing, 1 could not be proven, 2 wrong command line, 3 lost something, 130 stopped \
by Ctrl-C; of --self-test and --catalogue: 0 all as expected, 1 not.";

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct Prove {
    /// What is proven; --list says what there is. With --cmd it may be left out.
    #[arg(required_unless_present_any = ["self_test", "catalogue", "list", "command"], value_name = "SUBJECT")]
    pub subject: Option<String>,

    /// Print the subjects with their settings, and prove nothing.
    #[arg(long, conflicts_with_all = ["subject", "self_test", "catalogue", "seeds", "in_uml"], conflicts_with_all = OF_ONE_PROOF, conflicts_with_all = OF_RESULTS)]
    pub list: bool,

    /// Prove what is known to be safe and what is known to lose data, and say whether each was told
    /// from the other. A prover that catches nothing proves nothing.
    #[arg(long, conflicts_with_all = ["subject", "catalogue", "seeds"], conflicts_with_all = OF_ONE_PROOF)]
    pub self_test: bool,

    /// Try every known fault, or those of SUBJECT, and print how many crash states it takes until each is caught, in either
    /// order of states. It takes half an hour, or more.
    #[arg(long, conflicts_with_all = OF_ONE_PROOF, conflicts_with_all = OF_RESULTS)]
    pub catalogue: bool,

    /// Seeds that the catalogue tries each fault with: each makes a recording.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "catalogue", conflicts_with_all = OF_ONE_PROOF, conflicts_with_all = OF_RESULTS, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,

    /// Prove inside User-mode Linux, a kernel that runs as an ordinary program and needs no root. Without root that is
    /// done by itself, where Debian package user-mode-linux is installed.
    #[arg(long)]
    pub in_uml: bool,

    #[command(flatten)]
    pub workload: Workload,

    #[command(flatten)]
    pub states: States,

    #[command(flatten)]
    pub documents: Documents,
}

#[derive(Args)]
#[command(next_help_heading = "What runs")]
pub struct Workload {
    /// A setting of the subject; may be given more than once.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    /// The program to prove, for subject 'command'; {dir} is its directory, {ack} the file it writes
    /// 'send N' and 'ack N' to.
    #[arg(long = "cmd", value_name = "COMMAND")]
    pub command: Option<String>,

    /// The program that reads {dir} after a power cut and prints which transactions are there.
    #[arg(long, value_name = "COMMAND")]
    pub check: Option<String>,

    /// Prove a cluster of this many nodes, 2 to 7, each on a disk of its own; 'landfall subjects' says which there are, and
    /// --cuts says whose power goes, and when.
    #[arg(long, value_name = "N", value_parser = nodes, conflicts_with_all = OF_ONE_DISK)]
    pub nodes: Option<usize>,

    /// Filesystem, with its mount options, its size and options of mkfs: ext4,data=journal,size=128M,
    /// '-O ^has_journal'.
    #[arg(long = "fs", value_name = "FS[,OPTION…]", default_value = "ext4")]
    pub filesystem: FilesystemSpec,

    /// Transactions that are run [default: 100; of a cluster 40].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub transactions: Option<u64>,

    /// Cut the power while the subject is created too. Until it has acknowledged something, it may be damaged.
    #[arg(long)]
    pub creation: bool,

    /// Let the disk make single writes durable by themselves (force unit access, FUA), as many do: with O_DSYNC nothing
    /// that was written before is durable then. Needs network block devices (modprobe nbd), or User-mode Linux.
    #[arg(long)]
    pub fua: bool,

    /// Inject write-back: force pages that the subject leaves dirty out to the device, now and then.
    #[arg(long)]
    pub writeback: bool,

    /// What goes wrong besides the power: write-error=N, flush-error=N, no-space=N, read-only=N,
    /// lying-flush; may be given more than once.
    #[arg(long = "fault", value_name = "FAULT")]
    pub faults: Vec<Fault>,

    /// Directory for mount points, and for what does not fit into memory [default: the system's
    /// temporary directory].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: Option<PathBuf>,

    /// Keep what was recorded in this file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub keep_recording: Option<PathBuf>,

    /// Cut the power in this recording instead of making one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = OF_MAKING)]
    pub recording: Option<PathBuf>,
}

#[derive(Args)]
#[command(next_help_heading = "Which power cuts")]
pub struct States {
    /// Crash states that are tried at most.
    #[arg(long, value_name = "N", default_value_t = Plan::STATES as u32, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub states: u32,

    /// Minutes that they are tried at most.
    #[arg(long, value_name = "M", value_parser = minutes)]
    pub minutes: Option<Duration>,

    /// Which nodes of a cluster lose power: all (at any moment), some (when all are killed), both (half of the states each), rolling
    /// (all, one after the other, while those that are left go on).
    #[arg(long, value_name = "WHICH", default_value_t = Cuts::Both, requires = "nodes", conflicts_with_all = OF_ONE_DISK)]
    pub cuts: Cuts,

    /// Of how many records of a cluster it is found out on how many nodes they were durable when they were acknowledged.
    #[arg(long, value_name = "N", default_value_t = ClusterPlan::REPLICAS as u32, requires = "nodes", conflicts_with_all = OF_ONE_DISK, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub replicas: u32,

    /// What the disk keeps of what was not flushed: flushed (nothing), prefix (it has no volatile cache
    /// and writes in order, up to any sector; a missing flush loses nothing), subset (any sectors).
    #[arg(long, value_name = "MODEL", default_value_t = Model::Subset)]
    pub model: Model,

    /// In which order they are tried: representative (one of each kind first, the dangerous and the rare kinds before
    /// the others), epochs (as they were recorded).
    #[arg(long, value_name = "ORDER", default_value_t)]
    pub order: Order,

    /// Bytes that the disk writes whole or not at all: 512, 4K for one with such physical sectors, 16K
    /// for one that promises it.
    #[arg(long, value_name = "SIZE", default_value_t)]
    pub atomic: AtomicUnit,

    /// What random choices are made from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Workers; on btrfs before Linux 6.7 there is one, whatever is asked for [default: one for each processor; of a
    /// cluster two for each].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub workers: Option<u32>,

    /// Let the subject check every state, also those whose files are equal after recovery.
    #[arg(long)]
    pub check_all: bool,

    /// Cut the power a second time, while filesystem and subject recover from the first cut, and try this many of the
    /// states that this leaves at most.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub second_cuts: u32,

    /// Try this part of the states only, as 3/16: the third of every sixteen, where other machines try the others in the same
    /// recording with the same seed.
    #[arg(long, value_name = "I/N", requires = "recording", conflicts_with = "only", conflicts_with_all = OF_MAKING)]
    pub shard: Option<Shard>,

    /// Try this state only, by its name, as 1:12:s2a0; after a second cut, 1:12:s2a0/1:3:none; of a cluster,
    /// 1:120:none,upto3,r5:late0.
    #[arg(long = "state", value_name = "NAME")]
    pub only: Option<StateName>,

    /// Write the image of the shortest failing state to this file; with --state of that state, whatever became of it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub keep_image: Option<PathBuf>,
}

/// The name of a state: of one disk, or of the disks of a cluster.
#[derive(Clone)]
pub enum StateName {
    OfDisk(CutName),
    OfCluster(ClusterStateName),
}

impl FromStr for StateName {
    type Err = String;

    fn from_str(text: &str) -> Result<StateName, String> {
        // That of a cluster has one part more.
        if text.matches(':').count() == 3 && !text.contains('/') {
            text.parse().map(StateName::OfCluster)
        } else {
            text.parse().map(StateName::OfDisk)
        }
    }
}

impl fmt::Display for StateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateName::OfDisk(name) => name.fmt(f),
            StateName::OfCluster(name) => name.fmt(f),
        }
    }
}

fn nodes(text: &str) -> Result<usize, String> {
    let nodes = text.parse().ok().filter(|nodes| NODES.contains(nodes));
    nodes.ok_or_else(|| format!("a cluster has {} to {} nodes", NODES.start(), NODES.end()))
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes = text.parse::<f64>().ok();
    let sensible = minutes.filter(|minutes| *minutes > 0.0 && *minutes <= 1e6);
    sensible
        .map(|minutes| Duration::from_secs_f64(minutes * 60.0))
        .ok_or_else(|| "it is a number of minutes above 0, and at most 1000000".to_owned())
}
