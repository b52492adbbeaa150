//! The bytes of a log: what `docs/log-format.md` says, and nothing else.
//!
//! Numbers are little-endian. Whatever is read here may be anything: nothing panics, and nothing is
//! believed before its checksum was compared.

use crc32c::{crc32c, crc32c_append};

use crate::Error;

/// Of the layout in `docs/log-format.md`.
pub(crate) const VERSION: u32 = 2;
/// Bytes of a block before its records.
pub(crate) const HEADER: usize = 64;
/// Bytes before each fragment of a record.
pub(crate) const FRAME: usize = 4;
/// Bytes of one of the two copies of the control record.
pub(crate) const CONTROL: usize = 4096;
/// Bytes of the file of control records: the copies, and a page of zeros on which methods of writing are tried.
pub(crate) const CONTROL_FILE: usize = 3 * CONTROL;
/// Bytes of the largest block.
pub(crate) const MOST_BLOCK: u64 = 1 << 20;
/// Positions and numbers are less, so that nothing overflows that is reckoned with them.
pub(crate) const MOST: u64 = 1 << 62;
/// Files that can have been made and removed between two that are there.
const MOST_FILES: u64 = 1 << 32;

/// A number, of these in their order, that no file has come to: numbers are given one by one. A next one behind it might
/// be refused as well.
pub(crate) fn unreachable_number(numbers: &[u64]) -> Option<u64> {
    let before = std::iter::once(0).chain(numbers.iter().copied());
    let mut pairs = before.zip(numbers);
    let found = pairs.find(|(before, number)| **number - before > MOST_FILES);
    found.map(|(_, number)| *number)
}

/// The name of the file of control records.
pub(crate) const CONTROL_NAME: &str = "landfall-log";
/// The name that it has until it is whole.
pub(crate) const CONTROL_DRAFT: &str = "landfall-log.new";

const CONTROL_MAGIC: &[u8; 16] = b"Landfall log\r\n\x1a\n";
const SEGMENT_MAGIC: &[u8; 16] = b"Landfall seg\r\n\x1a\n";
const SEGMENT_PREFIX: &str = "segment-";

/// The name of segment file number `number`.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{SEGMENT_PREFIX}{number:06}")
}

/// The number of a segment file of that name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(SEGMENT_PREFIX)?.parse().ok()?;
    (segment_name(number) == name && number < MOST).then_some(number)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// What is before the records of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// Checksum of the records.
    pub payload_crc: u32,
    /// Checksum of the header before.
    pub previous: u32,
    /// Bytes of the records, with their frames.
    pub length: u32,
    /// Of the log that it belongs to.
    pub log: u64,
    /// How often the log had been opened when it was written.
    pub epoch: u64,
    /// Where it belongs.
    pub position: u64,
    /// LSN of the first record that begins here or later.
    pub lsn: u64,
    /// Every block before this position was durable when it was written.
    pub durable: u64,
    /// How many records before `lsn` belong to a batch that has not ended before it.
    pub batch_back: u32,
}

