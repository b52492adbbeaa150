//! Crash states that stand for many: one of each kind, the dangerous and the rare kinds first.
//!
//! Most epochs of a recording look alike: a log grows, again and again. States of them that are made in the same way tend
//! to recover in the same way, so that one stands for all. What a state is made of is told by what its writes do: to which
//! [kind of file](FileKind), over what was durable or where nothing was, how large, whole pages or less; and whether
//! clients said something while the writes were under way, an acknowledgement for instance.
//!
//! The states of an epoch are made in few ways ([`Act`]). For each way there are groups of states whose writes are of one
//! [kind](WriteKind). Way after way gives a state of its next group; once every group has given one, they give their
//! second, and so on. Groups of writes over durable data of a file come first, since nothing else can destroy what was
//! acknowledged long ago; of those the smallest. Where a write is torn, they take turns with groups of writes that append
//! to a file, the largest first and the rarest next: a log's last record is what power cuts tear most often. In a group,
//! epochs unlike those before come first.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::vec::IntoIter;

use fastrand::Rng;

use super::{CrashState, MOST_STEPS};
use crate::EventKind;
use crate::crash::changes::Changes;
use crate::crash::composition::{arrived_in, position};
use crate::crash::identity::{Content, seed_of};
use crate::crash::layout::{FileKind, Layout};
use crate::crash::{Choice, StateName, Walker};
use crate::event::SECTOR;

/// Writes of one kind that an epoch gives states for.
const MOST_OF_A_KIND: usize = 16;
const PAGE: u64 = 4096;

/// How a state is made of an epoch's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// Nothing arrived.
    Nothing,
    /// The writes arrived in order, up to the midst of one.
    Torn,
    /// One did not arrive.
    Without,
    /// One alone arrived.
    Only,
    /// Everything arrived but the rest of one.
    TornLate,
    /// The writes arrived in order, up to one that did not.
    Upto,
    /// Of one write a part arrived, and nothing else.
    TornAlone,
    /// Everything arrived, although nothing was flushed.
    Everything,
}

impl Act {
    /// The ways in turn. Nothing of an epoch is what most outages leave, and comes twice.
    const TURNS: [Act; 9] = [
        Act::Nothing,
        Act::Torn,
        Act::Without,
        Act::Only,
        Act::Nothing,
        Act::TornLate,
        Act::Upto,
        Act::TornAlone,
        Act::Everything,
    ];
}

/// What becomes of what was durable where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Effect {
    /// It is overwritten with something else.
    Overwrites,
    /// Only zeros are overwritten.
    Fills,
}

/// The size of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Size {
    PartOfPage,
    Page,
    FewPages,
    Many,
}

/// What a write does. Writes of the same kind tend to be lost with the same consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct WriteKind {
    /// `None`: the filesystem's own, or a file's that is not known.
    file: Option<FileKind>,
    effect: Effect,
    size: Size,
}

/// What an epoch does, as far as states of it differ: kinds of writes, and whether clients said something after the first
/// of them.
type EpochKind = u64;

/// States that are made in the same way with writes of the same kind.
#[derive(Debug, Default)]
struct Group {
    members: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    cut: u32,
    choice: Choice,
    epoch: EpochKind,
}

/// At most `limit` states of a disk that writes in any order, no two with the same image, those that matter most first.
/// The recording is read twice.
pub(super) fn states(
    walker: &mut Walker<'_>,
    layout: &Layout,
    seed: u64,
    limit: usize,
) -> io::Result<Vec<CrashState>> {
    let mut random = Rng::with_seed(seed_of(&[seed, 0]));
    let mut groups: BTreeMap<(Act, Option<WriteKind>), Group> = BTreeMap::new();
    for epoch in 0..walker.epochs().len() {
        walker.go_to(epoch)?;
        collect(walker, layout, &mut random, &mut groups);
    }
    let ranked = rank(groups, limit, &mut random);
    with_images(walker, seed, &ranked)
}

