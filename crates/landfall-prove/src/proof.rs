//! A whole proof: record, plan the crash states, check them, shorten what failed.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use landfall_os::Filesystem;
use landfall_recorder::crash::{Layout, Model, Order, Survey};
use landfall_recorder::{Offer, Options, Recording};
use landfall_results::proof::{Coverage, FailingState, ProofResults, Shard, Workload};

use crate::checks::Checks;
use crate::exercised::exercised;
use crate::explore::{Shortest, Tally, Until, explore, spread};
use crate::history::History;
use crate::making::Making;
use crate::plan::{Enough, Plan};
use crate::record::{self, record};
use crate::scratch_fs::{BackingDevice, FilesystemSpec, Kind, ScratchFilesystem};
use crate::second_cut::{SecondCut, Wanted};
use crate::shorten::shorten;
use crate::timeline::failing;
use crate::worker::{Case, Worker};
use crate::{Error, Progress, Stop};

/// Bytes of recording and of each disk's contents that are kept in memory.
const MEMORY: u64 = 256 << 20;

/// What power cuts did to a subject, and on what.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What was found.
    pub results: ProofResults,
    /// The filesystem that it ran on.
    pub filesystem: Filesystem,
}

/// Proves what `plan` says.
///
/// To make filesystems needs root, FUSE and loop devices. The calling thread, and those that it starts afterwards, then
/// get mounts of their own (see [`landfall_os::isolate_mounts`]).
pub fn prove(plan: &Plan, stop: &Stop, progress: &mut dyn Progress) -> Result<Proof, Error> {
    let (recording, making) = match &plan.recorded {
        Some(path) => load(path, plan)?,
        None => {
            progress.doing("running the workload", 0, plan.states, Duration::ZERO);
            run_workload(plan, stop)?
        }
    };
    if let Some(path) = &plan.keep_recording {
        recording
            .save(path)
            .map_err(Error::io(format!("cannot write {}", path.display())))?;
    }
    let recording = recording.with_atomic_unit(plan.atomic);
    let history = History::of(&recording).map_err(Error::io("cannot read the acknowledgements"))?;
    let checks = Checks::default();
    let case = Case {
        subject: plan.subject.as_ref(),
        check_in: &plan.check_in,
        filesystem: &plan.filesystem,
        recording: &recording,
        creation: making.creation,
        checks: (!plan.check_all && plan.only.is_none()).then_some(&checks),
        history: &history,
        stop,
        directory: &plan.directory,
        memory: MEMORY,
    };
    let look = |mut worker: Worker<'_>| Ok((worker.look()?, worker.layout()));
    let (filesystem, layout) = Worker::new(&case)
        .and_then(look)
        .map_err(Error::io("cannot mount the filesystem as it was recorded"))?;
    let results = examine(plan, &case, &layout, making, stop, progress)?;
    Ok(Proof {
        results,
        filesystem,
    })
}

/// Reads a recording, which must be of this subject on this filesystem: held against another it would
/// say nothing.
fn load(path: &Path, plan: &Plan) -> Result<(Recording, Making), Error> {
    let recording = Recording::load(path, &plan.directory)
        .map_err(|error| Error::Usage(format!("cannot read {}: {error}", path.display())))?;
    let making = Making::read(recording.note(), plan)
        .map_err(|what| Error::Usage(format!("{} {what}", path.display())))?;
    Ok((recording, making))
}

/// Runs the subject on a filesystem made for it.
fn run_workload(plan: &Plan, stop: &Stop) -> Result<(Recording, Making), Error> {
    let options = Options {
        size: plan.filesystem.small_size_for(plan.subject.capacity()),
        memory: MEMORY,
        directory: plan.directory.clone(),
        latency: None,
        hold: plan.hold,
        offer: plan.offer,
        order: None,
    };
    let backing = BackingDevice::recorder(&options, 0)?;
    let made = ScratchFilesystem::make(&plan.filesystem, backing, stop)?;
    let Some(recorder) = made.recorder() else {
        return Err(Error::Refused(
            "only what is on a recorder is proven".into(),
        ));
    };
    let workload = record::Workload {
        transactions: plan.transactions,
        creation: plan.creation,
        faults: &plan.faults,
        writeback: plan.writeback.then_some(plan.seed),
    };
    let recorded = record(
        recorder,
        made.directory(),
        plan.subject.as_ref(),
        &workload,
        stop,
    )?;
    // The states' filesystems would meet their own double otherwise.
    made.close()?;
    let making = Making {
        ended: recorded.ended,
        ..Making::planned(plan)
    };
    let note = making.note(plan);
    Ok((recorded.recording.with_note(note), making))
}

