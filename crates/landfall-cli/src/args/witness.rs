//! `landfall witness`: what is asked of the witness, of its writers, and of a check.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use landfall_os::humanize::parse_size;
use landfall_os::{ParseSyncMethodError, SyncMethod};
use landfall_results::witness::Order;
use landfall_witness::{Address, Declared};

const EXIT_CODES: &str = "\
Exit codes: 0 done; of a check: after a cut nothing was missing, 1 failed; of a check: nothing is shown, as without a cut, \
2 wrong command line, 3 acknowledged writes are missing, 4 target refused (another disk, in use, changed by somebody else), \
130 stopped by Ctrl-C.";

#[derive(Args)]
pub struct Witness {
    #[command(subcommand)]
    pub command: WitnessCommand,
}

#[derive(Subcommand)]
pub enum WitnessCommand {
    /// Be the witness: remember which writes the disks of other hosts have acknowledged.
    ///
    /// Runs until it is stopped; with --cuts until so many power cuts were made and checked.
    Serve(Box<WitnessServe>),
    /// Write to a disk, and report each write that it acknowledges to the witness, before the next.
    Write(Box<WitnessWrite>),
    /// After a power cut, compare what the disk has with what it had acknowledged.
    Check(Box<WitnessCheck>),
    /// Print what a witness knows: disks, power cuts, losses, and the bound that follows.
    Status(WitnessStatus),
}

#[derive(Args)]
pub struct TokenArguments {
    /// File with the token that both hosts share, a line of text that no other user can read. Without it the environment
    /// variable LANDFALL_WITNESS_TOKEN has the token.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub token_file: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct WitnessServe {
    /// Directory for what the witness knows: an empty one, a new one, or that of before.
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Address to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS[:PORT]", default_value = "0.0.0.0:7747", value_parser = address)]
    pub listen: Address,

    #[command(flatten)]
    pub token: TokenArguments,

    /// Shell command that cuts the power of the host under test.
    #[arg(
        long,
        value_name = "COMMAND",
        help_heading = "Power cuts",
        requires = "cuts"
    )]
    pub cut_with: Option<String>,

    /// Shell command that restores it, after --off seconds.
    #[arg(
        long,
        value_name = "COMMAND",
        help_heading = "Power cuts",
        requires = "cut_with"
    )]
    pub restore_with: Option<String>,

    /// Power cuts; each waits until the one before was checked.
    #[arg(long, value_name = "N", help_heading = "Power cuts", requires = "cut_with",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub cuts: Option<u64>,

    /// Acknowledged writes before a cut: a random number between these.
    #[arg(long, value_name = "FEW..MANY", help_heading = "Power cuts", default_value = "1000..20000",
          requires = "cut_with", value_parser = range)]
    pub after: (u64, u64),

    /// Seconds without power.
    #[arg(
        long,
        value_name = "SECONDS",
        help_heading = "Power cuts",
        default_value = "10",
        requires = "cut_with",
        value_parser = seconds
    )]
    pub off: f64,

    /// What the random numbers are drawn from [default: the time].
    #[arg(
        long,
        value_name = "N",
        help_heading = "Power cuts",
        requires = "cut_with"
    )]
    pub seed: Option<u64>,
}

/// What is written to, and who is told.
#[derive(Args)]
pub struct WitnessTarget {
    /// Directory on the disk, or a whole block device.
    #[arg(value_hint = ValueHint::AnyPath)]
    pub target: PathBuf,

    /// Host of the witness, and its port unless that is 7747.
    #[arg(value_name = "HOST[:PORT]", value_parser = address)]
    pub host: Address,

    #[command(flatten)]
    pub token: TokenArguments,

    /// What the witness calls it [default: this machine's id and the path].
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<String>,

