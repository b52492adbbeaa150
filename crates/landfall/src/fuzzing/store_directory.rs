//! A store's directory as one row of bytes: which files there are, the two copies of the store's control record, cut to what
//! is read of them, the data file, and then the log as `directory` has it.

use std::collections::BTreeMap;
use std::ops::Range;

use super::checksums::{Checksum, in_order};
use super::directory;
use super::memory::GRANULE;
use crate::log::format::CONTROL_NAME as LOG_NAME;
use crate::store::bytes::put_number;
use crate::store::control::{CONTROL_NAME, COPY, Control, SIZE};
use crate::store::data_file::data_name;
use crate::store::page::{Kind, Pointer, unseal};
use crate::store::root::{Root, take_leaves};
use crate::store::runs::entry::{RunEntry, decode_index};

/// The flags of files that are missing, the number of the data file, and how many granules it has.
const HEAD: usize = 4;
const NO_CONTROL: u8 = 1;
const NO_DATA: u8 = 2;
const NO_LOG: u8 = 4;
/// Where a control record has the checksum of its root.
const ROOT_CHECKSUM: usize = 52;

/// Where the parts of a row are: the copies, the data file, and the log.
fn parts(bytes: &[u8]) -> (Range<usize>, Range<usize>, Range<usize>) {
    let granules = match bytes {
        [_, _, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    let all = bytes.len();
    let copies = HEAD.min(all);
    let data = (copies + 2 * SIZE).min(all);
    let log = (data + granules * GRANULE as usize).min(all);
    (copies..data, data..log, log..all)
}

/// Where the copies of the control record are.
#[cfg(test)]
pub(super) fn copies() -> [usize; 2] {
    [HEAD, HEAD + SIZE]
}

/// Where the data file is.
#[cfg(test)]
pub(super) fn pages(bytes: &[u8]) -> Range<usize> {
    parts(bytes).1
}

/// The files that are in a row of bytes.
pub(super) fn files(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let (copies, data, log) = parts(bytes);
    let mut files = directory::files(&bytes[log]);
    let (missing, number) = match bytes {
        [missing, number, ..] => (*missing, *number),
        _ => (NO_CONTROL | NO_DATA, 0),
    };
    if missing & NO_LOG != 0 {
        files.remove(LOG_NAME);
    }
    if missing & NO_CONTROL == 0 {
        let mut control = vec![0; 2 * COPY];
        for (index, copy) in bytes[copies].chunks(SIZE).enumerate() {
            control[index * COPY..][..copy.len()].copy_from_slice(copy);
        }
        files.insert(CONTROL_NAME.to_owned(), control);
    }
    if missing & NO_DATA == 0 {
        files.insert(data_name(number.into()), bytes[data].to_vec());
    }
    files
}

/// The row of bytes of a directory that a store has made.
#[cfg(test)]
pub(super) fn bytes(files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    use crate::store::data_file::data_number;

    let mut log = files.clone();
    let control = log.remove(CONTROL_NAME);
    let data = log.keys().find_map(|name| data_number(name));
    let pages = data.and_then(|number| log.remove(&data_name(number)));
    let pages = pages.unwrap_or_default();
    let missing = if control.is_none() { NO_CONTROL } else { 0 };
    let missing = if data.is_none() {
        missing | NO_DATA
    } else {
        missing
    };
    let granules = (pages.len() / GRANULE as usize) as u16;
    let mut bytes = vec![missing, data.unwrap_or(0) as u8];
    bytes.extend_from_slice(&granules.to_le_bytes());
    let control = control.unwrap_or_else(|| vec![0; 2 * COPY]);
    for copy in control.chunks(COPY) {
        bytes.extend_from_slice(&copy[..SIZE]);
    }
    bytes.extend_from_slice(&pages);
    bytes.extend_from_slice(&directory::bytes(&log));
    bytes
}

/// Whether the log has a block that no log has ever written.
pub(super) fn has_impossible_block(bytes: &[u8]) -> bool {
    let (.., log) = parts(bytes);
    directory::has_impossible_block(&bytes[log])
}

/// The tree that a copy of the control record leads to, as far as its checksums are right.
struct Tree<'a> {
    bytes: &'a [u8],
    /// The data file.
    data: Range<usize>,
    control: Control,
    /// Those that are right, by where they are.
    right: BTreeMap<usize, Checksum>,
}

/// What a page is that something leads to.
#[derive(Clone, Copy)]
enum Below {
    Root,
    Group,
    Run(RunEntry),
    /// Or a block of a run.
    Leaf,
}

impl<'a> Tree<'a> {
    /// Where a page's checksum is, if it is right, and so those of the pages to which it points.
    fn page(&mut self, pointer: Pointer, below: Below) -> Option<usize> {
        let kind = match below {
            Below::Root => Kind::Root,
            Below::Group => Kind::Group,
            Below::Run(_) => Kind::Run,
            Below::Leaf => Kind::Leaf,
        };
        let granule = self.control.granule.into();
        let length = pointer.length as usize;
        let at = self
            .data
            .start
            .checked_add(usize::try_from(pointer.offset).ok()?)?;
        let bytes: &'a [u8] = self.bytes;
        let found = bytes.get(at..at.checked_add(length)?)?;
        if self.right.contains_key(&at) {
            return Some(at);
        }
        let payload = unseal(found, pointer, kind, self.control.store, false).ok()?;
        let mut right = Checksum::right(self.bytes, at, length, false)?;
        let as_pointer = |pointer: Pointer| {
            let mut encoded = Vec::new();
            pointer.put(granule, &mut encoded);
            encoded
        };
        // Of each what it is, and what leads to it here.
        let mut children: Vec<(Pointer, Below, Vec<u8>)> = Vec::new();
        match below {
            Below::Root => {
                let root = Root::decode(&payload, granule)?;
                for group in root.keyspaces.iter().flat_map(|keyspace| &keyspace.groups) {
                    let page = group.page.into_iter();
                    children.extend(page.map(|page| (page, Below::Group, as_pointer(page))));
                    let runs = group.runs.iter();
                    children.extend(
                        runs.map(|run| (run.index, Below::Run(*run), as_pointer(run.index))),
                    );
                }
            }
            Below::Group => {
                let leaves = take_leaves(&payload, granule)?;
                let pages = leaves.iter().map(|leaf| leaf.pointer);
                children.extend(pages.map(|page| (page, Below::Leaf, as_pointer(page))));
            }
            Below::Run(run) => {
                let blocks = decode_index(&payload, granule, &run)?;
                let pages = blocks.iter().map(|block| block.pointer);
                children.extend(pages.map(|page| {
                    let mut encoded = Vec::new();
                    put_number(&mut encoded, page.length.into());
                    encoded.extend_from_slice(&page.crc.to_le_bytes());
                    (page, Below::Leaf, encoded)
                }));
            }
            Below::Leaf => {}
        }
        for (child, below, encoded) in children {
            let Some(of) = self.page(child, below) else {
                continue;
            };
            // Of a page that is compressed it may be there as it is, too.
            let mut places = found.windows(encoded.len());
            if let Some(place) = places.position(|bytes| bytes == encoded) {
                // The checksum is the end of a pointer.
                right.repeats.push((at + place + encoded.len() - 4, of));
            }
        }
        self.right.insert(at, right);
        Some(at)
    }
}

/// The checksums that are right, each behind those that it repeats.
pub fn right_checksums(bytes: &[u8]) -> Vec<Checksum> {
    let (copies, data, log) = parts(bytes);
    let mut all = BTreeMap::new();
    for at in copies.clone().step_by(SIZE) {
        let control = bytes.get(at..at + SIZE).and_then(Control::of_copy);
        let Some((control, mut right)) = control.zip(Checksum::right(bytes, at, SIZE, false))
        else {
            continue;
        };
        let mut tree = Tree {
            bytes,
            data: data.clone(),
            control,
            right: all,
        };
        if let Some(root) = tree.page(control.root, Below::Root) {
            right.repeats.push((at + ROOT_CHECKSUM, root));
        }
        all = tree.right;
        all.insert(at, right);
    }
    let begin = log.start;
    let of_log = directory::right_checksums(&bytes[log]).into_iter();
    let of_log = of_log.map(|one| one.behind(begin));
    in_order(all.into_values().chain(of_log).collect())
}