/// Checks the crash states of a recording.
fn examine(
    plan: &Plan,
    case: &Case<'_>,
    layout: &Layout,
    making: Making,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<ProofResults, Error> {
    let recording = case.recording;
    let only = plan.only.map(|name| name.first);
    let survey = match (only, plan.order, plan.model) {
        (Some(name), ..) => Survey::only(recording, name),
        (None, Order::Representative, Model::Subset) => {
            Survey::representative(recording, layout, plan.seed, plan.states)
        }
        (None, ..) => Survey::of(recording, plan.model, plan.seed, plan.states),
    };
    let survey = survey.map_err(|error| match (only, error.kind()) {
        // It is the name that is wrong.
        (Some(_), io::ErrorKind::InvalidInput) => Error::Usage(format!("no such state: {error}")),
        _ => Error::io("cannot plan the crash states")(error),
    })?;
    let states_digest = format!("{:032x}", survey.digest());
    let Survey {
        mut states,
        mut leading,
        coverage: planned,
    } = survey;
    let shard = plan.shard.unwrap_or(Shard::WHOLE);
    leading = shard.share(leading);
    states = shard.part(&states);
    let workers = workers_on(&plan.filesystem, plan.workers.unwrap_or_else(processors));
    if plan.most_time.is_some() {
        let rest = spread(&states[leading..]);
        states.truncate(leading);
        states.extend(rest);
    }
    let deadline = plan.most_time.map(|time| Instant::now() + time);
    let second_of_only = plan.only.and_then(|name| name.second);
    let mut tally = match second_of_only {
        Some(_) => Tally::default(),
        None => explore(
            case,
            &states,
            shard,
            workers.min(states.len().max(1)),
            Until {
                enough: plan.enough,
                deadline,
            },
            stop,
            &mut |tally| {
                tell(
                    progress,
                    tally,
                    states.len() + shard.share(plan.second_cuts),
                )
            },
        )?,
    };
    let planned_firsts = match (second_of_only, plan.enough) {
        (Some(_), _) => 0,
        (None, Enough::All) => states.len() as u64,
        // Those behind the one that was looked for are not asked for.
        (None, _) => tally.tried(),
    };
    let leaves_some = leaves_some(plan.enough, shard, tally.tried(), states.len());
    let exhausted = |epochs: usize| if leaves_some { 0 } else { epochs as u64 };
    let second_cuts = shard.share(plan.second_cuts);
    let wanted = match (second_of_only, plan.only, second_cuts) {
        (Some(name), ..) => Some(Wanted::Only(name)),
        (None, Some(_), _) | (None, None, 0) => None,
        (None, None, most) => Some(Wanted::Most(most)),
    };
    let seen = match wanted {
        None => None,
        Some(wanted) => {
            let second = SecondCut {
                case,
                firsts: &spread(&states),
                wanted,
                model: plan.model,
                seed: plan.seed,
                workers,
                deadline,
                again: &plan.again,
                keep_image: plan.keep_image.as_deref(),
                stop,
            };
            let all = states.len() + second_cuts;
            Some(second.explore(&mut tally, &mut |tally, _| tell(progress, tally, all))?)
        }
    };
    let shortest = match &tally.shortest {
        // It was asked for, and no other one; or none was.
        Some(only) if plan.only.is_some() || plan.enough != Enough::All => Some(only.clone()),
        Some(found) => {
            let all = states.len();
            progress.doing("shortening the failing state", all, all, Duration::ZERO);
            let violation = found.judgement.worst();
            let shorter = shorten(case, &found.state, violation, plan.model, stop)
                .map_err(Error::io("cannot shorten the failing state"))?;
            let (state, judgement) =
                shorter.unwrap_or_else(|| (found.state, found.judgement.clone()));
            Some(Shortest {
                state,
                judgement,
                ..*found
            })
        }
        None => None,
    };
    // Of a second cut its image is kept as it is tried.
    let only_first = only.filter(|_| second_of_only.is_none());
    let kept = shortest
        .as_ref()
        .map(|shortest| shortest.state.name)
        .or(only_first);
    if let (Some(path), Some(name)) = (&plan.keep_image, kept) {
        let saved = Worker::new(case).and_then(|mut worker| {
            worker.load(&name)?;
            worker.save(path)
        });
        saved.map_err(Error::io(format!("cannot write {}", path.display())))?;
    }
    let shortest = match shortest {
        Some(shortest) => {
            let Shortest {
                state, judgement, ..
            } = &shortest;
            let name = state.name.into();
            let shown = failing(recording, layout, &name, state, judgement, &plan.again)?;
            Some(FailingState {
                found: plan.only.is_none().then_some(shortest.origin),
                ..shown
            })
        }
        None => seen.as_ref().and_then(|seen| seen.failing.clone()),
    };
    let more_firsts = seen.as_ref().map_or(0, |seen| seen.firsts);
    let second_cuts = seen.map(|seen| seen.counts);
    let exercised = exercised(case, layout, &tally.names)
        .map_err(Error::io("cannot tell what was exercised"))?;
    let whole = case.history.whole();
    let counts = recording.counts(0, recording.events().len());
    Ok(ProofResults {
        subject: plan.subject.name(),
        promises_atomic: plan.subject.promise().atomic,
        promises_order: plan.subject.promise().ordered,
        filesystem_spec: plan.filesystem.clone(),
        device_bytes: recording.size(),
        model: plan.model.to_string(),
        atomic_bytes: plan.atomic.bytes(),
        seed: plan.seed,
        faults: making.faults.iter().map(ToString::to_string).collect(),
        creation: making.creation,
        writeback: making.writeback,
        shard: plan.shard,
        cluster: None,
        workload: Workload {
            sent: whole.sent.len() as u64,
            acknowledged: whole.acknowledged.len() as u64,
            writes: counts.writes,
            written_bytes: counts.written_bytes,
            flushes: counts.flushes,
            forced_writes: (making.offer == Offer::ForceUnitAccess)
                .then(|| recording.forced_writes()),
            spilled_bytes: recording.spilled(),
            ended: making.ended,
        },
        coverage: Coverage {
            epochs: planned.epochs as u64,
            surveyed: planned.surveyed as u64,
            every_write: exhausted(planned.whole_writes),
            every_sector: exhausted(planned.changed_sectors),
            possible: planned.possible,
            planned: planned_firsts + more_firsts + second_cuts.map_or(0, |second| second.planned),
            sampled: planned.sampled as u64,
            equal: planned.duplicates as u64,
            states_digest: Some(states_digest),
            equal_files: case.checks.map_or(0, Checks::equal),
            checked: tally.checked,
            states_per_minute: tally.checked as f64 / tally.took.as_secs_f64().max(1e-6) * 60.0,
            workers: workers as u64,
            second_cuts,
        },
        exercised,
        violations: tally.worst_first(),
        first_failing: tally.first_failing,
        failing_states: tally.failing,
        losing_states: tally.losing,
        worst_lost: tally.worst_lost,
        only_last: tally.only_last,
        shortest,
        unchecked: tally.unchecked(),
        expected: None,
    })
}

/// Whether states were not tried since those before them were enough: `tried` of the `planned` ones of this shard. Of a shard it
/// is not known of the others, and each says the same.
fn leaves_some(enough: Enough, shard: Shard, tried: u64, planned: usize) -> bool {
    enough != Enough::All && (shard.of() > 1 || tried < planned as u64)
}

/// How many workers there may be, of so many that are asked for: each mounts a copy of the same filesystem.
pub(crate) fn workers_on(spec: &FilesystemSpec, wanted: usize) -> usize {
    if mounts_copies(spec) { wanted } else { 1 }
}

/// Whether several copies of a filesystem can be mounted at the same time.
fn mounts_copies(spec: &FilesystemSpec) -> bool {
    // Of btrfs since Linux 6.7, which then says so here.
    spec.kind != Kind::Btrfs || Path::new("/sys/fs/btrfs/features/temp_fsid").exists()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(crate) fn tell(progress: &mut dyn Progress, tally: &Tally, planned: usize) {
    let done = tally.tried() as usize;
    let seconds = tally.took.as_secs_f64();
    let left = Duration::try_from_secs_f64(
        seconds / done.max(1) as f64 * planned.saturating_sub(done) as f64,
    );
    let rate = done as f64 / seconds.max(1e-6) * 60.0;
    let what = match tally.failing {
        0 => format!("{rate:.0} states a minute, nothing lost so far"),
        failing => format!("{rate:.0} states a minute, {failing} failing so far"),
    };
    progress.doing(&what, done, planned, left.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_enough_leaves_those_behind_it() {
        let half = Shard::new(1, 2).unwrap();
        assert!(leaves_some(Enough::FirstFailing, Shard::WHOLE, 9, 10));
        assert!(!leaves_some(Enough::FirstFailing, Shard::WHOLE, 10, 10));
        assert!(leaves_some(Enough::FirstFailing, half, 10, 10));
        // The time was up, which is said otherwise.
        assert!(!leaves_some(Enough::All, half, 9, 10));
    }
}
