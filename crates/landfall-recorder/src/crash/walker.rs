//! Going through a recording, epoch by epoch.
//!
//! A walker knows, of each sector that the recording writes, a hash of what was durable there when the
//! current epoch began, and nothing else of the disk: some 50 bytes for each such sector. Each epoch is
//! read once while it goes forward. To go back it begins again.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileExt;

use super::changes::Changes;
use super::composition::{WriteFate, fates};
use super::epoch::{Epoch, epochs, write_of};
use super::identity::{Content, Delta, Identity};
use super::{Composition, StateName};
use crate::event::{SECTOR, Span};
use crate::{Event, Recording};

/// Goes through the epochs of a recording and says how their crash states are made.
#[derive(Debug)]
pub struct Walker<'a> {
    recording: &'a Recording,
    epochs: Vec<Epoch>,
    /// The epoch it is in.
    current: usize,
    sectors: HashMap<u64, Sector>,
    /// What was durable when that epoch began.
    durable: Identity,
    changes: Changes,
}

#[derive(Clone, Copy, Debug)]
struct Sector {
    durable: Content,
    /// Its last change in the current epoch.
    latest: Option<u32>,
}

impl<'a> Walker<'a> {
    /// A walker in the first epoch. Fails as [`epochs`] does.
    pub fn new(recording: &'a Recording) -> io::Result<Walker<'a>> {
        let mut walker = Walker {
            recording,
            epochs: epochs(recording)?,
            current: 0,
            sectors: HashMap::new(),
            durable: Identity::BASE,
            changes: Changes::new(recording.atomic_unit()),
        };
        walker.read_epoch()?;
        Ok(walker)
    }

    /// All epochs of the recording.
    pub fn epochs(&self) -> &[Epoch] {
        &self.epochs
    }

    /// How the crash state is made. States that are asked for in the order of their epochs cost one
    /// pass over the recording together; each step back begins another.
    ///
    /// Fails with [`InvalidInput`](io::ErrorKind::InvalidInput) if the recording has no such state.
    pub fn composition(&mut self, name: &StateName) -> io::Result<Composition> {
        self.composition_before(name, usize::MAX)
    }

    /// As [`composition`](Walker::composition), if the power went after the first `events` events: what the state's epoch has
    /// written later is not there, whatever its name says.
    pub fn composition_before(
        &mut self,
        name: &StateName,
        events: usize,
    ) -> io::Result<Composition> {
        self.go_to(name.cut as usize)?;
        Composition::new(self, name, events)
    }

    /// The epoch in which the power is cut after the first `events` events.
    pub fn cut_at(&self, events: usize) -> u32 {
        // The flush that ends an epoch comes after its events.
        let over = self
            .epochs
            .partition_point(|epoch| epoch.events.end < events);
        over.min(self.epochs.len() - 1) as u32
    }

    /// What became of each write of the epoch in which the state's power is cut, in order. Fails as
    /// [`composition`](Walker::composition) does.
    pub fn fates(&mut self, name: &StateName) -> io::Result<Vec<WriteFate>> {
        self.fates_before(name, usize::MAX)
    }

    /// As [`fates`](Walker::fates), if the power went after the first `events` events: of the writes that happened by then.
    pub fn fates_before(&mut self, name: &StateName, events: usize) -> io::Result<Vec<WriteFate>> {
        self.go_to(name.cut as usize)?;
        fates(self, name, events)
    }

    /// How many events there were when the last write happened of which the state has something: what was said later, no
    /// write can know of. Fails as [`composition`](Walker::composition) does.
    pub fn written(&mut self, name: &StateName) -> io::Result<usize> {
        self.written_before(name, usize::MAX)
    }

    /// As [`written`](Walker::written), if the power went after the first `events` events.
    pub fn written_before(&mut self, name: &StateName, events: usize) -> io::Result<usize> {
        let fates = self.fates_before(name, events)?;
        let arrived = fates.iter().filter(|fate| fate.arrived.contains(&true));
        let last = arrived.map(|fate| fate.event + 1).max();
        // One that is carried may be older than what is durable.
        let begin = self.epoch().events.start;
        Ok(last.map_or(begin, |last| last.max(begin)))
    }

    /// The epoch it is in.
    pub(super) fn epoch(&self) -> &Epoch {
        &self.epochs[self.current]
    }

    /// What is written in this epoch.
    pub(super) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// What was durable when this epoch began.
    pub(super) fn durable(&self) -> Identity {
        self.durable
    }

    /// What was durable in a sector when this epoch began; `None` if nothing was written to it by the end of this epoch.
    pub(super) fn durable_at(&self, sector: u64) -> Option<Content> {
        self.sectors.get(&sector).map(|sector| sector.durable)
    }

    /// The events of the recording.
    pub(super) fn events(&self) -> &'a [Event] {
        self.recording.events()
    }

    /// Where on the device a write of this epoch goes, and its data in the spill file.
    pub(super) fn write(&self, write: usize) -> Option<(u64, Span)> {
        let &event = self.epoch().writes.get(write)?;
        write_of(self.recording, event)
    }

