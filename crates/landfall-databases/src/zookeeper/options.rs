//! What can be set of a server of ZooKeeper, and its file of settings.

use std::path::Path;

use crate::setting::Chosen;
use crate::{DatabaseError, SettingError};

use super::{CLIENTS, ELECTIONS, PEERS};

/// The settings of each server.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// Whether its log is synced before a change is acknowledged.
    pub force_sync: bool,
    /// After about how many changes it writes a snapshot.
    pub snapshot_count: u64,
}

/// By which number a node knows itself; they begin with 1.
pub(super) fn identity(node: usize) -> usize {
    node + 1
}

impl Options {
    pub fn new(chosen: &Chosen) -> Result<Options, SettingError> {
        Ok(Options {
            force_sync: chosen.whether("forceSync")?,
            // Of fewer it makes 2.
            snapshot_count: chosen.number("snapCount", 2, i32::MAX as u64)?,
        })
    }

    /// What a server is told as properties of the Java that it runs in.
    pub fn properties(&self) -> [String; 2] {
        let force_sync = if self.force_sync { "yes" } else { "no" };
        [
            format!("-Dzookeeper.forceSync={force_sync}"),
            format!("-Dzookeeper.snapCount={}", self.snapshot_count),
        ]
    }

    /// The file of settings of node `node` of `nodes`, which keeps its data in `data`.
    pub fn file(&self, node: usize, nodes: usize, data: &Path) -> Result<String, DatabaseError> {
        let is_plain = |data: &&str| !data.contains(['\\', '\n', '\r']) && data.is_ascii();
        let data = data.to_str().filter(is_plain).ok_or_else(|| {
            DatabaseError::Refused(
                "the data of ZooKeeper must be in a directory whose name is ASCII without \\"
                    .into(),
            )
        })?;
        let port = |first: u16, node: usize| usize::from(first) + node;
        let server = |one| {
            let (peers, elections) = (port(PEERS, one), port(ELECTIONS, one));
            format!("server.{}=127.0.0.1:{peers}:{elections}\n", identity(one))
        };
        let servers: String = (0..nodes).map(server).collect();
        let clients = port(CLIENTS, node);
        // Followers have 10 seconds to begin, and 5 to keep up: on machines that do much else too.
        Ok(format!(
            "tickTime=500\n\
             initLimit=20\n\
             syncLimit=10\n\
             dataDir={data}\n\
             clientPort={clients}\n\
             clientPortAddress=127.0.0.1\n\
             admin.enableServer=false\n\
             {servers}"
        ))
    }
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
    fn what_it_would_not_complain_of_is_refused() {
        let refused = |key, value| options(&[(key, value)]).map(drop).unwrap_err();
        assert!(refused("forceSync", "false").ends_with("it is one of: yes, no"));
        assert!(refused("snapCount", "1").contains("it is a number from 2"));
        assert!(refused("forcesync", "no").contains("has no setting 'forcesync'"));
    }

    #[test]
    fn what_was_set_is_told() {
        let options = options(&[("forceSync", "no"), ("snapCount", "20")]).unwrap();
        assert_eq!(
            options.properties(),
            ["-Dzookeeper.forceSync=no", "-Dzookeeper.snapCount=20"]
        );
        let file = options.file(1, 3, Path::new("/data")).unwrap();
        assert!(file.contains("\ndataDir=/data\n"));
        assert!(file.ends_with("\nserver.3=127.0.0.1:2902:3002\n"), "{file}");
        let file = options.file(1, 3, Path::new("/a\\b"));
        assert!(matches!(file, Err(DatabaseError::Refused(_))));
    }
}
