//! What the tests of the program share: running it, and filesystems of their own to run it on.

// Every test file is a program of its own and uses only a part of this.
#![allow(dead_code)]

pub mod campaign;
pub mod documents;
pub mod pages;
pub mod s3;
pub mod slurm;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use serde_json::Value;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use tempfile::TempDir;

/// How the program ended and what it said.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` when a signal killed it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Ended {
        Ended {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is text"),
            stderr: String::from_utf8(output.stderr).expect("standard error is text"),
        }
    }
}

impl Ended {
    /// The results document on standard output, of a run that measured.
    #[track_caller]
    pub fn document(&self) -> Value {
        self.assert_measured();
        serde_json::from_str(&self.stdout).expect("standard output is JSON and nothing else")
    }

    /// Measured; too noisy to conclude is no failure, tests run on busy machines.
    #[track_caller]
    pub fn assert_measured(&self) {
        assert!(matches!(self.code, Some(0 | 5)), "{self:#?}");
    }

    /// Refused with this code and with one short sentence, before anything was printed.
    #[track_caller]
    pub fn assert_refused(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        assert!(self.stderr.starts_with("landfall: "), "{self:#?}");
        assert_eq!(self.stderr.lines().count(), 1, "one line: {self:#?}");
        assert!(self.stderr.len() < 400, "short: {self:#?}");
    }
}

/// A signal stops what is started, from its first moment on. Where this process ignores it, as what a shell runs in the background does, so
/// would a program that has not come to its handler.
fn let_signals_stop_programs() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let always = Arc::new(AtomicBool::new(true));
        flag::register_conditional_default(SIGINT, always).expect("a signal can be handled");
    });
}

/// The program, with an environment that does not colour what it prints.
pub fn landfall() -> Command {
    let_signals_stop_programs();
    let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs the program in `cwd`.
pub fn run<S: AsRef<OsStr>>(cwd: &Path, arguments: impl IntoIterator<Item = S>) -> Ended {
    let output = landfall().args(arguments).current_dir(cwd).output();
    output.expect("the program can be run").into()
}

/// Runs `lab` in `dir` with `options` in one text, and returns the results document.
#[track_caller]
pub fn measure(dir: &Path, options: &str) -> Value {
    let mut command = landfall();
    command.args(["lab", "sync", "--json", "-", "--no-report", "--quiet"]);
    command.args(options.split_whitespace()).arg(dir);
    let ended: Ended = command.output().expect("the program can be run").into();
    ended.document()
}

/// The series of this key in a results document.
#[track_caller]
pub fn strategy<'a>(document: &'a Value, key: &str) -> &'a Value {
    document["experiments"][0]["series"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["key"] == key))
        .unwrap_or_else(|| panic!("{key} was not measured: {document:#}"))
}

/// The weight of the notice with this code, if there is one.
pub fn notice<'a>(document: &'a Value, code: &str) -> Option<&'a str> {
    let notices = document["notices"].as_array()?;
    notices.iter().find(|one| one["code"] == code)?["weight"].as_str()
}

/// A temporary directory on the disk that the program was built on: elsewhere may be memory.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory can be made")
}

/// Names of everything in `dir`, hidden or not.
pub fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .expect("the directory can be read")
        .map(|entry| {
            let entry = entry.expect("an entry can be read");
            entry.file_name().to_string_lossy().into_owned()
        })
        .collect();
    names.sort();
    names
}

/// What takes so long hangs, on however busy a machine: no test says more of time.
const HANG: Duration = Duration::from_secs(600);

