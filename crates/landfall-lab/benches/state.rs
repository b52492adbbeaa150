//! The engine's in-memory state: durable commands against its own log and other stores, and a large state's snapshot,
//! the longest that a writer waits for that, and its restart.
//!
//! `cargo bench -p landfall-lab --bench state -- --help` has its options; `contest` says how commands are timed. The state
//! is a map of as many entries as asked for, each of 8 bytes and 92, of which half can be compressed, in 1,024 parts.
//! What it is held against is done by hand: a loop that writes as many bytes in order with O_DIRECT, one that reads
//! the snapshot's file and inserts the same entries into the same maps, and a dump of everything by one `write` after the
//! other with a sync at the end.

mod contest;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use contest::{Committer, Contender, Contest, Fallible, Place, RECORD, compare, sentence};
use landfall::{
    BoxedError, Compression, Journaled, Log, Options as LogOptions, Policy, State, StateOptions,
    part_of,
};
use landfall_lab::stats::median;
use landfall_os::Payload;
use rustix::fs::OFlags;

#[derive(Parser)]
#[command(about = "The engine's in-memory state: commands, snapshots, restarts")]
struct Options {
    #[command(flatten)]
    contest: Contest,
    /// Databases that do the same updates
    #[arg(long, value_delimiter = ',', default_value = "sqlite,redis")]
    against: Vec<String>,
    /// Entries of the large state; 0: none
    #[arg(long, default_value_t = 10_000_000)]
    entries: u64,
    /// How often its snapshot, its restart, and what they are held against have their turn
    #[arg(long, default_value_t = 3)]
    times: usize,
    /// How snapshots are compressed: none, lz4, zstd
    #[arg(long, value_parser = compression, default_value = "lz4")]
    compression: Compression,
}

fn compression(text: &str) -> Result<Compression, String> {
    let all = [Compression::None, Compression::Lz4, Compression::Zstd];
    let found = all.into_iter().find(|one| one.name() == text);
    found.ok_or_else(|| "it is none, lz4 or zstd".into())
}

fn main() -> ExitCode {
    // Without this flag it is `cargo test --all-targets` that runs benchmarks, and tests time nothing.
    if !std::env::args().any(|word| word == "--bench") {
        println!("run me by cargo bench");
        return ExitCode::SUCCESS;
    }
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("state: {text}");
            ExitCode::FAILURE
        }
    }
}

/// The last record of each thread: as little as a state can be.
#[derive(Default)]
struct Last(HashMap<u64, Vec<u8>>);

impl State for Last {
    type Command = (u64, Vec<u8>);
    type Output = ();
    type Capture = ();

    const PARTS: u32 = 64;

    fn part((thread, _): &(u64, Vec<u8>)) -> u64 {
        *thread
    }

    fn apply(&mut self, (thread, record): (u64, Vec<u8>)) {
        self.0.insert(thread, record);
    }

    fn encode((_, record): &(u64, Vec<u8>), out: &mut Vec<u8>) -> Result<(), BoxedError> {
        out.extend_from_slice(record);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<(u64, Vec<u8>), BoxedError> {
        Ok((0, bytes.to_vec()))
    }

    fn capture(&self) {}

    fn write((): (), _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn read(_: &mut dyn Read) -> io::Result<Last> {
        Ok(Last::default())
    }
}

struct Applying(Arc<Journaled<Last>>);

impl Contender for Applying {
    fn name(&self) -> String {
        "landfall state".into()
    }

    fn committer(&self, thread: usize) -> Fallible<Committer> {
        let (state, mut record) = (self.0.clone(), Payload::new(RECORD, 1));
        Ok(Box::new(move |number| {
            let command = (thread as u64, record.stamped(number).to_vec());
            state.apply(command).map_err(sentence)
        }))
    }
}

struct Appending(Arc<Log>);

impl Contender for Appending {
    fn name(&self) -> String {
        "landfall log".into()
    }

    fn committer(&self, _: usize) -> Fallible<Committer> {
        let (log, mut record) = (self.0.clone(), Payload::new(RECORD, 1));
        Ok(Box::new(move |number| {
            let appended = log.append_durable(record.stamped(number));
            appended.map(drop).map_err(sentence)
        }))
    }
}

fn run(options: &Options) -> Fallible<()> {
    let place = options.contest.place()?;
    let log = Log::open(place.directory.join("log"), LogOptions::default()).map_err(sentence)?;
    let state_options = StateOptions::default().max_recovery_time(Duration::MAX);
    let state = Journaled::open(place.directory.join("last"), state_options).map_err(sentence)?;
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Appending(Arc::new(log))),
        Box::new(Applying(Arc::new(state))),
    ];
    for name in options.against.iter().filter(|name| !name.is_empty()) {
        match place.peer(name) {
            Ok(peer) => contenders.push(peer),
            Err(error) => println!("{name}: {error}"),
        }
    }
    let all: Vec<&dyn Contender> = contenders.iter().map(|one| &**one).collect();
    for &threads in &options.contest.threads {
        compare(&place, &all, threads, &options.contest)?;
    }
    drop(contenders);
    if options.entries > 0 {
        large(&place, options)?;
    }
    place.site.close().map_err(sentence)
}

