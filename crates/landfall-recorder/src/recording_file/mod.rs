//! A recording as a file, in the format of `docs/reference/recording-format.md`.
//!
//! Under its name there is a whole recording or none. It ends with a checksum of everything in it, which is looked at before
//! anything else is believed: a file that was cut short or damaged is refused, with
//! [`InvalidData`](io::ErrorKind::InvalidData) and a sentence that names it.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Take, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use landfall_os::write_whole_file;
use twox_hash::xxhash3_128::Hasher;

use crate::recorder::DEFAULT_MEMORY;
use crate::recording::next_written;
use crate::spill_file::{SpillFile, nameless};
use crate::{Event, EventKind, Recording, SiteRecording};

const MAGIC: [u8; 8] = *b"LFRECORD";
/// The newest version of recordings of one device: those in which a flush found writes in flight, or a write was durable by
/// itself. All others are of version 1, which differs in nothing else.
const VERSION: u32 = 2;
/// The version of recordings of several devices.
const OF_SITE: u32 = 3;
/// Most devices of one recording.
const MOST_DEVICES: u64 = 256;
/// Magic, version, the note's length, the device's size or how many devices there are.
const HEADER: usize = 24;
/// Longest note in bytes.
const MOST_NOTE: u32 = 64 << 10;
/// Bytes of the checksum.
const SUM: usize = 16;
/// What is read or written at a time.
const CHUNK: usize = 1 << 20;
/// Contents that are nothing but zeros are left out in blocks of this size.
const BLOCK: usize = 4096;

const DAMAGED: &str = "is damaged or was cut short, and cannot be used";

impl Recording {
    /// Writes the recording into one file, whole or not at all.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        save(path, |writer| self.write_to(writer))
    }

    /// Reads a recording that was saved. What does not fit into memory goes into nameless files in
    /// `directory`.
    pub fn load(path: &Path, directory: &Path) -> io::Result<Recording> {
        load(path, |reader, version| match version {
            OF_SITE => Err(refused("is a recording of several devices")),
            _ => Recording::read_from(reader, directory),
        })
    }

    fn write_to(&self, mut writer: &mut dyn Write) -> io::Result<()> {
        let writer = &mut writer;
        let is_new = |event: &Event| match event.kind {
            EventKind::Flush { in_flight } => in_flight.len > 0,
            EventKind::Forced { .. } => true,
            _ => false,
        };
        let version = if self.events().iter().any(is_new) {
            VERSION
        } else {
            1
        };
        write_header(writer, version, self.note(), self.size())?;

        let mut buffer = vec![0; CHUNK];
        let mut place = 0;
        while let Some(range) = next_written(self.base(), place, self.size())? {
            let len = chunk(range.end - range.start);
            self.base().read_exact_at(&mut buffer[..len], range.start)?;
            write_extents(writer, range.start, &buffer[..len])?;
            place = range.start + len as u64;
        }
        write_pair(writer, 0, 0)?;

        let spill = self.spill();
        writer.write_all(&spill.len().to_le_bytes())?;
        let mut place = 0;
        while place < spill.len() {
            let len = chunk(spill.len() - place);
            spill.read(place, &mut buffer[..len])?;
            writer.write_all(&buffer[..len])?;
            place += len as u64;
        }
        Ok(())
    }

    /// Reads all that is left, known to be as it was written.
    fn read_from(mut reader: &mut Limited<'_>, directory: &Path) -> io::Result<Recording> {
        let (note, size) = read_header(reader)?;
        let base = nameless(size <= DEFAULT_MEMORY, directory)?;
        base.set_len(size)?;
        let mut buffer = vec![0; CHUNK];
        let mut end = 0;
        loop {
            let (mut offset, len) = (read_number(&mut reader)?, read_number(&mut reader)?);
            if len == 0 {
                break;
            }
            let last = offset.checked_add(len).filter(|&last| last <= size);
            let last = last.filter(|_| offset >= end).ok_or_else(malformed)?;
            end = last;
            while offset < last {
                let len = chunk(last - offset);
                reader.read_exact(&mut buffer[..len])?;
                base.write_all_at(&buffer[..len], offset)?;
                offset += len as u64;
            }
        }
        if read_number(&mut reader)? != reader.limit() {
            return Err(malformed());
        }
        let mut spill = SpillFile::new(DEFAULT_MEMORY, directory)?;
        while reader.limit() > 0 {
            let len = chunk(reader.limit());
            reader.read_exact(&mut buffer[..len])?;
            spill.append(&buffer[..len])?;
        }
        let recording = Recording::new(size, base, spill).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => malformed(),
            _ => error,
        })?;
        Ok(recording.with_note(note))
    }
}

impl SiteRecording {
    /// Writes the recording into one file, whole or not at all.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        save(path, |mut writer| {
            let devices = self.devices().len() as u64;
            write_header(writer, OF_SITE, self.note(), devices)?;
            write_pair(&mut writer, self.order().len() as u64, 0)?;
            writer.write_all(self.order())?;
            for device in self.devices() {
                let mut counted = Counting(0);
                device.write_to(&mut counted)?;
                writer.write_all(&counted.0.to_le_bytes())?;
                device.write_to(writer)?;
            }
            Ok(())
        })
    }

    /// Reads a recording that was saved. What does not fit into memory goes into nameless files in `directory`.
    pub fn load(path: &Path, directory: &Path) -> io::Result<SiteRecording> {
        load(path, |reader, version| {
            if version != OF_SITE {
                return Err(refused("is a recording of one device"));
            }
            let (note, devices) = read_header(reader)?;
            let (events, zero) = (read_number(reader)?, read_number(reader)?);
            if devices > MOST_DEVICES || zero != 0 || events > reader.limit() {
                return Err(malformed());
            }
            let mut order = vec![0; usize::try_from(events).map_err(|_| malformed())?];
            reader.read_exact(&mut order)?;
            let mut read = Vec::new();
            for _ in 0..devices {
                let len = read_number(reader)?;
                let left = reader.limit().checked_sub(len).ok_or_else(malformed)?;
                reader.set_limit(len);
                // Magic and version.
                reader.read_exact(&mut [0; 12])?;
                read.push(Recording::read_from(reader, directory)?);
                reader.set_limit(left);
            }
            if reader.limit() > 0 {
                return Err(malformed());
            }
            let site = SiteRecording::new(read, order).map_err(|_| malformed())?;
            Ok(site.with_note(note))
        })
    }
}

