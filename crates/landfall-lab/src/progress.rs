//! How a run tells what it is doing.

use std::time::Duration;

use landfall_results::Row;

/// Hears of a run's progress, between trials only: nothing is called while something is measured.
pub trait Progress {
    /// Called before a trial (or a preparation) begins. `left` is the time that the run will still
    /// take, estimated from the trials so far.
    fn doing(&mut self, what: &str, done: usize, total: usize, left: Duration);

    /// Called after each trial.
    fn measured(&mut self, row: &Row<'_>);
}

/// Listens to nothing.
pub struct Silent;

impl Progress for Silent {
    fn doing(&mut self, _: &str, _: usize, _: usize, _: Duration) {}
    fn measured(&mut self, _: &Row<'_>) {}
}
