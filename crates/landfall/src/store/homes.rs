//! Writing leaves again at their homes, which destroys what is there, so that a power cut takes no leaf.
//!
//! A leaf comes here only if its keys are those of the leaf that the last durable checkpoint has there. Leaves are collected, and written
//! in batches. Before a batch the log is made durable up to the newest change that any leaf may have: what is then found at a
//! home is either what the last checkpoint wrote, or newer, and the log has everything since, which is applied again. What
//! remains is a leaf that is torn, and the [`Protection`] says what is done about it:
//!
//! - *doublewrite*: the batch is first written into one half of an area of the data file, and the file synced. The next batch
//!   takes the other half, so that one sync makes its copies durable, and the homes of the batch before;
//! - *image*: leaves that were not written since the last checkpoint go into the log, whose commit makes them durable; the log
//!   has them until a checkpoint that is durable has made the homes durable, too;
//! - *atomic*: each leaf is one write that is not torn;
//! - *none*: nothing.
//!
//! Threads: those that write groups, one at a time, under the lock of [`Homes`]; helpers that write leaves of one batch, all of which
//! have ended when the batch has, also if one of them failed. Who reads a leaf takes no lock, and looks
//! again under that of `unsettled` if what came is no leaf: somebody may just be writing it.
//!
//! Failures: a batch that cannot be written is kept in memory, and read from there; the next checkpoint writes it before it begins. A sync that
//! fails with homes behind it leaves nobody knowing what is durable: no further checkpoint is made until the store is opened
//! again, so that copies, images and the log stay as they are.

use std::collections::HashMap;
use std::sync::Arc;

use super::counters::Written;
use super::data_file::{Pages, error_of_write};
use super::extents::Extent;
use super::options::HOME_BYTES;
use super::protection::Protection;
use super::record::{Image, Record};
use super::root::Span;
use super::shared::Shared;
use super::together::together;
use crate::compression::Compressor;
use crate::environment::{Buffer, Environment, File, planted};
use crate::{Compression, Error, Lsn};

/// Bytes of leaves that are written together.
#[cfg(not(test))]
const BATCH: u64 = 1 << 20;
#[cfg(test)]
const BATCH: u64 = 2 << 10;

/// Leaves that are being written at the same time.
#[cfg(not(test))]
const WRITERS: usize = 8;
#[cfg(test)]
const WRITERS: usize = 2;

/// The area of a store with *doublewrite*.
pub(crate) struct Copies<E: Environment> {
    pub halves: [Arc<Extent<E>>; 2],
    /// The half that the next batch takes.
    next: usize,
    /// A durable checkpoint says where it is.
    counts: bool,
}

impl<E: Environment> Clone for Copies<E> {
    fn clone(&self) -> Copies<E> {
        Copies {
            halves: self.halves.clone(),
            ..*self
        }
    }
}

impl<E: Environment> Copies<E> {
    /// Those that the root of the last checkpoint has.
    pub fn durable(halves: [Arc<Extent<E>>; 2]) -> Copies<E> {
        Copies {
            halves,
            next: 0,
            counts: true,
        }
    }

    pub fn spans(&self) -> [Span; 2] {
        self.halves.each_ref().map(|half| Span {
            offset: half.start,
            bytes: half.bytes,
        })
    }
}

/// What is known of homes by who writes them.
pub(crate) struct Homes<E: Environment> {
    /// Leaves that wait for their batch, and their bytes.
    waiting: Pages,
    waiting_bytes: u64,
    pub copies: Option<Copies<E>>,
    /// Homes of which an image was logged since the last checkpoint, and by which record.
    imaged: HashMap<u64, u64>,
    /// The log had no space for images: what is tried next is to write leaves elsewhere.
    lacks_images: bool,
    /// Copies took the space that what is written elsewhere needed.
    lacks_copies: bool,
    /// Homes were written since the data file was synced.
    is_unsynced: bool,
    /// A sync failed then.
    failure: Option<Error>,
    /// A batch of this attempt could not be written: none after it is.
    is_stopped: bool,
    /// How leaves were to be written that are unsettled.
    unsettled_by: Protection,
    written: Written,
}

