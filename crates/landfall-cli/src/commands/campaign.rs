//! `landfall campaign`: proofs and measurements on many machines.

mod plan;
mod report;
mod show;

use std::path::Path;

use landfall_campaign::{
    Campaign, Error, Location, Outcome, Plan, ResultStore, ShardDocument, ShardRun, fetch,
    send_unsent,
};
use landfall_lab::Stop;
use landfall_report::text::{self, plain};
use landfall_results::proof::{Outcome as ProofOutcome, ProofResults, summary_text};

use crate::args::{CampaignCommand, CampaignFetch, CampaignMerge, CampaignRun};
use crate::commands::documents::{is_stdout, write_named};
use crate::commands::files::{check_file, parent};
use crate::commands::{ended, first_failure, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::{complain, remark, stop_on_signals};

pub fn run(campaign: crate::args::Campaign, quiet: bool) -> Result<Code, Failure> {
    match campaign.command {
        CampaignCommand::Plan(arguments) => plan::run(&arguments, quiet),
        CampaignCommand::Emit(arguments) => plan::emit_again(&arguments),
        CampaignCommand::Run(arguments) => run_shard(&arguments, quiet),
        CampaignCommand::Merge(arguments) => merge(&arguments),
        CampaignCommand::Report(arguments) => report::run(&arguments),
        CampaignCommand::Fetch(arguments) => fetch_recording(&arguments),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Usage(_) => Code::Usage,
            Error::Stopped => Code::Stopped,
            Error::Unsent { source, .. } if matches!(**source, Error::Stopped) => Code::Stopped,
            Error::Document(_) | Error::Store { .. } | Error::Io { .. } | Error::Unsent { .. } => {
                Code::Failed
            }
        };
        Failure::new(code, error.to_string())
    }
}

/// The program that is running: what a shard does is done by the same.
fn this_program() -> Result<std::path::PathBuf, Failure> {
    std::env::current_exe().map_err(|error| {
        Failure::new(
            Code::Failed,
            format!("cannot tell where this program is: {error}"),
        )
    })
}

fn run_shard(arguments: &CampaignRun, quiet: bool) -> Result<Code, Failure> {
    let CampaignRun {
        campaign,
        shard,
        again,
        work,
    } = arguments;
    let stop = Stop::default();
    stop_on_signals(&stop)?;
    let store = ResultStore::open(&campaign.place)?.stopped_by(&stop);
    let plan = store.plan(&campaign.campaign)?;
    plan.check(*shard)?;
    let mut say = |what: &str| {
        if !quiet {
            remark(what);
        }
    };
    send_unsent(&store, &campaign.campaign, *shard, &work.work, &mut say)?;
    let done = store.shard(&campaign.campaign, *shard)?;
    let whole = done.into_iter().filter(|document| document.is_whole(&plan));
    // Of those that were run again, the one that lost most: no other takes that back.
    if let Some(document) = whole.max_by_key(failing_states)
        && !again
    {
        say(&format!(
            "shard {shard} has been run, on {} at {}; --again runs it once more",
            plain(&document.machine),
            plain(&document.started)
        ));
        return report_shard(&plan, &document);
    }
    let document = ShardRun {
        store: &store,
        plan: &plan,
        shard: *shard,
        program: &this_program()?,
        work: &work.work,
        stop: &stop,
    }
    .run(&mut say)?;
    report_shard(&plan, &document)
}

/// States in which something was lost.
fn failing_states(document: &ShardDocument) -> u64 {
    let results = document
        .outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            Outcome::Done { results, .. } => Some(results),
            Outcome::Failed { .. } => None,
        });
    let proofs = results.flat_map(|results| results.proofs());
    let failing = proofs.map(|proof| proof.failing_states);
    failing.fold(0, u64::saturating_add)
}

