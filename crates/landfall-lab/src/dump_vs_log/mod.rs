//! Experiment `dump-vs-log`: what does it take to keep a state durable, by writing all of it now and then or
//! by logging its changes, and how much must change before the dump is cheaper?
//!
//! A state of [`Plan::state_bytes`] stands in memory in records of [`Plan::record_bytes`], and
//! [`Plan::updates_per_second`] of them, chosen at random, get a new content every second. In each round
//! the state is dumped and read back, a log of as many changes as there are records is replayed, and the
//! updates are logged under each [`Policy`] and read back together with the dump. Every restart must bring
//! back what was saved, byte for byte: what does not is an error and never a figure.
//!
//! `record` and `state` hold what is saved; `dump`, `log` (paced by `pace`) and `restart` do what is timed;
//! `experiment` puts them into rounds; `summary` and `break_even` make figures of them, and `views` shows those.
//! `docs/reference/experiment-dump-vs-log.md` is the page for users.
//!
//! All of it runs on the calling thread, but for the thread that syncs under [`Policy::EverySecond`]. A
//! request to stop is heard between any two calls to the kernel, though not within one: the sync of a large
//! dump on a slow disk is waited for. A full disk, and anything else that fails, ends the run with an error;
//! the files that are there by then go with the site's private directory.

#[cfg(feature = "command-line")]
mod arguments;
mod break_even;
mod dump;
mod experiment;
mod findings;
#[cfg(test)]
pub(crate) mod fixtures;
mod listing;
mod log;
mod pace;
mod plan;
mod record;
mod restart;
mod result;
mod room;
mod state;
mod summary;
pub mod summary_text;
pub(crate) mod views;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use plan::Plan;
pub use result::{
    BreakEven, Cost, DumpResult, DumpTrial, DumpVsLogResults, LogResult, LogTrial, Policy, Replay,
};

use std::io;

use crate::Stop;

/// Bytes that are written or read by one call, where there are as many.
const CHUNK: usize = 1 << 20;

/// Fails as interrupted if somebody asked to stop.
fn interrupted_if(stop: &Stop) -> io::Result<()> {
    if stop.is_requested() {
        Err(io::ErrorKind::Interrupted.into())
    } else {
        Ok(())
    }
}
