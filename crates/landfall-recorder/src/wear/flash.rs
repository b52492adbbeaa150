//! Flash at work behind a page map.
//!
//! Host writes and copies go to the same open block, one page after the other. When it is full the block
//! that was kept erased is opened; then a victim is chosen, its valid pages are copied into the open
//! block, and it is erased and kept in turn. One block is therefore always erased, and every other one
//! is full or open: the drive is never cleaner than it must be.
//!
//! The flash grows with the pages in use, so that a drive has its utilisation from the first page on.

use std::io;
use std::ops::{Add, Sub};

use super::drive::Drive;
use super::victims::Victims;

/// A page that is nowhere, or a flash page that holds none yet.
const NONE: u32 = u32::MAX;
/// Blocks besides those that the utilisation asks for: the one that is kept erased.
const KEPT: u64 = 1;

/// What was asked of the flash, and what it did. All since it was made; the difference of two is what
/// happened between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Write commands.
    pub writes: u64,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// Flash pages that these touched: each is programmed whole.
    pub host_pages: u64,
    /// Pages copied by the collector.
    pub copied_pages: u64,
    /// Blocks erased.
    pub erased_blocks: u64,
    /// Bytes programmed: pages of the host and of the collector.
    pub nand_bytes: u64,
}

impl Add for Counts {
    type Output = Counts;

    fn add(self, other: Counts) -> Counts {
        Counts {
            writes: self.writes + other.writes,
            host_bytes: self.host_bytes + other.host_bytes,
            host_pages: self.host_pages + other.host_pages,
            copied_pages: self.copied_pages + other.copied_pages,
            erased_blocks: self.erased_blocks + other.erased_blocks,
            nand_bytes: self.nand_bytes + other.nand_bytes,
        }
    }
}

impl Sub for Counts {
    type Output = Counts;

    /// What happened from `earlier` to `self`.
    fn sub(self, earlier: Counts) -> Counts {
        Counts {
            writes: self.writes - earlier.writes,
            host_bytes: self.host_bytes - earlier.host_bytes,
            host_pages: self.host_pages - earlier.host_pages,
            copied_pages: self.copied_pages - earlier.copied_pages,
            erased_blocks: self.erased_blocks - earlier.erased_blocks,
            nand_bytes: self.nand_bytes - earlier.nand_bytes,
        }
    }
}

/// The flash of a drive in miniature, told one write after the other; for how it is scaled see the
/// [module](super).
///
/// It takes 4 bytes for each page of the device and 4 for each page of flash.
#[derive(Debug)]
pub struct Flash {
    drive: Drive,
    size: u64,
    /// Bytes of a page, as a power of two.
    page_bits: u32,
    /// Pages of a block.
    block: u32,
    /// Where each page of the device is.
    map: Vec<u32>,
    /// Which page was programmed on each flash page. It is valid there if the map says so too.
    owners: Vec<u32>,
    /// How many pages of each block are valid.
    valid: Vec<u32>,
    /// Erased blocks besides the one that is kept.
    erased: Vec<u32>,
    kept: u32,
    victims: Victims,
    open: u32,
    /// The next page of the open block.
    next: u32,
    in_use: u64,
    counts: Counts,
}