const VALUE: usize = 92;

type Entry = (u64, [u8; VALUE]);

fn entry(key: u64) -> Entry {
    let mut value = [b'.'; VALUE];
    fastrand::Rng::with_seed(key).fill(&mut value[..VALUE / 2]);
    (key, value)
}

/// A map of numbers and values.
#[derive(Default)]
struct Entries(HashMap<u64, [u8; VALUE]>);

impl State for Entries {
    type Command = Entry;
    type Output = ();
    type Capture = Vec<u8>;

    const PARTS: u32 = 1024;

    fn part((key, _): &Entry) -> u64 {
        part_of(&key.to_le_bytes())
    }

    fn apply(&mut self, (key, value): Entry) {
        self.0.insert(key, value);
    }

    fn encode((key, value): &Entry, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        out.extend(key.to_le_bytes());
        out.extend(value);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Entry, BoxedError> {
        let (key, value) = bytes.split_first_chunk().ok_or("it is too short")?;
        Ok((u64::from_le_bytes(*key), value.try_into()?))
    }

    fn capture(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.0.len() * (8 + VALUE));
        for (key, value) in &self.0 {
            all.extend(key.to_le_bytes());
            all.extend(value);
        }
        all
    }

    fn write(capture: Vec<u8>, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&capture)
    }

    fn read(input: &mut dyn Read) -> io::Result<Entries> {
        let mut bytes = Vec::new();
        input.read_to_end(&mut bytes)?;
        let mut entries = HashMap::with_capacity(bytes.len() / (8 + VALUE));
        for entry in bytes.chunks(8 + VALUE) {
            let (key, value) = Entries::decode(entry).map_err(io::Error::other)?;
            entries.insert(key, value);
        }
        Ok(Entries(entries))
    }
}

/// Seconds that something took.
fn timed<R>(work: impl FnOnce() -> Fallible<R>) -> Fallible<(R, f64)> {
    let begin = Instant::now();
    let done = work()?;
    Ok((done, begin.elapsed().as_secs_f64()))
}

fn large(place: &Place, options: &Options) -> Fallible<()> {
    let directory = place.directory.join("large");
    let state_options = StateOptions::default()
        .policy(Policy::Interval(Duration::from_millis(100)))
        .max_recovery_time(Duration::MAX)
        .compression(options.compression)
        .keep_snapshots(1);
    let open = || Journaled::<Entries>::open(&directory, state_options.clone()).map_err(sentence);
    let raw = options.entries as f64 * (8 + VALUE) as f64;
    println!(
        "\n{} entries, {:.0} MB, snapshots by {}",
        options.entries,
        raw / 1e6,
        options.compression.name()
    );
    let state = open()?;
    let (_, filling) = timed(|| {
        for key in 0..options.entries {
            state.apply(entry(key)).map_err(sentence)?;
        }
        state.commit().map_err(sentence)
    })?;
    println!(
        "applied in {filling:.2} s, {:.0} a second",
        options.entries as f64 / filling
    );
    let idle = stall(&state, options.entries, || {
        thread::sleep(Duration::from_secs(1));
        Ok(())
    })?;
    let (mut taken, mut stalls, mut captures) = (Vec::new(), Vec::new(), Vec::new());
    let (mut written, mut dumped) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..options.times {
        // While nobody writes: it is the disk and the encoder that are compared.
        let snapshot = state.snapshot().map_err(sentence)?;
        taken.push(raw / 1e6 / snapshot.took.as_secs_f64());
        bytes = snapshot.bytes;
        written.push(bytes as f64 / 1e6 / sequential(place, bytes)?);
        dumped.push(dump(place, &state)?);
        let stalled = stall(&state, options.entries, || {
            let snapshot = state.snapshot().map_err(sentence)?;
            captures.push(snapshot.longest_capture.as_secs_f64() * 1e3);
            Ok(())
        })?;
        stalls.push(stalled);
    }
    let middle = |values: &[f64]| median(values).unwrap_or(f64::NAN);
    let spread = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        format!("{:.2} ({low:.2}–{high:.2})", middle(values))
    };
    println!(
        "snapshot: {} MB/s of the state, a file of {:.0} MB; the disk takes {} MB/s in order",
        spread(&taken),
        bytes as f64 / 1e6,
        spread(&written)
    );
    println!("dump of everything, synced: {} s", spread(&dumped));
    println!(
        "longest wait of a writer: {} ms while one was taken, {idle:.2} ms in a second without; longest capture {} ms",
        spread(&stalls),
        spread(&captures)
    );
    state.snapshot().map_err(sentence)?;
    state.close().map_err(sentence)?;
    let (mut restarts, mut inserts) = (Vec::new(), Vec::new());
    for _ in 0..options.times {
        let (state, took) = timed(open)?;
        let snapshot = state.restart().snapshot.clone().unwrap_or_default();
        restarts.push(took);
        drop(state);
        inserts.push(cat_and_insert(&directory.join(snapshot), options.entries)?);
    }
    let ratios: Vec<f64> = restarts
        .iter()
        .zip(&inserts)
        .map(|(own, bare)| own / bare)
        .collect();
    println!(
        "restart: {} s; reading the file and inserting the entries: {} s; ratio {}",
        spread(&restarts),
        spread(&inserts),
        spread(&ratios)
    );
    Ok(())
}

