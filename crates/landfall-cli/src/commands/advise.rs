//! `landfall advise`: from what was measured and proven to settings.

use std::fs;
use std::path::{Path, PathBuf};

use landfall_lab::advice::check::{Check, check};
use landfall_lab::advice::fragment::{HEAD, fragment};
use landfall_lab::advice::{
    Advice, Scope, advise, heed_mount, is_same_machine, is_same_storage, merge, plans,
};
use landfall_lab::config_file::ConfigFile;
use landfall_lab::report::advice::Detail;
use landfall_lab::rules::System;
use landfall_lab::sync::SyncResults;
use landfall_lab::{Error, Results, Site, SiteKind, SiteSpec, Stop, canonical_directory, report};
use landfall_os::Filesystem;
use landfall_os::humanize::quoted;
use landfall_report::text::{self, plain};
use landfall_results::Notice;
use landfall_results::witness::Witnessed;

use crate::args::Advise;
use crate::commands::compare::read;
use crate::commands::documents::{
    check_files, command_line, is_stdout, prepare_directory, report_files, write_named,
    write_report,
};
use crate::commands::files::write_file;
use crate::commands::history::{self, REPORT};
use crate::commands::lab::{self, Display};
use crate::commands::witness::evidence as evidence_of;
use crate::commands::{ended, first_failure, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::{complain, remark, table};

pub fn run(arguments: &Advise, quiet: bool) -> Result<Code, Failure> {
    if arguments.list {
        return print_bytes(listing(arguments)?.as_bytes());
    }
    // Making the report's directory must not make this one.
    if let Some(directory) = directory(arguments)? {
        canonical_directory(&directory)?;
    }
    // From here on something may be left behind.
    let stop = Stop::default();
    crate::terminal::stop_on_signals(&stop)?;
    // The other files may be in it.
    let report = match reported(arguments)? {
        Some(directory) => Some((directory.clone(), prepare_directory(&directory)?)),
        None => None,
    };
    check_outputs(arguments)?;
    let json = arguments.json.as_deref();
    let here = Scope::here();
    let scope = if arguments.systems.is_empty() {
        here.clone()
    } else {
        Scope::named(&arguments.systems)
    };
    // Before minutes of measuring, not after them.
    let flushes = flushes(arguments)?;
    let configurations = configurations(arguments, &scope, &here)?;
    let Evidence {
        results,
        measured,
        kept,
    } = evidence(arguments, quiet, &stop)?;
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
    if let Some(flushes) = flushes {
        advice.heed(flushes);
    }
    advice.checks = configurations
        .iter()
        .map(|(system, path, configuration)| check(*system, path, configuration, &advice))
        .collect();
    let report = report.as_ref();
    let report = report.map(|(directory, _unless_written)| directory.as_path());
    let of_report = report.map(|directory| (directory, here.and(&arguments.systems)));
    let written = write(arguments, &results, &advice, &scope, of_report);
    let page = report.filter(|_| written.is_ok());
    let page = page.map(|directory| directory.join("index.html").display().to_string());
    let text = match json {
        Some(path) if path == Path::new("-") => document(&advice, &scope),
        _ => shown(arguments, &advice, &scope, page.as_deref()),
    };
    // Whatever became of the files, the advice is not lost.
    let printed = print_bytes(text.as_bytes());
    if only_checks(arguments) && results.is_empty() && advice.refused.is_none() && !quiet {
        remark(
            "nothing is measured or proven here: the risks are those of the documentation; 'landfall advise' finds out more",
        );
    }
    let risks = |check: &Check| !check.risks.is_empty();
    let code = match &advice.refused {
        _ if advice.checks.iter().any(risks) => Code::Lost,
        Some(_) => Code::Refused,
        None => measured,
    };
    ended(code, first_failure([printed.map(drop), kept, written]))
}

/// Writes what there is to be of the report, of configurations and of the document, each whatever became of the others.
fn write(
    arguments: &Advise,
    results: &Results,
    advice: &Advice,
    scope: &Scope,
    report: Option<(&Path, Scope)>,
) -> Result<(), Failure> {
    let reported = report.map_or(Ok(()), |(directory, scope)| {
        write_report(directory, results, advice, &scope)
    });
    let fragments = arguments.write.iter();
    let fragments = fragments.map(|(system, path)| write_fragment(advice, *system, path));
    let documented = write_named(&arguments.json, || document(advice, scope));
    first_failure([reported].into_iter().chain(fragments).chain([documented]))
}

/// What is known of the disk's flushes: by a witness, or that nobody can know without one. Of documents, which may be of
/// another machine's disk, nothing is said.
fn flushes(arguments: &Advise) -> Result<Option<Notice>, Failure> {
    let directory = directory(arguments)?;
    match (&arguments.witness, directory) {
        (Some(document), Some(directory)) => Ok(Some(evidence_of(document, &directory)?.notice())),
        (Some(_), None) => {
            let text = "a witness's verdict is held against the disk itself: name the directory, not documents";
            Err(Failure::new(Code::Usage, text))
        }
        (None, Some(_)) => Ok(Some(Witnessed::absent())),
        (None, None) => Ok(None),
    }
}

/// The files that were named, each for every server that it may be meant for: of those that were named, or are installed.
fn configurations<'a>(
    arguments: &'a Advise,
    scope: &Scope,
    here: &Scope,
) -> Result<Vec<(System, &'a Path, ConfigFile)>, Failure> {
    let mut all: Vec<(System, &Path, ConfigFile)> = Vec::new();
    for file in &arguments.check {
        let is_wanted = file.systems.iter().any(|system| scope.has(*system));
        let likely = if is_wanted { scope } else { here }.likely(&file.systems);
        for system in likely {
            require_files(system)?;
            let read = ConfigFile::read(system, &file.path)?;
            all.push((system, &file.path, read));
        }
    }
    Ok(all)
}