impl Flash {
    /// Flash behind a device of `size` bytes nothing of which is in use.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the device has more pages than 32 bits number.
    pub fn new(drive: &Drive, size: u64) -> io::Result<Flash> {
        let block = drive.block();
        let pages = size.div_ceil(u64::from(drive.page()));
        let most = (drive.blocks(pages) + KEPT + 1).saturating_mul(u64::from(block));
        if most >= u64::from(NONE) {
            let text = "the wear of a device this large cannot be told; take larger pages, or a smaller device";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut flash = Flash {
            size,
            page_bits: drive.page().trailing_zeros(),
            block,
            map: vec![NONE; pages as usize],
            owners: Vec::new(),
            valid: Vec::new(),
            erased: Vec::new(),
            kept: 0,
            victims: Victims::new(drive.collector(), block),
            open: 0,
            next: 0,
            in_use: 0,
            counts: Counts::default(),
            drive: drive.clone(),
        };
        flash.grow();
        flash.kept = flash.erased.pop().unwrap_or_default();
        flash.open = flash.erased.pop().unwrap_or_default();
        Ok(flash)
    }

    /// One write command of `len` bytes at `offset`, of which only what is on the device counts. Each
    /// page that it touches is programmed once; one that it covers in part is read, modified and
    /// programmed whole. What separate commands write is never merged.
    pub fn write(&mut self, offset: u64, len: u64) {
        let offset = offset.min(self.size);
        let len = len.min(self.size - offset);
        if len == 0 {
            return;
        }
        // Both are below the number of pages, which fits.
        let first = (offset >> self.page_bits) as u32;
        let last = ((offset + len - 1) >> self.page_bits) as u32;
        for page in first..=last {
            self.put(page);
        }
        let pages = u64::from(last - first) + 1;
        self.counts.writes += 1;
        self.counts.host_bytes += len;
        self.counts.host_pages += pages;
    }

    /// What was asked and done so far.
    pub fn counts(&self) -> Counts {
        let pages = self.counts.host_pages + self.counts.copied_pages;
        Counts {
            nand_bytes: pages << self.page_bits,
            ..self.counts
        }
    }

    /// Pages of the device that were ever written.
    pub fn pages_in_use(&self) -> u64 {
        self.in_use
    }

    /// Blocks that the flash has, without the one that is kept erased: below some hundred the miniature
    /// is coarse.
    pub fn blocks(&self) -> u64 {
        self.valid.len() as u64 - KEPT
    }

    /// Adds the blocks that the pages in use ask for.
    fn grow(&mut self) {
        let blocks = self.drive.blocks(self.in_use) + KEPT;
        let from = self.valid.len() as u64;
        if from >= blocks {
            return;
        }
        self.victims.make_room(blocks as u32);
        self.valid.resize(blocks as usize, 0);
        let pages = blocks as usize * self.block as usize;
        self.owners.resize(pages, NONE);
        // Taken from the end: the lowest first.
        self.erased.extend((from as u32..blocks as u32).rev());
    }

    fn put(&mut self, page: u32) {
        let old = self.map[page as usize];
        if old == NONE {
            self.in_use += 1;
            self.grow();
        } else {
            let block = old / self.block;
            let valid = &mut self.valid[block as usize];
            *valid -= 1;
            if block != self.open {
                self.victims.lower(block, *valid);
            }
            // So that a collection which this write brings about does not copy it.
            self.map[page as usize] = NONE;
        }
        if self.next == self.block {
            self.open_next();
        }
        self.program(page);
    }

    fn program(&mut self, page: u32) {
        let place = self.open * self.block + self.next;
        self.owners[place as usize] = page;
        self.map[page as usize] = place;
        self.valid[self.open as usize] += 1;
        self.next += 1;
    }

    /// Closes the open block, which is full, and opens one with room.
    fn open_next(&mut self) {
        while self.next == self.block {
            let valid = self.valid[self.open as usize];
            self.next = 0;
            if let Some(block) = self.erased.pop() {
                self.victims.add(self.open, valid);
                self.open = block;
            } else {
                let victim = self.victims.exchange(self.open, valid);
                self.open = std::mem::replace(&mut self.kept, victim);
                self.clean(victim);
            }
        }
    }

    /// Copies what is valid in a victim into the open block, which is empty, and erases the victim. The
    /// open block is full afterwards only if everything in the victim was valid; some block has a stale
    /// page, since there are more pages than are in use, and both collectors come to it.
    fn clean(&mut self, victim: u32) {
        let mut left = std::mem::take(&mut self.valid[victim as usize]);
        self.counts.copied_pages += u64::from(left);
        self.counts.erased_blocks += 1;
        let mut place = victim * self.block;
        while left > 0 {
            let page = self.owners[place as usize];
            if self.map[page as usize] == place {
                self.program(page);
                left -= 1;
            }
            place += 1;
        }
    }

    /// Panics unless every page in use is on one valid flash page, and the counts agree.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut valid = vec![0; self.valid.len()];
        let mut mapped = 0;
        for (page, &place) in self
            .map
            .iter()
            .enumerate()
            .filter(|(_, place)| **place != NONE)
        {
            // No two pages have one owner entry, so none is mapped twice.
            assert_eq!(self.owners[place as usize] as usize, page);
            let block = place / self.block;
            assert!(block != self.kept && !self.erased.contains(&block));
            assert!(block != self.open || place % self.block < self.next);
            valid[block as usize] += 1;
            mapped += 1;
        }
        assert_eq!(valid, self.valid);
        assert_eq!(mapped, self.in_use);
        let programmed = self.counts.host_pages + self.counts.copied_pages;
        let closed = self.valid.len() as u64 - self.erased.len() as u64 - KEPT - 1;
        let held = (closed + self.counts.erased_blocks) * u64::from(self.block);
        assert_eq!(programmed, held + u64::from(self.next));
    }
}
