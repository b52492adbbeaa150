//! Experiment `stream`: how fast can a large in-memory state be handed over and made durable?
//!
//! A trial has two phases. In the *hand-over* the program gives all its bytes to the kernel; when it
//! ends, the program may go on. The *sync* lasts until the bytes are durable. [`Plan`] says what is
//! measured; `trial` measures one strategy once; `wall` finds the size at which the page cache stops
//! taking in data faster than the disk. `docs/reference/experiment-stream.md` is the page for users.

#[cfg(feature = "command-line")]
mod arguments;
mod ceiling;
mod claims;
mod experiment;
mod files;
#[cfg(test)]
pub(crate) mod fixtures;
mod listing;
mod notices;
mod plan;
mod result;
mod room;
mod sections;
mod strategy;
pub mod summary_text;
mod trial;
mod views;
mod wall;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use landfall_results::Data;
pub use plan::{Excluded, Plan, Selection};
pub use result::{Ceiling, StreamResults, Wall};
pub(crate) use sections::centre_size;
pub use sections::sections;
pub use strategy::Strategy;
