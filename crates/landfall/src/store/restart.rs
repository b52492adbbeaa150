//! Opening a store: the last checkpoint, and what was committed since.
//!
//! Everything that is needed to answer is read before anything is changed: the control record, the root, where leaves are, and
//! the whole log, whose commits are applied while it is examined. Leaves are read, and compared with their checksums, when
//! somebody asks for what is in them. What was found damaged is reported, and the directory stays as it is.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::cache::Cache;
use super::checkpoint::{Checkpoints, Durable};
use super::control::{self, Control, ControlFile};
use super::counters::Tally;
use super::data_file::{DataFile, data_name, data_number, is_full, require_reachable};
use super::due::{RoomMade, Work};
use super::extents::Space;
use super::homes::{Copies, Homes};
use super::keyspaces::Keyspaces;
use super::options::{StoreBuffer, StoreOptions};
use super::page::{Kind, Pointer};
use super::protection::{Protection, ProtectionChoice};
use super::readers::READERS;
use super::repair::Repairs;
use super::replay::{Mistakes, Replay};
use super::root::{Root, Span, take_leaves};
use super::runs::entry::RunEntry;
use super::runs::{Run, Runs};
use super::shared::Shared;
use super::snapshots::Committing;
use super::together::Helpers;
use super::tree::{Group, Keyspace, Leaves, Page, Slot};
use crate::environment::{Environment, File, Storage, planted};
use crate::log::Handle as Log;
use crate::log::directory::{Directory, Examined};
use crate::log::event_count::EventCount;
use crate::log::format::Kind as LogKind;
use crate::log::waiters::Waiters;
use crate::state::schedule::Schedule;
use crate::{Error, Lsn};

/// What opening a store found, and how long it took.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct StoreRestart {
    /// The number of the checkpoint that it began from; 0: none had been made.
    pub checkpoint: u64,
    /// Commits of the log that were applied again.
    pub commits: u64,
    /// Leaves that a power cut had torn, or the disk could not read, and that are whole again.
    pub restored: u64,
    /// How long reading the checkpoint took.
    pub load: Duration,
    /// How long reading the log and applying commits took.
    pub replay: Duration,
}

/// A tree, as a checkpoint has it.
pub(super) struct Loaded<E: Environment> {
    pub space: Arc<Space<E>>,
    pub keyspaces: Keyspaces<E>,
    durable: Durable<E>,
    /// The first commit that may have to be applied, and the one behind the last of which something is there.
    pub first: u64,
    pub end: u64,
    /// Bytes of changes that were applied to it.
    pub changes: usize,
    pub commits: u64,
}

impl<E: Environment> Loaded<E> {
    /// What there is before the first commit.
    fn empty() -> Loaded<E> {
        Loaded {
            space: Space::new(),
            keyspaces: Keyspaces {
                all: Default::default(),
                next: 1,
                protection: ProtectionChoice::default(),
                buffer_percent: 0,
                changed: 0,
            },
            durable: Durable {
                root: None,
                groups: Vec::new(),
                copies: None,
            },
            first: 1,
            end: 1,
            changes: 0,
            commits: 0,
        }
    }
}

