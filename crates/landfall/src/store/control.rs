//! The store's control file: two copies of a record that leads to the last checkpoint.
//!
//! Both copies are written, one after the other, each durably, and nothing that rests on a record is done before both are:
//! whatever a power cut leaves of one, the other is whole; and where one cannot be read, the other will do. The file
//! appears whole, by a rename, with the first checkpoint, and anew whenever the store is opened, since a process that was
//! killed may have left a copy, or the name, to the kernel.

use std::io;
use std::path::PathBuf;

use crc32c::crc32c;

use super::data_file::is_full;
use super::page::Pointer;
use crate::Error;
use crate::environment::{Buffer, Durability, Environment, File, FileOf, Storage, planted};
use crate::log::format::MOST;

/// The name of the file.
pub(crate) const CONTROL_NAME: &str = "landfall-store";
/// The name that it has until it is whole.
pub(crate) const CONTROL_DRAFT: &str = "landfall-store.new";
/// Of the layout in `docs/store-format.md`.
pub(crate) const VERSION: u32 = 3;

const MAGIC: &[u8; 16] = b"Landfall tree\n\x1a\n";
/// Bytes of a copy.
pub(crate) const COPY: usize = 4096;
/// Bytes of a copy that are not zero.
pub(crate) const SIZE: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// The number of the checkpoint.
    pub checkpoint: u64,
    /// The number of the store, which is that of its log.
    pub store: u64,
    /// Bytes of the data file of which offsets and lengths are multiples.
    pub granule: u32,
    /// Its root.
    pub root: Pointer,
    /// Bytes that the data file had: all pages are before.
    pub end: u64,
    /// The number of the data file, or a lower one: it is the file with the highest number from this one on.
    pub data: u64,
}

enum Copy {
    Valid(Control),
    Other(u32),
    Invalid,
}

