//! The states of a disk that writes in order, and has no volatile cache: what it has answered is there.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::CrashState;
use super::budget::some;
use super::collection::Collection;
use crate::crash::composition::position;
use crate::crash::{Choice, StateName, Walker};

/// How many states an epoch gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Between writes.
    pub between: usize,
    /// In the midst of a write.
    pub inside: usize,
}

/// How many writes of the walker's epoch may be there, whole and before all others. Those that came before a write that is
/// durable are.
pub(super) fn between(walker: &Walker<'_>) -> RangeInclusive<usize> {
    let epoch = walker.epoch();
    epoch.overtaken()..=epoch.writes.len()
}

/// How many of its changes may be there in the midst of a write, where no state between two writes is equal: a write is
/// cut after each of its fragments but the last.
pub(super) fn inside(walker: &Walker<'_>) -> impl Iterator<Item = usize> {
    let changes = walker.changes();
    let epoch = walker.epoch();
    let writes = epoch.overtaken()..epoch.writes.len();
    writes
        .flat_map(|write| changes.fragments_of_write(write).skip(1))
        .map(|fragment| changes.of_fragment(fragment).start)
}

/// Adds the states of the epoch in which the walker is. Returns whether they have every number of first
/// writes, from none to all.
pub(super) fn add(
    walker: &Walker<'_>,
    seed: u64,
    share: Share,
    random: &mut Rng,
    found: &mut Collection,
) -> bool {
    let changes = walker.changes();
    let epoch = walker.epoch();
    // The images after so many changes.
    let mut images = vec![walker.durable()];
    images.extend(
        (0..changes.list().len()).scan(walker.durable(), |image, change| {
            *image = image.with(changes.step(change));
            Some(*image)
        }),
    );
    let state = |writes: usize, sectors: u32, arrived: usize| {
        let writes = writes as u32;
        let choice = Choice::First { writes, sectors };
        let cut = epoch.cut;
        CrashState {
            name: StateName { seed, cut, choice },
            position: position(epoch, choice),
            image: images[arrived],
            omitted: changes.len() - arrived as u32,
        }
    };
    let writes = epoch.writes.len();
    let between: Vec<usize> = between(walker).collect();
    let all_first = between.len() == writes + 1;
    let all_between = share.between >= between.len();
    for write in some(share.between, between, random) {
        let arrived = if write < writes {
            changes.of_write(write).start
        } else {
            changes.list().len()
        };
        found.add(state(write, 0, arrived), !all_between);
    }
    let inside: Vec<usize> = inside(walker).collect();
    let all_inside = share.inside >= inside.len();
    for arrived in some(share.inside, inside, random) {
        let last = &changes.list()[arrived - 1];
        found.add(
            state(last.write as usize, last.place + 1, arrived),
            !all_inside,
        );
    }
    all_between && all_first
}
