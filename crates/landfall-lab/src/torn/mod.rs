//! Experiment `torn`: what does protection against torn pages cost?
//!
//! InnoDB writes each page twice, once to the doublewrite buffer; on ext4 with data=journal the filesystem
//! does the same, and one of both is too many. Published in 2014, and corrected later: up to 55% faster, on
//! a spinning disk, with processors to spare, data that fits the pool, few reads and a continuous write load; and
//! not safe after all. [`Plan`] sets those conditions up on a recorder with the times of such a disk, and
//! removes each in turn; PostgreSQL's page images and every protection of Landfall's store are beside it; `safety` cuts the power on the same settings. `docs/reference/experiment-torn.md` is the page
//! for users.

#[cfg(feature = "command-line")]
mod arguments;
mod catalogue;
mod claims;
mod experiment;
#[cfg(test)]
pub(crate) mod fixtures;
mod plan;
mod result;
mod safety;
mod sections;
pub mod summary_text;
mod views;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use catalogue::{Condition, Protection, StoreProtection};
pub use plan::{Plan, Selection};
pub use result::{TornProof, TornResults};
pub use sections::{
    Pair, Section, Side, Sides, base, conditions, disk_text, disks, sections, stores,
};
