//! Filesystems of our own on a real kernel. Needs root; says so and passes elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use landfall_os::{AttachedLoop, abandoned_in, attached_loops};
use landfall_prove::scratch_fs::{BackingDevice, FilesystemSpec, Kind, ScratchFilesystem};
use landfall_prove::{Error, Stop};
use landfall_recorder::Options;

/// A filesystem; nothing where it cannot be made, which `LANDFALL_NO_SKIP` makes a failure.
fn made(
    filesystem_spec: &FilesystemSpec,
    backing: Result<BackingDevice, Error>,
) -> Option<ScratchFilesystem> {
    match backing
        .and_then(|backing| ScratchFilesystem::make(filesystem_spec, backing, &Stop::default()))
    {
        Ok(made) => Some(made),
        Err(error) if std::env::var_os("LANDFALL_NO_SKIP").is_none() => {
            println!("skipped: no {filesystem_spec} can be made here: {error}");
            None
        }
        Err(error) => panic!("no {filesystem_spec} can be made here: {error}"),
    }
}

fn recorder(directory: &Path, size: u64) -> Result<BackingDevice, Error> {
    let options = Options {
        directory: directory.to_owned(),
        ..Options::new(size)
    };
    BackingDevice::recorder(&options, 0)
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

/// Whether a loop device is on a file in one of these private directories; by its number alone it may be
/// somebody else's by now.
fn is_attached(directories: &[PathBuf]) -> bool {
    let attached = attached_loops().unwrap();
    let ours = |device: &AttachedLoop| directories.iter().any(|one| device.is_in(one));
    attached.iter().any(ours)
}

#[test]
fn every_kind_is_made_small_and_leaves_nothing() {
    let outside = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let filesystem_spec = FilesystemSpec::plain(kind);
        let size = filesystem_spec.small_size();
        for on_recorder in [true, false] {
            let backing = if on_recorder {
                recorder(outside.path(), size)
            } else {
                BackingDevice::image(outside.path(), size, &Stop::default())
            };
            let Some(made) = made(&filesystem_spec, backing) else {
                return;
            };
            fs::write(made.directory().join("file"), [7; 1 << 20]).unwrap();
            assert_eq!(made.recorder().is_some(), on_recorder);
            if on_recorder {
                assert!(made.recorder().unwrap().counts().flushes > 0);
            }
            assert!(abandoned_in(outside.path()).unwrap().is_empty());
            let inside: Vec<PathBuf> = fs::read_dir(outside.path())
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .collect();
            assert!(is_attached(&inside));
            if on_recorder {
                drop(made)
            } else {
                made.close().unwrap()
            }
            // Somebody may have it open for a moment, to see what it is.
            let hangs = std::time::Instant::now() + std::time::Duration::from_secs(600);
            while is_attached(&inside) {
                assert!(
                    std::time::Instant::now() < hangs,
                    "{kind} is still attached"
                );
            }
            assert!(is_empty(outside.path()), "{kind} left something");
        }
    }
}

#[test]
fn options_of_both_programs_arrive() {
    let outside = tempfile::tempdir().unwrap();
    let filesystem_spec: FilesystemSpec = "ext4,data=journal,noatime,-b 1024".parse().unwrap();
    let Some(made) = made(&filesystem_spec, recorder(outside.path(), 64 << 20)) else {
        return;
    };
    let filesystem = landfall_os::Filesystem::of(made.directory()).unwrap();
    assert_eq!(filesystem.kind, "ext4");
    assert_eq!(filesystem.option("data"), Some("journal"));
    assert!(filesystem.option("noatime").is_some());
    assert_eq!(filesystem.devices[0].name, made.device().name());
    let name = made.device().name().to_owned();
    let options = format!("/sys/fs/ext4/{name}/");
    assert!(Path::new(&options).is_dir());
    made.close().unwrap();
    assert!(is_empty(outside.path()));
}

#[test]
fn what_cannot_be_made_is_refused_in_one_sentence_and_leaves_nothing() {
    let outside = tempfile::tempdir().unwrap();
    let tried = |text: &str, size: u64| {
        let backing = recorder(outside.path(), size)?;
        ScratchFilesystem::make(&text.parse().unwrap(), backing, &Stop::default()).map(drop)
    };
    if made(
        &FilesystemSpec::plain(Kind::Ext4),
        recorder(outside.path(), 64 << 20),
    )
    .is_none()
    {
        return;
    }
    for (text, reason) in [
        ("xfs", "larger than 300MB"),
        ("ext4,-O no_such_feature", "no_such_feature"),
        ("ext4,no_such_option", "does not mount"),
    ] {
        match tried(text, 64 << 20) {
            Err(Error::Refused(sentence)) => assert!(sentence.contains(reason), "{sentence}"),
            other => panic!("{text}: {other:?}"),
        }
        assert!(is_empty(outside.path()), "{text} left something");
    }
    let full = BackingDevice::image(outside.path(), 1 << 60, &Stop::default());
    assert!(matches!(full, Err(Error::Refused(_))), "{full:?}");
    let stop = Stop::default();
    stop.flag()
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let stopped = BackingDevice::image(outside.path(), 64 << 20, &stop);
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert!(is_empty(outside.path()));
}