/// Whether `done` comes true in the end.
pub fn comes_true(mut done: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < HANG {
        if done() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    done()
}

/// Whether a run under way in `dir` has made files in its private directory.
pub fn has_begun(dir: &Path) -> bool {
    names(dir)
        .iter()
        .filter(|name| name.starts_with(".landfall-"))
        .any(|name| fs::read_dir(dir.join(name)).is_ok_and(|mut files| files.next().is_some()))
}

/// Writes into a new file `name` until `bytes` are written or the filesystem is full.
pub fn fill(dir: &Path, name: &str, bytes: u64) -> u64 {
    let mut file = fs::File::create(dir.join(name)).expect("a file can be made");
    let mut written = 0;
    // Smaller and smaller pieces, so that the last block is found too.
    let mut piece = 1 << 20;
    while written < bytes && piece >= 1024 {
        let len = (bytes - written).min(piece) as usize;
        match file.write_all(&vec![0xA5; len]) {
            Ok(()) => written += len as u64,
            Err(_) => piece /= 4,
        }
    }
    let _ = file.sync_all();
    written
}

/// Says why a test does not run. Where everything that tests need was installed, which is what
/// LANDFALL_NO_SKIP says, that is a failure.
pub fn skip(why: &str) {
    let nothing_is_missing = std::env::var_os("LANDFALL_NO_SKIP").is_some();
    assert!(!nothing_is_missing, "skipped all the same: {why}");
    println!("skipped: {why}");
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A filesystem in an image file, on a loop device, mounted; gone when dropped.
///
/// The device is detached as soon as it is mounted, which the kernel does when the filesystem is
/// unmounted: so nothing but a mount can be left behind, and that only by SIGKILL.
pub struct LoopFilesystem {
    mount_point: PathBuf,
    device: String,
    // Dropped last, when nothing is mounted in it any more.
    dir: TempDir,
}

/// What to make and how to mount it.
#[derive(Clone, Copy)]
pub struct FilesystemSpec {
    /// As `mkfs` and `mount` call it.
    pub kind: &'static str,
    pub mib: u64,
    pub mkfs: &'static str,
    pub options: &'static str,
}

/// A small ext4 with what larger ones have: blocks of 4 KiB, and a journal that 400 commits do not
/// fill, so that moving its tail is not among what is counted.
pub const EXT4: FilesystemSpec = FilesystemSpec {
    kind: "ext4",
    mib: 128,
    mkfs: "-q -b 4096 -m 0 -J size=32 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    options: "noatime",
};

/// An ext4 that is quickly full.
pub const SMALL_EXT4: FilesystemSpec = FilesystemSpec {
    mib: 64,
    mkfs: "-q -b 4096 -m 0 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0",
    ..EXT4
};

impl LoopFilesystem {
    /// Makes and mounts it; says why and returns nothing where that cannot be done.
    pub fn new(filesystem_spec: FilesystemSpec) -> Option<LoopFilesystem> {
        if !is_root() {
            skip("mounting a filesystem needs root");
            return None;
        }
        match Self::try_new(filesystem_spec) {
            Ok(made) => Some(made),
            Err(reason) => {
                skip(&format!(
                    "no {} on a loop device: {reason}",
                    filesystem_spec.kind
                ));
                None
            }
        }
    }

    fn try_new(filesystem_spec: FilesystemSpec) -> Result<LoopFilesystem, String> {
        let dir = scratch();
        let image = dir.path().join("image");
        // Written, not sparse: otherwise the filesystem below would allocate while we count.
        write_zeros(&image, filesystem_spec.mib).map_err(|error| format!("no image: {error}"))?;
        let device = tool(
            Command::new("losetup")
                .args(["--direct-io=on", "--find", "--show"])
                .arg(&image),
        )?;
        let mount_point = dir.path().join("mounted");
        let mounted = tool(
            Command::new(format!("mkfs.{}", filesystem_spec.kind))
                .args(filesystem_spec.mkfs.split_whitespace())
                .arg(&device),
        )
        .and_then(|_| fs::create_dir(&mount_point).map_err(|error| error.to_string()))
        .and_then(|()| {
            tool(
                Command::new("mount")
                    .args([
                        "-t",
                        filesystem_spec.kind,
                        "-o",
                        filesystem_spec.options,
                        &device,
                    ])
                    .arg(&mount_point),
            )
        });
        // In use, it stays until it is unmounted; if mounting failed it goes at once.
        let detached = tool(Command::new("losetup").args(["--detach", &device]));
        mounted?;
        let made = LoopFilesystem {
            mount_point,
            device,
            dir,
        };
        detached?;
        Ok(made)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount_point
    }

    /// A directory beside the mount point, for whatever must not be on it.
    pub fn beside(&self) -> &Path {
        self.dir.path()
    }

    /// Kernel name of its device: `loop3`.
    pub fn device(&self) -> &str {
        self.device.trim_start_matches("/dev/")
    }

    /// Mounts it anew with other options added.
    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        tool(
            Command::new("mount")
                .args(["-o", &options])
                .arg(&self.mount_point),
        )
        .expect("a filesystem of our own can be remounted");
    }
}

impl Drop for LoopFilesystem {
    fn drop(&mut self) {
        unmount(&self.mount_point);
    }
}

/// An overlay with its upper layer on another filesystem; gone when dropped, before that.
pub struct Overlay<'a> {
    mount_point: PathBuf,
    _upper: &'a LoopFilesystem,
}

impl Overlay<'_> {
    pub fn on(upper: &LoopFilesystem) -> Option<Overlay<'_>> {
        let mount_point = upper.beside().join("merged");
        let lower = upper.beside().join("lower");
        let (data, work) = (upper.path().join("upper"), upper.path().join("work"));
        for dir in [&mount_point, &lower, &data, &work] {
            fs::create_dir(dir).expect("a directory can be made");
        }
        let options = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            data.display(),
            work.display()
        );
        match tool(
            Command::new("mount")
                .args(["-t", "overlay", "-o", &options, "overlay"])
                .arg(&mount_point),
        ) {
            Ok(_) => Some(Overlay {
                mount_point,
                _upper: upper,
            }),
            Err(reason) => {
                skip(&format!("no overlay: {reason}"));
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.mount_point
    }
}

impl Drop for Overlay<'_> {
    fn drop(&mut self) {
        unmount(&self.mount_point);
    }
}

/// Unmounts what a test mounted; lazily if somebody (an indexer) is still looking at it.
fn unmount(mount_point: &Path) {
    for arguments in [&[][..], &[], &["--lazy"]] {
        if tool(Command::new("umount").args(arguments).arg(mount_point)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    eprintln!("{} is still mounted", mount_point.display());
}

fn write_zeros(path: &Path, mib: u64) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    let zeros = vec![0; 1 << 20];
    for _ in 0..mib {
        file.write_all(&zeros)?;
    }
    file.sync_all()
}

/// Runs a tool of the system; returns what it printed, or what it complained about.
fn tool(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("{name}: {}", complaint.trim()))
    }
}
