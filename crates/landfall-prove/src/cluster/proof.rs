//! A whole proof of a cluster: record, plan the states, check them, shorten what failed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use landfall_os::{Filesystem, isolate_network};
use landfall_recorder::SiteRecording;
use landfall_recorder::crash::Model;
use landfall_results::proof::{ClusterCuts, Coverage, ProofResults, Violation, Workload};
use serde::{Deserialize, Serialize};

use super::record::{RecordedSite, record};
use super::replicas::held_records;
use super::shorten::shorten;
use super::survey::{Planned, Survey, Wanted, survey};
use super::timeline::failing;
use super::worker::{Case, Worker};
use super::{Boot, ClusterStateName, ClusterSubject, Cuts, Found};
use crate::checks::Checks;
use crate::explore::{Tally, spread};
use crate::history::History;
use crate::judge::Judgement;
use crate::proof::{Proof, tell, workers_on};
use crate::scratch_fs::FilesystemSpec;
use crate::worker::Checked;
use crate::{Error, Plan, Progress, Stop};

/// Bytes of each node's recording, and of each disk's contents, that are kept in memory.
const MEMORY: u64 = 256 << 20;
/// Workers for each processor, if nothing else is said: nodes mostly wait for each other.
const WORKERS: usize = 2;
/// How often the one state that was asked for is started until it fails.
const TRIES: usize = 5;
/// States that a worker takes at a time: neighbours share most of the way to their epochs.
const HANDFUL: usize = 4;

/// What is proven of a cluster, and how.
pub struct ClusterPlan {
    /// The cluster.
    pub subject: Box<dyn ClusterSubject>,
    /// How many nodes it has.
    pub nodes: usize,
    /// The filesystem of each node.
    pub filesystem: FilesystemSpec,
    /// Directory for mount points, and for what does not fit into memory.
    pub directory: PathBuf,
    /// Transactions that the cluster is sent.
    pub transactions: u64,
    /// Which nodes lose power.
    pub cuts: Cuts,
    /// What a disk keeps of what was not flushed: anything, or nothing.
    pub model: Model,
    /// States tried at most.
    pub states: usize,
    /// How long they are tried at most; `None`: all of them.
    pub most_time: Option<Duration>,
    /// What random choices are made from.
    pub seed: u64,
    /// Of how many records it is found out which nodes held them durably when they were acknowledged.
    pub replicas: usize,
    /// How long a write or a flush is held back unanswered.
    pub hold: Duration,
    /// Workers; `None`: two for each processor.
    pub workers: Option<usize>,
    /// Whether the cluster checks every state, also those whose files are equal.
    pub check_all: bool,
    /// Only this state is tried.
    pub only: Option<ClusterStateName>,
    /// A recording to try, instead of making one.
    pub recorded: Option<PathBuf>,
    /// Where the recording is kept.
    pub keep_recording: Option<PathBuf>,
    /// The command line that tries one of its states again, without the state's name.
    pub again: String,
}

impl ClusterPlan {
    /// Transactions sent unless said otherwise.
    pub const TRANSACTIONS: u64 = 40;
    /// Records of which it is found out who held them, unless said otherwise.
    pub const REPLICAS: usize = 5;

    /// A proof of `subject`, of so many nodes on `filesystem`, with everything else as usual.
    pub fn new(
        subject: Box<dyn ClusterSubject>,
        nodes: usize,
        filesystem: FilesystemSpec,
    ) -> ClusterPlan {
        ClusterPlan {
            subject,
            nodes,
            filesystem,
            directory: std::env::temp_dir(),
            transactions: ClusterPlan::TRANSACTIONS,
            cuts: Cuts::Both,
            model: Model::Subset,
            states: Plan::STATES,
            most_time: None,
            seed: 1,
            replicas: ClusterPlan::REPLICAS,
            hold: Plan::HOLD,
            workers: None,
            check_all: false,
            only: None,
            recorded: None,
            keep_recording: None,
            again: String::new(),
        }
    }

    /// Complains of what makes no sense, before anything is started.
    fn require_sensible(&self) -> Result<(), Error> {
        if self.model == Model::Prefix {
            let text = "the disks of a cluster are cut by model flushed or subset";
            return Err(Error::Usage(text.into()));
        }
        if self.cuts == Cuts::Rolling && !self.subject.ends_one_by_one() {
            let name = self.subject.name().name;
            return Err(Error::Usage(format!(
                "nodes of '{name}' cannot be ended one after the other: leave out --cuts rolling"
            )));
        }
        let only = self.only.as_ref();
        only.map_or(Ok(()), |name| name.require_nodes(self.nodes))
            .map_err(Error::Usage)
    }
}

