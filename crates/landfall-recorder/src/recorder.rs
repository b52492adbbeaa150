//! A block device that remembers what was done to it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use landfall_os::{BlockNode, PrivateDirectory};

use crate::answer::{Answer, Due};
use crate::common_order::{CommonOrder, Part};
use crate::device::{Access, Answered, Device, Done};
use crate::event::{Span, list_bytes};
use crate::fault::{Faults, FlushFate, Refusal};
use crate::latency::{Latency, Profile, Request};
use crate::recording::copy_written;
use crate::served_device::{Offer, ServedDevice};
use crate::spill_file::{SpillFile, nameless};
use crate::wear::Writes;
use crate::{Counts, Event, EventKind, Fault, Recording};

/// Bytes of contents, and of events, that are kept in memory if nothing else is said.
pub(crate) const DEFAULT_MEMORY: u64 = 256 << 20;

/// How a recorder is made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of the device, a multiple of 4096.
    pub size: u64,
    /// Bytes of contents and of recorded events that are each kept in memory; what is more goes to
    /// disk.
    pub memory: u64,
    /// Directory for the mount point and for what does not fit into memory. What is put there is gone
    /// when the recorder is.
    pub directory: PathBuf,
    /// How long the device takes; `None`: as long as it takes.
    pub latency: Option<Profile>,
    /// How long a write or a flush is held back unanswered, where `latency` says nothing. A flush does
    /// not [count in](EventKind::Flush) what it meets unanswered, or what comes meanwhile: the longer, the
    /// more of a program's races between a write and a flush are recorded.
    pub hold: Duration,
    /// What the kernel is offered.
    pub offer: Offer,
    /// The order that it shares with other recorders, if it does.
    pub order: Option<CommonOrder>,
}

impl Options {
    /// A device of `size` bytes that is as fast as this machine, with 256 MiB of memory each for
    /// contents and events and the system's temporary directory.
    pub fn new(size: u64) -> Options {
        Options {
            size,
            memory: DEFAULT_MEMORY,
            directory: std::env::temp_dir(),
            latency: None,
            hold: Duration::ZERO,
            offer: Offer::default(),
            order: None,
        }
    }
}

/// A block device that remembers every write and flush. Needs root, FUSE, and loop devices or what else is
/// [offered](Options::offer).
///
/// It counts from the beginning and records once [`record`](Recorder::record) is called. Dropping it
/// takes the device away; unmount it first.
#[derive(Debug)]
pub struct Recorder {
    device: ServedDevice,
    shared: Arc<Shared>,
    directory: PathBuf,
    // Holds the mount point: goes last.
    _private: PrivateDirectory,
}

/// What a client wrote to the mark file, and what lets it go on.
pub struct ClientMark {
    /// What it wrote.
    pub bytes: Vec<u8>,
    /// The client waits until this is dropped.
    pub answer: Answer,
}

#[derive(Debug)]
struct Shared {
    size: u64,
    contents: File,
    state: Mutex<State>,
}

/// A recorder records once.
#[derive(Debug)]
enum Stage {
    Before,
    /// With what the device held when it began.
    Recording(File),
    /// The spill file could not be written: what was recorded is not whole. What the device held when it began is closed by whoever
    /// made it: whoever serves the device has descriptors of his own.
    Failed {
        error: io::Error,
        _base: Option<File>,
    },
    After,
}

#[derive(Debug)]
struct State {
    counts: Counts,
    faults: Faults,
    latency: Option<Latency>,
    hold: Duration,
    /// The beginning of the latency's clock, which never goes back.
    started: Instant,
    /// The beginning of the recording's.
    begin: Instant,
    spill: SpillFile,
    recording: Stage,
    /// Events recorded.
    events: u64,
    /// Where they are among those of other recorders.
    part: Option<Part>,
    /// The recorded writes that have not been answered, in order.
    in_flight: Vec<InFlight>,
    /// The flushes that have not been answered.
    flushes: Vec<FlushInFlight>,
    /// Where was written, if anybody asked for that.
    writes: Option<Writes>,
    listener: Option<Sender<ClientMark>>,
}

/// A write that has not been answered.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    event: u64,
    access: Access,
}

/// A flush that has not been answered.
#[derive(Clone, Debug)]
struct FlushInFlight {
    number: u64,
    /// The recorded writes that it does not count in, in order: those that were in flight when it arrived, and those that came since.
    uncounted: Vec<u64>,
}

