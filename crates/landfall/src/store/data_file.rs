//! The data file: its name, how pages are read while a store is opened, and how a checkpoint writes them.
//!
//! A page is given a place in which nothing is that anybody needs, and is written there once; pages that lie side by side are
//! written by one call. Nothing here makes anything durable but the file's name.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::control::Control;
use super::extents::Extent;
use super::leaf::Leaf;
use super::page::{Kind, Pointer, Sealed, Written, unseal};
use super::shared::Shared;
use super::tree::Page;
use crate::environment::{ALIGNMENT, Buffer, Durability, Environment, File, FileOf, Storage};
use crate::log::format::MOST;
use crate::{Compression, Error, Lsn};

/// What the name of the data file begins with. There is one; each opening gives it another number.
pub(super) const DATA: &str = "data";

pub(crate) fn data_name(number: u64) -> String {
    format!("{DATA}-{number:06}")
}

pub(crate) fn data_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(DATA)?.strip_prefix('-')?.parse().ok()?;
    (data_name(number) == name && number < MOST).then_some(number)
}

/// Openings that there can have been since a control record had the number of the data file: half of what a generation can tell.
const MOST_OPENINGS: u64 = 1 << 31;

/// Refuses a data file of a number that no opening has come to: those behind it might be refused as well. A control record has one
/// before.
pub(super) fn require_reachable(names: &[String], before: u64) -> Result<(), Error> {
    let numbers = names.iter().filter_map(|name| data_number(name));
    let last = numbers.max().unwrap_or(0);
    if last.saturating_sub(before) <= MOST_OPENINGS {
        return Ok(());
    }
    Err(Error::Corrupt {
        file: PathBuf::from(data_name(last)),
        offset: 0,
        what: "no store has been opened as often as its name says".to_owned(),
    })
}

/// Bytes that are written by one call at the most.
const WRITE: usize = 1 << 20;
/// Bytes by which the data file grows at the most.
const MOST_GROWTH: u64 = 64 << 20;

/// Pages that have a place and are not written yet: their offsets, and their bytes.
pub(super) type Pages = Vec<(u64, Vec<u8>)>;

/// The data file.
pub(crate) struct DataFile<E: Environment> {
    pub file: FileOf<E>,
    pub number: u64,
    pub name: String,
    /// What belongs at homes that a power cut has torn, until it is written there.
    pub torn: BTreeMap<u64, Vec<u8>>,
}

impl<E: Environment> DataFile<E> {
    /// The one that a control record means. Each opening gives it the next number, and the record may be from before.
    pub fn find(
        environment: &E,
        names: &[String],
        control: &Control,
    ) -> Result<DataFile<E>, Error> {
        let numbers = names.iter().filter_map(|name| data_number(name));
        let missing = || Error::Corrupt {
            file: PathBuf::from(data_name(control.data)),
            offset: 0,
            what: "it is missing".to_owned(),
        };
        let number = numbers.filter(|number| *number >= control.data).max();
        let number = number.ok_or_else(missing)?;
        let name = data_name(number);
        let opened = environment.storage().open(&name);
        let file = opened.map_err(Error::io(format!("open {name}")))?;
        Ok(DataFile {
            file,
            number,
            name,
            torn: BTreeMap::new(),
        })
    }

    /// The entries of a leaf. `next` is the next commit of the log.
    pub fn leaf(&self, pointer: Pointer, control: &Control, next: u64) -> Result<Leaf, Error> {
        let (raw, bytes) = self.read(pointer, Kind::Leaf, control)?;
        self.require_logged(pointer, &bytes, next)?;
        Leaf::decode(raw).ok_or_else(|| self.corrupt(pointer, "its entries make no sense"))
    }

    /// The log has been cut if a leaf at home has changes of commits behind its end.
    pub fn require_logged(&self, pointer: Pointer, bytes: &[u8], next: u64) -> Result<(), Error> {
        if pointer.home.is_none() {
            return Ok(());
        }
        let newest = Written::of(bytes).newest;
        if newest < next {
            return Ok(());
        }
        Err(Error::LogLost {
            snapshot: format!("the leaf at byte {} of {}", pointer.offset, self.name),
            end: Lsn(newest + 1),
            next: Lsn(next),
        })
    }

