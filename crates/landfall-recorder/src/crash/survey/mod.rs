//! Which crash states of a recording are tried.
//!
//! An epoch in which `n` sectors are changed has up to 2^n states. Most epochs have few, and get them
//! all; of the others as many are tried as a limit on all of them allows, which small epochs leave to
//! large ones. The same seed gives the same states.
//!
//! Equal images are checked once, with the latest moment at which the disk could have held them, since
//! most was acknowledged by then. What a program may have lost at an earlier moment it has lost at the
//! later one too, unless it takes back what it acknowledged, or acknowledges the same value again after
//! another: a workload that never repeats a value does neither.
//!
//! The recording is read twice: first to see how large the epochs are, then to list their states. States
//! are at most the limit, of 64 bytes each and as much again to find equal ones.
//!
//! They are tried by epoch, or those first that [stand for many](representative): then the recording is read twice more.

mod budget;
mod collection;
mod order;
mod prefix;
mod representative;
mod subset;
#[cfg(test)]
mod tests;

use std::io;

use fastrand::Rng;
use twox_hash::XxHash3_128;

use super::composition::position;
use super::identity::seed_of;
use super::{Choice, Identity, Layout, Model, StateName, Walker};
use crate::Recording;
use budget::{shares, spaced};
use collection::Collection;
pub use order::Order;
use order::joined;

/// Changes looked at for draws, over the whole survey: some seconds' worth. Without this, a million
/// draws from an epoch of a million changes would take hours, and days to be tried.
const MOST_STEPS: usize = 1 << 30;

/// A crash state that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashState {
    /// From which it can be made.
    pub name: StateName,
    /// `events[..position]` of the recording happened before the cut, as far as marks are concerned.
    pub position: usize,
    /// What the disk holds.
    pub image: Identity,
    /// Changed sectors that did not arrive.
    pub omitted: u32,
}

/// How much of what is possible is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Epochs of the recording.
    pub epochs: usize,
    /// Those of them that any states were taken from.
    pub surveyed: usize,
    /// Those of which every subset of whole writes is tried.
    pub whole_writes: usize,
    /// Those of which every subset of changed sectors is tried.
    pub changed_sectors: usize,
    /// States that chance picked, where there are too many.
    pub sampled: usize,
    /// States that are not tried because a later one has the same image.
    pub duplicates: usize,
    /// States that the model has in all, counting different images of each epoch; at most
    /// [`f64::MAX`].
    pub possible: f64,
}

/// The crash states of a recording that are tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// In the order in which they are tried; no two have the same image.
    pub states: Vec<CrashState>,
    /// How many of them are tried first since they stand for many; those after them are by epoch and choice.
    pub leading: usize,
    /// How much of what is possible they are.
    pub coverage: Coverage,
}

/// How large an epoch is.
#[derive(Clone, Copy, Debug)]
struct Figures {
    writes: usize,
    /// Writes that change something.
    changing: usize,
    /// Changed sectors.
    sectors: u32,
    /// What of them arrives together.
    fragments: usize,
    /// Different images.
    images: f64,
    /// States of a disk that writes in order: between two writes.
    between: usize,
    /// And in the midst of a write.
    inside: usize,
}

/// What an epoch gets.
#[derive(Clone, Copy, Debug)]
enum Share {
    Flushed,
    Prefix(prefix::Share),
    Subset(subset::Share),
}

impl Survey {
    /// One state alone.
    ///
    /// Fails as [`Walker::composition`] does.
    pub fn only(recording: &Recording, name: StateName) -> io::Result<Survey> {
        let mut walker = Walker::new(recording)?;
        let composition = walker.composition(&name)?;
        Ok(Survey {
            states: vec![CrashState {
                name,
                position: composition.position,
                image: composition.image,
                omitted: composition.omitted,
            }],
            leading: 0,
            coverage: Coverage {
                epochs: walker.epochs().len(),
                surveyed: 1,
                whole_writes: 0,
                changed_sectors: 0,
                sampled: 0,
                duplicates: 0,
                possible: 1.0,
            },
        })
    }

    /// The states of a disk that writes in any order, those first that stand for many (one of each kind of write): at most half of
    /// `limit`, if not all that are possible can be tried. The rest is as in [`of`](Survey::of).
    ///
    /// Fails as [`of`](Survey::of) does.
    pub fn representative(
        recording: &Recording,
        layout: &Layout,
        seed: u64,
        limit: usize,
    ) -> io::Result<Survey> {
        let mut walker = Walker::new(recording)?;
        let mut first = representative::states(&mut walker, layout, seed, limit)?;
        let survey = Survey::of(recording, Model::Subset, seed, limit)?;
        if survey.states.len() < limit {
            // Those that stand for many are among them, unless it would have taken long to list them all.
            first.truncate(limit);
            let rest = survey.states;
            return Ok(joined(first, rest, survey.coverage, limit));
        }
        first.truncate(limit / 2);
        let rest = Survey::of(recording, Model::Subset, seed, limit - first.len())?;
        // Where some of the rest were among the first, there is room for more.
        let more = rest.states.into_iter().chain(survey.states).collect();
        Ok(joined(first, more, rest.coverage, limit))
    }

