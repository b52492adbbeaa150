//! What every cluster does that can be proven.
//!
//! Each is asked in a network of its own, which needs root. What is not installed, or cannot be had, is skipped, which
//! `LANDFALL_NO_SKIP` makes a failure: not for those that `LANDFALL_NO_CLUSTERS` names (`nats kafka`), which CI has from
//! places that may be out of reach.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::{Cluster, ClusterSession, Node, named};
use crate::{DatabaseError, Templates};
use landfall_os::{Stop, isolate_network};

/// Long enough for any machine: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);

struct Fixture {
    cluster: Box<dyn Cluster>,
    directories: Vec<PathBuf>,
    _root: tempfile::TempDir,
}

impl Fixture {
    fn start(&self, nodes: &[usize]) -> Vec<Node> {
        let start = |&node| self.cluster.start(node, &self.directories).unwrap();
        nodes.iter().map(start).collect()
    }

    fn connect(&self, nodes: &[usize], running: &[Node]) -> Box<dyn ClusterSession> {
        wait_for(|| {
            let ended = running.iter().find_map(Node::ended);
            assert_eq!(ended, None);
            self.cluster.connect(&self.directories, nodes)
        })
    }
}

fn wait_for<T>(mut attempt: impl FnMut() -> Result<T, DatabaseError>) -> T {
    let begin = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(begin.elapsed() < PATIENCE, "{error}"),
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Creates a cluster of three, fills it, kills it, and looks at it again: all nodes, and then two of them with the third
/// coming late. `settings` are as on the command line.
pub(crate) fn conforms(name: &str, settings: &[(&str, &str)]) {
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let cluster = named(name, &settings).unwrap();
    // A network is its thread's, and so are the servers.
    let outcome = thread::spawn(move || match isolate_network() {
        Ok(()) => in_a_network(cluster),
        Err(error) => Err(format!("a network of its own needs root: {error}")),
    });
    if let Err(why) = outcome.join().unwrap() {
        let excused = std::env::var("LANDFALL_NO_CLUSTERS").unwrap_or_default();
        let is_excused = excused.split(' ').any(|excused| excused == name);
        assert!(
            is_excused || std::env::var_os("LANDFALL_NO_SKIP").is_none(),
            "{name}: {why}"
        );
        eprintln!("skipped {name}: {why}");
    }
}

fn in_a_network(cluster: Box<dyn Cluster>) -> Result<(), String> {
    let root = tempfile::tempdir().unwrap();
    // Servers that do not run as root must come through.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root.path(), open).unwrap();
    let directories: Vec<PathBuf> = (0..3)
        .map(|node| root.path().join(node.to_string()))
        .collect();
    for directory in &directories {
        std::fs::create_dir(directory).unwrap();
    }
    let templates = Templates::new(root.path());
    match cluster.create(&directories, &templates, &Stop::default()) {
        Err(error @ DatabaseError::NotInstalled { .. }) => return Err(error.to_string()),
        created => created.unwrap(),
    }
    let fixture = Fixture {
        cluster,
        directories,
        _root: root,
    };
    let all = [0, 1, 2];
    let nodes = fixture.start(&all);
    let mut session = fixture.connect(&all, &nodes);
    for record in 1..=20 {
        session.put(record).unwrap();
    }
    let mut expected: BTreeSet<u64> = (1..=20).collect();
    assert_eq!(session.records().unwrap(), expected);
    drop(session);
    // Killed, all at once: their filesystem has everything.
    drop(nodes);

    let nodes = fixture.start(&all);
    let mut session = fixture.connect(&all, &nodes);
    assert_eq!(session.records().unwrap(), expected);
    session.put(21).unwrap();
    expected.insert(21);
    for node in all {
        agrees(&fixture, node, &expected);
    }
    drop(session);
    for node in nodes {
        node.stop().unwrap();
    }

    // The first one, which may have led, comes late.
    let mut nodes = fixture.start(&[1, 2]);
    let mut session = fixture.connect(&[1, 2], &nodes);
    assert_eq!(session.records().unwrap(), expected);
    session.put(22).unwrap();
    expected.insert(22);
    drop(session);
    nodes.extend(fixture.start(&[0]));
    let mut session = fixture.connect(&all, &nodes);
    agrees(&fixture, 0, &expected);
    assert_eq!(session.records().unwrap(), expected);
    Ok(())
}

/// Waits until a node has these records by itself.
fn agrees(fixture: &Fixture, node: usize, expected: &BTreeSet<u64>) {
    wait_for(|| match fixture.cluster.records_of(node)? {
        Some(found) if found == *expected => Ok(()),
        None => Ok(()),
        Some(found) => Err(DatabaseError::Failed(format!("node {node} has {found:?}"))),
    });
}
