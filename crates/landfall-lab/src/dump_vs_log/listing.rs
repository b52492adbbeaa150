//! What `landfall lab dump-vs-log --list` says.

use landfall_os::humanize::{bytes_text, duration_text};

use super::Plan;
use landfall_results::Saving;

/// Bytes per second that a dump becomes durable at, as is reckoned.
const NOMINAL_BYTES: f64 = 500e6;

impl Plan {
    /// What is saved, how it is logged, and what the plan takes.
    pub fn listing(&self) -> String {
        let what = format!(
            "{:<48} {:>8} in records of {}, {} updates a second",
            "dump against log",
            bytes_text(self.state_bytes),
            bytes_text(self.record_bytes),
            self.updates_per_second
        );
        let ways = Saving::ALL.map(Saving::name);
        let written = self.written_bytes();
        let seconds = self.expected().as_secs_f64() + written as f64 / NOMINAL_BYTES;
        format!(
            "{what}\n{}\n\n{} rounds: about {} and {} written, at {} MB durable a second; a state for which there is no room is made smaller.\n",
            ways.join("\n"),
            self.rounds,
            duration_text(seconds),
            bytes_text(written),
            NOMINAL_BYTES / 1e6,
        )
    }
}
