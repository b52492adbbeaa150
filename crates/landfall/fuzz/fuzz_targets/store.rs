//! Opens a store in a directory that may hold anything, reads all of it, and goes on writing. `cargo fuzz run store`, in
//! `crates/landfall`; `--sanitizer none` does without a nightly compiler.

#![no_main]

#[macro_use]
mod target;

target!(store);
