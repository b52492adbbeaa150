//! Commits of the engine's log, against the disk itself and against other databases.
//!
//! `cargo bench -p landfall-lab --bench log -- [--on SITE] [--latency PROFILE] [--dir DIR] [--rounds N]
//! [--seconds S] [--threads 1,16,64] [--against NAME,…] [--stream BYTES] [--segments B,…]`. The floor is a bare loop: one thread overwrites
//! granules of a file that was written, with O_DIRECT and O_DSYNC, and does nothing else. Everybody else
//! commits records of 200 bytes, each durable before it is acknowledged. Round by round each contender has its
//! turn, in another order each time; ratios are formed within a round. `--features rocksdb` adds RocksDB.
//!
//! Nothing is asserted: figures depend on the machine.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use landfall::{Log, Options as LogOptions};
use landfall_lab::database::{self, Batch, DatabaseError, Running, Session, Templates, Value};
use landfall_lab::stats::{Estimate, median};
use landfall_lab::{Site, SiteSpec, Stop};
use landfall_os::{Payload, SyncedFile, process_cpu, zero_fill};

const RECORD: usize = 200;
/// Bytes of the file that the floor goes through again and again.
const FLOOR_BYTES: u64 = 16 << 20;
/// Commits in flight of a thread that does not wait.
const IN_FLIGHT: u64 = 500;

const USAGE: &str = "\
usage: cargo bench -p landfall-lab --bench log -- [OPTION]…
  --on SITE         where: dir, recorder:ext4, … [default: dir]
  --latency PROFILE times of a recorder: flush=1ms
  --dir DIR         the directory [default: the target directory]
  --rounds N        how often each has its turn [default: 15]
  --seconds S       for how long [default: 0.5]
  --threads N,…     threads that commit at the same time [default: 1,16,64]
  --against NAME,…  databases [default: sqlite,lmdb,redb,fjall,rocksdb]
  --stream BYTES    also appends so much unsynced, and reads it back
  --segments B,B,…  also holds logs with segments of these sizes against each other, one thread each";

type Fallible<T> = Result<T, String>;

struct Options {
    on: SiteSpec,
    dir: String,
    rounds: usize,
    seconds: f64,
    threads: Vec<usize>,
    against: Vec<String>,
    stream: Option<u64>,
    segments: Vec<u64>,
}