/// What is kept with a recording: of what it is, and how it ended.
#[derive(Serialize, Deserialize, PartialEq)]
struct Note {
    subject: String,
    filesystem: String,
    killed_at: usize,
    /// Nodes that ended before the others.
    #[serde(default)]
    ended: Vec<(usize, usize)>,
}

impl Note {
    /// Complains of what a recording of so many nodes and events does not have.
    fn require_within(&self, nodes: usize, events: usize) -> Result<(), String> {
        if self.killed_at > events {
            return Err("ends before it was killed".to_owned());
        }
        for &(node, at) in &self.ended {
            if node >= nodes {
                return Err(format!(
                    "says that node {node} ended, and has {nodes} nodes"
                ));
            }
            if at > events {
                return Err(format!("ends before node {node} did"));
            }
        }
        Ok(())
    }
}

/// Proves what `plan` says. Needs root, FUSE and loop devices.
pub fn prove_cluster(
    plan: &ClusterPlan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Proof, Error> {
    plan.require_sensible()?;
    let RecordedSite {
        recording,
        killed_at,
        ended,
    } = match &plan.recorded {
        Some(_) => load(plan)?,
        None => {
            progress.doing("running the cluster", 0, plan.states, Duration::ZERO);
            in_a_network(|| record(plan, MEMORY, stop))?
        }
    };
    let note = Note {
        subject: plan.subject.name().to_string(),
        filesystem: plan.filesystem.to_string(),
        killed_at,
        ended,
    };
    let ended = note.ended.clone();
    let note = serde_json::to_string(&note).map_err(|error| Error::Subject(error.to_string()))?;
    let recording = recording.with_note(note);
    if let Some(path) = &plan.keep_recording {
        let kept = recording.save(path);
        kept.map_err(Error::io(format!("cannot write {}", path.display())))?;
    }
    let reading = "cannot read the acknowledgements";
    let marks = recording.marks().map_err(Error::io(reading))?;
    let history = History::of_marks(marks).map_err(Error::io(reading))?;
    let checks = Checks::default();
    let case = Case {
        subject: plan.subject.as_ref(),
        filesystem: &plan.filesystem,
        recording: &recording,
        history: &history,
        killed_at,
        ended: &ended,
        tries: if plan.only.is_some() { TRIES } else { 1 },
        checks: (!plan.check_all && plan.only.is_none()).then_some(&checks),
        stop,
        directory: &plan.directory,
        memory: MEMORY,
    };
    examine(plan, &case, killed_at, stop, progress)
}

/// Runs something in a thread with a network of its own.
fn in_a_network<T: Send>(run: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            isolate()?;
            run()
        });
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

pub(super) fn isolate() -> Result<(), Error> {
    isolate_network().map_err(|error| {
        Error::Refused(format!(
            "each cluster has a network of its own, and none can be made: {error}; it needs root"
        ))
    })
}

fn load(plan: &ClusterPlan) -> Result<RecordedSite, Error> {
    let Some(path) = &plan.recorded else {
        return Err(Error::Usage("there is no recording".into()));
    };
    let recording = SiteRecording::load(path, &plan.directory)
        .map_err(|error| Error::Usage(format!("cannot read {}: {error}", path.display())))?;
    let path = path.display();
    let note: Note = serde_json::from_str(recording.note()).map_err(|error| {
        Error::Usage(format!(
            "{path} was made by another version of landfall: {error}"
        ))
    })?;
    let (subject, filesystem) = (&note.subject, &note.filesystem);
    let is_planned = *subject == plan.subject.name().to_string()
        && *filesystem == plan.filesystem.to_string()
        && recording.devices().len() == plan.nodes;
    if !is_planned {
        let nodes = recording.devices().len();
        return Err(Error::Usage(format!(
            "{path} is a recording of '{subject}' on '{filesystem}': name that subject with its settings, --nodes {nodes}, and that filesystem with --fs"
        )));
    }
    note.require_within(recording.devices().len(), recording.events())
        .map_err(|what| Error::Usage(format!("{path} {what}")))?;
    let is_rolling = plan.cuts == Cuts::Rolling;
    let has_ended = !note.ended.is_empty();
    if plan.only.is_none() && is_rolling != has_ended {
        return Err(Error::Usage(if has_ended {
            format!("of {path} nodes ended one after the other: say --cuts rolling")
        } else {
            format!("of {path} all nodes ended at once: leave out --cuts rolling")
        }));
    }
    Ok(RecordedSite {
        killed_at: note.killed_at,
        recording,
        ended: note.ended,
    })
}

