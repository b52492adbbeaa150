//! Cuts the power a second time, while filesystem and subject recover from the first: as outages do that come in pairs.
//!
//! A crash state is made, and everything that is written while it is mounted, recovered, checked and unmounted again is
//! recorded, flushes too. Of that recording crash states are tried as of any other. What had been acknowledged before the
//! first cut must be there after the second too; nothing has been acknowledged since.
//!
//! States in which the filesystem's superblock is torn are left out, and counted: every recovery writes it, and that some
//! filesystems cannot be mounted then has nothing to do with the subject.
//!
//! Only recoveries from states in which nothing is lost are cut off. A loss that is seen then and was not before counts as one of
//! the first cut: a recovery may be a race, and only here is the probe of the filesystem synced. A few states of many recoveries
//! are tried rather than many of a few.
//!
//! Threads: each worker takes one first state after the other, with a disk of its own for it and one for what its recovery
//! leaves. Which states are tried does not depend on who is faster, but what a recovery writes, and when, may.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use landfall_recorder::crash::{CrashState, Identity, Layout, Model, StateName, Survey, Walker};
use landfall_recorder::{Counts, Recording};
use landfall_results::proof::{FailingState, SecondCuts};

use crate::cut_name::CutName;
use crate::explore::Tally;
use crate::history::History;
use crate::judge::Judgement;
use crate::scratch_fs::superblock::is_torn;
use crate::shorten::shorten;
use crate::timeline::failing;
use crate::worker::{Case, Checked, Recovery, Worker, failed_once};
use crate::{Error, Stop};

/// States of one recovery that are tried at most.
const OF_ONE: usize = 8;
/// What is said where there is no disk for a state.
const NO_DISK: &str = "cannot make a disk for crash states";

/// Which states are tried.
#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    /// So many at most.
    Most(usize),
    /// This one.
    Only(StateName),
}

/// What is tried, and how.
pub(crate) struct SecondCut<'a> {
    pub case: &'a Case<'a>,
    /// What a first cut has left, in the order in which it is tried.
    pub firsts: &'a [CrashState],
    pub wanted: Wanted,
    pub model: Model,
    pub seed: u64,
    pub workers: usize,
    pub deadline: Option<Instant>,
    /// The command line that tries one of the states again, without its name.
    pub again: &'a str,
    /// Where the image of a failing state is kept, unless the first cut had one.
    pub keep_image: Option<&'a Path>,
    pub stop: &'a Stop,
}

/// What was seen, beside what the tally has of it.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub counts: SecondCuts,
    /// States of a first cut that were not whole when they recovered, or whose recovery could not be recorded, and that
    /// stand for none counted before.
    pub firsts: u64,
    /// A failing state, as short as it could be made.
    pub failing: Option<FailingState>,
}

/// What a worker has to say.
enum Heard {
    /// A recovery was recorded, of which so many states are tried.
    Recovery {
        counts: Counts,
        planned: usize,
        left_out: usize,
    },
    /// A state of a first cut was not whole when it recovered.
    First(StateName, Checked),
    /// A state was checked.
    State(CutName, Checked),
    /// A failing one was made shorter.
    Shortened(FailingState),
    Failed(Error),
}

