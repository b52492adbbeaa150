//! Campaigns: proofs and measurements on many machines.
//!
//! A [`Plan`] says what is proven and measured, and in how many shards. Any scheduler runs the shards, each on one machine;
//! each leaves one immutable document, named by its content, where results go. Merging the documents is a pure function:
//! their order, and whether one is there twice, change nothing.
//!
//! - `plan_file`: what a user asks for; `plan`: what is kept of it, and never changes;
//! - `run`: what one shard does, `program`: how, and `document`: what it leaves;
//! - `store`: where documents and recordings are kept, `unsent`: where until then, and `content`: how they are called;
//! - `fit`: what a document says, as far as it can be true; `merge`: what all of it came to;
//! - `fleet`: what machines have in common, and which differ;
//! - `emit`: the files in which schedulers are told of it.

mod content;
mod document;
pub mod emit;
mod error;
mod fit;
pub mod fleet;
mod merge;
mod plan;
mod plan_file;
mod program;
mod run;
mod store;
mod unsent;

pub use content::{CampaignId, Digest};
pub use document::{Outcome, ShardDocument};
pub use error::Error;
pub use fleet::Fleet;
pub use merge::{Campaign, FailedTask, Measured, OddLoss, Proof};
pub use plan::{Plan, Share, Task};
pub use plan_file::{PlanFile, RecordingOf, Run};
pub use program::{Ended, own_directory, run_program};
pub use run::{ShardRun, fetch};
pub use store::{Found, Location, ResultStore};
pub use unsent::{recording_file, send_unsent};
