//! Experiment `sync`: what does one durable write cost, by how its space was allocated, how it is
//! synced, how large it is and how many threads write?
//!
//! [`Plan`] says which strategies are measured; `trial` measures one once; `files` prepares what
//! a trial writes to; `device_cost` turns kernel counters into writes and flushes per operation;
//! `disturbance` finds what else was going on, `drift` whether the rate held; `claims` holds the
//! published figures against today's; `safety` says which is the fastest that lost nothing. `docs/reference/experiment-sync.md` is the page for users.

#[cfg(feature = "command-line")]
mod arguments;
mod claims;
mod device_cost;
mod disturbance;
mod drift;
mod experiment;
mod files;
#[cfg(test)]
pub(crate) mod fixtures;
mod listing;
mod notices;
mod plan;
mod proof;
mod result;
pub mod safety;
mod sections;
mod strategy;
mod summary;
mod track;
mod trial;
mod views;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use landfall_results::{CacheState, Files, Placement};
pub use plan::{Excluded, Operations, Plan, Selection, required_bytes};
pub use result::{Pilot, SyncResults};
pub use safety::Safety;
pub use sections::sections;
pub use strategy::{Strategy, find};
pub(crate) use views::proving_command;