/// What is read: what comes before the checksum, known to be as it was written.
type Limited<'a> = Take<BufReader<&'a File>>;

fn save(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    write_whole_file(path, |file| {
        let mut writer = Summing::new(BufWriter::new(file));
        write(&mut writer)?;
        let sum = writer.sum();
        writer.inner.write_all(&sum)?;
        writer.inner.flush()
    })
}

/// Has what comes after magic and version read.
fn load<T>(
    path: &Path,
    read: impl FnOnce(&mut Limited<'_>, u32) -> io::Result<T>,
) -> io::Result<T> {
    let file = File::open(path)?;
    let open = || {
        let (len, version) = check(&file)?;
        (&file).rewind()?;
        let mut reader = BufReader::new(&file).take(len);
        reader.read_exact(&mut [0; 12])?;
        read(&mut reader, version)
    };
    open().map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => named(path, &error),
        io::ErrorKind::UnexpectedEof => named(path, &malformed()),
        _ => error,
    })
}

fn write_header(writer: &mut dyn Write, version: u32, note: &str, number: u64) -> io::Result<()> {
    let note = note.as_bytes();
    let len = u32::try_from(note.len())
        .ok()
        .filter(|&len| len <= MOST_NOTE);
    let len = len.ok_or_else(|| io::Error::other("the recording's note is too long"))?;
    writer.write_all(&MAGIC)?;
    writer.write_all(&version.to_le_bytes())?;
    writer.write_all(&len.to_le_bytes())?;
    writer.write_all(&number.to_le_bytes())?;
    writer.write_all(note)
}

/// The note, and the number that comes before it.
fn read_header(reader: &mut Limited<'_>) -> io::Result<(String, u64)> {
    let mut note_len = [0; 4];
    reader.read_exact(&mut note_len)?;
    let note_len = u32::from_le_bytes(note_len);
    let number = read_number(reader)?;
    if note_len > MOST_NOTE {
        return Err(malformed());
    }
    let mut note = vec![0; note_len as usize];
    reader.read_exact(&mut note)?;
    let note = String::from_utf8(note).map_err(|_| malformed())?;
    Ok((note, number))
}

/// Counts what is written, and keeps nothing.
struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How much of what is left is read or written next.
fn chunk(left: u64) -> usize {
    left.min(CHUNK as u64) as usize
}

/// Writes what there is besides zeros.
fn write_extents(writer: &mut impl Write, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let blocks: Vec<&[u8]> = bytes.chunks(BLOCK).collect();
    let mut place = offset;
    for run in blocks.chunk_by(|a, b| is_zero(a) == is_zero(b)) {
        let len: usize = run.iter().map(|block| block.len()).sum();
        if !is_zero(run[0]) {
            write_pair(writer, place, len as u64)?;
            run.iter().try_for_each(|block| writer.write_all(block))?;
        }
        place += len as u64;
    }
    Ok(())
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|&byte| byte == 0)
}

fn write_pair(writer: &mut impl Write, first: u64, second: u64) -> io::Result<()> {
    writer.write_all(&first.to_le_bytes())?;
    writer.write_all(&second.to_le_bytes())
}

fn read_number(reader: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Refuses a file that is no whole recording; returns how many bytes come before the checksum, and its version.
fn check(mut file: &File) -> io::Result<(u64, u32)> {
    let len = file.metadata()?.len();
    let mut header = [0; HEADER];
    let there = len.min(HEADER as u64) as usize;
    file.read_exact_at(&mut header[..there], 0)?;
    if header[..8] != MAGIC {
        return Err(refused("is no recording of Landfall"));
    }
    let len = len.checked_sub(SUM as u64);
    let Some(len) = len.filter(|&len| len >= HEADER as u64) else {
        return Err(refused(DAMAGED));
    };
    let mut sum = [0; SUM];
    file.read_exact_at(&mut sum, len)?;
    let mut reading = Summing::new(io::sink());
    file.rewind()?;
    let mut reader = BufReader::with_capacity(CHUNK, file).take(len);
    io::copy(&mut reader, &mut reading)?;
    if reading.sum() != sum {
        return Err(refused(DAMAGED));
    }
    // All versions have the checksum at the end, so that a newer one is told from a damaged one.
    let mut versions = 1..=OF_SITE;
    let version = versions.find(|version| header[8..12] == version.to_le_bytes());
    let version = version.ok_or_else(|| {
        refused("was written by another version of Landfall, in a format not known here")
    })?;
    Ok((len, version))
}

fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn malformed() -> io::Error {
    refused("is whole, but what it holds is no recording of Landfall")
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    let text = format!("{} {error}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Writes on, and keeps a checksum of what was written.
struct Summing<W> {
    inner: W,
    hasher: Hasher,
}

impl<W> Summing<W> {
    fn new(inner: W) -> Summing<W> {
        Summing {
            inner,
            hasher: Hasher::new(),
        }
    }

    fn sum(&self) -> [u8; SUM] {
        self.hasher.finish_128().to_le_bytes()
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
