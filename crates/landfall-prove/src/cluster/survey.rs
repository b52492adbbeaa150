//! Which states of a cluster are tried.
//!
//! Moments are tried right after each acknowledgement, when most has been promised, and right before each flush, when most can
//! be missing. At each, disks lose everything, or nothing, or each of them alone does, or what chance draws. Of equal disks and
//! boots the latest moment is tried, when most was acknowledged.
//!
//! Where some nodes keep their power the moment is that at which all were killed: earlier ones would have gone on.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::str::FromStr;

use fastrand::Rng;
use landfall_recorder::SiteRecording;
use landfall_recorder::crash::{Choice, Identity, Model, StateName, Walker};

use super::name::{Boot, ClusterStateName, Fate};
use super::rolling;
use crate::explore::spread;
use crate::history::History;

/// Which nodes lose power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// All of them, at any moment.
    All,
    /// Some of them, when all are killed.
    Some,
    /// Both: half of the states each.
    Both,
    /// All of them, one after the other, while those that are left go on.
    Rolling,
}

impl fmt::Display for Cuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cuts::All => "all",
            Cuts::Some => "some",
            Cuts::Both => "both",
            Cuts::Rolling => "rolling",
        })
    }
}

impl FromStr for Cuts {
    type Err = String;

    fn from_str(text: &str) -> Result<Cuts, String> {
        let mut all = [Cuts::All, Cuts::Some, Cuts::Both, Cuts::Rolling].into_iter();
        let found = all.find(|cuts| cuts.to_string() == text);
        found.ok_or_else(|| "it is one of: all, some, both, rolling".to_owned())
    }
}

/// A state that is tried.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub name: ClusterStateName,
}

/// What is tried, and of how many.
pub(super) struct Survey {
    /// By moment.
    pub states: Vec<Planned>,
    /// Moments at which the power is cut.
    pub moments: usize,
    /// States that another one equals.
    pub equal: usize,
    /// Those that chance picked.
    pub drawn: usize,
}

impl Survey {
    /// One state alone.
    pub fn only(name: &ClusterStateName) -> Survey {
        let name = name.clone();
        Survey {
            states: vec![Planned { name }],
            moments: 1,
            equal: 0,
            drawn: 0,
        }
    }
}

/// What is asked for.
pub(super) struct Wanted<'a> {
    pub cuts: Cuts,
    pub model: Model,
    pub boots: &'a [Boot],
    pub seed: u64,
    pub states: usize,
    pub killed_at: usize,
    /// Nodes that ended before the others, and when.
    pub ended: &'a [(usize, usize)],
}

/// How a disk may be cut, as asked for: what that is at a moment depends on what it has not flushed.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Everything,
    Nothing,
    Drawn(u32),
}

pub(super) fn survey(
    site: &SiteRecording,
    history: &History,
    wanted: &Wanted<'_>,
) -> io::Result<Survey> {
    let walkers = site.devices().iter().map(Walker::new);
    let mut surveyor = Surveyor {
        site,
        walkers: walkers.collect::<io::Result<_>>()?,
        wanted,
        known: HashMap::new(),
        equal: 0,
        drawn: 0,
    };
    let (all, some) = match wanted.cuts {
        Cuts::All | Cuts::Rolling => (wanted.states, 0),
        Cuts::Some => (0, wanted.states),
        Cuts::Both => (wanted.states, wanted.states / 2),
    };
    // First, as there are few different ones: all nodes get what is left.
    if some > 0 {
        surveyor.some_nodes(some)?;
    }
    if all > 0 {
        surveyor.all_nodes(&moments(site, history, wanted), all)?;
    }
    let Surveyor {
        known,
        equal,
        drawn,
        ..
    } = surveyor;
    let mut states: Vec<Planned> = known.into_values().collect();
    let moments: BTreeSet<usize> = states.iter().map(|state| state.name.moment).collect();
    // A disk that goes back begins again: all are in the order of moments, and then by who lost power.
    states.sort_by(|a, b| {
        let key = |one: &Planned| {
            let kept = one.name.fates.iter().map(|fate| *fate == Fate::Kept);
            (
                one.name.moment,
                kept.collect::<Vec<bool>>(),
                one.name.clone(),
            )
        };
        key(a).cmp(&key(b))
    });
    Ok(Survey {
        states,
        moments: moments.len(),
        equal,
        drawn,
    })
}

