//! Experiment `amplify`: how many bytes reach the device per request, update-in-place against
//! write-optimised?
//!
//! LinkBench's requests are asked of every database that suits them, with data several times larger than
//! what it keeps in memory; of InnoDB with every page size, compressed or not; and of InnoDB and
//! PostgreSQL with the settings that matter where the data fits into memory ([`Plan`], `catalogue`). What
//! is counted is steady, and the writes are played through a model of a drive's flash. `claims` holds what
//! was published of it in 2014 and 2015 against today's measurement; [`sections`] and [`summary_text`] are
//! what the terminal and the report show. `docs/reference/experiment-amplify.md` is the page for users.

#[cfg(feature = "command-line")]
mod arguments;
mod catalogue;
mod claims;
mod experiment;
#[cfg(test)]
pub(crate) mod fixtures;
mod plan;
mod result;
mod sections;
pub mod summary_text;
mod updates;
mod views;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use catalogue::Part;
pub use plan::{Plan, Scale, Selection};
pub use result::AmplifyResults;
pub use sections::{Section, sections};
pub use updates::Updates;
