//! A replicated log of a few lines, and what is wrong with others: what a prover of clusters must tell apart.
//!
//! It is Raft (Ongaro and Ousterhout, USENIX ATC 2014) without processes or a network: one thread writes to the nodes'
//! directories what their servers would. A leader syncs a record, then a follower does, and it is acknowledged; the other follower
//! has it with the next one. Every few records another node leads, in a new term, once the others have synced their votes. After a
//! power cut the node with the latest log leads those that are started; one that joins late may lead if its log is later still.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use landfall_databases::setting::{Chosen, Description, Setting, SettingError};
use twox_hash::XxHash3_128;

use super::{Boot, ClusterPlan, ClusterSubject, Found, Rolling};
use crate::subject::{AckSink, Promise, Recovered, SubjectError, SubjectName};
use crate::{Error, Stop};
use landfall_results::proof::Expectation;

/// Records until another node leads.
const TERM: u64 = 8;
/// Bytes of a record in a log, and of a vote: two numbers, and a checksum of them and of their place.
const ENTRY: usize = 24;

pub(super) static DESCRIPTION: Description = Description {
    name: "replicated-log",
    about: "a replicated log of a few lines, as it should be or with a mistake: shows that clusters' mistakes are caught",
    settings: &[Setting {
        name: "mistake",
        default: Some("none"),
        about: "what it does wrong: none; unsynced (a follower does not sync what it acknowledges); vote (votes are not synced); truncate (who leads does not depend on whose log is latest)",
        always_shown: true,
    }],
    passes_on: None,
};

/// A replicated log with or without a mistake, and what it must come to.
#[derive(Clone, Copy, Debug)]
pub struct ClusterCase {
    mistake: &'static str,
    /// What it must come to.
    pub expected: Expectation,
}

impl ClusterCase {
    /// The filesystem of each node.
    pub const FILESYSTEM: &str = "ext4";
    /// States that are tried: a lost vote is met by few of them.
    const STATES: usize = 600;

    /// One that must lose nothing, and those that must be caught.
    pub fn all() -> impl Iterator<Item = ClusterCase> {
        let all = [
            ("none", Expectation::LosesNothing),
            ("unsynced", Expectation::Loses),
            ("vote", Expectation::Damages),
            ("truncate", Expectation::Loses),
        ];
        all.into_iter()
            .map(|(mistake, expected)| ClusterCase { mistake, expected })
    }

    /// The plan that proves it, with three nodes.
    pub fn plan(&self, directory: Option<&Path>) -> Result<ClusterPlan, Error> {
        let nodes = 3;
        let settings = [("mistake".to_owned(), self.mistake.to_owned())];
        let subject = Box::new(ReplicatedLog::new(&settings, nodes)?);
        let filesystem = Self::FILESYSTEM.parse().map_err(Error::Usage)?;
        let mut plan = ClusterPlan::new(subject, nodes, filesystem);
        if let Some(directory) = directory {
            plan.directory = directory.to_owned();
        }
        plan.states = Self::STATES;
        plan.again = format!(
            "landfall prove replicated-log --nodes {nodes} --set mistake={}",
            self.mistake
        );
        Ok(plan)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    Unsynced,
    Vote,
    Truncate,
}

/// The replicated log, of so many nodes.
pub(super) struct ReplicatedLog {
    mistake: Mistake,
    name: SubjectName,
}

impl ReplicatedLog {
    pub fn new(settings: &[(String, String)], nodes: usize) -> Result<ReplicatedLog, SettingError> {
        let chosen = Chosen::new(&DESCRIPTION, settings)?;
        let mistakes = [
            ("none", Mistake::None),
            ("unsynced", Mistake::Unsynced),
            ("vote", Mistake::Vote),
            ("truncate", Mistake::Truncate),
        ];
        Ok(ReplicatedLog {
            mistake: chosen.one_of("mistake", &mistakes)?,
            name: super::name_of(&chosen, nodes),
        })
    }
}

/// One record: in which term it was written, and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    term: u64,
    record: u64,
}

/// What one node has.
struct Member {
    log: File,
    vote: File,
    entries: Vec<Entry>,
    /// The last term that it voted in.
    term: u64,
}

impl Member {
    fn open(directory: &Path) -> io::Result<Member> {
        let open = |name: &str| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).open(directory.join(name))
        };
        let (log, vote) = (open("log")?, open("vote")?);
        let mut entries = Vec::new();
        while let Some((term, record)) = read(&log, entries.len())? {
            entries.push(Entry { term, record });
        }
        let term = read(&vote, 0)?.map_or(0, |(term, _)| term);
        Ok(Member {
            log,
            vote,
            entries,
            term,
        })
    }

    /// How late its log is: whose is later may lead.
    fn lateness(&self) -> (u64, usize) {
        (self.last_term(), self.entries.len())
    }

    fn last_term(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.term)
    }

    fn vote(&mut self, term: u64, is_synced: bool) -> io::Result<()> {
        self.term = term;
        write(&self.vote, 0, term, 0)?;
        if is_synced {
            self.vote.sync_data()
        } else {
            Ok(())
        }
    }

    /// Makes its log that of a leader.
    fn follow(&mut self, leader: &[Entry], is_synced: bool) -> io::Result<()> {
        let pairs = self.entries.iter().zip(leader);
        // In one term one node leads, so that what it wrote at one place is the same everywhere.
        let same = pairs
            .take_while(|(mine, theirs)| mine.term == theirs.term)
            .count();
        if same < self.entries.len() {
            self.log.set_len((same * ENTRY) as u64)?;
            self.entries.truncate(same);
        }
        for entry in &leader[same..] {
            write(&self.log, self.entries.len(), entry.term, entry.record)?;
            self.entries.push(*entry);
        }
        if is_synced {
            self.log.sync_data()
        } else {
            Ok(())
        }
    }

    fn append(&mut self, entry: Entry) -> io::Result<()> {
        let mut entries = self.entries.clone();
        entries.push(entry);
        self.follow(&entries, true)
    }
}

