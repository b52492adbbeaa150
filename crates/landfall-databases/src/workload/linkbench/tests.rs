//! The same requests, asked of both forms.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::keys::{count_key, link_key};
use super::request::{Link, LinkKey, Start};
use super::store::Answer;
use super::*;
use crate::conformance::{Fixture, keys, sql};
use crate::workload::fixtures::{loaded, workload};

/// Without waiting for the disk, of which there is nothing to test here.
const DATABASES: [&str; 5] = [
    "sqlite synchronous=off",
    "redb durability=none",
    "lmdb sync=no",
    "fjall persist=buffer",
    "sled flush=no",
];
const SETTINGS: &str = "ids=300";
const IDS: u64 = 300;

/// A store over what was loaded with [`SETTINGS`], and the database that it is in.
fn store(database: &str) -> (Fixture, Box<dyn Store>) {
    let (fixture, _) = loaded(database, "linkbench", SETTINGS);
    let store = open(&fixture);
    (fixture, store)
}

fn open(fixture: &Fixture) -> Box<dyn Store> {
    match fixture.running.session().unwrap() {
        Session::Sql(sql) => Box::new(SqlStore::new(sql).unwrap()),
        Session::Keys(keys) => Box::new(KeyStore::new(keys, Arc::new(Shared::new(IDS))).unwrap()),
    }
}

/// Visible links by node and type, and counts where they are not 0.
type Counts = BTreeMap<(u64, u64), u64>;

/// As they are counted, and as links are visible.
fn counts(fixture: &Fixture) -> [Counts; 2] {
    match fixture.database.interface() {
        Interface::Sql(_) => {
            let mut session = sql(&*fixture.running);
            let mut read = |text: &str| {
                let statement = session.prepare(text).unwrap();
                let rows = session.query(statement, &[]).unwrap();
                let number = |value: &Value| value.integer().unwrap() as u64;
                rows.iter()
                    .map(|row| ((number(&row[0]), number(&row[1])), number(&row[2])))
                    .collect()
            };
            [
                read("SELECT id, link_type, count FROM counttable WHERE count > 0"),
                read(
                    "SELECT id1, link_type, count(*) FROM linktable WHERE visibility = 1
                     GROUP BY id1, link_type",
                ),
            ]
        }
        _ => {
            let mut session = keys(&*fixture.running);
            let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
            let [mut counted, mut visible] = [Counts::new(), Counts::new()];
            let mut visit = |key: &[u8], value: &[u8]| {
                let count = number(&value[..8]);
                if count > 0 {
                    counted.insert((number(&key[1..9]), number(&key[9..17])), count);
                }
                true
            };
            session.scan(b"c", b"d", &mut visit).unwrap();
            let mut visit = |key: &[u8], value: &[u8]| {
                let node = (number(&key[1..9]), number(&key[9..17]));
                *visible.entry(node).or_default() += u64::from(value[0]);
                true
            };
            session.scan(b"l", b"m", &mut visit).unwrap();
            visible.retain(|_, count| *count > 0);
            [counted, visible]
        }
    }
}

fn assert_counts(fixture: &Fixture) {
    let [counted, visible] = counts(fixture);
    assert!(!visible.is_empty());
    assert_eq!(counted, visible, "{}", fixture.database.name());
}

/// Every link is in the index once, as it is.
fn assert_index(fixture: &Fixture) {
    let mut session = keys(&*fixture.running);
    let mut read = |from: &[u8], to: &[u8]| {
        let mut entries = Vec::new();
        let mut visit = |key: &[u8], value: &[u8]| {
            entries.push((key.to_vec(), value.to_vec()));
            true
        };
        session.scan(from, to, &mut visit).unwrap();
        entries
    };
    let mut expected = Batch::default();
    for (key, value) in read(b"l", b"m") {
        let number = |at: usize| u64::from_be_bytes(key[at..at + 8].try_into().unwrap());
        let key = LinkKey {
            id1: number(1),
            kind: number(9),
            id2: number(17),
        };
        keys::put_link(&mut expected, &keys::read_link(key, &value).unwrap());
    }
    let mut expected: Vec<_> = expected
        .0
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .filter(|(key, _)| key[0] == b'i')
        .collect();
    expected.sort();
    assert_eq!(read(b"i", b"j"), expected);
}

