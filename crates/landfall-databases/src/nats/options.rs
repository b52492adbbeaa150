//! What can be set of a server of NATS, and its file of settings.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::cluster::address;
use crate::setting::Chosen;
use crate::{DatabaseError, SettingError};

use super::{CLIENTS, PAGES, PEERS};

/// What a server does by itself.
pub(super) const USUAL_INTERVAL: &str = "2m";

/// When a server syncs what it has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sync {
    /// Before it acknowledges.
    Always,
    /// As often as that.
    Every(Duration),
}

impl fmt::Display for Sync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sync::Always => f.write_str("always"),
            Sync::Every(interval) => write!(f, "{interval:?}"),
        }
    }
}

/// The settings of each server.
#[derive(Clone, Copy)]
pub(super) struct Options {
    pub sync: Sync,
}

impl Options {
    pub fn new(chosen: &Chosen) -> Result<Options, SettingError> {
        let sync = match chosen.text("sync_interval") {
            "always" => Sync::Always,
            interval => Sync::Every(duration(interval).ok_or_else(|| {
                let why = "it is always, or a time such as 10s, 1m30s or 500ms";
                chosen.wrong("sync_interval", why)
            })?),
        };
        Ok(Options { sync })
    }

    /// The file of settings of node `node` of `nodes`, which keeps its data in `data`.
    pub fn file(&self, node: usize, nodes: usize, data: &Path) -> Result<String, DatabaseError> {
        let data = data.to_str().filter(|data| !data.contains(['"', '\\']));
        let data = data.ok_or_else(|| {
            DatabaseError::Refused(
                "the data of NATS must be in a directory whose name is UTF-8 without \" and \\"
                    .into(),
            )
        })?;
        let routes = (0..nodes).map(|one| format!("\"nats://{}\"", address(PEERS, one)));
        let routes: Vec<String> = routes.collect();
        let sync = match self.sync {
            Sync::Always => "sync_interval: always".to_owned(),
            // As it is by itself: not named, so that what is proven is what nobody has set.
            Sync::Every(interval) if Some(interval) == duration(USUAL_INTERVAL) => String::new(),
            Sync::Every(interval) => format!("sync_interval: \"{}ns\"", interval.as_nanos()),
        };
        let (clients, pages) = (address(CLIENTS, node), address(PAGES, node));
        let (peers, routes) = (address(PEERS, node), routes.join(", "));
        // The limits are larger than anything here, and do not depend on how much is free on the disk.
        Ok(format!(
            "server_name: n{node}\n\
             listen: \"{clients}\"\n\
             http: \"{pages}\"\n\
             jetstream {{\n\
             store_dir: \"{data}\"\n\
             max_memory_store: 64MB\n\
             max_file_store: 1GB\n\
             {sync}\n\
             }}\n\
             cluster {{\n\
             name: landfall\n\
             listen: \"{peers}\"\n\
             routes: [{routes}]\n\
             }}\n"
        ))
    }

    /// Complains if a server does something else than was asked for.
    pub fn hold_against(&self, actual: &Actual) -> Result<(), DatabaseError> {
        let actual = if actual.sync_always {
            Sync::Always
        } else {
            Sync::Every(Duration::from_nanos(actual.sync_interval))
        };
        if self.sync == actual {
            return Ok(());
        }
        Err(DatabaseError::Setting(format!(
            "sync_interval: the server makes {actual} of {}; say so, or set another value",
            self.sync
        )))
    }
}

/// How a server says that it is set.
#[derive(serde::Deserialize)]
pub(super) struct Actual {
    /// In nanoseconds.
    #[serde(default)]
    pub sync_interval: u64,
    #[serde(default)]
    pub sync_always: bool,
}

/// A time as Go writes it, of whole numbers: `1m30s`.
fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, u64); 6] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let mut nanoseconds: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let end = rest.find(|c: char| c.is_ascii_digit());
        let (unit, after) = rest.split_at(end.unwrap_or(rest.len()));
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        nanoseconds = nanoseconds.checked_add(number.checked_mul(*factor)?)?;
        rest = after;
    }
    // Of nothing a server makes what it does by itself.
    let is_one = (1..=i64::MAX as u64).contains(&nanoseconds);
    is_one.then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests {
    use super::super::KIND;
    use super::*;

    fn options(interval: &str) -> Result<Options, String> {
        let set = [("sync_interval".to_owned(), interval.to_owned())];
        Chosen::new(&KIND.description, &set)
            .and_then(|chosen| Options::new(&chosen))
            .map_err(|error| error.to_string())
    }

    fn file(interval: &str) -> String {
        let options = options(interval).unwrap();
        options.file(1, 3, Path::new("/data")).unwrap()
    }

    #[test]
    fn times_are_read_as_go_does() {
        assert_eq!(duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        for wrong in [
            "",
            "10",
            "s",
            "1.5s",
            "-1s",
            "1 s",
            "0s",
            "1d",
            "1sm",
            "99999999h",
        ] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_usual_is_not_named() {
        assert!(!file("2m").contains("sync_interval"));
        assert!(!file("120s").contains("sync_interval"));
        assert!(file("always").contains("sync_interval: always\n"));
        assert!(file("10s").contains("sync_interval: \"10000000000ns\"\n"));
    }

    #[test]
    fn a_name_that_the_file_cannot_hold_is_refused() {
        let file = options("2m").unwrap().file(0, 3, Path::new("/a\"b"));
        assert!(matches!(file, Err(DatabaseError::Refused(_))));
    }

    #[test]
    fn another_value_than_was_asked_for_is_named() {
        let error = options("often").map(drop).unwrap_err();
        assert!(
            error.starts_with("nats sync_interval=often: it is always"),
            "{error}"
        );
        let actual = |sync_interval, sync_always| Actual {
            sync_interval,
            sync_always,
        };
        let always = options("always").unwrap();
        assert_eq!(always.hold_against(&actual(120_000_000_000, true)), Ok(()));
        let other = always.hold_against(&actual(120_000_000_000, false));
        assert_eq!(
            other.unwrap_err().to_string(),
            "sync_interval: the server makes 120s of always; say so, or set another value"
        );
    }
}
