//! Checks the planned states with several workers, and counts what was lost.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use landfall_recorder::crash::{CrashState, StateName};
use landfall_results::proof::{Origin, Shard, Unchecked, Violation, ViolationCount};

use crate::judge::Judgement;
use crate::plan::Enough;
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
    /// Names of those that one power cut has left.
    pub names: Vec<StateName>,
    /// The place of the first state, of those that one power cut has left, in which a promise was broken; the first of all
    /// states is 1.
    pub first_failing: Option<u64>,
    /// States in which a promise was broken.
    pub failing: u64,
    /// Names of those of them that one power cut has left.
    pub failing_names: HashSet<StateName>,
    /// States in which something acknowledged was not there.
    pub losing: u64,
    /// The most that any of them lost.
    pub worst_lost: u64,
    /// Whether each of them lost the transaction acknowledged last, and no more.
    pub only_last: bool,
    /// Each kind of violation.
    pub violations: BTreeMap<Violation, ViolationCount>,
    /// Names of states that could not be checked, and why.
    unchecked: Vec<(String, String)>,
    /// The failing state that lacks least, the first of several, and what is wrong with it.
    pub shortest: Option<Shortest>,
    /// How long it took.
    pub took: Duration,
}

/// The failing state that lacks least.
#[derive(Clone, Debug)]
pub(crate) struct Shortest {
    pub state: CrashState,
    pub judgement: Judgement,
    /// What makes it shorter than another.
    pub origin: Origin,
}

impl Tally {
    /// States that were checked, or could not be.
    pub fn tried(&self) -> u64 {
        self.checked + self.unchecked.len() as u64
    }

    /// States that could not be checked, if there are any.
    pub fn unchecked(&self) -> Option<Unchecked> {
        let (_, reason) = self.unchecked.first()?;
        Some(Unchecked {
            states: self.unchecked.len() as u64,
            reason: reason.clone(),
        })
    }

    /// Each kind of violation that was seen, the worst first.
    pub fn worst_first(&self) -> Vec<ViolationCount> {
        let all = Violation::ALL.into_iter();
        all.filter_map(|violation| self.violations.get(&violation).cloned())
            .collect()
    }

    fn add(&mut self, place: u64, state: &CrashState, checked: Checked) {
        if !self.count(&state.name, Some(place), &checked) {
            self.first_failing = Some(self.first_failing.map_or(place, |first| first.min(place)));
            self.failing_names.insert(state.name);
        }
        if let Checked::Judged(_) = checked {
            self.names.push(state.name);
        }
        let origin = Origin {
            omitted: state.omitted.into(),
            position: state.position as u64,
            place,
        };
        if let Checked::Judged(judgement) = checked
            && !judgement.kept()
            && self
                .shortest
                .as_ref()
                .is_none_or(|best| origin < best.origin)
        {
            self.shortest = Some(Shortest {
                state: *state,
                judgement,
                origin,
            });
        }
    }

    /// Takes back that a state was counted as kept or unchecked, if more is known of it now. One that kept its promises is
    /// not forgotten since its recovery could not be recorded. Returns whether it was taken back; only states that one
    /// power cut has left are known.
    pub fn take_back(&mut self, name: &StateName, now: &Checked) -> bool {
        let text = name.to_string();
        let mut unchecked = self.unchecked.iter();
        if let Some(index) = unchecked.position(|(known, _)| *known == text) {
            self.unchecked.remove(index);
            return true;
        }
        let is_judged = matches!(now, Checked::Judged(_)) && self.names.contains(name);
        self.checked -= u64::from(is_judged);
        is_judged
    }

    /// Counts a state of this name, and of this place if one power cut has left it; returns whether it kept every promise, as
    /// far as is known.
    pub fn count(&mut self, name: &dyn Display, place: Option<u64>, checked: &Checked) -> bool {
        let judgement = match checked {
            Checked::Judged(judgement) => judgement,
            Checked::Unchecked(reason) => {
                self.unchecked.push((name.to_string(), reason.clone()));
                return true;
            }
        };
        self.checked += 1;
        if judgement.kept() {
            return true;
        }
        self.failing += 1;
        if !judgement.lost.is_empty() {
            self.only_last = judgement.only_last && (self.losing == 0 || self.only_last);
            self.losing += 1;
            self.worst_lost = self.worst_lost.max(judgement.lost.len() as u64);
        }
        for violation in &judgement.violations {
            let this = ViolationCount {
                violation: *violation,
                states: 1,
                example: name.to_string(),
                detail: judgement.detail(*violation),
                place,
                crashed: *violation == Violation::Damaged && judgement.crashed,
            };
            match self.violations.get_mut(violation) {
                None => drop(self.violations.insert(*violation, this)),
                // Whoever is faster: what is shown does not depend on that.
                Some(known) if this.is_better_example_than(known) => {
                    let states = known.states + 1;
                    *known = ViolationCount { states, ..this };
                }
                Some(known) => known.states += 1,
            }
        }
        false
    }
}

