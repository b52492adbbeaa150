//! Taking a snapshot while commands go on, publishing it, and removing what is not needed any more.
//!
//! A snapshot is not of one moment: each part is captured by itself, with the number of the first command that
//! is not in it, while nobody can change that part. What came before that number is in it, what comes after is
//! applied again; so the parts need no common moment. It is published, by its name, when it is durable, and when the
//! log is durable up to the last number in it: it never has what the log may yet lose. Only then is the log truncated, up to
//! where the oldest snapshot that is kept needs it. Where opening found none to read, the first one
//! is read back before it is published.
//!
//! Whatever fails leaves the snapshots that were there, and the log.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::format::{DRAFT, Header, snapshot_name};
use super::reader::Reader;
use super::restart::read_parts;
use super::shared::Shared;
use super::writer::{Writer, Written};
use super::{Snapshot, State};
use crate::environment::{Environment, File, FileOf, Storage, planted};
use crate::{Error, Lsn};

/// A snapshot that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub number: u64,
    /// The first command that may have to be applied behind it.
    pub first: u64,
}

/// What is known by who takes snapshots, one at a time.
#[derive(Debug, Default)]
pub(crate) struct Taking {
    /// The oldest first.
    pub kept: Vec<Known>,
    /// Those of which nothing can be made.
    pub unusable: Vec<String>,
    pub next_number: u64,
    /// Whether one could be read back since the state was opened: what an older program wrote tells nothing of what this one writes.
    pub is_read_back: bool,
    /// Why nobody knows which snapshots are there after a power cut: another sync of the directory would say that
    /// all is well.
    pub failure: Option<Arc<io::Error>>,
}

/// A snapshot that is written and not published.
struct Draft<F> {
    written: Written<F>,
    /// The first command that is in no part of it.
    end: u64,
    longest_capture: Duration,
}

fn not_written(why: String) -> Error {
    Error::io("write a snapshot")(io::Error::other(why))
}

fn unreadable(what: String) -> Error {
    not_written(format!("it cannot be read back: {what}"))
}

impl<S: State, E: Environment> Shared<S, E> {
    /// Takes one, and waits for it.
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot, Error> {
        // What is written here, or removed where it fails, is the parent's.
        self.log.shared.require_ours()?;
        self.snapshot_with(&mut E::lock(&self.taking))
    }

