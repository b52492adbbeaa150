//! LinkBench on ordered keys.
//!
//! | key | value |
//! |---|---|
//! | `l` id1 type id2 | visibility, version, time, data |
//! | `i` id1 type visibility time id2 | version, data: all that a list shows |
//! | `c` id type | count, time, version |
//! | `n` id | type, version, time, data |
//!
//! Numbers are in big-endian order; times in the index are complemented, so that the latest come first.
//! A change of a link, its index entry and its count is one atomic batch. The database has no transactions
//! that read, so whoever changes something holds a lock of ours from before reading until the batch is
//! committed: one of a fixed number, chosen by id1 or the node's id. A request takes one lock only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::request::{LIST_LIMIT, Link, LinkKey, NODE_TYPE, Node, Start};
use super::store::Store;
use crate::{Batch, DatabaseError, KeyValue};

/// So many that two clients seldom meet at a lock without meeting at a node.
const LOCKS: usize = 1024;

/// What the clients of a database have in common.
pub(super) struct Shared {
    locks: Vec<Mutex<()>>,
    /// The id of the next node that is added.
    next_node: AtomicU64,
}

impl Shared {
    /// Nodes are added behind those that are loaded.
    pub fn new(nodes: u64) -> Shared {
        Shared {
            locks: (0..LOCKS).map(|_| Mutex::default()).collect(),
            next_node: AtomicU64::new(nodes + 1),
        }
    }

    fn lock(&self, id: u64) -> MutexGuard<'_, ()> {
        let lock = &self.locks[id as usize % LOCKS];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct KeyStore {
    keys: Box<dyn KeyValue>,
    shared: Arc<Shared>,
}

impl KeyStore {
    /// A way to what was loaded, and added since.
    pub fn new(
        mut keys: Box<dyn KeyValue>,
        shared: Arc<Shared>,
    ) -> Result<KeyStore, DatabaseError> {
        let next = first_free(keys.as_mut(), shared.next_node.load(Ordering::Relaxed))?;
        shared.next_node.fetch_max(next, Ordering::Relaxed);
        Ok(KeyStore { keys, shared })
    }

    fn get_link(&mut self, key: LinkKey) -> Result<Option<Link>, DatabaseError> {
        let value = self.keys.get(&link_key(key))?;
        value.map(|value| read_link(key, &value)).transpose()
    }

    /// The count of a node's links with its version, if there is one.
    fn get_count(&mut self, id1: u64, kind: u64) -> Result<Option<(u64, u64)>, DatabaseError> {
        let value = self.keys.get(&count_key(id1, kind))?;
        let read = |value: Vec<u8>| {
            let mut read = Reader(&value);
            let count = read.u64()?;
            let _time = read.u64()?;
            Ok((count, read.u64()?))
        };
        value.map(read).transpose()
    }
}

/// The first id from `from` on behind which there is no node. Ids are given in order, so that it can be
/// sought by halves.
fn first_free(keys: &mut dyn KeyValue, from: u64) -> Result<u64, DatabaseError> {
    let mut is_taken = |id: u64| {
        let mut found = false;
        let mut visit = |_: &[u8], _: &[u8]| {
            found = true;
            false
        };
        keys.scan(&node_key(id), b"o", &mut visit)?;
        Ok::<bool, DatabaseError>(found)
    };
    if !is_taken(from)? {
        return Ok(from);
    }
    let mut step = 1;
    while is_taken(from + step)? {
        step *= 2;
    }
    let (mut taken, mut free) = (from + step / 2, from + step);
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle)? {
            taken = middle
        } else {
            free = middle
        }
    }
    Ok(free)
}

/// Adds a link to a batch, with its entry in the index.
pub(super) fn put_link(batch: &mut Batch, link: &Link) {
    let mut value = vec![u8::from(link.is_visible)];
    value.extend(link.version.to_be_bytes());
    value.extend(link.time.to_be_bytes());
    value.extend(&link.data);
    batch.put(link_key(link.key), value);
    let mut value = link.version.to_be_bytes().to_vec();
    value.extend(&link.data);
    batch.put(index_key(link), value);
}