/// Whether a configuration is to be checked, and nothing else wanted that takes measuring.
fn only_checks(arguments: &Advise) -> bool {
    !arguments.check.is_empty()
        && arguments.workload.is_none()
        && arguments.write.is_empty()
        && !arguments.tables
}

/// The document; of systems that were named only their advice.
fn document(advice: &Advice, scope: &Scope) -> String {
    if !scope.is_named() {
        return advice.to_json();
    }
    let mut advice = advice.clone();
    advice.settings.retain(|setting| scope.has(setting.system));
    advice
        .missing
        .retain(|missing| scope.serves(missing.system));
    advice.to_json()
}

/// What a terminal shows: what was asked for by name, or all tables, or one screen.
fn shown(arguments: &Advise, advice: &Advice, scope: &Scope, page: Option<&str>) -> String {
    if arguments.tables {
        let details = scope.is_named();
        // What is not installed too, unless somebody named what is wanted.
        let scope = if details {
            scope.clone()
        } else {
            Scope::of(System::ALL)
        };
        let blocks = report::advice::tables(advice, &scope, details, arguments.missing);
        let page = page.map(|page| format!("\nReport: {}\n", plain(page)));
        return table::text(&blocks) + &page.unwrap_or_default();
    }
    if arguments.check.is_empty() && arguments.workload.is_none() {
        let of = |detail| report::advice::answer(advice, scope, page, detail);
        return if arguments.missing {
            table::screen(&of(Detail::ALL_COMMANDS))
        } else {
            table::one_screen(Detail::LEVELS.map(of))
        };
    }
    let workload = if arguments.workload.is_none() {
        String::new()
    } else {
        table::screen(&report::advice::workload(advice))
    };
    let checks = if arguments.check.is_empty() {
        Vec::new()
    } else {
        report::advice::check(advice)
    };
    workload + &text::lines(&checks)
}

/// Where the report goes, if there is to be one.
fn reported(arguments: &Advise) -> Result<Option<PathBuf>, Failure> {
    Ok(match directory(arguments)? {
        None => arguments.report.clone(),
        // What is checked may lie where its reader may not write.
        Some(_) if only_checks(arguments) => None,
        Some(_) => Some(report_of(arguments)),
    })
}

