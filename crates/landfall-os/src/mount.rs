//! Mounting a filesystem where nobody else sees it.

use std::cell::Cell;
use std::ffi::{CString, OsStr};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use procfs::FromRead as _;
use procfs::process::MountInfos;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change};
use rustix::thread::UnshareFlags;

/// How long something may still hold a filesystem that is to be unmounted: its own kernel threads, or
/// a probe of the system's that looks at every new device.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Names the mounts that a program shares with the one that started it.
const SHARED: &str = "LANDFALL_SHARED_MOUNTS";
/// Links to a name of the calling thread's mounts, which no others have.
const NAMESPACE: &str = "/proc/thread-self/ns/mnt";

thread_local! {
    static ISOLATED: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling thread, and those that it starts from now on, mounts of their own: what they mount
/// is seen by them and their children only, and is gone with the last of them, however they end. Needs
/// root. The second call does nothing.
pub fn isolate_mounts() -> io::Result<()> {
    if ISOLATED.get() || std::env::var_os(SHARED).is_some_and(|shared| is_here(&shared)) {
        return Ok(());
    }
    // SAFETY: of what `unshare` can take away from other threads only the current directory and the
    // mounts go separate ways; no descriptor is affected.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    // Else mounts below a shared one would still be copied to the outside.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    ISOLATED.set(true);
    Ok(())
}

/// Has the program that `command` starts keep the calling thread's mounts: [`isolate_mounts`] does nothing there, while a
/// copy would hold on to what this thread unmounts.
pub fn share_mounts(command: &mut Command) -> io::Result<()> {
    command.env(SHARED, std::fs::read_link(NAMESPACE)?);
    Ok(())
}

/// Whether the calling thread has the mounts of this name.
fn is_here(name: &OsStr) -> bool {
    std::fs::read_link(NAMESPACE).is_ok_and(|here| here == name)
}

/// Takes all mounts away from the calling thread, and from those that it starts from now on; paths mean
/// nothing to it any more. Other threads keep theirs. Needs root.
///
/// For a thread that serves a device: mounts go with the last thread that has them, and that thread waits
/// until what is on them has been written. If it is the one that serves the device below, it waits for
/// itself, for ever, and cannot be killed.
pub fn leave_mounts() -> io::Result<()> {
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    Ok(rustix::mount::unmount("/", UnmountFlags::DETACH)?)
}

/// A mounted filesystem; unmounted when dropped.
#[derive(Debug)]
pub struct Mount {
    target: PathBuf,
    mounted: bool,
}

impl Mount {
    /// Mounts `device` with filesystem `kind` at the directory `target`. `options` are those of
    /// mount(8), comma-separated: general ones (`ro`, `noatime`, `sync`, …) and the filesystem's own.
    pub fn new(device: &Path, target: &Path, kind: &str, options: &str) -> io::Result<Mount> {
        let mut flags = MountFlags::empty();
        let mut own = Vec::new();
        for option in options.split(',').filter(|option| !option.is_empty()) {
            match general(option) {
                Some(flag) => flags |= flag,
                None => own.push(option),
            }
        }
        let own = CString::new(own.join(","))?;
        mount(device, target, kind, flags, own.as_c_str())?;
        Ok(Mount {
            target: target.to_owned(),
            mounted: true,
        })
    }

    /// Where it is mounted.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Unmounts it; waits a little where something still uses it. If that fails nobody can enter it any
    /// more, and it goes with its last user.
    pub fn unmount(mut self) -> io::Result<()> {
        self.mounted = false;
        self.leave()
    }

    fn leave(&self) -> io::Result<()> {
        unmount(&self.target).inspect_err(|_| {
            let _ = rustix::mount::unmount(&self.target, UnmountFlags::DETACH);
        })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            let _ = self.leave();
        }
    }
}

/// What is mounted at or below `directory` as the calling thread sees it, the innermost first.
pub fn mounts_under(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mounts = MountInfos::from_file("/proc/thread-self/mountinfo").map_err(io::Error::other)?;
    let points = mounts.0.into_iter().map(|mount| mount.mount_point);
    let mut points: Vec<PathBuf> = points
        .filter(|point| point.starts_with(directory))
        .collect();
    // What was mounted last is on top.
    points.reverse();
    Ok(points)
}

/// Unmounts what is mounted at `target`; waits a little where something still uses it.
pub fn unmount(target: &Path) -> io::Result<()> {
    let begin = Instant::now();
    loop {
        match rustix::mount::unmount(target, UnmountFlags::empty()) {
            Err(Errno::BUSY) if begin.elapsed() < BUSY_WAIT => {
                std::thread::sleep(Duration::from_millis(2));
            }
            result => return Ok(result?),
        }
    }
}

/// The flag of an option that is every filesystem's.
fn general(option: &str) -> Option<MountFlags> {
    Some(match option {
        "defaults" | "rw" | "async" | "suid" | "dev" | "exec" | "atime" | "diratime" => {
            MountFlags::empty()
        }
        "ro" => MountFlags::RDONLY,
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "sync" => MountFlags::SYNCHRONOUS,
        "dirsync" => MountFlags::DIRSYNC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        "strictatime" => MountFlags::STRICTATIME,
        "lazytime" => MountFlags::LAZYTIME,
        _ => return None,
    })
}