/// What became of the states.
struct Explored {
    tally: Tally,
    cuts: ClusterCuts,
    /// The failing state with the fewest victims, the first of several.
    failing: Option<(ClusterStateName, Judgement)>,
}

impl Explored {
    fn add(&mut self, place: usize, name: &ClusterStateName, checked: &Checked) {
        let place = place as u64 + 1;
        let kept = self.tally.count(name, Some(place), checked);
        let Checked::Judged(judgement) = checked else {
            return;
        };
        let of = self.cuts.of(name.victims() as u64);
        of.checked += 1;
        of.losing += u64::from(!judgement.lost.is_empty());
        of.unavailable += u64::from(judgement.violations.contains(&Violation::Unavailable));
        of.failing += u64::from(!kept);
        if kept {
            return;
        }
        let first = self.tally.first_failing;
        self.tally.first_failing = Some(first.map_or(place, |first| first.min(place)));
        // What is lost says more than that nothing is known; and the fewer nodes it takes the better.
        let key = |name: &ClusterStateName, judgement: &Judgement| {
            (judgement.lost.is_empty(), name.victims(), name.clone())
        };
        let is_better = self
            .failing
            .as_ref()
            .is_none_or(|(best, of)| key(name, judgement) < key(best, of));
        if is_better {
            self.failing = Some((name.clone(), judgement.clone()));
        }
    }
}