impl Recorder {
    /// Makes the device. The calling thread, and those that it starts afterwards, get mounts of their
    /// own (see [`landfall_os::isolate_mounts`]).
    pub fn start(options: &Options) -> io::Result<Recorder> {
        let size = options.size;
        if size == 0 || !size.is_multiple_of(4096) {
            let text = "a device's size is a multiple of 4096";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let shared = Arc::new(Shared::new(options)?);
        let keep = shared.descriptors();
        let private = PrivateDirectory::create_in(&options.directory)?;
        let mount = private.open_directory("device")?;
        let device = ServedDevice::start(shared.clone(), keep, &mount, options.offer)?;
        if options.latency.as_ref().is_some_and(Profile::is_spinning) {
            device.node().set_rotational()?;
        }
        Ok(Recorder {
            device,
            shared,
            directory: options.directory.clone(),
            _private: private,
        })
    }

    /// The block device.
    pub fn device(&self) -> &BlockNode {
        self.device.node()
    }

    /// The directory that was named for it.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file that any program can write to: each write is a mark, with its exact place among the
    /// device's writes and flushes.
    pub fn mark_path(&self) -> PathBuf {
        self.device.mark_path()
    }

    /// What the device was asked to do so far.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts
    }

    /// Marks this moment.
    pub fn mark(&self, bytes: &[u8]) {
        self.shared.lock().mark(bytes);
    }

    /// Everything that clients write to the mark file from now on; each of them waits until its answer
    /// is dropped.
    pub fn listen(&self) -> Receiver<ClientMark> {
        let (sender, receiver) = channel();
        self.shared.lock().listener = Some(sender);
        receiver
    }

    /// Nobody hears of marks any more: the receiver of [`listen`](Recorder::listen) comes to its end.
    pub fn stop_listening(&self) {
        self.shared.lock().listener = None;
    }

    /// From now on these go wrong, and nothing else.
    pub fn set_faults(&self, faults: Vec<Fault>) {
        self.shared.lock().faults = Faults::new(faults);
    }

    /// Begins to record, which a recorder does once. What the device holds now counts as durable: sync
    /// the filesystem first.
    pub fn record(&self) -> io::Result<()> {
        self.shared.record(&self.directory)
    }

    /// Begins to keep where is written, 8 bytes for each write, for as long as [`take_writes`] is not
    /// called; whether it records or not. What was written before is [held](Writes::hold).
    ///
    /// # Errors
    ///
    /// Those of [`Writes::new`], and of looking for holes in what the device holds.
    ///
    /// [`take_writes`]: Recorder::take_writes
    pub fn keep_writes(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        let mut writes = Writes::new(self.shared.size)?;
        writes.hold_written(&self.shared.contents)?;
        state.writes = Some(writes);
        Ok(())
    }

    /// Where was written since [`keep_writes`](Recorder::keep_writes); `None` if that was not called
    /// since this last was.
    pub fn take_writes(&self) -> Option<Writes> {
        self.shared.lock().writes.take()
    }

    /// Bytes of events that did not fit into memory so far.
    pub fn spilled(&self) -> u64 {
        self.shared.lock().spill.spilled()
    }

    /// Ends the recording. The device goes on.
    pub fn finish(&self) -> io::Result<Recording> {
        self.shared.finish()
    }
}

impl Shared {
    fn new(options: &Options) -> io::Result<Shared> {
        let size = options.size;
        let contents = nameless(size <= options.memory, &options.directory)?;
        contents.set_len(size)?;
        let profile = options.latency.as_ref();
        let part = match &options.order {
            Some(order) => Some(order.join().ok_or(io::ErrorKind::QuotaExceeded)?),
            None => None,
        };
        Ok(Shared {
            size,
            contents,
            state: Mutex::new(State {
                counts: Counts::default(),
                faults: Faults::default(),
                latency: profile.map(|profile| Latency::new(profile, size)),
                hold: options.hold,
                started: Instant::now(),
                begin: Instant::now(),
                spill: SpillFile::new(options.memory, &options.directory)?,
                recording: Stage::Before,
                events: 0,
                part,
                in_flight: Vec::new(),
                flushes: Vec::new(),
                writes: None,
                listener: None,
            }),
        })
    }

    /// What it reads and writes.
    fn descriptors(&self) -> Vec<RawFd> {
        let mut descriptors = self.lock().spill.descriptors().to_vec();
        descriptors.push(self.contents.as_raw_fd());
        descriptors
    }

    fn record(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.lock();
        if !matches!(state.recording, Stage::Before) {
            return Err(io::Error::other("a recorder records once"));
        }
        let base = nameless(self.size <= state.spill.limit(), directory)?;
        base.set_len(self.size)?;
        copy_written(&self.contents, &base, self.size)?;
        let part = state.part.as_ref();
        state.begin = part.map_or_else(Instant::now, Part::begin);
        state.recording = Stage::Recording(base);
        Ok(())
    }

