//! The report: one HTML file that needs nothing else, beside the results document it is made from.

mod advice;
mod amplify;
mod binlog;
mod configuration;
mod page;
mod prose;
mod prove;
mod stream;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod torn;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use landfall_results::view::Block;

use crate::advice::Advice;
use crate::{Error, Results};

/// Makes sure, before anything is measured, that a report can be written to `directory`.
pub fn prepare(directory: &Path) -> Result<(), Error> {
    let doing = || format!("cannot make the report directory {}", directory.display());
    fs::create_dir_all(directory).map_err(Error::io(doing()))?;
    tempfile::tempfile_in(directory).map_err(Error::io(doing()))?;
    Ok(())
}

/// Writes `results.json` and `index.html` into `directory`, in place of those of an earlier run.
pub fn write(directory: &Path, results: &Results, advice: &Advice) -> Result<(), Error> {
    write_file(
        &directory.join("results.json"),
        results.to_json().as_bytes(),
    )?;
    let page = render(results, advice)?;
    write_file(&directory.join("index.html"), page.as_bytes())
}

/// The report of these results, with what is advised on them, as one HTML text, which holds everything that it needs.
pub fn render(results: &Results, advice: &Advice) -> Result<String, Error> {
    page::render(results, advice)
}

/// What a terminal shows of every experiment, without claims, proofs and notices.
pub fn brief(results: &Results) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(found) = results.first() {
        blocks.extend(sync::tables::brief(results, found));
    }
    if let Some(found) = results.first() {
        blocks.extend(stream::tables::brief(found));
    }
    blocks.extend(results.all().flat_map(binlog::tables::brief));
    blocks.extend(results.all().flat_map(torn::tables::brief));
    blocks.extend(results.all().flat_map(amplify::tables::brief));
    blocks
}

/// Writes a file whole or not at all.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let doing = || format!("cannot write {}", path.display());
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // For others to read too, as far as the user's umask lets them; a temporary file is private.
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(Error::io(doing()))?;
    file.write_all(bytes).map_err(Error::io(doing()))?;
    file.persist(path)
        .map_err(|error| Error::io(doing())(error.error))?;
    Ok(())
}
