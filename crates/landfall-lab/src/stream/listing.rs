//! What `landfall lab stream --list` says.

use std::fmt::Write as _;

use landfall_os::humanize::{bytes_text, duration_text};

use super::Plan;

/// Bytes per second that a large state becomes durable at, as is reckoned.
const NOMINAL_BYTES: f64 = 500e6;

impl Plan {
    /// The strategies, those that are left out, and what the plan takes.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        let sizes = self.sizes_within(u64::MAX, NOMINAL_BYTES);
        let (strategies, excluded) = self.strategies(&sizes);
        for strategy in &strategies {
            let size = bytes_text(strategy.size);
            let _ = writeln!(text, "{:<48} {size:>8}", strategy.key());
        }
        for excluded in &excluded {
            let key = excluded.strategy.key();
            let _ = writeln!(text, "{key:<48} left out: {}", excluded.reason);
        }
        let bytes = self.written_bytes(&sizes);
        let seconds = bytes as f64 / NOMINAL_BYTES;
        let _ = writeln!(
            text,
            "\n{} strategies in {} rounds: about {} and {} written, at {} MB durable a second; sizes for which there is no room are left out.",
            strategies.len(),
            self.rounds,
            duration_text(seconds),
            bytes_text(bytes),
            NOMINAL_BYTES / 1e6,
        );
        text
    }
}
