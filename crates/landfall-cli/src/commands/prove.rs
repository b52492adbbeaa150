//! `landfall prove`: cuts the power, and says what was lost.

mod catalogue;
mod in_uml;

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use landfall_lab::Results;
use landfall_lab::prove::{prove, prove_cluster, self_test};
use landfall_os::humanize::quoted;
use landfall_prove::cluster::{self, ClusterPlan};
use landfall_prove::subjects::Description;
use landfall_prove::{Offer, Plan, Progress, Stop, subjects};

use landfall_results::proof::{Outcome, ProofResults};

use crate::args::words::{OF_MAKING, OF_TRYING, without};
use crate::args::{Prove, StateName, States, Workload};
use crate::commands::documents::{command_line, prepare_report};
use crate::commands::files::check_plain_file;
use crate::commands::{ended, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::Bar;

pub fn run(prove_arguments: Prove, quiet: bool) -> Result<Code, Failure> {
    proven(prove_arguments, quiet).map_err(|failure| match failure.code {
        // Whatever kept it from being proven: it is not proven.
        Code::Refused => Failure::new(Code::Failed, failure.text),
        _ => failure,
    })
}

fn proven(prove_arguments: Prove, quiet: bool) -> Result<Code, Failure> {
    let Prove {
        subject,
        list,
        self_test: tests_itself,
        catalogue: lists_faults,
        seeds,
        in_uml: asks_for_uml,
        workload,
        states,
        documents,
    } = prove_arguments;
    if list {
        return print_bytes(listing().as_bytes());
    }
    let kept = [
        ("--keep-recording", workload.keep_recording.clone()),
        ("--keep-image", states.keep_image.clone()),
    ];
    let recording = workload.recording.clone();
    let directory = workload.directory.as_deref();
    let directory = directory
        .map(landfall_lab::canonical_directory)
        .transpose()?;
    // What is wrong with the command line is said before anything is started.
    let plan = match (tests_itself || lists_faults, workload.nodes) {
        (true, _) => Planned::SelfTest,
        (false, Some(nodes)) => {
            let plan = plan_cluster(
                subject.as_deref(),
                nodes,
                workload,
                states,
                directory.as_deref(),
            )?;
            Planned::OfCluster(plan)
        }
        (false, None) => Planned::OfDisk(plan(
            subject.as_deref(),
            workload,
            states,
            directory.as_deref(),
        )?),
    };
    // From here on something may be left behind.
    let stop = Stop::default();
    crate::terminal::stop_on_signals(&stop)?;
    // The other files may be in it.
    let prepared = (!lists_faults).then(|| prepare_report(&documents));
    let _unless_written = prepared.transpose()?;
    let recording = recording.as_deref().map(|path| ("--recording", path));
    let kept = kept
        .each_ref()
        .map(|(option, path)| (*option, path.as_deref()));
    documents.check(recording, &kept)?;
    for path in kept.into_iter().filter_map(|(_, path)| path) {
        check_plain_file(path)?;
    }
    let place = directory.clone().unwrap_or_else(std::env::temp_dir);
    let offer = match &plan {
        Planned::OfDisk(plan) => plan.offer,
        _ => Offer::default(),
    };
    let is_cluster = matches!(plan, Planned::OfCluster(_));
    if !is_cluster && in_uml::is_needed(asks_for_uml, subject.as_deref(), &place, offer, quiet)? {
        return in_uml::run(&stop);
    }
    if lists_faults {
        return catalogue::run(
            subject.as_deref(),
            seeds,
            directory.as_deref(),
            quiet,
            &stop,
        );
    }
    let most = match &plan {
        Planned::OfDisk(plan) => plan.states,
        Planned::OfCluster(plan) => plan.states,
        Planned::SelfTest => Plan::STATES,
    };
    let mut display = Display(Bar::new(quiet, most));
    let command = command_line();
    let proven = match &plan {
        Planned::OfDisk(plan) => prove(plan, &command, &stop, &mut display),
        Planned::OfCluster(plan) => prove_cluster(plan, &command, &stop, &mut display),
        Planned::SelfTest => self_test(directory.as_deref(), &command, &stop, &mut display),
    };
    display.0.finish();
    let results = proven.map_err(|error| {
        let mut failure = Failure::from(error);
        if failure.code == Code::Refused && !is_cluster {
            failure.text += &in_uml::hint(&place, offer);
        }
        failure
    })?;
    let written = documents.write(&results);
    // Whatever became of the files, the results are not lost.
    let printed = documents.print(&results, true, &written);
    ended(code(&results, tests_itself), printed.and(written.outcome))
}

/// What is to be proven.
enum Planned {
    OfDisk(Plan),
    OfCluster(ClusterPlan),
    SelfTest,
}

/// What the command line asks to be proven of a cluster.
fn plan_cluster(
    subject: Option<&str>,
    nodes: usize,
    workload: Workload,
    states: States,
    directory: Option<&Path>,
) -> Result<ClusterPlan, Failure> {
    let name = subject.unwrap_or("command");
    let settings = settings(&workload);
    let subject = cluster::named(name, &settings, nodes)?;
    let mut plan = ClusterPlan::new(subject, nodes, workload.filesystem);
    if let Some(directory) = directory {
        plan.directory = directory.to_owned();
    }
    plan.again = again_here();
    plan.transactions = workload.transactions.unwrap_or(ClusterPlan::TRANSACTIONS);
    plan.keep_recording = workload.keep_recording;
    plan.recorded = workload.recording;
    plan.cuts = states.cuts;
    plan.replicas = states.replicas as usize;
    plan.states = states.states as usize;
    plan.most_time = states.minutes;
    plan.model = states.model;
    plan.seed = states.seed;
    plan.workers = states.workers.map(|workers| workers as usize);
    plan.check_all = states.check_all;
    plan.only = match states.only {
        None => None,
        Some(StateName::OfCluster(name)) => Some(name),
        Some(StateName::OfDisk(name)) => {
            let text = format!("{name} is a state of one disk, and --nodes asks for a cluster's");
            return Err(Failure::new(Code::Usage, text));
        }
    };
    Ok(plan)
}

fn again_here() -> String {
    again(
        std::env::args_os()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned()),
    )
}

