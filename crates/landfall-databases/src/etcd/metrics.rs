//! What etcd counts of itself: its page `/metrics`, which it serves beside its own protocol.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::TITLE;
use crate::{DatabaseError, page};

/// How long the page may take.
const ANSWERING: Duration = Duration::from_secs(60);

/// Counters by their names.
pub(super) struct Metrics(String);

impl Metrics {
    /// Asks for all of them.
    pub fn of(socket: &Path) -> Result<Metrics, DatabaseError> {
        let ask = || {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(ANSWERING))?;
            page::read(stream, "/metrics")
        };
        ask()
            .map(Metrics)
            .map_err(|error| DatabaseError::io(&format!("cannot read {TITLE}'s metrics"), &error))
    }

    /// A counter; `None` if there is none of that name.
    pub fn counter(&self, name: &str) -> Option<u64> {
        let mut lines = self.0.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let value: f64 = value.trim().parse().ok()?;
        Some(value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let metrics = Metrics("# HELP a_count b\na_count_total 4\na_count 2e+06\n".to_owned());
        assert_eq!(metrics.counter("a_count"), Some(2_000_000));
        assert_eq!(metrics.counter("a"), None);
    }
}
