//! The files that results go to: the results document and the report.

use std::path::{Path, PathBuf};

use landfall_lab::advice::{Advice, Scope, advise};
use landfall_lab::report::{self, Kept};
use landfall_lab::{Error, Results};
use landfall_os::humanize::quoted;
use landfall_report::html;
use landfall_report::markdown::markdown;

use crate::args::Documents;
use crate::commands::files::{check_file, is_same_file, replace, write_file};
use crate::commands::history;
use crate::commands::{first_failure, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::table;

/// The report's page in its directory.
pub const PAGE: &str = "index.html";

/// Whether standard output is meant.
pub fn is_stdout(path: &Option<PathBuf>) -> bool {
    path.as_deref() == Some(Path::new("-"))
}

/// Whether every file that these options name can be written, and no two are the same, nor one that is taken: one that is
/// read, or of the report.
pub fn check_files<'a>(
    taken: &[(&str, PathBuf)],
    named: impl IntoIterator<Item = (&'a str, Option<&'a Path>)>,
) -> Result<(), Failure> {
    let taken = taken.iter().map(|(what, path)| (*what, path.as_path()));
    let mut files: Vec<(&str, &Path)> = taken.collect();
    let taken = files.len();
    for (option, path) in named {
        let Some(path) = path else { continue };
        if let Some((other, _)) = files.iter().find(|(_, other)| is_same_file(other, path)) {
            let text = if path == Path::new("-") {
                format!("only one of {other} - and {option} - can have standard output")
            } else {
                format!("{other} and {option} name the same file; give each its own")
            };
            return Err(Failure::new(Code::Usage, text));
        }
        files.push((option, path));
    }
    let named = files.into_iter().skip(taken).map(|(_, path)| path);
    let mut files = named.filter(|path| *path != Path::new("-"));
    files.try_for_each(check_file)
}

/// The files of a report.
pub fn report_files(report: &Path) -> [(&'static str, PathBuf); 2] {
    [
        ("the report's page", report.join(PAGE)),
        ("the report's document", report.join(history::NEWEST)),
    ]
}

/// What became of the files that were asked for.
pub struct Written {
    /// Whether the report's page is there, and its document.
    has_report: bool,
    /// Whether the document that was named could be written, if one was.
    has_json: bool,
    /// Why the first that could not be written could not.
    pub outcome: Result<(), Failure>,
}

impl Documents {
    /// The same of these, and of others, where a file may be read. The report's directory is there already.
    pub fn check(
        &self,
        read: Option<(&str, &Path)>,
        others: &[(&str, Option<&Path>)],
    ) -> Result<(), Failure> {
        let report = report_files(&self.report).into_iter();
        let report = report.filter(|_| !self.no_report);
        let read = read.map(|(option, path)| (option, path.to_owned()));
        let taken: Vec<(&str, PathBuf)> = report.chain(read).collect();
        let own = [
            ("--json", self.json.as_deref()),
            ("--markdown", self.markdown.as_deref()),
        ];
        check_files(&taken, own.into_iter().chain(others.iter().copied()))
    }

    /// Writes what was asked for into files, each whatever became of the others.
    pub fn write(&self, results: &Results) -> Written {
        let report = self.write_report(results);
        let has_report = report.is_ok() && !self.no_report;
        let history = if has_report {
            history::keep(&self.report, results)
        } else {
            Ok(())
        };
        let json = write_named(&self.json, || results.to_json());
        let has_json = json.is_ok();
        let markdown = write_named(&self.markdown, || markdown(&table::results(results)));
        Written {
            has_report,
            has_json,
            outcome: first_failure([report, history, json, markdown]),
        }
    }

    /// Writes the report, if there is to be one.
    fn write_report(&self, results: &Results) -> Result<(), Failure> {
        if self.no_report {
            return Ok(());
        }
        let advice = advise(results, &self.report.display().to_string(), None);
        write_report(&self.report, results, &advice, &Scope::here())
    }

    /// Prints the document or the Markdown if that was asked for; otherwise one screen, or all tables.
    pub fn print(&self, results: &Results, tables: bool, written: &Written) -> Result<(), Failure> {
        let text = if is_stdout(&self.json) {
            results.to_json()
        } else if is_stdout(&self.markdown) {
            markdown(&table::results(results))
        } else {
            let in_report = |name| written.has_report.then(|| self.report.join(name));
            let json = self.json.clone().filter(|_| written.has_json);
            let document = in_report(history::NEWEST).or(json);
            shown(
                results,
                tables,
                document.as_deref(),
                in_report(PAGE).as_deref(),
            )
        };
        print_bytes(text.as_bytes())?;
        Ok(())
    }
}

/// Writes a text into the file that an option names, unless it names none, or standard output.
pub fn write_named(path: &Option<PathBuf>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    match path.as_deref() {
        Some(path) if path != Path::new("-") => write_file(path, text().as_bytes()),
        _ => Ok(()),
    }
}

/// What a terminal shows of a run, whose document and page are there.
pub fn shown(
    results: &Results,
    tables: bool,
    document: Option<&Path>,
    page: Option<&Path>,
) -> String {
    let text = |path: &Path| path.display().to_string();
    let (document, page, program) = (document.map(text), page.map(text), called());
    let kept = Kept {
        document: document.as_deref(),
        page: page.as_deref(),
        program: program.as_deref(),
    };
    table::shown(results, tables, kept)
}

/// What this program was called, as a shell takes it, where its name alone would not be found, as from a fresh build.
fn called() -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_found = std::env::split_paths(&path).any(|one| one.join("landfall").is_file());
    let called = std::env::args_os().next().filter(|_| !is_found);
    called.map(|called| quoted(&called.to_string_lossy()))
}