impl BlockHeader {
    /// Puts the header into the first [`HEADER`] bytes of `out`, and returns its checksum.
    pub fn encode(&self, out: &mut [u8]) -> u32 {
        out[4..8].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[8..12].copy_from_slice(&self.previous.to_le_bytes());
        out[12..16].copy_from_slice(&self.length.to_le_bytes());
        out[16..24].copy_from_slice(&self.log.to_le_bytes());
        out[24..32].copy_from_slice(&self.epoch.to_le_bytes());
        out[32..40].copy_from_slice(&self.position.to_le_bytes());
        out[40..48].copy_from_slice(&self.lsn.to_le_bytes());
        out[48..56].copy_from_slice(&self.durable.to_le_bytes());
        out[56..60].copy_from_slice(&self.batch_back.to_le_bytes());
        out[60..HEADER].fill(0);
        let crc = crc32c(&out[4..HEADER]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
        crc
    }

    /// The header in the first [`HEADER`] bytes, and its checksum; `None` if that is wrong.
    pub fn decode(bytes: &[u8]) -> Option<(BlockHeader, u32)> {
        let crc = u32_at(bytes, 0);
        if crc != crc32c(&bytes[4..HEADER]) {
            return None;
        }
        let header = BlockHeader {
            payload_crc: u32_at(bytes, 4),
            previous: u32_at(bytes, 8),
            length: u32_at(bytes, 12),
            log: u64_at(bytes, 16),
            epoch: u64_at(bytes, 24),
            position: u64_at(bytes, 32),
            lsn: u64_at(bytes, 40),
            durable: u64_at(bytes, 48),
            batch_back: u32_at(bytes, 56),
        };
        Some((header, crc))
    }

    /// Bytes that the block takes, of whole granules.
    pub fn size(&self, granule: u64) -> u64 {
        (HEADER as u64 + u64::from(self.length)).next_multiple_of(granule)
    }
}

/// The checksum of a block's records.
pub(crate) fn payload_crc(payload: &[u8]) -> u32 {
    payload_crc_on(0, payload)
}

/// As that, of bytes behind those that have the checksum `before`.
pub(crate) fn payload_crc_on(before: u32, payload: &[u8]) -> u32 {
    crc32c_append(before, payload)
}

/// What is said of a fragment of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The record begins with it.
    pub begins_record: bool,
    /// The record ends with it.
    pub ends_record: bool,
    /// The batch begins with it.
    pub begins_batch: bool,
    /// The batch ends with it.
    pub ends_batch: bool,
    /// Bytes of the fragment.
    pub length: u32,
}

impl Frame {
    const BEGINS_RECORD: u32 = 1 << 31;
    const ENDS_RECORD: u32 = 1 << 30;
    const BEGINS_BATCH: u32 = 1 << 29;
    const ENDS_BATCH: u32 = 1 << 28;
    /// Fragments are shorter.
    pub const MOST: u32 = 1 << 28;

    pub fn encode(self) -> [u8; FRAME] {
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        let word = self.length
            | flag(self.begins_record, Self::BEGINS_RECORD)
            | flag(self.ends_record, Self::ENDS_RECORD)
            | flag(self.begins_batch, Self::BEGINS_BATCH)
            | flag(self.ends_batch, Self::ENDS_BATCH);
        word.to_le_bytes()
    }

    pub fn decode(bytes: &[u8]) -> Frame {
        let word = u32_at(bytes, 0);
        Frame {
            begins_record: word & Self::BEGINS_RECORD != 0,
            ends_record: word & Self::ENDS_RECORD != 0,
            begins_batch: word & Self::BEGINS_BATCH != 0,
            ends_batch: word & Self::ENDS_BATCH != 0,
            length: word & (Self::MOST - 1),
        }
    }
}

/// The first granule of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Of the log that it belongs to.
    pub log: u64,
    /// Its place in the log, from 1.
    pub sequence: u64,
    /// Every block before this position was durable when it was written.
    pub durable: u64,
}

impl SegmentHeader {
    /// Bytes of it; the rest of the granule is zeros.
    pub const SIZE: usize = 48;