/// Reads the tree that a control record leads to.
fn load<E: Environment>(data: &DataFile<E>, control: &Control) -> Result<Loaded<E>, Error> {
    let granule = u64::from(control.granule);
    let size = data
        .file
        .size()
        .map_err(Error::io("look at the data file"))?;
    if size < control.end {
        let what = "it is cut off";
        return Err(Error::Corrupt {
            file: PathBuf::from(&data.name),
            offset: size,
            what: what.to_owned(),
        });
    }
    let space = Space::<E>::new();
    space.grow(size / granule * granule);
    let hold = |pointer: Pointer| {
        let extent = space.take_at(pointer.offset, pointer.extent(granule));
        let extent = extent.ok_or_else(|| data.corrupt(pointer, "a page lies over another"))?;
        Ok(Page::new(pointer, extent))
    };
    let hold_run = |entry: RunEntry| {
        let (start, end) = (entry.start(granule), control.end);
        let is_within = start + entry.bytes <= end;
        let extent = is_within.then(|| space.take_at(start, entry.bytes));
        let extent = extent.flatten();
        let what = "a run lies over another page, or behind the end of the data file";
        let extent = extent.ok_or_else(|| data.corrupt(entry.index, what))?;
        Ok(Run::new(entry, extent))
    };
    let no_sense = |pointer: Pointer| data.corrupt(pointer, "what is in the page makes no sense");
    let (raw, _) = data.read(control.root, Kind::Root, control)?;
    let root = Root::decode(&raw, granule).ok_or_else(|| no_sense(control.root))?;
    let mut copies = None;
    if let Some(spans) = root.copies {
        let hold = |span: Span| {
            let is_within = span.bytes > 0 && span.offset + span.bytes <= control.end;
            let extent = is_within.then(|| space.take_at(span.offset, span.bytes));
            extent.flatten().map(Arc::new)
        };
        let [Some(one), Some(other)] = spans.map(hold) else {
            return Err(no_sense(control.root));
        };
        copies = Some(Copies::durable([one, other]));
    }
    let mut loaded = Loaded {
        durable: Durable {
            root: Some(hold(control.root)?),
            groups: Vec::new(),
            copies,
        },
        first: root.first,
        end: root.end,
        ..Loaded::empty()
    };
    loaded.keyspaces.next = root.next_keyspace;
    loaded.keyspaces.protection = root.protection;
    loaded.keyspaces.buffer_percent = root.buffer_percent;
    for keyspace in root.keyspaces {
        let mut groups = Vec::new();
        let lows: Vec<_> = keyspace
            .groups
            .iter()
            .map(|entry| entry.low.clone())
            .collect();
        for (index, entry) in keyspace.groups.into_iter().enumerate() {
            let mut group = Group {
                watermark: entry.watermark,
                ..Group::empty()
            };
            if let Some(pointer) = entry.page {
                let (raw, _) = data.read(pointer, Kind::Group, control)?;
                let list = take_leaves(&raw, granule).ok_or_else(|| no_sense(pointer))?;
                let next = lows.get(index + 1);
                let is_within =
                    |low: &Arc<[u8]>| *low >= entry.low && next.is_none_or(|next| low < next);
                if !list.iter().all(|leaf| is_within(&leaf.low)) {
                    return Err(no_sense(pointer));
                }
                group.page = Some(hold(pointer)?);
                let slots = list.into_iter().map(|leaf| {
                    let pointer = leaf.pointer;
                    if pointer.offset + pointer.extent(granule) > control.end {
                        let what = "a page is behind the end of the data file";
                        return Err(data.corrupt(pointer, what));
                    }
                    let page = hold(pointer)?;
                    let (low, keys) = (leaf.low, leaf.keys);
                    Ok(Slot { low, page, keys })
                });
                group.leaves = Leaves::new(slots.collect::<Result<_, Error>>()?);
            }
            let runs = entry.runs.into_iter().map(&hold_run);
            group.runs = Arc::new(runs.collect::<Result<Runs<E>, Error>>()?);
            let held = (group.page.clone(), group.leaves.clone(), group.runs.clone());
            loaded.durable.groups.push(held);
            groups.push((entry.low, group));
        }
        let made = Keyspace::new(keyspace.id, keyspace.name, keyspace.options, groups);
        loaded.keyspaces.all.insert(keyspace.id, made);
    }
    loaded.space = space.clone();
    Ok(loaded)
}

/// What is in a directory, and nothing was changed.
pub(super) struct Found<E: Environment> {
    pub control: Option<Control>,
    pub data: Option<DataFile<E>>,
    pub loaded: Loaded<E>,
    pub examined: Examined,
    pub restart: StoreRestart,
    /// What is to be written at homes before anything else.
    pub recent: BTreeMap<u64, Vec<u8>>,
}

