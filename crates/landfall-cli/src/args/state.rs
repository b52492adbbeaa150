//! `landfall state`: what is asked of a state in a directory.

use clap::{Args, Subcommand};

use super::{LogDirectory, LogSalvage};

#[derive(Args)]
pub struct State {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Subcommand)]
pub enum StateCommand {
    /// Print the snapshots of a state, and the commands in its log.
    ///
    /// A damaged snapshot is printed as such, and the exit code is 0; `verify` ends with 1 then.
    Dump(LogDirectory),
    /// Read all snapshots of a state and its log, and compare them with their checksums; nothing is changed.
    Verify(LogDirectory),
    /// Copy what can still be had of a damaged state: as it was before the first command that is missing.
    ///
    /// The copy begins from the newest snapshot that is whole and has every command it needs behind it. Nothing in the
    /// damaged state is changed. `landfall log salvage` copies single commands, as the records of a log.
    Salvage(LogSalvage),
}