    fn finish(&self) -> io::Result<Recording> {
        let mut state = self.lock();
        match std::mem::replace(&mut state.recording, Stage::After) {
            Stage::Recording(base) => Recording::new(self.size, base, state.spill.copy()?),
            Stage::Failed { error, .. } => Err(error),
            Stage::Before | Stage::After => Err(io::Error::other("nothing is being recorded")),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Records an event, if anything is recorded; returns its place.
    fn put(&mut self, kind: EventKind, bytes: &[u8]) -> Option<u64> {
        if !matches!(self.recording, Stage::Recording(_)) {
            return None;
        }
        let at = self.begin.elapsed();
        let header = Event { kind, at }.header();
        let put = self
            .spill
            .append(&header)
            .and_then(|_| self.spill.append(bytes));
        if let Err(error) = put {
            let base = match std::mem::replace(&mut self.recording, Stage::After) {
                Stage::Recording(base) => Some(base),
                _ => None,
            };
            self.recording = Stage::Failed { error, _base: base };
        }
        if let Some(part) = &self.part {
            part.push();
        }
        self.events += 1;
        Some(self.events - 1)
    }

    fn mark(&mut self, bytes: &[u8]) {
        self.put(EventKind::Mark(Span::of(bytes)), bytes);
    }

    fn due(&mut self, request: Request) -> Due {
        let Some(latency) = &mut self.latency else {
            let is_read = matches!(request, Request::Read { .. });
            let is_held = !is_read && !self.hold.is_zero();
            return is_held.then(|| Instant::now() + self.hold);
        };
        let now = self.started.elapsed();
        let finished = latency.finish(now, request);
        // What takes no time must not be handed to another thread, which takes some.
        (finished > now).then(|| self.started + finished)
    }
}

impl Device for Shared {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<Due, Refusal> {
        self.contents
            .read_exact_at(into, offset)
            .map_err(|_| Refusal::Io)?;
        let mut state = self.lock();
        state.counts.reads += 1;
        state.counts.read_bytes += into.len() as u64;
        let len = into.len() as u64;
        Ok(state.due(Request::Read { offset, len }))
    }

    fn write(&self, offset: u64, bytes: &[u8], access: Access) -> Result<Done, Refusal> {
        let len = bytes.len() as u64;
        let mut state = self.lock();
        state.counts.writes += 1;
        state.counts.written_bytes += len;
        let refused = state.faults.write();
        // A forced write is a flush as well, of itself: a device that refuses or fakes others does the same with this one.
        let flush = match (refused, access) {
            (None, Access::Forced) => state.faults.flush(),
            _ => FlushFate::Done,
        };
        let refusal = match (refused, flush) {
            (Some(refusal), _) | (None, FlushFate::Refused(refusal)) => Some(refusal),
            _ if offset + len > self.size => Some(Refusal::NoSpace),
            _ => self
                .contents
                .write_all_at(bytes, offset)
                .err()
                .map(|_| Refusal::Io),
        };
        if let Some(refusal) = refusal {
            state.put(EventKind::Refused, &[]);
            return Err(refusal);
        }
        if let Some(writes) = &mut state.writes {
            writes.push(offset, len);
        }
        let data = Span::of(bytes);
        let event = state.put(EventKind::Write { offset, data }, bytes);
        for flush in &mut state.flushes {
            flush.uncounted.extend(event);
        }
        let access = match flush {
            // It is a write like others then, and no request to flush more than that.
            FlushFate::Lie => Access::Cached,
            _ => access,
        };
        state
            .in_flight
            .extend(event.map(|event| InFlight { event, access }));
        let due = state.due(Request::Write { offset, len });
        let request = event.map(Answered::Write);
        Ok(Done { due, request })
    }

    fn answering(&self, request: Answered) {
        let mut state = self.lock();
        match request {
            Answered::Write(event) => {
                let place = state.in_flight.iter().position(|one| one.event == event);
                let answered = place.map(|place| state.in_flight.remove(place));
                if answered.is_some_and(|one| one.access == Access::Forced) {
                    let list = list_bytes(&[event]);
                    let writes = Span::of(&list);
                    state.put(EventKind::Forced { writes }, &list);
                }
            }
            Answered::Flush(number) => {
                let place = state.flushes.iter().position(|one| one.number == number);
                if let Some(place) = place {
                    let list = list_bytes(&state.flushes.remove(place).uncounted);
                    let in_flight = Span::of(&list);
                    state.put(EventKind::Flush { in_flight }, &list);
                }
            }
        }
    }

    fn flush(&self) -> Result<Done, Refusal> {
        let mut state = self.lock();
        state.counts.flushes += 1;
        let number = state.counts.flushes;
        let request = match state.faults.flush() {
            FlushFate::Done => {
                let uncounted = state.in_flight.iter().map(|one| one.event).collect();
                state.flushes.push(FlushInFlight { number, uncounted });
                Some(Answered::Flush(number))
            }
            FlushFate::Lie => {
                state.put(EventKind::LyingFlush, &[]);
                None
            }
            FlushFate::Refused(refusal) => {
                state.put(EventKind::Refused, &[]);
                return Err(refusal);
            }
        };
        let due = state.due(Request::Flush);
        Ok(Done { due, request })
    }

    fn mark(&self, bytes: &[u8], answer: Answer) {
        let mut state = self.lock();
        state.mark(bytes);
        let mark = ClientMark {
            bytes: bytes.to_owned(),
            answer,
        };
        if let Some(listener) = &state.listener {
            // Without a listener any more the answer is sent as the mark is dropped.
            let _ = listener.send(mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forced_write_is_durable_when_it_is_answered_and_no_sooner() {
        let directory = std::env::temp_dir();
        let shared = Shared::new(&Options::new(8192)).unwrap();
        shared.record(&directory).unwrap();
        let write = |offset, access| shared.write(offset, &[7; 512], access).unwrap().request;
        let before = write(0, Access::Cached);
        let forced = write(512, Access::Forced);
        let flush = shared.flush().unwrap().request;
        for request in [flush, forced, before] {
            shared.answering(request.unwrap());
        }
        let recording = shared.finish().unwrap();
        assert_eq!(lists(&recording), [vec![0, 1], vec![1]]);
        assert_eq!(recording.counts(0, recording.events().len()).flushes, 1);
    }

    fn lists(recording: &Recording) -> Vec<Vec<usize>> {
        let events = recording.events().iter();
        let lists = events.filter_map(|event| match event.kind {
            EventKind::Flush { in_flight: list } | EventKind::Forced { writes: list } => {
                Some(recording.list(list).unwrap())
            }
            _ => None,
        });
        lists.collect()
    }

    #[test]
    fn a_flush_is_done_when_it_is_answered_and_counts_in_what_was_before_it() {
        let shared = Shared::new(&Options::new(8192)).unwrap();
        shared.record(&std::env::temp_dir()).unwrap();
        let write = |offset| {
            let done = shared.write(offset, &[7; 512], Access::Cached).unwrap();
            shared.answering(done.request.unwrap());
        };
        write(0);
        let first = shared.flush().unwrap().request.unwrap();
        shared.lock().mark(b"too early");
        write(512);
        let second = shared.flush().unwrap().request.unwrap();
        write(1024);
        shared.answering(second);
        shared.answering(first);
        let recording = shared.finish().unwrap();
        let kinds: Vec<_> = recording.events().iter().map(|event| event.kind).collect();
        assert!(matches!(
            kinds[..],
            [
                EventKind::Write { .. },
                EventKind::Mark(_),
                EventKind::Write { .. },
                EventKind::Write { .. },
                EventKind::Flush { .. },
                EventKind::Flush { .. }
            ]
        ));
        // The second was done first, and the first takes nothing back.
        assert_eq!(lists(&recording), [vec![3], vec![2, 3]]);
        let epochs = crate::crash::epochs(&recording).unwrap();
        let writes: Vec<_> = epochs.into_iter().map(|epoch| epoch.writes).collect();
        assert_eq!(writes, [vec![0, 2, 3], vec![3], vec![3]]);
    }

    #[test]
    fn a_device_that_lies_about_flushes_lies_about_forced_writes() {
        let directory = std::env::temp_dir();
        let shared = Shared::new(&Options::new(8192)).unwrap();
        shared.record(&directory).unwrap();
        shared.lock().faults = Faults::new(vec![Fault::LyingFlush]);
        let forced = shared.write(512, &[7; 512], Access::Forced).unwrap();
        shared.answering(forced.request.unwrap());
        let recording = shared.finish().unwrap();
        let kinds: Vec<_> = recording.events().iter().map(|event| event.kind).collect();
        assert!(matches!(kinds[..], [EventKind::Write { .. }]), "{kinds:?}");
        let counted = recording.counts(0, kinds.len());
        assert_eq!(counted, shared.lock().counts);
    }

    #[test]
    fn nothing_is_written_of_a_forced_write_that_is_refused_as_a_flush() {
        let shared = Shared::new(&Options::new(8192)).unwrap();
        shared.record(&std::env::temp_dir()).unwrap();
        shared.lock().faults = Faults::new(vec![Fault::FlushError(1)]);
        let refused = shared.write(512, &[7; 512], Access::Forced);
        assert!(matches!(refused, Err(Refusal::Io)));
        let mut bytes = [1; 512];
        shared.read(512, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 512]);
        let recording = shared.finish().unwrap();
        let kinds: Vec<_> = recording.events().iter().map(|event| event.kind).collect();
        assert_eq!(kinds, [EventKind::Refused]);
    }
}