impl Control {
    fn encode(&self, out: &mut [u8]) {
        out.fill(0);
        out[4..20].copy_from_slice(MAGIC);
        out[20..24].copy_from_slice(&VERSION.to_le_bytes());
        out[24..32].copy_from_slice(&self.checkpoint.to_le_bytes());
        out[32..40].copy_from_slice(&self.store.to_le_bytes());
        out[40..48].copy_from_slice(&self.root.offset.to_le_bytes());
        out[48..52].copy_from_slice(&self.root.length.to_le_bytes());
        out[52..56].copy_from_slice(&self.root.crc.to_le_bytes());
        out[56..64].copy_from_slice(&self.end.to_le_bytes());
        out[64..68].copy_from_slice(&self.granule.to_le_bytes());
        out[72..80].copy_from_slice(&self.data.to_le_bytes());
        let crc = crc32c(&out[4..SIZE]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    /// What a copy says, if it is valid.
    #[cfg(any(test, fuzzing))]
    pub fn of_copy(bytes: &[u8]) -> Option<Control> {
        match Control::decode(bytes) {
            Copy::Valid(control) => Some(control),
            Copy::Other(_) | Copy::Invalid => None,
        }
    }

    fn decode(bytes: &[u8]) -> Copy {
        let u32_at = |at: usize| {
            let mut word = [0; 4];
            word.copy_from_slice(&bytes[at..at + 4]);
            u32::from_le_bytes(word)
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if bytes[4..20] != *MAGIC {
            return Copy::Invalid;
        }
        if u32_at(20) != VERSION {
            return Copy::Other(u32_at(20));
        }
        if u32_at(0) != crc32c(&bytes[4..SIZE]) {
            return Copy::Invalid;
        }
        let control = Control {
            checkpoint: u64_at(24),
            store: u64_at(32),
            granule: u32_at(64),
            root: Pointer {
                offset: u64_at(40),
                length: u32_at(48),
                crc: u32_at(52),
                home: None,
            },
            end: u64_at(56),
            data: u64_at(72),
        };
        let granule = control.granule;
        let is_granule = granule.is_power_of_two() && (512..=4096).contains(&granule);
        if control.checkpoint >= MOST || !is_granule || !control.root.makes_sense(granule.into()) {
            return Copy::Invalid;
        }
        Copy::Valid(control)
    }
}

/// The record that counts; `None`: there is no such file.
pub(crate) fn read<E: Environment>(
    environment: &E,
    names: &[String],
) -> Result<Option<Control>, Error> {
    if !names.iter().any(|name| name == CONTROL_NAME) {
        return Ok(None);
    }
    let doing = || Error::io("read the control file of the store");
    let opened = environment.storage().open(CONTROL_NAME);
    let file = opened.map_err(doing())?;
    let size = file.size().map_err(doing())?;
    if size < 2 * COPY as u64 {
        return Err(corrupt(size, "it is cut off"));
    }
    let mut buffer = Buffer::new(COPY);
    let mut failure = None;
    // A sector that cannot be read is of one of them alone.
    let copies = [0, COPY].map(|at| match file.read(buffer.bytes_mut(0..COPY), at as u64) {
        Ok(()) => Control::decode(buffer.bytes(0..COPY)),
        Err(error) => {
            failure = Some(error);
            Copy::Invalid
        }
    });
    let mut newest: Option<Control> = None;
    let mut other = None;
    for copy in copies {
        match copy {
            Copy::Valid(control) => {
                if newest.is_none_or(|newest| newest.checkpoint < control.checkpoint) {
                    newest = Some(control);
                }
            }
            Copy::Other(version) => other = Some(version),
            Copy::Invalid => {}
        }
    }
    match (newest, other) {
        (Some(control), _) => Ok(Some(control)),
        (None, Some(found)) => Err(Error::Version {
            found,
            known: VERSION,
        }),
        (None, None) => Err(match failure {
            Some(error) => doing()(error),
            None => corrupt(0, "neither of its two copies is valid"),
        }),
    }
}

/// The control file cannot be made.
fn making(error: io::Error) -> Error {
    if is_full(&error) {
        let bytes = 2 * COPY as u64;
        return Error::NoSpace { bytes };
    }
    Error::io("make the control file of the store")(error)
}

/// The control file is damaged.
pub(crate) fn corrupt(offset: u64, what: &str) -> Error {
    Error::Corrupt {
        file: PathBuf::from(CONTROL_NAME),
        offset,
        what: what.to_owned(),
    }
}

/// A file of its size, which is to become it.
pub(crate) struct Draft<E: Environment>(FileOf<E>);

/// The file, to be written.
pub(crate) struct ControlFile<E: Environment> {
    file: FileOf<E>,
    buffer: Buffer,
}

impl<E: Environment> ControlFile<E> {
    /// What the file is made of, in place of what an attempt before may have left: from here on there is space for it.
    pub fn draft(environment: &E) -> Result<Draft<E>, Error> {
        ControlFile::make_draft(environment)
            .map(Draft)
            .map_err(making)
    }

    fn make_draft(environment: &E) -> io::Result<FileOf<E>> {
        let storage = environment.storage();
        if storage.names()?.iter().any(|name| name == CONTROL_DRAFT) {
            storage.remove(CONTROL_DRAFT)?;
        }
        let file = storage.create(CONTROL_DRAFT)?;
        file.allocate(2 * COPY as u64)?;
        Ok(file)
    }

    /// Makes the file, durably, in place of one that may be there. If that fails, also whether what was there still counts.
    pub fn create(
        environment: &E,
        control: Control,
        draft: Option<Draft<E>>,
    ) -> Result<ControlFile<E>, (Error, bool)> {
        let storage = environment.storage();
        let mut is_unchanged = true;
        let make = || {
            let file = match draft {
                Some(Draft(file)) => file,
                None => ControlFile::make_draft(environment)?,
            };
            let mut buffer = Buffer::new(2 * COPY);
            for at in [0, COPY] {
                control.encode(buffer.bytes_mut(at..at + COPY));
            }
            file.write(buffer.bytes(0..2 * COPY), 0, Durability::Later)?;
            if !planted!(environment, ControlBeforeSync) {
                file.sync()?;
            }
            is_unchanged = false;
            storage.rename(CONTROL_DRAFT, CONTROL_NAME)?;
            if !planted!(environment, SkipStoreDirectorySync) {
                storage.sync()?;
            }
            Ok(ControlFile { file, buffer })
        };
        make().map_err(|error| (making(error), is_unchanged))
    }

    /// Makes the record of a file that is there durable, whoever wrote it: in its place, or, where the disk is full, in the file itself, as
    /// every checkpoint does.
    pub fn renew(environment: &E, control: Control) -> Result<ControlFile<E>, Error> {
        match ControlFile::create(environment, control, None) {
            Err((Error::NoSpace { .. }, true)) => {}
            made => return made.map_err(|(error, _)| error),
        }
        let storage = environment.storage();
        // It takes no space, and is removed by whoever makes the next one.
        let _ = storage.remove(CONTROL_DRAFT);
        let file = storage.open(CONTROL_NAME);
        let mut renewed = ControlFile {
            file: file.map_err(Error::io("open the control file of the store"))?,
            buffer: Buffer::new(2 * COPY),
        };
        renewed.write(control, false)?;
        Ok(renewed)
    }

    /// Writes the record durably into both copies, or, by mistake, into the first alone.
    pub fn write(&mut self, control: Control, forgets_one: bool) -> Result<(), Error> {
        for at in [0, COPY] {
            control.encode(self.buffer.bytes_mut(at..at + COPY));
            if at == COPY && forgets_one {
                break;
            }
            let bytes = self.buffer.bytes(at..at + COPY);
            let written = self.file.write(bytes, at as u64, Durability::OnReturn);
            written.map_err(Error::io("write the control file of the store"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::environment::System;
    use crate::fuzzing::memory::{Call, Memory};

    fn control() -> Control {
        Control {
            checkpoint: 7,
            store: 9,
            granule: 512,
            root: Pointer {
                offset: 1024,
                length: 100,
                crc: 3,
                home: None,
            },
            end: 4096,
            data: 2,
        }
    }

    #[test]
    fn both_copies_are_written_durably() {
        let memory = Memory::default();
        let system = System::new(memory.clone());
        let is_in_both = |control: Control| {
            let bytes = &memory.files()[CONTROL_NAME];
            let copies = [0, COPY].map(|at| Control::decode(&bytes[at..at + COPY]));
            copies
                .iter()
                .all(|copy| matches!(copy, Copy::Valid(found) if *found == control))
        };
        let Ok(mut file) = ControlFile::create(&system, control(), None) else {
            panic!("memory can be written");
        };
        assert!(is_in_both(control()));
        memory.device().calls.lock().unwrap().clear();
        let next = Control {
            checkpoint: 8,
            ..control()
        };
        file.write(next, false).unwrap();
        assert!(is_in_both(next));
        let expected: Vec<Call> = [0, COPY as u64]
            .map(|at| Call::Write {
                name: CONTROL_DRAFT.to_owned(),
                range: at..at + COPY as u64,
                durability: Durability::OnReturn,
            })
            .to_vec();
        assert_eq!(*memory.device().calls.lock().unwrap(), expected);
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let mut bytes = vec![0; COPY];
        control().encode(&mut bytes);
        assert!(matches!(Control::decode(&bytes), Copy::Valid(found) if found == control()));
        for bit in 0..SIZE * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Control::decode(&bytes), Copy::Valid(_)), "{bit}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics_on_anything(bytes in proptest::collection::vec(any::<u8>(), COPY)) {
            let mut bytes = bytes;
            bytes[4..20].copy_from_slice(MAGIC);
            bytes[20..24].copy_from_slice(&VERSION.to_le_bytes());
            let crc = crc32c(&bytes[4..SIZE]);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            let _ = Control::decode(&bytes);
        }
    }
}
