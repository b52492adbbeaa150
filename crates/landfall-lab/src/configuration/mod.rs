//! Databases under load: what one request costs, by site, database, settings, workload and clients.
//!
//! A *configuration* is a site, a database with its settings, a workload and a number of clients that
//! ask at the same time. The experiments on databases are plans of configurations ([`Plan`]); they share
//! the runner ([`run`]), its results ([`Measurements`]) and what is shown of them, and add their own
//! question: which configurations, which claims, which sentences.
//!
//! - `loaded` creates and fills a database once, and gives each start a copy of it, so that all
//!   trials begin with the same bytes;
//! - `experiment` makes the sites and takes every configuration once a round, round after round;
//! - `trial` measures one once, with `clients` that ask at the same time; `steady` says when it may begin,
//!   `device_cost`, `wear`, `summary` and `disturbance` what it means.
//!
//! What cannot be had (a database that is not installed, a setting that it refuses, a filesystem that
//! cannot be made) is a row that says so, and never the end of a run. Everything that was started or made
//! ends with the run, also by Ctrl-C.

mod busy;
mod device_cost;
mod disturbance;
mod experiment;
#[cfg(test)]
pub(crate) mod fixtures;
mod listing;
mod loaded;
mod plan;
mod result;
mod steady;
mod trial;
pub(crate) mod views;
mod wear;

pub use experiment::run;
pub use plan::{Configuration, Plan, Settings, UntilSteady};
pub(crate) use result::certain_ratio;
pub use result::{Load, Measurements};
pub use steady::{FULL, MEMTABLES};
