//! What opening a log finds, how much it reads and writes for that, and where it says that damage is.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use super::Handle;
use super::directory::{self, Directory};
use super::examine::End;
use super::format::{
    BlockHeader, CONTROL, CONTROL_FILE, FRAME, Frame, Geometry, HEADER, Kind, MOST, Shutdown,
    payload_crc, segment_name,
};
use super::inspect::Inspection;
use super::scan::{Place, READ_AHEAD, Scanner};
use crate::environment::{Durability, Environment, File, Method, Storage, System};
use crate::fuzzing::memory::Memory;
use crate::{Error, Lsn, Options};

type World = System<Memory>;
type Files = BTreeMap<String, Vec<u8>>;

const GEOMETRY: Geometry = Geometry {
    granule: 512,
    segment: 4096,
};
/// Blocks of a granule that a segment has behind its header.
const BLOCKS: u64 = 7;

fn options() -> Options {
    Options::default()
        .segment_bytes(GEOMETRY.segment)
        .buffer_bytes(4096)
        .max_unwritten_bytes(1024)
        .max_unsynced_bytes(1024)
}

fn open(world: &World) -> Handle<World> {
    Handle::open(world, options()).unwrap()
}

/// Appends durable records, each of which is a block of a granule. What they have the log's thread do is done then.
fn append(log: &Handle<World>, records: u64) {
    settle(log);
    for _ in 0..records {
        log.append_durable(&[7; 512 - HEADER - FRAME]).unwrap();
        settle(log);
    }
}

/// Waits until the thread that makes segments has nothing to do.
fn settle(log: &Handle<World>) {
    while !World::lock(&log.shared.state).segments.is_settled() {
        std::thread::yield_now();
    }
}

/// A world with these files.
fn with(files: Files) -> World {
    System::new(Memory::new(files))
}

/// What is left of a log with so many blocks that was killed.
fn killed(records: u64) -> Files {
    let world = with(Files::new());
    let log = open(&world);
    append(&log, records);
    world.storage().files()
}

/// A log with so many blocks that was closed.
fn closed(records: u64) -> Files {
    let world = with(Files::new());
    let log = open(&world);
    append(&log, records);
    log.close().unwrap();
    world.storage().files()
}

/// Reads everything; the files with blocks, in their order, and the end.
fn examine(files: Files) -> Result<(Vec<String>, End), Error> {
    let directory = Directory::lock(&with(files))?;
    let mut names = Vec::new();
    let examined = directory.examine(&mut |block| {
        names.push(block.file_name());
        Ok(())
    })?;
    Ok((names, examined.end))
}

pub(super) type Change = fn(&mut BlockHeader);

/// Puts a whole block for record 99 into the second segment, with a header that was changed.
pub(super) fn crafted(files: &mut Files, offset: usize, change: Change) {
    let (template, _) = BlockHeader::decode(&files["segment-000001"][512..]).unwrap();
    let frame = Frame {
        begins_record: true,
        ends_record: true,
        begins_batch: true,
        ends_batch: true,
        length: 4,
    };
    let payload = [&frame.encode()[..], b"what"].concat();
    let mut header = BlockHeader {
        payload_crc: payload_crc(&payload),
        previous: 0,
        length: payload.len() as u32,
        position: 2 * GEOMETRY.segment + offset as u64,
        lsn: 99,
        ..template
    };
    change(&mut header);
    let block = &mut files.get_mut("segment-000002").unwrap()[offset..];
    header.encode(&mut block[..HEADER]);
    block[HEADER..HEADER + payload.len()].copy_from_slice(&payload);
}

#[test]
fn the_control_record_says_what_was_found() {
    // Of the one that was killed nothing says so yet.
    for files in [closed(9), killed(9)] {
        let world = with(files);
        let log = open(&world);
        let durable = World::lock(&log.shared.state).durable;
        let record = World::lock(&log.shared.control).record;
        assert_eq!((record.epoch, record.shutdown), (2, Shutdown::Running));
        assert_eq!((record.end, record.end_lsn), (durable.position, 10));
        assert_eq!(record.end_chain, durable.chain);
        assert_ne!(record.end_chain, 0);
        assert_eq!(record.window, options().window(GEOMETRY));
        assert_eq!(
            (record.method, record.device),
            (Method::DirectDsync.code(), 1)
        );
    }
}

