//! The new log that a salvage makes, and what is missing from it.

use super::source::Source;
use super::{Missing, Salvage};
use crate::environment::{Environment, Storage};
use crate::log::Handle;
use crate::log::directory::{self, Directory};
use crate::log::format::{CONTROL_DRAFT, CONTROL_NAME, Control, Kind, Shutdown, segment_number};
use crate::{Error, Lsn, Options};

/// The new log, which is made with the first record.
pub(crate) struct Copy<'a, T: Environment> {
    to: &'a T,
    options: Options,
    kind: Kind,
    log: Option<Handle<T>>,
    /// The directory was empty, and a log was to be made in it, from this record on.
    begun: Option<u64>,
    /// The record that comes next in the damaged log; `None`: whichever is the first, since nothing says what was
    /// truncated away.
    expected: Option<u64>,
    copied: u64,
    missing: Vec<Missing>,
}

impl<'a, T: Environment> Copy<'a, T> {
    /// Of records from `expected` on: whichever is the first, if nothing says what was truncated away.
    pub fn new<E: Environment>(
        source: &Source<'_, E>,
        to: &'a T,
        kind: Kind,
        expected: Option<u64>,
    ) -> Copy<'a, T> {
        Copy {
            to,
            options: Options::default().segment_bytes(source.geometry.segment),
            kind,
            log: None,
            begun: None,
            expected,
            copied: 0,
            missing: Vec::new(),
        }
    }

    /// Takes away what it has made: half a copy is worse than none. `is_beside` tells by the names what was put beside the log.
    pub fn remove(&mut self, is_beside: impl Fn(&str) -> bool) {
        let storage = self.to.storage();
        let (names, _directory) = match self.log.take() {
            Some(log) => {
                let _ = log.close();
                (storage.names().unwrap_or_default(), None)
            }
            // Opening may have made a log, or a part of one, and that holds nothing; or somebody else has come between.
            None => match self.begun.map(|first| (first, Directory::lock(self.to))) {
                Some((first, Ok(directory)))
                    if self.holds_nothing(&directory, first)
                        && !directory.names().iter().any(|name| is_beside(name)) =>
                {
                    (directory.names().to_vec(), Some(directory))
                }
                _ => return,
            },
        };
        let is_of_log = |name: &str| {
            [CONTROL_NAME, CONTROL_DRAFT].contains(&name) || segment_number(name).is_some()
        };
        let is_own = |name: &&String| is_of_log(name) || is_beside(name);
        for name in names.iter().filter(is_own) {
            if let Err(error) = storage.remove(name) {
                tracing::warn!(%error, name, "a file of half a copy cannot be removed");
            }
        }
    }

    /// Whether what is there is a log as `log` makes it from this first record on, opened once at the most, without any record.
    fn holds_nothing(&self, directory: &Directory<T>, first_lsn: u64) -> bool {
        let is_empty = || {
            let examined = directory.examine(&mut |_| Ok(()));
            examined.is_ok_and(|examined| examined.end.next_lsn == first_lsn)
        };
        directory.record().is_none_or(|record| match record.epoch {
            0 => true,
            1 => record.kind == self.kind && record.first_lsn == first_lsn && is_empty(),
            _ => false,
        })
    }

    pub fn append(&mut self, lsn: u64, bytes: &[u8]) -> Result<(), Error> {
        let expected = self.expected.unwrap_or(lsn);
        if lsn < expected {
            // It was truncated away, or is an older one with a number that was used again.
            return Ok(());
        }
        let log = self.log(lsn)?;
        let new_lsn = log.append(bytes)?;
        if lsn > expected {
            self.missing.push(Missing {
                lsns: Lsn(expected)..Lsn(lsn),
                new_lsn,
            });
        }
        self.expected = Some(lsn + 1);
        self.copied += 1;
        Ok(())
    }

    /// The new log, which is made with this first record if it is not there yet.
    pub fn log(&mut self, first_lsn: u64) -> Result<&Handle<T>, Error> {
        let log = match self.log.take() {
            Some(log) => log,
            None => {
                self.require_empty()?;
                // The disk may have larger blocks than that of the damaged log.
                let granule = self.to.storage().granule();
                let granule = u64::from(granule.map_err(Error::io("ask for the disk's blocks"))?);
                let segment = self.options.segment_bytes.max(4 * granule);
                let options = self.options.clone();
                let options = options.segment_bytes(segment.next_multiple_of(granule));
                self.begun = Some(first_lsn);
                let shared = directory::open(self.to, options, first_lsn, self.kind)?;
                let log = Handle { shared };
                if log.shared.epoch > 1 {
                    // Somebody else has made one meanwhile.
                    return Err(Error::NotEmpty {
                        name: CONTROL_NAME.to_owned(),
                    });
                }
                log
            }
        };
        Ok(self.log.insert(log))
    }

    fn require_empty(&self) -> Result<(), Error> {
        let made = self.to.storage().make_directory();
        made.map_err(Error::io("make the directory of the new log"))?;
        let names = self.to.storage().names();
        let names = names.map_err(Error::io("read the directory of the new log"))?;
        match names.into_iter().next() {
            Some(name) => Err(Error::NotEmpty { name }),
            None => Ok(()),
        }
    }

    pub fn finish(&mut self, control: Option<&Control>) -> Result<Salvage, Error> {
        let end = self.expected.unwrap_or(1);
        let log = self.log(end)?;
        let (first_lsn, new_lsn) = (log.first_lsn(), log.next_lsn());
        log.close()?;
        // What is known to have been there.
        let known = control.map_or(end, |control| control.end_lsn);
        if known > end {
            self.missing.push(Missing {
                lsns: Lsn(end)..Lsn(known),
                new_lsn,
            });
        }
        let is_closed = control.is_some_and(|control| control.shutdown == Shutdown::Closed);
        Ok(Salvage {
            first_lsn,
            copied: self.copied,
            missing: std::mem::take(&mut self.missing),
            ends_cleanly: is_closed && known == end,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::salvage::with_source;
    use crate::log::salvaging::{closed, log, with};

    #[test]
    fn what_opening_left_is_taken_away_unless_somebody_has_appended_to_it() {
        for records in [0, 1] {
            let (from, to) = (with(closed(3)), with(log(records, |_| ())));
            let removed = with_source(&from, |source| {
                let mut copy = Copy::new(source, &to, Kind::Log, None);
                copy.begun = Some(1);
                copy.remove(|_| false);
                Ok(())
            });
            removed.unwrap();
            assert_eq!(to.storage().files().is_empty(), records == 0);
        }
    }
}
