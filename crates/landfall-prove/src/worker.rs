//! Checks one crash state after the other: make it, mount it, let the subject recover, judge.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use landfall_os::{DeviceKind, Filesystem};
use landfall_recorder::Recording;
use landfall_recorder::crash::{Choice, Layout, StateName, Stretch};

use crate::Stop;
use crate::check_process::{CheckIn, CheckProcess, check_here};
use crate::checks::Checks;
use crate::file_identity::FileIdentity;
use crate::file_layout::files_below;
use crate::history::{Acknowledged, History};
use crate::judge::{Judgement, judge};
use crate::scratch_fs::{FilesystemSpec, Kind};
use crate::state_disk::{Recovered, StateDisk, is_full};
use crate::subject::{self, Subject, SubjectError};

/// What all workers share.
pub(crate) struct Case<'a> {
    /// The subject.
    pub subject: &'a dyn Subject,
    /// Where it is checked, if it is linked in.
    pub check_in: &'a CheckIn,
    /// The filesystem, with its mount options.
    pub filesystem: &'a FilesystemSpec,
    /// What was recorded.
    pub recording: &'a Recording,
    /// Whether the subject's creation is a part of that.
    pub creation: bool,
    /// What was found in which files, if equal ones are to be checked once.
    pub checks: Option<&'a Checks<subject::Recovered>>,
    /// What was said.
    pub history: &'a History,
    /// Whether to stop.
    pub stop: &'a Stop,
    /// For mount points, and for what does not fit into memory.
    pub directory: &'a Path,
    /// Bytes of a disk's contents that are kept in memory.
    pub memory: u64,
}

impl Case<'_> {
    /// What counts of what was found: while the subject is being created nobody was told that it is there.
    fn forgiven(&self, found: subject::Recovered, said: &Acknowledged) -> subject::Recovered {
        if !self.creation || !said.acknowledged.is_empty() {
            return found;
        }
        subject::Recovered {
            damage: None,
            ..found
        }
    }
}

/// What became of one state.
#[derive(Clone, Debug)]
pub(crate) enum Checked {
    /// It was checked.
    Judged(Judgement),
    /// It could not be, and why; nothing is known of it.
    Unchecked(String),
}

/// What a state's recovery came to, and what it wrote.
pub(crate) struct Recovery {
    /// What became of the state.
    pub checked: Checked,
    /// What had been said before the power went.
    pub said: Acknowledged,
    /// What was written to the disk since.
    pub recording: Recording,
}

/// One worker, with a disk and a mount point of its own. Its states' epochs never go back.
pub(crate) struct Worker<'a> {
    case: &'a Case<'a>,
    /// What checks the subject, if that is not this process. Goes first: it could keep the rest.
    check_process: Option<CheckProcess>,
    disk: StateDisk<'a>,
    /// Why nothing can be checked any more: the last state is still mounted, and a filesystem mounted again would be
    /// that one; or nobody is there to check the subject.
    stuck: Option<String>,
}

/// Which check of a state it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The first. What is known of equal files goes for it too.
    First,
    /// The second, since the first failed. What is found now goes for equal files, whatever was known of them.
    Second,
    /// One whose recovery is recorded, and so must be its own.
    Recorded,
}