#[test]
fn how_files_are_written_is_found_out_once_for_each_device() {
    let world = with(Files::new());
    let device = world.storage().device();
    for (id, calibrations) in [(1, 1), (1, 1), (2, 2), (2, 2)] {
        device.id.store(id, Relaxed);
        let log = open(&world);
        assert_eq!(World::lock(&log.shared.control).record.device, id);
        log.close().unwrap();
        assert_eq!(device.calibrations.load(Relaxed), calibrations);
    }
    let methods = device.methods.lock().unwrap();
    assert!(
        methods
            .iter()
            .all(|(method, _)| *method == Method::DirectDsync)
    );
}

#[test]
fn files_are_read_and_written_through_the_page_cache_where_blocks_are_larger() {
    let world = with(closed(9));
    let device = world.storage().device();
    device.granule.store(4096, Relaxed);
    append(&open(&world), 1);
    let methods = device.methods.lock().unwrap().clone();
    assert!(
        methods
            .iter()
            .all(|(method, _)| *method == Method::Buffered)
    );
    // Before any segment is.
    let (_, read) = methods[0];
    assert!(read <= CONTROL_FILE as u64, "{read}");
    assert_eq!(device.calibrations.load(Relaxed), 0);
}

#[test]
fn opening_reads_no_more_behind_the_end_than_can_have_been_in_flight() {
    let large = options().segment_bytes(512 << 10);
    let world = with(Files::new());
    let log = Handle::open(&world, large.clone()).unwrap();
    append(&log, 1);
    let left = with(world.storage().files());
    let geometry = Geometry {
        segment: 512 << 10,
        ..GEOMETRY
    };
    let before = left.storage().device().read.load(Relaxed);
    let directory = Directory::lock(&left).unwrap();
    directory.examine(&mut |_| Ok(())).unwrap();
    let read = left.storage().device().read.load(Relaxed) - before;
    // What was read ahead before the end was seen, and the heads of files.
    let most = READ_AHEAD.min(geometry.segment) + large.window(geometry) + 16 * 1024;
    assert!(read < most, "{read} of {most}");
}

