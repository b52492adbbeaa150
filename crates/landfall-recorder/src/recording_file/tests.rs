//! What is refused, and what comes back.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use std::fs;

use super::*;
use crate::crash::{Model, Survey};
use crate::fixtures::RecordingBuilder;

fn small() -> Recording {
    RecordingBuilder::new(16 << 10)
        .base(4096, [5; 512])
        .sectors(3, &[1, 2])
        .mark(b"one")
        .flush()
        .lying_flush()
        .refused()
        .sector(3, 1)
        .build()
}

/// Saves a recording; the directory goes with what is returned.
fn saved(recording: &Recording) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording");
    recording.save(&path).unwrap();
    (directory, path)
}

fn load(path: &Path) -> io::Result<Recording> {
    Recording::load(path, &std::env::temp_dir())
}

fn base(recording: &Recording) -> Vec<u8> {
    let mut bytes = vec![0; recording.size() as usize];
    recording.base().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn assert_equal(one: &Recording, other: &Recording) {
    assert_eq!(one.size(), other.size());
    assert_eq!(one.events(), other.events());
    assert!(base(one) == base(other));
    let spill = |recording: &Recording| {
        let mut bytes = vec![0; recording.spill().len() as usize];
        recording.spill().read(0, &mut bytes).unwrap();
        bytes
    };
    assert!(spill(one) == spill(other));
}

/// Why a file is refused.
fn refusal(path: &Path) -> String {
    let error = load(path).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    let text = error.to_string();
    assert!(text.starts_with(path.to_str().unwrap()), "{text}");
    text
}

#[test]
fn what_is_saved_is_loaded() {
    let recording = small();
    let (directory, path) = saved(&recording);
    let loaded = load(&path).unwrap();
    assert_equal(&recording, &loaded);
    let survey = |recording| Survey::of(recording, Model::Subset, 7, 1000).unwrap();
    assert_eq!(survey(&recording), survey(&loaded));
    // Over one that is there already, and with nothing left beside it.
    loaded.save(&path).unwrap();
    assert_equal(&recording, &load(&path).unwrap());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn only_a_recording_with_writes_in_flight_needs_version_2() {
    let version = |path: &Path| fs::read(path).unwrap()[8];
    let (_directory, path) = saved(&small());
    assert_eq!(version(&path), 1);
    let overlapping = RecordingBuilder::new(4096)
        .sector(0, 1)
        .flush_but(&[0])
        .build();
    let (_directory, path) = saved(&overlapping);
    assert_eq!(version(&path), 2);
    assert_equal(&overlapping, &load(&path).unwrap());
}

#[test]
fn a_flush_that_names_what_is_no_earlier_write_is_refused() {
    for in_flight in [vec![1], vec![2], vec![3], vec![9], vec![0, 0]] {
        let text = std::panic::catch_unwind(|| {
            let recording = RecordingBuilder::new(4096).sector(0, 1).mark(b"m");
            recording.flush_but(&in_flight).sector(1, 1).build()
        });
        assert!(text.is_err(), "{in_flight:?}");
    }
}

#[test]
fn nothing_but_zeros_takes_no_room() {
    let size = 64 << 20;
    let contents = [vec![7; 5000], vec![0; 3 << 20], vec![9; (1 << 20) + 1]].concat();
    let recording = RecordingBuilder::new(size)
        .base(10_000, contents)
        .base(size - 512, [3; 512])
        .build();
    let (_directory, path) = saved(&recording);
    assert!(fs::metadata(&path).unwrap().len() < (1 << 20) + (64 << 10));
    let loaded = load(&path).unwrap();
    assert_equal(&recording, &loaded);
    assert!(loaded.base().metadata().unwrap().blocks() < 4096);
}

#[test]
fn a_recording_of_nothing_is_saved() {
    let recording = RecordingBuilder::new(4096).build();
    let (_directory, path) = saved(&recording);
    assert_equal(&recording, &load(&path).unwrap());
}

#[test]
fn a_file_that_was_cut_short_anywhere_is_refused() {
    let (_directory, path) = saved(&small());
    let file = File::options().write(true).open(&path).unwrap();
    for len in (0..file.metadata().unwrap().len()).rev() {
        file.set_len(len).unwrap();
        let why = refusal(&path);
        let expected = if len < 8 {
            "is no recording"
        } else {
            "cut short"
        };
        assert!(why.contains(expected), "{len}: {why}");
    }
}

#[test]
fn a_file_with_a_wrong_byte_anywhere_is_refused() {
    let (_directory, path) = saved(&small());
    let bytes = fs::read(&path).unwrap();
    // Written over in place: filesystems hurry to write files that were emptied and filled again.
    let file = File::options().write(true).open(&path).unwrap();
    for (place, byte) in (0..).zip(&bytes) {
        file.write_all_at(&[byte ^ 1 << (place % 8)], place)
            .unwrap();
        refusal(&path);
        file.write_all_at(&[*byte], place).unwrap();
    }
    assert_equal(&small(), &load(&path).unwrap());
    file.write_all_at(&[0], bytes.len() as u64).unwrap();
    refusal(&path);
}

#[test]
fn a_file_that_is_whole_and_yet_no_recording_is_refused() {
    let (directory, path) = saved(&small());
    let bytes = fs::read(path).unwrap();
    let path = directory.path().join("other");
    let refusal_of = |bytes: Vec<u8>| {
        fs::write(&path, bytes).unwrap();
        refusal(&path)
    };
    let with = |place: usize, new: &[u8]| {
        let mut bytes = bytes[..bytes.len() - SUM].to_owned();
        bytes.splice(place..place + new.len(), new.iter().copied());
        let mut writer = Summing::new(bytes);
        let bytes = writer.inner.clone();
        writer.hasher.write(&bytes);
        [bytes, writer.sum().to_vec()].concat()
    };
    fs::write(&path, with(0, &[])).unwrap();
    assert_equal(&small(), &load(&path).unwrap());
    assert!(refusal_of(with(8, &[3])).contains("several devices"));
    assert!(refusal_of(with(8, &[4])).contains("another version"));
    // The extent's place and length, the spill file's length, and the kind and length of an event.
    let spill = HEADER + 16 + 4096 + 16;
    let cases = [
        with(HEADER, &u64::MAX.to_le_bytes()),
        with(HEADER, &(16_u64 << 10).to_le_bytes()),
        with(HEADER + 8, &u64::MAX.to_le_bytes()),
        with(spill, &u64::MAX.to_le_bytes()),
        with(spill + 8, &[9]),
        with(spill + 12, &u32::MAX.to_le_bytes()),
        with(bytes.len() - SUM - 512 - 20, &513_u32.to_le_bytes()),
    ];
    for (number, bytes) in cases.into_iter().enumerate() {
        let why = refusal_of(bytes);
        assert!(why.contains("no recording"), "{number}: {why}");
    }
}

#[test]
fn a_directory_that_is_not_there_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none").join("recording");
    assert_eq!(
        small().save(&path).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    assert_eq!(load(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_note_is_read_back_and_must_be_short() {
    let recording = RecordingBuilder::new(8192).sector(1, 1).build();
    let recording = recording.with_note("files\next4");
    let (_directory, path) = saved(&recording);
    assert_eq!(load(&path).unwrap().note(), "files\next4");
    let long = recording.with_note("n".repeat(65_537));
    let directory = tempfile::tempdir().unwrap();
    assert!(long.save(&directory.path().join("long")).is_err());
}

fn site() -> SiteRecording {
    let other = RecordingBuilder::new(8 << 10).sector(1, 1).mark(b"b");
    let events = small().events().len();
    let mut order = vec![0; events];
    order.extend([1, 1]);
    order.swap(1, events);
    let site = SiteRecording::new(vec![small(), other.build()], order).unwrap();
    site.with_note("three words more")
}

#[test]
fn a_recording_of_several_devices_is_loaded_as_it_was_saved() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording");
    let site = site();
    site.save(&path).unwrap();
    let loaded = SiteRecording::load(&path, &std::env::temp_dir()).unwrap();
    assert_eq!(loaded.note(), "three words more");
    assert_eq!(loaded.order(), site.order());
    for (one, other) in site.devices().iter().zip(loaded.devices()) {
        assert_equal(one, other);
    }
    assert!(refusal(&path).contains("several devices"));
    let (_directory, alone) = saved(&small());
    let refused = SiteRecording::load(&alone, &std::env::temp_dir()).unwrap_err();
    assert!(
        refused
            .to_string()
            .ends_with("is a recording of one device")
    );
}

#[test]
fn a_recording_of_several_devices_that_was_damaged_anywhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("recording");
    site().save(&path).unwrap();
    let refused = || {
        let error = SiteRecording::load(&path, &std::env::temp_dir()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    };
    let bytes = fs::read(&path).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    for (place, byte) in (0..).zip(&bytes) {
        file.write_all_at(&[byte ^ 1 << (place % 8)], place)
            .unwrap();
        refused();
        file.write_all_at(&[*byte], place).unwrap();
    }
    for len in (0..bytes.len() as u64).rev() {
        file.set_len(len).unwrap();
        refused();
    }
    // Whole, as far as the checksum tells.
    let whole = bytes.len() - SUM;
    let note = HEADER + "three words more".len();
    for (place, new) in [
        (HEADER - 8, 1_u64),
        (HEADER - 8, 3),
        (HEADER - 8, u64::MAX),
        (note, u64::MAX),
        (note, 3),
        (note + 8, 1),
        (note + 16 + site().events(), u64::MAX),
        (note + 16 + site().events(), 7),
    ] {
        let mut other = bytes[..whole].to_owned();
        other[place..place + 8].copy_from_slice(&new.to_le_bytes());
        let mut writer = Summing::new(io::sink());
        writer.write_all(&other).unwrap();
        other.extend(writer.sum());
        fs::write(&path, other).unwrap();
        refused();
    }
}
