//! The inner half: process 1 of the machine.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal};
use rustix::system::RebootCommand;
use rustix::termios::{OptionalActions, Winsize};

use super::{POLL, STOP};

/// How long the outer half may be silent in the beginning.
const FIRST_WORD_WAIT: Duration = Duration::from_secs(10);
const POWER_OFF_WAIT: Duration = Duration::from_secs(1);

/// Inside, as process 1: runs the program and switches off. Returns at once anywhere else.
pub fn init() {
    let own_path = std::env::args_os().next().map(PathBuf::from);
    let Some(shared) = own_path
        .filter(|path| std::process::id() == 1 && path.is_absolute() && path.ends_with("init"))
        .and_then(|path| path.parent().map(Path::to_owned))
        .filter(|shared| shared.join("arguments").exists())
    else {
        return;
    };
    let written = match serve(&shared) {
        Ok(status) => fs::write(shared.join("status"), status.to_string()),
        Err(error) => fs::write(shared.join("failure"), error.to_string()),
    };
    // Nobody is left to be told; without a status the outer half says so.
    drop(written);
    // Files outside are written back like those of a disk.
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    std::thread::sleep(POWER_OFF_WAIT);
}

fn serve(shared: &Path) -> io::Result<i32> {
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        match mount(kind, target, kind, MountFlags::empty(), None) {
            // The kernel does that by itself if it is made so.
            Ok(()) | Err(Errno::BUSY) => {}
            Err(error) => return Err(error.into()),
        }
    }
    fs::create_dir_all("/dev/shm")?;
    mount("tmpfs", "/dev/shm", "tmpfs", MountFlags::empty(), None)?;
    load("/dev/loop-control", "drivers/block/loop.ko")?;
    load("/dev/fuse", "fs/fuse/fuse.ko")?;
    // Few proofs need it; without it they say so.
    let _ = load("/dev/nbd0", "drivers/block/nbd.ko");

    let environment = read_list(&shared.join("environment"))?;
    let number = |name: &str| {
        let value = environment.iter().find_map(|word| {
            let (key, value) = word.to_str()?.split_once('=')?;
            (key == name).then_some(value)
        });
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let (columns, lines) = (number("COLUMNS"), number("LINES"));
    let terminal = terminal(columns, lines)?;
    let heard = listen(terminal.try_clone()?);
    let gone = || {
        fs::remove_dir_all(shared)?;
        Err(io::ErrorKind::BrokenPipe.into())
    };
    if heard.recv_timeout(FIRST_WORD_WAIT).is_err() {
        return gone();
    }
    let mut child = Command::new(shared.join("init"))
        .arg0("landfall")
        .args(read_list(&shared.join("arguments"))?)
        .env_clear()
        .envs(environment.iter().filter_map(split))
        .current_dir(OsString::from_vec(fs::read(shared.join("cwd"))?))
        .stdin(Stdio::null())
        .stdout(File::create(shared.join("stdout"))?)
        .stderr(
            match File::options().append(true).open(shared.join("stderr")) {
                Ok(file) => file,
                Err(_) => terminal.try_clone()?,
            },
        )
        .spawn()?;
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        match heard.recv_timeout(POLL) {
            // A second one would end the command at once.
            Ok(STOP) if !asked => {
                asked = true;
                rustix::process::kill_process(Pid::from_child(&child), Signal::INT)?;
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return gone(),
        }
    };
    // Else what was said last is lost with the machine.
    rustix::termios::tcdrain(&terminal)?;
    // Without a code it was killed: by Ctrl-C before it was ready for it, or for want of memory.
    status
        .code()
        .ok_or_else(|| io::Error::other(format!("inside, landfall got {status}")))
}

/// Loads a kernel module unless the device that it brings is there.
fn load(device: &str, module: &str) -> io::Result<()> {
    if Path::new(device).exists() {
        return Ok(());
    }
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let path = format!("/usr/lib/uml/modules/{release}/kernel/{module}");
    File::open(&path)
        .and_then(|file| Ok(rustix::system::finit_module(file, c"", 0)?))
        .map_err(|error| io::Error::other(format!("cannot load {path}: {error}")))
}

/// Each byte that the outer half sends; disconnected when it is gone.
fn listen(mut line: File) -> Receiver<u8> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut byte = [0];
        while line.read(&mut byte).is_ok_and(|bytes| bytes == 1) && sender.send(byte[0]).is_ok() {}
    });
    receiver
}

/// The line to the outer half: bytes go through as they are.
fn terminal(columns: u16, lines: u16) -> io::Result<File> {
    let terminal = rustix::fs::open("/dev/tty1", OFlags::RDWR | OFlags::NOCTTY, Mode::empty())?;
    let mut mode = rustix::termios::tcgetattr(&terminal)?;
    mode.make_raw();
    rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &mode)?;
    let size = Winsize {
        ws_col: columns,
        ws_row: lines,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    rustix::termios::tcsetwinsize(&terminal, size)?;
    Ok(terminal.into())
}

fn split(word: &OsString) -> Option<(&OsStr, &OsStr)> {
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|byte| *byte == b'=')?;
    Some((
        OsStr::from_bytes(&bytes[..at]),
        OsStr::from_bytes(&bytes[at + 1..]),
    ))
}

fn read_list(path: &Path) -> io::Result<Vec<OsString>> {
    let bytes = fs::read(path)?;
    let words = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    Ok(words
        .split(|byte| *byte == 0)
        .filter(|_| !words.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect())
}
