//! Opens, reads, and goes on with whatever a directory may hold. `cargo fuzz run reader`, in `crates/landfall`;
//! `--sanitizer none` does without a nightly compiler.

#![no_main]

#[macro_use]
mod target;

target!(reader);
