//! What is found, as it stands in the results document: series of trials, estimates, claims, notices and proofs.
//!
//! A [`Series`] was measured with one combination of [`Axes`]; its trials keep their figures by [`Metric`], of which
//! [`metric::METRICS`] says everything.
//!
//! [`witness`] is what a witness on another host found of a disk, which has a document of its own.
//!
//! [`view`] is what is to be shown of it, as data.
//!
//! It measures nothing, opens no file, and knows neither how something was found nor what it looks like. Whoever makes
//! results, and whoever shows them, depends on this crate and not on the other.

mod axes;
pub mod claim;
mod fact;
mod filesystem_spec;
pub mod metric;
mod notice;
pub mod numbers;
pub mod proof;
mod saving;
pub mod series;
pub mod stats;
mod trial;
pub mod view;
pub mod witness;

pub use axes::{Axes, Axis, CacheState, Data, Files, Placement, Term};
pub use fact::Fact;
pub use filesystem_spec::{FilesystemSpec, Kind};
pub use metric::Metric;
pub use notice::{Notice, Weight, left_out, topics};
pub use saving::{Policy, Saving, Way};
pub use series::{Row, Series, SeriesProof};
pub use trial::{Disturbance, KindOfRequest, Steadiness, Trial, Window};

// The example of the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
