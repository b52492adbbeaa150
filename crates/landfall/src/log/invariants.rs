//! What must never happen, made to happen: it is refused before anything is written or acknowledged.

use std::sync::Arc;

use super::Handle;
use super::control::ControlFile;
use super::format::{CONTROL, CONTROL_NAME, Control, Frame, Geometry};
use super::group::{Group, MOST_SEGMENTS};
use super::group_writer::{GroupWriter, WriteFrom};
use super::scan::Place;
use crate::environment::{Environment, FileOf, Storage, System};
use crate::fuzzing::memory::Memory;
use crate::{Error, Options};

type World = System<Memory>;

const FRAME: Frame = Frame {
    begins_record: true,
    ends_record: true,
    begins_batch: true,
    ends_batch: true,
    length: 4,
};

const GEOMETRY: Geometry = Geometry {
    granule: 512,
    segment: 4096,
};

fn options() -> Options {
    Options::default()
        .segment_bytes(4096)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1 << 20)
}

/// A log in memory that was opened once.
fn world() -> World {
    let world = System::new(Memory::default());
    Handle::open(&world, options()).unwrap().close().unwrap();
    world
}

fn file(world: &World) -> Arc<FileOf<World>> {
    Arc::new(world.storage().open("segment-000001").unwrap())
}

fn is_broken<T>(result: Result<T, Error>) -> bool {
    result.is_err_and(|error| error.to_string().contains("a mistake in the engine"))
}

#[test]
fn a_control_record_never_goes_back() {
    let world = world();
    let mut control = ControlFile::open(&world).unwrap();
    let record = control.record;
    control
        .write(Control {
            epoch: record.epoch + 1,
            first_segment: 2,
            first_lsn: 5,
            end: GEOMETRY.first_block(2),
            end_lsn: 5,
            ..record
        })
        .unwrap();
    assert_eq!(control.record.generation, record.generation + 1);
    let (before, record) = (world.storage().files(), control.record);
    for older in [
        Control {
            epoch: record.epoch - 1,
            ..record
        },
        Control {
            first_segment: record.first_segment - 1,
            ..record
        },
        Control {
            first_lsn: record.first_lsn - 1,
            ..record
        },
        Control {
            end: record.end - 512,
            ..record
        },
        Control {
            log: record.log + 1,
            ..record
        },
        Control {
            granule: 100,
            ..record
        },
    ] {
        assert!(is_broken(control.write(older)), "{older:?}");
    }
    assert_eq!(world.storage().files(), before);
}

#[test]
fn a_control_file_is_whole() {
    let world = world();
    let files = world.storage().files();
    let whole = files[CONTROL_NAME].clone();
    for len in [0, CONTROL, 2 * CONTROL - 1, 2 * CONTROL, whole.len() - 1] {
        let mut cut = files.clone();
        cut.insert(CONTROL_NAME.to_owned(), whole[..len].to_vec());
        let opened = Handle::open(&System::new(Memory::new(cut)), options());
        assert!(
            matches!(opened, Err(Error::Corrupt { offset, .. }) if offset == len as u64),
            "{len}"
        );
    }
}

#[test]
fn a_control_file_that_is_opened_anew_is_the_one_that_is_there() {
    let world = world();
    let mut control = ControlFile::open(&world).unwrap();
    let (record, before) = (control.record, world.storage().files());
    // The same bytes, in other files.
    world.storage().replace(before.clone());
    control.write(record).unwrap();
    assert!(world.storage().files() == before);
    control.reopen().unwrap();
    control.write(record).unwrap();
    let found = ControlFile::open(&world).unwrap().record;
    assert_eq!(found.generation, record.generation + 2);
}

