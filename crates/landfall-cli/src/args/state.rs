//! `landfall state`: what is asked of a state in a directory.

use clap::{Args, Subcommand};

use super::LogDirectory;

#[derive(Args)]
pub struct State {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Subcommand)]
pub enum StateCommand {
    /// Print the snapshots of a state, and the commands in its log.
    Dump(LogDirectory),
    /// Read all snapshots of a state and its log, and compare them with their checksums; nothing is changed.
    Verify(LogDirectory),
}
