//! How a crash state is made from its name.

use std::io;

use super::changes::{Change, Changes};
use super::epoch::Epoch;
use super::sample::sample;
use super::{Choice, Identity, Piece, StateName, Walker};
use crate::event::{SECTOR, Span};

/// How a crash state is made, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composition {
    /// `events[..position]` of the recording happened before the cut, as far as marks are concerned.
    pub position: usize,
    /// What arrived after the last flush. Put over what was durable then, in this order, it makes the
    /// image.
    pub pieces: Vec<Piece>,
    /// The image.
    pub image: Identity,
    /// Changed sectors that did not arrive.
    pub omitted: u32,
}

/// What became of one write of the epoch in which the power was cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteFate {
    /// The write's place among the events.
    pub event: usize,
    /// For each sector of it that is changed, in order, whether it arrived. The others make no
    /// difference. A name chooses among `fragments`.
    pub arrived: Vec<bool>,
    /// Which sector of the write each of those is.
    pub places: Vec<u32>,
    /// How many of those arrive together, each time: in the order of `arrived`, which they add up to.
    pub fragments: Vec<usize>,
}

/// What became of the writes of the epoch in which the walker is, as far as they are among the first `events` events.
pub(super) fn fates(
    walker: &Walker<'_>,
    name: &StateName,
    events: usize,
) -> io::Result<Vec<WriteFate>> {
    let arrived = arrived_before(walker, name, events)?;
    let writes = walker.epoch().writes.iter().enumerate();
    let writes = writes.filter(|(_, event)| **event < events);
    let changes = walker.changes();
    let fates = writes.map(|(write, &event)| WriteFate {
        event,
        arrived: arrived[changes.of_write(write)].to_vec(),
        places: changes.list()[changes.of_write(write)]
            .iter()
            .map(|change| change.place)
            .collect(),
        fragments: changes
            .fragments_of_write(write)
            .map(|fragment| changes.of_fragment(fragment).len())
            .collect(),
    });
    Ok(fates.collect())
}

/// Which changes of the epoch in which the walker is arrived.
pub(super) fn arrived_in(walker: &Walker<'_>, name: &StateName) -> io::Result<Vec<bool>> {
    let sectors = |write: u32| {
        let write = walker.write(write as usize);
        write.map_or(0, |(_, data)| data.len / SECTOR as u32)
    };
    arrived(walker.epoch(), walker.changes(), name, sectors)
        .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: {why}")))
}

/// Which changes of the epoch in which the walker is arrived, if only the first `events` events happened.
fn arrived_before(walker: &Walker<'_>, name: &StateName, events: usize) -> io::Result<Vec<bool>> {
    let mut arrived = arrived_in(walker, name)?;
    let writes = &walker.epoch().writes;
    for (arrived, change) in arrived.iter_mut().zip(walker.changes().list()) {
        *arrived &= writes[change.write as usize] < events;
    }
    Ok(arrived)
}

impl Composition {
    /// For a state of the epoch in which the walker is, of which those writes never were that come after the first `events`
    /// events.
    pub(super) fn new(
        walker: &Walker<'_>,
        name: &StateName,
        events: usize,
    ) -> io::Result<Composition> {
        let arrived = arrived_before(walker, name, events)?;
        let selected = walker
            .changes()
            .select(walker.durable(), |change| arrived[change]);
        Ok(Composition {
            position: position(walker.epoch(), name.choice).min(events),
            pieces: pieces(walker, &arrived),
            image: selected.image,
            omitted: selected.omitted,
        })
    }
}

/// How much of all events happened before the cut. A disk that writes in order has no volatile cache, and is cut while a write is
/// under way or before it begins, which for one that is carried was in an epoch before: it may have been answered since. All others
/// hold back what they please until the epoch ends.
pub(super) fn position(epoch: &Epoch, choice: Choice) -> usize {
    match choice {
        Choice::First { writes, .. } => epoch.writes.get(writes as usize).copied(),
        _ => None,
    }
    .unwrap_or(epoch.events.end)
}

