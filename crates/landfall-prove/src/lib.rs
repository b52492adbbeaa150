//! Proof: what does a subject lose when the power is cut?
//!
//! A subject runs numbered transactions on a recorded filesystem; each is *sent* and, once the subject
//! says that it is durable, *acknowledged*. Then each crash state is mounted, the subject recovers, and
//! what it reads back is held against what it had acknowledged.
//!
//! - `subject`: what is proven; `record` runs it on a recorder, with a `writeback` injector if asked for;
//! - `history`: what was sent and acknowledged, and where among the device's writes;
//! - `proof`: the whole of it; `explore`: the crash states, several `worker`s checking them; `judge` says what is lost;
//! - `check_process`: another process, in which a linked-in store may crash on what a power cut left;
//! - `shorten`, `timeline`: the failing state that is easiest to understand;
//! - `scratch_fs`: the filesystems that all of it runs on;
//! - `transactions`: what a store's own proof sends and recognises;
//! - `power_cuts`: all of that as one call of a `#[test]`;
//! - `uml`: a program inside User-mode Linux, where an ordinary user is root;
//! - `subjects`, `self_test`: what can be proven by name, and known faults that must be caught (feature `subjects`).
//!
//! Threads: one runs the subject, then each worker has a device, a mount point and a walk through the
//! recording of its own, and starts a process that does the subject's part of a check. All mounts are private to this process.

pub mod check_process;
mod error;
mod explore;
mod history;
mod judge;
mod plan;
mod power_cuts;
mod progress;
mod proof;
mod record;
pub mod scratch_fs;
#[cfg(feature = "subjects")]
pub mod self_test;
mod shorten;
pub mod subject;
#[cfg(feature = "subjects")]
pub mod subjects;
mod timeline;
pub mod transactions;
pub mod uml;
mod worker;
mod writeback;

pub use check_process::CheckIn;
pub use error::Error;
pub use landfall_os::Stop;
pub use landfall_recorder::Fault;
pub use plan::Plan;
pub use power_cuts::PowerCuts;
pub use progress::{Progress, Silent};
pub use proof::{Proof, prove};
pub use subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};

// The example of the README compiles, and is run where it can be.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
