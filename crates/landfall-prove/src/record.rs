//! Runs a subject on a recorded filesystem.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use landfall_os::sync_filesystem;
use landfall_recorder::{ClientMark, Fault, Recorder, Recording};

use crate::subject::{AckSink, Mark, Subject, SubjectError, parse_marks};
use crate::worker::home;
use crate::writeback::WritebackInjector;
use crate::{Error, Stop};

/// How the subject is run.
pub(crate) struct Workload<'a> {
    /// Transactions that it may send.
    pub transactions: u64,
    /// Whether the subject's creation is recorded too.
    pub creation: bool,
    /// What goes wrong with the device besides losing power.
    pub faults: &'a [Fault],
    /// Whether write-back is injected between transactions, and from which seed.
    pub writeback: Option<u64>,
}

/// Injects write-back once.
pub(crate) type Inject = Box<dyn FnMut() + Send>;

/// What came of it.
pub(crate) struct Recorded {
    pub recording: Recording,
    /// Why the subject ended before it was told to, if it did.
    pub ended: Option<String>,
}

/// Prepares the subject on the filesystem mounted at `root`, and records what it does there: then, or from the beginning.
pub(crate) fn record(
    recorder: &Recorder,
    root: &Path,
    subject: &dyn Subject,
    workload: &Workload<'_>,
    stop: &Stop,
) -> Result<Recorded, Error> {
    let home = home(root);
    fs::create_dir(&home).map_err(Error::io("cannot create the subject's directory"))?;
    let begin = || {
        File::open(root)
            .and_then(|root| sync_filesystem(&root))
            .map_err(Error::io("cannot sync the filesystem"))?;
        recorder
            .record()
            .map_err(Error::io("cannot begin to record"))?;
        recorder.set_faults(workload.faults.to_vec());
        Ok::<(), Error>(())
    };
    // Before anything can fail: it is none of the subject's.
    let injector = match workload.writeback {
        Some(seed) => {
            let mut injector = WritebackInjector::new(root, seed)
                .map_err(Error::io("cannot make the write-back injector's file"))?;
            // A device that refuses is the subject's to meet.
            let inject: Inject = Box::new(move || drop(injector.inject()));
            Some(inject)
        }
        None => None,
    };
    if workload.creation {
        begin()?;
    }
    let result = match subject.prepare(&home, stop) {
        Ok(()) => {
            if !workload.creation {
                begin()?;
            }
            let run = |sink: &mut dyn AckSink| subject.run(&home, sink, stop);
            // The injector goes: its file would keep the filesystem from being unmounted.
            run_workload(recorder, workload.transactions, injector, stop, run)
        }
        // A device that fails while it is created.
        Err(error) if workload.creation && !workload.faults.is_empty() => Ok(Err(error)),
        Err(_) if stop.is_requested() => Err(Error::Stopped),
        Err(error) => Err(Error::Subject(format!(
            "{} cannot be prepared: {error}",
            subject.name()
        ))),
    };
    recorder.set_faults(Vec::new());
    let ran = result?;
    let recording = recorder
        .finish()
        .map_err(Error::io("cannot keep the recording"))?;
    match ran {
        _ if stop.is_requested() => Err(Error::Stopped),
        Ok(()) => Ok(Recorded {
            recording,
            ended: None,
        }),
        // A broken device is met like that; what had been acknowledged before must be there all the same.
        Err(error) if !workload.faults.is_empty() => Ok(Recorded {
            recording,
            ended: Some(error.to_string()),
        }),
        Err(error) => Err(Error::Subject(format!(
            "{} cannot be run: {error}",
            subject.name()
        ))),
    }
}

/// Has `run` run transactions, at most so many, and puts what it and the programs that it starts say among the writes of
/// `recorder`; returns what became of it. What they say that is no mark is an error.
pub(crate) fn run_workload(
    recorder: &Recorder,
    most: u64,
    injector: Option<Inject>,
    stop: &Stop,
    run: impl FnOnce(&mut dyn AckSink) -> Result<(), SubjectError>,
) -> Result<Result<(), SubjectError>, Error> {
    let runner = WorkloadRunner {
        recorder,
        most,
        injector: Mutex::new(injector),
        stop,
        sent: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        nonsense: Mutex::new(None),
    };
    let runner = &runner;
    let marks = recorder.listen();
    let (injections, wanted) = sync_channel(1);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| runner.hear(marks));
        // Ends when the subject has ended, and the clients' sink with it.
        scope.spawn(move || wanted.iter().for_each(|()| runner.inject()));
        let _until_it_ends = Listening(recorder);
        run(&mut Clients { runner, injections })
    });
    match lock(&runner.nonsense).take() {
        Some(nonsense) if !stop.is_requested() => Err(Error::Subject(nonsense)),
        _ => Ok(result),
    }
}

