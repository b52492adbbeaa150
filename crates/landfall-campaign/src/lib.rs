//! Campaigns: proofs and measurements on many machines.
//!
//! A [`Plan`] says what is proven and measured, and in how many shards. Any scheduler runs the shards, each on one machine;
//! each leaves one immutable document, named by its content, where results go. Merging the documents is a pure function:
//! their order, and whether one is there twice, change nothing.

pub mod fleet;
pub mod plan;

pub use fleet::Fleet;
pub use plan::Plan;
