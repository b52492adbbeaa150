//! Compares Landfall's store with other embedded key-value stores, by workloads that others publish and by its own.
//!
//! `engines` has the stores behind one interface, `workloads` what is done with them, `contest` who has a turn when,
//! `results` what came out, and `picture` and `curve` draw that. `rows` and `zipf` make keys and values; `place` is about files.

mod contest;
mod curve;
mod engines;
mod picture;
mod place;
mod probe;
mod results;
mod rows;
mod workloads;
mod zipf;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workloads::{load, open, queue, reads, redb, stalls, updates, ycsb};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
#[command(
    name = "stores",
    about = "Compares Landfall's store with other embedded key-value stores",
    args_override_self = true
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The workload of redb's own benchmark
    Redb(redb::Options),
    /// YCSB's workloads A to F, with records of 1,000 bytes
    Ycsb(ycsb::Options),
    /// Loads rows of 116 bytes, in order and in random order
    Load(load::Options),
    /// Updates rows at random, and tells the bytes written for each byte
    Updates(updates::Options),
    /// Reads rows at random, cold and warm, and scans them
    Reads(reads::Options),
    /// Opens a store that was killed, with a log that no checkpoint has cut
    Open(open::Options),
    /// Times of durable commits while checkpoints and compactions are made
    Stalls(stalls::Options),
    /// A queue: how long it takes to find its first job after many have passed, and the space that is left of them
    Queue(queue::Options),
    /// Draws what was measured
    Picture(picture::Options),
    /// Draws what the example buffer_curve of the crate landfall printed
    Curve(curve::Options),
    /// Writes records, and waits to be killed
    #[command(hide = true)]
    Fill(open::Fill),
    /// Writes what is read then
    #[command(hide = true)]
    Write(reads::Write),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Redb(options) => redb::run(&options),
        Command::Ycsb(options) => ycsb::run(&options),
        Command::Load(options) => load::run(&options),
        Command::Updates(options) => updates::run(&options),
        Command::Reads(options) => reads::run(&options),
        Command::Open(options) => open::run(&options),
        Command::Stalls(options) => stalls::run(&options),
        Command::Queue(options) => queue::run(&options),
        Command::Picture(options) => picture::run(&options),
        Command::Curve(options) => curve::run(&options),
        Command::Fill(fill) => open::fill(&fill),
        Command::Write(options) => reads::write(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stores: {error}");
            ExitCode::FAILURE
        }
    }
}
