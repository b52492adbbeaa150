//! Pages that are written over, and what crash states leave of them.
//!
//! A store that keeps its data in pages, and writes them over where they lie, can lose what has long been durable: a page
//! that is half new is neither. It protects itself, and a proof says something of that protection only if it tore
//! pages. Here it is counted how often it could have, and how often it did.
//!
//! What counts as torn surely is: of one write that changes a page a part arrived, and what is there of the rest is older;
//! or a page was written once in its epoch, by several writes, of which some arrived. Where pages are written over and over
//! between two flushes some torn ones may be missed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use super::changes::Changes;
use super::composition::arrived_in;
use super::identity::Content;
use super::{StateName, Walker};
use crate::Recording;
use crate::event::SECTOR;

/// How often durable pages were written over, and in how many crash states that went wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overwrites {
    /// Pages that were written over, in each epoch once.
    pub pages: u64,
    /// Those that a power cut can tear: what changes in them need not arrive together.
    pub tearable: u64,
    /// States whose power is cut while pages are written over, and in which not everything arrived.
    pub states: u64,
    /// States in which such a page is torn.
    pub torn_states: u64,
}

impl Overwrites {
    /// Of a recording, and of some of its crash states. `page_at` says in which page a byte of the device lies, by the
    /// byte that the page begins at; `None`: in none that matters.
    ///
    /// Fails as [`Walker::composition`] does, or if the recording cannot be read.
    pub fn of(
        recording: &Recording,
        states: impl IntoIterator<Item = StateName>,
        page_at: impl Fn(u64) -> Option<u64>,
    ) -> io::Result<Overwrites> {
        let mut by_epoch: BTreeMap<u32, Vec<StateName>> = BTreeMap::new();
        for state in states {
            by_epoch.entry(state.cut).or_default().push(state);
        }
        let mut walker = Walker::new(recording)?;
        let unit = recording.atomic_unit().sectors();
        let mut all = Overwrites::default();
        for epoch in 0..walker.epochs().len() {
            walker.go_to(epoch)?;
            let pages = overwritten(&walker, &page_at);
            let tearable = pages.iter().filter(|page| page.can_tear(&walker, unit));
            all.tearable += tearable.count() as u64;
            all.pages += pages.len() as u64;
            if pages.is_empty() {
                continue;
            }
            let states = by_epoch.remove(&walker.epoch().cut).unwrap_or_default();
            for state in &states {
                let arrived = arrived_in(&walker, state)?;
                let is_torn = |page: &Page| page.is_torn(walker.changes(), &arrived);

                all.states += u64::from(arrived.contains(&false));
                all.torn_states += u64::from(pages.iter().any(is_torn));
            }
        }
        Ok(all)
    }
}

/// What an epoch changes in a page, as numbers of changes.
struct Page {
    changes: Vec<usize>,
}

/// The pages of which something durable is written over in the epoch in which the walker is.
fn overwritten(walker: &Walker<'_>, page_at: &impl Fn(u64) -> Option<u64>) -> Vec<Page> {
    let zero = Content::of(&[0; SECTOR]);
    let list = walker.changes().list();
    let mut pages: BTreeMap<u64, (bool, Vec<usize>)> = BTreeMap::new();
    for (number, change) in list.iter().enumerate() {
        let Some(page) = page_at(change.sector * SECTOR as u64) else {
            continue;
        };
        let durable = walker.durable_at(change.sector);
        let (is_over, changes) = pages.entry(page).or_default();
        *is_over |= durable.is_some_and(|old| old != zero && old != change.content);
        changes.push(number);
    }
    let pages = pages.into_values().filter(|(is_over, _)| *is_over);
    pages.map(|(_, changes)| Page { changes }).collect()
}

impl Page {
    fn can_tear(&self, walker: &Walker<'_>, unit: u64) -> bool {
        let list = walker.changes().list();
        let parts = self.changes.iter().map(|&number| {
            let change = &list[number];
            (change.write, change.sector / unit)
        });
        parts.collect::<BTreeSet<_>>().len() > 1
    }