impl<'a> Worker<'a> {
    pub fn new(case: &'a Case<'a>) -> io::Result<Worker<'a>> {
        let disk = StateDisk::new(case.recording, case.filesystem, case.memory, case.directory)?;
        let check_process = match case.check_in {
            CheckIn::AnotherProcess(program) if case.subject.is_linked_in() => {
                Some(CheckProcess::new(program, disk.private()))
            }
            _ => None,
        };
        Ok(Worker {
            case,
            check_process,
            disk,
            stuck: None,
        })
    }

    /// Makes the state, without mounting it.
    pub fn load(&mut self, name: &StateName) -> io::Result<()> {
        self.disk.load(name)
    }

    /// Writes the state that was loaded last into a file.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        self.disk.save(path)
    }

    /// Makes the state and checks it; `position` events had happened when the power went. A state that
    /// fails is made and checked once more, by the subject itself: what fails only once says nothing about power cuts.
    pub fn check(&mut self, name: &StateName, position: usize) -> Checked {
        let first = self.check_once(name, position, Turn::First);
        match &first {
            Checked::Judged(judgement) if !judgement.kept() => {}
            _ => return first,
        }
        // That it ended meanwhile keeps nobody from checking once more.
        if let Some(process) = &mut self.check_process {
            process.take_end();
        }
        match (first, self.check_once(name, position, Turn::Second)) {
            (Checked::Judged(first), Checked::Judged(second)) if second.kept() => {
                failed_once(name, &first)
            }
            (_, second) => second,
        }
    }

    /// Makes the state and checks it, as [`check`](Worker::check) does for the first time, and records what is written
    /// to the disk meanwhile: by the filesystem's recovery, the subject's, and whoever ends them in order.
    pub fn record_recovery(
        &mut self,
        name: &StateName,
        position: usize,
    ) -> Result<Recovery, String> {
        let said = self.make(name, position)?;
        let begun = self.disk.record();
        begun.map_err(|error| format!("its recovery cannot be recorded: {error}"))?;
        let checked = self.recover(name, &said, Turn::Recorded);
        let recording = self.disk.finish();
        Ok(Recovery {
            checked,
            said,
            recording: recording
                .map_err(|error| format!("its recovery cannot be recorded: {error}"))?
                .with_atomic_unit(self.case.recording.atomic_unit()),
        })
    }

    fn check_once(&mut self, name: &StateName, position: usize, turn: Turn) -> Checked {
        match self.make(name, position) {
            Ok(said) => self.recover(name, &said, turn),
            Err(why) => Checked::Unchecked(why),
        }
    }

    /// Makes the state; returns what had been said, or why it cannot be made.
    fn make(&mut self, name: &StateName, position: usize) -> Result<Acknowledged, String> {
        if let Some(why) = &self.stuck {
            return Err(why.clone());
        }
        let cannot = |error: io::Error| format!("the state cannot be made: {error}");
        self.load(name).map_err(cannot)?;
        let written = self.disk.walker().written(name).map_err(cannot)?;
        Ok(self.case.history.between(written, position))
    }

    /// Lets filesystem and subject recover from the state that was loaded last.
    fn recover(&mut self, name: &StateName, said: &Acknowledged, turn: Turn) -> Checked {
        let Recovered {
            mount,
            known_errors,
        } = match self.disk.recover() {
            Ok(Ok(recovered)) => recovered,
            Ok(Err(problem)) => return Checked::Judged(Judgement::of_filesystem(said, problem)),
            Err(error) => return Checked::Unchecked(format!("e2fsck cannot be run: {error}")),
        };
        if let Some(process) = &mut self.check_process {
            process.begin();
        }
        let checked = self.inspect(mount.target(), said, known_errors, turn);
        match mount.unmount() {
            Ok(()) => match (&checked, self.ended_since_asked()) {
                (Checked::Judged(judgement), Some(how)) if judgement.kept() => {
                    Checked::Unchecked(format!("the store had answered for {name}, and then {how}"))
                }
                _ => checked,
            },
            Err(error) => {
                let why = format!("{name} cannot be unmounted again: {error}");
                self.stuck = Some(why.clone());
                Checked::Unchecked(why)
            }
        }
    }

    /// How the process that checks ended after it had answered for this state, if it did.
    fn ended_since_asked(&mut self) -> Option<String> {
        self.check_process.as_mut()?.end_since_asked()
    }

    /// Describes the filesystem as it was when the recording began.
    pub fn look(&mut self) -> io::Result<Filesystem> {
        self.disk.load_beginning()?;
        describe(&self.disk)
    }

    /// Which files lie where, at the end of the recording and at its beginning; nothing where the filesystem does not
    /// say.
    pub fn layout(&mut self) -> Layout {
        // Of btrfs the addresses are its own.
        if self.case.filesystem.kind == Kind::Btrfs {
            return Layout::default();
        }
        let before = self.files().unwrap_or_default();
        let at_end = self.load_end().and_then(|()| self.files());
        Layout::new(at_end.unwrap_or_default().into_iter().chain(before))
    }

    /// Makes what the disk held in the end if everything arrived.
    fn load_end(&mut self) -> io::Result<()> {
        let Some(last) = self.disk.walker().epochs().last() else {
            return Ok(());
        };
        let choice = Choice::Upto {
            writes: last.writes.len() as u32,
            sectors: 0,
        };
        let (cut, seed) = (last.cut, 0);
        self.load(&StateName { seed, cut, choice })
    }

    /// The blocks of the subject's files on the state that was loaded last.
    fn files(&self) -> io::Result<Vec<Stretch>> {
        let mount = self.disk.mount()?;
        let files = files_below(&home(mount.target()));
        mount.unmount()?;
        files
    }

    fn inspect(
        &mut self,
        root: &Path,
        said: &Acknowledged,
        known_errors: u32,
        turn: Turn,
    ) -> Checked {
        let is_silent = said.sent.is_empty() && said.acknowledged.is_empty();
        let found = if self.case.creation && is_silent {
            // It was being created: of that nothing is promised, and some servers never start on it.
            Ok(subject::Recovered::default())
        } else {
            self.find(root, said, turn)
        };
        let found = match found {
            Ok(found) => self.case.forgiven(found, said),
            Err(error) => return Checked::Unchecked(error.to_string()),
        };
        let mut judgement = judge(&found, said, self.case.subject.promise());
        let is_recorded = turn == Turn::Recorded;
        if let Err(problem) = self.disk.filesystem_works(root, known_errors, is_recorded) {
            judgement.add_filesystem(problem);
        }
        Checked::Judged(judgement)
    }

    /// What the subject finds, or has found in equal files.
    fn find(
        &mut self,
        root: &Path,
        said: &Acknowledged,
        turn: Turn,
    ) -> Result<subject::Recovered, SubjectError> {
        let (case, directory) = (self.case, home(root));
        let checks = case.checks;
        // What a full filesystem leaves room for is not told by its files.
        let checks = checks.filter(|_| turn != Turn::Recorded && !is_full(root));
        let shared = checks.and_then(|checks| {
            let files = FileIdentity::of(&directory, case.subject.reads_times());
            // Of files that cannot be read the subject may say more.
            Some((checks, files.ok()?))
        });
        match shared {
            None => self.ask(&directory),
            Some((checks, files)) if turn == Turn::First => {
                let promise = case.subject.promise();
                let keeps = |found: &subject::Recovered| {
                    judge(&case.forgiven(found.clone(), said), said, promise).kept()
                };
                checks.once(files, || self.ask(&directory), keeps)
            }
            Some((checks, files)) => {
                let found = self.ask(&directory)?;
                checks.put(files, found.clone());
                Ok(found)
            }
        }
    }

    /// Has the subject recover and read everything back.
    fn ask(&mut self, directory: &Path) -> Result<subject::Recovered, SubjectError> {
        let stop = self.case.stop;
        match &mut self.check_process {
            Some(process) => process.check(directory, stop).unwrap_or_else(|why| {
                self.stuck = Some(why.clone());
                Err(SubjectError(why))
            }),
            None => check_here(self.case.subject, directory, stop),
        }
    }
}

/// What is known of a state that failed, and then did not.
pub(crate) fn failed_once(name: &dyn Display, failed: &Judgement) -> Checked {
    let detail = failed.detail(failed.worst());
    Checked::Unchecked(format!(
        "{name} failed once and was whole when it was checked again: {detail}"
    ))
}

/// Describes the filesystem of the state that was loaded last.
pub(crate) fn describe(disk: &StateDisk<'_>) -> io::Result<Filesystem> {
    let mount = disk.mount()?;
    let mut filesystem = Filesystem::of(mount.target())?;
    for device in &mut filesystem.devices {
        device.kind = DeviceKind::Recorder;
    }
    mount.unmount()?;
    Ok(filesystem)
}

/// The subject's directory on a filesystem.
pub(crate) fn home(root: &Path) -> PathBuf {
    root.join("subject")
}
