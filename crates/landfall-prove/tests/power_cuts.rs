//! Power cuts as a store's own tests have them: what they say, and that nothing is left behind however they end.
//!
//! Tests start this program once more where they need a process that dies, or a user without root.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use landfall_os::{AttachedLoop, abandoned_in, attached_loops};
use landfall_prove::scratch_fs::{FilesystemSpec, Kind, require_recorder};
use landfall_prove::transactions::{pairs, record};
use landfall_prove::{
    AckSink, Offer, Plan, PowerCuts, Recovered, Silent, Stop, Subject, SubjectError, SubjectName,
    prove,
};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// What the log does, all along or after its third transaction.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    Syncs,
    ForgetsToSync,
    Panics,
    FillsTheDisk,
    Aborts,
    NeverEnds,
}

/// Records behind their lengths.
struct Log(Habit);

impl Subject for Log {
    fn name(&self) -> SubjectName {
        "a log".into()
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        File::create(directory.join("log"))?;
        Ok(())
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let mut log = File::options().append(true).open(directory.join("log"))?;
        sink.commit_each(|transaction| {
            let record = record(transaction);
            let length = (record.len() as u32).to_le_bytes();
            log.write_all(&[&length, &record[..]].concat())?;
            if self.0 != Habit::ForgetsToSync {
                log.sync_data()?;
            }
            if transaction == 3 {
                self.misbehave(directory)?;
            }
            Ok(())
        })
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        let log = fs::read(directory.join("log"))?;
        let mut records = Vec::new();
        let mut rest = &log[..];
        while let Some((length, more)) = rest.split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some((record, more)) = more.split_at_checked(length) else {
                break;
            };
            records.push(record);
            rest = more;
        }
        Ok(Recovered::from_records(records))
    }
}

impl Log {
    fn misbehave(&self, directory: &Path) -> io::Result<()> {
        match self.0 {
            Habit::Syncs | Habit::ForgetsToSync => Ok(()),
            Habit::Panics => panic!("the store is broken"),
            Habit::FillsTheDisk => {
                let mut large = File::create(directory.join("large"))?;
                loop {
                    large.write_all(&[1; 1 << 20])?;
                }
            }
            // While others wait for the device, which this process serves.
            Habit::Aborts => {
                let busy: Vec<_> = (0..4)
                    .map(|number| File::create(directory.join(number.to_string())))
                    .collect::<io::Result<_>>()?;
                for mut file in busy {
                    std::thread::spawn(move || {
                        while file
                            .write_all(&[1; 4096])
                            .and_then(|()| file.sync_all())
                            .is_ok()
                        {}
                    });
                }
                std::thread::sleep(Duration::from_millis(100));
                std::process::abort()
            }
            Habit::NeverEnds => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
        }
    }
}

/// What becomes of a log's process, or of the thread, when it finds a record without an end.
#[derive(Clone, Copy)]
enum Fate {
    /// A page of a mapped file is not there.
    BusError,
    Aborts,
    Panics,
    Exits,
}

/// A log that is not synced, and cannot bear what that leads to.
struct Delicate(Fate);

impl Subject for Delicate {
    fn name(&self) -> SubjectName {
        "a delicate log".into()
    }

    fn prepare(&self, directory: &Path, stop: &Stop) -> Result<(), SubjectError> {
        Log(Habit::ForgetsToSync).prepare(directory, stop)
    }

    fn run(
        &self,
        directory: &Path,
        sink: &mut dyn AckSink,
        stop: &Stop,
    ) -> Result<(), SubjectError> {
        Log(Habit::ForgetsToSync).run(directory, sink, stop)
    }

    fn check(&self, directory: &Path, stop: &Stop) -> Result<Recovered, SubjectError> {
        if fs::read(directory.join("log"))?.is_empty() {
            match self.0 {
                // Again: the first one only takes away the handler that Rust has for it.
                Fate::BusError => loop {
                    kill_process(rustix::process::getpid(), Signal::BUS)?;
                },
                Fate::Aborts => {
                    eprintln!("no page 7");
                    std::process::abort()
                }
                Fate::Panics => panic!("no page 8"),
                Fate::Exits => std::process::exit(9),
            }
        }
        Log(Habit::ForgetsToSync).check(directory, stop)
    }
}