/// Ends the thread that hears of marks when the subject has ended, also by a panic.
struct Listening<'a>(&'a Recorder);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.stop_listening();
    }
}

/// Sends transactions, and puts what is said among the device's writes.
struct WorkloadRunner<'a> {
    recorder: &'a Recorder,
    most: u64,
    injector: Mutex<Option<Inject>>,
    stop: &'a Stop,
    sent: AtomicU64,
    /// Of those, by this process.
    answered: AtomicU64,
    /// By another process.
    acknowledged: AtomicU64,
    /// What another process wrote to the mark file that was no mark.
    nonsense: Mutex<Option<String>>,
}

impl WorkloadRunner<'_> {
    /// Injects write-back before each mark of another process lets it go on.
    fn hear(&self, marks: Receiver<ClientMark>) {
        for mark in marks {
            match parse_marks(&mark.bytes) {
                Ok(said) => {
                    let acknowledged = said
                        .iter()
                        .filter(|mark| matches!(mark, Mark::Acknowledged(_)));
                    let count = acknowledged.count() as u64;
                    self.acknowledged.fetch_add(count, Ordering::Relaxed);
                    if count > 0 {
                        self.inject();
                    }
                }
                Err(error) => {
                    lock(&self.nonsense).get_or_insert(error.to_string());
                }
            }
        }
    }

    fn inject(&self) {
        if let Some(inject) = lock(&self.injector).as_mut() {
            inject();
        }
    }
}

/// What the clients of this process tell, one after the other: they share it through a lock.
struct Clients<'a> {
    runner: &'a WorkloadRunner<'a>,
    /// Has write-back injected while they go on; one waits at most.
    injections: SyncSender<()>,
}

impl AckSink for Clients<'_> {
    fn send(&mut self) -> Option<u64> {
        let runner = self.runner;
        let sent = runner.sent.load(Ordering::Relaxed);
        if sent >= runner.most || runner.stop.is_requested() {
            return None;
        }
        if sent > runner.answered.load(Ordering::Relaxed) {
            // Another client may be about to acknowledge. It must not wait here for what is injected: a flush would make
            // durable before its word what is not so by its own doing.
            let _ = self.injections.try_send(());
        } else {
            runner.inject();
        }
        runner.sent.store(sent + 1, Ordering::Relaxed);
        self.tell(Mark::Sent(sent + 1));
        Some(sent + 1)
    }

    fn acknowledge(&mut self, transaction: u64) {
        self.runner.answered.fetch_add(1, Ordering::Relaxed);
        self.tell(Mark::Acknowledged(transaction));
    }

    fn tell(&mut self, mark: Mark) {
        self.runner.recorder.mark(format!("{mark}\n").as_bytes());
    }

    fn mark_file(&self) -> Option<PathBuf> {
        Some(self.runner.recorder.mark_path())
    }

    fn is_enough(&self) -> bool {
        self.runner.acknowledged.load(Ordering::Relaxed) >= self.runner.most
            || self.runner.stop.is_requested()
            || lock(&self.runner.nonsense).is_some()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    use landfall_recorder::{Offer, Options};

    use super::*;
    use crate::scratch_fs::require_recorder;

    #[test]
    fn who_has_committed_does_not_wait_for_write_back_that_another_client_meets() {
        if let Err(why) = require_recorder(&std::env::temp_dir(), Offer::Flushes) {
            assert!(std::env::var_os("LANDFALL_NO_SKIP").is_none(), "{why}");
            eprintln!("skipped: {why}");
            return;
        }
        let recorder = Recorder::start(&Options::new(1 << 20)).unwrap();
        let (acknowledged, wait) = channel();
        let mut is_first = true;
        let inject: Inject = Box::new(move || {
            // Nobody is under way before the first.
            if !std::mem::take(&mut is_first) {
                let waited = wait.recv_timeout(Duration::from_secs(60));
                assert_ne!(waited, Err(RecvTimeoutError::Timeout), "it is waited for");
            }
        });
        let run = |sink: &mut dyn AckSink| {
            assert_eq!([sink.send(), sink.send()], [Some(1), Some(2)]);
            sink.acknowledge(1);
            acknowledged.send(())?;
            Ok(())
        };
        run_workload(&recorder, 2, Some(inject), &Stop::default(), run)
            .unwrap()
            .unwrap();
    }
}