/// Reads a store: its last checkpoint, and what was committed since, of which so many bytes wait until they are applied.
pub(super) fn read<E: Environment>(
    environment: &E,
    directory: &Directory<E>,
    memory: usize,
) -> Result<Found<E>, Error> {
    let record = *directory.record().ok_or(Error::NoLog)?;
    let begin = environment.now();
    let mut restart = StoreRestart::default();
    let control = control::read(environment, directory.names())?;
    require_reachable(directory.names(), control.map_or(0, |control| control.data))?;
    let mut data = None;
    let mut loaded = match control {
        Some(control) => {
            if control.store != record.log {
                return Err(control::corrupt(0, "it is of another store"));
            }
            restart.checkpoint = control.checkpoint;
            let found = DataFile::find(environment, directory.names(), &control)?;
            let loaded = load(&found, &control)?;
            data = Some(found);
            loaded
        }
        None if record.first_lsn > 1 => {
            return Err(control::corrupt(0, "it is missing"));
        }
        None => Loaded::empty(),
    };
    restart.load = environment.now().saturating_sub(begin);
    if loaded.first < record.first_lsn {
        return Err(control::corrupt(
            0,
            "the log does not go back to its checkpoint any more",
        ));
    }
    let begin = environment.now();
    let mistakes = Mistakes {
        is_backwards: planted!(environment, OldestOfReplay),
        forgets_ranges: planted!(environment, ReplayForgetsRanges),
    };
    let mut repairs = Repairs::default();
    let there = data.as_ref().zip(control.as_ref());
    if let (Some((data, control)), Some(copies)) = (there, &loaded.durable.copies) {
        repairs.look_at_copies(data, control, &copies.spans(), &loaded.keyspaces)?;
    }
    if planted!(environment, IgnoreCopies) {
        repairs = Repairs::default();
    }
    let images = if planted!(environment, IgnoreImages) {
        None
    } else {
        there
    };
    let mut replay = Replay::new(&mut loaded, memory, mistakes, images, &mut repairs);
    let examined = directory.examine(&mut |visited| replay.take(&visited))?;
    replay.apply();
    if let Some(data) = &mut data {
        data.torn = std::mem::take(&mut repairs.torn);
    }
    restart.restored = data.as_ref().map_or(0, |data| data.torn.len() as u64);
    restart.commits = loaded.commits;
    restart.replay = environment.now().saturating_sub(begin);
    if loaded.end > examined.end.next_lsn {
        return Err(Error::LogLost {
            snapshot: format!("checkpoint {}", restart.checkpoint),
            end: Lsn(loaded.end),
            next: Lsn(examined.end.next_lsn),
        });
    }
    // Before anything is changed, and before a leaf is said to be damaged that only this program cannot read.
    for keyspace in loaded.keyspaces.all.values() {
        keyspace.options.check()?;
    }
    Ok(Found {
        control,
        data,
        loaded,
        examined,
        restart,
        recent: repairs.recent,
    })
}

