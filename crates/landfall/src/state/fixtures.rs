//! A small state, and the files that it leaves.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::time::Duration;

use super::format::{CHUNK, Chunk, HEADER, Header};
use super::{BoxedError, Handle, State, StateOptions};
use crate::environment::{Environment, System};
use crate::fuzzing::memory::Memory;
use crate::{Error, Options};

pub(super) type World = System<Memory>;
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Adds up what it is given, a part for the even and one for the odd; as is usual, or by its own ways.
#[derive(Default)]
pub(super) struct Sum<W: Ways = Usual>(pub u64, PhantomData<W>);

/// How sums are read and written.
pub(super) trait Ways: Default + Send + Sync + 'static {
    fn decode(bytes: &[u8]) -> Result<u64, BoxedError> {
        Ok(u64::from_le_bytes(bytes.try_into()?))
    }

    fn write(sum: u64, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&sum.to_le_bytes())
    }

    fn read(input: &mut dyn Read) -> io::Result<u64> {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

#[derive(Default)]
pub(super) struct Usual;

impl Ways for Usual {}

impl<W: Ways> State for Sum<W> {
    type Command = u64;
    type Output = u64;
    type Capture = u64;

    const PARTS: u32 = 2;

    fn part(number: &u64) -> u64 {
        *number
    }

    fn apply(&mut self, number: u64) -> u64 {
        self.0 += number;
        self.0
    }

    fn encode(number: &u64, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        out.extend(number.to_le_bytes());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<u64, BoxedError> {
        W::decode(bytes)
    }

    fn capture(&self) -> u64 {
        self.0
    }

    fn write(sum: u64, out: &mut dyn Write) -> io::Result<()> {
        W::write(sum, out)
    }

    fn read(input: &mut dyn Read) -> io::Result<Sum<W>> {
        W::read(input).map(|sum| Sum(sum, PhantomData))
    }
}

pub(super) const GRANULE: u64 = 512;

/// A snapshot of these chunks, each with as many bytes as it says and right checksums.
pub(super) fn snapshot_of(header: Header, chunks: &[Chunk]) -> Vec<u8> {
    let mut file = vec![0; HEADER];
    header.encode(&mut file);
    for (index, chunk) in chunks.iter().enumerate() {
        let payload = vec![index as u8 + 1; chunk.stored as usize];
        let mut head = vec![0; CHUNK];
        let index = index as u64;
        Chunk { index, ..*chunk }.encode(&payload, &mut head);
        file.extend(head);
        file.extend(payload);
    }
    file.resize(file.len().next_multiple_of(GRANULE as usize), 0);
    file
}

pub(super) fn with(files: Files) -> World {
    System::new(Memory::new(files))
}

pub(super) fn open(world: &World) -> Result<Handle<Sum, World>, Error> {
    open_as(world)
}

pub(super) fn open_as<S: State>(world: &World) -> Result<Handle<S, World>, Error> {
    let log = Options::default()
        .segment_bytes(4096)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024);
    let options = StateOptions {
        max_recovery_time: Duration::MAX,
        keep_snapshots: 2,
        log,
        ..StateOptions::default()
    };
    Handle::open(world, options)
}

/// A state that ten commands were applied to, and ten after each of its snapshots.
pub(super) fn with_snapshots(snapshots: u64) -> Files {
    let world = with(Files::new());
    let state = open(&world).unwrap();
    for number in 1..=10 * (snapshots + 1) {
        state.shared.apply(number).unwrap();
        if number % 10 == 0 && number <= 10 * snapshots {
            let snapshot = state.shared.snapshot().unwrap();
            let file = world.storage().files().remove(&snapshot.name).unwrap();
            assert_eq!(
                (snapshot.bytes, snapshot.raw_bytes),
                (file.len() as u64, 16)
            );
        }
    }
    state.shared.close().unwrap();
    world.storage().files()
}
