//! What a machine lacks when no filesystem can be made on it, and how to get it.

use std::io;
use std::path::Path;

use super::FilesystemSpec;
use crate::Error;

/// `EPERM`: something that root may, and root in a container may not.
const NOT_PERMITTED: i32 = 1;
/// `ENODEV`, of mount(2): the kernel does not have the filesystem.
const NO_DEVICE: i32 = 19;
/// `EINVAL`.
const INVALID: i32 = 22;

/// Refuses where a device file is missing that `module` brings.
pub(super) fn require_device(path: &str, module: &str) -> Result<(), Error> {
    if Path::new(path).exists() {
        Ok(())
    } else {
        Err(Error::Refused(format!(
            "there is no {path}: load the kernel module with 'modprobe {module}'; in a container, give it the host's devices (--privileged)"
        )))
    }
}

/// The mounts could not be made private.
pub(super) fn isolating(error: io::Error) -> Error {
    match error.raw_os_error() {
        Some(NOT_PERMITTED) => Error::Refused(
            "making a filesystem needs root: use sudo, or a container that is --privileged".into(),
        ),
        _ => Error::io("cannot have mounts of our own")(error),
    }
}

/// An image in `directory` could not become a loop device.
pub(super) fn attaching(directory: &Path, error: io::Error) -> Error {
    let place = directory.display();
    match error.kind() {
        io::ErrorKind::NotFound => Error::Refused(
            "the kernel has a free loop device and there is no file in /dev for it: in a container, give it the host's devices (-v /dev:/dev)"
                .into(),
        ),
        io::ErrorKind::PermissionDenied => Error::Refused(
            "loop devices may not be used here: run as root, and in a container that is --privileged"
                .into(),
        ),
        io::ErrorKind::InvalidInput => Error::Refused(format!(
            "the filesystem of {place} cannot do direct I/O, which an image needs: name another directory"
        )),
        _ => Error::io(format!("cannot make a loop device of an image in {place}"))(error),
    }
}

/// A recorder could not be started.
pub(super) fn starting(directory: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::Refused(
            "/dev/fuse and loop devices may not be used here: run as root, and in a container that is --privileged"
                .into(),
        ),
        io::ErrorKind::ResourceBusy => Error::Refused(
            "all devices of the kind that the recording needs are in use: wait, or detach some of them (landfall clean)".into(),
        ),
        _ => Error::io(format!("cannot start a recorder in {}", directory.display()))(error),
    }
}

/// The new filesystem could not be mounted.
pub(super) fn mounting(spec: &FilesystemSpec, error: io::Error) -> Error {
    let kind = spec.kind;
    match error.raw_os_error() {
        Some(NO_DEVICE) => Error::Refused(format!(
            "this kernel has no {kind}: load it with 'modprobe {kind}', or name another filesystem"
        )),
        Some(NOT_PERMITTED) => Error::Refused(
            "mounting needs root: use sudo, or a container that is --privileged".into(),
        ),
        Some(INVALID) => Error::Refused(format!(
            "the kernel does not mount '{spec}': an option is unknown or contradicts another, dmesg says which"
        )),
        _ => Error::io(format!("cannot mount '{spec}'"))(error),
    }
}
