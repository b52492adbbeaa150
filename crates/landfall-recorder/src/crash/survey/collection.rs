//! The states that were found, each image once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::CrashState;
use crate::crash::{Identity, StateName};

/// States, of which no two have the same image.
#[derive(Debug, Default)]
pub(super) struct Collection {
    states: Vec<Found>,
    by_image: HashMap<Identity, usize>,
    epoch: Epoch,
    /// States that have another's image, and happen at another moment.
    pub duplicates: usize,
}

#[derive(Debug)]
struct Found {
    state: CrashState,
    by_chance: bool,
}

/// What was found in the current epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Epoch {
    cut: u32,
    /// Different images.
    pub images: usize,
    /// Those of them that no earlier epoch had.
    pub new: usize,
}

impl Collection {
    /// What is added from now on is of this epoch, which comes after those before.
    pub fn begin(&mut self, cut: u32) {
        self.epoch = Epoch {
            cut,
            ..Epoch::default()
        };
    }

    /// What was found in this epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Adds a state of this epoch. Of two with the same image the later one stays: before it more was
    /// acknowledged. Of two at the same moment the first one stays.
    pub fn add(&mut self, state: CrashState, by_chance: bool) {
        let found = Found { state, by_chance };
        match self.by_image.entry(state.image) {
            Entry::Vacant(entry) => {
                entry.insert(self.states.len());
                self.states.push(found);
                self.epoch.images += 1;
                self.epoch.new += 1;
            }
            Entry::Occupied(entry) => {
                let before = &mut self.states[*entry.get()];
                if before.state.name.cut != self.epoch.cut {
                    self.epoch.images += 1;
                }
                if before.state.position != state.position {
                    self.duplicates += 1;
                }
                if before.state.position < state.position {
                    *before = found;
                }
            }
        }
    }

    /// All of them, by epoch and choice, and how many of them chance picked.
    pub fn finish(self) -> (Vec<CrashState>, usize) {
        let by_chance = self.states.iter().filter(|found| found.by_chance).count();
        let mut states: Vec<_> = self.states.into_iter().map(|found| found.state).collect();
        states.sort_unstable_by_key(|state| {
            let StateName { cut, choice, .. } = state.name;
            (cut, choice)
        });
        (states, by_chance)
    }
}
