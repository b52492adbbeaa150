//! Shows whether a disk keeps its flushes, by a witness on another host.
//!
//! No software on the same host can know: what it remembers goes with the power, or stands on the disk that is in question.
//! The idea is that of Brad Fitzpatrick's `diskchecker.pl` (2005).
//!
//! - [`Server`]: the witness. It keeps what it is told in a durable state of the engine's, and answers after that.
//! - [`write()`]: writes block after block, and reports each to the witness once the disk has acknowledged it.
//! - [`check()`]: after the power was cut, holds what the disk has against what the witness knows.
//! - [`status()`]: the disks, their cuts, and the bound that follows.
//!
//! Inside: `channel` is a connection that nobody without the [`Token`] can speak on; `message` what is said on it;
//! `schedule` which block is written when, and so which one write may be in flight; `block` what is in one; `ledger` what the
//! witness knows; `holds` who writes what; `cutter` when it has the power cut; `note` what a writer leaves that gave up.
//!
//! **What is never accused**: the block of the write in flight, whatever it holds (`schedule`); a disk that is another one;
//! a place that somebody else has written to. **Without a known power cut** a loss is suspicious, and no more.
//!
//! **Threads.** The witness has one for each connection, one that accepts, and one for the operator's commands.

mod block;
mod channel;
mod check;
mod client;
mod cutter;
mod error;
mod holds;
mod ledger;
mod message;
mod note;
mod schedule;
mod server;
mod target;
mod token;
mod writer;

pub use check::{Checked, check};
pub use client::{Address, Client, PORT, status};
pub use cutter::Cutting;
pub use error::Error;
pub use message::Declared;
pub use server::{ServeOptions, Server};
pub use target::Place;
pub use token::Token;
pub use writer::{WriteOptions, Written, write};

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
