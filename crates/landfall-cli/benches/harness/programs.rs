//! The programs that are compared: how each is started, on what file, and how its figures are read.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use landfall_lab::Results;
use landfall_os::{Filesystem, Payload, evict, load};
use landfall_results::Metric;
use serde_json::Value;
use tempfile::TempDir;

use crate::{BLOCK, Fallible};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/harness/bare_loop.c");
const LANDFALL: &str = env!("CARGO_BIN_EXE_landfall");
/// How landfall writes the file that it overwrites.
const CHUNK: u64 = 1 << 20;

/// Figures of one run. Not every program tells all of them.
#[derive(Clone, Copy, Default)]
pub struct Sample {
    pub ops_per_second: f64,
    pub p50_us: Option<f64>,
    pub cpu_us: Option<f64>,
    pub flushes: Option<f64>,
}

/// Whether the bare loop reads the clock after each operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Untimed,
    Timed,
}

/// A temporary directory to run in, and what it stands on.
pub struct Bench<'a> {
    dir: TempDir,
    bare_loop: &'a Path,
    pub operations: u64,
    pub filesystem: Filesystem,
    /// Counters of the one disk below, if it is one.
    pub counters: Option<PathBuf>,
}

impl<'a> Bench<'a> {
    pub fn new(parent: &Path, bare_loop: &'a Path, operations: u64) -> Fallible<Bench<'a>> {
        let place = parent.display();
        let dir = tempfile::Builder::new()
            .prefix("landfall-bench-")
            .tempdir_in(parent)
            .map_err(|error| format!("cannot make a directory in {place}: {error}"))?;
        let filesystem = Filesystem::of(dir.path())
            .map_err(|error| format!("cannot find out what {place} stands on: {error}"))?;
        let disks: Vec<_> = filesystem
            .storage()
            .devices
            .iter()
            .flat_map(|device| device.counted_on())
            .collect();
        let counters = match disks.as_slice() {
            [disk] => Some(format!("/sys/dev/block/{}/stat", disk.number).into()),
            _ => None,
        };
        Ok(Bench {
            dir,
            bare_loop,
            operations,
            filesystem,
            counters,
        })
    }

    pub fn bare_loop(&self, clock: Clock) -> Fallible<Sample> {
        let output = self.on_file(|file| output(&mut self.bare_command(file, clock)))?;
        let value: Value = parse("the bare loop", &output)?;
        Ok(Sample {
            ops_per_second: number("the bare loop", &value, "/ops_per_second")?,
            p50_us: value["p50_us"].as_f64(),
            cpu_us: value["cpu_us"].as_f64(),
            flushes: value["flushes"].as_f64(),
        })
    }

    /// Seconds from starting the bare loop to its end.
    pub fn start_of_bare_loop(&self) -> Fallible<f64> {
        self.on_file(|file| {
            let begin = Instant::now();
            output(&mut self.bare_command(file, Clock::Untimed))?;
            Ok(begin.elapsed().as_secs_f64())
        })
    }

    fn bare_command(&self, file: &Path, clock: Clock) -> Command {
        let mut command = Command::new(self.bare_loop);
        let mode = match clock {
            Clock::Untimed => "untimed",
            Clock::Timed => "timed",
        };
        command.arg(file).arg(self.operations.to_string()).arg(mode);
        command.args(&self.counters);
        command
    }

    /// The figures, and the seconds from starting the program to its end.
    pub fn landfall(&self) -> Fallible<(Sample, f64)> {
        self.settle()?;
        let mut command = Command::new(LANDFALL);
        command
            .args(["lab", "sync"])
            .arg(self.dir.path())
            .args("--allocation overwrite --sync fdatasync --size 8K --threads 1".split(' '))
            .args(["--ops", &self.operations.to_string(), "--rounds", "1"])
            .args("--json - --no-report --quiet".split(' '));
        let begin = Instant::now();
        let output = output(&mut command)?;
        let wall = begin.elapsed().as_secs_f64();
        let results =
            Results::from_json(&output).map_err(|error| format!("what landfall wrote {error}"))?;
        let trial = results
            .first::<landfall_lab::sync::SyncResults>()
            .and_then(|sync| sync.series.first()?.trials.first())
            .ok_or("landfall measured nothing")?;
        let sample = Sample {
            ops_per_second: trial
                .get(Metric::OpsPerSecond)
                .ok_or("landfall timed nothing")?,
            p50_us: trial.get(Metric::P50Us),
            cpu_us: trial.get(Metric::CpuUs),
            flushes: trial
                .get(Metric::Flushes)
                .filter(|_| self.counters.is_some()),
        };
        Ok((sample, wall))
    }

    /// The figures of fio, and the seconds from starting it to its end.
    pub fn fio(&self, program: &Path) -> Fallible<(Sample, f64)> {
        self.on_file(|file| {
            let mut command = Command::new(program);
            command
                // Where it looks for helper files, should it ever.
                .current_dir(self.dir.path())
                .args("--name=harness --rw=write --bs=8k --fdatasync=1 --ioengine=psync".split(' '))
                .args("--thread --fallocate=none --overwrite=0 --invalidate=0".split(' '))
                .arg(format!("--size={}", self.operations * BLOCK))
                .arg(format!("--filename={}", file.display()))
                .arg("--output-format=json");
            let begin = Instant::now();
            let text = output(&mut command)?;
            let wall = begin.elapsed().as_secs_f64();
            // Warnings may come before the document.
            let document = &text[text.find('{').unwrap_or(0)..];
            let value: Value = parse("fio", document)?;
            let figure = |name: &str| number("fio", &value["jobs"][0], name);
            let milliseconds = figure("/job_runtime")?;
            let busy = (figure("/usr_cpu")? + figure("/sys_cpu")?) / 100.0;
            let sample = Sample {
                ops_per_second: figure("/write/iops")?,
                // Latencies of write and sync are apart.
                p50_us: None,
                // fio tells time in whole milliseconds: too coarse for a run of a few.
                cpu_us: (milliseconds >= 20.0)
                    .then(|| busy * milliseconds * 1e3 / self.operations as f64),
                flushes: None,
            };
            Ok((sample, wall))
        })
    }

    /// The rate that `pg_test_fsync` finds for one 8 KiB write with fdatasync. It does as many as it
    /// can in a second, all on one block.
    pub fn pg_test_fsync(&self, program: &Path) -> Fallible<Sample> {
        self.settle()?;
        let file = self.dir.path().join("pg_test_fsync");
        let failed = |error: io::Error| format!("cannot run {}: {error}", program.display());
        let mut child = Command::new(program)
            .args(["-s", "1", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let rate = child.stdout.take().and_then(|stdout| {
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .find_map(|line| rate_of_fdatasync(&line))
        });
        // It has many more tests, which take a second each; and may have ended by itself.
        let _ = child.kill();
        child.wait().map_err(failed)?;
        let _ = std::fs::remove_file(&file);
        Ok(Sample {
            ops_per_second: rate
                .ok_or_else(|| format!("{} printed no rate of fdatasync", program.display()))?,
            ..Sample::default()
        })
    }

    /// Calls `run` with a file of written blocks, made as landfall makes its own, and removes it.
    fn on_file<T>(&self, run: impl FnOnce(&Path) -> Fallible<T>) -> Fallible<T> {
        let path = self.dir.path().join("written");
        self.write(&path)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        self.settle()?;
        let result = run(&path);
        std::fs::remove_file(&path)
            .map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
        result
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let len = self.operations * BLOCK;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        let mut payload = Payload::new(CHUNK as usize, 1);
        for offset in (0..len).step_by(CHUNK as usize) {
            let chunk = (len - offset).min(CHUNK) as usize;
            file.write_all_at(&payload.stamped(offset)[..chunk], offset)?;
        }
        file.sync_all()?;
        evict(&file)?;
        load(&file, len)
    }

    /// Nothing that an earlier program left is still to be written.
    fn settle(&self) -> Fallible<()> {
        let sync = || rustix::fs::syncfs(File::open(self.dir.path())?).map_err(io::Error::from);
        sync().map_err(|error| format!("cannot sync {}: {error}", self.dir.path().display()))
    }
}

/// Compiles the bare loop into `dir`.
pub fn compile(dir: &Path) -> Fallible<PathBuf> {
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let program = dir.join("bare_loop");
    let status = Command::new(&compiler)
        .args(["-O2", "-o"])
        .arg(&program)
        .arg(SOURCE)
        .status()
        .map_err(|error| {
            format!(
                "cannot start the C compiler '{}' ({error}): install one, or name it in the \
                 environment variable CC",
                compiler.display()
            )
        })?;
    if !status.success() {
        return Err(format!("the C compiler could not compile {SOURCE}"));
    }
    Ok(program)
}

/// An installed program, in PATH or one of `more` directories.
pub fn find(name: &str, more: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(more.iter().cloned())
        .map(|dir| dir.join(name))
        .find(|program| program.is_file())
}

/// Where Debian keeps those programs of PostgreSQL that users rarely start.
pub fn postgres_directories() -> Vec<PathBuf> {
    std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect()
}

/// `        fdatasync          9392.652 ops/sec     106 usecs/op`
fn rate_of_fdatasync(line: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    (words.next()? == "fdatasync").then_some(())?;
    words.next()?.parse().ok()
}

fn output(command: &mut Command) -> Fallible<String> {
    let name = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot start {name}: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "{name} failed, {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse(name: &str, text: &str) -> Fallible<Value> {
    serde_json::from_str(text).map_err(|error| format!("{name} did not write JSON: {error}"))
}

fn number(name: &str, value: &Value, pointer: &str) -> Fallible<f64> {
    value
        .pointer(pointer)
        .and_then(Value::as_f64)
        .ok_or_else(|| format!("{name} did not tell {pointer}"))
}
