//! Experiments on durable writes: what they cost, on the user's own disk, and why.
//!
//! An *experiment* runs *trials* on a *site*, interleaved in *rounds*, and gives measurements with
//! intervals, *claims* with verdicts, and *notices* about whatever keeps a figure from being taken at
//! face value. Everything ends up in one [`Results`] document; tables, reports, comparisons and
//! exports are made from that document and from nothing else.
//!
//! ```no_run
//! use landfall_lab::{Silent, Site, Stop, run, standard_plans};
//!
//! let stop = Stop::default();
//! let site = Site::open(std::path::Path::new("."))?;
//! let results = run(&site, &standard_plans(), "my program", &stop, &mut Silent)?;
//! println!("{}", results.to_json());
//! # Ok::<(), landfall_lab::Error>(())
//! ```
//!
//! The lab writes only inside a private directory that it creates in the site and removes when it
//! ends, however it ends short of SIGKILL. It prints nothing: a [`Progress`] is told.

pub mod advice;
pub mod amplify;
#[cfg(feature = "command-line")]
pub mod arguments;
pub mod binlog;
pub mod clean;
pub mod compare;
pub mod config_file;
pub mod configuration;
pub mod dump_vs_log;
mod experiment;
pub mod export;
pub mod facts;
mod left_behind;
mod plan;
mod preparation;
mod progress;
mod proof;
pub mod prove;
mod readings;
pub mod rename;
pub mod report;
mod results;
mod room;
mod rounds;
pub mod rules;
mod run;
mod schedule;
pub mod section;
mod site;
pub mod stream;
pub mod sync;
pub mod torn;
mod views;
mod watch;

pub use experiment::{Experiment, Findings, Found};
pub use landfall_os::Stop;
pub use landfall_prove::{Error, scratch_fs};
pub use landfall_results::{Notice, Weight, claim, numbers, stats};
pub use plan::{PlanKind, standard_plans};
pub use preparation::Preparation;
pub use progress::{Progress, Silent};
pub use results::{ReadError, Results, SCHEMA_NAME, json_schema};
pub use run::run;
pub use site::{Site, SiteDescription, SiteKind, SiteResult, SiteSpec, canonical_directory};

// The example of the README compiles, and is run where it can be.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
