//! Makes a failing state of a cluster shorter: as few nodes as possible lose anything, and of as few writes.

use std::io;

use landfall_recorder::crash::{Choice, Model, WriteFate};
use landfall_results::proof::Violation;

use super::ClusterStateName;
use super::name::{Boot, Fate};
use super::worker::{Case, Worker};
use crate::Stop;
use crate::judge::Judgement;

/// Writes of one node of which each is put back alone. Each costs a start of the cluster.
const MOST_WRITES: usize = 12;

/// From a state in which `violation` was seen, the one that is left when everything has been put back that need not be missing;
/// `None` if nothing could be put back. Nodes are started together if that is enough; then whole nodes get back what they lost,
/// then single writes of those that have few. What is put back is what the violation was seen without twice: which node wins an
/// election is a race, and a state that fails by luck shows nothing to who starts it again. A disk that keeps nothing that was
/// not flushed gets nothing back.
pub(super) fn shorten(
    case: &Case<'_>,
    name: &ClusterStateName,
    violation: Violation,
    model: Model,
    stop: &Stop,
) -> io::Result<Option<(ClusterStateName, Judgement)>> {
    let mut shortening = Shortening {
        worker: Worker::new(case)?,
        best: name.clone(),
        judgement: None,
        violation,
        stop,
    };
    shortening.attempt(|name| name.boot = Boot::Together);
    for node in 0..name.fates.len() {
        if model != Model::Flushed && name.fates[node] != Fate::Kept {
            shortening.put_back(node)?;
        }
    }
    let Shortening {
        best, judgement, ..
    } = shortening;
    Ok(judgement.map(|judgement| (best, judgement)))
}

struct Shortening<'a> {
    worker: Worker<'a>,
    /// The shortest state so far that fails.
    best: ClusterStateName,
    /// What is wrong with it; `None`: it is the first.
    judgement: Option<Judgement>,
    violation: Violation,
    stop: &'a Stop,
}

impl Shortening<'_> {
    /// Whether the state still fails when it is changed so; then it is the best.
    fn attempt(&mut self, change: impl FnOnce(&mut ClusterStateName)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        if candidate == self.best || self.stop.is_requested() {
            return false;
        }
        let Some(judgement) = self.worker.fails_surely(&candidate, self.violation) else {
            return false;
        };
        self.best = candidate;
        self.judgement = Some(judgement);
        true
    }

    /// Puts back what a node lost: all of it, or else write after write.
    fn put_back(&mut self, node: usize) -> io::Result<()> {
        let fates = self.worker.fates(node, &self.best)?;
        let writes = fates.len();
        let everything = Choice::Upto {
            writes: writes as u32,
            sectors: 0,
        };
        let set = |choice: Choice| {
            move |name: &mut ClusterStateName| name.fates[node] = Fate::Cut(choice)
        };
        if writes == 0 || self.attempt(set(everything)) || writes > MOST_WRITES {
            return Ok(());
        }
        // A torn write is torn for a reason.
        let Some(mut present) = whole_writes(&fates) else {
            return Ok(());
        };
        for write in 0..writes {
            let with = present | 1 << write;
            if with != present && self.attempt(set(Choice::Writes(with))) {
                present = with;
            }
        }
        Ok(())
    }
}

/// Which writes are there, the lowest bit is the first; `None` if one is torn.
fn whole_writes(fates: &[WriteFate]) -> Option<u64> {
    let bit = |fate: &WriteFate| match (fate.arrived.contains(&true), fate.arrived.contains(&false))
    {
        (true, true) => None,
        // One that changes nothing is as good as there.
        (_, is_missing) => Some(!is_missing),
    };
    let bits = fates.iter().map(bit).enumerate();
    bits.map(|(write, is_there)| Some(u64::from(is_there?) << write))
        .sum()
}