fn report_of(arguments: &Advise) -> PathBuf {
    arguments.report.clone().unwrap_or_else(|| REPORT.into())
}

/// What advice stands on.
struct Evidence {
    /// Everything that is known, as one document.
    results: Results,
    /// What came of measuring, if something was measured just now: how earlier runs ended is no matter.
    measured: Code,
    /// What keeping that came to.
    kept: Result<(), Failure>,
}

fn evidence(arguments: &Advise, quiet: bool, stop: &Stop) -> Result<Evidence, Failure> {
    match directory(arguments)? {
        Some(directory) => of_directory(arguments, &directory, quiet, stop),
        None => of_documents(arguments),
    }
}

/// The directory to advise on; `None` where documents are named instead.
fn directory(arguments: &Advise) -> Result<Option<PathBuf>, Failure> {
    let (documents, directories): (Vec<&PathBuf>, Vec<&PathBuf>) =
        arguments.path.iter().partition(|path| path.is_file());
    match (documents.as_slice(), directories.as_slice()) {
        (&[], &[]) => Ok(Some(PathBuf::from("."))),
        (&[], &[directory]) => Ok(Some(directory.clone())),
        (_, &[]) => Ok(None),
        _ => {
            let text = "name one directory, or results documents of one machine";
            Err(Failure::new(Code::Usage, text))
        }
    }
}

fn of_documents(arguments: &Advise) -> Result<Evidence, Failure> {
    let documents = arguments.path.iter().map(|path| read(path));
    let documents = documents.collect::<Result<Vec<Results>, Failure>>()?;
    let Some(results) = merge(documents)? else {
        let text = "there is no results document";
        return Err(Failure::new(Code::Usage, text));
    };
    Ok(Evidence {
        results,
        measured: Code::Measured,
        kept: Ok(()),
    })
}

fn of_directory(
    arguments: &Advise,
    directory: &Path,
    quiet: bool,
    stop: &Stop,
) -> Result<Evidence, Failure> {
    let report = report_of(arguments);
    let name = canonical_directory(directory)?.display().to_string();
    let now = filesystem_of(directory)?;
    let mut documents = kept(&report, &name, &now);
    let is_measured = documents.iter().any(is_of_writes);
    if only_checks(arguments) {
        if !is_measured {
            documents.push(Results::unmeasured(directory, &command_line())?);
        }
        return Ok(Evidence {
            results: merged(documents, &name, &now)?,
            measured: Code::Measured,
            kept: Ok(()),
        });
    }
    let (mut code, mut kept) = (Code::Measured, Ok(()));
    if !is_measured {
        let (measured, closed) = measured(directory, quiet, stop)?;
        measured
            .failures()
            .for_each(|notice| complain(&notice.text));
        kept = history::keep(&report, &measured).and(closed.map_err(Failure::from));
        code = lab::code(&measured);
        documents.push(measured);
    }
    Ok(Evidence {
        results: merged(documents, &name, &now)?,
        measured: code,
        kept,
    })
}

/// Whether durable writes were measured in a directory itself.
fn is_of_writes(one: &Results) -> bool {
    one.has_measured::<SyncResults>() && one.site.kind == SiteKind::Directory
}

/// What a directory stands on now.
fn filesystem_of(directory: &Path) -> Result<Filesystem, Failure> {
    let found = Filesystem::of(directory);
    found.map_err(|error| {
        let text = format!(
            "cannot find out what {} stands on: {error}",
            directory.display()
        );
        Failure::new(Code::Failed, text)
    })
}

fn merged(documents: Vec<Results>, name: &str, now: &Filesystem) -> Result<Results, Failure> {
    let mut results = merge(documents)?
        .ok_or_else(|| Failure::new(Code::Failed, format!("nothing is known of {name}")))?;
    heed_mount(&mut results, now);
    Ok(results)
}