    /// The states of `model` that are tried, at most `limit`: fewer if there are fewer, or if it would
    /// take long to draw so many from epochs of very many changes. They are in order of epoch and choice.
    ///
    /// Fails as [`epochs`](super::epochs) does, or if the recording cannot be read.
    pub fn of(recording: &Recording, model: Model, seed: u64, limit: usize) -> io::Result<Survey> {
        let mut walker = Walker::new(recording)?;
        let mut figures = Vec::with_capacity(walker.epochs().len());
        for epoch in 0..walker.epochs().len() {
            walker.go_to(epoch)?;
            figures.push(Figures::of(&walker));
        }
        let mut random = Rng::with_seed(seed_of(&[seed]));
        // Every epoch gets a state at least, or else only some epochs get any.
        let places = spaced(limit, figures.len(), &mut random);
        let chosen: Vec<Figures> = places.iter().map(|&epoch| figures[epoch]).collect();
        let mut coverage = Coverage {
            epochs: figures.len(),
            surveyed: places.len(),
            whole_writes: 0,
            changed_sectors: 0,
            sampled: 0,
            duplicates: 0,
            possible: possible(model, &figures),
        };
        let mut found = Collection::default();
        for (epoch, share) in places.into_iter().zip(divide(model, limit, &chosen)) {
            walker.go_to(epoch)?;
            let figures = &figures[epoch];
            let cut = walker.epoch().cut;
            found.begin(cut);
            let mut random = Rng::with_seed(seed_of(&[seed, cut.into()]));
            let whole_writes = match share {
                Share::Flushed => {
                    found.add(flushed(&walker, seed), false);
                    figures.changing == 0
                }
                Share::Prefix(share) => {
                    let all = prefix::add(&walker, seed, share, &mut random, &mut found);
                    all && figures.changing <= 1
                }
                Share::Subset(share) => {
                    subset::add(&walker, seed, figures, share, &mut random, &mut found)
                }
            };
            let all = found.epoch().images as f64 >= figures.images;
            coverage.changed_sectors += usize::from(all);
            coverage.whole_writes += usize::from(all || whole_writes);
        }
        coverage.duplicates = found.duplicates;
        let (states, sampled) = found.finish();
        coverage.sampled = sampled;
        Ok(Survey {
            states,
            leading: 0,
            coverage,
        })
    }
}

impl Survey {
    /// What tells lists of states apart: equal for equal names in the same order. Of a list that is dealt out each who
    /// makes it must have the same.
    pub fn digest(&self) -> u128 {
        let mut hasher = XxHash3_128::new();
        for state in &self.states {
            hasher.write(format!("{}\n", state.name).as_bytes());
        }
        hasher.finish_128()
    }
}

impl Figures {
    fn of(walker: &Walker<'_>) -> Figures {
        let changes = walker.changes();
        Figures {
            writes: walker.epoch().writes.len(),
            changing: changes.changing_writes().count(),
            sectors: changes.len(),
            fragments: changes.fragments(),
            images: changes.images(),
            between: prefix::between(walker).count(),
            inside: prefix::inside(walker).count(),
        }
    }
}

/// How many states a model has in all.
fn possible(model: Model, figures: &[Figures]) -> f64 {
    let of_epoch = |figures: &Figures| match model {
        Model::Flushed => 1.0,
        Model::Prefix => (figures.between + figures.inside) as f64,
        Model::Subset => figures.images,
    };
    figures.iter().map(of_epoch).sum::<f64>().min(f64::MAX)
}

/// What each epoch gets; there are no more of them than the limit.
fn divide(model: Model, limit: usize, epochs: &[Figures]) -> Vec<Share> {
    let among = |limit, wants: &dyn Fn(&Figures) -> usize| {
        shares(limit, &epochs.iter().map(wants).collect::<Vec<_>>())
    };
    match model {
        Model::Flushed => vec![Share::Flushed; epochs.len()],
        Model::Prefix => {
            let between = among(limit, &|epoch| epoch.between);
            let left = limit - between.iter().sum::<usize>();
            let inside = among(left, &|epoch| epoch.inside);
            let both = between.into_iter().zip(inside);
            both.map(|(between, inside)| Share::Prefix(prefix::Share { between, inside }))
                .collect()
        }
        Model::Subset => {
            // Each draw costs a look at every change; all else costs next to nothing.
            let changes: usize = epochs.iter().map(|epoch| epoch.sectors as usize).sum();
            let draws = MOST_STEPS / changes.max(1);
            let states = among(limit, &|epoch| subset::wanted(epoch, draws));
            let share = |states| Share::Subset(subset::Share { states, draws });
            states.into_iter().map(share).collect()
        }
    }
}

/// Nothing arrived that was not flushed.
fn flushed(walker: &Walker<'_>, seed: u64) -> CrashState {
    let epoch = walker.epoch();
    let choice = Choice::None;
    CrashState {
        name: StateName {
            seed,
            cut: epoch.cut,
            choice,
        },
        position: position(epoch, choice),
        image: walker.durable(),
        omitted: walker.changes().len(),
    }
}