    /// What a page holds, and the page.
    pub fn read(
        &self,
        pointer: Pointer,
        kind: Kind,
        control: &Control,
    ) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let extent = pointer.extent(control.granule.into());
        if pointer.offset + extent > control.end {
            return Err(self.corrupt(pointer, "a page is behind the end of the data file"));
        }
        let mut buffer = Buffer::new(extent as usize);
        let whole = 0..buffer.capacity();
        let read = self
            .file
            .read(buffer.bytes_mut(whole.clone()), pointer.offset);
        let unsealed = |bytes: &[u8]| {
            let raw = unseal(bytes, pointer, kind, control.store, false);
            raw.map_err(|what| self.corrupt(pointer, what))
        };
        let raw = read
            .map_err(Error::io(format!("read {}", self.name)))
            .and_then(|()| unsealed(buffer.bytes(whole.clone())));
        match (raw, self.torn.get(&pointer.offset)) {
            (Ok(raw), _) => Ok((raw, buffer.bytes(whole).to_vec())),
            (Err(_), Some(page)) => Ok((unsealed(page)?, page.clone())),
            (Err(error), None) => Err(error),
        }
    }

    /// The bytes of a page at its home; `None`: they are not what belongs there, or the disk cannot read them.
    pub fn page_as_it_is(&self, pointer: Pointer, control: &Control) -> Option<Vec<u8>> {
        let mut buffer = Buffer::new(pointer.extent(control.granule.into()) as usize);
        let whole = 0..buffer.capacity();
        let mut read = || {
            self.file
                .read(buffer.bytes_mut(whole.clone()), pointer.offset)
        };
        // What is there may be newer than its copy, and is not overwritten for an error that does not stay.
        let read = read().or_else(|_| read());
        let bytes = &buffer.bytes(whole)[..pointer.length as usize];
        let is_right =
            read.is_ok() && unseal(bytes, pointer, Kind::Leaf, control.store, false).is_ok();
        is_right.then(|| bytes.to_vec())
    }

    /// Writes pages where they belong, and makes them durable.
    pub fn restore(&self, pages: &BTreeMap<u64, Vec<u8>>, granule: u64) -> Result<(), Error> {
        if pages.is_empty() {
            return Ok(());
        }
        for (offset, bytes) in pages {
            let padded = bytes.len().next_multiple_of(granule as usize);
            let mut buffer = Buffer::new(padded);
            buffer.bytes_mut(0..bytes.len()).copy_from_slice(bytes);
            let written = self
                .file
                .write(buffer.bytes(0..padded), *offset, Durability::Later);
            written.map_err(error_of_write(
                format!("restore a leaf in {}", self.name),
                padded as u64,
            ))?;
        }
        let synced = self.file.sync();
        synced.map_err(Error::io(format!("restore leaves in {}", self.name)))
    }

    /// A page that cannot be read is damaged for those who can go on without it, whatever the disk says.
    pub fn damaged(&self, pointer: Pointer, error: Error) -> Error {
        match error {
            Error::Io { source, .. } => {
                self.corrupt(pointer, &format!("it cannot be read: {source}"))
            }
            error => error,
        }
    }

    pub fn corrupt(&self, pointer: Pointer, what: &str) -> Error {
        Error::Corrupt {
            file: PathBuf::from(&self.name),
            offset: pointer.offset,
            what: what.to_owned(),
        }
    }
}

impl<E: Environment> Shared<E> {
    /// Gives a page a place in the data file, in which nothing is that anybody needs.
    pub(super) fn place(
        &self,
        kind: Kind,
        compression: Compression,
        number: u64,
        raw: &[u8],
        pages: &mut Pages,
    ) -> Result<Arc<Page<E>>, Error> {
        let store = self.log.shared.log;
        let sealed = Sealed::new(kind, compression, store, number, raw)?;
        let extent = self.take_extent(sealed.len())?;
        let (pointer, bytes) = sealed.at(extent.start);
        pages.push((pointer.offset, bytes));
        Ok(Page::new(pointer, extent))
    }

    /// Takes room for so many bytes.
    pub(super) fn take_extent(&self, bytes: u64) -> Result<Extent<E>, Error> {
        let bytes = bytes.next_multiple_of(self.granule);
        loop {
            if let Some(extent) = self.space.take(bytes) {
                return Ok(extent);
            }
            // Another thread may take what was made.
            self.grow(bytes)?;
        }
    }

    /// Gives a leaf a home, in which nothing is that anybody needs.
    pub(super) fn settle(&self, sealed: Sealed, pages: &mut Pages) -> Result<Arc<Page<E>>, Error> {
        let bytes = sealed.len().next_multiple_of(self.granule);
        let extent = loop {
            match self.space.take_aligned(bytes) {
                Some(extent) => break extent,
                None => self.grow(2 * bytes)?,
            }
        };
        let (pointer, bytes) = sealed.at(extent.start);
        pages.push((pointer.offset, bytes));
        Ok(Page::new(pointer, extent))
    }