    pub fn encode(&self, out: &mut [u8]) {
        out[4..20].copy_from_slice(SEGMENT_MAGIC);
        out[20..24].copy_from_slice(&VERSION.to_le_bytes());
        out[24..32].copy_from_slice(&self.log.to_le_bytes());
        out[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        out[40..48].copy_from_slice(&self.durable.to_le_bytes());
        let crc = crc32c(&out[4..Self::SIZE]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    pub fn decode(bytes: &[u8]) -> Option<SegmentHeader> {
        let is_valid = u32_at(bytes, 0) == crc32c(&bytes[4..Self::SIZE])
            && bytes[4..20] == *SEGMENT_MAGIC
            && u32_at(bytes, 20) == VERSION;
        is_valid.then(|| SegmentHeader {
            log: u64_at(bytes, 24),
            sequence: u64_at(bytes, 32),
            durable: u64_at(bytes, 40),
        })
    }
}

/// What a log is, where it begins, and how far it had come. There are two copies; the valid one of the higher
/// generation counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    /// Each writing has the next.
    pub generation: u64,
    /// A number by which its blocks are known.
    pub log: u64,
    /// How often it was opened to be written; 0: never, it is being made.
    pub epoch: u64,
    /// Bytes of which blocks are made.
    pub granule: u32,
    /// Bytes of a segment.
    pub segment: u64,
    /// The first segment that is needed.
    pub first_segment: u64,
    /// The first record that is needed.
    pub first_lsn: u64,
    /// The method of syncing that was found best, and the device that it was found on.
    pub method: u32,
    pub device: u64,
    /// How it was left.
    pub shutdown: Shutdown,
    /// Where the log ended when this was written, all of it durable.
    pub end: u64,
    /// The record that was to be the next there.
    pub end_lsn: u64,
    /// Checksum of the header of the last block before.
    pub end_chain: u32,
    /// Blocks are no further than this behind the last one that was durable when they were written.
    pub window: u64,
    /// What it is for.
    pub kind: Kind,
}

/// What a log is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Itself.
    Log,
    /// The commands of a state.
    State,
    /// The commits of a store.
    Store,
}

impl Kind {
    fn code(self) -> u32 {
        match self {
            Kind::Log => 1,
            Kind::State => 2,
            Kind::Store => 3,
        }
    }

    fn of_code(code: u32) -> Option<Kind> {
        let all = [Kind::Log, Kind::State, Kind::Store];
        all.into_iter().find(|one| one.code() == code)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Log => "log",
            Kind::State => "state",
            Kind::Store => "store",
        }
    }
}

/// How a log was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// It is open, or was cut off: it goes on behind the end that its record knows.
    Running,
    /// It was closed cleanly: the end is the one that its record knows.
    Closed,
}

impl Shutdown {
    fn code(self) -> u32 {
        match self {
            Shutdown::Running => 1,
            Shutdown::Closed => 2,
        }
    }

    fn of_code(code: u32) -> Option<Shutdown> {
        let all = [Shutdown::Running, Shutdown::Closed];
        all.into_iter().find(|one| one.code() == code)
    }
}

/// What a copy of the control record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlCopy {
    Valid(Control),
    /// Of a version that is not this one.
    Other(u32),
    /// Torn, or of something else.
    Invalid,
}

impl Control {
    pub const SIZE: usize = 128;

    pub fn encode(&self, out: &mut [u8]) {
        out.fill(0);
        out[4..20].copy_from_slice(CONTROL_MAGIC);
        out[20..24].copy_from_slice(&VERSION.to_le_bytes());
        out[24..32].copy_from_slice(&self.generation.to_le_bytes());
        out[32..40].copy_from_slice(&self.log.to_le_bytes());
        out[40..48].copy_from_slice(&self.epoch.to_le_bytes());
        out[48..56].copy_from_slice(&self.segment.to_le_bytes());
        out[56..64].copy_from_slice(&self.first_segment.to_le_bytes());
        out[64..72].copy_from_slice(&self.first_lsn.to_le_bytes());
        out[72..80].copy_from_slice(&self.device.to_le_bytes());
        out[80..84].copy_from_slice(&self.granule.to_le_bytes());
        out[84..88].copy_from_slice(&self.method.to_le_bytes());
        out[88..92].copy_from_slice(&self.shutdown.code().to_le_bytes());
        out[92..96].copy_from_slice(&self.end_chain.to_le_bytes());
        out[96..104].copy_from_slice(&self.end.to_le_bytes());
        out[104..112].copy_from_slice(&self.end_lsn.to_le_bytes());
        out[112..120].copy_from_slice(&self.window.to_le_bytes());
        out[120..124].copy_from_slice(&self.kind.code().to_le_bytes());
        let crc = crc32c(&out[4..Self::SIZE]);
        out[..4].copy_from_slice(&crc.to_le_bytes());
    }