/// Half of it is enough.
fn sum(place: usize, numbers: &[u8]) -> u64 {
    XxHash3_128::oneshot_with_seed(place as u64, numbers) as u64
}

fn write(file: &File, place: usize, first: u64, second: u64) -> io::Result<()> {
    let numbers = [first.to_le_bytes(), second.to_le_bytes()].concat();
    let bytes = [&numbers[..], &sum(place, &numbers).to_le_bytes()].concat();
    file.write_all_at(&bytes, (place * ENTRY) as u64)
}

/// What stands at a place, if it is whole.
fn read(file: &File, place: usize) -> io::Result<Option<(u64, u64)>> {
    let mut bytes = [0; ENTRY];
    let start = (place * ENTRY) as u64;
    if file.metadata()?.len() < start + ENTRY as u64 {
        return Ok(None);
    }
    file.read_exact_at(&mut bytes, start)?;
    let number = |at: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(number)
    };
    let is_whole = number(16) == sum(place, &bytes[..16]);
    Ok(is_whole.then(|| (number(0), number(8))))
}

fn open_all(directories: &[PathBuf]) -> io::Result<Vec<Member>> {
    directories.iter().map(|one| Member::open(one)).collect()
}

impl ClusterSubject for ReplicatedLog {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        Promise::STRICT
    }

    fn reads_times(&self) -> bool {
        false
    }

    fn prepare(&self, directories: &[PathBuf], _: &Stop) -> Result<(), SubjectError> {
        for directory in directories {
            fs::write(directory.join("log"), [])?;
            let vote = File::create(directory.join("vote"))?;
            write(&vote, 0, 0, 0)?;
        }
        Ok(())
    }

    fn run(
        &self,
        directories: &[PathBuf],
        sink: &mut dyn AckSink,
        rolling: &mut Rolling<'_>,
        _: &Stop,
    ) -> Result<(), SubjectError> {
        let mut members = open_all(directories)?;
        let nodes = members.len();
        let (mut leader, mut term, mut in_term) = (0, 0, TERM);
        let mut living: Vec<usize> = (0..nodes).collect();
        while let Some(record) = sink.send() {
            while let Some(node) = rolling.due(record) {
                living.retain(|one| *one != node);
                rolling.has_ended(node);
                if leader == node {
                    leader = self.latest(&members, &living);
                    in_term = TERM;
                }
            }
            // A majority's worth of followers, others each time, so that each falls behind now and then.
            let mut others = living.clone();
            others.retain(|one| *one != leader);
            let begin = record as usize % others.len();
            others.rotate_left(begin);
            others.truncate(nodes / 2);
            let followers = others;
            if in_term == TERM {
                (term, in_term) = (term + 1, 0);
                for &node in &living {
                    members[node].vote(term, node == leader || self.mistake != Mistake::Vote)?;
                }
            }
            members[leader].append(Entry { term, record })?;
            let entries = members[leader].entries.clone();
            for &follower in &followers {
                members[follower].follow(&entries, self.mistake != Mistake::Unsynced)?;
            }
            sink.acknowledge(record);
            in_term += 1;
            if in_term == TERM {
                // It has all that was acknowledged.
                leader = followers[0];
            }
        }
        for node in living {
            rolling.has_ended(node);
        }
        Ok(())
    }

    fn check(&self, directories: &[PathBuf], boot: &Boot, _: &Stop) -> Result<Found, SubjectError> {
        let mut members = open_all(directories)?;
        let nodes = members.len();
        let first = boot.first(nodes);
        let mut leader = self.latest(&members, &first);
        let last = first
            .iter()
            .map(|&node| members[node].term.max(members[node].last_term()));
        let term = last.max().unwrap_or(0) + 1;
        for &node in &first {
            members[node].vote(term, true)?;
        }
        let records = |member: &Member| -> BTreeSet<u64> {
            member.entries.iter().map(|entry| entry.record).collect()
        };
        let before = records(&members[leader]);
        let new = before.last().unwrap_or(&0) + 1_000_000;
        members[leader].append(Entry { term, record: new })?;
        let entries = members[leader].entries.clone();
        for &node in &first {
            members[node].follow(&entries, true)?;
        }
        // It is elected if a majority, itself included, has no later log.
        for &late in boot.late() {
            let own = members[late].lateness();
            let votes = members
                .iter()
                .filter(|member| member.lateness() <= own)
                .count();
            if votes > nodes / 2 && own >= members[leader].lateness() {
                leader = late;
            }
        }
        let entries = members[leader].entries.clone();
        for member in &mut members {
            member.follow(&entries, true)?;
        }
        let mut after = records(&members[leader]);
        let damage = (!after.remove(&new)).then(|| {
            "what was acknowledged after the power had come back was gone when all nodes were there"
                .to_owned()
        });
        let differs = members
            .iter()
            .position(|member| records(member) != records(&members[leader]));
        Ok(Found {
            disagreement: differs
                .map(|node| format!("node {node} has other records than node {leader}")),
            taken: before.difference(&after).copied().collect(),
            recovered: Recovered {
                whole: after,
                damage,
                ..Recovered::default()
            },
            ..Found::default()
        })
    }
}

impl ReplicatedLog {
    /// Who leads these.
    fn latest(&self, members: &[Member], started: &[usize]) -> usize {
        let latest = started
            .iter()
            .copied()
            .max_by_key(|&node| members[node].lateness());
        match self.mistake {
            Mistake::Truncate => started[0],
            _ => latest.unwrap_or(0),
        }
    }
}
