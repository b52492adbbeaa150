//! How stores are compared: round by round each has its turn, alone, in another order each time, in a new directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;

use crate::Fallible;
use crate::engines::{Engine, KINDS, Kind, Settings, Write};
use crate::place::Scratch;
use crate::results::{MORE_IS_BETTER, Results, show};
use crate::rows::Rows;

/// What all workloads are told.
#[derive(Args)]
pub struct Common {
    /// Stores to compare [default: all that are built in]
    #[arg(long, value_delimiter = ',')]
    engines: Vec<String>,
    /// Directory in which theirs are made, and removed
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Bytes of each store's cache and write buffers together [default: 256M; of redb 4G, of stalls 16M, of open what the rows need]
    #[arg(long, value_parser = parse_size)]
    pub memory: Option<u64>,
    /// Turns of each store
    #[arg(long, default_value_t = 1, value_parser = count::<usize>)]
    rounds: usize,
    /// Writes the figures to a file
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Makes only this one's turn, in this process
    #[arg(long, hide = true)]
    turn: Option<String>,
    /// Of which round that turn is
    #[arg(long, hide = true, default_value_t = 0, requires = "turn")]
    round: usize,
}

/// `64M`, in bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err("a size is a number, and K, M or G".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "a size begins with a number")?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "it is too large".into())
}

/// A number of things, of which there must be one.
pub fn count<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let count: Option<T> = text.parse().ok();
    count
        .filter(|count| *count >= T::from(1))
        .ok_or_else(|| "a count is a number from 1 on".into())
}

/// Who takes part, and how it is told.
#[derive(Clone)]
pub struct Contestant {
    pub name: String,
    pub version: String,
    pub kind: &'static Kind,
    pub checkpoints: bool,
}

/// A store's turn.
pub struct Turn<'a> {
    pub contestant: &'a Contestant,
    /// The store's.
    pub directory: PathBuf,
    pub memory: u64,
    results: &'a mut Results,
    round: usize,
}

