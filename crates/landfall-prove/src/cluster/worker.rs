//! Checks one state of a cluster after the other: make each node's disk, mount it, let all recover, judge.

use std::io;
use std::path::{Path, PathBuf};

use landfall_os::Filesystem;
use landfall_recorder::SiteRecording;
use landfall_recorder::crash::WriteFate;

use super::judge::judge_cluster;
use super::name::{ClusterStateName, Fate};
use super::rolling;
use super::survey::node_state;
use super::{ClusterSubject, Found};
use crate::Stop;
use crate::checks::Checks;
use crate::file_identity::FileIdentity;
use crate::history::{Acknowledged, History};
use crate::judge::Judgement;
use crate::scratch_fs::FilesystemSpec;
use crate::state_disk::{Recovered, StateDisk};
use crate::subject::SubjectError;
use crate::worker::{Checked, describe, home};

/// What all workers share.
pub(super) struct Case<'a> {
    pub subject: &'a dyn ClusterSubject,
    pub filesystem: &'a FilesystemSpec,
    pub recording: &'a SiteRecording,
    pub history: &'a History,
    /// Nodes that ended before the others, each with how many events of all nodes there were by then.
    pub ended: &'a [(usize, usize)],
    /// What was found in which files, if equal ones are to be checked once.
    pub checks: Option<&'a Checks<Found>>,
    pub stop: &'a Stop,
    pub directory: &'a Path,
    /// Bytes of each disk's contents that are kept in memory.
    pub memory: u64,
}

impl Case<'_> {
    /// How many events of each node there were when the power went.
    pub fn cut(&self, moment: usize) -> Vec<usize> {
        rolling::cut(self.recording, self.ended, moment)
    }
}

/// One worker, with a disk and a mount point for each node. Its thread has a network of its own.
pub(super) struct Worker<'a> {
    case: &'a Case<'a>,
    nodes: Vec<NodeDisk<'a>>,
    /// Why nothing can be checked any more: a state is still mounted.
    stuck: Option<String>,
}

struct NodeDisk<'a> {
    disk: StateDisk<'a>,
    /// The epoch that it is in.
    cut: u32,
}