/// Writes the report and its document in place of an earlier one's, which the history keeps.
pub fn write_report(
    directory: &Path,
    results: &Results,
    advice: &Advice,
    scope: &Scope,
) -> Result<(), Failure> {
    history::take_over(directory)?;
    let path = directory.join(history::NEWEST);
    replace(&path, results.to_json().as_bytes())?;
    let page = html::render(&report::page(results, advice, scope))
        .map_err(|error| Failure::new(Code::Failed, error.to_string()))?;
    replace(&directory.join(PAGE), page.as_bytes())
}

/// Makes the report's directory, if there is to be a report. What this returns removes it again when dropped, if
/// it was made here and no report got into it.
pub fn prepare_report(documents: &Documents) -> Result<EmptyDirectories, Failure> {
    if documents.no_report {
        Ok(EmptyDirectories(Vec::new()))
    } else {
        prepare_report_in(&documents.report)
    }
}

/// Makes a directory for reports, where nothing can be left out; the same.
pub fn prepare_directory(directory: &Path) -> Result<EmptyDirectories, Failure> {
    prepare_report_in(directory).map_err(|failure| Failure {
        text: failure.text.replace(", or pass --no-report", ""),
        ..failure
    })
}

/// Makes a directory for reports; the same.
fn prepare_report_in(report: &Path) -> Result<EmptyDirectories, Failure> {
    let made = report
        .ancestors()
        .take_while(|path| *path != Path::new("") && path.symlink_metadata().is_err())
        .map(Path::to_owned)
        .collect();
    let made = EmptyDirectories(made);
    if report.exists() && !report.is_dir() {
        let text = format!(
            "{} is not a directory; name another with --report, or pass --no-report",
            report.display()
        );
        return Err(Failure::new(Code::Usage, text));
    }
    let history = history::directory(report);
    let written = can_be_written(report).and_then(|()| {
        if history.exists() {
            can_be_written(&history)
        } else {
            Ok(())
        }
    });
    written.map_err(|error| {
        let mut failure = Failure::from(error);
        if failure.code == Code::Failed {
            failure.code = Code::Usage;
            failure.text += "; name another with --report, or pass --no-report";
        }
        failure
    })?;
    Ok(made)
}

/// Makes sure, before anything is measured, that a report can be written to `directory`.
fn can_be_written(directory: &Path) -> Result<(), Error> {
    let doing = || format!("cannot make the report directory {}", directory.display());
    std::fs::create_dir_all(directory).map_err(Error::io(doing()))?;
    tempfile::tempfile_in(directory).map_err(Error::io(doing()))?;
    Ok(())
}

/// Directories that go when this is dropped, unless there is something in them; innermost first.
pub struct EmptyDirectories(Vec<PathBuf>);

impl Drop for EmptyDirectories {
    fn drop(&mut self) {
        for directory in &self.0 {
            // One that is not empty, or was never made, stays as it is.
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// What a user types to repeat the run.
pub fn command_line() -> String {
    let mut words = vec!["landfall".to_owned()];
    let given = std::env::args_os().skip(1);
    words.extend(given.map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}