/// Pairs, each in a file of its own: nothing of it is atomic.
struct Files;

impl Files {
    fn put(&self, directory: &Path, transaction: u64) -> Result<(), SubjectError> {
        for (key, value) in pairs(transaction) {
            let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            let mut file = File::create(directory.join(name))?;
            file.write_all(&value)?;
            file.sync_all()?;
        }
        Ok(File::open(directory)?.sync_all()?)
    }
}

impl Subject for Files {
    fn name(&self) -> SubjectName {
        "files".into()
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        self.put(directory, 0)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        sink.commit_each(|transaction| self.put(directory, transaction))
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        let mut all = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().into_string().unwrap_or_default();
            let bytes = (0..name.len() / 2).map(|at| u8::from_str_radix(&name[2 * at..][..2], 16));
            let key: Vec<u8> = bytes.collect::<Result<_, _>>()?;
            all.push((key, fs::read(entry.path())?));
        }
        Ok(Recovered::from_pairs(all))
    }
}

/// A page.
#[repr(align(4096))]
struct Page([u8; 4096]);

/// How long the disk holds a page of `Overlapping` back unanswered, and after which part of that the flush begins. One
/// transaction in which it arrives meanwhile is enough.
const HOLD: Duration = Duration::from_millis(20);
const BEFORE_FLUSH: Duration = Duration::from_millis(5);

/// A page for each record, written directly by one thread while another one flushes.
struct Overlapping {
    /// Whether a flush begins once the write has been answered.
    flushes_afterwards: bool,
}

impl Subject for Overlapping {
    fn name(&self) -> SubjectName {
        "overlapping pages".into()
    }

    fn prepare(&self, directory: &Path, _: &Stop) -> Result<(), SubjectError> {
        let file = File::create(directory.join("pages"))?;
        file.write_all_at(&[0; 64 * 4096], 0)?;
        file.sync_all()?;
        Ok(File::open(directory)?.sync_all()?)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let mut direct = File::options();
        let direct = direct
            .write(true)
            .custom_flags(OFlags::DIRECT.bits() as i32);
        let direct = direct.open(directory.join("pages"))?;
        let flushed = File::options().write(true).open(directory.join("pages"))?;
        sink.commit_each(|transaction| {
            let record = record(transaction);
            let mut page = Box::new(Page([0; 4096]));
            page.0[..4].copy_from_slice(&(record.len() as u32).to_le_bytes());
            page.0[4..4 + record.len()].copy_from_slice(&record);
            std::thread::scope(|scope| {
                let write = scope.spawn(|| direct.write_all_at(&page.0, transaction * 4096));
                std::thread::sleep(BEFORE_FLUSH);
                flushed.sync_data()?;
                write.join().expect("it only writes")
            })?;
            if self.flushes_afterwards {
                flushed.sync_data()?;
            }
            Ok(())
        })
    }

    fn check(&self, directory: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        let pages = fs::read(directory.join("pages"))?;
        let records = pages.chunks(4096).filter_map(|page| {
            let (length, rest) = page.split_first_chunk()?;
            let length = u32::from_le_bytes(*length) as usize;
            rest.get(..length).filter(|record| !record.is_empty())
        });
        Ok(Recovered::from_records(records))
    }
}

fn cuts(subject: impl Subject + 'static) -> PowerCuts {
    PowerCuts::on(subject).transactions(12).states(150)
}

/// Where a test that looks at what is left has its mount points; nothing, with a word, where none can be made.
fn directory() -> Option<TempDir> {
    let directory = tempfile::tempdir().unwrap();
    match require_recorder(directory.path(), Offer::Flushes) {
        Ok(()) => Some(directory),
        Err(error) => {
            skip(&error.to_string());
            None
        }
    }
}

fn skip(why: &str) {
    let may_skip = std::env::var_os("LANDFALL_NO_SKIP").is_none();
    assert!(may_skip, "skipped all the same: {why}");
    println!("skipped: {why}");
}

/// What the test says that fails.
fn complaint(test: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(test)).expect_err("it fails");
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().unwrap().to_string(),
    }
}