/// Adds a count of links to a batch.
pub(super) fn put_count(
    batch: &mut Batch,
    id1: u64,
    kind: u64,
    count: u64,
    time: u64,
    version: u64,
) {
    let value = [count, time, version].map(u64::to_be_bytes).concat();
    batch.put(count_key(id1, kind), value);
}

/// Adds a node to a batch.
pub(super) fn put_node(batch: &mut Batch, id: u64, node: &Node) {
    let mut value = NODE_TYPE.to_be_bytes().to_vec();
    value.extend(node.version.to_be_bytes());
    value.extend(node.time.to_be_bytes());
    value.extend(&node.data);
    batch.put(node_key(id), value);
}

fn key(first: u8, numbers: &[u64]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + numbers.len() * 8 + 1);
    key.push(first);
    numbers
        .iter()
        .for_each(|number| key.extend(number.to_be_bytes()));
    key
}

pub(super) fn link_key(link: LinkKey) -> Vec<u8> {
    key(b'l', &[link.id1, link.kind, link.id2])
}

pub(super) fn count_key(id: u64, kind: u64) -> Vec<u8> {
    key(b'c', &[id, kind])
}

fn node_key(id: u64) -> Vec<u8> {
    key(b'n', &[id])
}

/// The first key of the index of a node's visible links from this time or before it.
fn index_start(id1: u64, kind: u64, latest: u64) -> Vec<u8> {
    let mut start = key(b'i', &[id1, kind]);
    start.push(1);
    start.extend((!latest).to_be_bytes());
    start
}

fn index_key(link: &Link) -> Vec<u8> {
    let mut key = key(b'i', &[link.key.id1, link.key.kind]);
    key.push(u8::from(link.is_visible));
    key.extend((!link.time).to_be_bytes());
    key.extend(link.key.id2.to_be_bytes());
    key
}

/// Takes numbers off the front of a value.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], DatabaseError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or_else(misread)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u32(&mut self) -> Result<u32, DatabaseError> {
        self.bytes().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, DatabaseError> {
        self.bytes().map(u64::from_be_bytes)
    }
}

fn misread() -> DatabaseError {
    DatabaseError::Failed("a value is not what was put there".to_owned())
}

pub(super) fn read_link(key: LinkKey, value: &[u8]) -> Result<Link, DatabaseError> {
    let mut read = Reader(value);
    let [visibility] = read.bytes()?;
    let version = read.u32()?;
    Ok(Link {
        key,
        is_visible: visibility != 0,
        version,
        time: read.u64()?,
        data: read.0.to_vec(),
    })
}

/// A link, from the index.
fn read_index(id1: u64, kind: u64, key: &[u8], value: &[u8]) -> Result<Link, DatabaseError> {
    // The letter, and what was sought.
    let mut rest = Reader(key.get(17..).ok_or_else(misread)?);
    let [visibility] = rest.bytes()?;
    let time = !rest.u64()?;
    let id2 = rest.u64()?;
    let mut read = Reader(value);
    Ok(Link {
        key: LinkKey { id1, kind, id2 },
        is_visible: visibility != 0,
        time,
        version: read.u32()?,
        data: read.0.to_vec(),
    })
}

impl Store for KeyStore {
    fn put_link(&mut self, link: &Link) -> Result<bool, DatabaseError> {
        let shared = Arc::clone(&self.shared);
        let _lock = shared.lock(link.key.id1);
        let before = self.get_link(link.key)?;
        let mut batch = Batch::default();
        if let Some(before) = &before {
            batch.delete(index_key(before));
        }
        put_link(&mut batch, link);
        if !before.as_ref().is_some_and(|before| before.is_visible) {
            let LinkKey { id1, kind, .. } = link.key;
            let (count, version) = match self.get_count(id1, kind)? {
                Some((count, version)) => (count + 1, version + 1),
                None => (1, 0),
            };
            put_count(&mut batch, id1, kind, count, link.time, version);
        }
        self.keys.commit(&batch)?;
        Ok(before.is_some())
    }

