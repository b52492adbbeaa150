//! What writes cost once they have gone on for long.
//!
//! A recording is often too short to fill a drive's spare flash even once. It is therefore played over and
//! over, in *rounds*: the fewest whole passes in which the host writes as many pages as the flash has, so
//! that a round leaves nothing as it was. After 8, 16, 32 and 64 rounds the later half of them is held
//! against the quarter before it. When their amplifications differ by less than 1%, that of the half is the
//! result; after 64 rounds it is in any case, and is said not to be steady.
//!
//! Two rounds that are alike would not do. Where first in, first out meets a file that is written from end
//! to end and a journal that goes round, rounds of 6.5 and of 9.0 can take turns for ever.

use std::io;

use super::drive::Drive;
use super::flash::{Counts, Flash};
use super::writes::Writes;
use crate::Recording;

/// Amplifications that differ by less than this share are alike.
const ALIKE: f64 = 0.01;
/// Rounds after which it is first asked whether they are, and after which it is not asked any more.
const FIRST_ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 64;

/// What writes cost a drive that gets them over and over. Bytes and blocks are those of one pass through
/// the writes, on average over the later half of the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wear {
    /// Write commands.
    pub writes: u64,
    /// Bytes that the host wrote.
    pub host_bytes: u64,
    /// The same in whole flash pages: what would be programmed if nothing were ever copied.
    pub page_bytes: u64,
    /// Bytes programmed into flash.
    pub nand_bytes: u64,
    /// Bytes programmed per byte that the host wrote: 1 at best.
    pub amplification: f64,
    /// Blocks erased, not rounded since it may be less than one.
    pub erased_blocks: f64,
    /// How often a flash page is written in one pass, of those that are written at all. Near 1 the
    /// writes say nothing about which page is rewritten soon and which late, and the amplification is
    /// that of their order coming again exactly: too good, unless it does.
    pub rewrites: f64,
    /// Flash pages of data that the drive held, those that these writes never touch among them.
    pub pages_in_use: u64,
    /// Blocks of flash. Below some hundred the miniature is coarse.
    pub blocks: u64,
    /// Passes that were played in all.
    pub passes: u64,
    /// Whether the amplification had changed by less than 1% from the quarter of the rounds before. If
    /// not, the figures are those of a drive whose state still changes.
    pub steady: bool,
}

impl Wear {
    /// What everything in a recording costs.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if it has no writes, or if its device is of 2 TiB or
    /// more; and those of reading it.
    pub fn of(recording: &Recording, drive: &Drive) -> io::Result<Wear> {
        Wear::between(recording, 0, recording.events().len(), drive)
    }

    /// What `events[from..to]` of a recording cost. What was there before them is on the flash when they
    /// begin.
    ///
    /// # Errors
    ///
    /// As [`of`](Wear::of).
    pub fn between(
        recording: &Recording,
        from: usize,
        to: usize,
        drive: &Drive,
    ) -> io::Result<Wear> {
        Wear::of_writes(&Writes::of(recording, from, to)?, drive)
    }

    /// What writes cost that were noted without a recording.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if there are none, or if the device has too many
    /// pages.
    pub fn of_writes(writes: &Writes, drive: &Drive) -> io::Result<Wear> {
        if writes.is_empty() {
            let text = "nothing was written, so that no wear can be told; take a longer recording";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut flash = Flash::new(drive, writes.size())?;
        for (offset, len) in writes.held() {
            flash.write(offset, len);
        }
        // Brings everything into use, so that the flash has its final size.
        let first = play(&mut flash, writes, 1);
        let pages = flash.blocks() * u64::from(drive.block());
        let passes_of_round = pages.div_ceil(first.host_pages);

        let mut rounds = Vec::new();
        let (last, steady) = loop {
            let until = (2 * rounds.len()).max(FIRST_ROUNDS);
            while rounds.len() < until {
                rounds.push(play(&mut flash, writes, passes_of_round));
            }
            let (quarter, half) = rounds[until / 4..].split_at(until / 4);
            let (earlier, last) = (sum(quarter), sum(half));
            let change = (amplification(earlier) / amplification(last) - 1.0).abs();
            if change < ALIKE || until >= MOST_ROUNDS {
                break (last, change < ALIKE);
            }
        };
        let passes_of_last = passes_of_round * rounds.len() as u64 / 2;
        let a_pass = |count: u64| count as f64 / passes_of_last as f64;
        Ok(Wear {
            writes: first.writes,
            host_bytes: first.host_bytes,
            page_bytes: first.host_pages * u64::from(drive.page()),
            nand_bytes: a_pass(last.nand_bytes).round() as u64,
            amplification: amplification(last),
            erased_blocks: a_pass(last.erased_blocks),
            rewrites: first.host_pages as f64 / distinct_pages(writes, drive) as f64,
            pages_in_use: flash.pages_in_use(),
            blocks: flash.blocks(),
            passes: 1 + rounds.len() as u64 * passes_of_round,
            steady,
        })
    }

    /// The part of the amplification that comes from writes that do not cover whole pages.
    pub fn rounding(&self) -> f64 {
        self.page_bytes as f64 / self.host_bytes as f64
    }

    /// The part that comes from copying by the collector. The amplification is the product of both.
    pub fn copying(&self) -> f64 {
        self.amplification / self.rounding()
    }

    /// Bytes programmed for each of `requests`, if that many were served by one pass.
    pub fn nand_bytes_per(&self, requests: u64) -> f64 {
        self.amplification * self.host_bytes as f64 / requests as f64
    }

    /// Years until a drive is worn out by a host that goes on like this, with so many bytes a second.
    pub fn years(&self, drive: &Drive, host_bytes_per_second: f64) -> f64 {
        drive.years(host_bytes_per_second, self.amplification)
    }
}

fn play(flash: &mut Flash, writes: &Writes, passes: u64) -> Counts {
    let before = flash.counts();
    for _ in 0..passes {
        for (offset, len) in writes.iter() {
            flash.write(offset, len);
        }
    }
    flash.counts() - before
}

fn sum(rounds: &[Counts]) -> Counts {
    rounds
        .iter()
        .fold(Counts::default(), |sum, round| sum + *round)
}

fn amplification(counts: Counts) -> f64 {
    counts.nand_bytes as f64 / counts.host_bytes as f64
}

fn distinct_pages(writes: &Writes, drive: &Drive) -> u64 {
    let page = u64::from(drive.page());
    let mut seen = vec![false; writes.size().div_ceil(page) as usize];
    for (offset, len) in writes.iter() {
        seen[(offset / page) as usize..=((offset + len - 1) / page) as usize].fill(true);
    }
    seen.into_iter().filter(|seen| *seen).count() as u64
}
