//! How many nodes held a record durably when it was acknowledged.
//!
//! One node's disk is made as it was at that moment, with nothing that was not flushed, and all others as they were when the
//! recording began. If a majority of that node and others finds the record, that node held it: the others never had it.
//!
//! Threads: one for each node, or as many as there are workers; each has a network and disks of its own.

use std::collections::HashMap;
use std::thread;

use landfall_recorder::crash::Choice;
use landfall_results::proof::HeldRecord;

use super::name::{Boot, ClusterStateName, Fate};
use super::proof::isolate;
use super::worker::{Case, Worker};
use crate::Error;

/// How often an order of starting may come to no answer before it is not tried any more.
const MOST_SILENCES: u32 = 2;

/// Looks at `records` of those that were acknowledged, the first and the last among them.
pub(super) fn held_records(
    case: &Case<'_>,
    seed: u64,
    records: usize,
    workers: usize,
) -> Result<Vec<HeldRecord>, Error> {
    let acknowledged: Vec<(u64, usize)> = case.history.acknowledgements().collect();
    let chosen = evenly(&acknowledged, records);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let nodes: Vec<usize> = (0..case.recording.devices().len()).collect();
    let share = nodes.len().div_ceil(workers.max(1));
    let chosen = &chosen;
    let by_node: Vec<Vec<Option<bool>>> = thread::scope(|scope| {
        let of_share = |share: &[usize]| -> Result<Vec<_>, Error> {
            isolate()?;
            let of = share.iter().map(|node| of_node(case, seed, *node, chosen));
            of.collect()
        };
        let threads: Vec<_> = nodes
            .chunks(share)
            .map(|share| scope.spawn(move || of_share(share)))
            .collect();
        let ended = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let ended: Vec<Vec<_>> = ended.collect::<Result<_, Error>>()?;
        Ok::<_, Error>(ended.concat())
    })?;
    let held = chosen.iter().enumerate().map(|(place, (record, _))| {
        let nodes = by_node.iter().map(|of| of[place]).collect();
        HeldRecord {
            transaction: *record,
            nodes,
        }
    });
    Ok(held.collect())
}

/// So many of them, the first and the last among them.
fn evenly<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    match (all, most) {
        ([], _) | (_, 0) => Vec::new(),
        ([.., last], 1) => vec![*last],
        _ if all.len() <= most => all.to_vec(),
        _ => (0..most)
            .map(|n| all[n * (all.len() - 1) / (most - 1)])
            .collect(),
    }
}

/// Whether one node held each of the records, given with the moments of their acknowledgements; `None`: that cannot be told.
fn of_node(
    case: &Case<'_>,
    seed: u64,
    node: usize,
    chosen: &[(u64, usize)],
) -> Result<Vec<Option<bool>>, Error> {
    let making = "cannot make disks for crash states";
    let mut worker = Worker::new(case).map_err(Error::io(making))?;
    let nodes = case.recording.devices().len();
    let mut boots = Boot::all(nodes);
    boots.retain(|boot| boot.first(nodes).len() <= nodes / 2 + 1 && !boot.late().contains(&node));
    // One that does not come back takes the longest, and for most systems says the same each time.
    let mut silent: HashMap<&Boot, u32> = HashMap::new();
    let mut held = Vec::new();
    for &(record, moment) in chosen {
        // Whoever finds it has it from this node; of majorities that come back without it one is enough to say that it has not.
        let mut answer = None;
        for boot in &boots {
            if case.stop.is_requested() {
                return Err(Error::Stopped);
            }
            let alone = (0..nodes).map(|one| {
                if one == node {
                    Fate::Cut(Choice::None)
                } else {
                    Fate::Begun
                }
            });
            let name = ClusterStateName {
                seed,
                moment,
                fates: alone.collect(),
                boot: boot.clone(),
            };
            let silences = silent.entry(boot).or_default();
            let has = if *silences < MOST_SILENCES {
                worker.has(&name, record)
            } else {
                None
            };
            match has {
                Some(true) => {
                    answer = Some(true);
                    break;
                }
                Some(false) => answer = Some(false),
                None => *silences += 1,
            }
        }
        held.push(answer);
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_are_looked_at() {
        let all: Vec<u32> = (1..=40).collect();
        assert_eq!(evenly(&all, 5), [1, 10, 20, 30, 40]);
        assert_eq!(evenly(&all[..3], 5), [1, 2, 3]);
        assert_eq!(evenly(&all, 1), [40]);
        assert!(evenly(&all, 0).is_empty() && evenly::<u32>(&[], 5).is_empty());
    }
}
