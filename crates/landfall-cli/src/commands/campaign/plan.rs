//! `landfall campaign plan`: what is to be run becomes a plan that never changes, and what its shards share is recorded.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::Parser;
use landfall_campaign::emit::{Job, Scheduler, emit};
use landfall_campaign::{
    Digest, Ended, Location, Plan, PlanFile, RecordingOf, ResultStore, Run, Share, Task,
    own_directory, run_program,
};
use landfall_lab::{Results, Stop};
use landfall_os::PrivateDirectory;
use landfall_os::humanize::quoted;
use landfall_results::proof::{ProofResults, summary_text};

use crate::args::words::{OF_MAKING, OF_TRYING, without};
use crate::args::{Arguments, CampaignEmit, CampaignPlan, Documents, LabRequest, Prove};
use crate::commands::print_bytes;
use crate::exit::{Code, Failure};
use crate::terminal::{remark, stop_on_signals};

/// What every shard is given besides.
const OF_RUNNING: [&str; 4] = ["--quiet", "-q", "--no-report", "--report"];
pub fn run(arguments: &CampaignPlan, quiet: bool) -> Result<Code, Failure> {
    let path = &arguments.file;
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Code::Usage,
            format!("cannot read {}: {error}", path.display()),
        )
    })?;
    let in_file =
        |error: Failure| Failure::new(error.code, format!("{}: {}", path.display(), error.text));
    let file = PlanFile::parse(&text).map_err(|error| in_file(error.into()))?;
    // All that is wrong with the file is said before anything is recorded.
    let commands: Vec<Planned> = file
        .runs
        .iter()
        .map(planned)
        .collect::<Result<_, _>>()
        .map_err(in_file)?;
    let place = place(&file.results)?;
    let stop = Stop::default();
    stop_on_signals(&stop)?;
    let store = ResultStore::open(&place)?.stopped_by(&stop);
    store.try_to_plan()?;
    let mut recordings = Vec::new();
    let mut tasks = Vec::new();
    for (run, planned) in file.runs.iter().zip(commands) {
        let share = match (planned, run.recording) {
            (Planned::Measurement, _) => Share::Machines,
            (Planned::Proof { seed }, RecordingOf::Own) => Share::Recordings { seed },
            (Planned::Proof { .. }, RecordingOf::Shared) => {
                if !quiet {
                    remark(&format!("recording {}", shown(&run.words)));
                }
                let bytes = record(&run.words, &arguments.work.work, &stop)?;
                let recording = Digest::of(&bytes);
                recordings.push((recording, bytes));
                Share::States { recording }
            }
        };
        tasks.push(Task {
            command: shown(&run.words),
            words: words_of_shards(&run.words, &share),
            share,
        });
    }
    let plan = Plan::new(file.name, file.shards, tasks);
    for (digest, bytes) in recordings {
        store.put_recording(&plan.id(), digest, bytes)?;
    }
    store.put_plan(&plan)?;
    let location = Location {
        place,
        campaign: plan.id(),
    };
    let text = text_of(&plan, &location);
    let Some(scheduler) = arguments.emit else {
        return print_bytes(text.as_bytes());
    };
    // The file alone is what a shell puts where it is to be.
    if !quiet {
        remark(text.trim_end());
    }
    print_bytes(job_file(&plan, location, scheduler).as_bytes())
}

/// The job file of a campaign that was planned before.
pub fn emit_again(arguments: &CampaignEmit) -> Result<Code, Failure> {
    let Location {
        place: named,
        campaign,
    } = arguments.campaign.clone();
    let plan = ResultStore::open(&named)?.plan(&campaign)?;
    let location = Location {
        place: place(&named)?,
        campaign,
    };
    print_bytes(job_file(&plan, location, arguments.scheduler).as_bytes())
}

fn job_file(plan: &Plan, location: Location, scheduler: Scheduler) -> String {
    let job = Job {
        name: plan.name.clone(),
        shards: plan.shards,
        results: location.place,
        campaign: plan.id().to_string(),
        program: "landfall".to_owned(),
    };
    emit(scheduler, &job)
}

/// A command as it was understood.
enum Planned {
    Proof { seed: u64 },
    Measurement,
}

/// Understands a command as the program itself would, and refuses what a shard cannot do.
fn planned(run: &Run) -> Result<Planned, Failure> {
    let command = shown(&run.words);
    let wrong = |why: &str| Failure::new(Code::Usage, format!("command = '{command}': {why}"));
    let words = std::iter::once("landfall".to_owned()).chain(run.words.iter().cloned());
    let arguments = Arguments::try_parse_from(words).map_err(|error| {
        let said = error.to_string();
        let first = said.lines().next().unwrap_or_default();
        wrong(first.trim_start_matches("error: "))
    })?;
    match arguments.command {
        crate::args::Command::Prove(prove) => {
            let seed = prove.states.seed;
            proof(*prove, run.recording).map_err(wrong)?;
            Ok(Planned::Proof { seed })
        }
        crate::args::Command::Lab(lab) => {
            let request = LabRequest::try_from(*lab)?;
            if request.list {
                return Err(wrong("--list measures nothing"));
            }
            let output = &request.output;
            if output.csv.is_some() || output.tsv || writes(&output.documents) {
                return Err(wrong(
                    "results go where the campaign's go: leave out --json, --markdown, --csv and --tsv",
                ));
            }
            Ok(Planned::Measurement)
        }
        _ => Err(wrong(
            "only landfall prove and landfall lab can be run by a campaign",
        )),
    }
}

fn writes(documents: &Documents) -> bool {
    documents.json.is_some() || documents.markdown.is_some()
}

