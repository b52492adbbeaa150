//! The control file: two copies of the control record, of which one is written at a time.
//!
//! A copy that a power cut tears is not valid, and then the other one counts, which is the record before.

use std::path::PathBuf;

use super::buffer::Buffer;
use super::format::{CONTROL, CONTROL_DRAFT, CONTROL_NAME, Control, ControlCopy, VERSION};
use crate::Error;
use crate::environment::{Durability, Environment, Fault, File};

pub(crate) struct ControlFile<E: Environment> {
    environment: E,
    file: E::File,
    pub record: Control,
    buffer: Buffer,
}

impl<E: Environment> ControlFile<E> {
    /// Makes the file that is not there, durably: from then on the directory holds a log.
    pub fn create(environment: &E, record: Control) -> Result<(), Error> {
        let make = || {
            let file = environment.create(CONTROL_DRAFT)?;
            file.allocate(2 * CONTROL as u64)?;
            let mut buffer = Buffer::new(2 * CONTROL);
            let copy = copy_of(record.generation);
            record.encode(buffer.bytes_mut(copy..copy + CONTROL));
            file.write(buffer.bytes(0..2 * CONTROL), 0, Durability::Later)?;
            file.sync()?;
            environment.rename(CONTROL_DRAFT, CONTROL_NAME)?;
            environment.sync_directory()
        };
        make().map_err(Error::io("make the control file of a log"))
    }

    /// Reads the file that is there.
    pub fn open(environment: &E) -> Result<ControlFile<E>, Error> {
        let doing = || Error::io("read the control file of the log");
        let file = environment.open(CONTROL_NAME).map_err(doing())?;
        let corrupt = |what: &str| Error::Corrupt {
            file: PathBuf::from(CONTROL_NAME),
            offset: 0,
            what: what.to_owned(),
        };
        if file.size().map_err(doing())? < 2 * CONTROL as u64 {
            return Err(corrupt("it is cut off"));
        }
        let mut buffer = Buffer::new(2 * CONTROL);
        file.read(buffer.bytes_mut(0..2 * CONTROL), 0)
            .map_err(doing())?;
        let copies = [0, CONTROL].map(|at| Control::decode(buffer.bytes(at..at + CONTROL)));
        let valid = copies.iter().filter_map(|copy| match copy {
            ControlCopy::Valid(record) => Some(*record),
            _ => None,
        });
        if let Some(record) = valid.max_by_key(|record| record.generation) {
            return match record.makes_sense() {
                true => Ok(ControlFile {
                    environment: environment.clone(),
                    file,
                    record,
                    buffer,
                }),
                false => Err(corrupt("its numbers make no sense")),
            };
        }
        let other = copies.iter().find_map(|copy| match copy {
            ControlCopy::Other(version) => Some(*version),
            _ => None,
        });
        Err(match other {
            Some(found) => Error::Version {
                found,
                known: VERSION,
            },
            None => corrupt("neither of its two copies is valid"),
        })
    }

    /// Writes the record durably, as the next generation, into the copy that does not count.
    pub fn write(&mut self, record: Control) -> Result<(), Error> {
        let record = Control {
            generation: self.record.generation + 1,
            ..record
        };
        let copy = copy_of(record.generation);
        record.encode(self.buffer.bytes_mut(copy..copy + CONTROL));
        let durability = match self.environment.is_planted(Fault::EpochNotDurable) {
            true => Durability::Later,
            false => Durability::OnReturn,
        };
        let bytes = self.buffer.bytes(copy..copy + CONTROL);
        let written = self.file.write(bytes, copy as u64, durability);
        written.map_err(Error::io("write the control file of the log"))?;
        self.record = record;
        Ok(())
    }
}

fn copy_of(generation: u64) -> usize {
    (generation % 2) as usize * CONTROL
}
