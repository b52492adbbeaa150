//! What every cluster does that can be proven.
//!
//! Each is asked in a network of its own, which needs root. What is not installed, or cannot be had, is skipped, which
//! `LANDFALL_NO_SKIP` makes a failure: not for those that `LANDFALL_NO_CLUSTERS` names (`nats kafka`), which CI has from
//! places that may be out of reach.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::{Cluster, ClusterSession, Node};
use crate::clusters::named;
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
        let stop = Stop::default();
        let start = |&node| {
            let started = self.cluster.start(node, &self.directories, &stop);
            started.unwrap()
        };
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

/// Creates a cluster of three, fills it, kills it, and looks at it again: all nodes, then two of them with the third coming
/// late, which was left alone before, then all again. `settings` are as on the command line.
pub(crate) fn conforms(name: &str, settings: &[(&str, &str)]) {
    conforms_with(name, settings, AnyMajority::Serves);
}

/// As [`conforms`], of one of which two nodes may wait for the third, which led last: all nodes, killed and ended.
pub(crate) fn conforms_when_all_are_there(name: &str, settings: &[(&str, &str)]) {
    conforms_with(name, settings, AnyMajority::MayWait);
}

/// Whether two nodes of three serve without the third, whichever that is.
#[derive(Clone, Copy, PartialEq)]
enum AnyMajority {
    Serves,
    MayWait,
}

fn conforms_with(name: &str, settings: &[(&str, &str)], any_majority: AnyMajority) {
    let cluster = named(name, &owned(settings)).unwrap();
    // A network is its thread's, and so are the servers.
    let outcome = thread::spawn(move || match isolate_network() {
        Ok(()) => in_a_network(cluster, any_majority),
        Err(error) => Err(format!("a network of its own needs root: {error}")),
    });
    if let Err(why) = outcome.join().unwrap() {
        skip(name, &why);
    }
}

/// Tries to create a cluster with settings that its servers do not take, which must be said, and why.
pub(crate) fn refuses(name: &str, settings: &[(&str, &str)], why: &str) {
    let cluster = named(name, &owned(settings)).unwrap();
    let root = tempfile::tempdir().unwrap();
    let directories = make_directories(root.path());
    match cluster.create(&directories, &Templates::new(root.path()), &Stop::default()) {
        Err(DatabaseError::Setting(said)) => assert!(said.contains(why), "{said}"),
        Err(error @ DatabaseError::NotInstalled { .. }) => skip(name, &error.to_string()),
        other => panic!("{name} {settings:?}: {other:?}"),
    }
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    settings.iter().map(owned).collect()
}

fn skip(name: &str, why: &str) {
    let excused = std::env::var("LANDFALL_NO_CLUSTERS").unwrap_or_default();
    let is_excused = excused.split(' ').any(|excused| excused == name);
    assert!(
        is_excused || std::env::var_os("LANDFALL_NO_SKIP").is_none(),
        "{name}: {why}"
    );
    eprintln!("skipped {name}: {why}");
}

/// A directory for each of three nodes.
fn make_directories(root: &Path) -> Vec<PathBuf> {
    // Servers that do not run as root must come through.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(root, open).unwrap();
    let make = |node: usize| {
        let directory = root.join(node.to_string());
        std::fs::create_dir(&directory).unwrap();
        directory
    };
    (0..3).map(make).collect()
}

fn in_a_network(cluster: Box<dyn Cluster>, any_majority: AnyMajority) -> Result<(), String> {
    let root = tempfile::tempdir().unwrap();
    let directories = make_directories(root.path());
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

    let nodes = if any_majority == AnyMajority::Serves {
        one_is_alone_and_late(&fixture, nodes, session, &mut expected)
    } else {
        drop(session);
        nodes
    };
    for node in nodes {
        node.stop().unwrap();
    }

    // Ended in order, and led by another one than at first.
    let nodes = fixture.start(&all);
    let mut session = fixture.connect(&all, &nodes);
    assert_eq!(session.records().unwrap(), expected);
    session.put(24).unwrap();
    expected.insert(24);
    for node in all {
        agrees(&fixture, node, &expected);
    }
    Ok(())
}

/// Leaves the first node alone, then the other two, to which it comes back; returns all of them.
fn one_is_alone_and_late(
    fixture: &Fixture,
    mut nodes: Vec<Node>,
    mut session: Box<dyn ClusterSession>,
    expected: &mut BTreeSet<u64>,
) -> Vec<Node> {
    // Whoever is left alone acknowledges nothing, and says so in time. What only it has counts for nothing later.
    nodes.truncate(1);
    match session.put(99) {
        Err(DatabaseError::Late(_) | DatabaseError::Failed(_)) => {}
        other => panic!("a record was put where only one node of three is left: {other:?}"),
    }
    drop(session);
    drop(nodes);

    // The first one, which may have led, comes late.
    let mut nodes = fixture.start(&[1, 2]);
    let mut session = fixture.connect(&[1, 2], &nodes);
    assert_eq!(session.records().unwrap(), *expected);
    session.put(22).unwrap();
    expected.insert(22);
    drop(session);
    nodes.extend(fixture.start(&[0]));
    let mut session = fixture.connect(&[0, 1, 2], &nodes);
    agrees(fixture, 0, expected);
    assert_eq!(session.records().unwrap(), *expected);
    session.put(23).unwrap();
    expected.insert(23);
    drop(session);
    nodes
}

/// Waits until a node has these records by itself.
fn agrees(fixture: &Fixture, node: usize, expected: &BTreeSet<u64>) {
    wait_for(|| match fixture.cluster.records_of(node)? {
        Some(found) if found == *expected => Ok(()),
        None => Ok(()),
        Some(found) => Err(DatabaseError::Failed(format!("node {node} has {found:?}"))),
    });
    wait_for(|| fixture.cluster.has_written(node));
}