#[test]
fn a_disk_that_is_full_when_a_log_is_made_is_said_to_be_full() {
    // There is no memory for a file of this size.
    let world = with(Files::new());
    let refuse = |bytes: u64| {
        let refused = Handle::open(&world, options().segment_bytes(bytes)).map(drop);
        assert!(
            matches!(refused, Err(Error::NoSpace { bytes: named }) if named == bytes),
            "{refused:?}"
        );
    };
    refuse(8 << 20);
    refuse(6 << 20);
    // Who asks for less is not held to what there was no space for, nor to what it was to be.
    let shared = directory::open(&world, options(), 1, Kind::State).unwrap();
    assert_eq!(shared.geometry, GEOMETRY);
    shared.close().unwrap();
    let refused = directory::open(&world, options(), 1, Kind::Log).map(drop);
    assert!(
        matches!(refused, Err(Error::OtherKind { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_log_whose_making_was_cut_off_begins_where_it_is_asked_to() {
    let world = with(Files::new());
    let mut directory = Directory::lock(&world).unwrap();
    directory.make(&options(), 500, Kind::Log).unwrap();
    drop(directory);
    assert_eq!(open(&world).first_lsn(), Lsn(1));
}

#[test]
fn sizes_that_not_every_disk_takes_are_refused_where_there_is_no_log() {
    let check = |files: Files| directory::check_for_any_disk(&with(files), &options());
    let refused = check(Files::new());
    assert!(matches!(refused, Err(Error::Options(_))), "{refused:?}");
    check(closed(1)).unwrap();
}

#[test]
fn what_was_promised_is_not_written_again() {
    // All but the last of them: the next one promises a block.
    let (_, end) = examine(killed(20)).unwrap();
    assert_eq!(
        end.place.position - end.unpromised.position,
        GEOMETRY.granule
    );
    // When it was closed, the control record promises it too.
    let (_, end) = examine(closed(20)).unwrap();
    assert_eq!(end.unpromised, end.place);
    for (files, blocks) in [(closed(20), 0), (killed(20), 1)] {
        let world = with(files);
        let directory = Directory::lock(&world).unwrap();
        let examined = directory.examine(&mut |_| Ok(())).unwrap();
        // Of one that was not closed, the headers of the segments that are not promised are written again.
        let headers = examined
            .files
            .segments
            .range(examined.end.place.position / 4096..);
        let expected = 2 * CONTROL + 512 * blocks * (1 + headers.count());
        drop(directory);
        let log = open(&world);
        settle(&log);
        let written = world.storage().device().written.load(Relaxed) as usize;
        assert_eq!(written, expected);
    }
}

#[test]
fn records_are_found_in_their_segments_after_a_restart() {
    let world = with(closed(30));
    let log = open(&world);
    for lsn in 1..=30 {
        let segment = World::lock(&log.shared.state).segments.with_record(lsn);
        assert_eq!(segment, 1 + (lsn - 1) / BLOCKS, "{lsn}");
    }
    log.truncate_before(Lsn(30)).unwrap();
    assert_eq!(World::lock(&log.shared.control).record.first_segment, 5);
    assert_eq!(log.first_lsn(), Lsn(30));
}

#[test]
fn blocks_are_of_their_files() {
    let (names, _) = examine(closed(16)).unwrap();
    let expected = (0..16).map(|block| format!("segment-{:06}", 1 + block / BLOCKS));
    assert_eq!(names, expected.collect::<Vec<_>>());
}

#[test]
fn damage_is_where_it_is_said_to_be() {
    let whole = closed(16);
    for block in 0..16 {
        let name = format!("segment-{:06}", 1 + block / BLOCKS);
        let offset = 512 * (1 + block % BLOCKS);
        for at in [0, 9, 40, HEADER as u64 + FRAME as u64, 511] {
            let mut files = whole.clone();
            files.get_mut(&name).unwrap()[(offset + at) as usize] ^= 4;
            match examine(files) {
                Err(Error::Corrupt {
                    file,
                    offset: found,
                    ..
                }) => {
                    let found = (file.to_str().unwrap().to_owned(), found);
                    assert_eq!(found, (name.clone(), offset), "block {block}, byte {at}");
                }
                other => panic!("block {block}, byte {at}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_segment_is_cut_off_or_has_lost_its_header() {
    let whole = closed(16);
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut files = whole.clone();
        change(files.get_mut("segment-000002").unwrap());
        match examine(files) {
            Err(Error::Corrupt { file, offset, .. }) => {
                assert_eq!(file.to_str(), Some("segment-000002"));
                Some(offset)
            }
            Err(Error::MissingSegment { segment: 2, .. }) => None,
            other => panic!("{other:?}"),
        }
    };
    for len in [512, 513, 4095] {
        assert_eq!(damaged(&|file| file.truncate(len)), Some(len as u64));
    }
    // Without a header it may have been made just then, unless there is a block.
    assert_eq!(damaged(&|file| file.truncate(511)), None);
    assert_eq!(damaged(&|file| file.fill(0)), None);
    for block in 1..8 {
        let only = |file: &mut Vec<u8>| {
            file[..512 * block].fill(0);
            file[512 * (block + 1)..].fill(0);
        };
        assert_eq!(damaged(&only), Some(0), "{block}");
    }
}

#[test]
fn segments_are_written_ahead_in_chunks() {
    let segment = 1 << 20;
    let world = with(Files::new());
    let log = Handle::open(&world, options().segment_bytes(segment)).unwrap();
    append(&log, 1);
    let device = world.storage().device();
    // The one that is used, and the two behind it.
    let most = 3 * (segment - 512);
    while device.written.load(Relaxed) < most {
        std::thread::yield_now();
    }
    assert!(device.largest_write.load(Relaxed) <= 128 << 10);
    log.close().unwrap();
}

#[test]
fn an_inspection_shows_blocks_with_their_records() {
    let world = with(closed(8));
    let log = open(&world);
    let records: [&[u8]; 3] = [&[1; 100], b"", &[2; 2500]];
    log.append_batch(&records).unwrap();
    log.close().unwrap();
    let mut blocks = Vec::new();
    let directory = Directory::lock(&world).unwrap();
    let inspection = Inspection::of(&directory, &mut |block| blocks.push(block.clone())).unwrap();
    assert_eq!(
        (inspection.first_lsn, inspection.next_lsn),
        (Lsn(1), Lsn(12))
    );
    assert!(inspection.is_closed);
    for (index, block) in blocks[..8].iter().enumerate() {
        let index = index as u64;
        let place = (
            format!("segment-{:06}", 1 + index / BLOCKS),
            512 * (1 + index % BLOCKS),
        );
        assert_eq!((block.file.clone(), block.offset), place);
        assert_eq!((block.size, block.epoch), (512, 1));
        let [fragment] = &block.fragments[..] else {
            panic!("{block:?}");
        };
        assert_eq!(fragment.lsn, Lsn(index + 1));
        assert_eq!(fragment.bytes.len(), 512 - HEADER - FRAME);
        assert!(fragment.begins_batch && fragment.ends_batch);
    }
    let fragments = blocks[8..].iter().flat_map(|block| &block.fragments);
    let mut found: Vec<(u64, Vec<u8>)> = Vec::new();
    for fragment in fragments {
        if fragment.begins_record {
            found.push((fragment.lsn.0, Vec::new()));
        }
        let (lsn, bytes) = found.last_mut().unwrap();
        assert_eq!(*lsn, fragment.lsn.0);
        assert_eq!(fragment.ends_batch, *lsn == 11 && fragment.ends_record);
        bytes.extend(&fragment.bytes);
    }
    let expected = (9..).zip(records.map(<[u8]>::to_vec));
    assert_eq!(found, expected.collect::<Vec<_>>());
    let used = inspection
        .segments
        .iter()
        .map(|file| (file.sequence, file.is_used));
    let expected = (1..).map(|sequence| (Some(sequence), sequence <= 2));
    let count = inspection.segments.len();
    assert!(count >= 3);
    assert_eq!(
        used.collect::<Vec<_>>(),
        expected.take(count).collect::<Vec<_>>()
    );
}

#[test]
fn a_reader_says_where_damage_is() {
    let world = with(Files::new());
    let log = open(&world);
    append(&log, 16);
    for block in 0..16 {
        let name = format!("segment-{:06}", 1 + block / BLOCKS);
        let offset = 512 * (1 + block % BLOCKS);
        let file = world.storage().open(&name).unwrap();
        let mut bytes = [0; 512];
        file.read(&mut bytes, offset).unwrap();
        let mut damaged = bytes;
        damaged[100] ^= 1;
        file.write(&damaged, offset, Durability::Later).unwrap();
        let mut reader = log.read(Lsn(1)).unwrap();
        for lsn in 1..=block {
            assert_eq!(reader.next().unwrap().map(|(found, _)| found), Some(lsn));
        }
        match reader.next() {
            Err(Error::Corrupt {
                file,
                offset: found,
                ..
            }) => assert_eq!((file.to_str(), found), (Some(&*name), offset)),
            other => panic!("block {block}: {other:?}"),
        }
        file.write(&bytes, offset, Durability::Later).unwrap();
    }
    log.truncate_before(Lsn(9)).unwrap();
    assert!(matches!(
        log.read(Lsn(8)),
        Err(Error::Truncated {
            asked: Lsn(8),
            first: Lsn(9)
        })
    ));
    assert!(matches!(log.read(Lsn(18)), Err(Error::NotThereYet { .. })));
    let mut reader = log.read(Lsn(9)).unwrap();
    assert_eq!(reader.next().unwrap().map(|(lsn, _)| lsn), Some(9));
    log.truncate_before(Lsn(12)).unwrap();
    let next = reader.next().map(|record| record.map(|(lsn, _)| lsn));
    assert!(matches!(
        next,
        Err(Error::Truncated {
            asked: Lsn(10),
            first: Lsn(12)
        })
    ));
}

#[test]
fn one_flipped_bit_of_the_last_block_is_no_power_cut() {
    let whole = killed(3);
    let block = 512 * 3;
    for bit in (0..8 * HEADER).chain([8 * HEADER, 8 * 300, 8 * 511 + 7]) {
        let mut files = whole.clone();
        files.get_mut("segment-000001").unwrap()[block + bit / 8] ^= 1 << (bit % 8);
        match examine(files) {
            Err(Error::Corrupt { file, offset, .. }) => {
                assert_eq!(
                    (file.to_str(), offset),
                    (Some("segment-000001"), block as u64)
                );
            }
            other => panic!("bit {bit}: {other:?}"),
        }
    }
    // The same of the first of a segment.
    let next = killed(BLOCKS + 1);
    for bit in 0..8 * HEADER {
        let mut files = next.clone();
        files.get_mut("segment-000002").unwrap()[512 + bit / 8] ^= 1 << (bit % 8);
        let found = examine(files);
        let is_told = matches!(&found, Err(Error::Corrupt { offset: 512, .. }));
        assert!(is_told, "bit {bit}: {found:?}");
    }
    // What a power cut leaves of it, or of one of two sectors, is cut off.
    let mut files = whole.clone();
    files.get_mut("segment-000001").unwrap()[block..block + 512].fill(0);
    assert_eq!(examine(files).unwrap().1.next_lsn, 3);
    let world = with(Files::new());
    let log = open(&world);
    settle(&log);
    log.append_durable(&[7; 900]).unwrap();
    for damage in [512, 1024] {
        let mut files = world.storage().files();
        files.get_mut("segment-000001").unwrap()[damage + 100..damage + 200].fill(0);
        assert_eq!(examine(files).unwrap().1.next_lsn, 1);
    }
}

#[test]
fn only_blocks_of_the_log_promise_anything() {
    // The last places of its second segment are free, and nobody knows what was in flight there.
    let whole = killed(10);
    let is_damaged = |change: Change| {
        let mut files = whole.clone();
        crafted(&mut files, 3072, change);
        matches!(examine(files), Err(Error::Corrupt { .. }))
    };
    assert!(
        is_damaged(|header| header.durable = header.position),
        "what could be"
    );
    assert!(
        !is_damaged(|header| header.durable = 2 * 4096),
        "it promises nothing new"
    );
    let foreign: [(&str, Change); 5] = [
        ("log", |header| {
            (header.log, header.durable) = (1, header.position)
        }),
        ("position", |header| header.position += 512),
        ("promise", |header| header.durable = header.position + 512),
        ("length", |header| {
            (header.length, header.durable) = (1024, header.position)
        }),
        ("lsn", |header| {
            (header.lsn, header.durable) = (MOST, header.position)
        }),
    ];
    for (what, change) in foreign {
        assert!(!is_damaged(change), "{what}");
    }
}

#[test]
fn blocks_are_found_however_much_is_read_at_once() {
    let world = with(Files::new());
    let log = open(&world);
    for number in 0..40_u64 {
        let len = (number * 577 % 1700) as usize;
        log.append_durable(&vec![number as u8; len]).unwrap();
    }
    let shared = &log.shared;
    let open = |sequence: u64| {
        let number = World::lock(&shared.state).segments.number(sequence);
        number
            .map(|number| world.storage().open(&segment_name(number)))
            .transpose()
    };
    let blocks = |bytes: u64| {
        let first = Place::at(GEOMETRY.first_block(1));
        let mut scanner = Scanner::new(&world, GEOMETRY, shared.log, shared.epoch, first);
        scanner.read_ahead(bytes);
        let mut found = Vec::new();
        while let Some(block) = scanner.next(u64::MAX, &mut { open }).unwrap() {
            found.push((block.header, scanner.bytes(block.payload).to_vec()));
        }
        found
    };
    let all = blocks(4096);
    assert_eq!(all.len(), 40);
    for bytes in [0, 512, 1024, 1536, 2048, 2560, 3072] {
        assert!(blocks(bytes) == all, "{bytes}");
    }
}
