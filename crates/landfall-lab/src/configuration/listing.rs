//! What `landfall lab --list` says of an experiment on databases.

use std::fmt::Write as _;

use landfall_os::humanize::{bytes_text, duration_text};

use super::{Configuration, Plan};

impl Plan {
    /// The configurations, those that differ in their clients only in one line, and what they take.
    pub fn listing(&self) -> String {
        let mut text = String::new();
        let same = |a: &Configuration, b: &Configuration| (&a.site, &a.name) == (&b.site, &b.name);
        for group in self.configurations.chunk_by(same) {
            let Some(first) = group.first() else {
                continue;
            };
            let clients: Vec<String> = group.iter().map(|one| one.clients.to_string()).collect();
            let key = format!("{}/{}", first.site.key(), first.name);
            let _ = writeln!(text, "{key:<70} {:>8} clients", clients.join(", "));
        }
        let _ = writeln!(
            text,
            "\n{} configurations on {} sites in {} rounds: about {}; {} must be free, and about {} are written.",
            self.configurations.len(),
            self.sites().len(),
            self.rounds,
            duration_text(self.expected().as_secs_f64()),
            bytes_text(self.required_bytes()),
            bytes_text(self.written_bytes()),
        );
        text
    }
}
