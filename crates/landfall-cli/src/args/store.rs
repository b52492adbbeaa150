//! `landfall store`: what is asked of a store in a directory.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use landfall_os::humanize::parse_size;

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 damaged, or failed, 2 wrong command line, or no store there, 4 open in a program.";

#[derive(Args)]
pub struct Store {
    #[command(subcommand)]
    pub command: StoreCommand,
}

#[derive(Subcommand)]
pub enum StoreCommand {
    /// Print the keyspaces of a store, what space they take, what is in its log, and what updates at random would write;
    /// nothing is changed.
    ///
    /// What updates would write is a formula, without the log. In it c is what leaves take of the bytes of their rows, by up to 64
    /// leaves; m the share of all rows whose changes are in memory; b the share that runs take; u how many changes a leaf
    /// gets at once; and tiers how often a change is written again from run to run. It is not printed where changes of half of
    /// all rows fit into memory.
    Stat(StoreStat),
    /// Print the keys and values of a store; nothing is changed.
    Dump(StoreDump),
    /// Read all of a store and compare it with its checksums; nothing is changed.
    Verify(StoreDirectory),
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct StoreDirectory {
    /// Directory of the store.
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct StoreStat {
    #[command(flatten)]
    pub store: StoreDirectory,
    /// Memory that the store would be opened with.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = memory)]
    pub memory: usize,
}

fn memory(text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        size if (4 << 10..=1 << 44).contains(&size) => Ok(size as usize),
        _ => Err("a store has from 4K to 16384G of memory".into()),
    }
}

#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub struct StoreDump {
    #[command(flatten)]
    pub store: StoreDirectory,
    /// Print this keyspace alone.
    #[arg(long, value_name = "NAME")]
    pub keyspace: Option<String>,
}
