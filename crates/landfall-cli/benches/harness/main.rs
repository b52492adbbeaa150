//! What landfall's measuring costs: the program against a bare loop in C, on a disk and on tmpfs.
//!
//! `cargo bench -- [--dir DIR] [--rounds N] [--ops N]`. Whole programs run in turn: round by round the
//! untimed C loop, landfall, the timed C loop, and in every other round the reverse, so that whatever
//! changes over time falls on all of them alike. Differences and ratios are formed within a round.
//! Many short rounds tell more than few long ones: what disturbs a disk lasts longer than a round.
//!
//! Conditions are equal: landfall makes its file, syncs it, and reads it into an empty cache before it
//! measures, and here the same is done for every other program, because the place of a file and the
//! size of its folios in the page cache change what a write costs. Before each run the filesystem is
//! synced, so that no program pays for what another one left.
//!
//! Nothing is asserted: figures depend on the machine, and a busy one cannot tell. The program fails
//! only when it could not run. All files are in temporary directories that are removed in any case.

mod programs;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use landfall_lab::stats::{Estimate, median};
use landfall_os::{Filesystem, Space};
use programs::{Bench, Clock, Sample};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use table::{Bound, Row};

/// Bytes in a write; also in `bare_loop.c`.
const BLOCK: u64 = 8192;
/// More than on a disk, and by default a file larger than any processor's cache: of one that fits,
/// what the program before has left in the cache decides what a write costs.
const MEMORY_FACTOR: u64 = 100;
/// In fewer rounds, because making such a file takes longer than overwriting it.
const MEMORY_ROUNDS_DIVISOR: usize = 5;
const STARTS: usize = 20;
/// How often the programs are run that are there for orientation only.
const OTHERS: usize = 5;
const MEMORY: &str = "/dev/shm";

const USAGE: &str = "\
usage: cargo bench -- [--dir DIR] [--rounds N] [--ops N]
  --dir DIR   directory on a disk [default: the target directory]
  --rounds N  how often each program runs on the disk; a fifth of it on tmpfs [default: 150]
  --ops N     durable writes in a run on the disk; 100 times as many on tmpfs [default: 500]";

type Fallible<T> = Result<T, String>;

struct Options {
    dir: PathBuf,
    rounds: usize,
    operations: u64,
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
            eprintln!("harness: {text}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Fallible<Options> {
    let mut options = Options {
        dir: env!("CARGO_TARGET_TMPDIR").into(),
        rounds: 150,
        operations: 500,
    };
    while let Some(word) = words.next() {
        if word == "--bench" {
            continue;
        }
        let mut value = || words.next().ok_or(format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--dir" => options.dir = value()?.into(),
            "--rounds" => options.rounds = count(&value()?)? as usize,
            "--ops" => options.operations = count(&value()?)?,
            _ => return Err(format!("there is no option {word}\n{USAGE}")),
        }
    }
    Ok(options)
}

fn count(text: &str) -> Fallible<u64> {
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err(format!("'{text}' is no number from 1 to 1000000\n{USAGE}")),
    }
}

fn run(options: &Options) -> Fallible<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A default handler would end the process before its directories are removed.
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| format!("cannot watch for Ctrl-C: {error}"))?;
    }
    let tools = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .map_err(|error| format!("cannot make a directory for the C program: {error}"))?;
    let bare_loop = programs::compile(tools.path())?;

    let mut rows = Vec::new();
    let bench = Bench::new(&options.dir, &bare_loop, options.operations)?;
    let place = format!("disk ({})", bench.filesystem.storage().kind);
    let disk = Runs::all(&place, &bench, options.rounds, &interrupted)?;
    drop(bench);
    rows.extend(disk_rows(&disk));
    table::absolute(&disk.title, &disk.programs());

    let mut memory_notes = Vec::new();
    match memory_operations(options.operations * MEMORY_FACTOR) {
        Ok(operations) => {
            let bench = Bench::new(Path::new(MEMORY), &bare_loop, operations)?;
            let rounds = options.rounds.div_ceil(MEMORY_ROUNDS_DIVISOR);
            let memory = Runs::all("tmpfs", &bench, rounds, &interrupted)?;
            drop(bench);
            rows.extend(memory_rows(&memory));
            table::absolute(&memory.title, &memory.programs());
            let bench = Bench::new(Path::new(MEMORY), &bare_loop, 1)?;
            rows.extend(start_rows(&bench, &interrupted)?);
        }
        Err(reason) => memory_notes.push(format!("Not measured on tmpfs: {reason}.")),
    }
    table::verdicts(&rows);

    for note in disk.notes.iter().chain(&memory_notes) {
        println!("{note}");
    }
    Ok(())
}

/// As many operations as asked for, or as a fourth of the space there permits.
fn memory_operations(wanted: u64) -> Fallible<u64> {
    let dir = Path::new(MEMORY);
    let kind = Filesystem::of(dir)
        .map_err(|error| format!("there is no {MEMORY}: {error}"))?
        .kind;
    if kind != "tmpfs" {
        return Err(format!("{MEMORY} is {kind}"));
    }
    let space = Space::of(dir).map_err(|error| format!("cannot look at {MEMORY}: {error}"))?;
    match wanted.min(space.available_bytes / 4 / BLOCK) {
        operations @ 1000.. => Ok(operations),
        _ => Err(format!("{MEMORY} is too small")),
    }
}

/// What was measured in one directory.
struct Runs {
    title: String,
    /// Of each round: the untimed loop, the timed loop, landfall.
    rounds: Vec<[Sample; 3]>,
    /// A few runs of fio, with the untimed loop of their round.
    fio: Vec<(Sample, Sample)>,
    postgres: Option<Sample>,
    notes: Vec<String>,
}

