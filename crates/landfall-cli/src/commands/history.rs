//! What earlier runs found: their results documents, in `history/` of the report's directory.
//!
//! Each run that found something leaves one, called by when it began; the newest is also the report's `results.json`. Of
//! them stay
//!
//! - the last [`KEPT`], for `landfall compare`;
//! - what none of the newer ones did again, for `landfall advise`, up to [`MOST`] in all.
//!
//! Nothing is removed that is not called as they are. Before there was a history they lay in the report's directory
//! itself, from where they are moved.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use landfall_lab::compare::{compare, measured_the_same};
use landfall_lab::{Found, Results};

use crate::commands::compare::read;
use crate::commands::files::replace;
use crate::exit::{Code, Failure};
use crate::terminal::remark;

/// Where reports are, unless somebody says.
pub const REPORT: &str = "landfall-report";
/// The newest document in a report's directory.
pub const NEWEST: &str = "results.json";
const HISTORY: &str = "history";
/// Runs that are kept, whatever came after them.
const KEPT: usize = 20;
/// Documents that are kept at all.
const MOST: usize = 200;

/// Keeps what a run found, if it found anything, and removes what is too old.
pub fn keep(report: &Path, results: &Results) -> Result<(), Failure> {
    if results.is_empty() {
        return Ok(());
    }
    let directory = directory(report);
    make(&directory)?;
    replace(
        &directory.join(name_of(results)),
        results.to_json().as_bytes(),
    )?;
    for old in superfluous(&of(&directory)) {
        if let Err(error) = fs::remove_file(&old) {
            remark(&format!("cannot remove {}: {error}", old.display()));
        }
    }
    Ok(())
}

/// Takes over what lies in the report's directory and is not in its history: documents of before there was one, and a
/// newest one that no run left there.
pub fn take_over(report: &Path) -> Result<(), Failure> {
    let directory = directory(report);
    let newest = report.join(NEWEST);
    let mut moved: Vec<(PathBuf, PathBuf)> = of(report)
        .into_iter()
        .filter_map(|path| Some((directory.join(path.file_name()?), path)))
        .collect();
    if let Ok(results) = read(&newest)
        && !results.is_empty()
    {
        moved.push((directory.join(name_of(&results)), newest));
    }
    moved.retain(|(to, _)| !to.exists());
    if moved.is_empty() {
        return Ok(());
    }
    make(&directory)?;
    for (to, from) in moved {
        fs::rename(&from, &to).map_err(|error| {
            let text = format!(
                "cannot move {} to {}: {error}",
                from.display(),
                to.display()
            );
            Failure::new(Code::Failed, text)
        })?;
    }
    Ok(())
}

/// Where they are.
pub fn directory(report: &Path) -> PathBuf {
    report.join(HISTORY)
}

/// A document in a file.
pub struct Kept {
    pub path: PathBuf,
    pub results: Results,
}

/// All that is kept there, the newest first, each run once. What cannot be read is left out.
pub fn all(report: &Path) -> Vec<Kept> {
    let kept = of(&directory(report)).into_iter().chain(of(report));
    let mut all: Vec<Kept> = kept
        .chain([report.join(NEWEST)])
        .filter_map(|path| {
            let results = read(&path).ok()?;
            Some(Kept { path, results })
        })
        .collect();
    // It keeps those of the history in front of the same run's elsewhere.
    all.sort_by(|a, b| b.results.started.cmp(&a.results.started));
    all.dedup_by(|later, kept| later.results.started == kept.results.started);
    all
}

/// Those in the history that hold something which no newer one has done again.
pub fn evidence(report: &Path) -> Vec<Results> {
    let newest_first = of(&directory(report)).into_iter();
    let documents = newest_first.filter_map(|path| read(&path).ok());
    let mut evidence: Vec<Results> = Vec::new();
    for one in documents {
        if !evidence.iter().any(|newer| newer.replaces(&one)) {
            evidence.push(one);
        }
    }
    evidence
}