fn examine(
    plan: &ClusterPlan,
    case: &Case<'_>,
    killed_at: usize,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Proof, Error> {
    let boots = Boot::all(plan.nodes);
    let Survey {
        states,
        moments,
        equal,
        drawn,
    } = match &plan.only {
        Some(name) => Survey::only(name),
        None => {
            let wanted = Wanted {
                cuts: plan.cuts,
                model: plan.model,
                boots: &boots,
                seed: plan.seed,
                states: plan.states,
                killed_at,
                ended: case.ended,
            };
            let planned = survey(case.recording, case.history, &wanted);
            planned.map_err(Error::io("cannot plan the crash states"))?
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let wanted = plan.workers.unwrap_or(WORKERS * processors);
    let workers = workers_on(&plan.filesystem, wanted);
    let checking = workers.min(states.len()).max(1);
    // However early the time is up, they were from all over the recording.
    let states = if plan.most_time.is_some() {
        spread(&states)
    } else {
        states
    };
    let (explored, filesystem) = explore(plan, case, &states, checking, stop, progress)?;
    let Explored {
        tally,
        mut cuts,
        failing: shortest,
    } = explored;
    if plan.only.is_none() && plan.replicas > 0 {
        let all = states.len();
        progress.doing("looking who held what", all, all, Duration::ZERO);
        cuts.held = held_records(case, plan.seed, plan.replicas, workers)?;
    }
    let shortest = match shortest {
        Some((name, judgement)) if plan.only.is_none() => {
            let all = states.len();
            progress.doing("shortening the failing state", all, all, Duration::ZERO);
            let shorter = in_a_network(|| {
                shorten(case, &name, judgement.worst(), plan.model, stop)
                    .map_err(Error::io("cannot shorten the failing state"))
            })?;
            Some(shorter.unwrap_or((name, judgement)))
        }
        only => only,
    };
    let shortest = match &shortest {
        Some((name, judgement)) => Some(
            failing(case, name, judgement, &plan.again)
                .map_err(Error::io("cannot read the recording"))?,
        ),
        None => None,
    };
    let whole = case.history.whole();
    let devices = case.recording.devices();
    let counts = devices
        .iter()
        .map(|device| device.counts(0, device.events().len()));
    let (mut writes, mut written_bytes, mut flushes) = (0, 0, 0);
    for count in counts {
        writes += count.writes;
        written_bytes += count.written_bytes;
        flushes += count.flushes;
    }
    let promise = case.subject.promise();
    let results = ProofResults {
        subject: case.subject.name(),
        promises_atomic: promise.atomic,
        promises_order: promise.ordered,
        filesystem_spec: plan.filesystem.clone(),
        device_bytes: devices[0].size(),
        model: plan.model.to_string(),
        atomic_bytes: devices[0].atomic_unit().bytes(),
        seed: plan.seed,
        faults: Vec::new(),
        creation: false,
        writeback: false,
        shard: None,
        cluster: Some(cuts),
        workload: Workload {
            sent: whole.sent.len() as u64,
            acknowledged: whole.acknowledged.len() as u64,
            writes,
            written_bytes,
            flushes,
            forced_writes: None,
            spilled_bytes: devices.iter().map(|device| device.spilled()).sum(),
            ended: None,
        },
        coverage: Coverage {
            epochs: flushes + 1,
            surveyed: moments as u64,
            every_write: 0,
            every_sector: 0,
            possible: f64::MAX,
            planned: states.len() as u64,
            sampled: drawn as u64,
            equal: equal as u64,
            states_digest: None,
            equal_files: case.checks.map_or(0, Checks::<Found>::equal),
            checked: tally.checked,
            states_per_minute: tally.checked as f64 / tally.took.as_secs_f64().max(1e-6) * 60.0,
            workers: workers as u64,
            second_cuts: None,
        },
        exercised: Vec::new(),
        violations: tally.worst_first(),
        first_failing: tally.first_failing,
        failing_states: tally.failing,
        losing_states: tally.losing,
        worst_lost: tally.worst_lost,
        only_last: tally.only_last,
        shortest,
        unchecked: tally.unchecked(),
        expected: None,
    };
    Ok(Proof {
        results,
        filesystem,
    })
}

/// Checks the states with several workers, each in a network of its own.
fn explore(
    plan: &ClusterPlan,
    case: &Case<'_>,
    states: &[Planned],
    workers: usize,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(Explored, Filesystem), Error> {
    let begin = Instant::now();
    // Few states are for all workers too.
    let handful = (states.len() / workers).clamp(1, HANDFUL);
    let next = AtomicUsize::new(0);
    let enough = AtomicBool::new(false);
    let filesystem: Mutex<Option<Filesystem>> = Mutex::new(None);
    let mut explored = Explored {
        tally: Tally::default(),
        cuts: ClusterCuts {
            nodes: plan.nodes as u64,
            rolling: !case.ended.is_empty(),
            by_victims: Vec::new(),
            held: Vec::new(),
        },
        failing: None,
    };
    let making = "cannot make disks for crash states";
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..workers {
            let (sender, next, enough, filesystem) = (sender.clone(), &next, &enough, &filesystem);
            scope.spawn(move || {
                let work = || -> Result<(), Error> {
                    isolate()?;
                    let mut worker = Worker::new(case).map_err(Error::io(making))?;
                    let mut known = filesystem.lock().unwrap_or_else(PoisonError::into_inner);
                    if known.is_none() {
                        *known = Some(worker.look().map_err(Error::io(making))?);
                    }
                    drop(known);
                    loop {
                        let first = next.fetch_add(handful, Ordering::Relaxed);
                        let Some(rest) = states.get(first..).filter(|rest| !rest.is_empty()) else {
                            return Ok(());
                        };
                        for (place, state) in (first..).zip(rest.iter().take(handful)) {
                            if enough.load(Ordering::Relaxed) || stop.is_requested() {
                                return Ok(());
                            }
                            let checked = worker.check(&state.name);
                            // Nobody listens any more once the run has ended.
                            let _ = sender.send(Ok((place, checked)));
                        }
                    }
                };
                if let Err(error) = work() {
                    let _ = sender.send(Err(error));
                }
            });
        }
        drop(sender);
        for message in receiver {
            let (place, checked) =
                message.inspect_err(|_| enough.store(true, Ordering::Relaxed))?;
            explored.add(place, &states[place].name, &checked);
            explored.tally.took = begin.elapsed();
            let is_late = plan.most_time.is_some_and(|most| begin.elapsed() > most);
            if is_late || stop.is_requested() {
                enough.store(true, Ordering::Relaxed);
            }
            tell(progress, &explored.tally, states.len());
        }
        Ok::<(), Error>(())
    })?;
    if stop.is_requested() {
        return Err(Error::Stopped);
    }
    let filesystem = filesystem
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let filesystem = filesystem.ok_or_else(|| Error::Refused("there is nothing to try".into()))?;
    Ok((explored, filesystem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_nothing_that_the_recording_has_not() {
        let complaint = |killed_at: usize, ended: &[(usize, usize)]| {
            let note = Note {
                subject: "a cluster".to_owned(),
                filesystem: "ext4".to_owned(),
                killed_at,
                ended: ended.to_vec(),
            };
            note.require_within(3, 100).err().unwrap_or_default()
        };
        assert_eq!(complaint(100, &[(2, 100), (0, 40)]), "");
        for (killed_at, ended, why) in [
            (101, [(2, 100), (0, 40)], "ends before it was killed"),
            (
                100,
                [(2, 100), (3, 40)],
                "says that node 3 ended, and has 3 nodes",
            ),
            (100, [(2, 100), (0, 101)], "ends before node 0 did"),
        ] {
            assert_eq!(complaint(killed_at, &ended), why);
        }
    }
}