/// The moments at which it matters most that the power goes.
fn moments(site: &SiteRecording, history: &History, wanted: &Wanted<'_>) -> Vec<usize> {
    let killed_at = wanted.killed_at;
    // Before the first node ended all were there, which is another question.
    let begin = wanted.ended.first().map_or(0, |(_, at)| *at);
    let mut moments: BTreeSet<usize> = history.acknowledgements().map(|(_, at)| at).collect();
    for (place, (device, event)) in site.in_order().enumerate() {
        if site.devices()[device].events()[event].kind.ends_epoch() {
            moments.insert(place);
        }
    }
    moments.insert(killed_at);
    moments
        .into_iter()
        .filter(|moment| (begin..=killed_at).contains(moment))
        .collect()
}

struct Surveyor<'a> {
    site: &'a SiteRecording,
    walkers: Vec<Walker<'a>>,
    wanted: &'a Wanted<'a>,
    known: HashMap<(Vec<Identity>, Vec<bool>, Boot), Planned>,
    equal: usize,
    drawn: usize,
}

impl Surveyor<'_> {
    /// States of which all nodes lost power.
    fn all_nodes(&mut self, moments: &[usize], most: usize) -> io::Result<()> {
        let nodes = self.walkers.len();
        let boots = self.wanted.boots;
        // That everything is lost, with each boot, is half of what is tried; where not every moment can have that, they are from
        // all over the recording. The last is among them: most was acknowledged by then.
        let left = most.saturating_sub(self.known.len());
        // Where a disk keeps nothing else there is nothing else to try.
        let rest = if self.wanted.model == Model::Flushed {
            1
        } else {
            2
        };
        let share = moments.len().min(left.div_ceil(rest * boots.len()));
        let mut chosen: Vec<usize> = (1..=share)
            .map(|n| moments[n * moments.len() / share - 1])
            .collect();
        let only = |node: usize, loss: Loss, others: Loss| -> Vec<Loss> {
            (0..nodes)
                .map(|one| if one == node { loss } else { others })
                .collect()
        };
        let mut rounds = vec![vec![Loss::Everything; nodes], vec![Loss::Nothing; nodes]];
        for node in 0..nodes {
            rounds.push(only(node, Loss::Everything, Loss::Nothing));
            rounds.push(only(node, Loss::Nothing, Loss::Everything));
        }
        let mut random = Rng::with_seed(self.wanted.seed);
        let mut barren = 0;
        let mut round = 0;
        // Rounds that find nothing new for long have found all that there is at these moments.
        while self.known.len() < most {
            if barren == 8 {
                if chosen.len() == moments.len() {
                    break;
                }
                // However early there are enough, they are from all over the recording.
                chosen = spread(moments);
                (round, barren) = (0, 0);
            }
            let before = self.known.len();
            for (place, &moment) in chosen.iter().enumerate() {
                if self.known.len() >= most {
                    break;
                }
                let losses = match rounds.get(round) {
                    Some(losses) => losses.clone(),
                    None => (0..nodes).map(|_| drawn(&mut random, round)).collect(),
                };
                // That all lose everything is tried with each boot; others take turns.
                let each = if round == 0 { boots.len() } else { 1 };
                for turn in 0..each.min(most - self.known.len()) {
                    let boot = &boots[(place + round + turn) % boots.len()];
                    let losses: Vec<Option<Loss>> = losses.iter().copied().map(Some).collect();
                    self.add(moment, &losses, boot)?;
                }
            }
            let has_found = self.known.len() > before;
            barren = if has_found || round < rounds.len() {
                0
            } else {
                barren + 1
            };
            round += 1;
            if self.wanted.model == Model::Flushed {
                break;
            }
        }
        Ok(())
    }

    /// States of which some nodes lost power.
    fn some_nodes(&mut self, most: usize) -> io::Result<()> {
        let nodes = self.walkers.len();
        let all = (1_u32 << nodes) - 1;
        let mut sets: Vec<u32> = (1..all).collect();
        sets.sort_by_key(|set| (set.count_ones(), *set));
        let mut random = Rng::with_seed(self.wanted.seed ^ 1);
        let mut barren = 0;
        let mut round = 0;
        while self.known.len() < most && barren < 8 {
            let before = self.known.len();
            for boot in self.wanted.boots {
                for set in &sets {
                    if self.known.len() >= most {
                        return Ok(());
                    }
                    let losses = (0..nodes).map(|node| {
                        let loss = match round {
                            0 => Loss::Everything,
                            1 => Loss::Nothing,
                            _ => drawn(&mut random, round),
                        };
                        (set >> node & 1 == 1).then_some(loss)
                    });
                    let losses: Vec<Option<Loss>> = losses.collect();
                    self.add(self.wanted.killed_at, &losses, boot)?;
                }
            }
            barren = if self.known.len() > before {
                0
            } else {
                barren + 1
            };
            round += 1;
            if self.wanted.model == Model::Flushed {
                break;
            }
        }
        Ok(())
    }

    /// Adds a state; `None`: that node keeps its power.
    fn add(&mut self, moment: usize, losses: &[Option<Loss>], boot: &Boot) -> io::Result<()> {
        let cut = rolling::cut(self.site, self.wanted.ended, moment);
        let (mut fates, mut images) = (Vec::new(), Vec::new());
        let mut is_drawn = false;
        for (node, loss) in losses.iter().enumerate() {
            let walker = &mut self.walkers[node];
            let Some(loss) = loss else {
                let end = self.site.devices()[node].events().len();
                let name = node_state(walker, self.wanted.seed, Fate::Kept, end);
                images.push(walker.composition_before(&name, end)?.image);
                fates.push(Fate::Kept);
                continue;
            };
            let events = cut[node];
            let epoch = walker.cut_at(events);
            let pending = walker.epochs()[epoch as usize].writes.iter();
            let pending = pending.filter(|write| **write < events).count() as u32;
            let choice = match (pending, *loss) {
                (0, _) | (_, Loss::Everything) => Choice::None,
                (writes, Loss::Nothing) => Choice::Upto { writes, sectors: 0 },
                (_, Loss::Drawn(number)) => {
                    is_drawn = true;
                    Choice::Drawn(number)
                }
            };
            let fate = Fate::Cut(choice);
            let name = node_state(walker, self.wanted.seed, fate, events);
            images.push(walker.composition_before(&name, events)?.image);
            fates.push(fate);
        }
        let kept = fates.iter().map(|fate| *fate == Fate::Kept).collect();
        let name = ClusterStateName {
            seed: self.wanted.seed,
            moment,
            fates,
            boot: boot.clone(),
        };
        let planned = Planned { name };
        match self.known.entry((images, kept, boot.clone())) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(planned);
                self.drawn += usize::from(is_drawn);
            }
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                self.equal += 1;
                if entry.get().name.moment < moment {
                    entry.insert(planned);
                }
            }
        }
        Ok(())
    }
}

fn drawn(random: &mut Rng, round: usize) -> Loss {
    match random.u8(..4) {
        0 => Loss::Everything,
        1 => Loss::Nothing,
        _ => Loss::Drawn(round as u32),
    }
}

/// The state of one node's disk, of which `events` events had happened.
pub(super) fn node_state(walker: &Walker<'_>, seed: u64, fate: Fate, events: usize) -> StateName {
    let cut = walker.cut_at(events);
    let choice = match fate {
        Fate::Begun => Choice::None,
        Fate::Cut(choice) => choice,
        Fate::Kept => Choice::Upto {
            writes: walker.epochs()[cut as usize].writes.len() as u32,
            sectors: 0,
        },
    };
    StateName { seed, cut, choice }
}
