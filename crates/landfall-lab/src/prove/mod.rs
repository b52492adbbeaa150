//! Proof: what does a subject lose when the power is cut?
//!
//! A subject runs numbered transactions on a recorded filesystem; each is *sent* and, once the subject
//! says that it is durable, *acknowledged*. Then each crash state is mounted, the subject recovers, and
//! what it reads back is held against what it had acknowledged.
//!
//! - `subject`: what is proven; `record` drives it on a recorder, with a `stirrer` if asked for;
//! - `history`: what was said, and where among the device's writes;
//! - `explore`: the crash states, several `worker`s checking them; `judge` says what is lost;
//! - `shorten`, `timeline`: the failing state that is easiest to understand;
//! - `self_test`: known faults that must be caught;
//! - `sentences`: what it came to, in words.
//!
//! Threads: one drives the subject, then each worker has a device, a mount point and a walk through the
//! recording of its own. All mounts are private to this process.

mod experiment;
mod explore;
#[cfg(test)]
pub(crate) mod fixtures;
mod history;
mod judge;
mod plan;
mod record;
mod result;
pub mod self_test;
pub mod sentences;
mod shorten;
mod stirrer;
mod strategies;
pub mod subject;
mod timeline;
mod worker;

pub use experiment::prove;
pub use judge::Breach;
pub use plan::Plan;
pub use result::{
    BreachCount, Coverage, Expectation, FailingState, Happening, Moment, Outcome, ProofResults,
    Unchecked, Workload,
};
pub(crate) use strategies::{prepare, strategies};
pub use subject::{AckSink, Mark, Promise, Recovered, Subject, SubjectError};
