//! What the lab finds, as it stands in the results document: estimates, claims, notices and proofs.
//!
//! It measures nothing, opens no file, and knows neither how something was found nor how it is shown. Whoever makes
//! results, and whoever shows them, depends on this crate and not on the other.

pub mod claim;
mod notice;
pub mod numbers;
pub mod proof;
pub mod stats;

pub use notice::{Notice, Weight, left_out};

// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
