//! `landfall advise`: from what was measured and proven to settings.

use std::fs;
use std::path::{Path, PathBuf};

use landfall_lab::advice::check::{Check, check};
use landfall_lab::advice::fragment::{HEAD, fragment};
use landfall_lab::advice::{Advice, advise, is_same_machine, merge, plans};
use landfall_lab::config_file::ConfigFile;
use landfall_lab::rules::System;
use landfall_lab::sync::SyncResults;
use landfall_lab::{Results, Site, SiteKind, SiteSpec, Stop, canonical_directory, report};
use landfall_os::humanize::quoted;

use crate::args::Advise;
use crate::commands::compare::read;
use crate::commands::documents::{EmptyDirectories, command_line, prepare_report_in, write_report};
use crate::commands::files::{check_file, write_file};
use crate::commands::lab::{Display, measure};
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::{remark, table};

/// Where reports are, unless somebody says.
const REPORT: &str = "landfall-report";

pub fn run(arguments: &Advise, quiet: bool) -> Result<Code, Failure> {
    for (system, path) in &arguments.write {
        check_fragment(*system, path)?;
    }
    let json = arguments.json.as_deref();
    if let Some(path) = json.filter(|path| *path != Path::new("-")) {
        check_file(path)?;
    }
    // Before minutes of measuring, not after them.
    let mut configurations: Vec<(System, &Path, ConfigFile)> = Vec::new();
    for file in &arguments.check {
        for system in &file.systems {
            let read = ConfigFile::read(*system, &file.path)?;
            configurations.push((*system, &file.path, read));
        }
    }
    let Evidence {
        results,
        is_new,
        report,
    } = evidence(arguments, quiet)?;
    let are_named = arguments.path.iter().any(|path| path.is_file());
    let report_name = match (&arguments.report, are_named) {
        // Where they will be named again.
        (None, true) => ".".to_owned(),
        _ => report_of(arguments).display().to_string(),
    };
    let drive = arguments.drive.clone().unwrap_or_default();
    let target = arguments.workload.as_ref();
    let mut advice = advise(
        &results,
        &report_name,
        target.map(|target| (target, &drive)),
    );
    advice.checks = configurations
        .iter()
        .map(|(system, path, configuration)| check(*system, path, configuration, &advice))
        .collect();
    if let Some((directory, _unless_written)) = &report {
        write_report(directory, &results, &advice)?;
    }
    for (system, path) in &arguments.write {
        write_fragment(&advice, *system, path)?;
    }
    if !arguments.systems.is_empty() {
        let wanted = |system: &System| arguments.systems.contains(system);
        advice.settings.retain(|setting| wanted(&setting.system));
        // What MariaDB has not been asked, which stands in for MySQL, is missing for both.
        let stands_in = |system: System| system == System::Mariadb && wanted(&System::Mysql);
        advice
            .missing
            .retain(|missing| wanted(&missing.system) || stands_in(missing.system));
    }
    match json {
        Some(path) if path == Path::new("-") => {
            print_bytes(advice.to_json().as_bytes())?;
        }
        json => {
            if let Some(path) = json {
                write_file(path, advice.to_json().as_bytes())?;
            }
            let details = !arguments.systems.is_empty();
            let blocks = report::advice(&advice, details, arguments.missing);
            let mut text = table::text(&blocks);
            if let Some((directory, _)) = &report {
                let page = directory.join("index.html");
                text += &format!("\nReport: {}\n", page.display());
            }
            print_bytes(text.as_bytes())?;
        }
    }
    let risks = |check: &Check| !check.risks.is_empty();
    Ok(match &advice.refused {
        _ if advice.checks.iter().any(risks) => Code::Lost,
        Some(_) => Code::Refused,
        None if is_new && results.is_too_noisy() => Code::TooNoisy,
        None => Code::Measured,
    })
}

fn report_of(arguments: &Advise) -> PathBuf {
    arguments.report.clone().unwrap_or_else(|| REPORT.into())
}

/// What advice stands on.
struct Evidence {
    /// Everything that is known, as one document.
    results: Results,
    /// Whether some of it was measured just now.
    is_new: bool,
    /// Where the report goes, if there is to be one; it is removed again if none gets there.
    report: Option<(PathBuf, EmptyDirectories)>,
}

