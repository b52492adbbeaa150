//! Proof: what does a subject lose when the power is cut?
//!
//! A subject runs numbered transactions on a recorded filesystem; each is *sent* and, once the subject
//! says that it is durable, *acknowledged*. Then each crash state is mounted, the subject recovers, and
//! what it reads back is held against what it had acknowledged.

pub mod subject;

pub use subject::{Found, Promise, Subject, SubjectError, Witness};