/// What the command line asks to be proven.
fn plan(
    subject: Option<&str>,
    workload: Workload,
    states: States,
    directory: Option<&Path>,
) -> Result<Plan, Failure> {
    let name = subject.unwrap_or("command");
    let settings = settings(&workload);
    let mut plan = Plan::named(name, &settings, workload.filesystem)?;
    if let Some(directory) = directory {
        plan.directory = directory.to_owned();
    }
    plan.again = again_here();
    plan.transactions = workload.transactions.unwrap_or(Plan::TRANSACTIONS);
    plan.creation = workload.creation;
    if workload.fua {
        plan.offer = Offer::ForceUnitAccess;
    }
    plan.writeback = workload.writeback;
    plan.faults = workload.faults;
    plan.keep_recording = workload.keep_recording;
    plan.recorded = workload.recording;
    plan.states = states.states as usize;
    plan.most_time = states.minutes;
    plan.model = states.model;
    plan.order = states.order;
    plan.atomic = states.atomic;
    plan.seed = states.seed;
    plan.workers = states.workers.map(|workers| workers as usize);
    plan.check_all = states.check_all;
    plan.second_cuts = states.second_cuts as usize;
    plan.shard = states.shard;
    plan.only = match states.only {
        None => None,
        Some(StateName::OfDisk(name)) => Some(name),
        Some(StateName::OfCluster(name)) => {
            let text =
                format!("{name} is a state of a cluster: say of how many nodes with --nodes");
            return Err(Failure::new(Code::Usage, text));
        }
    };
    plan.keep_image = states.keep_image;
    Ok(plan)
}

/// The command line without what says which states are tried, what is kept, and where results go; with
/// the recording instead of its making, if it was kept.
pub fn again(words: impl Iterator<Item = String>) -> String {
    const OF_KEEPING: [&str; 9] = [
        "--state",
        "--shard",
        "--keep-image",
        "--json",
        "--markdown",
        "--report",
        "--no-report",
        "--quiet",
        "-q",
    ];
    let words: Vec<String> = words.collect();
    let is_kept = |word: &String| word.split('=').next() == Some("--keep-recording");
    let of_making: &[&str] = if words.iter().any(is_kept) {
        &OF_MAKING
    } else {
        &[]
    };
    let dropped: Vec<&str> = OF_TRYING
        .iter()
        .chain(&OF_KEEPING)
        .chain(of_making)
        .copied()
        .collect();
    let words = without(&words, &dropped).into_iter();
    let again = words.map(|word| match word.strip_prefix("--keep-recording") {
        Some(rest) => quoted(&format!("--recording{rest}")),
        None => quoted(&word),
    });
    std::iter::once("landfall".to_owned())
        .chain(again)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The command's programs are settings of subject 'command'.
fn settings(workload: &Workload) -> Vec<(String, String)> {
    let mut settings = workload.settings.clone();
    for (key, value) in [("cmd", &workload.command), ("check", &workload.check)] {
        settings.extend(value.clone().map(|value| (key.to_owned(), value)));
    }
    settings
}

fn code(results: &Results, tests_itself: bool) -> Code {
    if tests_itself {
        let as_expected = |proof: &ProofResults| proof.is_as_expected() != Some(false);
        return if results.proofs().all(as_expected) {
            Code::Measured
        } else {
            Code::Failed
        };
    }
    let outcomes: Vec<Outcome> = results.proofs().map(|proof| proof.outcome()).collect();
    if outcomes.contains(&Outcome::LostSomething) {
        Code::Lost
    } else if outcomes.contains(&Outcome::NotProven) {
        Code::Failed
    } else {
        Code::Measured
    }
}

fn listing() -> String {
    let mut text = String::new();
    for entry in subjects::list() {
        list(&mut text, entry, "");
    }
    for entry in cluster::list() {
        list(&mut text, entry, " --nodes N");
    }
    text
}

/// Adds a subject with its settings; `options` are those that it needs.
fn list(text: &mut String, entry: &Description, options: &str) {
    let _ = writeln!(text, "{}{options}  {}", entry.name, entry.about);
    for setting in entry.settings {
        let _ = writeln!(
            text,
            "    {}={}  {}",
            setting.name,
            setting.default.unwrap_or("…"),
            setting.about
        );
    }
    if let Some(passed_on) = entry.passes_on {
        let _ = writeln!(text, "    any other  {}", passed_on.what);
    }
}

/// The progress bar.
struct Display(Bar);

impl Progress for Display {
    fn doing(&mut self, what: &str, done: usize, total: usize, left: Duration) {
        self.0.show(what, done, total, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        again(line.split(' ').map(str::to_owned))
    }

    #[test]
    fn only_what_makes_the_state_is_typed_again() {
        assert_eq!(
            shown(
                "prove files --fs=ext4,barrier=0 --states 9 --state 1:2:none --writeback --seed 4 --no-report"
            ),
            "landfall prove files --fs=ext4,barrier=0 --writeback --seed 4"
        );
        assert_eq!(
            shown(
                "prove files --set method=none --transactions 9 --writeback --keep-recording r --keep-image i"
            ),
            "landfall prove files --set method=none --recording r"
        );
        assert_eq!(
            shown("prove files --keep-recording=r --fault=lying-flush --json=-"),
            "landfall prove files --recording=r"
        );
    }
}
