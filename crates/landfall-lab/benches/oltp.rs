//! What our OLTP transactions do a second, against sysbench's own on the same server and table.
//!
//! `cargo bench -p landfall-lab --bench oltp -- [--dir DIR] [--rounds N] [--seconds S] [--threads N]
//! [--rows N] [--set VARIABLE=VALUE]…`. Needs `sysbench` and MariaDB. One server, one table that we
//! loaded; round by round each test is run by both, one after the other, in every other round in the
//! reverse order, and the ratio is formed within the round. By default commits do not wait for a disk, so
//! that what a client costs shows most. On a busy machine rates scatter; the server's CPU time for a
//! transaction, which must be the same for both, does so less.
//!
//! Nothing is asserted: figures depend on the machine.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use landfall_databases::workload::{self, Workload, clients};
use landfall_databases::{Running, Session, Templates};
use landfall_lab::Stop;
use landfall_lab::stats::{Estimate, median};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const TESTS: [&str; 5] = [
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_write_only",
    "oltp_read_write",
];

const USAGE: &str = "\
usage: cargo bench -p landfall-lab --bench oltp -- [OPTION]…
  --dir DIR             directory for the database [default: the target directory]
  --rounds N            how often each test is run by both [default: 7]
  --seconds S           for how long each time [default: 4]
  --threads N           clients [default: 4]
  --rows N              rows of the table [default: 100000]
  --set VARIABLE=VALUE  of the server [default: innodb_flush_log_at_trx_commit=2]";

type Fallible<T> = Result<T, String>;

struct Options {
    dir: PathBuf,
    rounds: usize,
    seconds: u32,
    threads: u32,
    rows: u32,
    set: Vec<(String, String)>,
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
            eprintln!("oltp: {text}");
            ExitCode::FAILURE
        }
    }
}

fn options(mut words: impl Iterator<Item = String>) -> Fallible<Options> {
    let mut options = Options {
        dir: env!("CARGO_TARGET_TMPDIR").into(),
        rounds: 7,
        seconds: 4,
        threads: 4,
        rows: 100_000,
        set: Vec::new(),
    };
    while let Some(word) = words.next() {
        if word == "--bench" {
            continue;
        }
        let value = words
            .next()
            .ok_or(format!("{word} needs a value\n{USAGE}"))?;
        match word.as_str() {
            "--dir" => options.dir = value.into(),
            "--rounds" => options.rounds = count(&value)? as usize,
            "--seconds" => options.seconds = count(&value)?,
            "--threads" => options.threads = count(&value)?,
            "--rows" => options.rows = count(&value)?,
            "--set" => {
                let pair = value.split_once('=');
                let (key, value) = pair.ok_or(format!("'{value}' sets nothing\n{USAGE}"))?;
                options.set.push((key.to_owned(), value.to_owned()));
            }
            _ => return Err(format!("there is no option {word}\n{USAGE}")),
        }
    }
    if options.set.is_empty() {
        let (key, value) = ("innodb_flush_log_at_trx_commit", "2");
        options.set.push((key.to_owned(), value.to_owned()));
    }
    Ok(options)
}

fn count(text: &str) -> Fallible<u32> {
    match text.parse() {
        Ok(number @ 1..) => Ok(number),
        _ => Err(format!("'{text}' is no number from 1\n{USAGE}")),
    }
}

fn run(options: &Options) -> Fallible<()> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // A default handler would end the process before the server and its directories are gone.
        signal_hook::flag::register(signal, Arc::clone(&stop.flag()))
            .map_err(|error| format!("cannot watch for Ctrl-C: {error}"))?;
    }
    let sentence = |error: &dyn std::fmt::Display| error.to_string();
    let directory = tempfile::tempdir_in(&options.dir).map_err(|error| sentence(&error))?;
    let data = directory.path().join("data");
    std::fs::create_dir(&data).map_err(|error| sentence(&error))?;
    let database =
        landfall_databases::named("mariadb", &options.set).map_err(|error| sentence(&error))?;
    let templates = Templates::new(directory.path());
    database
        .create(&data, &templates, &stop)
        .map_err(|error| sentence(&error))?;
    let running = database
        .start(&data, &stop)
        .map_err(|error| sentence(&error))?;

    let rows = ("rows".to_owned(), options.rows.to_string());
    let workloads = TESTS.map(|test| {
        let workload = workload::named(test, std::slice::from_ref(&rows));
        workload.map_err(|error| sentence(&error))
    });
    let workloads: Vec<Box<dyn Workload>> = workloads.into_iter().collect::<Fallible<_>>()?;
    workloads[0]
        .load(&*running, 1, &stop)
        .map_err(|error| sentence(&error))?;
    let socket = socket(&*running)?;

    println!(
        "{}; {} rows, {} clients, {} s each:",
        database.name(),
        options.rows,
        options.threads,
        options.seconds
    );
    println!(
        "test                    ours/s  sysbench/s  ratio (95% interval), smallest, largest; server CPU ratio"
    );
    let mut pairs = vec![Vec::new(); TESTS.len()];
    for round in 0..options.rounds {
        for (index, test) in TESTS.iter().enumerate() {
            let workload = &*workloads[index];
            let seed = round as u64;
            let pair = match round % 2 {
                0 => {
                    let ours = ours(&*running, workload, seed, options, &stop)?;
                    (ours, sysbench(&*running, &socket, test, options)?)
                }
                _ => {
                    let theirs = sysbench(&*running, &socket, test, options)?;
                    (ours(&*running, workload, seed, options, &stop)?, theirs)
                }
            };
            pairs[index].push(pair);
        }
    }
    for (test, pairs) in TESTS.iter().zip(&pairs) {
        report(test, pairs);
    }
    running.stop().map_err(|error| sentence(&error))
}

