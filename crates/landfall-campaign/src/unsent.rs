//! What a shard has done, kept on its machine until it is where results are kept.
//!
//! ```text
//! WORK/unsent-CAMPAIGN-000003-DIGEST.json
//! WORK/DIGEST.recording
//! ```
//!
//! A store that cannot be reached at the end of hours of work takes nothing of it: the next run of the same shard on this
//! machine sends it first. Each file is whole or not there, also after a power cut. What lies there is believed, so that nobody else may be able
//! to write there; it is removed once the same is where results are kept.
//!
//! Threads: the caller's. Others may send the same at once: one of them does it, and to the others it has gone.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use landfall_results::proof::Shard;

use crate::Error;
use crate::content::{CampaignId, Digest};
use crate::document::{Outcome, ShardDocument};
use crate::program::own_directory;
use crate::store::{LARGEST_DOCUMENT, ResultStore};

const PREFIX: &str = "unsent-";
const SUFFIX: &str = ".json";

/// Writes a file in `work` that is whole once it is called so, also after a power cut.
pub(crate) fn write_whole(work: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file =
        tempfile::NamedTempFile::new_in(work).map_err(Error::io("make a file in", work))?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    file.as_file().sync_all().map_err(Error::io("sync", path))?;
    file.persist(path)
        .map_err(|error| error.error)
        .map_err(Error::io("write", path))?;
    let directory = File::open(work).map_err(Error::io("open", work))?;
    directory.sync_all().map_err(Error::io("sync", work))
}

/// Where the recording of this name is on a machine, in its directory of `--work`.
pub fn recording_file(work: &Path, digest: Digest) -> PathBuf {
    work.join(format!("{digest}.recording"))
}

/// Keeps it here until it is sent; its recordings are here already.
pub(crate) fn keep(work: &Path, document: &ShardDocument) -> Result<PathBuf, Error> {
    let bytes = document.to_json().into_bytes();
    let prefix = prefix(&document.campaign, document.shard);
    let path = work.join(format!("{prefix}{}{SUFFIX}", Digest::of(&bytes)));
    write_whole(work, &path, &bytes)?;
    Ok(path)
}

/// Sends what runs of this shard on this machine have done and could not send. `say` hears of each.
pub fn send_unsent(
    store: &ResultStore,
    id: &CampaignId,
    shard: Shard,
    work: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let unsent = unsent(work, &prefix(id, shard))?;
    if !unsent.is_empty() {
        // What others could have put there is not believed.
        own_directory(work)?;
    }
    for (path, digest) in unsent {
        let wrong = |why: String| {
            let path = path.display();
            Error::Document(format!("{path} {why}: remove it, and run the shard again"))
        };
        if fs::symlink_metadata(&path).is_ok_and(|found| found.len() > LARGEST_DOCUMENT) {
            return Err(wrong("is larger than any document".to_owned()));
        }
        let Some(bytes) = read(&path)? else { continue };
        if Digest::of(&bytes) != digest {
            return Err(wrong("is damaged".to_owned()));
        }
        let document = ShardDocument::read(digest, &bytes);
        let document = document.map_err(|error| wrong(format!("cannot be sent ({error})")))?;
        if document.campaign != *id || document.shard != shard {
            return Err(wrong("is of another shard than its name says".to_owned()));
        }
        say(&format!(
            "sending what shard {shard} did here at {}",
            document.started
        ));
        send(store, work, Some(&path), &document)?;
    }
    Ok(())
}

/// Puts a document, after what it tells of, where results are kept, and removes it here, where it is kept at `path` if it could be.
pub(crate) fn send(
    store: &ResultStore,
    work: &Path,
    path: Option<&Path>,
    document: &ShardDocument,
) -> Result<(), Error> {
    let of = || path.map_or("this shard".to_owned(), |path| path.display().to_string());
    let mut recordings = Vec::new();
    for digest in own_recordings(document) {
        let file = recording_file(work, digest);
        let Some(bytes) = read(&file)? else {
            // Somebody else has sent it, and all that it belongs to.
            if path.is_some_and(|path| !path.exists()) {
                return Ok(());
            }
            return Err(Error::Document(format!(
                "{} is gone, of which {} tells: remove that too, and run the shard again",
                file.display(),
                of()
            )));
        };
        if Digest::of(&bytes) != digest {
            return Err(Error::Document(format!(
                "{} is damaged, of which {} tells: remove both, and run the shard again",
                file.display(),
                of()
            )));
        }
        recordings.push((digest, bytes));
    }
    let put = || {
        // A directory that is not mounted any more is another one.
        store.plan(&document.campaign)?;
        for (digest, bytes) in recordings {
            store.put_recording(&document.campaign, digest, bytes)?;
        }
        store.put_shard(document)
    };
    put().map_err(|error| match path {
        Some(path) => Error::Unsent {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            source: Box::new(error),
        },
        None => error,
    })?;
    path.map_or(Ok(()), remove)?;
    forget_recordings(work, document)
}

/// Recordings of its own that a document tells of.
fn own_recordings(document: &ShardDocument) -> impl Iterator<Item = Digest> {
    document
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Done { recording, .. } => *recording,
            Outcome::Failed { .. } => None,
        })
}

/// Removes those, which nobody needs here any more.
pub(crate) fn forget_recordings(work: &Path, document: &ShardDocument) -> Result<(), Error> {
    let mut files = own_recordings(document).map(|digest| recording_file(work, digest));
    files.try_for_each(|file| remove(&file))
}

fn prefix(id: &CampaignId, shard: Shard) -> String {
    format!("{PREFIX}{id}-{:06}-", shard.index())
}

/// Documents in `work` whose names begin so, in the order of their names.
fn unsent(work: &Path, prefix: &str) -> Result<Vec<(PathBuf, Digest)>, Error> {
    let entries = match fs::read_dir(work) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("list", work)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("list", work))?;
        let name = entry.file_name();
        let digest = name.to_str().and_then(|name| {
            let digest = name.strip_prefix(prefix)?.strip_suffix(SUFFIX)?;
            digest.parse().ok()
        });
        found.extend(digest.map(|digest| (entry.path(), digest)));
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    // A pipe would be waited for, and a link leads to what is not ours.
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(Error::Document(format!(
            "{} is no regular file: remove it, and run the shard again",
            path.display()
        )));
    }
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path)(error)),
        _ => Ok(()),
    }
}
