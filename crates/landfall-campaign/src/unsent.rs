//! What a shard has done, kept on its machine until it is where results are kept.
//!
//! ```text
//! WORK/unsent-CAMPAIGN-000003-DIGEST.json
//! WORK/DIGEST.recording
//! ```
//!
//! A store that cannot be reached at the end of hours of work takes nothing of it: the next run of the same shard on this
//! machine sends it first. Each file is whole or not there; what was sent is removed.
//!
//! Threads: the caller's. Others may send the same at once: one of them does it, and to the others it has gone.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use landfall_results::proof::Shard;

use crate::Error;
use crate::content::{CampaignId, Digest};
use crate::document::{Outcome, ShardDocument};
use crate::store::ResultStore;

const PREFIX: &str = "unsent-";
const SUFFIX: &str = ".json";

/// Writes a file in `work` that is whole once it is called so.
pub(crate) fn write_whole(work: &Path, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file =
        tempfile::NamedTempFile::new_in(work).map_err(Error::io("make a file in", work))?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    file.persist(path)
        .map_err(|error| error.error)
        .map_err(Error::io("write", path))?;
    Ok(())
}

/// Where the recording of this name is on a machine.
pub(crate) fn recording_file(work: &Path, digest: Digest) -> PathBuf {
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
    for (path, digest) in unsent(work, &prefix(id, shard))? {
        let Some(bytes) = read(&path)? else { continue };
        let document = Some(bytes)
            .filter(|bytes| Digest::of(bytes) == digest)
            .map(|bytes| ShardDocument::read(digest, &bytes))
            .ok_or_else(|| {
                Error::Document(format!(
                    "{} is damaged: remove it, and run the shard again",
                    path.display()
                ))
            })??;
        say(&format!(
            "sending what shard {shard} did here at {}",
            document.started
        ));
        send(store, work, &path, &document)?;
    }
    Ok(())
}

/// Puts a document, after what it tells of, where results are kept, and removes it here.
pub(crate) fn send(
    store: &ResultStore,
    work: &Path,
    path: &Path,
    document: &ShardDocument,
) -> Result<(), Error> {
    // A directory that is not mounted any more is another one.
    store.plan(&document.campaign)?;
    let recordings: Vec<Digest> = document
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Done { recording, .. } => *recording,
            Outcome::Failed { .. } => None,
        })
        .collect();
    for digest in &recordings {
        let file = recording_file(work, *digest);
        let Some(bytes) = read(&file)? else {
            // Somebody else has sent it, and all that it belongs to.
            if !path.exists() {
                return Ok(());
            }
            return Err(Error::Document(format!(
                "{} is gone, of which {} tells: remove that too, and run the shard again",
                file.display(),
                path.display()
            )));
        };
        store.put_recording(&document.campaign, *digest, bytes)?;
    }
    store.put_shard(document)?;
    remove(path)?;
    recordings
        .iter()
        .try_for_each(|digest| remove(&recording_file(work, *digest)))
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
