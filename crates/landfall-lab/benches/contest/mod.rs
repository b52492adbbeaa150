//! What benchmarks of the engine share: who commits, turn by turn, and how that is told.
//!
//! The floor is a bare loop: one thread overwrites granules of a file that was written, with O_DIRECT and O_DSYNC, and
//! does nothing else. Everybody else commits records of 200 bytes, each durable before it is acknowledged, unless
//! said otherwise. Round by round each contender has its turn, in another order each time; ratios are formed within
//! a round. Nothing is asserted: figures depend on the machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use landfall_databases::{Batch, DatabaseError, Running, Session, Templates, Value};
use landfall_lab::stats::{Estimate, median};
use landfall_lab::{Site, SiteSpec, Stop};
use landfall_os::{Payload, SyncedFile, process_cpu, zero_fill};

/// Bytes of a record.
pub const RECORD: usize = 200;
/// Bytes of the file that the floor goes through again and again.
const FLOOR_BYTES: u64 = 16 << 20;

pub type Fallible<T> = Result<T, String>;

/// Where, and for how long.
#[derive(Args)]
pub struct Contest {
    /// Where: dir, recorder:ext4, …
    #[arg(long, default_value = "dir")]
    on: String,
    /// Times of a recorder: flush=1ms
    #[arg(long)]
    latency: Option<String>,
    /// The directory, or the one whose disk holds what is made
    #[arg(long, default_value = env!("CARGO_TARGET_TMPDIR"))]
    pub dir: PathBuf,
    /// How often each has its turn
    #[arg(long, default_value_t = 15)]
    rounds: u64,
    /// For how many seconds
    #[arg(long, default_value_t = 0.5)]
    seconds: f64,
    /// Threads that commit at the same time
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    pub threads: Vec<usize>,
    /// What cargo says
    #[arg(long, hide = true)]
    bench: bool,
}

/// Where benchmarks are run, and what all of them need there.
pub struct Place {
    pub site: Site,
    pub directory: PathBuf,
    pub floor: Floor,
    templates: Templates,
    stop: Stop,
}

impl Contest {
    pub fn place(&self) -> Fallible<Place> {
        let mut on = match self.on.as_str() {
            "dir" => SiteSpec::Directory,
            made => made.parse()?,
        };
        if let (SiteSpec::Recorder(_, times), Some(latency)) = (&mut on, &self.latency) {
            *times = Some(latency.parse()?);
        }
        let stop = Stop::default();
        let site = match &on {
            SiteSpec::Directory => Site::open(&self.dir),
            made => Site::make(made, &self.dir, 4 << 30, &stop),
        };
        let site = site.map_err(sentence)?;
        let directory = site.private().join("contest");
        std::fs::create_dir(&directory).map_err(sentence)?;
        let floor = Floor::new(&site, &directory)?;
        println!(
            "{}; records of {RECORD} bytes, blocks of {}",
            self.dir.display(),
            floor.granule
        );
        Ok(Place {
            templates: Templates::new(&directory),
            site,
            directory,
            floor,
            stop,
        })
    }
}

pub fn sentence(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// One thread's way to commit a record, which returns when it is durable.
pub type Committer = Box<dyn FnMut(u64) -> Fallible<()> + Send>;

/// Who commits.
pub trait Contender {
    fn name(&self) -> String;
    fn committer(&self, thread: usize) -> Fallible<Committer>;
    /// Waits for what is in flight.
    fn settle(&self) {}
}

/// The disk itself.
#[derive(Clone)]
pub struct Floor {
    path: std::path::PathBuf,
    granule: usize,
}

impl Floor {
    fn new(site: &Site, directory: &Path) -> Fallible<Floor> {
        let granule = site.filesystem().storage().direct_io;
        let granule = granule.map_or(4096, |direct| direct.offset_bytes).max(512) as usize;
        let path = directory.join("floor");
        let file = std::fs::File::create(&path).map_err(sentence)?;
        zero_fill(&file, 0, FLOOR_BYTES, &|| false).map_err(sentence)?;
        file.sync_all().map_err(sentence)?;
        Ok(Floor { path, granule })
    }
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

impl Place {
    /// A database, with the settings that make it durable.
    pub fn peer(&self, name: &str) -> Fallible<Box<dyn Contender>> {
        let set: &[(&str, &str)] = match name {
            "sqlite" => &[("journal_mode", "wal"), ("synchronous", "full")],
            "lmdb" => &[("map_size", "4G")],
            "rocksdb" => &[
                ("recycle_log_file_num", "4"),
                ("enable_pipelined_write", "yes"),
            ],
            "redis" => &[("appendonly", "yes"), ("appendfsync", "always")],
            _ => &[],
        };
        let set: Vec<(String, String)> = set
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let database = landfall_databases::named(name, &set).map_err(sentence)?;
        let data = self.directory.join(name);
        std::fs::create_dir(&data).map_err(sentence)?;
        database
            .create(&data, &self.templates, &self.stop)
            .map_err(sentence)?;
        let running = database.start(&data, &self.stop).map_err(sentence)?;
        if let Session::Sql(mut sql) = running.session().map_err(sentence)? {
            let create = "CREATE TABLE records (id INTEGER PRIMARY KEY, record BLOB)";
            sql.run(create).map_err(sentence)?;
        }
        Ok(Box::new(Peer {
            name: name.to_owned(),
            running,
        }))
    }
}

/// Has each its turns, the floor first among them, and prints what that gave.
pub fn compare(
    place: &Place,
    contenders: &[&dyn Contender],
    threads: usize,
    contest: &Contest,
) -> Fallible<()> {
    let contenders: Vec<&dyn Contender> = [&place.floor as &dyn Contender]
        .into_iter()
        .chain(contenders.iter().copied())
        .collect();
    let mut turns: Vec<Vec<Turn>> = vec![Vec::new(); contenders.len()];
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..contest.rounds {
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        random.shuffle(&mut order);
        for who in order {
            // The floor is that of one thread, whoever is held against it.
            let threads = if who == 0 { 1 } else { threads };
            let from = (threads as u64) << 32 | round << 24;
            turns[who].push(turn(
                &place.site,
                contenders[who],
                threads,
                contest.seconds,
                from,
            )?);
        }
    }
    println!(
        "\n{threads} threads, {} rounds of {} s\n{:32} {:>10} {:>22} {:>9} {:>9} {:>8} {:>7} {:>7} {:>6}",
        contest.rounds,
        contest.seconds,
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
    for (who, own) in contenders.into_iter().zip(&turns) {
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