impl<E: Environment> Homes<E> {
    pub fn new(copies: Option<Copies<E>>) -> Homes<E> {
        Homes {
            waiting: Pages::new(),
            waiting_bytes: 0,
            copies,
            imaged: HashMap::new(),
            lacks_images: false,
            lacks_copies: false,
            is_unsynced: false,
            failure: None,
            is_stopped: false,
            unsettled_by: Protection::Shadow,
            written: Written::default(),
        }
    }

    /// Why no checkpoint may be made any more.
    pub fn failure(&self) -> Option<Error> {
        self.failure.clone()
    }

    /// Whether the log had no space for images of leaves.
    pub fn lacks_images(&self) -> bool {
        self.lacks_images
    }

    /// The log may have space for images, or for fewer.
    pub fn try_images(&mut self) {
        self.lacks_images = false;
    }

    /// There may be space for images, and for copies.
    pub fn try_all(&mut self) {
        self.lacks_images = false;
        self.lacks_copies = false;
    }

    /// Gives up copies of which no root tells yet, so that what is written elsewhere may have their space; whether there were any.
    pub fn give_up_copies(&mut self) -> bool {
        let unused = self.copies.take_if(|copies| !copies.counts);
        self.lacks_copies |= unused.is_some();
        unused.is_some()
    }
}

impl<E: Environment> Shared<E> {
    /// Before leaves are written: completes what an earlier attempt has begun. What keeps them whole this time.
    pub(super) fn begin_homes(self: &Arc<Self>, asked: Protection) -> Result<Protection, Error> {
        let mut homes = E::lock(&self.homes);
        // An attempt that failed has left them; their changes are in memory.
        homes.waiting.clear();
        homes.waiting_bytes = 0;
        let mut unsettled = E::exclude(&self.unsettled);
        // Whatever protects others now: a copy, or an image, is there already, or is not needed.
        let protection = homes.unsettled_by;
        self.write_at_home(&mut homes, &unsettled, protection)?;
        *unsettled = Arc::default();
        homes.is_stopped = false;
        drop(unsettled);
        if asked != Protection::Doublewrite {
            // What is durable is held until the next checkpoint is.
            homes.copies = None;
            let lacks_images = asked == Protection::Image && homes.lacks_images;
            return Ok(if lacks_images {
                Protection::Shadow
            } else {
                asked
            });
        }
        let is_in_place = self.all_keyspaces().iter().any(|one| one.options.in_place);
        if homes.copies.is_none() && is_in_place && !homes.lacks_copies {
            // A batch has one leaf at least.
            let bytes = BATCH.max((*HOME_BYTES.end()).into());
            let half = || self.take_extent(bytes).map(Arc::new);
            let halves = half().and_then(|first| Ok([first, half()?]));
            match halves {
                // What is written elsewhere may need less.
                Err(Error::NoSpace { .. }) => return Ok(Protection::Shadow),
                halves => {
                    homes.copies = Some(Copies {
                        halves: halves?,
                        next: 0,
                        counts: false,
                    });
                }
            }
        }
        // Until one says where the copies are nobody would find them.
        let counts = homes.copies.as_ref().is_some_and(|copies| copies.counts);
        let trusts_anyway = planted!(self.environment, CopiesBeforeRoot);
        Ok(if counts || (trusts_anyway && homes.copies.is_some()) {
            Protection::Doublewrite
        } else {
            Protection::Shadow
        })
    }

    /// A leaf is written at its home, now or with others. All changes that are in it came at `newest` or before.
    pub(super) fn write_home(
        self: &Arc<Self>,
        (offset, bytes): (u64, Vec<u8>),
        protection: Protection,
        newest: u64,
    ) -> Result<(), Error> {
        let mut homes = E::lock(&self.homes);
        let padded = (bytes.len() as u64).next_multiple_of(self.granule);
        if homes.waiting_bytes + padded > BATCH && !homes.waiting.is_empty() {
            self.write_batch(&mut homes, protection, newest)?;
        }
        homes.waiting.push((offset, bytes));
        homes.waiting_bytes += padded;
        Ok(())
    }

