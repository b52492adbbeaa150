//! `landfall log`: what is asked of a log in a directory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Also of a state.
const EXIT_CODES: &str = "\
Exit codes: 0 done (salvage: also if something is missing), 1 damaged, or failed, 2 wrong command line, or nothing of \
the kind there, 4 open in a program.";

#[derive(Args)]
pub struct Log {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Subcommand)]
pub enum LogCommand {
    /// Print the blocks of a log and the records in them.
    Dump(LogDirectory),
    /// Read all of a log and compare it with its checksums; nothing is changed.
    Verify(LogDirectory),
    /// Copy what can still be read of a damaged log into a new one, and say what is missing.
    ///
    /// Nothing in the damaged log is changed. The first record that is copied keeps its number, and the others follow
    /// without a gap; what is printed says which records are missing. Without a control file that can be read, records
    /// that were truncated away may be there again. Of a state the commands are copied, as the records of a log; see `landfall state salvage`.
    Salvage(LogSalvage),
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct LogDirectory {
    /// Directory of the log.
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct LogSalvage {
    #[command(flatten)]
    pub from: LogDirectory,
    /// Directory of the new log: an empty one, or one that is not there yet.
    #[arg(long, value_name = "NEW", value_hint = ValueHint::DirPath)]
    pub to: PathBuf,
}