fn evidence(arguments: &Advise, quiet: bool) -> Result<Evidence, Failure> {
    let (documents, directories): (Vec<&PathBuf>, Vec<&PathBuf>) =
        arguments.path.iter().partition(|path| path.is_file());
    let directory = match (documents.as_slice(), directories.as_slice()) {
        (&[], &[]) => PathBuf::from("."),
        (&[], &[directory]) => directory.clone(),
        (_, &[]) => return of_documents(arguments, &documents),
        _ => {
            let text = "name one directory, or results documents of one machine";
            return Err(Failure::new(Code::Usage, text));
        }
    };
    of_directory(arguments, &directory, quiet)
}

fn of_documents(arguments: &Advise, paths: &[&PathBuf]) -> Result<Evidence, Failure> {
    let documents = paths.iter().map(|path| read(path));
    let documents = documents.collect::<Result<Vec<Results>, Failure>>()?;
    let Some(results) = merge(documents)? else {
        let text = "there is no results document";
        return Err(Failure::new(Code::Usage, text));
    };
    let report = match &arguments.report {
        Some(directory) => Some((directory.clone(), prepare_report_in(directory)?)),
        None => None,
    };
    Ok(Evidence {
        results,
        is_new: false,
        report,
    })
}

fn of_directory(arguments: &Advise, directory: &Path, quiet: bool) -> Result<Evidence, Failure> {
    let report = report_of(arguments);
    let name = canonical_directory(directory)?.display().to_string();
    let mut documents = kept(&report, &name);
    let is_of_it = |one: &Results| {
        one.first::<SyncResults>().is_some() && one.site.kind == SiteKind::Directory
    };
    let is_measured = documents.iter().any(is_of_it);
    let unless_written = prepare_report_in(&report)?;
    if !is_measured {
        documents.push(measured(directory, quiet)?);
    }
    let Some(results) = merge(documents)? else {
        let text = format!("nothing is known of {name}");
        return Err(Failure::new(Code::Failed, text));
    };
    Ok(Evidence {
        results,
        is_new: !is_measured,
        report: Some((report, unless_written)),
    })
}

/// The documents in the report's directory that are of this directory, or of proofs on this machine.
fn kept(report: &Path, directory: &str) -> Vec<Results> {
    let Ok(entries) = fs::read_dir(report) else {
        return Vec::new();
    };
    let host = landfall_os::Host::this();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let documents = paths
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        // Whatever else is kept there is none of our business.
        .filter_map(|path| read(&path).ok());
    documents
        .filter(|one| one.directory == directory || one.has_only_proofs())
        .filter(|one| is_same_machine(&one.host, &host))
        .collect()
}

/// The standard plan, with proofs where they can be had.
fn measured(directory: &Path, quiet: bool) -> Result<Results, Failure> {
    let stop = Stop::default();
    crate::terminal::stop_on_signals(&stop)?;
    let site = Site::make(&SiteSpec::Directory, directory, 0, &stop)?;
    let (plans, unproven) = plans(&site);
    if !quiet {
        remark(&format!(
            "nothing was measured in {} yet: running the standard plan, some minutes",
            site.directory().display()
        ));
        if let Some(why) = unproven {
            remark(&format!("it is not proven: {why}"));
        }
    }
    let mut display = Display::new(quiet, plans.iter().map(|plan| plan.trials()).sum(), false);
    measure(site, &plans, &command_line(), &stop, &mut display)
}

/// Finds out before anything is measured that a fragment has nowhere to go. What somebody else wrote is not
/// touched.
fn check_fragment(system: System, path: &Path) -> Result<(), Failure> {
    check_file(path)?;
    if matches!(system, System::Landfall | System::Mount) {
        let text = format!("{} is not set in a file of its own", system.name());
        return Err(Failure::new(Code::Usage, text));
    }
    let is_ours = |text: String| text.lines().next().is_some_and(|line| line.contains(HEAD));
    if path.is_file() && !fs::read_to_string(path).is_ok_and(is_ours) {
        let text = format!(
            "{} is there already and was not written by landfall; name another file, and include it",
            path.display()
        );
        return Err(Failure::new(Code::Usage, text));
    }
    Ok(())
}

fn write_fragment(advice: &Advice, system: System, path: &Path) -> Result<(), Failure> {
    let text = fragment(advice, system).unwrap_or_default();
    write_file(path, text.as_bytes())?;
    remark(&format!(
        "wrote {}; include it in the configuration of {}",
        quoted(&path.display().to_string()),
        system.name()
    ));
    Ok(())
}