#[test]
fn methods_of_writing_are_tried_where_nothing_is() {
    let world = world();
    let control = ControlFile::open(&world).unwrap();
    let page = control.scratch().1 as usize;
    let file = &world.storage().files()[CONTROL_NAME];
    assert_eq!((page % CONTROL, file.len()), (0, page + CONTROL));
    assert!(file[page..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_group_takes_records_only_where_they_belong() {
    let world = world();
    let mut group = Group::<World>::new(4096, 0);
    assert!(is_broken(group.push(FRAME, b"none")), "no block is open");
    let first = GEOMETRY.first_block(1);
    assert!(is_broken(group.begin(
        GEOMETRY,
        first + 1,
        1,
        0,
        file(&world)
    )));
    assert!(
        is_broken(group.begin(GEOMETRY, 4096, 1, 0, file(&world))),
        "a header is there"
    );
    group.begin(GEOMETRY, first, 1, 0, file(&world)).unwrap();
    assert!(
        is_broken(group.begin(GEOMETRY, first + 512, 2, 0, file(&world))),
        "one is open"
    );
    group.push(FRAME, b"this").unwrap();
    assert!(is_broken(group.push(FRAME, &[0; 4096])), "there is no room");
    assert_eq!(group.close(512), Some(first + 512));
    assert_eq!(group.close(512), None);
    assert!(
        is_broken(group.begin(GEOMETRY, first, 2, 0, file(&world))),
        "one is there"
    );
    group
        .begin(GEOMETRY, first + 512, 2, 0, file(&world))
        .unwrap();
}

#[test]
fn a_group_is_spread_over_few_segments_and_bytes() {
    let world = world();
    let mut group = Group::<World>::new(1 << 20, 0);
    for sequence in 1..=u64::from(MOST_SEGMENTS) {
        let position = GEOMETRY.first_block(sequence);
        assert!(group.takes(600, position, GEOMETRY, 1 << 20), "{sequence}");
        group
            .begin(GEOMETRY, position, sequence, 0, file(&world))
            .unwrap();
        group.close(512);
    }
    let last = GEOMETRY.first_block(MOST_SEGMENTS.into());
    assert!(group.takes(600, last + 512, GEOMETRY, 1 << 20));
    assert!(!group.takes(
        600,
        GEOMETRY.first_block(u64::from(MOST_SEGMENTS) + 1),
        GEOMETRY,
        1 << 20
    ));
    let extent = last + 512 + 1024 - GEOMETRY.first_block(1);
    assert!(group.takes(600, last + 512, GEOMETRY, extent));
    assert!(!group.takes(600, last + 512, GEOMETRY, extent - 1));
    assert!(
        !group.takes(1 << 20, last + 512, GEOMETRY, 1 << 30),
        "the buffer is smaller"
    );
    group.clear();
    assert!(group.takes(600, GEOMETRY.first_block(99), GEOMETRY, 1 << 20));
}

fn writer(world: &World, window: u64) -> GroupWriter<World> {
    let from = WriteFrom {
        geometry: GEOMETRY,
        log: 7,
        epoch: 2,
        window,
        tail: Place::at(GEOMETRY.first_block(1)),
    };
    GroupWriter::new(world, from, Group::new(4096, 1))
}

#[test]
fn what_recovery_would_not_find_is_not_written() {
    let world = world();
    let before = world.storage().files();
    let first = GEOMETRY.first_block(1);
    // A hole; the second segment from its beginning is where a block goes that does not fit.
    for (position, window, is_right) in [
        (first, 512, true),
        (first, 511, false),
        (first + 512, 4096, false),
        (GEOMETRY.first_block(2), 4608, true),
        (GEOMETRY.first_block(2), 4607, false),
        (GEOMETRY.first_block(2) + 512, 8192, false),
        (GEOMETRY.first_block(3), 16384, false),
    ] {
        let mut group = Group::<World>::new(4096, 0);
        group.begin(GEOMETRY, position, 1, 0, file(&world)).unwrap();
        group.push(FRAME, b"this").unwrap();
        group.close(512);
        let written = writer(&world, window).write(&mut group, true);
        assert_eq!(written.is_ok(), is_right, "{position}, {window}");
        assert_eq!(world.storage().files() == before, !is_right);
        restore(&world, &before);
    }
}

fn restore(world: &World, files: &std::collections::BTreeMap<String, Vec<u8>>) {
    use crate::environment::{Durability, File};
    let file = file(world);
    file.write(&files["segment-000001"], 0, Durability::Later)
        .unwrap();
}

#[test]
fn what_is_durable_never_goes_back_or_ahead() {
    let world = System::new(Memory::default());
    let log = Handle::open(&world, options()).unwrap();
    log.append_durable(b"one").unwrap();
    log.append(b"two").unwrap();
    let mut state = World::lock(&log.shared.state);
    let now = state.durable;
    let mut set = |durable| log.shared.set_durable(&mut state, durable).is_ok();
    let (back, ahead) = (now.lsn - 1, now.lsn + 2);
    assert!(!set(super::shared::Durable { lsn: back, ..now }));
    assert!(!set(super::shared::Durable { lsn: ahead, ..now }));
    assert!(!set(super::shared::Durable {
        position: now.position - 1,
        ..now
    }));
    assert!(set(super::shared::Durable {
        lsn: now.lsn + 1,
        ..now
    }));
    assert!(set(super::shared::Durable {
        lsn: now.lsn + 1,
        position: now.position + 512,
        ..now
    }));
}

#[test]
fn segments_follow_each_other() {
    let world = System::new(Memory::default());
    let log = Handle::open(&world, options()).unwrap();
    let mut state = World::lock(&log.shared.state);
    for sequence in [1, 99] {
        let added = state.segments.add(sequence, 50, file(&world), true);
        assert!(added.is_err(), "{sequence}");
    }
}