impl<'a> Worker<'a> {
    pub fn new(case: &'a Case<'a>) -> io::Result<Worker<'a>> {
        let nodes = 0..case.recording.devices().len();
        Ok(Worker {
            case,
            nodes: nodes
                .map(|node| NodeDisk::new(case, node))
                .collect::<io::Result<_>>()?,
            stuck: None,
        })
    }

    /// Describes the first node's filesystem as it was when the recording began.
    pub fn look(&mut self) -> io::Result<Filesystem> {
        let disk = &mut self.nodes[0].disk;
        disk.load_beginning()?;
        describe(disk)
    }

    /// What became of a node's writes that it had not flushed when the power went, in order.
    pub fn fates(&mut self, node: usize, name: &ClusterStateName) -> io::Result<Vec<WriteFate>> {
        let events = self.case.cut(name.moment)[node];
        let walker = self.nodes[node].disk.walker();
        let state = node_state(walker, name.seed, name.fates[node], events);
        let mut fates = walker.fates_before(&state, events)?;
        fates.retain(|fate| fate.event < events);
        Ok(fates)
    }

    /// Makes the state and checks it. One that fails is made and checked once more, by the cluster itself. That something was
    /// lost needs to be seen once; that a cluster did not come back, or did not agree, twice: it may have had no time.
    pub fn check(&mut self, name: &ClusterStateName) -> Checked {
        let first = self.check_once(name, self.case.checks, &mut |_| ());
        let Checked::Judged(judgement) = &first else {
            return first;
        };
        if judgement.kept() {
            return first;
        }
        match (&first, self.check_once(name, None, &mut |_| ())) {
            (Checked::Judged(first), Checked::Judged(second)) if second.kept() => {
                if first.lost.is_empty() {
                    let detail = first.detail(first.worst());
                    return Checked::Unchecked(format!(
                        "{name} failed once and was whole when it was checked again: {detail}"
                    ));
                }
                let mut first = first.clone();
                let worst = first.worst();
                let seen =
                    "it was there when the same state was started once more: who is faster decides";
                first.details.push((worst, seen.to_owned()));
                Checked::Judged(first)
            }
            (_, second @ Checked::Judged(_)) => second,
            _ => first,
        }
    }

    /// Whether a transaction is there in a state, or was until a late node joined; `None`: that cannot be told.
    pub fn has(&mut self, name: &ClusterStateName, transaction: u64) -> Option<bool> {
        let mut has = None;
        let checked = self.check_once(name, self.case.checks, &mut |found| {
            let is_there = [&found.recovered.whole, &found.taken]
                .iter()
                .any(|some| some.contains(&transaction));
            has = found.unavailable.is_none().then_some(is_there);
        });
        match checked {
            Checked::Judged(_) => has,
            Checked::Unchecked(_) => None,
        }
    }

    fn check_once(
        &mut self,
        name: &ClusterStateName,
        checks: Option<&Checks<Found>>,
        see: &mut dyn FnMut(&Found),
    ) -> Checked {
        if let Some(why) = &self.stuck {
            return Checked::Unchecked(why.clone());
        }
        if let Err(error) = self.make(name) {
            return Checked::Unchecked(format!("the state cannot be made: {error}"));
        }
        // Whatever was sent before the power went may be there.
        let said = self.case.history.at(name.moment);
        let mut mounts = Vec::new();
        for (node, one) in self.nodes.iter().enumerate() {
            match one.disk.recover() {
                Ok(Ok(recovered)) => mounts.push(recovered),
                Ok(Err(problem)) => {
                    let problem = format!("node {node}: {problem}");
                    return Checked::Judged(Judgement::of_filesystem(&said, problem));
                }
                Err(error) => {
                    return Checked::Unchecked(format!("e2fsck cannot be run: {error}"));
                }
            }
        }
        let roots: Vec<&Path> = mounts.iter().map(|one| one.mount.target()).collect();
        let mut checked = self.ask(name, &roots, &said, checks, see);
        if let Checked::Judged(judgement) = &mut checked {
            for (node, one) in self.nodes.iter().enumerate() {
                let Recovered {
                    mount,
                    known_errors,
                } = &mounts[node];
                let works = one
                    .disk
                    .filesystem_works(mount.target(), *known_errors, false);
                if let Err(problem) = works {
                    judgement.add_filesystem(format!("node {node}: {problem}"));
                }
            }
        }
        for one in mounts {
            if let Err(error) = one.mount.unmount() {
                let why = format!("{name} cannot be unmounted again: {error}");
                self.stuck = Some(why.clone());
                checked = Checked::Unchecked(why);
            }
        }
        checked
    }

    /// Makes each node's disk.
    fn make(&mut self, name: &ClusterStateName) -> io::Result<()> {
        let recording = self.case.recording;
        let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
        if name.fates.len() != self.nodes.len() {
            return Err(wrong("the recording has another number of nodes"));
        }
        if name
            .boot
            .late()
            .iter()
            .any(|node| *node >= self.nodes.len())
        {
            return Err(wrong("the recording has no node of that number"));
        }
        if name.moment > recording.events() {
            return Err(wrong("the recording has not so many events"));
        }
        let cut = self.case.cut(name.moment);
        for (node, fate) in name.fates.iter().enumerate() {
            let events = match fate {
                Fate::Begun => 0,
                Fate::Kept => recording.devices()[node].events().len(),
                Fate::Cut(_) => cut[node],
            };
            let one = &mut self.nodes[node];
            let state = node_state(one.disk.walker(), name.seed, *fate, events);
            if state.cut < one.cut {
                *one = NodeDisk::new(self.case, node)?;
            }
            one.cut = state.cut;
            one.disk.load_before(&state, events)?;
        }
        Ok(())
    }

    fn ask(
        &self,
        name: &ClusterStateName,
        roots: &[&Path],
        said: &Acknowledged,
        checks: Option<&Checks<Found>>,
        see: &mut dyn FnMut(&Found),
    ) -> Checked {
        let Case { subject, stop, .. } = self.case;
        let directories: Vec<PathBuf> = roots.iter().map(|root| home(root)).collect();
        let check =
            || -> Result<Found, SubjectError> { subject.check(&directories, &name.boot, stop) };
        let files = directories
            .iter()
            .map(|directory| FileIdentity::of(directory, subject.reads_times()));
        let found = match (checks, files.collect::<io::Result<Vec<FileIdentity>>>()) {
            (Some(checks), Ok(files)) => {
                let files = FileIdentity::joined(&files, &name.boot.to_string());
                checks.once(files, check)
            }
            _ => check(),
        };
        match found {
            Ok(found) => {
                see(&found);
                Checked::Judged(judge_cluster(&found, said, subject.promise()))
            }
            Err(error) => Checked::Unchecked(error.to_string()),
        }
    }
}

impl<'a> NodeDisk<'a> {
    fn new(case: &Case<'a>, node: usize) -> io::Result<NodeDisk<'a>> {
        let recording = &case.recording.devices()[node];
        let disk = StateDisk::new(recording, case.filesystem, case.memory, case.directory)?;
        Ok(NodeDisk { disk, cut: 0 })
    }
}