/// Puts the states of the epoch in which the walker is into their groups.
fn collect(
    walker: &Walker<'_>,
    layout: &Layout,
    random: &mut Rng,
    groups: &mut BTreeMap<(Act, Option<WriteKind>), Group>,
) {
    let (changes, cut) = (walker.changes(), walker.epoch().cut);
    let kinds: Vec<(u32, WriteKind)> = changes
        .changing_writes()
        .filter_map(|write| Some((write, write_kind(walker, layout, write)?)))
        .collect();
    let epoch = epoch_kind(walker, &kinds);
    let mut add = |act, kind, choice| {
        let group = groups.entry((act, kind)).or_default();
        group.members.push(Member { cut, choice, epoch });
    };
    add(Act::Nothing, None, Choice::None);
    let writes = walker.epoch().writes.len() as u32;
    if !kinds.is_empty() {
        let choice = Choice::Upto { writes, sectors: 0 };
        add(Act::Everything, None, choice);
    }
    let is_alone = kinds.len() == 1;
    for (write, kind) in some_of_each(&kinds, random) {
        let mut add = |act, choice| add(act, Some(kind), choice);
        if let Some(sectors) = torn_after(changes, write, random) {
            let writes = write;
            add(Act::Torn, Choice::Upto { writes, sectors });
            if !is_alone {
                add(Act::TornLate, Choice::WithoutRest { write, sectors });
                add(Act::TornAlone, Choice::OnlyFirst { write, sectors });
            }
        }
        if !is_alone {
            add(Act::Without, Choice::Without(write));
            add(Act::Only, Choice::Only(write));
            let (writes, sectors) = (write, 0);
            add(Act::Upto, Choice::Upto { writes, sectors });
        }
    }
}

/// Of each kind not too many, from all over the epoch.
fn some_of_each(kinds: &[(u32, WriteKind)], random: &mut Rng) -> Vec<(u32, WriteKind)> {
    let mut by_kind: BTreeMap<WriteKind, Vec<u32>> = BTreeMap::new();
    for (write, kind) in kinds {
        by_kind.entry(*kind).or_default().push(*write);
    }
    let mut some = Vec::new();
    for (kind, writes) in by_kind {
        let chosen = super::budget::some(MOST_OF_A_KIND, writes, random);
        some.extend(chosen.into_iter().map(|write| (write, kind)));
    }
    some.sort_unstable();
    some
}

/// How many sectors of a write arrive if it is torn between two of its fragments; `None` if it has but one.
fn torn_after(changes: &Changes, write: u32, random: &mut Rng) -> Option<u32> {
    let own = changes.fragments_of_write(write as usize);
    let middle = (own.len() > 1).then(|| random.usize(own.start + 1..own.end))?;
    let last = changes.of_fragment(middle - 1).last()?;
    Some(changes.list()[last].place + 1)
}

/// `None` if there is no such write.
fn write_kind(walker: &Walker<'_>, layout: &Layout, write: u32) -> Option<WriteKind> {
    let (offset, data) = walker.write(write as usize)?;
    let changes = walker.changes();
    let zero = Content::of(&[0; SECTOR]);
    let overwrites = changes.of_write(write as usize).any(|change| {
        let change = &changes.list()[change];
        let durable = walker.durable_at(change.sector);
        durable.is_some_and(|durable| durable != zero && durable != change.content)
    });
    let len = u64::from(data.len);
    let size = match (
        offset.is_multiple_of(PAGE) && len.is_multiple_of(PAGE),
        len / PAGE,
    ) {
        (false, _) => Size::PartOfPage,
        (true, 1) => Size::Page,
        (true, 2..=16) => Size::FewPages,
        (true, _) => Size::Many,
    };
    Some(WriteKind {
        file: layout.at(offset),
        effect: if overwrites {
            Effect::Overwrites
        } else {
            Effect::Fills
        },
        size,
    })
}

fn epoch_kind(walker: &Walker<'_>, kinds: &[(u32, WriteKind)]) -> EpochKind {
    let epoch = walker.epoch();
    let first = epoch.writes.first().copied().unwrap_or(epoch.events.end);
    let first = first.max(epoch.events.start);
    let events = walker
        .events()
        .get(first..epoch.events.end)
        .unwrap_or_default();
    let is_said = events
        .iter()
        .any(|event| matches!(event.kind, EventKind::Mark(_)));
    let kinds: BTreeSet<WriteKind> = kinds.iter().map(|(_, kind)| *kind).collect();
    let mut parts = vec![u64::from(is_said)];
    for WriteKind { file, effect, size } in kinds {
        let file = file.map_or(0, |file| 1 + u64::from(file.number()));
        parts.extend([file, effect as u64, size as u64]);
    }
    seed_of(&parts)
}

/// The turn of writes to a file where nothing was.
const APPENDS: u8 = 2;

/// How soon a group's turn comes; the lowest first. What a write over durable data of a file loses was acknowledged
/// long ago; what only filled space was durable for nobody.
fn turn(kind: Option<WriteKind>) -> u8 {
    match kind.map(|kind| (kind.effect, kind.file)) {
        None | Some((Effect::Overwrites, Some(_))) => 0,
        Some((Effect::Overwrites, None)) => 1,
        Some((Effect::Fills, Some(_))) => APPENDS,
        Some((Effect::Fills, None)) => 3,
    }
}