impl SecondCut<'_> {
    /// Tries them, and adds what becomes of each to the tally.
    pub fn explore(
        &self,
        tally: &mut Tally,
        heard: &mut dyn FnMut(&Tally, &SecondCuts),
    ) -> Result<Seen, Error> {
        let begin = Instant::now();
        let before = tally.took;
        let mut seen = Seen::default();
        let is_shortened = AtomicBool::new(tally.failing > 0);
        let known = tally.failing_names.clone();
        let mut rest = self.firsts;
        let mut skipped = 0;
        let has_failed = AtomicBool::new(false);
        let most = match self.wanted {
            Wanted::Most(most) => most,
            Wanted::Only(_) => 1,
        };
        while (seen.counts.planned as usize) < most && !rest.is_empty() && !self.is_over() {
            let left = most - seen.counts.planned as usize;
            let (batch, others) = rest.split_at(left.div_ceil(OF_ONE).min(rest.len()));
            rest = others;
            let next = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                let (sender, receiver) = channel();
                for _ in 0..self.workers.min(batch.len()) {
                    let (sender, next, is_shortened) = (sender.clone(), &next, &is_shortened);
                    let (known, has_failed) = (&known, &has_failed);
                    scope.spawn(move || {
                        loop {
                            let number = next.fetch_add(1, Ordering::Relaxed);
                            let Some(first) = batch.get(number) else {
                                return;
                            };
                            let most = OF_ONE.min(left - number * OF_ONE);
                            let is_known = known.contains(&first.name);
                            let tried = self.recovery(first, is_known, most, is_shortened, &sender);
                            if let Err(error) = tried {
                                has_failed.store(true, Ordering::Relaxed);
                                // Nobody listens any more once the run has ended.
                                let _ = sender.send(Heard::Failed(error));
                            }
                            if self.is_over() || has_failed.load(Ordering::Relaxed) {
                                return;
                            }
                        }
                    });
                }
                drop(sender);
                for message in receiver {
                    match message {
                        Heard::Recovery {
                            counts,
                            planned,
                            left_out,
                        } => {
                            seen.counts.recoveries += 1;
                            seen.counts.writes += counts.writes;
                            seen.counts.flushes += counts.flushes;
                            seen.counts.planned += planned as u64;
                            seen.counts.torn_superblocks += left_out as u64;
                        }
                        Heard::First(name, checked) => {
                            seen.firsts += u64::from(!tally.take_back(&name, &checked));
                            tally.count(&name, None, &checked);
                        }
                        Heard::State(name, checked) => {
                            seen.counts.checked += u64::from(matches!(checked, Checked::Judged(_)));
                            let kept = tally.count(&name, None, &checked);
                            seen.counts.failing += u64::from(!kept);
                        }
                        Heard::Shortened(state) => seen.failing = Some(state),
                        Heard::Failed(error) => return Err(error),
                    }
                    tally.took = before + begin.elapsed();
                    heard(tally, &seen.counts);
                }
                Ok(())
            })?;
            skipped += batch.len().saturating_sub(next.into_inner());
        }
        seen.counts.planned += untried(most, seen.counts.planned, skipped + rest.len());
        if self.stop.is_requested() {
            return Err(Error::Stopped);
        }
        Ok(seen)
    }

    fn is_over(&self) -> bool {
        let is_late = self
            .deadline
            .is_some_and(|deadline| Instant::now() > deadline);
        is_late || self.stop.is_requested()
    }

    /// Records one recovery, and cuts it off. `is_known`: that it fails was counted before.
    fn recovery(
        &self,
        first: &CrashState,
        is_known: bool,
        most: usize,
        is_shortened: &AtomicBool,
        sender: &Sender<Heard>,
    ) -> Result<(), Error> {
        let named = |second| CutName {
            first: first.name,
            second: Some(second),
        };
        let say = |heard| {
            let _ = sender.send(heard);
        };
        let recovery = match self.recover(first)? {
            Ok(recovery) => recovery,
            Err(_) if is_known => return Ok(()),
            Err(checked) => {
                if let Checked::Judged(judgement) = &checked
                    && !is_shortened.swap(true, Ordering::Relaxed)
                {
                    say(Heard::Shortened(self.shown_first(first, judgement)?));
                }
                say(Heard::First(first.name, checked));
                return Ok(());
            }
        };
        let recording = &recovery.recording;
        let (states, left_out) = self.states(recording, first, most)?;
        say(Heard::Recovery {
            counts: recording.counts(0, recording.events().len()),
            planned: states.len(),
            left_out,
        });
        let history = History::ended(recovery.said);
        let case = Case {
            recording,
            history: &history,
            ..*self.case
        };
        let mut worker: Option<Worker<'_>> = None;
        let mut cut = 0;
        let mut worst: Option<(CrashState, Judgement)> = None;
        for state in states {
            if self.is_over() {
                break;
            }
            if state.name.cut < cut {
                worker = None;
            }
            cut = state.name.cut;
            if let Wanted::Only(_) = self.wanted {
                // Of the only state it is kept whatever becomes of it.
                self.save(&case, &state)?;
            }
            let worker = match worker.take().map_or_else(|| Worker::new(&case), Ok) {
                Ok(new) => worker.insert(new),
                Err(error) => return Err(Error::io(NO_DISK)(error)),
            };
            let checked = worker.check(&state.name, state.position);
            if let Checked::Judged(judgement) = &checked
                && !judgement.kept()
                && worst.is_none()
            {
                worst = Some((state, judgement.clone()));
            }
            say(Heard::State(named(state.name), checked));
        }
        drop(worker);
        if let Some((state, judgement)) = worst
            && !self.stop.is_requested()
            && !is_shortened.swap(true, Ordering::Relaxed)
        {
            let failing = self.shorter(&case, first, state, judgement)?;
            say(Heard::Shortened(failing));
        }
        Ok(())
    }

    /// Records one recovery; or says what became of the state if it was not whole. One that fails recovers once more: what
    /// fails only once says nothing about power cuts.
    fn recover(&self, first: &CrashState) -> Result<Result<Recovery, Checked>, Error> {
        let once = || -> Result<Result<Recovery, Checked>, Error> {
            let worker = Worker::new(self.case);
            let mut worker = worker.map_err(Error::io(NO_DISK))?;
            let recovery = worker.record_recovery(&first.name, first.position);
            Ok(recovery.map_err(Checked::Unchecked))
        };
        let recovery = match once()? {
            Ok(recovery) => recovery,
            Err(why) => return Ok(Err(why)),
        };
        let failed = match recovery.checked {
            Checked::Judged(ref judgement) if judgement.kept() => return Ok(Ok(recovery)),
            Checked::Judged(judgement) => judgement,
            why => return Ok(Err(why)),
        };
        let again = once()?.map_or_else(|why| why, |again| again.checked);
        Ok(Err(match again {
            Checked::Judged(judgement) if judgement.kept() => failed_once(&first.name, &failed),
            again => again,
        }))
    }

    /// A state of a first cut that failed as it recovered, as it is shown. It is not made shorter: of a recovery that is
    /// recorded more is asked than of others.
    fn shown_first(
        &self,
        first: &CrashState,
        judgement: &Judgement,
    ) -> Result<FailingState, Error> {
        self.save(self.case, first)?;
        let (recording, layout) = (self.case.recording, Layout::default());
        let name = CutName {
            first: first.name,
            second: match self.wanted {
                Wanted::Only(second) => Some(second),
                Wanted::Most(_) => None,
            },
        };
        let mut failing = failing(recording, &layout, &name, first, judgement, self.again)?;
        let seen = "that was seen as its recovery was recorded, to be cut off";
        failing.details.push(seen.to_owned());
        Ok(failing)
    }

    /// Keeps the image of a state, if one is wanted.
    fn save(&self, case: &Case<'_>, state: &CrashState) -> Result<(), Error> {
        let Some(path) = self.keep_image else {
            return Ok(());
        };
        let saved = Worker::new(case).and_then(|mut worker| {
            worker.load(&state.name)?;
            worker.save(path)
        });
        saved.map_err(Error::io(format!("cannot write {}", path.display())))
    }

    /// The states of a recovery that are tried, `most` of them, and how many are left out since the superblock is torn in them. Without the
    /// one in which nothing of the recovery arrived: that is the first cut's.
    fn states(
        &self,
        recording: &Recording,
        first: &CrashState,
        most: usize,
    ) -> Result<(Vec<CrashState>, usize), Error> {
        // Recoveries are much alike: with one seed the same few moments of all would be tried.
        let seed = self.seed.wrapping_add(first.position as u64);
        let cannot_plan = Error::io("cannot plan the crash states");
        let survey = match self.wanted {
            Wanted::Only(name) => {
                return match Survey::only(recording, name) {
                    Ok(survey) => Ok((survey.states, 0)),
                    Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(Error::Usage(
                        format!("the recovery has no such state this time: {error}"),
                    )),
                    Err(error) => Err(cannot_plan(error)),
                };
            }
            Wanted::Most(_) if self.model == Model::Subset => {
                Survey::representative(recording, &Layout::default(), seed, 2 * OF_ONE)
            }
            Wanted::Most(_) => Survey::of(recording, self.model, seed, 2 * OF_ONE),
        };
        let tried = survey.and_then(|survey| self.tried(recording, survey, most));
        tried.map_err(cannot_plan)
    }

    fn tried(
        &self,
        recording: &Recording,
        survey: Survey,
        most: usize,
    ) -> io::Result<(Vec<CrashState>, usize)> {
        // The first of a survey of any order stand for many; of others all are alike.
        let leading = match self.model {
            Model::Subset => survey.leading,
            _ => survey.states.len(),
        };
        let mut walker = Walker::new(recording)?;
        let mut left_out = 0;
        let tried = picked(&survey.states, leading, most, |state| {
            if state.image == Identity::BASE {
                return Ok(false);
            }
            let fates = walker.fates(&state.name)?;
            let is_torn = is_torn(self.case.filesystem.kind, recording, &fates);
            left_out += usize::from(is_torn);
            Ok(!is_torn)
        })?;
        Ok((tried, left_out))
    }

    fn shorter(
        &self,
        case: &Case<'_>,
        first: &CrashState,
        state: CrashState,
        judgement: Judgement,
    ) -> Result<FailingState, Error> {
        let shorter = match self.wanted {
            // It was asked for, and no other one.
            Wanted::Only(_) => None,
            Wanted::Most(_) if self.is_over() => None,
            Wanted::Most(_) => shorten(case, &state, judgement.worst(), self.model, self.stop)
                .map_err(Error::io("cannot shorten the failing state"))?,
        };
        let (state, judgement) = shorter.unwrap_or((state, judgement));
        self.save(case, &state)?;
        let name = CutName {
            first: first.name,
            second: Some(state.name),
        };
        // A recovery moves files, and none was looked for.
        let layout = Layout::default();
        let recording = case.recording;
        let mut failing = failing(recording, &layout, &name, &state, &judgement, self.again)?;
        failing.details.insert(
            0,
            format!(
                "the power had gone in {}, and went again while filesystem and subject recovered from that",
                first.name
            ),
        );
        Ok(failing)
    }
}

