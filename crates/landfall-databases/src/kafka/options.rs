//! What can be set of a broker of Kafka, and its file of properties.

use std::fmt::Write;
use std::path::Path;

use crate::cluster::address;
use crate::setting::Chosen;
use crate::{DatabaseError, SettingError};

use super::{CLIENTS, CONTROLLERS};

/// The value of `flush.messages` of who sets none: records are synced when the kernel likes.
pub(super) const NEVER: &str = "none";

/// What every node is told.
const FIXED: [(&str, &str); 13] = [
    ("process.roles", "broker,controller"),
    (
        "listener.security.protocol.map",
        "CLIENTS:PLAINTEXT,CONTROLLERS:PLAINTEXT",
    ),
    ("inter.broker.listener.name", "CLIENTS"),
    ("controller.listener.names", "CONTROLLERS"),
    ("auto.create.topics.enable", "false"),
    // A node that comes back is taken for a second one of its name until the first is missed: after two seconds, and not ten.
    ("broker.heartbeat.interval.ms", "200"),
    ("broker.session.timeout.ms", "2000"),
    // Who ends a cluster ends all of it: the last node would ask the others for leave, which are gone.
    ("controlled.shutdown.enable", "false"),
    // Topics of its own have a replica only, should they ever be wanted.
    ("offsets.topic.replication.factor", "1"),
    ("transaction.state.log.replication.factor", "1"),
    ("transaction.state.log.min.isr", "1"),
    // What compacts topics, of which there are none, would take most of the memory.
    ("log.cleaner.dedupe.buffer.size", "4194304"),
    // Nothing is removed for its age.
    ("log.retention.ms", "-1"),
];

/// Beginnings of properties that would lead a node away from where we look for it, or stand in the way of its own.
const OURS: [&str; 12] = [
    "advertised.",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listener",
    "log.dir",
    "metadata.log.dir",
    "node.id",
    "process.roles",
    "security.inter.broker.protocol",
    "broker.id",
];

/// The settings of each node.
pub(super) struct Options {
    /// What was asked for, as properties of a broker.
    asked: Vec<(String, String)>,
    /// Those of them that are handed on as they stand.
    pub passed_on: Vec<String>,
}

impl Options {
    pub fn new(chosen: &Chosen) -> Result<Options, SettingError> {
        let replicas = chosen.number("min.insync.replicas", 1, i32::MAX as u64)?;
        let mut asked = vec![("min.insync.replicas".to_owned(), replicas.to_string())];
        if chosen.text("flush.messages") != NEVER {
            let messages = chosen.number("flush.messages", 1, i64::MAX as u64);
            let messages = messages.map_err(|_| {
                let why = format!("it is {NEVER}, or a number of records from 1");
                chosen.wrong("flush.messages", why)
            })?;
            asked.push((
                "log.flush.interval.messages".to_owned(),
                messages.to_string(),
            ));
        }
        let name = chosen.name();
        let mut passed_on = Vec::new();
        for (key, value) in chosen.passed_on() {
            if OURS.iter().any(|ours| key.starts_with(ours)) {
                return Err(SettingError(format!(
                    "{name}: {key} is Landfall's to choose"
                )));
            }
            if asked.iter().any(|(before, _)| before == key) {
                return Err(SettingError(format!(
                    "{name}: {key} is set by flush.messages already"
                )));
            }
            passed_on.push(key.clone());
            asked.push((key.clone(), value.clone()));
        }
        Ok(Options { asked, passed_on })
    }

    /// The file of properties of node `node` of `nodes`, which keeps its data in `data`.
    pub fn file(&self, node: usize, nodes: usize, data: &Path) -> Result<String, DatabaseError> {
        // Several are told apart by commas.
        let data = data.to_str().filter(|data| !data.contains(','));
        let data = data.ok_or_else(|| {
            DatabaseError::Refused(
                "the data of Kafka must be in a directory whose name is UTF-8 without commas"
                    .into(),
            )
        })?;
        let voters = (0..nodes).map(|one| format!("{one}@{}", address(CONTROLLERS, one)));
        let voters: Vec<String> = voters.collect();
        let (clients, controllers) = (address(CLIENTS, node), address(CONTROLLERS, node));
        let ours = [
            ("node.id", node.to_string()),
            ("controller.quorum.voters", voters.join(",")),
            (
                "listeners",
                format!("CLIENTS://{clients},CONTROLLERS://{controllers}"),
            ),
            ("advertised.listeners", format!("CLIENTS://{clients}")),
            ("log.dirs", data.to_owned()),
        ];
        let ours = ours.iter().map(|(name, value)| (*name, value.as_str()));
        let asked = self.asked.iter().map(|(name, value)| (&**name, &**value));
        let mut file = String::new();
        // Later ones win.
        for (name, value) in FIXED.into_iter().chain(ours).chain(asked) {
            let _ = writeln!(file, "{}={}", escaped(name), escaped(value));
        }
        Ok(file)
    }
}

/// As it must be written in a file of properties (java.util.Properties).
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for unit in text.encode_utf16() {
        match char::from_u32(unit.into()) {
            Some(c) if c.is_ascii_alphanumeric() || "._-,/@".contains(c) => escaped.push(c),
            _ => {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
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
        options(&[(key, value)]).map(drop).unwrap_err()
    }

    #[test]
    fn what_is_ours_to_say_is_refused() {
        assert!(refused("log.dirs", "/").ends_with("log.dirs is Landfall's to choose"));
        assert!(refused("listeners", "").ends_with("listeners is Landfall's to choose"));
        assert!(
            refused("flush.messages", "0").ends_with("it is none, or a number of records from 1")
        );
        let twice = [
            ("flush.messages", "1"),
            ("log.flush.interval.messages", "2"),
        ];
        let error = options(&twice).map(drop).unwrap_err();
        assert!(
            error.ends_with("is set by flush.messages already"),
            "{error}"
        );
    }

    #[test]
    fn a_property_is_handed_on_and_what_is_usual_is_not() {
        let file = |set: &[(&str, &str)]| {
            let options = options(set).unwrap();
            options.file(1, 3, Path::new("/data")).unwrap()
        };
        let usual = file(&[]);
        assert!(!usual.contains("flush"));
        assert!(usual.ends_with("\nmin.insync.replicas=2\n"), "{usual}");
        let set = file(&[("flush.messages", "1"), ("log.segment.bytes", "9\n8")]);
        let end = "\nlog.flush.interval.messages=1\nlog.segment.bytes=9\\u000a8\n";
        assert!(set.ends_with(end), "{set}");
    }

    #[test]
    fn a_name_that_the_file_cannot_hold_is_refused() {
        let file = options(&[]).unwrap().file(0, 3, Path::new("/a,b"));
        assert!(matches!(file, Err(DatabaseError::Refused(_))));
    }
}