/// The order in which states are tried, as far as `limit` goes.
fn rank(
    groups: BTreeMap<(Act, Option<WriteKind>), Group>,
    limit: usize,
    random: &mut Rng,
) -> Vec<(u32, Choice)> {
    let mut by_act: BTreeMap<Act, Vec<(u8, usize, Vec<Member>)>> = BTreeMap::new();
    for ((act, kind), group) in groups {
        let all = group.members.len();
        let members = unlike_first(group.members, random);
        by_act
            .entry(act)
            .or_default()
            .push((turn(kind), all, members));
    }
    for (act, groups) in &mut by_act {
        // Stable: of equals, by kind.
        groups.sort_by_key(|(turn, all, _)| (*turn, *all));
        if *act == Act::Torn {
            take_turns_with_appends(groups);
        }
    }
    let mut by_act: BTreeMap<Act, IntoIter<Member>> = by_act
        .into_iter()
        .map(|(act, groups)| {
            let groups = groups.into_iter().map(|(_, _, members)| members);
            (act, round_robin(groups.collect()).into_iter())
        })
        .collect();
    let mut ranked = Vec::new();
    while ranked.len() < limit {
        let before = ranked.len();
        for act in Act::TURNS {
            let member = by_act.get_mut(&act).and_then(Iterator::next);
            ranked.extend(member.map(|member| (member.cut, member.choice)));
        }
        if ranked.len() == before {
            break;
        }
    }
    ranked.truncate(limit);
    ranked
}

/// The first of each, then the second of each that has one, and so on.
fn round_robin<T: Copy>(groups: Vec<Vec<T>>) -> Vec<T> {
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let rounds = (0..longest).flat_map(|round| groups.iter().filter_map(move |of| of.get(round)));
    rounds.copied().collect()
}

/// Puts a group of writes that append to a file behind each of the groups before those: the largest first, then the
/// rarest, and so on from both ends.
fn take_turns_with_appends<T>(groups: &mut Vec<(u8, usize, T)>) {
    let mut appends: VecDeque<_> = groups
        .extract_if(.., |(turn, ..)| *turn == APPENDS)
        .collect();
    for number in 0.. {
        let append = match number % 2 {
            0 => appends.pop_back(),
            _ => appends.pop_front(),
        };
        let Some(append) = append else { return };
        groups.insert(groups.len().min(2 * number + 1), append);
    }
}

/// The last one first, before which most was acknowledged; then those of epochs that are unlike the ones before, the
/// rare ones first.
fn unlike_first(members: Vec<Member>, random: &mut Rng) -> Vec<Member> {
    let mut by_epoch: BTreeMap<EpochKind, Vec<Member>> = BTreeMap::new();
    let mut members = members;
    let last = members.pop();
    for member in members {
        by_epoch.entry(member.epoch).or_default().push(member);
    }
    let mut kinds: Vec<Vec<Member>> = by_epoch.into_values().collect();
    kinds.sort_by_key(Vec::len);
    kinds.iter_mut().for_each(|kind| random.shuffle(kind));
    last.into_iter().chain(round_robin(kinds)).collect()
}

/// The states with what the disk holds in them, each image where it is first.
fn with_images(
    walker: &mut Walker<'_>,
    seed: u64,
    ranked: &[(u32, Choice)],
) -> io::Result<Vec<CrashState>> {
    let mut by_epoch: Vec<usize> = (0..ranked.len()).collect();
    by_epoch.sort_by_key(|&rank| ranked[rank].0);
    let mut found: HashMap<_, (usize, CrashState)> = HashMap::with_capacity(ranked.len());
    let mut steps = 0;
    for rank in by_epoch {
        let (cut, choice) = ranked[rank];
        let name = StateName { seed, cut, choice };
        walker.go_to(cut as usize)?;
        steps += walker.changes().list().len();
        if steps > MOST_STEPS {
            break;
        }
        let arrived = arrived_in(walker, &name)?;
        let selected = walker
            .changes()
            .select(walker.durable(), |change| arrived[change]);
        let state = CrashState {
            name,
            position: position(walker.epoch(), choice),
            image: selected.image,
            omitted: selected.omitted,
        };
        match found.entry(state.image) {
            Entry::Vacant(entry) => {
                entry.insert((rank, state));
            }
            Entry::Occupied(mut entry) => {
                let (first, before) = entry.get_mut();
                *first = rank.min(*first);
                if before.position < state.position {
                    *before = state;
                }
            }
        }
    }
    let mut states: Vec<(usize, CrashState)> = found.into_values().collect();
    states.sort_unstable_by_key(|(rank, _)| *rank);
    Ok(states.into_iter().map(|(_, state)| state).collect())
}
