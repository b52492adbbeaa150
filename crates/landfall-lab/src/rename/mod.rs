//! Experiment `rename`: what does replacing a small file cost, by how it is replaced, what is synced, and the filesystem?
//!
//! A program that must have either the old or the new content after a power cut writes a new file, syncs it, renames it
//! over the old one, and syncs the directory. [`Way`] has that and what leaves a part of it out; a trial replaces one
//! file again and again. Sites are measured side by side, round by round. With `--prove` each way is also held against
//! power cuts. `docs/reference/experiment-rename.md` is the page for users.

#[cfg(feature = "command-line")]
mod arguments;
mod experiment;
mod plan;
mod result;
mod trial;
mod views;
mod way;

#[cfg(feature = "command-line")]
pub use arguments::Arguments;
pub use plan::{Plan, Selection};
pub use result::RenameResults;
pub use way::Way;
