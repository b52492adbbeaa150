//! `landfall store`: what is asked of a store in a directory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

#[derive(Args)]
pub struct Store {
    #[command(subcommand)]
    pub command: StoreCommand,
}

#[derive(Subcommand)]
pub enum StoreCommand {
    /// Print the keyspaces of a store, what space they take, and what is in its log; nothing is changed.
    Stat(StoreDirectory),
    /// Print the keys and values of a store; nothing is changed.
    Dump(StoreDump),
    /// Read all of a store and compare it with its checksums; nothing is changed.
    Verify(StoreDirectory),
}

#[derive(Args)]
pub struct StoreDirectory {
    /// Directory of the store.
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

#[derive(Args)]
pub struct StoreDump {
    #[command(flatten)]
    pub store: StoreDirectory,
    /// Print this keyspace alone.
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
}
