//! `landfall lab`: runs an experiment, prints what it found, writes its documents.

use std::time::Duration;

use landfall_lab::{
    Error, Experiment, Progress, Results, Site, SiteSpec, Stop, canonical_directory, export,
};
use landfall_results::Row;

use crate::args::{Lab, LabRequest, Output};
use crate::commands::documents::{Written, command_line, is_stdout, prepare_report, write_named};
use crate::commands::{first_failure, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::{Bar, complain};

pub fn run(lab: Lab, quiet: bool) -> Result<Code, Failure> {
    let request = LabRequest::try_from(lab)?;
    let (plans, output) = (&request.plans, &request.output);
    if request.list {
        let listings: Vec<String> = plans.iter().map(|plan| plan.listing()).collect();
        return print_bytes(listings.join("\n").as_bytes());
    }
    // Making the report's directory must not make this one.
    canonical_directory(&request.dir)?;
    // From here on something may be left behind.
    let stop = Stop::default();
    crate::terminal::stop_on_signals(&stop)?;
    // The other files may be in it. A site that is refused is said first.
    let prepared = prepare_report(&output.documents);
    if prepared.is_ok() {
        check(output)?;
    }
    let trials = plans.iter().map(|plan| plan.trials()).sum();
    let mut display = Display::new(quiet, trials, output.tsv);
    let site = open_site(&request, &stop, &mut display);
    let site = site.inspect_err(|_| display.bar.finish())?;
    let _unless_written = prepared?;
    let (results, closed) = measured(site, plans, &command_line(), &stop, &mut display)?;
    let written = output.documents.write(&results);
    let csv = write_named(&output.csv, || export::csv(&results));
    // Whatever became of the files, the results are not lost.
    let printed = print(output, &results, &written);
    // On the screen others may stand before them.
    let failures = results.failures();
    failures.for_each(|notice| complain(&notice.text));
    first_failure([printed, written.outcome, csv, closed.map_err(Failure::from)])?;
    if let Some(failure) = display.unprinted {
        return Err(failure);
    }
    if results.is_empty() {
        let text = "nothing was measured: this system supports none of these strategies";
        return Err(Failure::new(Code::Refused, text));
    }
    Ok(code(&results))
}

/// How a run ends that measured something.
pub fn code(results: &Results) -> Code {
    match () {
        () if results.has_failed() || results.has_left_something() => Code::Failed,
        () if results.is_too_noisy() => Code::TooNoisy,
        () => Code::Measured,
    }
}

/// Runs plans on a site, which is closed afterwards. Returned is also what that came to: results are not lost by it.
pub fn measured(
    site: Site,
    plans: &[Box<dyn Experiment>],
    command: &str,
    stop: &Stop,
    display: &mut Display,
) -> Result<(Results, Result<(), Error>), Failure> {
    let measured = landfall_lab::run(&site, plans, command, stop, display);
    display.bar.finish();
    let measured = measured.map_err(|error| site.explain(error));
    let closed = site.close();
    let results = measured.map_err(|error| match (&error, &closed) {
        (_, Ok(())) => Failure::from(error),
        (Error::Stopped, Err(left)) => Failure::new(Code::Stopped, format!("stopped; {left}")),
        (_, Err(left)) => {
            let text = format!("{error}; {left}");
            Failure::new(Failure::from(error).code, text)
        }
    })?;
    Ok((results, closed))
}

fn open_site(request: &LabRequest, stop: &Stop, display: &mut Display) -> Result<Site, Failure> {
    if request.site != SiteSpec::Directory {
        let trials = request.plans.iter().map(|plan| plan.trials()).sum();
        let left = request.plans.iter().map(|plan| plan.expected()).sum();
        display.doing("making a filesystem", 0, trials, left);
    }
    let needed = request.plans.iter().map(|plan| plan.required_bytes()).max();
    let needed = needed.unwrap_or(0);
    Ok(Site::make(&request.site, &request.dir, needed, stop)?)
}

/// Finds out before an hour of measuring, not after it, that results have nowhere to go.
fn check(output: &Output) -> Result<(), Failure> {
    let documents = &output.documents;
    let files = [&documents.json, &documents.markdown, &output.csv];
    let has_document = files.into_iter().any(is_stdout);
    if (output.tsv && has_document) || (output.tables && (output.tsv || has_document)) {
        return Err(Failure::new(
            Code::Usage,
            "only one of --json -, --markdown -, --csv -, --tsv and --tables can have standard output",
        ));
    }
    let csv = [("--csv", output.csv.as_deref())];
    documents.check(None, &csv)
}

fn print(output: &Output, results: &Results, written: &Written) -> Result<(), Failure> {
    if is_stdout(&output.csv) {
        print_bytes(export::csv(results).as_bytes())?;
    } else if !output.tsv {
        output.documents.print(results, output.tables, written)?;
    }
    Ok(())
}

/// The progress bar, and the line per trial of `--tsv`.
pub struct Display {
    bar: Bar,
    tsv: bool,
    header: bool,
    /// Why a line could not be printed. Measuring goes on: there may be files to write.
    unprinted: Option<Failure>,
}

impl Display {
    /// A bar for so many trials, and lines if they are wanted.
    pub fn new(quiet: bool, trials: usize, tsv: bool) -> Display {
        Display {
            bar: Bar::new(quiet, trials),
            tsv,
            header: false,
            unprinted: None,
        }
    }
}

impl Progress for Display {
    fn doing(&mut self, what: &str, done: usize, total: usize, left: Duration) {
        self.bar.show(what, done, total, left);
    }

    fn measured(&mut self, row: &Row<'_>) {
        self.bar.measured(row);
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