    /// Goes to an epoch.
    pub(super) fn go_to(&mut self, epoch: usize) -> io::Result<()> {
        if epoch >= self.epochs.len() {
            let text = format!(
                "the recording has {} epochs, so that no crash state has number {epoch}",
                self.epochs.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if epoch < self.current {
            self.current = 0;
            self.sectors.clear();
            self.durable = Identity::BASE;
            self.read_epoch()?;
        }
        while self.current < epoch {
            self.settle();
            self.current += 1;
            self.read_epoch()?;
        }
        Ok(())
    }

    /// Everything written in this epoch is durable that is not carried into the next.
    fn settle(&mut self) {
        let (epoch, next) = (&self.epochs[self.current], &self.epochs[self.current + 1]);
        let writes = (0..epoch.writes.len()).map(|write| epoch.settles(write, next));
        let settles: Vec<bool> = writes.collect();
        let list = self.changes.list();
        for change in list {
            if let Some(sector) = self.sectors.get_mut(&change.sector) {
                if settles[change.write as usize] {
                    // The last one stays.
                    sector.durable = change.content;
                }
                sector.latest = None;
            }
        }
        let settles = |change: usize| settles[list[change].write as usize];
        self.durable = self.changes.select(self.durable, settles).image;
    }

    fn read_epoch(&mut self) -> io::Result<()> {
        self.changes = Changes::new(self.recording.atomic_unit());
        for write in 0..self.epoch().writes.len() {
            if let Some((offset, data)) = self.write(write) {
                self.changes.next_write();
                self.read_write(write as u32, offset, data)?;
            }
        }
        self.changes.finish();
        Ok(())
    }

    fn read_write(&mut self, write: u32, offset: u64, data: Span) -> io::Result<()> {
        let bytes = self.recording.bytes(data)?;
        let first = offset / SECTOR as u64;
        let count = (bytes.len() / SECTOR) as u64;
        if (first..first + count).any(|sector| !self.sectors.contains_key(&sector)) {
            self.read_base(first, bytes.len())?;
        }
        for ((place, sector), content) in (0..).zip(first..).zip(bytes.chunks_exact(SECTOR)) {
            let content = Content::of(content);
            let Some(known) = self.sectors.get_mut(&sector) else {
                continue;
            };
            let is_change = known.latest.is_some() || content != known.durable;
            if !is_change || !self.epochs[self.current].counts(write as usize, place) {
                continue;
            }
            let delta = Delta::of(sector, known.durable, content);
            let change = Changes::loose(write, place, sector, content, delta);
            let number = self.changes.push(change, known.latest);
            known.latest = Some(number.ok_or_else(|| {
                let text = "more sectors are written between two flushes than can be numbered";
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?);
        }
        Ok(())
    }

    /// Learns what sectors held when the recording began, where it does not know what they held since.
    fn read_base(&mut self, first: u64, len: usize) -> io::Result<()> {
        let mut base = vec![0; len];
        let offset = first * SECTOR as u64;
        self.recording.base().read_exact_at(&mut base, offset)?;
        for (sector, content) in (first..).zip(base.chunks_exact(SECTOR)) {
            self.sectors.entry(sector).or_insert_with(|| Sector {
                durable: Content::of(content),
                latest: None,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::RecordingBuilder;

    #[test]
    fn fates_say_of_each_write_which_changed_sectors_arrived() {
        let recording = RecordingBuilder::new(4096)
            .base(512, [2; 512])
            .mark(b"a")
            // The second sector is no change.
            .sectors(0, &[1, 2, 3])
            .mark(b"b")
            // Nor is this.
            .sector(3, 0)
            .sectors(1, &[3, 4])
            .build();
        let mut walker = Walker::new(&recording).unwrap();
        let mut fates = |name: &str| {
            let fates = walker.fates(&name.parse().unwrap()).unwrap();
            let fates = fates.into_iter().map(|fate| (fate.event, fate.arrived));
            fates.collect::<Vec<_>>()
        };
        let all = |one: [bool; 2], three: [bool; 2]| {
            [(1, one.to_vec()), (3, vec![]), (4, three.to_vec())]
        };
        assert_eq!(fates("0:0:none"), all([false; 2], [false; 2]));
        assert_eq!(fates("0:0:first1"), all([true; 2], [false; 2]));
        assert_eq!(fates("0:0:first2+1"), all([true; 2], [true, false]));
        assert_eq!(fates("0:0:s9"), all([true, false], [false, true]));
        let first = walker.fates_before(&"0:0:first2+1".parse().unwrap(), 4);
        let first = first.unwrap().into_iter();
        let first: Vec<_> = first.map(|fate| (fate.event, fate.arrived)).collect();
        assert_eq!(first, all([true; 2], [true, false])[..2]);
    }

    #[test]
    fn what_is_durable_was_written_before_and_what_arrived_may_be_older() {
        let recording = RecordingBuilder::new(4096)
            .sector(0, 1)
            .mark(b"a")
            .sector(1, 1)
            .forced(&[2])
            .mark(b"b")
            .sector(2, 1)
            .build();
        let mut walker = Walker::new(&recording).unwrap();
        let mut written = |name: &str| walker.written(&name.parse().unwrap()).unwrap();
        assert_eq!(written("0:0:none"), 0);
        assert_eq!(written("0:0:only0"), 1);
        assert_eq!(written("0:0:only1"), 3);
        assert_eq!(written("0:1:none"), 4);
        assert_eq!(written("0:1:only0"), 4);
        assert_eq!(written("0:1:only1"), 6);
    }

    #[test]
    fn an_epoch_that_the_recording_does_not_have_is_refused() {
        let recording = RecordingBuilder::new(4096).flush().build();
        let mut walker = Walker::new(&recording).unwrap();
        let error = walker.fates(&"0:2:none".parse().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains("2 epochs"), "{error}");
    }
}
