//! Experiment `dump-vs-log`: what does it take to keep a state durable, by writing all of it now and then or
//! by logging its changes, and how much must change before the dump is cheaper?
//!
//! A state of [`Plan::state_bytes`] stands in memory in records of [`Plan::record_bytes`], and
//! [`Plan::updates_per_second`] of them, chosen at random, get a new content every second. The state is the engine's
//! (`landfall::Journaled`), and updates are logged by the engine's log (`landfall::Log`), in each way of
//! [`Saving`](landfall_results::Saving). Two plain variants stand beside them: a dump by `write` and `rename`, while
//! which the program stands still, and a file to which each update is appended and which is synced for it.
//!
//! In each round the state is dumped and read back, a long log is replayed upon the dump, the updates are logged in each
//! way and read back together with the dump, and the engine takes snapshots while updates go on. Every restart must
//! bring back what was saved, byte for byte: what does not is an error and never a figure.
//!
//! `record` and `state` hold what is saved; `dump`, `updates` (paced by `pace`) and `restart` do what is timed, and
//! `restored` is what comes back; `run` makes trials of them and `experiment` rounds; `trial` makes figures of them,
//! `break_even` and `notices` say what follows, and `views` shows it. `docs/reference/experiment-dump-vs-log.md` is the
//! page for users.
//!
//! **Threads.** All of it runs on the calling thread, but for the thread that commits once a second or takes a
//! snapshot, and the engine's own. **Stopping.** A request to stop is heard between any two calls, though not within
//! one: the sync of a large dump, or a snapshot, is waited for. **Failures.** A full disk, and anything else that fails,
//! ends the run with an error; the files that are there by then go with the site's private directory.

#[cfg(feature = "command-line")]
mod arguments;
mod break_even;
mod dump;
mod experiment;
#[cfg(test)]
pub(crate) mod fixtures;
mod listing;
mod notices;
mod pace;
mod plan;
mod record;
mod restart;
mod restored;
mod result;
mod room;
mod run;
mod state;
pub mod summary_text;
mod trial;
mod updates;
pub(crate) mod views;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use plan::Plan;
pub use result::{BreakEven, Cost, DumpVsLogResults};

use std::io;

use crate::Stop;

/// Bytes that are read by one call, where there are as many.
const CHUNK: usize = 1 << 20;

/// Fails as interrupted if somebody asked to stop.
fn interrupted_if(stop: &Stop) -> io::Result<()> {
    if stop.is_requested() {
        Err(io::ErrorKind::Interrupted.into())
    } else {
        Ok(())
    }
}

/// What the engine could not do, of the kind that the system gave it: a full disk stays one.
fn engine(error: landfall::Error) -> io::Error {
    let kind = match &error {
        landfall::Error::NoSpace { .. } => io::ErrorKind::StorageFull,
        landfall::Error::Io { source, .. } | landfall::Error::Poisoned { source, .. } => {
            source.kind()
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