/// The states, which are in order of their epochs, in the order of several passes: however early the time
/// is up, they were from all over the recording.
pub(crate) fn spread<T: Clone>(states: &[T]) -> Vec<T> {
    let passes = 0..PASSES.min(states.len());
    passes
        .flat_map(|pass| states.iter().skip(pass).step_by(PASSES))
        .cloned()
        .collect()
}

/// How long states are checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// Which of them are enough.
    pub enough: Enough,
    /// When the time is up, if it ever is.
    pub deadline: Option<Instant>,
}

/// Whether no state behind this one is wanted.
fn is_enough(enough: Enough, judgement: &Judgement) -> bool {
    match enough {
        Enough::All => false,
        Enough::FirstFailing => !judgement.kept(),
        Enough::FirstWith(violation) => judgement.violations.contains(&violation),
    }
}

/// Checks `states` with `workers` workers, as many as are enough, while there is time. Each time that their epochs go back costs
/// every worker a new beginning. They are the part `shard` of all, and counted by their places in all. `heard` is told now
/// and then how many have been checked, and how many of them failed.
pub(crate) fn explore(
    case: &Case<'_>,
    states: &[CrashState],
    shard: Shard,
    workers: usize,
    until: Until,
    stop: &Stop,
    heard: &mut dyn FnMut(&Tally),
) -> Result<Tally, Error> {
    let begin = Instant::now();
    let next = AtomicUsize::new(0);
    let enough = AtomicBool::new(false);
    // Those behind it need not be tried; those before it all are, whoever is faster.
    let last = AtomicUsize::new(usize::MAX);
    let mut tally = Tally::default();
    let result = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..workers {
            let (sender, next, enough, last) = (sender.clone(), &next, &enough, &last);
            scope.spawn(move || {
                let mut worker: Option<Worker<'_>> = None;
                let mut cut = 0;
                while !enough.load(Ordering::Relaxed) {
                    let first = next.fetch_add(HANDFUL, Ordering::Relaxed);
                    let Some(rest) = states.get(first..).filter(|rest| !rest.is_empty()) else {
                        return;
                    };
                    for (place, state) in (first..).zip(rest.iter().take(HANDFUL)) {
                        if enough.load(Ordering::Relaxed) || place > last.load(Ordering::Relaxed) {
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
                        if let Checked::Judged(judgement) = &checked
                            && is_enough(until.enough, judgement)
                        {
                            last.fetch_min(place, Ordering::Relaxed);
                        }
                        // Nobody listens any more once the run has ended.
                        let _ = sender.send(Ok((place, state, checked)));
                    }
                }
            });
        }
        drop(sender);
        for message in receiver {
            match message {
                Ok((place, state, checked)) => {
                    tally.add(shard.place_in_whole(place as u64 + 1), state, checked)
                }
                Err(error) => {
                    enough.store(true, Ordering::Relaxed);
                    return Err(Error::io("cannot make a disk for crash states")(error));
                }
            }
            tally.took = begin.elapsed();
            if until
                .deadline
                .is_some_and(|deadline| Instant::now() > deadline)
            {
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
    use landfall_recorder::crash::Identity;

    use super::*;

    #[test]
    fn a_state_of_which_more_is_known_is_counted_once() {
        let state = CrashState {
            name: "1:2:none".parse().unwrap(),
            position: 0,
            image: Identity::BASE,
            omitted: 0,
        };
        let mut ill = Judgement::default();
        ill.add(Violation::Damaged, "it is ill".to_owned());
        let ill = Checked::Judged(ill);
        let kept = Checked::Judged(Judgement::default());
        let unchecked = Checked::Unchecked("no memory".to_owned());
        for (before, now, counts) in [
            (&kept, &ill, (1, 1, 0)),
            (&unchecked, &ill, (1, 1, 0)),
            (&unchecked, &unchecked, (0, 0, 1)),
            // It was whole, and its recovery is one more that nothing is known of.
            (&kept, &unchecked, (1, 0, 1)),
        ] {
            let mut tally = Tally::default();
            tally.add(1, &state, before.clone());
            let was_taken_back = tally.take_back(&state.name, now);
            assert_eq!(u64::from(!was_taken_back), counts.0 + counts.2 - 1);
            tally.count(&state.name, None, now);
            let left = tally.tried() - tally.checked;
            assert_eq!((tally.checked, tally.failing, left), counts);
        }
        assert!(!Tally::default().take_back(&state.name, &ill));
        // Nor is why it could not be checked left behind.
        let mut tally = Tally::default();
        tally.add(1, &state, unchecked);
        let more = Checked::Unchecked("no disk".to_owned());
        tally.count(&"another", None, &more);
        assert!(tally.take_back(&state.name, &ill));
        let left = tally.unchecked().unwrap();
        assert_eq!((left.states, left.reason.as_str()), (1, "no disk"));
    }

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
