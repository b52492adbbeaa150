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
use crate::state_disk::{Recovered, StateDisk, is_full};
use crate::subject::SubjectError;
use crate::worker::{Checked, describe, failed_once, home};
use landfall_results::proof::Violation;

/// What all workers share.
pub(super) struct Case<'a> {
    pub subject: &'a dyn ClusterSubject,
    pub filesystem: &'a FilesystemSpec,
    pub recording: &'a SiteRecording,
    pub history: &'a History,
    /// Events of all nodes until the last of them was killed.
    pub killed_at: usize,
    /// Nodes that ended before the others, each with how many events of all nodes there were by then.
    pub ended: &'a [(usize, usize)],
    /// What was found in which files, if equal ones are to be checked once.
    pub checks: Option<&'a Checks<Found>>,
    /// How often a state is started until it fails: which node wins an election is a race.
    pub tries: usize,
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

/// Whether it may be seen of a cluster that had no time, or of a machine, and so must be seen twice.
fn needs_two(violation: Violation) -> bool {
    use Violation::{Damaged, Disagreed, Filesystem, Unavailable};
    matches!(violation, Unavailable | Disagreed | Damaged | Filesystem)
}

/// Whether anything is wrong that counts if it is seen once.
fn says_enough(judgement: &Judgement) -> bool {
    let mut details = judgement.details.iter();
    details.any(|(violation, _)| !needs_two(*violation))
}

/// Takes from a judgement that a filesystem was not well.
fn forget_filesystem(judgement: &mut Judgement) {
    judgement.violations.remove(&Violation::Filesystem);
    let details = &mut judgement.details;
    details.retain(|(violation, _)| *violation != Violation::Filesystem);
}

fn is_whole(checked: &Checked) -> bool {
    matches!(checked, Checked::Judged(judgement) if judgement.kept())
}

/// What two checks of a state come to, the first of which failed.
fn both(name: &ClusterStateName, first: Checked, second: impl FnOnce() -> Checked) -> Checked {
    match (first, second()) {
        (Checked::Judged(first), Checked::Judged(second)) => judged_twice(name, first, second),
        (Checked::Judged(first), Checked::Unchecked(why)) if !says_enough(&first) => {
            let detail = first.detail(first.worst());
            Checked::Unchecked(format!(
                "{name} failed once and could not be checked again: {why}; it had failed so: {detail}"
            ))
        }
        (first, _) => first,
    }
}

/// What two judgements of a state come to, the first of which is not that it is whole.
fn judged_twice(name: &ClusterStateName, mut first: Judgement, mut second: Judgement) -> Checked {
    if second.kept() && !says_enough(&first) {
        return failed_once(name, &first);
    }
    let is_bad = |judgement: &Judgement| judgement.violations.contains(&Violation::Filesystem);
    match (is_bad(&first), is_bad(&second)) {
        (true, false) => forget_filesystem(&mut first),
        (false, true) => forget_filesystem(&mut second),
        _ => {}
    }
    if says_enough(&first) && !says_enough(&second) {
        let worst = first.worst();
        let seen =
            "that was not seen when the same state was started once more: who is faster decides";
        first.details.push((worst, seen.to_owned()));
        return Checked::Judged(first);
    }
    // Each failed: that one failed of its filesystem says nothing of what the other did.
    Checked::Judged(if second.kept() { first } else { second })
}

/// Why a state is not mounted.
enum NotMounted {
    /// A filesystem did not recover.
    Damaged(String),
    /// The state could not be made, or nothing can be any more.
    Failed(String),
}

