//! Opening an LMDB environment: a file that is mapped, so that whoever opens it answers for the file.

use std::path::Path;

use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};

/// What a commit to LMDB waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LmdbSync {
    /// Its pages and the page that makes them valid are durable.
    Yes,
    /// Its pages are durable; the last transactions can be undone by a power cut, as a whole.
    PagesOnly,
    /// Nothing: a power cut can leave a file that is no database.
    No,
}

/// Opens the environment in `directory`, which is made if there is none.
///
/// `map_size` bounds how large it can become, in bytes; `readers` how many read at the same time.
///
/// **The directory must be the caller's alone for as long as the environment is open.** Nothing checks that: if anybody else changes the
/// file, what is read of it is undefined behaviour. The function is not `unsafe` only because the crates that call it may have
/// no such block; they open directories that they have made themselves.
pub fn open_lmdb(
    directory: &Path,
    map_size: usize,
    readers: u32,
    sync: LmdbSync,
) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_size).max_readers(readers);
    let flags = match sync {
        LmdbSync::Yes => EnvFlags::empty(),
        LmdbSync::PagesOnly => EnvFlags::NO_META_SYNC,
        LmdbSync::No => EnvFlags::NO_SYNC,
    };
    // SAFETY: these flags give up durability, and nothing that memory safety rests on.
    unsafe { options.flags(flags) };
    // SAFETY: not by anything here. The documentation asks the caller for a directory of its own; then only LMDB changes
    // the file that is mapped, under its own lock, and LMDB itself refuses to map it twice in one process.
    unsafe { options.open(directory) }
}
