//! What `landfall lab sync --list` says.

use std::fmt::Write as _;

use landfall_os::humanize::{bytes_text, duration_text};

use super::Plan;

/// Durable writes per second that are reckoned with.
const NOMINAL_RATE: f64 = 5_000.0;

impl Plan {
    /// The strategies, those that are left out, and what the plan takes.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for strategy in &self.strategies {
            let operations = self.operations_of(strategy, NOMINAL_RATE);
            let _ = writeln!(text, "{:<48} {operations:>8} operations", strategy.key());
        }
        for excluded in &self.excluded {
            let key = excluded.strategy.key();
            let _ = writeln!(text, "{key:<48} left out: {}", excluded.reason);
        }
        let (seconds, bytes) = self.expected(NOMINAL_RATE);
        let _ = writeln!(
            text,
            "\n{} strategies in {} rounds: about {} and {} written, at {NOMINAL_RATE} durable writes a second.",
            self.strategies.len(),
            self.rounds,
            duration_text(seconds),
            bytes_text(bytes),
        );
        text
    }
}
