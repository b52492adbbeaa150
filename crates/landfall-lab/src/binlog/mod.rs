//! Experiment `binlog`: what does syncing a growing commit log cost under concurrency, by filesystem?
//!
//! MariaDB writes each transaction to two logs: InnoDB's, which was preallocated, and the binary log, which
//! grows. [`Plan`] varies when each is synced, the clients and the filesystem; `claims` holds what was
//! published of it in 2009 against today's measurement; `sections` and [`summary_text`] are what the terminal
//! and the report show. PostgreSQL, Redis, etcd and SQLite stand beside it with the ways that they have.
//! `docs/reference/experiment-binlog.md` is the page for users.

#[cfg(feature = "command-line")]
mod arguments;
mod claims;
mod experiment;
#[cfg(test)]
pub(crate) mod fixtures;
mod plan;
mod result;
mod sections;
pub mod summary_text;
mod views;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use plan::{Plan, Selection};
pub use result::BinlogResults;
pub use sections::{Section, Sides, Tried, beside, sections, tried};