/// Each node's directory.
fn homes(mounts: &[Recovered]) -> Vec<PathBuf> {
    let homes = mounts.iter().map(|one| home(one.mount.target()));
    homes.collect()
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
        walker.fates_before(&state, events)
    }

    /// Makes the state and checks it, so often as the case says until it fails. One that fails is made and checked once more,
    /// by the cluster itself. That something was lost needs to be seen once; that a cluster did not come back, or did not
    /// agree, twice: it may have had no time. The same holds of a filesystem that is not well: that it cannot be mounted may be
    /// this machine's doing.
    pub fn check(&mut self, name: &ClusterStateName) -> Checked {
        let mut first = self.check_once(name, self.case.checks);
        for _ in 1..self.case.tries {
            if !is_whole(&first) || self.case.stop.is_requested() {
                break;
            }
            first = self.check_once(name, None);
        }
        let fails = matches!(&first, Checked::Judged(judgement) if !judgement.kept());
        if !fails || self.case.stop.is_requested() {
            return first;
        }
        both(name, first, || self.check_once(name, None))
    }

    /// What is found if `violation` is seen twice, one time after the other: so it need not be luck to see it again.
    pub fn fails_surely(
        &mut self,
        name: &ClusterStateName,
        violation: Violation,
    ) -> Option<Judgement> {
        let cached = self.case.checks;
        let mut seen = |checks| match self.check_once(name, checks) {
            Checked::Judged(judgement) if judgement.violations.contains(&violation) => {
                Some(judgement)
            }
            _ => None,
        };
        seen(cached)?;
        seen(None)
    }

    /// Whether those nodes of a state that are started first have a transaction; `None`: that cannot be told.
    pub fn has(&mut self, name: &ClusterStateName, transaction: u64) -> Option<bool> {
        let mounts = self.open(name).ok()?;
        let first = name.boot.first(mounts.len());
        let Case { subject, stop, .. } = self.case;
        let holds = subject.holds(&homes(&mounts), &first, transaction, stop);
        self.close(name, mounts).ok()?;
        holds.ok().flatten()
    }

    fn check_once(&mut self, name: &ClusterStateName, checks: Option<&Checks<Found>>) -> Checked {
        // Whatever was sent before the power went may be there.
        let said = self.case.history.at(name.moment);
        let mounts = match self.open(name) {
            Ok(mounts) => mounts,
            // The other nodes may have everything: nobody could ask them.
            Err(NotMounted::Damaged(problem)) => {
                let nothing = Acknowledged::default();
                return Checked::Judged(Judgement::of_filesystem(&nothing, problem));
            }
            Err(NotMounted::Failed(why)) => return Checked::Unchecked(why),
        };
        let mut checked = self.ask(name, &homes(&mounts), &said, checks);
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
        match self.close(name, mounts) {
            Ok(()) => checked,
            Err(why) => Checked::Unchecked(why),
        }
    }

    /// Makes a state, and lets each node's filesystem recover.
    fn open(&mut self, name: &ClusterStateName) -> Result<Vec<Recovered>, NotMounted> {
        if let Some(why) = &self.stuck {
            return Err(NotMounted::Failed(why.clone()));
        }
        if let Err(error) = self.make(name) {
            let why = format!("the state cannot be made: {error}");
            return Err(NotMounted::Failed(why));
        }
        let mut mounts = Vec::new();
        for (node, one) in self.nodes.iter().enumerate() {
            let why = match one.disk.recover() {
                Ok(Ok(recovered)) => {
                    mounts.push(recovered);
                    continue;
                }
                Ok(Err(problem)) => NotMounted::Damaged(format!("node {node}: {problem}")),
                Err(error) => NotMounted::Failed(format!("e2fsck cannot be run: {error}")),
            };
            // A node that stays mounted would be taken for that of the next state.
            self.close(name, mounts).map_err(NotMounted::Failed)?;
            return Err(why);
        }
        Ok(mounts)
    }

    /// Unmounts what was mounted.
    fn close(&mut self, name: &ClusterStateName, mounts: Vec<Recovered>) -> Result<(), String> {
        for one in mounts {
            if let Err(error) = one.mount.unmount() {
                self.stuck = Some(format!("{name} cannot be unmounted again: {error}"));
            }
        }
        self.stuck.clone().map_or(Ok(()), Err)
    }

    /// Makes each node's disk.
    fn make(&mut self, name: &ClusterStateName) -> io::Result<()> {
        let recording = self.case.recording;
        let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
        name.require_nodes(self.nodes.len())
            .map_err(|why| wrong(&why))?;
        if name.moment > recording.events() {
            return Err(wrong("the recording has not so many events"));
        }
        let killed_at = self.case.killed_at;
        if name.fates.contains(&Fate::Kept) && name.moment != killed_at {
            // Earlier it would have gone on, and the others would have been told.
            return Err(wrong(&format!(
                "nodes that keep power are killed with all others, after {killed_at} events"
            )));
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
        directories: &[PathBuf],
        said: &Acknowledged,
        checks: Option<&Checks<Found>>,
    ) -> Checked {
        let Case { subject, stop, .. } = self.case;
        let check =
            || -> Result<Found, SubjectError> { subject.check(directories, &name.boot, stop) };
        // What a full filesystem leaves room for is not told by its files.
        let checks = checks.filter(|_| !directories.iter().any(|directory| is_full(directory)));
        let files = directories
            .iter()
            .map(|directory| FileIdentity::of(directory, subject.reads_times()));
        let found = match (checks, files.collect::<io::Result<Vec<FileIdentity>>>()) {
            (Some(checks), Ok(files)) => {
                let files = FileIdentity::joined(&files, &name.boot.to_string());
                let keeps = |found: &Found| judge_cluster(found, said, subject.promise()).kept();
                checks.once(files, check, keeps)
            }
            _ => check(),
        };
        match found {
            Ok(found) => Checked::Judged(judge_cluster(&found, said, subject.promise())),
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicU64, Ordering};

    use landfall_os::{Mount, isolate_mounts};
    use landfall_recorder::CommonOrder;
    use landfall_results::proof::SubjectName;

    use super::*;
    use crate::cluster::{Boot, Rolling};
    use crate::scratch_fs::Kind;
    use crate::subject::AckSink;

    fn judged(violations: &[Violation]) -> Checked {
        let mut judgement = Judgement::default();
        for violation in violations {
            judgement.add(*violation, format!("{violation:?}"));
        }
        Checked::Judged(judgement)
    }

    #[test]
    fn what_is_lost_once_is_lost_and_who_does_not_come_back_has_a_second_try() {
        use Violation::{Damaged, Disagreed, Filesystem, Invented, Lost, Unavailable};
        let name: ClusterStateName = "1:2:none,none:together".parse().unwrap();
        let both = |first: &[Violation], second: &[Violation]| -> Option<Vec<Violation>> {
            match both(&name, judged(first), || judged(second)) {
                Checked::Judged(judgement) => Some(judgement.violations.into_iter().collect()),
                Checked::Unchecked(_) => None,
            }
        };
        for seen in [Lost, Invented] {
            assert_eq!(both(&[seen], &[]), Some(vec![seen]));
            assert_eq!(both(&[seen], &[Unavailable]), Some(vec![seen]));
            assert_eq!(both(&[Unavailable], &[seen]), Some(vec![seen]));
        }
        for late in [Unavailable, Disagreed, Damaged, Filesystem] {
            assert_eq!(both(&[late], &[]), None);
        }
        assert_eq!(both(&[Disagreed], &[Unavailable]), Some(vec![Unavailable]));
        // Those beside it count for themselves.
        assert_eq!(both(&[Filesystem, Lost], &[]), Some(vec![Lost]));
        assert_eq!(both(&[Lost], &[Filesystem]), Some(vec![Lost]));
    }

    #[test]
    fn a_filesystem_that_does_not_recover_has_lost_nothing_that_others_may_have() {
        use Violation::{Filesystem, Unavailable};
        let name: ClusterStateName = "1:2:none,none:together".parse().unwrap();
        let unmounted = || {
            let problem = "it cannot be mounted".to_owned();
            let nothing = Acknowledged::default();
            Checked::Judged(Judgement::of_filesystem(&nothing, problem))
        };
        let both = |first: Checked, second: Checked| match both(&name, first, || second) {
            Checked::Judged(judgement) => {
                assert!(judgement.lost.is_empty());
                Some(judgement.violations.into_iter().collect::<Vec<_>>())
            }
            Checked::Unchecked(_) => None,
        };
        let twice = both(unmounted(), unmounted());
        assert_eq!(twice, Some(vec![Filesystem]));
        assert_eq!(both(unmounted(), judged(&[])), None);
        // Each failed, and was not there to be seen by the other.
        for (first, second) in [
            (unmounted(), judged(&[Unavailable])),
            (judged(&[Unavailable]), unmounted()),
        ] {
            assert_eq!(both(first, second), Some(vec![Unavailable]));
        }
    }

    #[test]
    fn what_must_be_seen_twice_and_is_not_checked_again_is_not_proven() {
        let name: ClusterStateName = "1:2:none,none:together".parse().unwrap();
        let again = || Checked::Unchecked("no memory".to_owned());
        let late = both(&name, judged(&[Violation::Unavailable]), again);
        assert!(
            matches!(&late, Checked::Unchecked(why) if why.contains("no memory; it had failed so: Unavailable")),
            "{late:?}"
        );
        let lost = both(&name, judged(&[Violation::Lost]), again);
        assert!(matches!(lost, Checked::Judged(_)), "{lost:?}");
    }

    /// Counts how often it is asked.
    #[derive(Default)]
    struct Asked(AtomicU64);

    impl ClusterSubject for Asked {
        fn name(&self) -> SubjectName {
            "asked".into()
        }

        fn reads_times(&self) -> bool {
            false
        }

        fn prepare(&self, _: &[PathBuf], _: &Stop) -> Result<(), SubjectError> {
            Ok(())
        }

        fn run(
            &self,
            _: &[PathBuf],
            _: &mut dyn AckSink,
            _: &mut Rolling<'_>,
            _: &Stop,
        ) -> Result<(), SubjectError> {
            Ok(())
        }

        fn check(&self, _: &[PathBuf], _: &Boot, _: &Stop) -> Result<Found, SubjectError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Found::default())
        }
    }

    #[test]
    fn equal_files_are_checked_again_where_a_promise_was_broken_or_a_node_has_no_room() {
        if let Err(why) = isolate_mounts() {
            assert!(std::env::var_os("LANDFALL_NO_SKIP").is_none(), "{why}");
            eprintln!("skipped: {why}");
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let mounted = |node: &str| {
            let target = scratch.path().join(node);
            fs::create_dir(&target).unwrap();
            let mount = Mount::new(Path::new("tmpfs"), &target, "tmpfs", "size=1m").unwrap();
            fs::create_dir(home(&target)).unwrap();
            mount
        };
        let mounts = ["one", "other"].map(mounted);
        let directories = mounts.each_ref().map(|mount| home(mount.target()));
        let (asked, checks) = (Asked::default(), Checks::default());
        let case = Case {
            subject: &asked,
            filesystem: &FilesystemSpec::plain(Kind::Ext4),
            recording: &SiteRecording::finish(&CommonOrder::default(), &[]).unwrap(),
            history: &History::default(),
            killed_at: 0,
            ended: &[],
            checks: Some(&checks),
            tries: 1,
            stop: &Stop::default(),
            directory: scratch.path(),
            memory: 0,
        };
        let worker = Worker::new(&case).unwrap();
        let name = "1:0:none,none:together".parse().unwrap();
        let asked_twice = |said: &Acknowledged| {
            let before = asked.0.load(Ordering::Relaxed);
            for _ in 0..2 {
                worker.ask(&name, &directories, said, case.checks);
            }
            asked.0.load(Ordering::Relaxed) - before
        };
        // Of all that was acknowledged it has nothing.
        let lost = Acknowledged {
            sent: [1].into(),
            acknowledged: [1].into(),
            last_acknowledged: Some(1),
        };
        let nothing = Acknowledged::default();
        assert_eq!(asked_twice(&lost), 2);
        assert_eq!(asked_twice(&nothing), 1);
        let filler = mounts[1].target().join("filler");
        fs::write(filler, vec![1; 2 << 20]).unwrap_err();
        assert_eq!(asked_twice(&nothing), 2);
    }
}