    /// Makes the data file longer, by so many bytes at least, unless another thread has just done so.
    pub(super) fn grow(&self, bytes: u64) -> Result<(), Error> {
        let data = &self.data.get().ok_or(Error::Closed)?.file;
        let before = self.space.end();
        let _growing = E::lock(&self.growing);
        let end = self.space.end();
        if end > before {
            return Ok(());
        }
        // Also without what is free at the end already.
        let more = (end / 8).clamp(bytes, MOST_GROWTH.max(bytes));
        for more in [more, bytes] {
            // Of a page that a file ends in the filesystem writes the rest by itself, when the file grows.
            let more = more.next_multiple_of(ALIGNMENT as u64);
            match data.allocate(end + more) {
                Ok(()) => {
                    self.space.grow(end + more);
                    return Ok(());
                }
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(Error::io("make the data file longer")(error)),
            }
        }
        Err(Error::NoSpace { bytes })
    }

    /// Writes pages where they belong, several by one call where they lie side by side.
    pub(super) fn write_pages(&self, pages: &mut Pages) -> Result<(), Error> {
        pages.sort_unstable_by_key(|(offset, _)| *offset);
        let mut places = self.neighbours(pages).into_iter();
        places.try_for_each(|place| self.write_neighbours(&pages[place]))
    }

    /// Which of these pages, which are in their order, lie side by side, and are few enough for one write.
    pub(super) fn neighbours(&self, pages: &[(u64, Vec<u8>)]) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut end = 0;
        let mut used = 0;
        for (index, (offset, bytes)) in pages.iter().enumerate() {
            let padded = self.padded(bytes);
            match found.last_mut() {
                Some(last) if *offset == end && used + padded <= WRITE => {
                    last.end = index + 1;
                    used += padded;
                }
                _ => {
                    found.push(index..index + 1);
                    used = padded;
                }
            }
            end = offset + padded as u64;
        }
        found
    }

    /// Writes pages that lie side by side.
    pub(super) fn write_neighbours(&self, pages: &[(u64, Vec<u8>)]) -> Result<(), Error> {
        let data = self.data.get().ok_or(Error::Closed)?;
        let Some((offset, _)) = pages.first() else {
            return Ok(());
        };
        let size = pages.iter().map(|(_, bytes)| self.padded(bytes)).sum();
        let mut buffer = Buffer::new(size);
        let mut used = 0;
        for (at, bytes) in pages {
            assert_eq!(
                *at,
                offset + used as u64,
                "pages that are written together lie side by side"
            );
            let end = used + self.padded(bytes);
            let place = buffer.bytes_mut(used..end);
            place[..bytes.len()].copy_from_slice(bytes);
            place[bytes.len()..].fill(0);
            used = end;
        }
        let written = data
            .file
            .write(buffer.bytes(0..size), *offset, Durability::Later);
        written.map_err(error_of_write(format!("write {}", data.name), size as u64))
    }

    fn padded(&self, bytes: &[u8]) -> usize {
        bytes.len().next_multiple_of(self.granule as usize)
    }

    /// Makes the data file before the first page is written, so that its name is durable before anything leads to it.
    pub(super) fn make_data_file(&self, number: &mut u64) -> Result<(), Error> {
        if self.data.get().is_some() {
            return Ok(());
        }
        let storage = self.environment.storage();
        let mut make = || {
            let mut next = 1;
            for number in storage.names()?.iter().filter_map(|name| data_number(name)) {
                // An attempt that did not come to a control record has left it.
                storage.remove(&data_name(number))?;
                next = next.max(number + 1);
            }
            let file = storage.create(&data_name(next))?;
            storage.sync()?;
            *number = next;
            Ok(file)
        };
        let file = make().map_err(|error: io::Error| match error {
            error if is_full(&error) => Error::NoSpace {
                bytes: self.granule,
            },
            error => Error::io("make the data file")(error),
        })?;
        // Nobody else makes one.
        let name = data_name(*number);
        let number = *number;
        let _ = self.data.set(DataFile {
            file,
            number,
            name,
            torn: BTreeMap::new(),
        });
        Ok(())
    }
}

/// What a write says that failed: some filesystems need room for one even where they promised it.
pub(super) fn error_of_write(doing: String, bytes: u64) -> impl FnOnce(io::Error) -> Error {
    move |error| match error {
        error if is_full(&error) => Error::NoSpace { bytes },
        error => Error::io(doing)(error),
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_are_made() {
        assert_eq!(data_number(&data_name(7)), Some(7));
        assert_eq!(data_number(&data_name(12_345_678)), Some(12_345_678));
        for name in ["data", "data-7", "data-", "data-00000x", "segment-000001"] {
            assert_eq!(data_number(name), None, "{name}");
        }
    }
}