fn within(directory: &Path, habit: Habit) -> PowerCuts {
    let ext4 = FilesystemSpec::plain(Kind::Ext4);
    let mut plan = Plan::new(Box::new(Log(habit)), ext4);
    plan.directory = directory.to_owned();
    (plan.transactions, plan.states) = (12, 50);
    PowerCuts::from(plan)
}

/// Whether a device is on a file in one of these private directories.
fn is_attached(directories: &[PathBuf]) -> bool {
    let attached = attached_loops().unwrap();
    let ours = |device: &AttachedLoop| directories.iter().any(|one| device.is_in(one));
    attached.iter().any(ours)
}

/// The private directories that are there, by name.
fn private_directories(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort_unstable();
    paths
}

#[test]
fn a_power_cut_loses_nothing() {
    cuts(Log(Habit::Syncs)).lose_nothing();
}

#[test]
#[ignore = "fails, as it must: run by what proves inside User-mode Linux"]
fn the_second_power_cut_of_a_test_is_caught() {
    cuts(Log(Habit::Syncs)).lose_nothing();
    cuts(Log(Habit::ForgetsToSync)).lose_nothing();
}

#[test]
fn a_log_that_is_not_synced_is_caught() {
    cuts(Log(Habit::ForgetsToSync)).lose_something();
}

#[test]
fn a_write_that_is_answered_after_the_flush_began_is_caught() {
    let overlapping = |flushes_afterwards| {
        let ext4 = FilesystemSpec::plain(Kind::Ext4);
        let mut plan = Plan::new(Box::new(Overlapping { flushes_afterwards }), ext4);
        (plan.transactions, plan.states, plan.hold) = (30, 150, HOLD);
        PowerCuts::from(plan)
    };
    overlapping(false).lose_something();
    overlapping(true).lose_nothing();
}

/// A subject of which the first checks, so many, find damage.
struct Ill<S>(AtomicU64, S);

impl<S: Subject> Subject for Ill<S> {
    fn name(&self) -> SubjectName {
        "an ill subject".into()
    }

    fn prepare(&self, directory: &Path, stop: &Stop) -> Result<(), SubjectError> {
        self.1.prepare(directory, stop)
    }

    fn run(
        &self,
        directory: &Path,
        sink: &mut dyn AckSink,
        stop: &Stop,
    ) -> Result<(), SubjectError> {
        self.1.run(directory, sink, stop)
    }

    fn check(&self, directory: &Path, stop: &Stop) -> Result<Recovered, SubjectError> {
        let less = |left: u64| left.checked_sub(1);
        match self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        {
            Ok(_) => Ok(Recovered::damaged("it is ill")),
            Err(_) => self.1.check(directory, stop),
        }
    }
}

/// Writes beside its directory, so that its files are equal in all states.
struct Beside;

impl Subject for Beside {
    fn name(&self) -> SubjectName {
        "a file beside".into()
    }

    fn prepare(&self, _: &Path, _: &Stop) -> Result<(), SubjectError> {
        Ok(())
    }

    fn run(&self, directory: &Path, _: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let mut beside = File::create(directory.with_file_name("beside"))?;
        for number in 1..=12 {
            beside.write_all(&record(number))?;
            beside.sync_all()?;
        }
        Ok(())
    }

    fn check(&self, _: &Path, _: &Stop) -> Result<Recovered, SubjectError> {
        Ok(Recovered::default())
    }
}

#[test]
fn what_fails_once_is_told_of_no_other_state_with_equal_files() {
    let Some(directory) = directory() else {
        return;
    };
    let ill = Ill(AtomicU64::new(1), Beside);
    let mut plan = Plan::new(Box::new(ill), FilesystemSpec::plain(Kind::Ext4));
    plan.directory = directory.path().to_owned();
    plan.states = 20;
    let results = prove(&plan, &Stop::default(), &mut Silent).unwrap().results;
    assert!(results.coverage.equal_files > 0);
    assert!(results.coverage.checked > 1);
    let unchecked = results.unchecked.unwrap();
    assert_eq!((results.failing_states, unchecked.states), (0, 1));
}

