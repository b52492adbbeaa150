//! Taking a snapshot while commands go on, publishing it, and removing what is not needed any more.
//!
//! A snapshot is not of one moment: each part is captured by itself, with the number of the first command that
//! is not in it, while nobody can change that part. What came before that number is in it, what comes after is
//! applied again; so the parts need no common moment. It is published, by its name, when it is durable, and when the
//! log is durable up to the last number in it: it never has what the log may yet lose. Only then is the log truncated, up to
//! where the oldest snapshot that is kept needs it.
//!
//! Whatever fails leaves the snapshots that were there, and the log.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::format::{DRAFT, Header, snapshot_name};
use super::shared::Shared;
use super::writer::{Writer, Written};
use super::{Snapshot, State};
use crate::environment::{Environment, Fault, File};
use crate::{Error, Lsn};

/// A snapshot that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub number: u64,
    /// The first command that may have to be applied behind it.
    pub first: u64,
}

/// What is known by who takes snapshots, one at a time.
#[derive(Debug, Default)]
pub(super) struct Taking {
    /// The oldest first.
    pub kept: Vec<Known>,
    /// Those that cannot be read.
    pub damaged: Vec<String>,
    pub next_number: u64,
    /// Why nobody knows which snapshots are there after a power cut: another sync of the directory would say that
    /// all is well.
    pub failure: Option<Arc<io::Error>>,
}

/// A snapshot that is written and not published.
struct Draft<F> {
    written: Written<F>,
    /// The first command that is in no part of it.
    last: u64,
    longest_capture: Duration,
}

impl<S: State, E: Environment> Shared<S, E> {
    /// Takes one, and waits for it.
    pub fn snapshot(&self) -> Result<Snapshot, Error> {
        let mut taking = E::lock(&self.taking);
        let taken = self.take(&mut taking);
        let mut counters = E::lock(&self.counters);
        match &taken {
            Ok(snapshot) => {
                counters.snapshots += 1;
                counters.last_snapshot = Some(snapshot.clone());
            }
            Err(error) => {
                counters.failed_snapshots += 1;
                drop(counters);
                E::lock(&self.schedule).failed(self.log.next().0);
                tracing::warn!(%error, "no snapshot could be taken");
                // It would take space from those that can.
                let _ = self.environment.remove(DRAFT);
            }
        }
        taken
    }

    /// Takes them as they are due.
    pub(super) fn take_snapshots(self: &Arc<Self>) {
        let mut work = E::lock(&self.work);
        while !work.is_closing {
            if !std::mem::take(&mut work.is_due) {
                work = self.due.wait(work);
                continue;
            }
            drop(work);
            // What a user's code does is no reason to end the thread: it failed, as others do.
            let taken = catch_unwind(AssertUnwindSafe(|| self.snapshot()));
            if taken.is_err() {
                tracing::error!("the state panicked when a snapshot was taken");
                E::lock(&self.schedule).failed(self.log.next().0);
            }
            work = E::lock(&self.work);
            // It was asked for while one was taken.
            work.is_due = false;
        }
    }

    fn take(&self, taking: &mut Taking) -> Result<Snapshot, Error> {
        if let Some(source) = &taking.failure {
            return Err(Error::Poisoned {
                doing: "publishing a snapshot",
                source: source.clone(),
            });
        }
        let begin = self.environment.now();
        let number = taking.next_number;
        let first = self.log.next().0;
        let name = snapshot_name(number);
        let Draft {
            written,
            last,
            longest_capture,
        } = self.draft(number, first)?;
        let publishing = || Error::io(format!("publish {name}"));
        let is_hasty = self.environment.is_planted(Fault::PublishBeforeSync);
        if !is_hasty {
            written.file.sync().map_err(publishing())?;
        }
        // What is in it must be in the log for ever.
        if last > 1 && !self.environment.is_planted(Fault::SnapshotAheadOfLog) {
            self.log.commit_to(Lsn(last - 1))?;
        }
        if self.environment.is_planted(Fault::TruncateBeforePublish) {
            self.log
                .truncate_before(Lsn(first.min(self.log.durable().0)))?;
        }
        self.environment
            .rename(DRAFT, &name)
            .map_err(publishing())?;
        if let Err(error) = self.environment.sync_directory() {
            let source = Arc::new(error);
            taking.failure = Some(source.clone());
            return Err(Error::Poisoned {
                doing: "publishing a snapshot",
                source,
            });
        }
        taking.next_number += 1;
        taking.kept.push(Known { number, first });
        self.prune(taking)?;
        let took = self.environment.now().saturating_sub(begin);
        E::lock(&self.schedule).taken(first, took);
        tracing::debug!(name, bytes = written.bytes, "a snapshot was taken");
        Ok(Snapshot {
            name,
            bytes: written.bytes,
            raw_bytes: written.raw_bytes,
            took,
            longest_capture,
        })
    }