    pub fn decode(bytes: &[u8]) -> ControlCopy {
        if bytes[4..20] != *CONTROL_MAGIC {
            return ControlCopy::Invalid;
        }
        let version = u32_at(bytes, 20);
        if version != VERSION {
            // How long its record is, and so its checksum, only that version knows.
            return ControlCopy::Other(version);
        }
        if u32_at(bytes, 0) != crc32c(&bytes[4..Self::SIZE]) {
            return ControlCopy::Invalid;
        }
        let (Some(shutdown), Some(kind)) = (
            Shutdown::of_code(u32_at(bytes, 88)),
            Kind::of_code(u32_at(bytes, 120)),
        ) else {
            return ControlCopy::Invalid;
        };
        ControlCopy::Valid(Control {
            generation: u64_at(bytes, 24),
            log: u64_at(bytes, 32),
            epoch: u64_at(bytes, 40),
            segment: u64_at(bytes, 48),
            first_segment: u64_at(bytes, 56),
            first_lsn: u64_at(bytes, 64),
            device: u64_at(bytes, 72),
            granule: u32_at(bytes, 80),
            method: u32_at(bytes, 84),
            shutdown,
            end_chain: u32_at(bytes, 92),
            end: u64_at(bytes, 96),
            end_lsn: u64_at(bytes, 104),
            window: u64_at(bytes, 112),
            kind,
        })
    }

    pub fn geometry(&self) -> Geometry {
        Geometry {
            granule: self.granule.into(),
            segment: self.segment,
        }
    }

    /// Refuses a directory of another kind than is wanted. What is still being made may become any.
    pub fn require_kind(&self, wanted: Kind) -> Result<(), Error> {
        if self.kind == wanted || self.epoch == 0 {
            return Ok(());
        }
        Err(Error::OtherKind {
            found: self.kind.name(),
            wanted: wanted.name(),
        })
    }

    /// What the numbers must be for anything to be found by them.
    pub fn makes_sense(&self) -> bool {
        self.geometry().makes_sense()
            && (1..MOST / self.segment).contains(&self.first_segment)
            && (1..MOST).contains(&self.first_lsn)
            && self.generation.max(self.epoch).max(self.window) < MOST
            && self.end < MOST
            && self.end.is_multiple_of(self.granule.into())
            && self.end >= self.geometry().first_block(self.first_segment)
            && (self.first_lsn..MOST).contains(&self.end_lsn)
    }
}

/// Positions are of bytes: segment number `n` has those from `n` times its size on, and begins with its
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub granule: u64,
    pub segment: u64,
}

impl Geometry {
    /// Whether a log can be cut like that.
    pub fn makes_sense(self) -> bool {
        self.granule.is_power_of_two()
            && (512..=1 << 12).contains(&self.granule)
            && self.segment.is_multiple_of(self.granule)
            && self.segment >= 4 * self.granule
            && self.segment <= 64 << 30
    }

    /// Where the first block of a segment is.
    pub fn first_block(self, sequence: u64) -> u64 {
        sequence * self.segment + self.granule
    }

    /// Whether a log can have a segment of that number.
    pub fn has(self, sequence: u64) -> bool {
        sequence < MOST / self.segment
    }

    pub fn sequence(self, position: u64) -> u64 {
        position / self.segment
    }

    /// The segment that a log has come to whose last block ends there.
    pub fn entered(self, end: u64) -> u64 {
        self.sequence(end - 1)
    }

    /// The first block of the segment behind the one in which the block before this position ends.
    pub fn behind(self, position: u64) -> u64 {
        self.first_block(self.entered(position) + 1)
    }