impl Common {
    pub fn contestants(&self) -> Fallible<Vec<Contestant>> {
        let kinds = if self.engines.is_empty() {
            KINDS.iter().collect()
        } else {
            let named = self.engines.iter().map(|name| Kind::named(name));
            named.collect::<Fallible<Vec<_>>>()?
        };
        let contestant = |kind: &'static Kind| Contestant {
            name: kind.name.into(),
            version: (kind.version)(),
            kind,
            checkpoints: true,
        };
        Ok(kinds.into_iter().map(contestant).collect())
    }

    /// Lets each have its turns. What one fails at is told, and the others go on.
    pub fn contest(
        &self,
        workload: &str,
        memory: u64,
        contestants: &[Contestant],
        work: &dyn Fn(&mut Turn<'_>) -> Fallible<()>,
    ) -> Fallible<Results> {
        let mut results = Results::new(workload, contestants);
        if let Some(name) = &self.turn {
            let named = contestants.iter().find(|one| one.name == *name);
            let contestant = named.ok_or_else(|| format!("there is no {name}"))?;
            self.have_turn(contestant, memory, &mut results, work)?;
            return Ok(results);
        }
        let mut random = fastrand::Rng::with_seed(1);
        for round in 0..self.rounds {
            let mut order: Vec<&Contestant> = contestants.iter().collect();
            random.shuffle(&mut order);
            for contestant in order {
                match self.turn_apart(contestant, round) {
                    Ok(turn) => results.merge(turn),
                    Err(error) => results.fail(&contestant.name, &*error),
                }
            }
        }
        Ok(results)
    }

    fn have_turn(
        &self,
        contestant: &Contestant,
        memory: u64,
        results: &mut Results,
        work: &dyn Fn(&mut Turn<'_>) -> Fallible<()>,
    ) -> Fallible<()> {
        let scratch = Scratch::new(&self.dir, contestant.kind.name)?;
        let mut turn = Turn {
            contestant,
            directory: scratch.path().join("data"),
            memory: self.memory.unwrap_or(memory),
            results,
            round: self.round,
        };
        if let Err(error) = work(&mut turn) {
            results.fail(&contestant.name, &*error);
        }
        Ok(())
    }

    /// A turn in a process of its own, so that nobody works in memory that another has left, and is charged for it.
    fn turn_apart(&self, contestant: &Contestant, round: usize) -> Fallible<Results> {
        let scratch = Scratch::new(&self.dir, "turn")?;
        let path = scratch.path().join("results.json");
        // The last of an option counts.
        let status = Command::new(std::env::current_exe()?)
            .args(std::env::args_os().skip(1))
            .args(["--turn", &contestant.name])
            .args(["--round", &round.to_string()])
            .arg("--json")
            .arg(&path)
            .stdout(Stdio::null())
            .status()?;
        let text = std::fs::read_to_string(&path);
        let text = text.map_err(|_| format!("its process has ended without results: {status}"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Lets all that were asked for have their turns, and tells the results.
    pub fn compare(
        &self,
        workload: &str,
        memory: u64,
        work: &dyn Fn(&mut Turn<'_>) -> Fallible<()>,
    ) -> Fallible<()> {
        let results = self.contest(workload, memory, &self.contestants()?, work)?;
        results.tell(self.json.as_deref())
    }
}

impl Turn<'_> {
    pub fn settings(&self) -> Settings {
        Settings {
            directory: self.directory.clone(),
            memory: self.memory,
            checkpoints: self.contestant.checkpoints,
        }
    }

    pub fn open(&self) -> Fallible<Box<dyn Engine>> {
        (self.contestant.kind.open)(&self.settings())
    }

    /// Where the store's directory is.
    pub fn parent(&self) -> &Path {
        self.directory.parent().unwrap_or(&self.directory)
    }

    /// A figure of this turn. Less is better, unless the unit is [`MORE_IS_BETTER`].
    pub fn tell(&mut self, phase: &str, unit: &str, value: f64) {
        let name = &self.contestant.name;
        let round = self.round + 1;
        eprintln!("round {round}, {name}: {phase} {} {unit}", show(value));
        self.results.add(name, phase, unit, value);
    }

    /// How many a second.
    pub fn tell_rate(&mut self, phase: &str, count: u64, took: Duration) {
        self.tell(phase, MORE_IS_BETTER, count as f64 / took.as_secs_f64());
    }

    /// Times of so many commits or reads.
    pub fn tell_times(&mut self, phase: &str, times: &Histogram<u64>) {
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            let micros = times.value_at_quantile(quantile) as f64 / 1e3;
            self.tell(format!("{phase} {name}").trim_start(), "µs", micros);
        }
    }
}

/// Nanoseconds, to three digits.
pub fn times() -> Fallible<Histogram<u64>> {
    Ok(Histogram::new(3)?)
}

/// Nanoseconds since then.
pub fn nanos(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// How long it takes.
pub fn timed(work: impl FnOnce() -> Fallible<()>) -> Fallible<Duration> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed())
}

/// Does something by so many threads, and returns what each returned, and how long it took.
pub fn together<R: Send>(
    threads: usize,
    work: impl Fn(usize) -> Fallible<R> + Sync,
) -> Fallible<(Vec<R>, Duration)> {
    let begin = Instant::now();
    let all: Fallible<Vec<R>> = thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .map(|result| result.unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect()
    });
    Ok((all?, begin.elapsed()))
}

/// Commits writes by so many, or by as many as the store takes at once, and makes them durable at the end.
pub fn load(
    engine: &dyn Engine,
    writes: impl Iterator<Item = Write>,
    batch: usize,
) -> Fallible<()> {
    let mut writes = writes.peekable();
    let batch = batch.min(engine.most_writes());
    // A single commit of everything is durable by itself.
    let durable = batch == usize::MAX;
    while writes.peek().is_some() {
        engine.commit(&mut writes.by_ref().take(batch), durable)?;
    }
    engine.sync()
}

/// Loads rows that are updated or read later, and lets the store settle.
pub fn prepare(engine: &dyn Engine, rows: &Rows, count: u64) -> Fallible<()> {
    load(engine, (0..count).map(|row| rows.write(row, 0)), 10_000)?;
    engine.settle()
}