    /// That the power was cut since the last write: of the machine, or of the disk alone, if it has a supply of its own.
    ///
    /// Without this a restart is only a restart, after which a loss is suspicious and no more.
    #[arg(long, value_name = "OF", num_args = 0..=1, require_equals = true, default_missing_value = "machine")]
    pub cut: Option<DeclaredCut>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum DeclaredCut {
    /// The whole machine, which has started anew since.
    Machine,
    /// The disk alone.
    Disk,
}

impl From<DeclaredCut> for Declared {
    fn from(cut: DeclaredCut) -> Declared {
        match cut {
            DeclaredCut::Machine => Declared::Machine,
            DeclaredCut::Disk => Declared::Disk,
        }
    }
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct WitnessWrite {
    #[command(flatten)]
    pub target: WitnessTarget,

    /// The block device a second time: everything on it is destroyed.
    #[arg(long, value_name = "DEVICE", value_hint = ValueHint::FilePath)]
    pub destroy: Option<PathBuf>,

    /// Check first what was written before, and end if something is missing.
    #[arg(long)]
    pub check: bool,

    /// Go on after a loss.
    #[arg(long, requires = "check")]
    pub keep_going: bool,

    /// What makes a write durable; `none` is a control, which a power cut must catch.
    #[arg(long, value_name = "METHOD", default_value = "fdatasync", help_heading = "How to write",
          value_parser = method)]
    pub method: SyncMethod,

    /// Bytes of a write, a multiple of 4K up to 1M.
    #[arg(long, value_name = "SIZE", default_value = "4K", help_heading = "How to write", value_parser = block_bytes)]
    pub size: u32,

    /// Blocks that are written over and over, 2 to 65536.
    #[arg(long, value_name = "N", default_value_t = 4096, help_heading = "How to write",
          value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub blocks: u32,

    /// In which order.
    #[arg(
        long,
        value_name = "ORDER",
        default_value = "scattered",
        help_heading = "How to write"
    )]
    pub order: WriteOrder,

    /// End after so many writes [default: when it is stopped].
    #[arg(long, value_name = "N", help_heading = "How to write")]
    pub writes: Option<u64>,

    /// Seconds that a witness which does not answer is waited for.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(0..=31_536_000))]
    pub patience: u64,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum WriteOrder {
    /// One behind the other.
    Sequential,
    /// Far from each other, all before any a second time.
    Scattered,
}

impl From<WriteOrder> for Order {
    fn from(order: WriteOrder) -> Order {
        match order {
            WriteOrder::Sequential => Order::Sequential,
            WriteOrder::Scattered => Order::Scattered,
        }
    }
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct WitnessCheck {
    #[command(flatten)]
    pub target: WitnessTarget,

    /// Write the verdict as JSON to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct WitnessStatus {
    /// Host of the witness, and its port unless that is 7747.
    #[arg(value_name = "HOST[:PORT]", value_parser = address)]
    pub host: Address,

    #[command(flatten)]
    pub token: TokenArguments,

    /// Write it as JSON to this file, '-' for standard output.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,
}

fn address(text: &str) -> Result<Address, String> {
    Address::parse(text).map_err(|error| error.to_string())
}

fn method(text: &str) -> Result<SyncMethod, String> {
    text.parse()
        .map_err(|error: ParseSyncMethodError| error.to_string())
}

fn block_bytes(text: &str) -> Result<u32, String> {
    let size = u32::try_from(parse_size(text)?).ok();
    size.filter(|size| size.is_multiple_of(4 << 10) && (4 << 10..=1 << 20).contains(size))
        .ok_or_else(|| "a write has a multiple of 4K, up to 1M".to_owned())
}

/// Two numbers, the lower first.
fn range(text: &str) -> Result<(u64, u64), String> {
    let wrong = || format!("'{text}' is no range; write 1000..20000");
    let (few, many) = text.split_once("..").ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (few, many) = (number(few)?, number(many)?);
    if few == 0 || few > many {
        return Err(wrong());
    }
    Ok((few, many))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds: &f64| (0.0..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| format!("'{text}' is no time; write seconds, at most 86400"))
}
