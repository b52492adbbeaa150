//! What a server is told on its command line, and whether it took it.

use crate::DatabaseError;
use crate::SettingError;
use crate::setting::Chosen;

/// What every server here is told; the last two can be set otherwise.
const FIXED: [(&str, &str); 6] = [
    // The socket only.
    ("port", "0"),
    ("daemonize", "no"),
    ("supervised", "no"),
    // To standard output, which is ours.
    ("logfile", ""),
    ("always-show-logo", "no"),
    // No dumps of everything besides the log: they are written at moments of their own.
    ("save", ""),
];

/// Directives that would lead a server away from where we look for it.
const OURS: [&str; 17] = [
    "appenddirname",
    "appendfilename",
    "bind",
    "daemonize",
    "dbfilename",
    "dir",
    "include",
    "logfile",
    "pidfile",
    "port",
    "replicaof",
    "requirepass",
    "slaveof",
    "supervised",
    "tls-port",
    "unixsocket",
    "unixsocketperm",
];

/// The settings of a server.
pub(super) struct Options {
    pub name: String,
    /// What was asked for.
    asked: Vec<(String, String)>,
}

impl Options {
    pub fn new(chosen: &Chosen) -> Result<Options, SettingError> {
        chosen.whether("appendonly")?;
        let policies = ["always", "everysec", "no"].map(|policy| (policy, policy));
        let policy = chosen.one_of("appendfsync", &policies)?;
        let mut asked = vec![
            ("appendonly".into(), chosen.text("appendonly").to_owned()),
            ("appendfsync".into(), policy.to_owned()),
        ];
        let name = chosen.name();
        for (directive, value) in chosen.passed_on() {
            if OURS.contains(&directive.as_str()) {
                return Err(SettingError(format!(
                    "{name}: {directive} is Landfall's to choose"
                )));
            }
            let is_off = directive == "cluster-enabled" && value == "no";
            if directive.starts_with("cluster-") && !is_off {
                return Err(SettingError(format!(
                    "{name}: {directive} is for a Redis Cluster, which would listen to the network: leave it out"
                )));
            }
            asked.push((directive.clone(), value.clone()));
        }
        Ok(Options { name, asked })
    }

    /// As arguments of the server; later ones win.
    pub fn arguments(&self) -> Vec<String> {
        let fixed = FIXED
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        fixed
            .chain(self.asked.iter().cloned())
            .flat_map(|(name, value)| [format!("--{name}"), value])
            .collect()
    }

    /// What was asked for, by name.
    pub fn asked(&self) -> &[(String, String)] {
        &self.asked
    }

    /// Finds in the log of a server that did not start what it does not like among what was asked for.
    pub fn complaint(&self, log: &[String]) -> Option<DatabaseError> {
        let mut lines = log.iter();
        let line = lines.find_map(|line| line.strip_prefix(">>> "))?;
        let line = line.trim_matches('\'');
        let name = line.split_whitespace().next()?;
        self.asked.iter().find(|(asked, _)| asked == name)?;
        let why = lines.next().map_or("no reason", String::as_str);
        Some(DatabaseError::Setting(format!(
            "the server says of {line}: {why}"
        )))
    }

    /// Complains if a server made another number of a directive than was asked for.
    pub fn hold_against(&self, name: &str, actual: &str) -> Result<(), DatabaseError> {
        let asked = self.asked.iter().rfind(|(asked, _)| asked == name);
        let Some((_, value)) = asked else {
            return Ok(());
        };
        match (number(value), number(actual)) {
            (Some(should), Some(is)) if should != is => Err(DatabaseError::Setting(format!(
                "{name}={value}: the server makes {actual} of it; say so, or set another value"
            ))),
            _ => Ok(()),
        }
    }
}

/// A number as the server reads it: `k` is 1000, `kb` is 1024.
fn number(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::super::KIND;
    use super::*;

    fn options(set: &[(&str, &str)]) -> Result<Options, String> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let set: Vec<_> = set.iter().map(owned).collect();
        Chosen::new(&KIND.description, &set)
            .and_then(|chosen| Options::new(&chosen))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_ours_to_say_is_refused() {
        let error = options(&[("dir", "/")]).map(|_| ()).unwrap_err();
        assert!(error.ends_with("dir is Landfall's to choose"), "{error}");
        let error = options(&[("cluster-enabled", "yes")])
            .map(|_| ())
            .unwrap_err();
        assert!(error.contains("listen to the network"), "{error}");
        let error = options(&[("appendfsync", "often")])
            .map(|_| ())
            .unwrap_err();
        assert!(error.ends_with("always, everysec, no"), "{error}");
    }

    #[test]
    fn a_complaint_about_what_was_set_is_found_in_the_log() {
        let options = options(&[("hz", "often")]).unwrap();
        let log = |about: &str| {
            let lines = [
                "*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***",
                "Reading the configuration file, at line 5",
                about,
                "argument couldn't be parsed into an integer",
            ];
            options.complaint(&lines.map(str::to_owned))
        };
        assert_eq!(
            log(">>> 'hz \"often\"'").unwrap().to_string(),
            "the server says of hz \"often\": argument couldn't be parsed into an integer"
        );
        assert_eq!(log(">>> 'port \"0\"'"), None);
    }

    #[test]
    fn a_value_that_the_server_changed_is_named() {
        let options = options(&[("hz", "9000"), ("auto-aof-rewrite-min-size", "1mb")]).unwrap();
        assert!(options.hold_against("hz", "500").is_err());
        let size = options.hold_against("auto-aof-rewrite-min-size", "1048576");
        assert_eq!(size, Ok(()));
        assert_eq!(options.hold_against("appendfsync", "everysec"), Ok(()));
    }
}