/// The newest run that measured something, and the one before it that measured the same in the same place, or if none did
/// a part of it.
pub fn last_two(report: &Path) -> Result<(Kept, Kept), Failure> {
    let nothing = |text: String| Err(Failure::new(Code::Usage, text));
    let place = report.display();
    let mut all = all(report).into_iter();
    let has_measured = |one: &Found| one.proof().is_none() && !one.is_empty();
    let Some(newest) = all.find(|one| one.results.experiments.iter().any(has_measured)) else {
        return nothing(format!(
            "there are no results of a measurement in {place}: run landfall lab twice, or name two results documents"
        ));
    };
    let before = all.filter(|one| is_same_place(&one.results, &newest.results));
    let is_comparable = |one: &Results| compare(one, &newest.results).is_ok();
    match likest(before.collect(), &newest.results, is_comparable) {
        Some(before) => Ok((before, newest)),
        None => nothing(format!(
            "no earlier run in {place} measured the same as {}: run '{}' once more, or name two results documents",
            newest.path.display(),
            newest.results.command
        )),
    }
}

/// Of runs, the newest first, the newest that measured just what this one did; or else the newest that measured
/// something of it.
fn likest(
    mut runs: Vec<Kept>,
    results: &Results,
    is_comparable: impl Fn(&Results) -> bool,
) -> Option<Kept> {
    let is_some = |one: &Kept| is_comparable(&one.results);
    let is_all = |one: &Kept| measured_the_same(&one.results, results) && is_some(one);
    let all = runs.iter().position(is_all);
    let place = all.or_else(|| runs.iter().position(is_some))?;
    Some(runs.swap_remove(place))
}

fn is_same_place(a: &Results, b: &Results) -> bool {
    (&a.directory, &a.site) == (&b.directory, &b.site)
}

/// The newest run that measured the same as this document in the same place, or if none did a part of it.
pub fn newest_like(report: &Path, path: &Path, results: &Results) -> Result<Kept, Failure> {
    let mut others = all(report);
    others.retain(|one| {
        one.results.started != results.started && is_same_place(&one.results, results)
    });
    let is_comparable = |one: &Results| compare(results, one).is_ok();
    likest(others, results, is_comparable).ok_or_else(|| {
        let text = format!(
            "no other run in {} measured the same in the same place as {}: name two results documents",
            report.display(),
            path.display()
        );
        Failure::new(Code::Usage, text)
    })
}

/// Documents in a directory by what they are called, the newest first.
fn of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        // Not what a link leads to.
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| is_ours(path))
        .collect();
    paths.sort_unstable_by_key(|path| Reverse(path.clone()));
    paths
}

/// Digits of when the run began: they sort by time.
fn name_of(results: &Results) -> String {
    let digits = results.started.chars().filter(char::is_ascii_digit);
    format!("results-{}.json", digits.collect::<String>())
}

fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let digits = name
        .and_then(|name| name.strip_prefix("results-"))
        .and_then(|name| name.strip_suffix(".json"));
    // Date and time have fourteen.
    digits.is_some_and(|digits| {
        digits.len() >= 14 && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Of these, the newest first, what is to go.
fn superfluous(paths: &[PathBuf]) -> Vec<PathBuf> {
    if paths.len() <= KEPT {
        return Vec::new();
    }
    let documents: Vec<Option<Results>> = paths.iter().map(|path| read(path).ok()).collect();
    let is_done_again = |index: usize| {
        let newer = documents[..index].iter().flatten();
        documents[index]
            .as_ref()
            .is_some_and(|old| newer.into_iter().any(|newer| newer.replaces(old)))
    };
    let old = (KEPT..paths.len()).filter(|&index| index >= MOST || is_done_again(index));
    old.map(|index| paths[index].clone()).collect()
}

fn make(directory: &Path) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(|error| {
        let text = format!("cannot make {}: {error}", directory.display());
        Failure::new(Code::Failed, text)
    })
}