impl Runs {
    fn all(
        place: &str,
        bench: &Bench<'_>,
        rounds: usize,
        interrupted: &AtomicBool,
    ) -> Fallible<Runs> {
        let title = format!(
            "On {place}: {rounds} rounds of {} × (write 8 KiB, fdatasync)",
            bench.operations
        );
        eprintln!("{title} …");
        let fio = programs::find("fio", &[]);
        let mut runs = Runs {
            title,
            rounds: Vec::new(),
            fio: Vec::new(),
            postgres: None,
            notes: Vec::new(),
        };
        for round in 0..rounds {
            let mut samples = [Sample::default(); 3];
            let mut order = [0, 2, 1];
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                check(interrupted)?;
                samples[program] = match program {
                    0 => bench.bare_loop(Clock::Untimed)?,
                    1 => bench.bare_loop(Clock::Timed)?,
                    _ => bench.landfall()?.0,
                };
            }
            if let Some(fio) = &fio
                && runs.fio.len() < OTHERS
                && round.is_multiple_of((rounds / OTHERS).max(1))
            {
                check(interrupted)?;
                runs.fio.push((bench.fio(fio)?.0, samples[0]));
            }
            runs.rounds.push(samples);
        }
        match &fio {
            Some(_) => runs.notes.push(
                "fio reports the latencies of write and sync apart, so it has no p50 of both."
                    .into(),
            ),
            None => runs.notes.push("fio is not installed.".into()),
        }
        let postgres = programs::find("pg_test_fsync", &programs::postgres_directories());
        match postgres {
            Some(path) => runs.postgres = Some(bench.pg_test_fsync(&path)?),
            None => runs.notes.push("pg_test_fsync is not installed.".into()),
        }
        if bench.counters.is_none() {
            runs.notes.push(format!(
                "Flushes were not counted on {place}: no single disk."
            ));
        }
        Ok(runs)
    }

    /// Pairs of a figure of landfall and the same of program `against`.
    fn pairs(&self, against: usize, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<(f64, f64)> {
        self.rounds
            .iter()
            .filter_map(|round| Some((figure(&round[2])?, figure(&round[against])?)))
            .collect()
    }

    fn programs(&self) -> Vec<(&'static str, Vec<Sample>)> {
        let column = |program: usize| self.rounds.iter().map(|round| round[program]).collect();
        vec![
            ("bare loop in C, untimed", column(0)),
            ("bare loop in C, timed", column(1)),
            ("landfall", column(2)),
            ("fio", self.fio.iter().map(|(fio, _)| *fio).collect()),
            ("pg_test_fsync", self.postgres.into_iter().collect()),
        ]
    }
}

fn check(interrupted: &AtomicBool) -> Fallible<()> {
    if interrupted.load(Ordering::Relaxed) {
        return Err("stopped".into());
    }
    Ok(())
}

fn differences(pairs: &[(f64, f64)]) -> Option<Estimate> {
    Estimate::of(&pairs.iter().map(|(a, b)| a - b).collect::<Vec<f64>>())
}

fn disk_rows(runs: &Runs) -> Vec<Row> {
    vec![
        Row::new(
            "ops/s on disk, share of the untimed loop",
            Bound::AtLeast(0.98),
            Estimate::of_ratio(&runs.pairs(0, |sample| Some(sample.ops_per_second))),
        ),
        Row::new(
            "p50 on disk less the timed loop's, µs",
            Bound::Within(2.0),
            differences(&runs.pairs(1, |sample| sample.p50_us)),
        ),
        Row::new(
            "flushes per op less the untimed loop's",
            Bound::Within(0.02),
            differences(&runs.pairs(0, |sample| sample.flushes)),
        ),
    ]
}

fn memory_rows(runs: &Runs) -> Vec<Row> {
    let fio: Vec<(f64, f64)> = runs
        .fio
        .iter()
        .map(|(fio, bare)| (fio.cpu_us, bare.cpu_us))
        .filter_map(|(fio, bare)| Some((fio?, bare?)))
        .collect();
    let timed: Vec<(f64, f64)> = runs
        .rounds
        .iter()
        .filter_map(|round| Some((round[1].cpu_us?, round[0].cpu_us?)))
        .collect();
    vec![
        Row::new(
            "CPU per op on tmpfs above the untimed loop, µs",
            Bound::AtMost(0.3),
            differences(&runs.pairs(0, |sample| sample.cpu_us)),
        ),
        Row::new("  the timed loop's", Bound::None, differences(&timed)),
        Row::new("  fio's", Bound::None, differences(&fio)),
    ]
}

/// From starting a program to its end, with one operation on tmpfs.
fn start_rows(bench: &Bench<'_>, interrupted: &AtomicBool) -> Fallible<Vec<Row>> {
    eprintln!("start-up …");
    let fio = programs::find("fio", &[]);
    let mut wall: [Vec<f64>; 3] = Default::default();
    for round in 0..STARTS {
        check(interrupted)?;
        wall[0].push(bench.landfall()?.1);
        wall[1].push(bench.start_of_bare_loop()?);
        if let Some(fio) = &fio
            && round < OTHERS
        {
            wall[2].push(bench.fio(fio)?.1);
        }
    }
    let [landfall, bare, fio] = wall.map(|seconds| {
        let milliseconds: Vec<f64> = seconds.iter().map(|seconds| seconds * 1e3).collect();
        Estimate::of(&milliseconds)
    });
    Ok(vec![
        Row::new("start-up and one op, ms", Bound::AtMost(10.0), landfall),
        Row::new("  the untimed loop's", Bound::None, bare),
        Row::new("  fio's", Bound::None, fio),
    ])
}

/// The median of a figure, where any run has it.
fn middle(samples: &[Sample], figure: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
    median(&samples.iter().filter_map(figure).collect::<Vec<f64>>())
}
