//! Commits of the engine's log, against the disk itself and against other databases.
//!
//! `cargo bench -p landfall-lab --bench log -- --help` has its options; `contest` says how it is done. `--features
//! rocksdb` adds RocksDB.

mod contest;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use clap::Parser;
use contest::{Committer, Contender, Contest, Fallible, Place, RECORD, compare, sentence};
use landfall::{Log, Options as LogOptions};
use landfall_os::Payload;
use landfall_os::humanize::parse_size;

/// Commits in flight of a thread that does not wait.
const IN_FLIGHT: u64 = 500;

#[derive(Parser)]
#[command(about = "Commits of the engine's log, against the disk itself and other databases")]
struct Options {
    #[command(flatten)]
    contest: Contest,
    /// Databases
    #[arg(long, value_delimiter = ',', default_values_t = linked_in())]
    against: Vec<String>,
    /// Also appends so many bytes unsynced, and reads them back
    #[arg(long, value_parser = parse_size)]
    stream: Option<u64>,
    /// Also holds logs with segments of these sizes against each other, one thread each
    #[arg(long, value_delimiter = ',', value_parser = parse_size)]
    segments: Vec<u64>,
}

fn linked_in() -> Vec<String> {
    landfall_databases::linked_in()
        .map(|database| database.name.to_owned())
        .collect()
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
            eprintln!("log: {text}");
            ExitCode::FAILURE
        }
    }
}

struct Landfall(String, Arc<Log>);

impl Contender for Landfall {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn committer(&self, _: usize) -> Fallible<Committer> {
        let (log, mut record) = (self.1.clone(), Payload::new(RECORD, 1));
        Ok(Box::new(move |number| {
            log.append_durable(record.stamped(number))
                .map(drop)
                .map_err(sentence)
        }))
    }
}

/// Commits that nobody waits for, so many at a time.
struct InFlight {
    log: Arc<Log>,
    flying: Arc<AtomicU64>,
}

impl Contender for InFlight {
    fn name(&self) -> String {
        format!("landfall, {IN_FLIGHT} in flight each")
    }

    fn committer(&self, _: usize) -> Fallible<Committer> {
        let (log, all) = (self.log.clone(), self.flying.clone());
        let flying = Arc::new(AtomicU64::new(0));
        let mut record = Payload::new(RECORD, 1);
        Ok(Box::new(move |number| {
            while flying.load(Ordering::Acquire) >= IN_FLIGHT {
                thread::yield_now();
            }
            flying.fetch_add(1, Ordering::AcqRel);
            all.fetch_add(1, Ordering::AcqRel);
            let (own, all) = (flying.clone(), all.clone());
            let done = move |result: Result<_, landfall::Error>| {
                result.expect("the log can be written");
                own.fetch_sub(1, Ordering::AcqRel);
                all.fetch_sub(1, Ordering::AcqRel);
            };
            log.append_then(record.stamped(number), done)
                .map(drop)
                .map_err(sentence)
        }))
    }

    fn settle(&self) {
        while self.flying.load(Ordering::Acquire) > 0 {
            thread::yield_now();
        }
    }
}

fn run(options: &Options) -> Fallible<()> {
    let place = options.contest.place()?;
    let log = Log::open(place.directory.join("landfall"), LogOptions::default());
    let log = Arc::new(log.map_err(sentence)?);
    let mut contenders: Vec<Box<dyn Contender>> =
        vec![Box::new(Landfall("landfall".into(), log.clone()))];
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
    let flying = InFlight {
        log: log.clone(),
        flying: Arc::default(),
    };
    compare(&place, &[&flying], 2, &options.contest)?;
    println!("{:#?}", log.counters());
    if !options.segments.is_empty() {
        turn_over(&place, options)?;
    }
    if let Some(bytes) = options.stream {
        stream(&place.directory, bytes)?;
    }
    drop((contenders, flying, log));
    place.site.close().map_err(sentence)
}

/// One thread commits to logs that begin another segment more or less often.
fn turn_over(place: &Place, options: &Options) -> Fallible<()> {
    let mut contenders = Vec::new();
    for &bytes in &options.segments {
        let log_options = LogOptions::default().segment_bytes(bytes);
        let path = place.directory.join(format!("segments-{bytes}"));
        let log = Log::open(path, log_options).map_err(sentence)?;
        let name = format!("landfall, segments of {} KiB", bytes >> 10);
        contenders.push(Landfall(name, Arc::new(log)));
    }
    let all: Vec<&dyn Contender> = contenders.iter().map(|one| one as &dyn Contender).collect();
    compare(place, &all, 1, &options.contest)
}

/// Appends so many bytes without waiting, makes them durable, and reads them back.
fn stream(directory: &Path, bytes: u64) -> Fallible<()> {
    for size in [RECORD, 64 << 10] {
        let place = directory.join(format!("stream-{size}"));
        let log = Log::open(&place, LogOptions::default()).map_err(sentence)?;
        let mut record = Payload::new(size, 1);
        let begin = Instant::now();
        for number in 0..bytes / size as u64 {
            log.append(record.stamped(number)).map_err(sentence)?;
        }
        log.commit().map_err(sentence)?;
        let written = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let (mut records, mut reader) = (0u64, log.read(log.first_lsn()).map_err(sentence)?);
        while let Some(record) = reader.next().map_err(sentence)? {
            records += u64::from(record.bytes.len() == size);
        }
        let read = begin.elapsed().as_secs_f64();
        let counters = log.counters();
        println!(
            "\n{bytes} bytes in records of {size}: appended and made durable in {written:.2} s ({:.0} MB/s) by {} writes and {} flushes with {} waits for a segment, {records} records read in {read:.2} s ({:.0} MB/s)",
            bytes as f64 / written / 1e6,
            counters.writes,
            counters.flushes,
            counters.segment_waits,
            bytes as f64 / read / 1e6,
        );
        drop(reader);
        log.close().map_err(sentence)?;
        std::fs::remove_dir_all(&place).map_err(sentence)?;
    }
    Ok(())
}
