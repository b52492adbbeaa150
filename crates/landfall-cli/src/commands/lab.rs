//! `landfall lab`: runs an experiment, prints its table, writes its documents.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landfall_lab::export::Row;
use landfall_lab::{Error, Plan, Progress, Results, Site, Stop, export, report};

use crate::args::{Lab, LabRequest, Output};
use crate::commands::listing::list;
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::{Bar, table};

pub fn run(lab: Lab, quiet: bool) -> Result<Code, Failure> {
    let LabRequest {
        dir,
        plans,
        list: only_list,
        output,
    } = LabRequest::try_from(lab)?;
    if only_list {
        return print_bytes(list(&plans).as_bytes());
    }
    check(&output)?;
    let stop = Stop::default();
    crate::terminal::stop_on_signals(&stop)?;
    let site = Site::open(&dir)?;
    let _unless_written = prepare_report(&output)?;
    let mut display = Display {
        bar: Bar::new(quiet, plans.iter().map(Plan::trials).sum()),
        tsv: output.tsv,
        header: false,
        unprinted: None,
    };
    let measured = landfall_lab::run(&site, &plans, &command_line(), &stop, &mut display);
    display.bar.finish();
    let closed = site.close();
    let results = measured.map_err(|error| match (&error, &closed) {
        (_, Ok(())) => Failure::from(error),
        (Error::Stopped, Err(left)) => Failure::new(Code::Stopped, format!("stopped; {left}")),
        (_, Err(left)) => {
            let text = format!("{error}; {left}");
            Failure::new(Failure::from(error).code, text)
        }
    })?;
    let written = write_documents(&output, &results);
    // Whatever became of the files, the results are not lost.
    print(&output, &results)?;
    written?;
    closed?;
    if let Some(failure) = display.unprinted {
        return Err(failure);
    }
    if results.is_empty() {
        let text = "nothing was measured: this system supports none of these strategies";
        return Err(Failure::new(Code::Refused, text));
    }
    Ok(if results.is_too_noisy() {
        Code::TooNoisy
    } else {
        Code::Measured
    })
}

/// Finds out before an hour of measuring, not after it, that results have nowhere to go.
fn check(output: &Output) -> Result<(), Failure> {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    let claims = [to_stdout(&output.json), to_stdout(&output.csv), output.tsv];
    if claims.iter().filter(|claim| **claim).count() > 1 {
        return Err(Failure::new(
            Code::Usage,
            "only one of --json -, --csv - and --tsv can have standard output",
        ));
    }
    let files: Vec<&Path> = [&output.json, &output.csv]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .filter(|path| *path != Path::new("-"))
        .collect();
    if let [json, csv] = files.as_slice()
        && json == csv
    {
        let text = "--json and --csv name the same file; give each its own";
        return Err(Failure::new(Code::Usage, text));
    }
    files.into_iter().try_for_each(check_file)
}

/// Whether a file can be put there; what is there already stays as it is until there are results.
fn check_file(path: &Path) -> Result<(), Failure> {
    let wrong = |reason: String| {
        let text = format!("cannot write {}: {reason}", path.display());
        Err(Failure::new(Code::Usage, text))
    };
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return wrong("it is a directory".into());
    }
    if !parent.is_dir() {
        return wrong(format!("there is no directory {}", parent.display()));
    }
    if is_written_in_place(path) {
        return Ok(());
    }
    match report::prepare(parent) {
        Ok(()) => Ok(()),
        Err(_) => wrong(format!("no file can be made in {}", parent.display())),
    }
}

/// Devices, pipes and links are written to; only a plain file may be replaced by a new one.
fn is_written_in_place(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| !metadata.is_file())
}

/// Makes the report's directory. What this returns removes it again when dropped, if it was made here
/// and no report got into it.
fn prepare_report(output: &Output) -> Result<EmptyDirectories, Failure> {
    let mut made = EmptyDirectories(Vec::new());
    if output.no_report {
        return Ok(made);
    }
    let report = &output.report;
    made.0 = report
        .ancestors()
        .take_while(|path| *path != Path::new("") && path.symlink_metadata().is_err())
        .map(Path::to_owned)
        .collect();
    if report.exists() && !report.is_dir() {
        let text = format!(
            "{} is not a directory; name another with --report, or pass --no-report",
            report.display()
        );
        return Err(Failure::new(Code::Usage, text));
    }
    report::prepare(report).map_err(|error| {
        let mut failure = Failure::from(error);
        if failure.code == Code::Failed {
            failure.code = Code::Usage;
            failure.text += "; name another with --report, or pass --no-report";
        }
        failure
    })?;
    Ok(made)
}

/// Directories that go when this is dropped, unless there is something in them; innermost first.
struct EmptyDirectories(Vec<PathBuf>);

impl Drop for EmptyDirectories {
    fn drop(&mut self) {
        for directory in &self.0 {
            // One that is not empty, or was never made, stays as it is.
            let _ = std::fs::remove_dir(directory);
        }
    }
}

fn write_documents(output: &Output, results: &Results) -> Result<(), Failure> {
    if !output.no_report {
        report::write(&output.report, results)?;
    }
    if let Some(path) = output.json.as_ref().filter(|path| *path != Path::new("-")) {
        write_file(path, results.to_json().as_bytes())?;
    }
    if let Some(path) = output.csv.as_ref().filter(|path| *path != Path::new("-")) {
        write_file(path, export::csv(results).as_bytes())?;
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_written_in_place(path) {
        return std::fs::write(path, bytes).map_err(|error| {
            let text = format!("cannot write {}: {error}", path.display());
            Failure::new(Code::Failed, text)
        });
    }
    Ok(report::write_file(path, bytes)?)
}

fn print(output: &Output, results: &Results) -> Result<(), Failure> {
    let dash = Some(Path::new("-"));
    if output.json.as_deref() == dash {
        print_bytes(results.to_json().as_bytes())?;
    } else if output.csv.as_deref() == dash {
        print_bytes(export::csv(results).as_bytes())?;
    } else if !output.tsv {
        let mut text = table::results(results);
        if !output.no_report {
            let page = output.report.join("index.html");
            let _ = writeln!(text, "\nReport: {}", page.display());
        }
        print_bytes(text.as_bytes())?;
    }
    Ok(())
}

/// What a user types to repeat the run.
fn command_line() -> String {
    let mut words = vec!["landfall".to_owned()];
    words.extend(std::env::args_os().skip(1).map(|word| {
        let word = word.to_string_lossy().into_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    }));
    words.join(" ")
}

/// The progress bar, and the line per trial of `--tsv`.
struct Display {
    bar: Bar,
    tsv: bool,
    header: bool,
    /// Why a line could not be printed. Measuring goes on: there may be files to write.
    unprinted: Option<Failure>,
}

impl Progress for Display {
    fn doing(&mut self, what: &str, done: usize, total: usize, left: Duration) {
        self.bar.show(what, done, total, left);
    }

    fn measured(&mut self, row: &Row<'_>) {
        if !self.tsv {
            return;
        }
        let mut line = String::new();
        if !std::mem::replace(&mut self.header, true) {
            line = export::tsv_header();
        }
        line.push_str(&export::tsv_line(row));
        if let Err(failure) = print_bytes(line.as_bytes()) {
            self.unprinted.get_or_insert(failure);
        }
    }
}