    /// Writes all parts to a file that is not published.
    fn draft(&self, number: u64, first: u64) -> Result<Draft<E::File>, Error> {
        let writing = || Error::io("write a snapshot");
        match self.environment.remove(DRAFT) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(writing()(error)),
            _ => {}
        }
        let file = self.environment.create(DRAFT).map_err(writing())?;
        let header = Header {
            log: self.log.id(),
            number,
            first,
            parts: S::PARTS,
            compression: self.options.compression,
        };
        let is_stopped = || self.is_closing.load(Ordering::SeqCst);
        let writer = Writer::new(
            &self.environment,
            file,
            header,
            self.options.chunk_bytes,
            self.log.granule(),
            &is_stopped,
        );
        let mut writer = writer.map_err(writing())?;
        let (mut last, mut longest_capture) = (first, Duration::ZERO);
        for part in 0..S::PARTS {
            let (capture, lsn, took) = self.capture(part)?;
            longest_capture = longest_capture.max(took);
            last = last.max(lsn);
            writer.begin_part(part, lsn);
            S::write(capture, &mut writer).map_err(writing())?;
            writer.end_part().map_err(writing())?;
        }
        Ok(Draft {
            written: writer.finish(S::PARTS, last).map_err(writing())?,
            last,
            longest_capture,
        })
    }

    /// What a part is written from, the first command that is not in it, and how long nobody could change it.
    fn capture(&self, part: u32) -> Result<(S::Capture, u64, Duration), Error> {
        let part = self.share(part.into());
        if !part.is_logged {
            return Err(Error::Unlogged);
        }
        let begin = self.environment.now();
        let capture = part.state.capture();
        let lsn = self.log.next().0;
        let took = self.environment.now().saturating_sub(begin);
        drop(part);
        let lsn = match self.environment.is_planted(Fault::LateCapture) {
            true => self.log.next().0,
            false => lsn,
        };
        Ok((capture, lsn, took))
    }

    /// Removes snapshots that are not kept, and what only they need of the log.
    fn prune(&self, taking: &mut Taking) -> Result<(), Error> {
        let surplus = taking
            .kept
            .len()
            .saturating_sub(self.options.snapshots as usize);
        let old: Vec<Known> = taking.kept.drain(..surplus).collect();
        let needed = match self.environment.is_planted(Fault::ForgetOlderSnapshots) {
            true => taking.kept.last(),
            // While there are fewer the log from its beginning is as good as the one that is missing.
            false => taking
                .kept
                .first()
                .filter(|_| taking.kept.len() == self.options.snapshots as usize),
        };
        if let Some(needed) = needed {
            // What was appended before it is durable since it was published.
            self.log.truncate_before(Lsn(needed.first))?;
        }
        let names = old.iter().map(|known| snapshot_name(known.number));
        for name in names.chain(taking.damaged.drain(..)) {
            // It is not needed; if it stays it is found when the state is opened.
            if let Err(error) = self.environment.remove(&name) {
                tracing::warn!(%error, name, "a snapshot that is not needed cannot be removed");
            }
        }
        Ok(())
    }
}
