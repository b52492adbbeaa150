//! Proof: what does a subject lose when the power is cut?
//!
//! A subject runs numbered transactions on a recorded filesystem; each is *sent* and, once the subject
//! says that it is durable, *acknowledged*. Then each crash state is mounted, the subject recovers, and
//! what it reads back is held against what it had acknowledged.
//!
//! - `subject`: what is proven; `record` runs it on a recorder, with a `writeback` injector if asked for;
//! - `making`: how a recording was made, which is kept with it;
//! - `history`: what was sent and acknowledged, and where among the device's writes;
//! - `proof`: the whole of it; `explore`: the crash states, several `worker`s checking them, each on a `state_disk`; `judge` says what is lost;
//! - `checks`: what was found in which files, told apart by `file_identity`: equal files are checked once;
//! - `check_process`: another process, in which a linked-in store may crash on what a power cut left;
//! - `second_cut`: the power goes again, while filesystem and subject recover;
//! - `exercised`: what happened that a subject must be protected from, and in how many states;
//! - `shorten`, `timeline`: the failing state that is easiest to understand;
//! - `scratch_fs`: the filesystems that all of it runs on;
//! - `transactions`: what a store's own proof sends and recognises;
//! - `cluster`: all of that of several nodes, whose power goes at the same moment, or one after the other;
//! - `power_cuts`: all of that as one call of a `#[test]`;
//! - `uml`: a program inside User-mode Linux, where an ordinary user is root;
//! - `subjects`, `cases`: what can be proven by name, and what is known of it; `self_test` tells the safe from the unsafe, and
//!   `catalogue` says how soon known faults are caught (feature `subjects`).
//!
//! Threads: one runs the subject, then each worker has a device, a mount point and a walk through the
//! recording of its own, and starts a process that does the subject's part of a check. All mounts are private to this process.

#[cfg(feature = "subjects")]
pub mod cases;
#[cfg(feature = "subjects")]
pub mod catalogue;
pub mod check_process;
mod checks;
pub mod cluster;
mod cut_name;
mod error;
mod exercised;
mod explore;
mod file_identity;
mod file_layout;
mod history;
mod judge;
mod making;
mod plan;
mod power_cuts;
mod progress;
mod proof;
mod record;
pub mod scratch_fs;
mod second_cut;
#[cfg(feature = "subjects")]
pub mod self_test;
mod shorten;
mod state_disk;
pub mod subject;
#[cfg(feature = "subjects")]
pub mod subjects;
mod timeline;
pub mod transactions;
pub mod uml;
mod worker;
mod writeback;

pub use check_process::CheckIn;
pub use cut_name::CutName;
pub use error::Error;
pub use landfall_os::Stop;
pub use landfall_recorder::{Fault, Offer};
pub use landfall_results::proof::Hazard;
pub use plan::{Enough, Plan};
pub use power_cuts::PowerCuts;
pub use progress::{Progress, Silent};
pub use proof::{Proof, prove};
pub use subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};

// The example of the README compiles, and is run where it can be.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