/// The documents in the report's directory and in its history that are of this directory, on the filesystem that it is on
/// now, or of proofs on this machine.
fn kept(report: &Path, directory: &str, now: &Filesystem) -> Vec<Results> {
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
    let documents = history::evidence(report).into_iter().chain(documents);
    documents
        .filter(|one| one.directory == directory || one.has_only_proofs())
        // Something else may be mounted there since.
        .filter(|one| {
            one.has_only_proofs()
                || one.site.kind != SiteKind::Directory
                || is_same_storage(&one.filesystem, now)
        })
        .filter(|one| is_same_machine(&one.host, &host))
        .collect()
}

/// The standard plan, with proofs where they can be had; and what cleaning up came to.
fn measured(
    directory: &Path,
    quiet: bool,
    stop: &Stop,
) -> Result<(Results, Result<(), Error>), Failure> {
    let site = Site::make(&SiteSpec::Directory, directory, 0, stop)?;
    let plans = plans(&site);
    if !quiet {
        remark(&plans.sentence(&site));
    }
    let trials = plans.plans.iter().map(|plan| plan.trials()).sum();
    let mut display = Display::new(quiet, trials, false);
    lab::measured(site, &plans.plans, &command_line(), stop, &mut display)
}

/// What would be measured and proven, and how long that takes.
fn listing(arguments: &Advise) -> Result<String, Failure> {
    let Some(directory) = directory(arguments)? else {
        return Ok("Nothing: advice goes by the documents that are named.\n".to_owned());
    };
    let name = canonical_directory(&directory)?.display().to_string();
    let now = filesystem_of(&directory)?;
    let documents = kept(&report_of(arguments), &name, &now);
    if documents.iter().any(is_of_writes) {
        let report = report_of(arguments).display().to_string();
        return Ok(format!(
            "Nothing: {report} has what was measured in {name}.\n"
        ));
    }
    let site = Site::make(&SiteSpec::Directory, &directory, 0, &Stop::default())?;
    let plans = plans(&site);
    let sentence = plans.sentence(&site);
    site.close()?;
    let listings = plans.plans.iter().map(|plan| plan.listing());
    let listings: Vec<String> = listings.collect();
    Ok(format!("{sentence}\n\n{}", listings.join("\n")))
}

/// Refuses a file of what is set in code, or on mounting.
fn require_files(system: System) -> Result<(), Failure> {
    if system.has_files() {
        return Ok(());
    }
    let (name, key) = (system.name(), system.key());
    let text = format!(
        "{name}: this is not set in a file of its own; 'landfall advise --for {key}' says what to set"
    );
    Err(Failure::new(Code::Usage, text))
}

/// Finds out before anything is measured that a file has nowhere to go, or would replace what is read, and that something is asked for
/// which is not printed.
fn check_outputs(arguments: &Advise) -> Result<(), Failure> {
    let is_answer = !arguments.check.is_empty() || arguments.workload.is_some();
    let unprinted = if arguments.missing && is_answer && !arguments.tables {
        "--missing is printed with the advice, or with --tables: leave out --check and --workload, or add --tables"
    } else if is_stdout(&arguments.json) && (arguments.tables || arguments.missing) {
        "only one of --json -, --tables and --missing can have standard output"
    } else {
        ""
    };
    if !unprinted.is_empty() {
        return Err(Failure::new(Code::Usage, unprinted));
    }
    let documents = arguments.path.iter().filter(|path| path.is_file());
    let documents = documents.map(|path| ("a document that is read", path.clone()));
    let checked = arguments.check.iter();
    let checked = checked.map(|file| ("--check", file.path.clone()));
    let witness = arguments.witness.iter();
    let witness = witness.map(|path| ("--witness", path.clone()));
    let read = documents.chain(checked).chain(witness);
    let taken: Vec<_> = read.chain(report_files(&report_of(arguments))).collect();
    let fragments = arguments.write.iter();
    let fragments = fragments.map(|(_, path)| ("--write", Some(path.as_path())));
    check_files(
        &taken,
        fragments.chain([("--json", arguments.json.as_deref())]),
    )?;
    let mut fragments = arguments.write.iter();
    fragments.try_for_each(|(system, path)| check_fragment(*system, path))
}

/// Whether a fragment can be written there. What somebody else wrote is not touched.
fn check_fragment(system: System, path: &Path) -> Result<(), Failure> {
    require_files(system)?;
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