/// The longest that one of two writers waited for a command while `work` was done, in milliseconds.
fn stall(
    state: &Journaled<Entries>,
    entries: u64,
    work: impl FnOnce() -> Fallible<()>,
) -> Fallible<f64> {
    let (over, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let worked = thread::scope(|scope| {
        for thread in 0..2 {
            let (over, longest) = (&over, &longest);
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(thread);
                while !over.load(Ordering::Relaxed) {
                    let entry = entry(rng.u64(0..entries));
                    let begin = Instant::now();
                    if state.apply(entry).is_err() {
                        break;
                    }
                    longest.fetch_max(begin.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    // As who has other work too: two writers that do nothing else are all that two processors do.
                    thread::sleep(Duration::from_micros(20));
                }
            });
        }
        let worked = work();
        over.store(true, Ordering::Relaxed);
        worked
    });
    worked.map(|()| longest.into_inner() as f64 / 1e6)
}

/// Seconds that as many bytes take to be written in order with O_DIRECT and synced.
fn sequential(place: &Place, bytes: u64) -> Fallible<f64> {
    const CHUNK: usize = 1 << 20;
    let path = place.directory.join("sequential");
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .custom_flags(OFlags::DIRECT.bits() as i32)
        .open(&path)
        .map_err(sentence)?;
    let mut payload = Payload::new(CHUNK, 1);
    let (_, took) = timed(|| {
        for chunk in 0..bytes / CHUNK as u64 {
            let offset = chunk * CHUNK as u64;
            file.write_all_at(payload.stamped(chunk), offset)
                .map_err(sentence)?;
        }
        file.sync_data().map_err(sentence)
    })?;
    std::fs::remove_file(&path).map_err(sentence)?;
    Ok(took)
}

/// Seconds that writing everything to a file takes, with a sync at the end.
fn dump(place: &Place, state: &Journaled<Entries>) -> Fallible<f64> {
    let path = place.directory.join("dump");
    let file = File::create(&path).map_err(sentence)?;
    let (_, took) = timed(|| {
        let mut out = BufWriter::with_capacity(1 << 20, &file);
        let mut written = Ok(());
        state.read_all(|entries| {
            for (key, value) in &entries.0 {
                if written.is_ok() {
                    let put = out.write_all(&key.to_le_bytes());
                    written = put.and_then(|()| out.write_all(value));
                }
            }
        });
        written.map_err(sentence)?;
        out.flush().map_err(sentence)?;
        file.sync_data().map_err(sentence)
    })?;
    std::fs::remove_file(&path).map_err(sentence)?;
    Ok(took)
}

/// Seconds that it takes to read a file, and to insert as many entries into as many maps.
fn cat_and_insert(file: &Path, entries: u64) -> Fallible<f64> {
    let all: Vec<Entry> = (0..entries).map(entry).collect();
    let (_, took) = timed(|| {
        let mut file = File::open(file).map_err(sentence)?;
        let mut buffer = vec![0; 1 << 20];
        while file.read(&mut buffer).map_err(sentence)? > 0 {}
        // With some more room than parts are large on average.
        let room = entries as usize / Entries::PARTS as usize * 9 / 8;
        let mut parts: Vec<Entries> = (0..Entries::PARTS)
            .map(|_| Entries(HashMap::with_capacity(room)))
            .collect();
        for entry in &all {
            let part = Entries::part(entry) % u64::from(Entries::PARTS);
            parts[part as usize].apply(*entry);
        }
        Ok(parts)
    })?;
    Ok(took)
}
