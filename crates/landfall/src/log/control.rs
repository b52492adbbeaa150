//! The control file: two copies of the control record.
//!
//! Both are written, one after the other, and nothing that rests on a record is done before both are durable. So
//! whatever a power cut leaves of one, the other is whole; and where one is damaged later, or cannot be read, the other
//! says the same, or is the record before, on which nothing rests yet.

use std::path::PathBuf;

use super::format::{
    CONTROL, CONTROL_DRAFT, CONTROL_FILE, CONTROL_NAME, Control, ControlCopy, VERSION,
};
use crate::Error;
use crate::environment::Buffer;
use crate::environment::{Durability, Environment, File, FileOf, Storage, planted};

pub(crate) struct ControlFile<E: Environment> {
    environment: E,
    file: FileOf<E>,
    pub record: Control,
    buffer: Buffer,
}

impl<E: Environment> ControlFile<E> {
    /// Makes the file that is not there, durably: from then on the directory holds a log.
    pub fn create(environment: &E, record: Control) -> Result<(), Error> {
        let storage = environment.storage();
        let make = || {
            let file = storage.create(CONTROL_DRAFT)?;
            file.allocate(CONTROL_FILE as u64)?;
            let mut buffer = Buffer::new(CONTROL_FILE);
            for copy in [0, CONTROL] {
                record.encode(buffer.bytes_mut(copy..copy + CONTROL));
            }
            file.write(buffer.bytes(0..CONTROL_FILE), 0, Durability::Later)?;
            file.sync()?;
            storage.rename(CONTROL_DRAFT, CONTROL_NAME)?;
            storage.sync()
        };
        make().map_err(Error::io("make the control file of a log"))
    }

    /// Reads the file that is there.
    pub fn open(environment: &E) -> Result<ControlFile<E>, Error> {
        let doing = || Error::io("read the control file of the log");
        let opened = environment.storage().open(CONTROL_NAME);
        let file = opened.map_err(Error::io("open the control file of the log"))?;
        let size = file.size().map_err(doing())?;
        if size < 2 * CONTROL as u64 {
            return Err(corrupt(size, "it is cut off"));
        }
        let mut buffer = Buffer::new(CONTROL_FILE);
        let mut failure = None;
        // A sector that cannot be read is of one of them alone.
        let copies = [0, CONTROL].map(|at| {
            let copy = at..at + CONTROL;
            match file.read(buffer.bytes_mut(copy.clone()), at as u64) {
                Ok(()) => Control::decode(buffer.bytes(copy)),
                Err(error) => {
                    failure = Some(error);
                    ControlCopy::Invalid
                }
            }
        });
        let valid = copies.iter().filter_map(|copy| match copy {
            ControlCopy::Valid(record) => Some(*record),
            _ => None,
        });
        if let Some(record) = valid.max_by_key(|record| record.generation) {
            if size < CONTROL_FILE as u64 {
                return Err(corrupt(size, "it is cut off"));
            }
            if !record.makes_sense() {
                return Err(corrupt(0, "its numbers make no sense"));
            }
            return Ok(ControlFile {
                environment: environment.clone(),
                file,
                record,
                buffer,
            });
        }
        let other = copies.iter().find_map(|copy| match copy {
            ControlCopy::Other(version) => Some(*version),
            _ => None,
        });
        Err(match (other, failure) {
            (Some(found), _) => Error::Version {
                found,
                known: VERSION,
            },
            (None, Some(error)) => doing()(error),
            (None, None) => corrupt(0, "neither of its two copies is valid"),
        })
    }

    /// The file is opened anew, as files are from now on.
    pub fn reopen(&mut self) -> Result<(), Error> {
        let opened = self.environment.storage().open(CONTROL_NAME);
        self.file = opened.map_err(Error::io("open the control file of the log"))?;
        Ok(())
    }

    /// A page of the file that holds nothing, to try methods of writing on, and where it is.
    pub fn scratch(&self) -> (&FileOf<E>, u64) {
        (&self.file, 2 * CONTROL as u64)
    }

    /// Writes the record durably, as the next generation, into both copies. How many bytes that were.
    pub fn write(&mut self, record: Control) -> Result<u64, Error> {
        let record = Control {
            generation: self.record.generation + 1,
            ..record
        };
        let is_older = record.epoch < self.record.epoch
            || record.first_segment < self.record.first_segment
            || record.first_lsn < self.record.first_lsn
            || record.end < self.record.end;
        // What is written is what the next opening believes.
        if is_older || record.log != self.record.log || !record.makes_sense() {
            return Err(Error::broken("a control record goes back"));
        }
        for copy in [0, CONTROL] {
            record.encode(self.buffer.bytes_mut(copy..copy + CONTROL));
            if copy == CONTROL && planted!(self.environment, OneControlCopy) {
                break;
            }
            let durability = if planted!(self.environment, EpochNotDurable) {
                Durability::Later
            } else {
                Durability::OnReturn
            };
            let bytes = self.buffer.bytes(copy..copy + CONTROL);
            let written = self.file.write(bytes, copy as u64, durability);
            written.map_err(Error::io("write the control file of the log"))?;
        }
        self.record = record;
        Ok(2 * CONTROL as u64)
    }
}

/// The control file is damaged.
pub(crate) fn corrupt(offset: u64, what: &str) -> Error {
    Error::Corrupt {
        file: PathBuf::from(CONTROL_NAME),
        offset,
        what: what.to_owned(),
    }
}