/// Opens a store, or makes one where there is none.
pub(super) fn open<E: Environment>(
    environment: &E,
    options: StoreOptions,
) -> Result<(Arc<Shared<E>>, StoreRestart), Error> {
    options.check()?;
    let storage = environment.storage();
    let made = storage.make_directory();
    made.map_err(Error::io("make the directory of a store"))?;
    let mut directory = Directory::lock(environment)?;
    directory.make(&options.log, 1, LogKind::Store)?;
    let found = read(environment, &directory, options.memory_bytes / 2)?;
    let Found {
        control,
        data,
        loaded,
        examined,
        restart,
        recent,
    } = found;
    let data = data.map(|data| data.number);
    let (first, end, next) = (loaded.first, loaded.end, examined.end.next_lsn);
    let names = directory.names().to_vec();
    let log = Log {
        shared: directory.begin(examined, options.log.clone())?,
    };
    // From here on the directory is changed.
    let granule = match &control {
        Some(control) => control.granule.into(),
        None => log.shared.geometry.granule,
    };
    let file = OnceLock::new();
    let mut control_file = None;
    let mut data_file = 0;
    if let (Some(control), Some(number)) = (control, data) {
        // A process that was killed may have left names, or a control record, to the kernel.
        data_file = number + 1;
        let name = data_name(data_file);
        let rename = || {
            storage.rename(&data_name(number), &name)?;
            storage.sync()?;
            storage.open(&name)
        };
        let opened = rename().map_err(|error| match error {
            error if is_full(&error) => Error::NoSpace { bytes: granule },
            error => Error::io("name the data file anew")(error),
        })?;
        let opened = DataFile {
            file: opened,
            number: data_file,
            name: name.clone(),
            torn: BTreeMap::new(),
        };
        opened.restore(&recent, granule)?;
        let _ = file.set(opened);
        if !planted!(environment, TrustControl) {
            let control = Control {
                data: data_file,
                ..control
            };
            control_file = Some(ControlFile::renew(environment, control)?);
            remove_others(environment, &names, number);
        }
    }
    // Or as much of it as there is: opening makes no file longer.
    let spare = loaded.durable.spare_bytes(granule);
    if !planted!(environment, SpareForAll) {
        loaded.space.keep_pieces(spare);
    }
    let commits = loaded.commits;
    let shared = Arc::new(Shared {
        environment: environment.clone(),
        granule,
        opened_at: next,
        space: loaded.space,
        data: file,
        growing: E::mutex(()),
        homes: E::mutex(Homes::new(loaded.durable.copies.clone())),
        unsettled: E::rw_lock(Arc::default()),
        cache: Cache::new(),
        keyspaces: E::rw_lock(loaded.keyspaces),
        committing: E::mutex(Committing {
            visible: next - 1,
            ..Committing::default()
        }),
        changes: AtomicUsize::new(loaded.changes),
        checkpoints: E::mutex(Checkpoints {
            durable: loaded.durable,
            number: restart.checkpoint,
            control: control_file,
            draft: None,
            data: data_file,
            end,
            attempts: 0,
            most_debt: u64::MAX,
            most_groups: usize::MAX,
            failure: None,
        }),
        helper: Helpers::new(1),
        readers: Helpers::new(READERS),
        has_readers: AtomicBool::new(false),
        work: E::mutex(Work {
            is_closing: false,
            tried: 0,
            taken_by_keys: 0,
            taken_by_ranges: 0,
            failure: None,
            threads: Vec::new(),
        }),
        // Not before it is known how leaves are to be written.
        is_due: AtomicBool::new(false),
        due: Waiters::new(),
        limit: AtomicUsize::new(options.memory_bytes / 2),
        is_appended_to: AtomicBool::new(false),
        room: Waiters::new(),
        schedule: E::mutex(Schedule::new(
            first,
            Duration::ZERO,
            commits,
            restart.replay,
        )),
        tally: E::mutex(Tally::default()),
        commits: AtomicU64::new(0),
        room_made: E::mutex(RoomMade::default()),
        logical_bytes: AtomicU64::new(0),
        pieces: AtomicU64::new(0),
        auto: E::mutex(None),
        closing: EventCount::new(),
        is_closing: AtomicBool::new(false),
        options,
        log,
    });
    tracing::debug!(?restart, "the store is open");
    shared.make_room_for_removals()?;
    let started = shared
        .start()
        .and_then(|()| match shared.options.protection {
            // What was chosen by measuring stays, until something else is asked for, or it cannot be done where the store was moved.
            Some(Protection::Auto)
                if shared.protection().measured.is_some() && shared.is_choice_possible() =>
            {
                Ok(())
            }
            Some(asked) => match shared.set_protection(asked) {
                // Where nothing can be tried, what it has stays; if that cannot be done any more, what can be done everywhere.
                Err(Error::NoSpace { .. }) if asked == Protection::Auto => {
                    if shared.is_choice_possible() {
                        Ok(())
                    } else {
                        shared.set_protection(Protection::Shadow).map(drop)
                    }
                }
                set => set.map(drop),
            },
            None => Ok(()),
        });
    let started = started.and_then(|()| match shared.options.buffer {
        Some(StoreBuffer::Percent(percent)) => shared.set_buffer_percent(percent),
        Some(StoreBuffer::Auto { most }) => shared.set_buffer_auto(most),
        None => Ok(()),
    });
    let usable = started.and_then(|()| shared.require_all_protectable());
    if let Err(error) = usable {
        // Those that were started have it too.
        let _ = shared.close();
        return Err(error);
    }
    // Whoever turned the buffer down was told that what is too much will be merged.
    if shared.changes.load(Ordering::Relaxed) > shared.most_changes() || shared.debt() > 0 {
        shared.ask();
    }
    Ok((shared, restart))
}

/// Removes data files that were given up, and whose names a sync that failed did not take away.
fn remove_others<E: Environment>(environment: &E, names: &[String], before: u64) {
    let numbers = names.iter().filter_map(|name| data_number(name));
    for number in numbers.filter(|number| *number < before) {
        let name = data_name(number);
        // It is not needed; if it stays it is found when the store is opened.
        if let Err(error) = environment.storage().remove(&name) {
            tracing::warn!(%error, name, "a data file that is not needed cannot be removed");
        }
    }
}