/// Which changes arrived; `sectors` says how many a write has, changed or not.
fn arrived(
    epoch: &Epoch,
    changes: &Changes,
    name: &StateName,
    sectors: impl Fn(u32) -> u32,
) -> Result<Vec<bool>, String> {
    let writes = epoch.writes.len();
    let list = changes.list();
    let has_write = |number: u32| {
        if (number as usize) < writes {
            Ok(())
        } else {
            Err(format!("its epoch has {writes} writes"))
        }
    };
    let has_bits = |bits: u64, count: usize, what: &str| match count {
        65.. => Err(format!(
            "its epoch has {count} {what}, too many to be chosen by bits"
        )),
        ..=63 if bits >> count != 0 => Err(format!("its epoch has {count} {what}")),
        _ => Ok(()),
    };
    let is_part = |write: u32, part: u32| {
        has_write(write)?;
        match sectors(write) {
            all if (1..all).contains(&part) => Ok(()),
            all => Err(format!("that write has {all} sectors")),
        }
    };
    if let Choice::First { writes, .. } = name.choice
        && (writes as usize) < epoch.overtaken()
    {
        let there = epoch.overtaken();
        return Err(format!(
            "a disk that writes in order has the first {there} writes of its epoch, since a later one is durable"
        ));
    }
    let arrived = match name.choice {
        Choice::None => vec![false; list.len()],
        Choice::First {
            writes: whole,
            sectors: more,
        }
        | Choice::Upto {
            writes: whole,
            sectors: more,
        } => {
            if whole as usize > writes || (whole as usize == writes && more > 0) {
                return Err(format!("its epoch has {writes} writes"));
            }
            if more > 0 {
                is_part(whole, more)?;
            }
            let arrives = |write, place| write < whole || (write == whole && place < more);
            list.iter().map(|c| arrives(c.write, c.place)).collect()
        }
        Choice::Writes(bits) => {
            has_bits(bits, writes, "writes")?;
            list.iter().map(|c| bits >> c.write & 1 == 1).collect()
        }
        Choice::Only(number) => {
            has_write(number)?;
            list.iter().map(|c| c.write == number).collect()
        }
        Choice::OnlyFirst { write, sectors } => {
            is_part(write, sectors)?;
            let arrives = |c: &Change| c.write == write && c.place < sectors;
            list.iter().map(arrives).collect()
        }
        Choice::Without(number) => {
            has_write(number)?;
            list.iter().map(|c| c.write != number).collect()
        }
        Choice::WithoutRest { write, sectors } => {
            is_part(write, sectors)?;
            let arrives = |c: &Change| c.write != write || c.place < sectors;
            list.iter().map(arrives).collect()
        }
        Choice::Sectors(bits) => {
            has_bits(
                bits,
                changes.fragments(),
                "changed sectors that arrive alone",
            )?;
            changes.of_fragments(|fragment| bits >> fragment & 1 == 1)
        }
        Choice::Drawn(number) => sample(changes, name.seed, name.cut, number),
    };
    // Names choose sectors, which the disk need not write alone.
    if (0..changes.fragments()).any(|fragment| changes.is_torn(fragment, &arrived)) {
        let unit = changes.unit();
        return Err(format!("the disk writes {unit} whole: that tears one"));
    }
    Ok(arrived)
}