    /// Writes those that still wait.
    pub(super) fn write_last_homes(
        self: &Arc<Self>,
        protection: Protection,
        newest: u64,
    ) -> Result<(), Error> {
        self.write_batch(&mut E::lock(&self.homes), protection, newest)
    }

    fn write_batch(
        self: &Arc<Self>,
        homes: &mut Homes<E>,
        protection: Protection,
        newest: u64,
    ) -> Result<(), Error> {
        // The other thread may not know yet that all is in vain. What it has written is still to be written, or to be read.
        if homes.is_stopped {
            return Err(Error::broken(
                "leaves are written after others could not be",
            ));
        }
        let written = self.write_collected(homes, protection, newest);
        homes.is_stopped |= written.is_err();
        written
    }

    fn write_collected(
        self: &Arc<Self>,
        homes: &mut Homes<E>,
        protection: Protection,
        newest: u64,
    ) -> Result<(), Error> {
        let mut pages = std::mem::take(&mut homes.waiting);
        let bytes = std::mem::take(&mut homes.waiting_bytes);
        if pages.is_empty() {
            return Ok(());
        }
        pages.sort_unstable_by_key(|(offset, _)| *offset);
        let mut newest = newest;
        if protection == Protection::Image {
            let logged = self.log_images(homes, &pages);
            homes.lacks_images |= matches!(logged, Err(Error::NoSpace { .. }));
            logged?;
            // One that an earlier attempt logged may not be durable either.
            let images = pages.iter().filter_map(|(home, _)| homes.imaged.get(home));
            newest = newest.max(images.copied().max().unwrap_or(0));
        }
        let skips_image =
            protection == Protection::Image && planted!(self.environment, ImageNotDurable);
        if !planted!(self.environment, HomeAheadOfLog) && !skips_image {
            self.log.commit_to(Lsn(newest))?;
        }
        if protection == Protection::Doublewrite {
            self.write_copies(homes, &pages)?;
        }
        let mut unsettled = E::exclude(&self.unsettled);
        *unsettled = Arc::new(pages);
        homes.unsettled_by = protection;
        self.write_at_home(homes, &unsettled, protection)?;
        *unsettled = Arc::default();
        homes.written.home_bytes += bytes;
        Ok(())
    }

    /// Writes leaves, which are in their order, at home; several at a time, since they lie apart and the disk may take them in
    /// whatever order is best.
    fn write_at_home(
        self: &Arc<Self>,
        homes: &mut Homes<E>,
        pages: &Arc<Pages>,
        protection: Protection,
    ) -> Result<(), Error> {
        if pages.is_empty() {
            return Ok(());
        }
        homes.is_unsynced = true;
        let (own, pages) = (self.clone(), pages.clone());
        let (environment, name) = (&self.environment, "landfall-homes");
        if protection != Protection::Atomic || planted!(self.environment, AtomicInPieces) {
            let places = self.neighbours(&pages);
            let count = places.len();
            let write = move |index: usize| own.write_neighbours(&pages[places[index].clone()]);
            return together(environment, name, WRITERS, count, write);
        }
        let count = pages.len();
        let write = move |index: usize| own.write_whole(&pages[index]);
        together(environment, name, WRITERS, count, write)
    }

    /// Writes a leaf by one write that is not torn.
    fn write_whole(&self, (offset, bytes): &(u64, Vec<u8>)) -> Result<(), Error> {
        let data = self.data.get().ok_or(Error::Closed)?;
        let mut buffer = Buffer::new(bytes.len());
        buffer.bytes_mut(0..bytes.len()).copy_from_slice(bytes);
        let written = data
            .file
            .write_atomic(buffer.bytes(0..bytes.len()), *offset);
        written.map_err(error_of_write(
            format!("write {} whole", data.name),
            bytes.len() as u64,
        ))
    }

