//! How a proof tells what it is doing.

use std::time::Duration;

/// Hears of a proof's progress.
pub trait Progress {
    /// Called before a part begins, and now and then while crash states are checked. `left` is the time that it will
    /// still take, estimated from what was done so far.
    fn doing(&mut self, what: &str, done: usize, total: usize, left: Duration);
}

/// Listens to nothing.
pub struct Silent;

impl Progress for Silent {
    fn doing(&mut self, _: &str, _: usize, _: usize, _: Duration) {}
}
