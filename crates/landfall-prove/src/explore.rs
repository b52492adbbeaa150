//! Checks the planned states with several workers, and counts what was lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use landfall_recorder::crash::CrashState;
use landfall_results::proof::{Unchecked, Violation, ViolationCount};

use crate::judge::Judgement;
use crate::worker::{Case, Checked, Worker};
use crate::{Error, Stop};

/// States that a worker takes at a time: neighbours share most of the way to their epoch.
const HANDFUL: usize = 4;
/// Passes through the recording where the time may be up before all states have been tried.
const PASSES: usize = 16;

/// What was seen in all states that were checked.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// States checked.
    pub checked: u64,
    /// States in which a promise was broken.
    pub failing: u64,
    /// States in which something acknowledged was not there.
    pub losing: u64,
    /// The most that any of them lost.
    pub worst_lost: u64,
    /// Whether each of them lost the transaction acknowledged last, and no more.
    pub only_last: bool,
    /// Each kind of violation.
    pub violations: BTreeMap<Violation, ViolationCount>,
    /// Whether the example of damage is a crash.
    shows_crash: bool,
    /// States that could not be checked.
    pub unchecked: Option<Unchecked>,
    /// The failing state that lacks least, and what is wrong with it.
    pub shortest: Option<(CrashState, Judgement)>,
    /// How long it took.
    pub took: Duration,
}

impl Tally {
    fn add(&mut self, state: &CrashState, checked: Checked) {
        let judgement = match checked {
            Checked::Judged(judgement) => judgement,
            Checked::Unchecked(reason) => {
                let unchecked = self
                    .unchecked
                    .get_or_insert(Unchecked { states: 0, reason });
                unchecked.states += 1;
                return;
            }
        };
        self.checked += 1;
        if judgement.kept() {
            return;
        }
        self.failing += 1;
        if !judgement.lost.is_empty() {
            self.only_last = judgement.only_last && (self.losing == 0 || self.only_last);
            self.losing += 1;
            self.worst_lost = self.worst_lost.max(judgement.lost.len() as u64);
        }
        for violation in &judgement.violations {
            let detail = judgement.detail(*violation);
            let count = self
                .violations
                .entry(*violation)
                .or_insert_with(|| ViolationCount {
                    violation: *violation,
                    states: 0,
                    example: state.name.to_string(),
                    detail,
                });
            count.states += 1;
            // Of all damage a crash is what a user must know of.
            if *violation == Violation::Damaged && judgement.crashed && !self.shows_crash {
                self.shows_crash = true;
                count.example = state.name.to_string();
                count.detail = judgement.detail(*violation);
            }
        }
        let size = |state: &CrashState| (state.omitted, state.position);
        let shorter = |(best, _): &(CrashState, Judgement)| size(state) < size(best);
        if self.shortest.as_ref().is_none_or(shorter) {
            self.shortest = Some((*state, judgement));
        }
    }
}

/// The states, which are in order of their epochs, in the order of several passes: however early the time
/// is up, they were from all over the recording.
pub(crate) fn spread<T: Copy>(states: &[T]) -> Vec<T> {
    let passes = 0..PASSES.min(states.len());
    passes
        .flat_map(|pass| states.iter().skip(pass).step_by(PASSES))
        .copied()
        .collect()
}

/// Checks `states` with `workers` workers until `deadline`. Each time that their epochs go back costs
/// every worker a new beginning. `heard` is told now and then how many have been checked, and how many of them failed.
pub(crate) fn explore(
    case: &Case<'_>,
    states: &[CrashState],
    workers: usize,
    deadline: Option<Instant>,
    stop: &Stop,
    heard: &mut dyn FnMut(&Tally),
) -> Result<Tally, Error> {
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    let enough = AtomicBool::new(false);
    let mut tally = Tally::default();
    let result = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..workers {
            let (sender, next, enough) = (sender.clone(), &next, &enough);
            scope.spawn(move || {
                let mut worker: Option<Worker<'_>> = None;
                let mut cut = 0;
                while !enough.load(Ordering::Relaxed) {
                    let first = next.fetch_add(HANDFUL, Ordering::Relaxed);
                    let Some(rest) = states.get(first..).filter(|rest| !rest.is_empty()) else {
                        return;
                    };
                    for state in rest.iter().take(HANDFUL) {
                        if enough.load(Ordering::Relaxed) {
                            return;
                        }
                        if state.name.cut < cut {
                            worker = None;
                        }
                        cut = state.name.cut;
                        let worker = match worker.take().map_or_else(|| Worker::new(case), Ok) {
                            Ok(new) => worker.insert(new),
                            Err(error) => return drop(sender.send(Err(error))),
                        };
                        let checked = worker.check(&state.name, state.position);
                        // Nobody listens any more once the run has ended.
                        let _ = sender.send(Ok((state, checked)));
                    }
                }
            });
        }
        drop(sender);
        for message in receiver {
            match message {
                Ok((state, checked)) => tally.add(state, checked),
                Err(error) => {
                    enough.store(true, Ordering::Relaxed);
                    return Err(Error::io("cannot make a disk for crash states")(error));
                }
            }
            tally.took = begin.elapsed();
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                enough.store(true, Ordering::Relaxed);
            }
            if stop.is_requested() {
                enough.store(true, Ordering::Relaxed);
            }
            heard(&tally);
        }
        Ok(())
    });
    result?;
    if stop.is_requested() {
        Err(Error::Stopped)
    } else {
        Ok(tally)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_spread_over_the_recording_and_none_is_left_out() {
        for count in [0, 1, 15, 16, 17, 100] {
            let states: Vec<usize> = (0..count).collect();
            let mut spread = spread(&states);
            let first = &spread[..spread.len().div_ceil(PASSES)];
            assert!(first.is_sorted());
            assert!(first.last().is_none_or(|last| last + PASSES >= count));
            spread.sort_unstable();
            assert_eq!(spread, states);
        }
    }
}
