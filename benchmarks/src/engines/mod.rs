//! The stores, behind one interface: each file opens one of them as its documentation recommends.
//!
//! Half of the memory is for writes that wait and half for what was read, where a store tells the two apart. LMDB has
//! no memory of its own: it reads through the page cache.

mod canopydb;
mod fjall;
mod landfall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::path::{Path, PathBuf};

use crate::Fallible;

/// Where a store is, and what it may use.
pub struct Settings {
    pub directory: PathBuf,
    /// Bytes of its cache and its write buffers together.
    pub memory: u64,
    /// Whether it writes out what it has in memory before it is asked to, and cuts its log.
    pub checkpoints: bool,
}

/// A value for a key, or none: the key is removed.
pub struct Write {
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

/// A store that is open. Dropped, it is closed.
pub trait Engine: Send + Sync {
    /// Commits all of it at once; durably, or so that only a power cut can take it.
    fn commit(&self, writes: &mut dyn Iterator<Item = Write>, durable: bool) -> Fallible<()>;

    /// Writes of one commit, at most.
    fn most_writes(&self) -> usize {
        usize::MAX
    }

    /// Reads as of now.
    fn read(&self, work: &mut dyn FnMut(&mut dyn View) -> Fallible<()>) -> Fallible<()>;

    /// Makes everything durable that was committed.
    fn sync(&self) -> Fallible<()>;

    /// Writes everything to where it stays, and waits until nothing is done in the background.
    fn settle(&self) -> Fallible<()>;

    /// Makes the files as small as they can be, and closes the store. `false`: there is no way to.
    fn compact(self: Box<Self>) -> Fallible<bool>;
}

/// What is called with a key and its value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Fallible<()> + 'a;

/// What is read from.
pub trait View {
    /// Visits a key, and returns whether it is there.
    fn get(&mut self, key: &[u8], visit: &mut Visit<'_>) -> Fallible<bool>;

    /// Visits so many keys in their order, from a key on.
    fn scan(&mut self, from: &[u8], rows: usize, visit: &mut Visit<'_>) -> Fallible<()>;

    /// The number of keys: counted, where the store does not keep it.
    fn len(&mut self) -> Fallible<u64> {
        let mut rows = 0;
        let mut count = |_: &[u8], _: &[u8]| {
            rows += 1;
            Ok(())
        };
        self.scan(&[], usize::MAX, &mut count)?;
        Ok(rows)
    }
}

/// A store that can be measured.
pub struct Kind {
    pub name: &'static str,
    pub version: fn() -> String,
    pub open: fn(&Settings) -> Fallible<Box<dyn Engine>>,
}

pub static KINDS: &[Kind] = &[
    landfall::KIND,
    landfall::BUFFERED,
    redb::KIND,
    lmdb::KIND,
    fjall::KIND,
    canopydb::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
];

impl Kind {
    pub fn named(name: &str) -> Fallible<&'static Kind> {
        let found = KINDS.iter().find(|kind| kind.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
            let names = names.join(", ");
            let more = match name {
                "rocksdb" => "; build with --features rocksdb",
                _ => "",
            };
            format!("there is no engine '{name}': choose from {names}{more}").into()
        })
    }
}

/// The version of a package, as the lock file has it.
fn locked(package: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let head = format!("name = \"{package}\"\nversion = \"");
    let rest = lock.split_once(&head).map_or("", |(_, rest)| rest);
    rest.split('"').next().unwrap_or("").into()
}

/// The directory, which is there then.
fn made(directory: &Path) -> Fallible<&Path> {
    std::fs::create_dir_all(directory)?;
    Ok(directory)
}

/// Bytes as a library takes them.
fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