    fn hide_link(&mut self, key: LinkKey, time: u64) -> Result<bool, DatabaseError> {
        let shared = Arc::clone(&self.shared);
        let _lock = shared.lock(key.id1);
        let Some(mut link) = self.get_link(key)?.filter(|link| link.is_visible) else {
            return Ok(false);
        };
        let mut batch = Batch::default();
        batch.delete(index_key(&link));
        link.is_visible = false;
        put_link(&mut batch, &link);
        let LinkKey { id1, kind, .. } = key;
        if let Some((count, version)) = self.get_count(id1, kind)? {
            let count = count.saturating_sub(1);
            put_count(&mut batch, id1, kind, count, time, version + 1);
        }
        self.keys.commit(&batch)?;
        Ok(true)
    }

    fn count_links(&mut self, id1: u64, kind: u64) -> Result<u64, DatabaseError> {
        let count = self.get_count(id1, kind)?;
        Ok(count.map_or(0, |(count, _)| count))
    }

    fn get_links(&mut self, id1: u64, kind: u64, id2s: &[u64]) -> Result<Vec<Link>, DatabaseError> {
        let links = id2s
            .iter()
            .map(|&id2| self.get_link(LinkKey { id1, kind, id2 }));
        links.filter_map(Result::transpose).collect()
    }

    fn list_links(&mut self, id1: u64, kind: u64, from: Start) -> Result<Vec<Link>, DatabaseError> {
        let (latest, mut skipped) = from.place();
        let from = index_start(id1, kind, latest);
        // Behind all that are visible.
        let mut to = key(b'i', &[id1, kind]);
        to.push(2);
        let mut links = Vec::new();
        let mut failed = None;
        let mut visit = |key: &[u8], value: &[u8]| match read_index(id1, kind, key, value) {
            Ok(_) if skipped > 0 => {
                skipped -= 1;
                true
            }
            Ok(link) => {
                links.push(link);
                links.len() < LIST_LIMIT
            }
            Err(error) => {
                failed = Some(error);
                false
            }
        };
        self.keys.scan(&from, &to, &mut visit)?;
        failed.map_or(Ok(links), Err)
    }

    fn get_node(&mut self, id: u64) -> Result<Option<Node>, DatabaseError> {
        let Some(value) = self.keys.get(&node_key(id))? else {
            return Ok(None);
        };
        let mut read = Reader(&value);
        let _type = read.u32()?;
        let version = read.u64()?;
        Ok(Some(Node {
            version,
            time: read.u32()?,
            data: read.0.to_vec(),
        }))
    }

    fn add_node(&mut self, node: &Node) -> Result<u64, DatabaseError> {
        let id = self.shared.next_node.fetch_add(1, Ordering::Relaxed);
        let mut batch = Batch::default();
        put_node(&mut batch, id, node);
        self.keys.commit(&batch)?;
        Ok(id)
    }

    fn update_node(&mut self, id: u64, node: &Node) -> Result<bool, DatabaseError> {
        let shared = Arc::clone(&self.shared);
        let _lock = shared.lock(id);
        if self.keys.get(&node_key(id))?.is_none() {
            return Ok(false);
        }
        let mut batch = Batch::default();
        put_node(&mut batch, id, node);
        self.keys.commit(&batch)?;
        Ok(true)
    }

    fn delete_node(&mut self, id: u64) -> Result<bool, DatabaseError> {
        let shared = Arc::clone(&self.shared);
        let _lock = shared.lock(id);
        if self.keys.get(&node_key(id))?.is_none() {
            return Ok(false);
        }
        let mut batch = Batch::default();
        batch.delete(node_key(id));
        self.keys.commit(&batch)?;
        Ok(true)
    }
}