/// How many of `most` states were not tried since the time was up, before so many recoveries were recorded.
fn untried(most: usize, planned: u64, recoveries: usize) -> u64 {
    let wanted = (most as u64).saturating_sub(planned);
    wanted.min((recoveries * OF_ONE) as u64)
}

/// So many of those that are wanted: from all over those that lead, and of the rest only where these are too few.
fn picked<T: Copy>(
    all: &[T],
    leading: usize,
    most: usize,
    mut is_wanted: impl FnMut(&T) -> io::Result<bool>,
) -> io::Result<Vec<T>> {
    let mut picked = Vec::new();
    for (place, one) in all.iter().enumerate() {
        if place >= leading && picked.len() >= most {
            break;
        }
        if is_wanted(one)? {
            picked.push(*one);
        }
    }
    Ok(evenly(picked, most))
}

/// So many of them, from all over, the last among them.
fn evenly<T: Copy>(all: Vec<T>, most: usize) -> Vec<T> {
    if all.len() <= most {
        return all;
    }
    (1..=most).map(|n| all[n * all.len() / most - 1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_and_not_begun_when_the_time_was_up_is_untried() {
        assert_eq!(untried(200, 0, 1000), 200);
        assert_eq!(untried(200, 150, 1000), 50);
        // There are no more than those of one recovery.
        assert_eq!(untried(200, 150, 1), OF_ONE as u64);
        assert_eq!(untried(200, 150, 0), 0);
        assert_eq!(untried(200, 203, 1000), 0);
    }

    #[test]
    fn states_are_from_all_over_a_recovery_and_in_order() {
        let all: Vec<u32> = (1..=16).collect();
        assert_eq!(evenly(all.clone(), 8), [2, 4, 6, 8, 10, 12, 14, 16]);
        assert_eq!(evenly(all.clone(), 3), [5, 10, 16]);
        assert_eq!(evenly(all.clone(), 1), [16]);
        assert_eq!(evenly(all.clone(), 16), all);
        assert_eq!(evenly(all[..3].to_vec(), 8), [1, 2, 3]);
        assert!(evenly(all, 0).is_empty() && evenly(Vec::<u32>::new(), 8).is_empty());
    }

    #[test]
    fn those_that_lead_are_from_all_over_and_the_rest_fills_up() {
        let all: Vec<u32> = (1..=16).collect();
        let picked = |leading, most| {
            let is_wanted = |one: &u32| Ok(*one != 2);
            picked(&all, leading, most, is_wanted).unwrap()
        };
        // They are by epoch: the first of them are all from the beginning.
        assert_eq!(picked(12, 4), [3, 6, 9, 12]);
        assert_eq!(picked(4, 3), [1, 3, 4]);
        assert_eq!(picked(4, 6), [1, 3, 4, 5, 6, 7]);
    }
}