#[test]
fn what_is_wrong_with_a_recovery_that_is_cut_off_is_said() {
    let Some(directory) = directory() else {
        return;
    };
    let found = |ill: u64| {
        let ext4 = FilesystemSpec::plain(Kind::Ext4);
        let mut plan = Plan::new(Box::new(Ill(AtomicU64::new(ill), Log(Habit::Syncs))), ext4);
        plan.directory = directory.path().to_owned();
        plan.transactions = 12;
        plan.only = Some("1:1:none/1:0:none".parse().unwrap());
        prove(&plan, &Stop::default(), &mut Silent).unwrap().results
    };
    let twice = found(2);
    assert_eq!((twice.failing_states, twice.unchecked), (1, None));
    assert_eq!(twice.violations[0].example, "1:1:none");
    assert_eq!(twice.coverage.planned, 1);
    assert_eq!(twice.shortest.unwrap().name, "1:1:none/1:0:none");
    let once = found(1);
    assert_eq!((once.failing_states, once.coverage.planned), (0, 1));
    let why = once.unchecked.unwrap().reason;
    assert!(why.starts_with("1:1:none failed once"), "{why}");
}

#[test]
fn transactions_that_are_not_atomic_are_caught() {
    cuts(Files).lose_something();
}

#[test]
fn what_was_lost_is_said_in_words() {
    if directory().is_none() {
        return;
    }
    let text = complaint(|| cuts(Log(Habit::ForgetsToSync)).lose_nothing());
    assert!(
        text.starts_with("a log on ext4 lost up to 12 acknowledged transactions, in "),
        "{text}"
    );
    for part in [
        "The failing state that lacks least is 1:",
        "acknowledged",
        "the power is cut\n",
        "LANDFALL_RECORDING=recording cargo test what_was_lost_is_said_in_words\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let syncs = || cuts(Log(Habit::Syncs)).in_this_process();
    let text = complaint(|| syncs().lose_something());
    assert!(text.starts_with("a log on ext4 lost nothing in "), "{text}");
}

#[test]
fn a_store_that_fails_fails_the_test_and_leaves_nothing() {
    let Some(directory) = directory() else {
        return;
    };
    let path = directory.path();
    for (habit, said) in [
        (Habit::Panics, "the store is broken"),
        (
            Habit::FillsTheDisk,
            "nothing could be proven: a log cannot be run: No space left",
        ),
    ] {
        let text = complaint(|| within(path, habit).lose_nothing());
        assert!(text.starts_with(said), "{text}");
        assert_eq!(private_directories(path), Vec::<PathBuf>::new());
        // As the first of this process are called.
        let process = std::process::id();
        let made = (0..8).map(|number| path.join(format!(".landfall-{process}-{number}")));
        assert!(!is_attached(&made.collect::<Vec<_>>()));
    }
}

/// One proof for each test: the second run of a test passes over those before it, and so is told of no loss.
fn is_told_of(fate: Fate, said: &str) {
    let Some(directory) = directory() else {
        return;
    };
    let mut plan = Plan::new(Box::new(Delicate(fate)), FilesystemSpec::plain(Kind::Ext4));
    plan.directory = directory.path().to_owned();
    (plan.transactions, plan.states) = (12, 50);
    let text = complaint(|| PowerCuts::from(plan).lose_nothing());
    let said = format!("the subject did not recover, as in 1:0:none: {said}.\n");
    assert!(text.contains(&said), "{said} {text}");
    assert_eq!(private_directories(directory.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_store_that_gets_a_bus_error_is_damaged() {
    let said = "it crashed with SIGBUS: it touched a mapped page that its file does not have";
    is_told_of(Fate::BusError, said);
}

#[test]
fn a_store_that_aborts_is_damaged() {
    let said = "it crashed with SIGABRT: it called abort(); its last words: no page 7";
    is_told_of(Fate::Aborts, said);
}

#[test]
fn a_store_that_panics_is_damaged() {
    is_told_of(Fate::Panics, "it panicked: no page 8");
}

#[test]
fn a_store_that_exits_is_damaged() {
    is_told_of(Fate::Exits, "it ended its process with exit status: 9");
}

#[test]
fn what_runs_in_this_process_panics_and_is_damaged_too() {
    if directory().is_some() {
        let text = complaint(|| {
            cuts(Delicate(Fate::Panics))
                .in_this_process()
                .lose_nothing()
        });
        assert!(text.contains("it panicked: no page 8.\n"), "{text}");
    }
}

/// Not a test of its own: what [`a_test_that_dies_leaves_nothing_that_the_next_does_not_remove`] starts.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os("VICTIM_DIRECTORY") else {
        return;
    };
    let habit = match std::env::var("VICTIM_HABIT").as_deref() {
        Ok("aborts") => Habit::Aborts,
        _ => Habit::NeverEnds,
    };
    within(Path::new(&directory), habit).lose_nothing();
}

fn start_victim(directory: &Path, habit: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["victim", "--exact"])
        .env("VICTIM_DIRECTORY", directory)
        .env("VICTIM_HABIT", habit)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Whether it is so in the end; what takes ten minutes hangs.
fn in_the_end(mut is_so: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(600) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn a_test_that_dies_leaves_nothing_that_the_next_does_not_remove() {
    let Some(directory) = directory() else {
        return;
    };
    let path = directory.path();
    for habit in ["aborts", "never ends"] {
        let mut victim = start_victim(path, habit);
        let is_running = || is_attached(&private_directories(path));
        if habit == "never ends" {
            assert!(in_the_end(is_running));
            // Not SIGINT, which whoever runs tests in the background may have them ignore.
            kill_process(Pid::from_child(&victim), Signal::TERM).unwrap();
        }
        let ends = in_the_end(|| victim.try_wait().unwrap().is_some());
        if !ends {
            let _ = victim.kill();
        }
        assert!(ends, "a test that {habit} hangs");
        assert!(in_the_end(|| !is_running()));
        assert!(!private_directories(path).is_empty());
        assert!(in_the_end(
            || abandoned_in(path).unwrap() == private_directories(path)
        ));
        // A second run of this test would start victims too.
        within(path, Habit::Syncs).in_this_process().lose_nothing();
        assert_eq!(private_directories(path), Vec::<PathBuf>::new());
    }
}

/// Runs the first test as a user who is nobody.
const ONE: &str = "a_power_cut_loses_nothing";

fn as_nobody(test: &str, program: &Path, search_path: &str, no_skip: bool) -> Output {
    let mut command = Command::new(program);
    command
        .args([test, "--exact", "--include-ignored"])
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .env("PATH", search_path)
        .env_remove("TMPDIR")
        .env_remove("LANDFALL_NO_SKIP");
    if no_skip {
        command.env("LANDFALL_NO_SKIP", "1");
    }
    command.output().unwrap()
}

#[test]
fn an_ordinary_user_proves_it_inside_user_mode_linux_or_is_told_why_not() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can be another user");
    }
    // Where nobody may read it.
    let place = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let program = place.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();

    let skipped = as_nobody(ONE, &program, "/nowhere", false);
    assert!(skipped.status.success());
    let text = said(&skipped);
    assert!(
        text.starts_with("skipped a_power_cut_loses_nothing: making a filesystem needs root"),
        "{text}"
    );
    assert!(
        text.trim_end()
            .ends_with("or install Debian package user-mode-linux")
    );
    assert!(!as_nobody(ONE, &program, "/nowhere", true).status.success());

    if !landfall_prove::uml::is_installed() {
        return skip("there is no User-mode Linux");
    }
    let search_path = std::env::var("PATH").unwrap();
    let proven = as_nobody(ONE, &program, &search_path, true);
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap();
    let why_not = String::from_utf8_lossy(&proven.stdout);
    if processor.contains("amx_tile") && why_not.contains("cannot run on this processor") {
        // That is no fault of who installs what tests need.
        return eprintln!("left out: {why_not}");
    }
    assert!(
        proven.status.success(),
        "{}{}",
        String::from_utf8_lossy(&proven.stdout),
        said(&proven)
    );
    let second = "the_second_power_cut_of_a_test_is_caught";
    let caught = as_nobody(second, &program, &search_path, true);
    let text = String::from_utf8_lossy(&caught.stdout).into_owned() + &said(&caught);
    assert!(!caught.status.success(), "{text}");
    assert!(
        text.contains("lost up to 12 acknowledged transactions"),
        "{text}"
    );
}