/// Prints what a shard came to, a line for each task. What was lost is said by the exit code once all was done: who starts
/// shards takes that for the end, and starts one again that failed.
fn report_shard(plan: &Plan, document: &ShardDocument) -> Result<Code, Failure> {
    let (mut code, mut printed) = (Code::Measured, Ok(()));
    for (task, outcome) in plan.tasks.iter().zip(&document.outcomes) {
        let said = match outcome {
            Outcome::Done { results, .. } => {
                let proofs: Vec<&ProofResults> = results.proofs().collect();
                let mut outcomes = proofs.iter().map(|proof| proof.outcome());
                if outcomes.any(|outcome| outcome == ProofOutcome::LostSomething) {
                    code = Code::Lost;
                }
                match proofs.as_slice() {
                    [] => "measured".to_owned(),
                    proofs => proofs
                        .iter()
                        .map(|proof| summary_text::verdict(proof))
                        .collect::<Vec<_>>()
                        .join("; "),
                }
            }
            Outcome::Failed { why, .. } => {
                complain(&format!("{}: {}", task.command, plain(why)));
                continue;
            }
        };
        let said = plain(&said);
        let line = format!("{}: {said}\n", task.command);
        printed = printed.and_then(|()| print_bytes(line.as_bytes()).map(drop));
    }
    let code = if document.is_whole(plan) {
        code
    } else {
        Code::Failed
    };
    ended(code, printed)
}

/// What a proof's outcome is as an exit code.
fn code_of(outcome: ProofOutcome) -> Code {
    match outcome {
        ProofOutcome::LostSomething => Code::Lost,
        ProofOutcome::NotProven => Code::Failed,
        ProofOutcome::LostNothing => Code::Measured,
    }
}

/// A loss is said rather than a failure.
fn worse(one: Code, other: Code) -> Code {
    if one == Code::Lost || other == Code::Measured {
        one
    } else {
        other
    }
}

/// A campaign's plan, and what it came to so far.
fn merged(location: &Location) -> Result<(Plan, Campaign), Failure> {
    let store = ResultStore::open(&location.place)?;
    let plan = store.plan(&location.campaign)?;
    let found = store.shards(&location.campaign)?;
    let campaign = Campaign {
        unreadable: found.unreadable,
        ..Campaign::merge(&plan, &found.documents)?
    };
    Ok((plan, campaign))
}

/// Whether a file lies outside of what a campaign has in a directory: its plan and its results are read again.
fn check_outside(location: &Location, path: &Path) -> Result<(), Failure> {
    let kept = Path::new(&location.place).join(location.campaign.to_string());
    let directory = parent(path).canonicalize();
    match (kept.canonicalize(), directory) {
        (Ok(kept), Ok(directory)) if directory.starts_with(&kept) => {
            let text = format!(
                "{} lies in the campaign itself; name a file elsewhere",
                path.display()
            );
            Err(Failure::new(Code::Usage, text))
        }
        _ => Ok(()),
    }
}

fn merge(arguments: &CampaignMerge) -> Result<Code, Failure> {
    if let Some(path) = arguments
        .json
        .as_deref()
        .filter(|path| *path != Path::new("-"))
    {
        check_file(path)?;
        check_outside(&arguments.campaign, path)?;
    }
    let location = &arguments.campaign;
    let (plan, merged) = merged(location)?;
    let text = if is_stdout(&arguments.json) {
        merged.to_json()
    } else {
        text::text(&show::blocks(&plan, &merged, location))
    };
    let printed = print_bytes(text.as_bytes()).map(drop);
    // Whatever became of that.
    let written = write_named(&arguments.json, || merged.to_json());
    let is_whole = if merged.is_whole() {
        Code::Measured
    } else {
        Code::Failed
    };
    let code = worse(code_of(merged.outcome()), is_whole);
    ended(code, first_failure([printed, written]))
}

fn fetch_recording(arguments: &CampaignFetch) -> Result<Code, Failure> {
    let location = &arguments.campaign;
    let store = ResultStore::open(&location.place)?;
    let path = fetch(
        &store,
        &location.campaign,
        arguments.recording,
        &arguments.work.work,
    )?;
    print_bytes(format!("{}\n", path.display()).as_bytes())
}
