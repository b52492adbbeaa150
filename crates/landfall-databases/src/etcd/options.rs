//! What a server is told on its command line, and whether it took it.

use super::{PEERS, SOCKET};
use crate::DatabaseError;
use crate::SettingError;
use crate::setting::Chosen;

const NAME: &str = "landfall";

/// What every server here is told; all but what it logs can be set otherwise.
const FIXED: [(&str, &str); 6] = [
    // Who is alone need not wait long for others before it leads; a tenth is the usual share.
    ("heartbeat-interval", "10"),
    ("election-timeout", "100"),
    // No batch and no request of ours is refused for its size.
    ("max-txn-ops", "100000"),
    ("max-request-bytes", "67108864"),
    // Since 3.6 the only one that there is.
    ("logger", "zap"),
    ("log-level", "warn"),
];

/// Beginnings of flags that would lead a server away from where we look for it, or make it more than one.
const OURS: [&str; 25] = [
    "advertise-",
    "auth-",
    "auto-tls",
    "cert-file",
    "client-",
    "config-file",
    "data-dir",
    "discovery",
    "force-new-cluster",
    "experimental-distributed-tracing",
    "experimental-enable-distributed-tracing",
    "distributed-tracing",
    "enable-distributed-tracing",
    "help",
    "initial-advertise",
    "initial-cluster",
    "key-file",
    "listen-",
    "log",
    "name",
    "peer-",
    "proxy",
    "trusted-ca-file",
    "version",
    "wal-dir",
];

/// The settings of a server.
pub(super) struct Options {
    pub name: String,
    /// What was asked for.
    asked: Vec<(String, String)>,
    /// Whether it syncs nothing.
    pub unsynced: bool,
}

impl Options {
    pub fn new(chosen: &Chosen) -> Result<Options, SettingError> {
        let unsynced = chosen.one_of("unsafe-no-fsync", &[("false", false), ("true", true)])?;
        let name = chosen.name();
        let mut asked = Vec::new();
        if unsynced {
            // Versions that do not have it are asked for nothing else.
            asked.push(("unsafe-no-fsync".to_owned(), "true".to_owned()));
        }
        for (key, value) in chosen.passed_on() {
            // By a single letter it is asked for help.
            if key.starts_with('-') || key.len() < 2 {
                return Err(SettingError(format!(
                    "{name}: name the flag '{key}' in full, without dashes before it"
                )));
            }
            if OURS.iter().any(|ours| key.starts_with(ours)) {
                return Err(SettingError(format!(
                    "{name}: {key} is Landfall's to choose"
                )));
            }
            asked.push((key.clone(), value.clone()));
        }
        Ok(Options {
            name,
            asked,
            unsynced,
        })
    }

    /// What was asked for, as arguments of the server.
    pub fn asked(&self) -> impl Iterator<Item = String> {
        let asked = self.asked.iter();
        asked.map(|(name, value)| format!("--{name}={value}"))
    }

    /// As arguments of a server that is alone; later ones win.
    pub fn arguments(&self) -> Vec<String> {
        let (socket, peers) = (format!("unix://{SOCKET}"), format!("unix://{PEERS}"));
        let cluster = format!("{NAME}={peers}");
        let ours = [
            ("name", NAME),
            ("listen-client-urls", &socket),
            ("advertise-client-urls", &socket),
            ("listen-peer-urls", &peers),
            ("initial-advertise-peer-urls", &peers),
            ("initial-cluster", &cluster),
        ];
        ours.into_iter()
            .chain(FIXED)
            .map(|(name, value)| format!("--{name}={value}"))
            .chain(self.asked())
            .collect()
    }

    /// Finds in the log of a server that did not start what it does not like among what was asked for.
    pub fn complaint(&self, log: &[String]) -> Option<DatabaseError> {
        const SIGNS: [&str; 4] = [
            "flag provided but not defined",
            "invalid value",
            "invalid boolean value",
            "failed to verify flags",
        ];
        let is_complaint = |line: &&String| SIGNS.iter().any(|sign| line.contains(sign));
        let line = log.iter().find(is_complaint)?;
        let is_named = |(name, _): &&(String, String)| {
            let mut words = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
            words.any(|word| word.trim_start_matches('-') == name)
        };
        let (name, value) = self.asked.iter().find(is_named)?;
        // It complains in words before it has a log, and then in that.
        let logged: Option<Logged> = serde_json::from_str(line).ok();
        let said = logged.as_ref().map_or(line, |logged| &logged.error);
        Some(DatabaseError::Setting(format!(
            "the server says of {name}={value}: {said}"
        )))
    }
}

/// What is looked at of a line of its log.
#[derive(serde::Deserialize)]
struct Logged {
    error: String,
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

    fn refused(key: &str, value: &str) -> String {
        options(&[(key, value)]).map(|_| ()).unwrap_err()
    }

    #[test]
    fn what_is_ours_to_say_is_refused() {
        assert!(refused("wal-dir", "/").ends_with("wal-dir is Landfall's to choose"));
        assert!(refused("listen-peer-urls", "").ends_with("is Landfall's to choose"));
        assert!(refused("--snapshot-count", "1").ends_with("without dashes before it"));
        assert!(refused("unsafe-no-fsync", "maybe").ends_with("false, true"));
    }

    #[test]
    fn a_flag_is_handed_on_and_what_is_usual_is_not() {
        let arguments = options(&[("snapshot-count", "7")]).unwrap().arguments();
        assert_eq!(arguments.last().unwrap(), "--snapshot-count=7");
        assert!(!arguments.iter().any(|argument| argument.contains("unsafe")));
        let unsynced = options(&[("unsafe-no-fsync", "true")]).unwrap();
        assert_eq!(
            unsynced.arguments().last().unwrap(),
            "--unsafe-no-fsync=true"
        );
    }

    #[test]
    fn a_complaint_about_what_was_set_is_found_in_the_log() {
        let options = options(&[("snapshot-count", "often"), ("election-timeout", "20")]).unwrap();
        let said = |line: &str| Some(options.complaint(&[line.to_owned()])?.to_string());
        assert_eq!(
            said("invalid value \"often\" for flag -snapshot-count: parse error").unwrap(),
            "the server says of snapshot-count=often: invalid value \"often\" for flag \
             -snapshot-count: parse error"
        );
        let line = r#"{"level":"warn","msg":"failed to verify flags","error":"--election-timeout[20ms] is short"}"#;
        assert_eq!(
            said(line).unwrap(),
            "the server says of election-timeout=20: --election-timeout[20ms] is short"
        );
        assert_eq!(said("flag provided but not defined: -name"), None);
    }
}