    /// Makes copies of these leaves durable.
    fn write_copies(&self, homes: &mut Homes<E>, pages: &Pages) -> Result<(), Error> {
        let uses_one_half = planted!(self.environment, OneHalfOfCopies);
        let Some(copies) = &mut homes.copies else {
            return Err(Error::broken("a store has no place for copies"));
        };
        let half = copies.halves[copies.next].clone();
        let next = if uses_one_half { 0 } else { 1 - copies.next };
        let mut at = half.start;
        let mut placed = Pages::new();
        for (_, bytes) in pages {
            placed.push((at, bytes.clone()));
            at += (bytes.len() as u64).next_multiple_of(self.granule);
        }
        assert!(
            at <= half.start + half.bytes,
            "more leaves than a half has room for"
        );
        self.write_pages(&mut placed)?;
        homes.written.doublewrite_bytes += at - half.start;
        if !planted!(self.environment, CopiesNotDurable) {
            self.sync_data(homes)?;
        }
        // Only now are the homes durable whose copies are in the other half.
        if let Some(copies) = &mut homes.copies {
            copies.next = next;
        }
        Ok(())
    }

    /// Logs those leaves of which no image was logged since the last checkpoint.
    fn log_images(&self, homes: &mut Homes<E>, pages: &Pages) -> Result<(), Error> {
        let is_new = |(offset, _): &&(u64, Vec<u8>)| !homes.imaged.contains_key(offset);
        let new: Vec<&(u64, Vec<u8>)> = pages.iter().filter(is_new).collect();
        if new.is_empty() {
            return Ok(());
        }
        let compressor = || Compressor::new(Compression::Lz4);
        let mut compressor = compressor().map_err(Error::io("compress a leaf"))?;
        let mut compressed = Vec::with_capacity(new.len());
        for (_, bytes) in &new {
            let mut out = Vec::new();
            let is_smaller = compressor.compress(bytes, &mut out);
            let is_smaller = is_smaller.map_err(Error::io("compress a leaf"))?;
            compressed.push(is_smaller.then_some(out));
        }
        let image = |((offset, bytes), compressed): (&&(u64, Vec<u8>), &'_ Option<Vec<u8>>)| {
            (*offset, bytes.len() as u32, compressed.is_some())
        };
        let heads: Vec<_> = new.iter().zip(&compressed).map(image).collect();
        let images = heads.iter().zip(new.iter().zip(&compressed)).map(
            |(&(offset, length, is_compressed), ((_, bytes), compressed))| Image {
                offset,
                length,
                compression: if is_compressed {
                    Compression::Lz4
                } else {
                    Compression::None
                },
                bytes: compressed.as_ref().unwrap_or(bytes),
            },
        );
        let record = Record::Images(images.collect()).encode();
        let lsn = {
            // As a commit that changes nothing.
            let mut committing = E::lock(&self.committing);
            let lsn = self.log.append(&record)?;
            committing.visible = lsn.0;
            lsn
        };
        homes.written.image_bytes += record.len() as u64;
        let new = new.iter().map(|(offset, _)| (*offset, lsn.0));
        homes.imaged.extend(new);
        Ok(())
    }

    /// Makes durable what was written to the data file.
    pub(super) fn sync_data(&self, homes: &mut Homes<E>) -> Result<(), Error> {
        let data = self.data.get().ok_or(Error::Closed)?;
        let synced = data.file.sync();
        let synced = synced.map_err(Error::io("make a checkpoint durable"));
        match &synced {
            Ok(()) => homes.is_unsynced = false,
            Err(error) if homes.is_unsynced => homes.failure = Some(error.clone()),
            Err(_) => {}
        }
        synced
    }

    /// Leaves are at home, and perhaps a checkpoint is durable. What was written for them.
    pub(super) fn end_homes(&self, is_durable: bool) -> Written {
        let mut homes = E::lock(&self.homes);
        if !is_durable {
            return std::mem::take(&mut homes.written);
        }
        if !planted!(self.environment, ImageOnce) {
            homes.imaged.clear();
        }
        if let Some(copies) = &mut homes.copies {
            copies.counts = true;
        }
        std::mem::take(&mut homes.written)
    }
}