#[test]
fn both_forms_answer_the_same() {
    let source = Source::new(IDS, 1);
    let mut stores: Vec<_> = DATABASES.map(store).into();
    let mut draw = Draw::new(3);
    let mut kinds = [0; NAMES.len()];
    for time in 0..6000 {
        // Later than what was loaded, and each later than the one before.
        let request = draw.next(&source, 1_400_000_000_000 + time);
        let answer = |store: &mut dyn Store| match ask(store, &request).unwrap() {
            // Links of the same time are in no order.
            Answer::Links(mut links) => {
                assert!(links.is_sorted_by(|one, next| match request {
                    Request::ListLinks { .. } => one.time >= next.time,
                    _ => true,
                }));
                links.sort();
                Answer::Links(links)
            }
            answer => answer,
        };
        let expected = answer(stores[0].1.as_mut());
        for (fixture, store) in &mut stores[1..] {
            let name = fixture.database.name();
            assert_eq!(answer(store.as_mut()), expected, "{name}: {request:?}");
        }
        let is_something = !matches!(
            expected,
            Answer::Was(false) | Answer::Node(None) | Answer::Count(0)
        );
        kinds[request.kind()] += usize::from(is_something);
    }
    assert!(kinds.iter().all(|&kind| kind > 0), "{kinds:?}");
    for (fixture, _) in &stores {
        assert_counts(fixture);
    }
    stores[1..]
        .iter()
        .for_each(|(fixture, _)| assert_index(fixture));
}