fn proof(prove: Prove, recording: RecordingOf) -> Result<(), &'static str> {
    let Prove {
        list,
        self_test,
        catalogue,
        workload,
        states,
        documents,
        ..
    } = prove;
    if list || self_test || catalogue {
        Err("name what is to be proven")
    } else if workload.keep_recording.is_some() || workload.recording.is_some() {
        Err("the campaign keeps the recording: leave out --recording and --keep-recording")
    } else if states.only.is_some() || states.shard.is_some() || states.keep_image.is_some() {
        Err("shards try all states: leave out --state, --shard and --keep-image")
    } else if recording == RecordingOf::Shared && workload.nodes.is_some() {
        Err("the states of a cluster are not dealt out: say recording = \"own\"")
    } else if writes(&documents) {
        Err("results go where the campaign's go: leave out --json and --markdown")
    } else if recording == RecordingOf::Shared && states.minutes.is_some() {
        Err(
            "shards of one recording try the same states at any speed: leave out --minutes, or say recording = \"own\"",
        )
    } else {
        Ok(())
    }
}

/// The words that all shards have in common.
fn words_of_shards(words: &[String], share: &Share) -> Vec<String> {
    let dropped: Vec<&str> = match share {
        Share::States { .. } => OF_RUNNING.into_iter().chain(OF_MAKING).collect(),
        Share::Recordings { .. } => OF_RUNNING.into_iter().chain(["--seed"]).collect(),
        Share::Machines => OF_RUNNING.to_vec(),
    };
    without(words, &dropped)
}

fn shown(words: &[String]) -> String {
    let words = words.iter().map(|word| quoted(word));
    std::iter::once("landfall".into())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Where results go, as any machine that shares it calls it.
fn place(results: &str) -> Result<String, Failure> {
    if results.contains("://") {
        return Ok(results.trim_end_matches('/').to_owned());
    }
    let cannot = |error| {
        Failure::new(
            Code::Usage,
            format!("cannot make directory {results}: {error}"),
        )
    };
    fs::create_dir_all(results).map_err(cannot)?;
    let path = fs::canonicalize(results).map_err(cannot)?;
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::new(
            Code::Usage,
            format!(
                "{} is not a name in UTF-8; choose another directory",
                path.display()
            ),
        )
    })
}

/// Runs the workload that all shards cut the power in; returns its recording.
fn record(words: &[String], work: &Path, stop: &Stop) -> Result<Vec<u8>, Failure> {
    let cannot = |what: &str, error: std::io::Error| {
        Failure::new(
            Code::Failed,
            format!("cannot {what} {}: {error}", work.display()),
        )
    };
    own_directory(work)?;
    let own =
        PrivateDirectory::create_in(work).map_err(|error| cannot("make a directory in", error))?;
    let (recording, results) = (
        own.path().join("recording"),
        own.path().join("results.json"),
    );
    let command = shown(words);
    let dropped: Vec<&str> = OF_RUNNING.into_iter().chain(OF_TRYING).collect();
    let mut words = without(words, &dropped);
    // One state shows that the filesystem can be mounted again: better here than in every shard.
    words.extend(["--states", "1", "--no-report", "--quiet"].map(str::to_owned));
    // As a word of its own a path that begins with a hyphen would be an option.
    words.push(format!("--keep-recording={}", recording.display()));
    words.push(format!("--json={}", results.display()));
    let Ended { code, complaint } = run_program(&super::this_program()?, &words, stop)?;
    let results = fs::read_to_string(&results).ok();
    let results = results.and_then(|text| Results::from_json(&text).ok());
    let proof = results.as_ref().and_then(|results| results.proofs().next());
    // What one state came to does not matter yet. Without results it could not be tried, and of a workload that acknowledged
    // nothing no shard would prove anything.
    let complaint = match proof {
        Some(proof) if code == Some(1) && proof.workload.acknowledged == 0 => nothing_of(proof),
        Some(_) if matches!(code, Some(0 | 1 | 3)) => {
            return fs::read(&recording).map_err(|error| cannot("read the recording in", error));
        }
        _ => complaint,
    };
    let code = if code == Some(Code::Usage as i32) {
        Code::Usage
    } else {
        Code::Failed
    };
    Err(Failure::new(
        code,
        format!("nothing was planned: {command} could not be recorded: {complaint}"),
    ))
}

/// Why there is nothing to prove.
fn nothing_of(proof: &ProofResults) -> String {
    let why = summary_text::why_not_proven(proof);
    match &proof.workload.ended {
        Some(ended) => format!("{why}: {ended}"),
        None => why,
    }
}

fn text_of(plan: &Plan, location: &Location) -> String {
    let mut text = format!(
        "Campaign {} ({}): results go to {}.\n\n",
        plan.id(),
        plan.name,
        location.place
    );
    for task in &plan.tasks {
        let how = match &task.share {
            Share::States { recording } => {
                format!(
                    "each shard tries its part of the states of one recording, {:.12}…",
                    recording.to_string()
                )
            }
            Share::Recordings { seed } => {
                format!("each shard makes a recording of its own, with seeds from {seed}")
            }
            Share::Machines => "each shard measures its machine".to_owned(),
        };
        let _ = writeln!(text, "  {}\n    {how}", task.command);
    }
    let place = quoted(&location.to_string());
    let shards = plan.shards;
    let _ = write!(
        text,
        "\nRun each shard, 1 to {shards}, on any machine, in any order, as often as it takes:\n\n    landfall campaign run {place} --shard 1/{shards}\n\nThen see what they came to:\n\n    landfall campaign merge {place}\n"
    );
    text
}
