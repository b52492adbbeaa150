//! `landfall log`: what is asked of a log in a directory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

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
}

#[derive(Args)]
pub struct LogDirectory {
    /// Directory of the log.
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}