    /// Where it is in its segment's file.
    pub fn offset(self, position: u64) -> u64 {
        position % self.segment
    }

    /// Bytes from there to the end of its segment. A position at the very end belongs to the next one, whose
    /// header is there: then it is none.
    pub fn room(self, position: u64) -> u64 {
        match self.offset(position) {
            offset if offset < self.granule => 0,
            offset => self.segment - offset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    const BLOCK: BlockHeader = BlockHeader {
        payload_crc: 1,
        previous: 2,
        length: 3,
        log: 4,
        epoch: 5,
        position: 6,
        lsn: 7,
        durable: 8,
        batch_back: 9,
    };

    const CONTROL_RECORD: Control = Control {
        generation: 1,
        log: 2,
        epoch: 3,
        granule: 512,
        segment: 16 << 20,
        first_segment: 4,
        first_lsn: 5,
        method: 1,
        device: 6,
        shutdown: Shutdown::Closed,
        end: (5 << 24) + 1024,
        end_lsn: 8,
        end_chain: 9,
        window: 10,
        kind: Kind::State,
    };

    #[test]
    fn what_is_written_is_read_back() {
        let mut bytes = [0xee; HEADER];
        let crc = BLOCK.encode(&mut bytes);
        assert_eq!(BlockHeader::decode(&bytes), Some((BLOCK, crc)));
        let header = SegmentHeader {
            log: 1,
            sequence: 2,
            durable: 3,
        };
        let mut bytes = [0; SegmentHeader::SIZE];
        header.encode(&mut bytes);
        assert_eq!(SegmentHeader::decode(&bytes), Some(header));
        let mut bytes = [0xee; CONTROL];
        CONTROL_RECORD.encode(&mut bytes);
        assert_eq!(Control::decode(&bytes), ControlCopy::Valid(CONTROL_RECORD));
        assert!(CONTROL_RECORD.makes_sense());
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let mut block = [0; HEADER];
        BLOCK.encode(&mut block);
        let mut control = [0; CONTROL];
        CONTROL_RECORD.encode(&mut control);
        for bit in 0..HEADER * 8 {
            block[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHeader::decode(&block), None, "bit {bit}");
            block[bit / 8] ^= 1 << (bit % 8);
        }
        for bit in 0..Control::SIZE * 8 {
            control[bit / 8] ^= 1 << (bit % 8);
            let found = Control::decode(&control);
            assert!(!matches!(found, ControlCopy::Valid(_)), "bit {bit}");
            control[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn what_is_whole_and_another_thing_is_no_header() {
        let header = SegmentHeader {
            log: 1,
            sequence: 2,
            durable: 3,
        };
        // A bit of the magic number, and of the version.
        for at in [4, 19, 20] {
            let mut bytes = [0; SegmentHeader::SIZE];
            header.encode(&mut bytes);
            bytes[at] ^= 1;
            let crc = crc32c(&bytes[4..]);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(SegmentHeader::decode(&bytes), None, "{at}");
        }
    }

    #[test]
    fn numbers_of_which_one_makes_no_sense_are_refused() {
        type Change = fn(&mut Control);
        let changed = |change: Change| {
            let mut record = CONTROL_RECORD;
            change(&mut record);
            record.makes_sense()
        };
        let right: [Change; 12] = [
            |record| (record.granule, record.end) = (4096, (5 << 24) + 8192),
            |record| (record.segment, record.end) = (2048, 4 * 2048 + 512),
            |record| (record.segment, record.end) = (64 << 30, (256 << 30) + 512),
            |record| (record.first_segment, record.end) = (1, (1 << 24) + 512),
            |record| {
                record.first_segment = (MOST >> 24) - 1;
                record.end = MOST - 512;
            },
            |record| (record.first_lsn, record.end_lsn) = (1, 1),
            |record| (record.first_lsn, record.end_lsn) = (MOST - 1, MOST - 1),
            |record| record.generation = MOST - 1,
            |record| record.epoch = MOST - 1,
            |record| record.window = MOST - 1,
            |record| record.end = MOST - 512,
            |record| record.end = (4 << 24) + 512,
        ];
        for (index, change) in right.into_iter().enumerate() {
            assert!(changed(change), "right {index}");
        }
        let wrong: [Change; 18] = [
            |record| record.granule = 768,
            |record| record.granule = 256,
            |record| record.granule = 8192,
            |record| record.segment += 256,
            |record| (record.segment, record.end) = (1536, 4 * 1536 + 512),
            |record| (record.segment, record.end) = ((64 << 30) + 512, 512 << 30),
            |record| record.first_segment = 0,
            |record| (record.first_segment, record.segment) = (MOST >> 24, 1 << 24),
            |record| record.first_lsn = 0,
            |record| (record.first_lsn, record.end_lsn) = (MOST, MOST),
            |record| record.generation = MOST,
            |record| record.epoch = MOST,
            |record| record.window = MOST,
            |record| record.end = MOST,
            |record| record.end += 256,
            |record| record.end = 4 << 24,
            |record| record.end_lsn = record.first_lsn - 1,
            |record| record.end_lsn = MOST,
        ];
        for (index, change) in wrong.into_iter().enumerate() {
            assert!(!changed(change), "wrong {index}");
        }
    }

    #[test]
    fn numbers_have_an_end() {
        let geometry = Geometry {
            granule: 512,
            segment: 4096,
        };
        assert!(geometry.has(MOST / 4096 - 1));
        assert!(!geometry.has(MOST / 4096));
        assert_eq!(segment_number(&segment_name(MOST - 1)), Some(MOST - 1));
        assert_eq!(segment_number(&segment_name(MOST)), None);
        assert_eq!(Kind::of_code(Kind::Log.code()).map(Kind::name), Some("log"));
        assert_eq!(Kind::State.name(), "state");
    }

    #[test]
    fn zeros_are_nothing() {
        assert_eq!(BlockHeader::decode(&[0; HEADER]), None);
        assert_eq!(SegmentHeader::decode(&[0; SegmentHeader::SIZE]), None);
        assert_eq!(Control::decode(&[0; CONTROL]), ControlCopy::Invalid);
    }

    #[test]
    fn names_are_those_that_are_made() {
        assert_eq!(segment_number(&segment_name(7)), Some(7));
        assert_eq!(segment_number(&segment_name(12_345_678)), Some(12_345_678));
        for other in ["segment-", "segment-7", "segment-+00007", "x", CONTROL_NAME] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }

    #[test]
    fn no_file_has_a_number_that_the_one_before_did_not_lead_to() {
        const FAR: u64 = 1 << 32;
        for (numbers, found) in [
            (&[1, 2, 7][..], None),
            (&[FAR], None),
            (&[FAR + 1], Some(FAR + 1)),
            (&[FAR, FAR + 1, 2 * FAR + 1], None),
            (&[FAR, 2 * FAR + 1, 2 * FAR + 2], Some(2 * FAR + 1)),
        ] {
            assert_eq!(unreachable_number(numbers), found, "{numbers:?}");
        }
    }

    proptest! {
        #[test]
        fn frames_are_read_back(bits in 0u8..16, length in 0..Frame::MOST) {
            let bit = |at: u8| bits & (1 << at) != 0;
            let frame = Frame {
                begins_record: bit(0),
                ends_record: bit(1),
                begins_batch: bit(2),
                ends_batch: bit(3),
                length,
            };
            prop_assert_eq!(Frame::decode(&frame.encode()), frame);
        }

        #[test]
        fn nothing_panics_on_anything(bytes in proptest::collection::vec(any::<u8>(), CONTROL)) {
            BlockHeader::decode(&bytes);
            SegmentHeader::decode(&bytes);
            Control::decode(&bytes);
            Frame::decode(&bytes);
        }
    }
}