    /// Whether it is a mixture, given which changes of the epoch arrived.
    fn is_torn(&self, changes: &Changes, arrived: &[bool]) -> bool {
        let list = changes.list();
        let came = |number: &&usize| arrived[**number];
        let is_written_once = self
            .changes
            .iter()
            .all(|&number| list[number].is_last && changes.previous(number).is_none());
        if is_written_once {
            return self.changes.iter().any(|number| came(&number))
                && !self.changes.iter().all(|number| came(&number));
        }
        // What the disk has of each sector.
        let mut there: BTreeMap<u64, usize> = BTreeMap::new();
        for &number in self.changes.iter().filter(came) {
            there.insert(list[number].sector, number);
        }
        // Of the write that this is of something is there, and something else is older.
        there.values().any(|&part| {
            let write = list[part].write;
            self.changes.iter().any(|&other| {
                let other = &list[other];
                let is_older = there
                    .get(&other.sector)
                    .is_none_or(|&number| list[number].write < write);
                other.write == write && is_older
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AtomicUnit;
    use crate::fixtures::RecordingBuilder;

    const PAGE: u64 = 8192;

    /// A durable page of 16 sectors at the second place, which is written over; then a new one.
    fn recording() -> RecordingBuilder {
        RecordingBuilder::new(1 << 16)
            .base(PAGE, [1; PAGE as usize])
            .write(PAGE, [2; PAGE as usize])
            .write(2 * PAGE, [2; PAGE as usize])
            .flush()
            .write(4 * PAGE, [2; PAGE as usize])
            .flush()
    }

    fn of(recording: &Recording, states: &[&str]) -> Overwrites {
        let states = states.iter().map(|name| name.parse().unwrap());
        let page_at = |offset: u64| (offset < 4 * PAGE).then_some(offset / PAGE * PAGE);
        Overwrites::of(recording, states, page_at).unwrap()
    }

    #[test]
    fn only_what_was_durable_and_is_in_a_page_is_written_over() {
        let recording = recording().build();
        let found = of(&recording, &[]);
        assert_eq!((found.pages, found.tearable), (1, 1));
        let whole = recording.with_atomic_unit(AtomicUnit::try_from(PAGE).unwrap());
        let found = of(&whole, &[]);
        assert_eq!((found.pages, found.tearable), (1, 0));
    }

    #[test]
    fn a_page_is_torn_that_is_neither_old_nor_new() {
        let recording = recording().build();
        for (state, expected) in [
            ("0:0:none", (1, 0)),
            ("0:0:upto1", (1, 0)),
            ("0:0:upto2", (0, 0)),
            ("0:0:upto0+3", (1, 1)),
            ("0:0:without0+3", (1, 1)),
            // Another page, which was not there before.
            ("0:0:upto1+3", (1, 0)),
            ("0:1:none", (0, 0)),
        ] {
            let found = of(&recording, &[state]);
            assert_eq!((found.states, found.torn_states), expected, "{state}");
        }
        let all = of(&recording, &["0:0:none", "0:0:upto0+3", "0:0:only0+2"]);
        assert_eq!((all.states, all.torn_states), (3, 2));
    }

    #[test]
    fn a_page_that_several_writes_make_is_torn_between_them_too() {
        let recording = RecordingBuilder::new(1 << 16)
            .base(PAGE, [1; PAGE as usize])
            .write(PAGE, [2; 4096])
            .write(PAGE + 4096, [2; 4096])
            .build();
        let torn = |state: &str| of(&recording, &[state]).torn_states;
        let states = ["0:0:only0", "0:0:only1", "0:0:none", "0:0:upto2"];
        assert_eq!(states.map(torn), [1, 1, 0, 0]);
    }

    #[test]
    fn a_page_that_is_whole_as_an_earlier_write_left_it_is_not_torn() {
        let recording = RecordingBuilder::new(1 << 16)
            .base(PAGE, [1; PAGE as usize])
            .write(PAGE, [2; PAGE as usize])
            .write(PAGE, [3; PAGE as usize])
            .build();
        let torn = |state: &str| of(&recording, &[state]).torn_states;
        let states = ["0:0:only0", "0:0:only1", "0:0:only0+4", "0:0:upto1+4"];
        assert_eq!(states.map(torn), [0, 0, 1, 1]);
        // The second write over a torn first one is whole.
        assert_eq!(torn("0:0:without0+4"), 0);
    }
}