fn main() -> ExitCode {
    // Without this flag it is `cargo test --all-targets` that runs benchmarks, and tests time nothing.
    if !std::env::args().any(|word| word == "--bench") {
        println!("run me by cargo bench\n{USAGE}");
        return ExitCode::SUCCESS;
    }
    match options(std::env::args().skip(1)).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("log: {text}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Fallible<Options> {
    let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut options = Options {
        on: SiteSpec::Directory,
        dir: env!("CARGO_TARGET_TMPDIR").into(),
        rounds: 15,
        seconds: 0.5,
        threads: vec![1, 16, 64],
        against: list("sqlite,lmdb,redb,fjall,rocksdb"),
        stream: None,
        segments: Vec::new(),
    };
    let mut latency = None;
    while let Some(word) = words.next() {
        if word == "--bench" {
            continue;
        }
        let value = words
            .next()
            .ok_or(format!("{word} needs a value\n{USAGE}"))?;
        let wrong = |why: &dyn std::fmt::Display| format!("{word} {value}: {why}\n{USAGE}");
        match word.as_str() {
            "--on" => options.on = value.parse().map_err(|error: String| wrong(&error))?,
            "--latency" => latency = Some(value.parse().map_err(|error: String| wrong(&error))?),
            "--dir" => options.dir = value,
            "--rounds" => options.rounds = value.parse().map_err(|error| wrong(&error))?,
            "--seconds" => options.seconds = value.parse().map_err(|error| wrong(&error))?,
            "--stream" => {
                options.stream = Some(landfall_lab::parse_size(&value).map_err(|e| wrong(&e))?);
            }
            "--segments" => {
                let sizes = value.split(',').map(landfall_lab::parse_size);
                options.segments = sizes.collect::<Result<_, _>>().map_err(|e| wrong(&e))?;
            }
            "--threads" => {
                let threads = value.split(',').map(str::parse);
                options.threads = threads.collect::<Result<_, _>>().map_err(|e| wrong(&e))?;
            }
            "--against" => {
                options.against = list(&value)
                    .into_iter()
                    .filter(|name| !name.is_empty())
                    .collect()
            }
            _ => return Err(format!("there is no option {word}\n{USAGE}")),
        }
    }
    if let (SiteSpec::Recorder(_, times), Some(latency)) = (&mut options.on, latency) {
        *times = Some(latency);
    }
    Ok(options)
}

fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// One thread's way to commit a record, which returns when it is durable.
type Committer = Box<dyn FnMut(u64) -> Fallible<()> + Send>;

/// Who commits.
trait Contender {
    fn name(&self) -> String;
    fn committer(&self, thread: usize) -> Fallible<Committer>;
    /// Waits for what is in flight.
    fn settle(&self) {}
}

struct Floor {
    path: std::path::PathBuf,
    granule: usize,
}

impl Contender for Floor {
    fn name(&self) -> String {
        "floor".into()
    }

    fn committer(&self, _: usize) -> Fallible<Committer> {
        let method = "direct+o_dsync".parse().map_err(sentence)?;
        let mut file = SyncedFile::open(&self.path, method, FLOOR_BYTES).map_err(sentence)?;
        let (granule, slots) = (self.granule, FLOOR_BYTES / self.granule as u64);
        let mut payload = Payload::new(granule, 1);
        Ok(Box::new(move |number| {
            let offset = number % slots * granule as u64;
            file.write(payload.stamped(number), offset)
                .map_err(sentence)
        }))
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

struct Peer {
    name: String,
    running: Box<dyn Running>,
}

impl Contender for Peer {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn committer(&self, thread: usize) -> Fallible<Committer> {
        let mut record = Payload::new(RECORD, 1);
        match self.running.session().map_err(sentence)? {
            Session::Keys(mut keys) => Ok(Box::new(move |number| {
                let mut batch = Batch::default();
                let key = [(thread as u64).to_be_bytes(), number.to_be_bytes()].concat();
                batch.put(key, record.stamped(number));
                keys.commit(&batch).map_err(sentence)
            })),
            Session::Sql(mut sql) => {
                let insert = sql.prepare("INSERT INTO records (record) VALUES (?)");
                let insert = insert.map_err(sentence)?;
                Ok(Box::new(move |number| {
                    let record = [Value::Bytes(record.stamped(number).to_vec())];
                    loop {
                        match sql.execute(insert, &record) {
                            // It had waited for its turn for too long.
                            Err(DatabaseError::Conflict(_)) => {}
                            done => return done.map(drop).map_err(sentence),
                        }
                    }
                }))
            }
        }
    }
}

/// What a turn gave.
#[derive(Clone, Copy)]
struct Turn {
    per_second: f64,
    p99_us: f64,
    max_us: f64,
    cpu_us: f64,
    writes: f64,
    flushes: f64,
    kib: f64,
}

fn turn(
    site: &Site,
    who: &dyn Contender,
    threads: usize,
    seconds: f64,
    from: u64,
) -> Fallible<Turn> {
    let committers: Vec<Committer> = (0..threads)
        .map(|thread| who.committer(thread))
        .collect::<Fallible<_>>()?;
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(threads + 1));
    let all = Mutex::new(Histogram::<u64>::new(3).map_err(sentence)?);
    let failure = Mutex::new(None);
    let mut figures = None;
    thread::scope(|scope| {
        for (thread, mut commit) in committers.into_iter().enumerate() {
            let (stop, barrier, all, failure) = (&stop, &barrier, &all, &failure);
            scope.spawn(move || {
                let mut times = Histogram::<u64>::new(3).expect("three digits");
                barrier.wait();
                let mut number = from + ((thread as u64) << 40);
                while !stop.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    if let Err(error) = commit(number) {
                        failure.lock().unwrap().get_or_insert(error);
                        break;
                    }
                    times
                        .record(begin.elapsed().as_nanos() as u64)
                        .expect("it grows");
                    number += 1;
                }
                all.lock().unwrap().add(times).expect("the same digits");
            });
        }
        let (counted, cpu) = (site.counters(), process_cpu());
        let begin = Instant::now();
        barrier.wait();
        thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        figures = Some((counted, cpu, begin));
    });
    who.settle();
    if let Some(error) = failure.into_inner().unwrap() {
        return Err(format!("{}: {error}", who.name()));
    }
    let Some((counted, cpu, begin)) = figures else {
        return Err("nothing was measured".into());
    };
    let (elapsed, used) = (begin.elapsed().as_secs_f64(), process_cpu() - cpu);
    let times = all.into_inner().unwrap();
    let commits = times.len() as f64;
    let device = site
        .counters()
        .zip(counted)
        .map(|(now, then)| now.since(&then));
    let each = |count: u64| count as f64 / commits;
    Ok(Turn {
        per_second: commits / elapsed,
        p99_us: times.value_at_quantile(0.99) as f64 / 1e3,
        max_us: times.max() as f64 / 1e3,
        cpu_us: used.as_secs_f64() * 1e6 / commits,
        writes: device.map_or(f64::NAN, |device| {
            each(device.data_writes.unwrap_or(device.write_requests))
        }),
        flushes: device.map_or(f64::NAN, |device| each(device.flushes)),
        kib: device.map_or(f64::NAN, |device| each(device.write_bytes) / 1024.0),
    })
}

fn run(options: &Options) -> Fallible<()> {
    let stop = Stop::default();
    let site = match &options.on {
        SiteSpec::Directory => Site::open(Path::new(&options.dir)),
        made => Site::make(made, Path::new(&options.dir), 4 << 30, &stop),
    };
    let site = site.map_err(sentence)?;
    let directory = site.private().join("log");
    std::fs::create_dir(&directory).map_err(sentence)?;
    let granule = site.filesystem().storage().direct_io;
    let granule = granule.map_or(4096, |direct| direct.offset_bytes).max(512) as usize;
    println!(
        "{}; records of {RECORD} bytes, blocks of {granule}",
        options.dir
    );

    let path = directory.join("floor");
    let file = std::fs::File::create(&path).map_err(sentence)?;
    zero_fill(&file, 0, FLOOR_BYTES, &|| false).map_err(sentence)?;
    file.sync_all().map_err(sentence)?;
    // Open, it would keep a made filesystem mounted.
    drop(file);
    let log = Log::open(directory.join("landfall"), LogOptions::default()).map_err(sentence)?;
    let log = Arc::new(log);
    let mut contenders: Vec<Box<dyn Contender>> = vec![
        Box::new(Floor { path, granule }),
        Box::new(Landfall("landfall".into(), log.clone())),
    ];
    let templates = Templates::new(&directory);
    for name in &options.against {
        match peer(name, &directory, &templates, &stop) {
            Ok(peer) => contenders.push(peer),
            Err(error) => println!("{name}: {error}"),
        }
    }
    for &threads in &options.threads {
        let only: Vec<&dyn Contender> = contenders.iter().map(|one| &**one).collect();
        compare(&site, &only, threads, options)?;
    }
    let flying = InFlight {
        log: log.clone(),
        flying: Arc::default(),
    };
    compare(&site, &[&*contenders[0], &flying], 2, options)?;
    println!("{:#?}", log.counters());
    if !options.segments.is_empty() {
        let floor: Box<dyn Contender> = contenders.swap_remove(0);
        turn_over(&site, floor, &directory, options)?;
    }
    if let Some(bytes) = options.stream {
        stream(&directory, bytes)?;
    }
    drop((contenders, flying, log));
    site.close().map_err(sentence)
}

fn peer(
    name: &str,
    directory: &Path,
    templates: &Templates,
    stop: &Stop,
) -> Fallible<Box<dyn Contender>> {
    let set: &[(&str, &str)] = match name {
        "sqlite" => &[("journal_mode", "wal"), ("synchronous", "full")],
        "lmdb" => &[("map_size", "4G")],
        "rocksdb" => &[
            ("recycle_log_file_num", "4"),
            ("enable_pipelined_write", "yes"),
        ],
        _ => &[],
    };
    let set: Vec<(String, String)> = set
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    let database = database::named(name, &set).map_err(sentence)?;
    let data = directory.join(name);
    std::fs::create_dir(&data).map_err(sentence)?;
    database.create(&data, templates, stop).map_err(sentence)?;
    let running = database.start(&data, stop).map_err(sentence)?;
    if let Session::Sql(mut sql) = running.session().map_err(sentence)? {
        let create = "CREATE TABLE records (id INTEGER PRIMARY KEY, record BLOB)";
        sql.run(create).map_err(sentence)?;
    }
    Ok(Box::new(Peer {
        name: name.to_owned(),
        running,
    }))
}

fn compare(
    site: &Site,
    contenders: &[&dyn Contender],
    threads: usize,
    options: &Options,
) -> Fallible<()> {
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); contenders.len()];
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..options.rounds as u64 {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        random.shuffle(&mut order);
        for who in order {
            // The floor is that of one thread, whoever is held against it.
            let threads = if who == 0 { 1 } else { threads };
            let from = (threads as u64) << 32 | round << 24;
            turns[who].push(turn(site, contenders[who], threads, options.seconds, from)?);
        }
    }
    println!(
        "\n{threads} threads, {} rounds of {} s\n{:32} {:>10} {:>22} {:>9} {:>9} {:>8} {:>7} {:>7} {:>6}",
        options.rounds,
        options.seconds,
        "",
        "commits/s",
        "of the floor (95%)",
        "p99 µs",
        "max µs",
        "CPU µs",
        "writes",
        "flushes",
        "KiB"
    );
    for (who, own) in contenders.iter().zip(&turns) {
        let middle = |figure: fn(&Turn) -> f64| {
            let values: Vec<f64> = own.iter().map(figure).collect();
            median(&values).unwrap_or(f64::NAN)
        };
        let pairs: Vec<(f64, f64)> = own
            .iter()
            .zip(&turns[0])
            .map(|(own, floor)| (own.per_second, floor.per_second))
            .collect();
        let ratio = Estimate::of_ratio(&pairs);
        let ratio = ratio.map_or_else(String::new, |ratio| {
            format!("{:.3} ({:.3}–{:.3})", ratio.median, ratio.low, ratio.high)
        });
        println!(
            "{:32} {:>10.0} {ratio:>22} {:>9.0} {:>9.0} {:>8.2} {:>7.3} {:>7.4} {:>6.2}",
            who.name(),
            middle(|turn| turn.per_second),
            middle(|turn| turn.p99_us),
            middle(|turn| turn.max_us),
            middle(|turn| turn.cpu_us),
            middle(|turn| turn.writes),
            middle(|turn| turn.flushes),
            middle(|turn| turn.kib),
        );
    }
    Ok(())
}

/// One thread commits to logs that begin another segment more or less often.
fn turn_over(
    site: &Site,
    floor: Box<dyn Contender>,
    directory: &Path,
    options: &Options,
) -> Fallible<()> {
    let mut contenders = vec![floor];
    for &bytes in &options.segments {
        let log_options = LogOptions {
            segment_bytes: bytes,
            ..LogOptions::default()
        };
        let place = directory.join(format!("segments-{bytes}"));
        let log = Log::open(place, log_options).map_err(sentence)?;
        let name = format!("landfall, segments of {} KiB", bytes >> 10);
        contenders.push(Box::new(Landfall(name, Arc::new(log))));
    }
    let all: Vec<&dyn Contender> = contenders.iter().map(|one| &**one).collect();
    compare(site, &all, 1, options)
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
        let (mut records, mut reader) = (0u64, log.read(log.first()).map_err(sentence)?);
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
