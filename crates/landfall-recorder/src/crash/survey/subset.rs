//! The states of a disk that writes in any order.
//!
//! First the extremes: nothing arrived, everything, everything but one write, one write alone. Then all
//! subsets of whole writes and all subsets of fragments, where they fit the epoch's share; else as
//! many draws as do. Where not even the extremes fit, every other state is drawn nevertheless: extremes
//! have no torn writes.

use fastrand::Rng;

use super::budget::some;
use super::collection::Collection;
use super::{CrashState, Figures};
use crate::crash::changes::{Changes, Selected};
use crate::crash::identity::Delta;
use crate::crash::sample::sample;
use crate::crash::{Choice, StateName, Walker};

/// Bits in a name.
const BITS: usize = 64;

/// What an epoch gets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// States that no epoch before had.
    pub states: usize,
    /// Draws, of which some may be of no use.
    pub draws: usize,
}

/// How many states of the epoch are of use, if so many may be drawn.
pub(super) fn wanted(figures: &Figures, draws: usize) -> usize {
    let most = if figures.fragments <= BITS {
        usize::MAX
    } else {
        draws.saturating_add(extremes(figures))
    };
    // Saturates.
    most.min(figures.images as usize)
}

fn extremes(figures: &Figures) -> usize {
    match figures.changing {
        0 => 1,
        1 => 2,
        several => 2 + 2 * several,
    }
}

/// Adds the states of the epoch in which the walker is. Returns whether all subsets of whole writes are among them.
pub(super) fn add(
    walker: &Walker<'_>,
    seed: u64,
    figures: &Figures,
    share: Share,
    random: &mut Rng,
    found: &mut Collection,
) -> bool {
    let changes = walker.changes();
    let epoch = walker.epoch();
    let room = share.states;
    let state = |choice, selected: Selected| CrashState {
        name: StateName {
            seed,
            cut: epoch.cut,
            choice,
        },
        position: epoch.events.end,
        image: selected.image,
        omitted: selected.omitted,
    };
    let all_fit = figures.images <= room as f64;

    let extremes = extreme_choices(figures.writes, changes);
    let all_extremes = all_fit || extremes.len() <= room;
    let few = if all_extremes {
        extremes.len()
    } else {
        (room + usize::from(random.bool())) / 2
    };
    let extreme = Extreme::new(walker);
    for choice in some(few, extremes, random) {
        found.add(state(choice, extreme.select(choice)), !all_extremes);
    }

    let all_writes = figures.writes <= BITS
        && figures.changing < usize::BITS as usize
        && 1 << figures.changing <= room;
    if all_writes {
        let changing: Vec<u32> = changes.changing_writes().collect();
        for number in 0..1_u64 << changing.len() {
            let bits = spread(number, &changing);
            let arrived = |change: usize| bits >> changes.list()[change].write & 1 == 1;
            let selected = changes.select(walker.durable(), arrived);
            found.add(state(Choice::Writes(bits), selected), false);
        }
    }

    if all_fit
        && changes.fragments() <= BITS
        && let Some(images) = images(changes)
    {
        for (bits, delta) in images {
            let missing = (0..changes.fragments()).filter(|fragment| bits >> fragment & 1 == 0);
            let omitted: usize = missing.map(|n| changes.of_fragment(n).len()).sum();
            let selected = Selected {
                image: walker.durable().with(delta),
                omitted: omitted as u32,
            };
            found.add(state(Choice::Sectors(bits), selected), false);
        }
    }

    let mut draws = 0..u32::try_from(share.draws).unwrap_or(u32::MAX);
    while found.epoch().new < room
        && (found.epoch().images as f64) < figures.images
        && let Some(number) = draws.next()
    {
        let arrived = sample(changes, seed, epoch.cut, number);
        let selected = changes.select(walker.durable(), |change| arrived[change]);
        found.add(state(Choice::Drawn(number), selected), true);
    }
    all_writes
}

fn extreme_choices(writes: usize, changes: &Changes) -> Vec<Choice> {
    let changing: Vec<u32> = changes.changing_writes().collect();
    let mut choices = vec![Choice::None];
    if !changing.is_empty() {
        choices.push(Choice::First {
            writes: writes as u32,
            sectors: 0,
        });
    }
    if changing.len() > 1 {
        choices.extend(changing.iter().copied().map(Choice::Without));
        choices.extend(changing.into_iter().map(Choice::Only));
    }
    choices
}

/// What extremes make, at the cost of the one write that makes the difference.
struct Extreme<'a> {
    changes: &'a Changes,
    none: Selected,
    all: Selected,
}

impl<'a> Extreme<'a> {
    fn new(walker: &'a Walker<'_>) -> Extreme<'a> {
        let changes = walker.changes();
        Extreme {
            changes,
            none: Selected {
                image: walker.durable(),
                omitted: changes.len(),
            },
            all: Selected {
                image: changes.all(walker.durable()),
                omitted: 0,
            },
        }
    }

    fn select(&self, choice: Choice) -> Selected {
        let list = self.changes.list();
        match choice {
            Choice::Only(write) => {
                let own = self.changes.of_write(write as usize);
                let deltas = list[own.clone()].iter().map(|change| change.delta);
                Selected {
                    image: self.none.image.with(deltas.fold(Delta::NONE, Delta::and)),
                    omitted: self.none.omitted - own.len() as u32,
                }
            }
            Choice::Without(write) => {
                let own = self.changes.of_write(write as usize);
                let omitted = own.len() as u32;
                // What was overwritten anyway makes no difference.
                let steps = own.filter(|&change| list[change].is_last);
                let steps = steps.map(|change| self.changes.step(change));
                Selected {
                    image: self.all.image.with(steps.fold(Delta::NONE, Delta::and)),
                    omitted,
                }
            }
            Choice::None => self.none,
            _ => self.all,
        }
    }
}

/// The lowest bits of `number`, each at its place.
fn spread(number: u64, places: &[u32]) -> u64 {
    let bit = |(n, place): (usize, &u32)| (number >> n & 1) << place;
    places.iter().enumerate().map(bit).sum()
}

/// Every image of at most 64 fragments once, with those that arrived as bits: for each unit what was
/// durable, or one of its contents. `None` if a unit has too many fragments to try all.
fn images(changes: &Changes) -> Option<Vec<(u64, Delta)>> {
    let mut images = vec![(0, Delta::NONE)];
    for unit in changes.units() {
        let places: Vec<u32> = unit.iter().map(|&fragment| fragment as u32).collect();
        let contents = changes.contents(&unit)?;
        let contents: Vec<(u64, Delta)> = contents
            .into_iter()
            .map(|(bits, delta)| (spread(bits, &places), delta))
            .collect();
        images = images
            .iter()
            .flat_map(|&(bits, delta)| {
                let and = move |&(more, other): &(u64, Delta)| (bits | more, delta.and(other));
                contents.iter().map(and)
            })
            .collect();
    }
    Some(images)
}