    fn snapshot_with(self: &Arc<Self>, taking: &mut Taking) -> Result<Snapshot, Error> {
        // What a user's code does must leave what was there, as every failure does.
        let taken = catch_unwind(AssertUnwindSafe(|| self.take(taking)));
        let mut counters = E::lock(&self.counters);
        if let Ok(Ok(snapshot)) = &taken {
            counters.snapshots += 1;
            counters.last_snapshot = Some(snapshot.clone());
        } else {
            counters.failed_snapshots += 1;
            drop(counters);
            E::lock(&self.schedule).failed(self.log.next_lsn().0);
            // It would take space from those that can be taken.
            let _ = self.environment.storage().remove(DRAFT);
        }
        match taken {
            Ok(taken) => taken,
            Err(panic) => resume_unwind(panic),
        }
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
            let mut taking = E::lock(&self.taking);
            // Somebody may have asked for one, and have it by now.
            let is_due = E::lock(&self.schedule)
                .is_due(self.log.next_lsn().0, self.options.max_recovery_time);
            if is_due {
                // A panic has told of itself.
                let taken = catch_unwind(AssertUnwindSafe(|| self.snapshot_with(&mut taking)));
                if let Ok(Err(error)) = taken {
                    tracing::warn!(%error, "no snapshot could be taken");
                }
            }
            drop(taking);
            work = E::lock(&self.work);
        }
    }

    fn take(self: &Arc<Self>, taking: &mut Taking) -> Result<Snapshot, Error> {
        if let Some(source) = &taking.failure {
            return Err(Error::Unpublished(source.clone()));
        }
        let begin = self.environment.now();
        let number = taking.next_number;
        let first = self.log.next_lsn().0;
        let name = snapshot_name(number);
        let Draft {
            written,
            end,
            longest_capture,
        } = self.draft(number, first)?;
        let publishing = || Error::io(format!("publish {name}"));
        let is_hasty = planted!(self.environment, PublishBeforeSync);
        if !is_hasty {
            written.file.sync().map_err(publishing())?;
        }
        let read_back = if taking.is_read_back {
            None
        } else {
            Some(self.read_draft()?)
        };
        taking.is_read_back = true;
        // What is in it must be in the log for ever; before the first command there is nothing to wait for.
        if !planted!(self.environment, SnapshotAheadOfLog) {
            self.log.commit_to(Lsn(end - 1))?;
        }
        if planted!(self.environment, TruncateBeforePublish) {
            self.log
                .truncate_before(Lsn(first.min(self.log.durable_end().0)))?;
        }
        self.environment
            .storage()
            .rename(DRAFT, &name)
            .map_err(publishing())?;
        let synced = if planted!(self.environment, SkipSnapshotDirectorySync) {
            Ok(())
        } else {
            self.environment.storage().sync()
        };
        if let Err(error) = synced {
            let source = Arc::new(error);
            taking.failure = Some(source.clone());
            // Whoever opens the state next would take its name for durable, and give up those that it makes up for.
            let _ = self.environment.storage().remove(&name);
            return Err(Error::Unpublished(source));
        }
        taking.next_number += 1;
        taking.kept.push(Known { number, first });
        if let Err(error) = self.prune(taking) {
            // It is there all the same; the log is longer than it need be.
            tracing::warn!(%error, name, "nothing could be given up for a new snapshot");
        }
        let took = self.environment.now().saturating_sub(begin);
        // Reading it took as long as that, or will take about as long as writing it.
        E::lock(&self.schedule).taken(first, read_back.unwrap_or(took));
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
    fn draft(&self, number: u64, first: u64) -> Result<Draft<FileOf<E>>, Error> {
        let writing = || Error::io("write a snapshot");
        match self.environment.storage().remove(DRAFT) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(writing()(error)),
            _ => {}
        }
        let file = self
            .environment
            .storage()
            .create(DRAFT)
            .map_err(writing())?;
        let header = Header {
            log: self.log.shared.log,
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
            self.log.shared.geometry.granule,
            &is_stopped,
        );
        let mut writer = writer.map_err(writing())?;
        let (mut end, mut longest_capture) = (first, Duration::ZERO);
        for part in 0..S::PARTS {
            let (capture, lsn, took) = self.capture(part)?;
            if lsn < first {
                // Whoever reads it would take it for damaged.
                return Err(Error::broken(
                    "a part lacks commands that came before its snapshot",
                ));
            }
            longest_capture = longest_capture.max(took);
            end = end.max(lsn);
            writer.begin_part(part, lsn);
            S::write(capture, &mut writer).map_err(writing())?;
            writer.end_part().map_err(writing())?;
        }
        Ok(Draft {
            written: writer.finish(S::PARTS, end).map_err(writing())?,
            end,
            longest_capture,
        })
    }

    /// Reads the draft back, as a restart will, and says how long that took: what can be written and never read back must not
    /// take the place of the log.
    fn read_draft(self: &Arc<Self>) -> Result<Duration, Error> {
        let came = Arc::new(OnceLock::new());
        let (own, coming) = (self.clone(), came.clone());
        let work = move || {
            let _ = coming.set(own.read_parts_of_draft());
        };
        let (joined, took) = self.time(|| {
            // Whoever asks for a snapshot may have a small stack.
            let thread = self.environment.spawn("landfall-read-back", work);
            thread.map(E::join)
        });
        joined.map_err(Error::io("start a thread of the state"))?;
        let read = came.get().cloned();
        // A part may have panicked when it was dropped.
        read.unwrap_or_else(|| Err(unreadable("it panicked".to_owned())))?;
        Ok(took)
    }

    fn read_parts_of_draft(&self) -> Result<(), Error> {
        let granule = self.log.shared.geometry.granule;
        let mut reader = Reader::open(&self.environment, DRAFT, granule)?;
        // Each part is dropped before the next one is read.
        let take = |_: S, _: u64| {
            if self.is_closing.load(Ordering::SeqCst) {
                return Err(not_written("the state is being closed".to_owned()));
            }
            Ok(())
        };
        read_parts::<S, E>(&mut reader, unreadable, take).map(drop)
    }

    /// What a part is written from, the first command that is not in it, and how long nobody could change it.
    fn capture(&self, part: u32) -> Result<(S::Capture, u64, Duration), Error> {
        let part = self.share(part.into());
        if !part.is_logged {
            return Err(Error::Unlogged);
        }
        let begin = self.environment.now();
        let capture = part.state.capture();
        let lsn = self.log.next_lsn().0;
        let took = self.environment.now().saturating_sub(begin);
        drop(part);
        let lsn = if planted!(self.environment, LateCapture) {
            self.log.next_lsn().0
        } else {
            lsn
        };
        Ok((capture, lsn, took))
    }

    /// Removes snapshots that are not kept, and what only they need of the log.
    fn prune(&self, taking: &mut Taking) -> Result<(), Error> {
        let surplus = taking
            .kept
            .len()
            .saturating_sub(self.options.keep_snapshots as usize);
        let needed = if planted!(self.environment, ForgetOlderSnapshots) {
            taking.kept.last()
        } else {
            // While there are fewer the log from its beginning is as good as the one that is missing.
            let has_enough = taking.kept.len() >= self.options.keep_snapshots as usize;
            taking.kept.get(surplus).filter(|_| has_enough)
        };
        if let Some(needed) = needed {
            // What was appended before it is durable since it was published.
            self.log.truncate_before(Lsn(needed.first))?;
        }
        let old = taking.kept.drain(..surplus);
        let names = old.map(|known| snapshot_name(known.number));
        for name in names.chain(taking.unusable.drain(..)) {
            // It is not needed; if it stays it is found when the state is opened.
            if let Err(error) = self.environment.storage().remove(&name) {
                tracing::warn!(%error, name, "a snapshot that is not needed cannot be removed");
            }
        }
        Ok(())
    }
}