#[test]
fn what_clients_do_at_the_same_time_is_counted() {
    for database in DATABASES {
        let (fixture, workload) = loaded(database, "linkbench", "ids=20");
        let (running, workload) = (&*fixture.running, &*workload);
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || {
                    let session = running.session().unwrap();
                    let mut client = workload.client(session, number, 5).unwrap();
                    let mut done = 0;
                    while done < 300 {
                        match client.request() {
                            Ok(_) => done += 1,
                            Err(DatabaseError::Conflict(_)) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        });
        assert_counts(&fixture);
    }
}

#[test]
fn a_link_is_added_updated_hidden_and_shown_again() {
    for database in &DATABASES[..2] {
        let (fixture, mut store) = store(database);
        let key = LinkKey {
            id1: 1,
            kind: 5,
            id2: 2,
        };
        let link = |time: u64, data: &[u8]| Link {
            key,
            is_visible: true,
            time,
            version: 0,
            data: data.to_vec(),
        };
        let list = |store: &mut dyn Store| store.list_links(1, 5, Start::Latest).unwrap();
        assert_eq!(store.count_links(1, 5), Ok(0));
        assert_eq!(store.put_link(&link(1, b"one")), Ok(false));
        assert_eq!(store.put_link(&link(2, b"two")), Ok(true));
        assert_eq!(store.count_links(1, 5), Ok(1));
        assert_eq!(list(store.as_mut()), [link(2, b"two")]);
        // The last link of an earlier list is not shown again.
        assert_eq!(store.list_links(1, 5, Start::Behind(2)).unwrap(), []);
        assert_eq!(store.list_links(1, 5, Start::Behind(1)).unwrap(), []);
        assert_eq!(store.hide_link(key, 3), Ok(true));
        assert_eq!(store.hide_link(key, 4), Ok(false));
        assert_eq!(store.count_links(1, 5), Ok(0));
        assert_eq!(list(store.as_mut()), []);
        let hidden = store.get_links(1, 5, &[9, 2]).unwrap();
        assert_eq!(hidden.len(), 1);
        assert!(!hidden[0].is_visible);
        assert_eq!(store.put_link(&link(5, b"three")), Ok(true));
        assert_eq!(store.count_links(1, 5), Ok(1));
        assert_eq!(list(store.as_mut()), [link(5, b"three")]);
        assert_eq!(store.hide_link(LinkKey { id2: 77, ..key }, 6), Ok(false));
        assert_counts(&fixture);
    }
}

#[test]
fn nodes_are_added_behind_the_last_one() {
    for database in &DATABASES[..2] {
        let (fixture, mut store) = store(database);
        let node = request::Node {
            version: 1,
            time: 7,
            data: b"bytes".to_vec(),
        };
        for id in IDS + 1..IDS + 12 {
            assert_eq!(store.add_node(&node), Ok(id));
        }
        // Whoever comes later finds them.
        let mut later = open(&fixture);
        assert_eq!(later.add_node(&node), Ok(IDS + 12));
        assert_eq!(later.get_node(IDS + 1), Ok(Some(node.clone())));
        let other = request::Node { version: 2, ..node };
        assert_eq!(later.update_node(IDS + 1, &other), Ok(true));
        assert_eq!(store.get_node(IDS + 1), Ok(Some(other.clone())));
        assert_eq!(store.delete_node(IDS + 1), Ok(true));
        assert_eq!(store.delete_node(IDS + 1), Ok(false));
        assert_eq!(store.update_node(IDS + 1, &other), Ok(false));
        assert_eq!(store.get_node(IDS + 1), Ok(None));
    }
}

#[test]
fn what_is_loaded_is_the_same_whoever_loads_it() {
    let [tables, ordered] = [DATABASES[0], DATABASES[2]].map(store);
    for (fixture, _) in [&tables, &ordered] {
        assert_counts(fixture);
    }
    let (mut tables, mut ordered) = (tables.1, ordered.1);
    let graph = &Source::new(IDS, 1).access.graph;
    for id in 1..=IDS {
        assert_eq!(tables.get_node(id), ordered.get_node(id));
        assert!(tables.get_node(id).unwrap().is_some());
        for kind in 0..graph::TYPES {
            let kind_of = graph::FIRST_TYPE + kind;
            let sorted = |store: &mut dyn Store| {
                let mut links = store.list_links(id, kind_of, Start::Latest).unwrap();
                links.sort();
                links
            };
            let links = sorted(tables.as_mut());
            assert_eq!(links.len() as u64, graph.links(id, kind));
            assert_eq!(links, sorted(ordered.as_mut()));
        }
    }
}

/// Ordered keys in main memory.
#[derive(Clone, Default)]
struct InMemory(Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>);

impl KeyValue for InMemory {
    fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, DatabaseError> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }

    fn scan(
        &mut self,
        from: &[u8],
        to: &[u8],
        visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), DatabaseError> {
        let keys = self.0.lock().unwrap();
        let mut entries = keys.range(from.to_vec()..to.to_vec());
        entries.all(|(key, value)| visit(key, value));
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DatabaseError> {
        let mut keys = self.0.lock().unwrap();
        for (key, value) in &batch.0 {
            match value {
                Some(value) => keys.insert(key.clone(), value.clone()),
                None => keys.remove(key),
            };
        }
        Ok(())
    }
}

/// The load must be the same at the end of a long run, else what is measured depends on how long it is.
#[test]
fn lists_of_a_long_run_stay_as_long_as_they_were() {
    const IDS: u64 = 50_000;
    const PART: usize = 100_000;
    let source = Source::new(IDS, 1);
    let keys = InMemory::default();
    let loaded = (1..=IDS).map(|id| source.loaded(id, 1));
    Loader::Keys(Box::new(keys.clone()))
        .fill(&source, loaded)
        .unwrap();
    let mut store = KeyStore::new(Box::new(keys), Arc::new(Shared::new(IDS))).unwrap();
    let mut draw = Draw::new(1);
    let mut time = 1_400_000_000_000;
    let mut parts = Vec::new();
    for _ in 0..4 {
        let (mut lists, mut rows, mut cut_off, mut continued) = (0, 0, 0, 0);
        for _ in 0..PART {
            time += 1;
            let request = draw.next(&source, time);
            let answer = ask(&mut store, &request).unwrap();
            draw.remember(&request, &answer);
            if let (Request::ListLinks { from, .. }, Answer::Links(links)) = (&request, &answer) {
                lists += 1;
                rows += links.len();
                cut_off += usize::from(links.len() == request::LIST_LIMIT);
                continued += usize::from(*from != Start::Latest);
            }
        }
        // None is continued more often than it was cut off.
        assert!(
            cut_off > 0 && continued <= cut_off,
            "{continued}, {cut_off}"
        );
        parts.push(rows as f64 / lists as f64);
    }
    let (first, last) = (parts[0], parts[3]);
    assert!((0.7..1.4).contains(&(last / first)), "{parts:?}");
}

#[test]
fn keys_without_order_and_compression_elsewhere_are_refused() {
    let plain = workload("linkbench", "").unwrap();
    assert!(plain.suits(Interface::Keys).is_err());
    assert!(plain.suits(Interface::OrderedKeys).is_ok());
    let compressed = workload("linkbench", "compression=yes").unwrap();
    assert!(compressed.suits(Interface::Sql(Dialect::MariaDb)).is_ok());
    assert!(compressed.suits(Interface::Sql(Dialect::Postgres)).is_err());
    assert!(compressed.suits(Interface::OrderedKeys).is_err());
}

#[test]
fn keys_are_in_the_order_of_their_numbers() {
    let key = |id1, kind, id2| link_key(LinkKey { id1, kind, id2 });
    assert!(key(1, 2, 3) < key(1, 2, 256) && key(1, 2, 256) < key(1, 3, 0));
    assert!(key(255, 0, 0) < key(256, 0, 0));
    assert!(count_key(1, 256) < count_key(2, 0));
}
