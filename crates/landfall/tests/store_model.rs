//! The store against maps in memory: whatever is done with it through its public interface, in any order, reads give what the
//! maps give. Leaves and memory are tiny, so that keys are in leaves, in runs, in changes, and in checkpoints that are being made.
//!
//! `LANDFALL_MODEL_SEEDS=FROM..TO` tries others, of which a failure names one.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

use fastrand::Rng;
use landfall::{
    Compression, Error, Keyspace, KeyspaceOptions, Options, Pairs, Protection, Store, StoreBuffer,
    StoreOptions, StoreSnapshot, Transaction,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;
type Pair = (Vec<u8>, Vec<u8>);

const NAMES: [&str; 3] = ["a", "b", "c"];
const STEPS: usize = 1_500;

/// An iterator that is open, and what it has to give yet.
struct Open {
    pairs: Pairs,
    expected: std::vec::IntoIter<Pair>,
}

/// Something that is written into one of the keyspaces.
#[derive(Clone)]
enum Write {
    /// `None`: it is removed.
    Key(usize, Vec<u8>, Option<Vec<u8>>),
    Range(usize, Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl Write {
    fn random(random: &mut Rng) -> Write {
        let which = random.usize(..NAMES.len());
        match random.u8(..32) {
            0 => Write::Range(which, bound(random), bound(random)),
            1..8 => Write::Key(which, key(random), None),
            _ => Write::Key(which, key(random), Some(value(random))),
        }
    }

    fn apply(&self, maps: &mut [Map]) {
        match self {
            Write::Key(which, key, Some(value)) => {
                maps[*which].insert(key.clone(), value.clone());
            }
            Write::Key(which, key, None) => {
                maps[*which].remove(key);
            }
            Write::Range(which, from, to) => {
                maps[*which].retain(|key, _| !is_within(key, from, to));
            }
        }
    }

    /// The keyspace, the first key, and the first key behind; `None`: it writes nothing.
    fn keys(&self) -> Option<(usize, Vec<u8>, Option<Vec<u8>>)> {
        let next = |key: &[u8]| [key, &[0]].concat();
        let (which, low, high) = match self {
            Write::Key(which, key, _) => (*which, key.clone(), Some(next(key))),
            Write::Range(which, from, to) => {
                let low = match from {
                    Bound::Unbounded => Vec::new(),
                    Bound::Included(key) => key.clone(),
                    Bound::Excluded(key) => next(key),
                };
                let high = match to {
                    Bound::Unbounded => None,
                    Bound::Included(key) => Some(next(key)),
                    Bound::Excluded(key) => Some(key.clone()),
                };
                (*which, low, high)
            }
        };
        let is_empty = high.as_ref().is_some_and(|high| *high <= low);
        (!is_empty).then_some((which, low, high))
    }

    fn meets(&self, other: &Write) -> bool {
        let (Some((a, low_a, high_a)), Some((b, low_b, high_b))) = (self.keys(), other.keys())
        else {
            return false;
        };
        let is_before =
            |key: &Vec<u8>, high: &Option<Vec<u8>>| high.as_ref().is_none_or(|high| key < high);
        a == b && is_before(&low_a, &high_b) && is_before(&low_b, &high_a)
    }
}

/// A transaction that is open: what it reads, and what it has written over that.
struct Begun {
    transaction: Transaction,
    seen: Vec<Map>,
    writes: Vec<Write>,
    /// Where the history of commits was when it began.
    begin: usize,
}

struct World<'a> {
    place: &'a Path,
    random: Rng,
    store: Store,
    keyspaces: Vec<Keyspace>,
    now: Vec<Map>,
    snapshots: Vec<(StoreSnapshot, Vec<Map>)>,
    open: Vec<Open>,
    begun: Vec<Begun>,
    /// What each commit wrote.
    history: Vec<Vec<Write>>,
}

fn buffer(random: &mut Rng) -> StoreBuffer {
    match random.u8(..4) {
        0 => StoreBuffer::Auto { most: 16 },
        1 => StoreBuffer::Percent(0),
        _ => StoreBuffer::Percent(random.u8(1..=16)),
    }
}

fn open(place: &Path, random: &mut Rng) -> Store {
    let protections = [
        Protection::Shadow,
        Protection::Doublewrite,
        Protection::Image,
    ];
    let options = StoreOptions::default()
        .protection(random.choice(protections).unwrap())
        .buffer(buffer(random))
        .memory_bytes(random.usize(4 << 10..80 << 10))
        .log(Options::default().segment_bytes(64 << 10));
    Store::open(place, options).unwrap()
}

fn keyspaces(store: &Store, random: &mut Rng) -> Vec<Keyspace> {
    let make = |name: &&str| {
        let compression = random.choice([Compression::Lz4, Compression::None]);
        let options = KeyspaceOptions::default().whole_leaves(random.bool());
        let options = if random.u8(..4) == 0 {
            options.leaf_bytes(4096).in_place(true)
        } else {
            options
                .leaf_bytes(random.u32(256..2_000))
                .compression(compression.unwrap())
        };
        // One that is there keeps its own.
        store.keyspace(name, options)
    };
    NAMES.iter().map(make).collect::<Result<_, _>>().unwrap()
}

/// Keys that are often equal, begin with each other, differ behind eight bytes, and come in runs.
fn key(random: &mut Rng) -> Vec<u8> {
    let letters = [0, 1, b'a', 254, 255];
    let mut some = |most: usize| -> Vec<u8> {
        let len = random.usize(0..=most);
        (0..len).map(|_| random.choice(letters).unwrap()).collect()
    };
    match some(1).first() {
        None | Some(0) => some(4),
        Some(1) => [&b"common prefix of "[..], &some(4)].concat(),
        Some(254) => [&[255; 9][..], &some(3)].concat(),
        _ => random.u16(0..600).to_be_bytes().to_vec(),
    }
}

fn value(random: &mut Rng) -> Vec<u8> {
    let len = match random.u8(..40) {
        0 => random.usize(3_000..20_000),
        1..4 => 0,
        _ => random.usize(1..200),
    };
    let byte = random.u8(..);
    (0..len)
        .map(|at| byte.wrapping_add((at / 7) as u8))
        .collect()
}

fn bound(random: &mut Rng) -> Bound<Vec<u8>> {
    match random.u8(..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(random)),
        _ => Bound::Excluded(key(random)),
    }
}

/// Whether a range has a key; an inverted one has none.
fn is_within(key: &Vec<u8>, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> bool {
    (match from {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
    }) && (match to {
        Bound::Unbounded => true,
        Bound::Included(to) => key <= to,
        Bound::Excluded(to) => key < to,
    })
}

/// What is in a range of a map.
fn within(map: &Map, from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> Vec<Pair> {
    let pairs = map.iter().filter(|(key, _)| is_within(key, from, to));
    pairs
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn prefixed(map: &Map, prefix: &[u8]) -> Vec<Pair> {
    let pairs = map.iter().filter(|(key, _)| key.starts_with(prefix));
    pairs
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Takes some pairs from either end, or all.
fn advance(open: &mut Open, random: &mut Rng, most: usize) -> bool {
    for _ in 0..most {
        let is_front = random.bool();
        let (found, expected) = if is_front {
            (open.pairs.next(), open.expected.next())
        } else {
            (open.pairs.next_back(), open.expected.next_back())
        };
        let found = found.transpose().unwrap();
        let is_end = expected.is_none();
        assert_eq!(found, expected, "from the front: {is_front}");
        if is_end {
            return false;
        }
    }
    true
}

impl<'a> World<'a> {
    fn new(place: &'a Path, seed: u64) -> World<'a> {
        let mut random = Rng::with_seed(seed);
        let store = open(place, &mut random);
        let keyspaces = keyspaces(&store, &mut random);
        World {
            place,
            random,
            store,
            keyspaces,
            now: vec![Map::new(); NAMES.len()],
            snapshots: Vec::new(),
            open: Vec::new(),
            begun: Vec::new(),
            history: Vec::new(),
        }
    }

    fn write(&mut self) {
        let write = Write::random(&mut self.random);
        let keyspaces = &self.keyspaces;
        match &write {
            Write::Key(which, key, Some(value)) => keyspaces[*which].insert(key, value),
            Write::Key(which, key, None) => keyspaces[*which].remove(key),
            Write::Range(which, from, to) => {
                keyspaces[*which].remove_range((from.clone(), to.clone()))
            }
        }
        .unwrap();
        write.apply(&mut self.now);
        self.history.push(vec![write]);
    }

    fn write_batch(&mut self) {
        let mut batch = self.store.batch();
        let mut written = Vec::new();
        for _ in 0..self.random.usize(..60) {
            let write = Write::random(&mut self.random);
            let keyspaces = &self.keyspaces;
            match &write {
                Write::Key(which, key, Some(value)) => batch.insert(&keyspaces[*which], key, value),
                Write::Key(which, key, None) => batch.remove(&keyspaces[*which], key),
                Write::Range(which, from, to) => {
                    batch.remove_range(&keyspaces[*which], (from.clone(), to.clone()));
                }
            }
            write.apply(&mut self.now);
            written.push(write);
        }
        if self.random.bool() {
            batch.commit().unwrap();
        } else {
            drop(batch.commit_async().unwrap());
        }
        self.history.push(written);
    }

    /// Rows one behind the other, as from somebody who counts.
    fn append(&mut self) {
        let which = self.random.usize(..NAMES.len());
        let first = self.random.u16(0..60_000);
        let mut batch = self.store.batch();
        let mut written = Vec::new();
        for number in first..first + self.random.u16(1..400) {
            let (key, value) = (number.to_be_bytes().to_vec(), value(&mut self.random));
            batch.insert(&self.keyspaces[which], &key, &value);
            written.push(Write::Key(which, key, Some(value)));
        }
        batch.commit().unwrap();
        for write in &written {
            write.apply(&mut self.now);
        }
        self.history.push(written);
    }

    /// Of keys side by side, so that leaves become empty.
    fn remove_run(&mut self) {
        let which = self.random.usize(..NAMES.len());
        let (from, to) = (bound(&mut self.random), bound(&mut self.random));
        let mut batch = self.store.batch();
        let mut written = Vec::new();
        for (key, _) in within(&self.now[which], &from, &to) {
            batch.remove(&self.keyspaces[which], &key);
            self.now[which].remove(&key);
            written.push(Write::Key(which, key, None));
        }
        batch.commit().unwrap();
        self.history.push(written);
    }

    fn read(&mut self) {
        let which = self.random.usize(..NAMES.len());
        let key = key(&mut self.random);
        let keyspace = &self.keyspaces[which];
        let expected = self.now[which].get(&key).cloned();
        assert_eq!(keyspace.get(&key).unwrap(), expected);
        if self.random.bool() {
            let seen = &self.now[which];
            let pairs = keyspace.prefix(&key).collect::<Result<Vec<_>, _>>();
            assert_eq!(pairs.unwrap(), prefixed(seen, &key));
        }
        if let Some((snapshot, seen)) = self.random.choice(&self.snapshots) {
            let expected = seen[which].get(&key).cloned();
            assert_eq!(snapshot.get(keyspace, &key).unwrap(), expected);
            let pairs = snapshot.prefix(keyspace, &key).rev();
            let mut pairs = pairs.collect::<Result<Vec<_>, _>>().unwrap();
            pairs.reverse();
            assert_eq!(pairs, prefixed(&seen[which], &key));
        }
    }

    /// An iterator that stays open while others write.
    fn iterate(&mut self) {
        let which = self.random.usize(..NAMES.len());
        let keyspace = &self.keyspaces[which];
        let (from, to) = (bound(&mut self.random), bound(&mut self.random));
        let range = (from.clone(), to.clone());
        let (pairs, seen) = match self.random.choice(&self.snapshots) {
            Some((snapshot, seen)) if self.random.bool() => (snapshot.range(keyspace, range), seen),
            _ => (keyspace.range(range), &self.now),
        };
        self.open.push(Open {
            pairs,
            expected: within(&seen[which], &from, &to).into_iter(),
        });
    }

    fn advance_one(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let index = self.random.usize(..self.open.len());
        let most = self.random.usize(1..300);
        if !advance(&mut self.open[index], &mut self.random, most) {
            self.open.swap_remove(index);
        }
    }

    fn begin(&mut self) {
        self.begun.push(Begun {
            transaction: self.store.transaction(),
            seen: self.now.clone(),
            writes: Vec::new(),
            begin: self.history.len(),
        });
    }

    /// Reads and writes in a transaction, and perhaps ends it.
    fn transact(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let index = self.random.usize(..self.begun.len());
        let begun = &mut self.begun[index];
        for _ in 0..self.random.usize(1..10) {
            let which = self.random.usize(..NAMES.len());
            let (keyspace, seen) = (&self.keyspaces[which], &begun.seen[which]);
            let key = key(&mut self.random);
            let found = begun.transaction.get(keyspace, &key).unwrap();
            assert_eq!(found, seen.get(&key).cloned());
            let write = Write::random(&mut self.random);
            let (transaction, keyspaces) = (&mut begun.transaction, &self.keyspaces);
            match &write {
                Write::Key(which, key, Some(value)) => {
                    transaction.insert(&keyspaces[*which], key, value);
                }
                Write::Key(which, key, None) => transaction.remove(&keyspaces[*which], key),
                Write::Range(which, from, to) => {
                    transaction.remove_range(&keyspaces[*which], (from.clone(), to.clone()));
                }
            }
            write.apply(&mut begun.seen);
            begun.writes.push(write);
        }
        let which = self.random.usize(..NAMES.len());
        let (from, to) = (bound(&mut self.random), bound(&mut self.random));
        let range = (from.clone(), to.clone());
        let mut whole = Open {
            pairs: begun.transaction.range(&self.keyspaces[which], range),
            expected: within(&begun.seen[which], &from, &to).into_iter(),
        };
        advance(&mut whole, &mut self.random, usize::MAX);
        if self.random.bool() {
            self.end(index);
        }
    }

    fn end(&mut self, index: usize) {
        let begun = self.begun.swap_remove(index);
        let mut others = self.history[begun.begin..].iter().flatten();
        let is_in_conflict = others.any(|write| begun.writes.iter().any(|own| own.meets(write)));
        match begun.transaction.commit() {
            Err(Error::Conflict) => assert!(is_in_conflict, "nobody wrote what it wrote"),
            committed => {
                committed.unwrap();
                assert!(!is_in_conflict, "another one wrote what it wrote");
                for write in &begun.writes {
                    write.apply(&mut self.now);
                }
                self.history.push(begun.writes);
            }
        }
    }

    fn take_snapshot(&mut self) {
        if self.snapshots.len() > 3 {
            let index = self.random.usize(..self.snapshots.len());
            self.snapshots.swap_remove(index);
        }
        self.snapshots
            .push((self.store.snapshot(), self.now.clone()));
    }

    fn remove_keyspace(&mut self) {
        // Who iterates it, or reads it in a snapshot, may not go on.
        self.open.clear();
        self.snapshots.clear();
        self.begun.clear();
        let which = self.random.usize(..NAMES.len());
        let keyspace = self.keyspaces[which].clone();
        self.store.remove_keyspace(keyspace).unwrap();
        assert!(matches!(
            self.keyspaces[which].insert(b"key", b"value"),
            Err(Error::NoKeyspace)
        ));
        self.now[which].clear();
        self.keyspaces = keyspaces(&self.store, &mut self.random);
    }

    fn check_all(&self) {
        for (keyspace, map) in self.keyspaces.iter().zip(&self.now) {
            let pairs = keyspace.range::<&[u8]>(..).collect::<Result<Vec<_>, _>>();
            assert!(pairs.unwrap().into_iter().eq(map.clone()));
        }
        let verified = self.store.verify();
        assert!(verified.damage.is_empty(), "{verified:?}");
    }

    fn reopen(mut self, closes: bool) -> World<'a> {
        self.open.clear();
        self.snapshots.clear();
        self.begun.clear();
        self.keyspaces.clear();
        if closes {
            self.store.close().unwrap();
        } else {
            drop(self.store);
        }
        self.store = open(self.place, &mut self.random);
        self.keyspaces = keyspaces(&self.store, &mut self.random);
        self.check_all();
        self
    }

    fn step(mut self) -> World<'a> {
        match self.random.u32(..1000) {
            0..290 => self.write(),
            290..390 => self.write_batch(),
            390..400 => self.append(),
            400..408 => self.remove_run(),
            408..410 => self.store.set_buffer(buffer(&mut self.random)).unwrap(),
            410..600 => self.read(),
            600..650 => self.iterate(),
            650..780 => self.advance_one(),
            780..820 => self.begin(),
            820..930 => self.transact(),
            930..960 => self.take_snapshot(),
            960..975 => self.store.checkpoint().unwrap(),
            975..985 => self.store.commit().unwrap(),
            985..990 => self.check_all(),
            990..993 => self.remove_keyspace(),
            993..997 => return self.reopen(true),
            _ => return self.reopen(false),
        }
        self
    }
}

#[test]
fn a_store_is_a_map_whatever_is_done_with_it() {
    let seeds = std::env::var("LANDFALL_MODEL_SEEDS").unwrap_or_else(|_| "0..6".to_owned());
    let (from, to) = seeds
        .split_once("..")
        .expect("LANDFALL_MODEL_SEEDS=FROM..TO");
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        println!("seed {seed}");
        let outside = tempfile::tempdir().unwrap();
        let place = outside.path().join("store");
        let mut world = World::new(&place, seed);
        for _ in 0..STEPS {
            world = world.step();
        }
        world.check_all();
    }
}