/// Changes that arrived together, from the first to the last: sectors between them that are no changes
/// make no difference. Not so of a carried write, which may have been written over there.
fn pieces(walker: &Walker<'_>, arrived: &[bool]) -> Vec<Piece> {
    let changes = walker.changes();
    let list = changes.list();
    let mut pieces = Vec::new();
    for write in changes.changing_writes() {
        let Some((offset, data)) = walker.write(write as usize) else {
            continue;
        };
        let own = changes.of_write(write as usize);
        let runs = list[own.clone()]
            .iter()
            .zip(&arrived[own])
            .collect::<Vec<_>>();
        let is_carried = (write as usize) < walker.epoch().carried();
        let together = |(one, arrived): &(&Change, &bool), (other, next): &(&Change, &bool)| {
            **arrived && **next && (!is_carried || one.place + 1 == other.place)
        };
        let runs = runs.chunk_by(together);
        for run in runs.filter(|run| *run[0].1) {
            if let [(first, _), ..] = run
                && let [.., (last, _)] = run
            {
                let skipped = u64::from(first.place) * SECTOR as u64;
                pieces.push(Piece {
                    offset: offset + skipped,
                    data: Span {
                        start: data.start + skipped,
                        len: (last.place - first.place + 1) * SECTOR as u32,
                    },
                });
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::oracle::{durable, image_of, sector_writes};
    use crate::fixtures::RecordingBuilder;
    use crate::{AtomicUnit, Recording};

    /// Sector 0 goes from 1 to 2 and back, sector 1 from 0 to 5 twice, sector 2 stays 3.
    fn recording() -> Recording {
        RecordingBuilder::new(4096)
            .base(0, [1; 512])
            .sector(2, 3)
            .flush()
            .mark(b"a")
            .sectors(0, &[2, 5, 3])
            .mark(b"b")
            .sectors(0, &[1, 5])
            .sector(2, 3)
            .mark(b"c")
            .flush()
            .mark(b"d")
            .build()
    }

    fn composition(recording: &Recording, name: &str) -> io::Result<Composition> {
        Walker::new(recording)?.composition(&name.parse().map_err(io::Error::other)?)
    }

    /// What the first three sectors hold in a state.
    fn fills(recording: &Recording, name: &str) -> [u8; 3] {
        let cut = name.parse::<StateName>().unwrap().cut;
        let pieces = composition(recording, name).unwrap().pieces;
        let image = image_of(recording, cut, &pieces);
        [image[0], image[512], image[1024]]
    }

    #[test]
    fn what_is_written_after_the_cut_never_arrives() {
        let recording = recording();
        let mut walker = Walker::new(&recording).unwrap();
        let name = "1:1:upto3".parse().unwrap();
        let mut at = |events| {
            let composition = walker.composition_before(&name, events).unwrap();
            let image = image_of(&recording, 1, &composition.pieces);
            let written = walker.written_before(&name, events).unwrap();
            ([image[0], image[512]], composition.position, written)
        };
        // The epoch begins after the flush, which is event 1.
        assert_eq!(at(2), ([1, 0], 2, 2));
        assert_eq!(at(3), ([1, 0], 3, 2));
        assert_eq!(at(4), ([2, 5], 4, 4));
        assert_eq!(at(6), ([1, 5], 6, 6));
        assert_eq!(at(9), ([1, 5], 8, 6));
        let epochs: Vec<u32> = (0..=10).map(|events| walker.cut_at(events)).collect();
        assert_eq!(epochs, [0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn each_choice_makes_the_image_that_it_says() {
        let recording = recording();
        for (choice, expected) in [
            ("none", [1, 0, 3]),
            ("first0", [1, 0, 3]),
            ("first0+1", [2, 0, 3]),
            ("first0+2", [2, 5, 3]),
            ("first1", [2, 5, 3]),
            ("first1+1", [1, 5, 3]),
            ("first3", [1, 5, 3]),
            ("w1", [2, 5, 3]),
            ("w2", [1, 5, 3]),
            ("w4", [1, 0, 3]),
            ("upto0", [1, 0, 3]),
            ("upto0+1", [2, 0, 3]),
            ("upto1", [2, 5, 3]),
            ("upto1+1", [1, 5, 3]),
            ("only0", [2, 5, 3]),
            ("only0+1", [2, 0, 3]),
            ("only1", [1, 5, 3]),
            ("without0", [1, 5, 3]),
            ("without0+1", [1, 5, 3]),
            ("without1", [2, 5, 3]),
            ("without1+1", [1, 5, 3]),
            // The changes are: 2 and 5 of the first write, 1 and 5 of the second.
            ("s1", [2, 0, 3]),
            ("s2", [1, 5, 3]),
            ("s4", [1, 0, 3]),
            ("s5", [1, 0, 3]),
            ("s9", [2, 5, 3]),
        ] {
            assert_eq!(
                fills(&recording, &format!("7:1:{choice}")),
                expected,
                "{choice}"
            );
        }
    }

    #[test]
    fn marks_happen_until_the_next_write_of_a_disk_that_writes_in_order_or_else_until_the_flush() {
        let recording = recording();
        for (choice, position) in [
            ("first0", 3),
            ("first0+2", 3),
            ("first1", 5),
            ("first1+1", 5),
            ("first2", 6),
            ("first3", 8),
            ("none", 8),
            ("w3", 8),
            ("s3", 8),
            ("only0", 8),
            ("without0", 8),
            ("without0+1", 8),
            ("upto0", 8),
            ("upto0+2", 8),
            ("r0", 8),
        ] {
            let composition = composition(&recording, &format!("7:1:{choice}")).unwrap();
            assert_eq!(composition.position, position, "{choice}");
        }
        assert_eq!(composition(&recording, "7:2:none").unwrap().position, 10);
    }

    #[test]
    fn omitted_sectors_are_changed_ones_that_did_not_arrive() {
        let recording = recording();
        for (choice, omitted) in [
            ("none", 4),
            ("first1", 2),
            ("first3", 0),
            ("s5", 2),
            ("w4", 4),
        ] {
            let composition = composition(&recording, &format!("7:1:{choice}")).unwrap();
            assert_eq!(composition.omitted, omitted, "{choice}");
        }
    }

    #[test]
    fn names_that_the_recording_does_not_have_are_refused() {
        let recording = recording();
        for name in [
            "7:3:none",
            "7:1:first4",
            "7:1:first3+1",
            "7:1:first0+3",
            "7:1:first2+1",
            "7:1:w8",
            "7:1:only3",
            "7:1:only0+0",
            "7:1:only0+3",
            "7:1:without3",
            "7:1:without0+3",
            "7:1:upto3+1",
            "7:1:upto0+3",
            "7:1:s10",
            "7:2:only0",
            "7:2:s1",
        ] {
            let error = composition(&recording, name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        let mut many = RecordingBuilder::new(1 << 20);
        for sector in 0..65 {
            many = many.sector(sector, 1);
        }
        let many = many.build();
        for choice in ["w1", "s1"] {
            let error = composition(&many, &format!("7:0:{choice}")).unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidInput,
                "{choice}: {error}"
            );
        }
        assert!(composition(&many, "7:0:without64").is_ok());
        let whole = RecordingBuilder::new(8192).sectors(0, &[1; 16]).build();
        let whole = whole.with_atomic_unit(AtomicUnit::try_from(4096_u64).unwrap());
        for choice in ["first0", "upto0", "only0", "without0"] {
            let error = composition(&whole, &format!("7:0:{choice}+3")).unwrap_err();
            assert_eq!(
                error.kind(),
                io::ErrorKind::InvalidInput,
                "{choice}: {error}"
            );
            let between = composition(&whole, &format!("7:0:{choice}+8"));
            assert_eq!(between.unwrap().omitted, 8, "{choice}");
        }
    }

    #[test]
    fn a_piece_covers_what_arrived_together() {
        let recording = RecordingBuilder::new(8192)
            .base(512, [2; 512])
            .sectors(0, &[1, 2, 3, 4, 5])
            .build();
        let pieces = |choice: &str| {
            let composition = composition(&recording, &format!("0:0:{choice}")).unwrap();
            let sectors = composition
                .pieces
                .iter()
                .map(|p| (p.offset / 512, p.data.len / 512));
            sectors.collect::<Vec<_>>()
        };
        assert_eq!(pieces("first1"), [(0, 5)]);
        // Sector 1 is no change: it may be there or not.
        assert_eq!(pieces("s3"), [(0, 3)]);
        assert_eq!(pieces("s5"), [(0, 1), (3, 1)]);
        assert_eq!(pieces("sa"), [(2, 1), (4, 1)]);
    }

    #[test]
    fn the_order_in_which_states_are_asked_for_makes_no_difference() {
        let recording = recording();
        let names = [
            "7:2:none",
            "7:0:only0",
            "7:1:s9",
            "7:1:r3",
            "7:0:none",
            "7:2:none",
        ];
        let mut walker = Walker::new(&recording).unwrap();
        for name in names {
            let alone = composition(&recording, name).unwrap();
            assert_eq!(walker.composition(&name.parse().unwrap()).unwrap(), alone);
        }
        // Everything arrived, and it was flushed, and nothing arrived after it.
        let image = |name| composition(&recording, name).unwrap().image;
        assert_eq!(image("7:1:first3"), image("7:2:none"));
        assert_ne!(image("7:1:first3"), image("7:1:none"));
    }

    #[test]
    fn changes_are_those_sectors_that_may_make_a_difference() {
        let recording = recording();
        let mut walker = Walker::new(&recording).unwrap();
        for cut in 0..3 {
            walker.go_to(cut).unwrap();
            let list = walker.changes().list();
            let found: Vec<_> = list.iter().map(|c| (c.write as usize, c.sector)).collect();
            let writes = sector_writes(&recording, cut as u32);
            let before = durable(&recording, cut as u32);
            let mut expected = Vec::new();
            for (number, write) in writes.iter().enumerate() {
                let place = write.sector as usize * SECTOR;
                let earlier = writes[..number].iter().filter(|w| w.sector == write.sector);
                let differs = before[place..place + SECTOR] != write.bytes[..];
                if differs || earlier.map(|w| &w.bytes).any(|bytes| *bytes != write.bytes) {
                    expected.push((write.write, write.sector));
                }
            }
            assert_eq!(found, expected, "epoch {cut}");
        }
    }
}