/// What one of the two did.
#[derive(Clone, Copy)]
struct Rate {
    /// Transactions a second.
    transactions: f64,
    /// Seconds of CPU time of the server for one.
    server: f64,
}

fn report(test: &str, rounds: &[(Rate, Rate)]) {
    let server = rounds
        .iter()
        .map(|(ours, theirs)| (ours.server, theirs.server));
    let server = Estimate::of_ratio(&server.collect::<Vec<_>>());
    let pairs = rounds.iter();
    let pairs = pairs.map(|(ours, theirs)| (ours.transactions, theirs.transactions));
    let pairs: Vec<(f64, f64)> = pairs.collect();
    let (ours, theirs): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ratios = pairs.iter().map(|(ours, theirs)| ours / theirs);
    let smallest = ratios.clone().fold(f64::INFINITY, f64::min);
    let largest = ratios.fold(0.0, f64::max);
    if let Some(Estimate {
        median: middle,
        low,
        high,
    }) = Estimate::of_ratio(&pairs)
    {
        println!(
            "{test:<22} {:>7.0} {:>11.0}  {middle:.3} ({low:.3} to {high:.3}), {smallest:.3}, {largest:.3}; {:.3}",
            median(&ours).unwrap_or_default(),
            median(&theirs).unwrap_or_default(),
            server.map_or(f64::NAN, |server| server.median),
        );
    }
}

/// Where the server listens.
fn socket(running: &dyn Running) -> Fallible<String> {
    let asked = match running.session() {
        Ok(Session::Sql(mut sql)) => sql
            .prepare("SELECT @@socket")
            .and_then(|statement| sql.query(statement, &[])),
        Ok(Session::Keys(_)) => return Err("MariaDB has no tables".to_owned()),
        Err(error) => Err(error),
    };
    let rows = asked.map_err(|error| error.to_string())?;
    let socket = rows.first().and_then(|row| row.first());
    let socket = socket.ok_or("MariaDB has no socket")?;
    Ok(String::from_utf8_lossy(socket.bytes()).into_owned())
}

/// Our transactions a second.
fn ours(
    running: &dyn Running,
    workload: &dyn Workload,
    seed: u64,
    options: &Options,
    stop: &Stop,
) -> Fallible<Rate> {
    let client = |number| workload.client(running.session()?, number, seed);
    let clients: Result<Vec<_>, _> = (0..options.threads).map(client).collect();
    let mut clients = clients.map_err(|error| error.to_string())?;
    let most = Duration::from_secs(u64::from(options.seconds));
    let kinds = workload.requests().len();
    let before = running.cpu();
    let ran = clients::work(&mut clients, kinds, stop, || (), &mut |passed, _| {
        passed >= most
    });
    let ((), worked) = ran.map_err(|error| error.to_string())?;
    let server = (running.cpu() - before).as_secs_f64();
    let transactions = worked.requests() as f64;
    Ok(Rate {
        transactions: transactions / worked.elapsed.as_secs_f64(),
        server: server / transactions,
    })
}

/// Sysbench's.
fn sysbench(running: &dyn Running, socket: &str, test: &str, options: &Options) -> Fallible<Rate> {
    let before = running.cpu();
    let output = Command::new("sysbench")
        .arg(test)
        .arg(format!("--mysql-socket={socket}"))
        .args(["--mysql-user=root", "--mysql-db=landfall", "--tables=1"])
        .args(["--rand-type=uniform", "--rand-seed=0"])
        .arg(format!("--table-size={}", options.rows))
        .arg(format!("--threads={}", options.threads))
        .arg(format!("--time={}", options.seconds))
        .arg("run")
        .output()
        .map_err(|error| format!("cannot run sysbench: {error}; apt install sysbench"))?;
    let server = (running.cpu() - before).as_secs_f64();
    let text = String::from_utf8_lossy(&output.stdout);
    // `    transactions:                        12345  (3086.12 per sec.)`
    let rate = text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix("transactions:")?;
        let (done, rate) = rest.split_once('(')?;
        let done: f64 = done.trim().parse().ok()?;
        Some(Rate {
            transactions: rate.split_whitespace().next()?.parse().ok()?,
            server: server / done,
        })
    });
    rate.ok_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("sysbench gave no rate: {text}{errors}")
    })
}
