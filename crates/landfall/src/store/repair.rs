//! What a power cut tore at a home, or the disk cannot read there, and what is there instead: a copy in the area of
//! *doublewrite*, or an image in the log.
//!
//! A copy or an image counts only for a home to which the last checkpoint leads, and only if it is what that checkpoint wrote
//! there, or newer: everything else is older, or of a leaf that has long gone.

use std::collections::BTreeMap;

use super::control::Control;
use super::data_file::DataFile;
use super::keyspaces::Keyspaces;
use super::page::{Kind, Pointer, Written, home_of, unseal};
use super::record::Image;
use super::root::Span;
use crate::Error;
use crate::environment::{Buffer, Environment, File};

/// Leaves by where their homes are.
type Homes = BTreeMap<u64, Pointer>;

/// Leaves that have been looked at again.
#[derive(Default)]
pub(super) struct Repairs {
    homes: Option<Homes>,
    /// What belongs at homes that are torn.
    pub torn: BTreeMap<u64, Vec<u8>>,
    /// What is at homes that were written with the last batches, and may not be durable: they are written once more before
    /// their copies go.
    pub recent: BTreeMap<u64, Vec<u8>>,
}

fn homes_of<E: Environment>(keyspaces: &Keyspaces<E>) -> Homes {
    let mut homes = Homes::new();
    for keyspace in keyspaces.all.values() {
        for place in E::share(&keyspace.groups).iter() {
            let group = E::share(&place.group);
            let pointers = group.leaves.iter().map(|slot| slot.page.pointer);
            let at_home = pointers.filter(|pointer| pointer.home.is_some());
            homes.extend(at_home.map(|pointer| (pointer.offset, pointer)));
        }
    }
    homes
}

impl Repairs {
    fn home<E: Environment>(&mut self, keyspaces: &Keyspaces<E>, offset: u64) -> Option<Pointer> {
        let homes = self.homes.get_or_insert_with(|| homes_of(keyspaces));
        homes.get(&offset).copied()
    }

    /// Has a page written at its home, unless a newer one is to be: both halves of the area, and the log, may have one.
    fn restore(&mut self, offset: u64, page: &[u8]) {
        let generation = |page: &[u8]| Written::of(page).generation;
        let known = self.torn.get(&offset);
        if known.is_none_or(|known| generation(known) < generation(page)) {
            self.recent.insert(offset, page.to_vec());
            self.torn.insert(offset, page.to_vec());
        }
    }

    /// Looks at the homes of which the area has copies.
    pub fn look_at_copies<E: Environment>(
        &mut self,
        data: &DataFile<E>,
        control: &Control,
        spans: &[Span; 2],
        keyspaces: &Keyspaces<E>,
    ) -> Result<(), Error> {
        let granule = control.granule as usize;
        let mut unreadable = None;
        for span in spans {
            let mut buffer = Buffer::new(span.bytes as usize);
            let whole = 0..buffer.capacity();
            let read = data.file.read(buffer.bytes_mut(whole.clone()), span.offset);
            if read.is_err() {
                for at in whole.clone().step_by(granule) {
                    let part = buffer.bytes_mut(at..at + granule);
                    if let Err(error) = data.file.read(part, span.offset + at as u64) {
                        part.fill(0);
                        unreadable = Some(error);
                    }
                }
            }
            let bytes = buffer.bytes(whole);
            let mut at = 0;
            while at < bytes.len() {
                let Some((offset, length)) = home_of(&bytes[at..], control.store) else {
                    at += granule;
                    continue;
                };
                let copy = &bytes[at..at + length];
                at += length.next_multiple_of(granule);
                let Some(pointer) = self.home(keyspaces, offset) else {
                    continue;
                };
                if unseal(copy, pointer, Kind::Leaf, control.store, false).is_err() {
                    continue;
                }
                match data.page_as_it_is(pointer, control) {
                    Some(page) => drop(self.recent.insert(offset, page)),
                    None => self.restore(offset, copy),
                }
            }
        }
        let Some(error) = unreadable else {
            return Ok(());
        };
        // What cannot be read is needed by a home that is torn, and by no other: the next batch is written over it.
        let homes = self.homes.get_or_insert_with(|| homes_of(keyspaces));
        let is_whole = |(offset, pointer): (&u64, &Pointer)| {
            self.torn.contains_key(offset) || data.page_as_it_is(*pointer, control).is_some()
        };
        if homes.iter().all(is_whole) {
            tracing::warn!(%error, file = data.name, "copies that nobody needs cannot be read");
            return Ok(());
        }
        Err(Error::io(format!("read copies in {}", data.name))(error))
    }

    /// Looks at the home of which the log has an image.
    pub fn look_at_image<E: Environment>(
        &mut self,
        data: &DataFile<E>,
        control: &Control,
        image: &Image<'_>,
        keyspaces: &Keyspaces<E>,
    ) -> Result<(), Error> {
        let Some(pointer) = self.home(keyspaces, image.offset) else {
            return Ok(());
        };
        let Some(page) = image.page() else {
            return Err(data.corrupt(pointer, "its image in the log makes no sense"));
        };
        let counts = unseal(&page, pointer, Kind::Leaf, control.store, false).is_ok();
        if counts && data.page_as_it_is(pointer, control).is_none() {
            self.restore(image.offset, &page);
        }
        Ok(())
    }
}
