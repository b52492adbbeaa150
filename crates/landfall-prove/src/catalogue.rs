//! How soon known faults are caught: for each, in which place the first state stands that shows it, by either order of
//! states and several seeds. A prover is worth what it catches before its user stops waiting.
//!
//! Each seed makes one recording, whose states are tried in both orders, each up to the first that fails. Faults that only a
//! second power cut shows have no place in an order, and are the self-test's.

use std::path::Path;

use landfall_os::PrivateDirectory;
use landfall_recorder::crash::Order;

use crate::cases::{CASES, Case};
use crate::{Enough, Error, Progress, Stop, prove, subjects};

/// Why a case of another build is not tried.
const LEFT_OUT: &str = "it is left out of this build";

/// What came of one fault.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The fault.
    pub case: &'static Case,
    /// What was seen, or why it cannot be tried here.
    pub tried: Result<Places, String>,
}

/// Places of the first failing states, one for each seed; `None`: no state failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// With those first that stand for many.
    pub representative: Vec<Option<u64>>,
    /// As they were recorded.
    pub epochs: Vec<Option<u64>>,
}

/// The faults that have a place.
pub fn faults() -> impl Iterator<Item = &'static Case> {
    CASES
        .iter()
        .filter(|case| case.source.is_some() && case.second_cuts == 0)
}

/// Tries each fault of which the name of the subject is `subject`, if one is asked for, with seeds 1 to `seeds`. `done` is
/// told of each.
///
/// # Errors
///
/// That none of them can be tried here is one, [refused](Error::Refused) for the reason of the first.
pub fn run(
    subject: Option<&str>,
    seeds: u64,
    directory: Option<&Path>,
    stop: &Stop,
    progress: &mut dyn Progress,
    done: &mut dyn FnMut(&Entry),
) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for case in faults().filter(|case| subject.is_none_or(|name| name == case.subject)) {
        let tried = if subjects::list().any(|known| known.name == case.subject) {
            match places(case, seeds, directory, stop, progress) {
                Ok(places) => Ok(places),
                Err(Error::Refused(why) | Error::Subject(why)) => Err(why),
                Err(error) => return Err(error),
            }
        } else {
            Err(LEFT_OUT.to_owned())
        };
        let entry = Entry { case, tried };
        done(&entry);
        entries.push(entry);
    }
    some_tried(entries)
}

/// All of them, unless not even one could be tried.
fn some_tried(entries: Vec<Entry>) -> Result<Vec<Entry>, Error> {
    if entries.iter().any(|one| one.tried.is_ok()) {
        return Ok(entries);
    }
    // What this machine lacks says more than what the build does.
    let reasons = || entries.iter().filter_map(|one| one.tried.as_ref().err());
    let why = reasons().find(|why| *why != LEFT_OUT);
    match why.or_else(|| reasons().next()) {
        Some(why) => Err(Error::Refused(why.clone())),
        None => Ok(entries),
    }
}

fn places(
    case: &Case,
    seeds: u64,
    directory: Option<&Path>,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Places, Error> {
    let temporary = std::env::temp_dir();
    let private = PrivateDirectory::create_in(directory.unwrap_or(&temporary))
        .map_err(Error::io("cannot make a directory for recordings"))?;
    let recording = private.path().join("recording");
    let mut places = Places::default();
    for seed in 1..=seeds {
        for order in [Order::Representative, Order::Epochs] {
            let mut plan = case.plan(directory)?;
            plan.seed = seed;
            plan.order = order;
            plan.states = STATES;
            plan.enough = Enough::FirstFailing;
            match order {
                Order::Representative => plan.keep_recording = Some(recording.clone()),
                Order::Epochs => plan.recorded = Some(recording.clone()),
            }
            let proof = prove(&plan, stop, progress)?;
            let of_order = match order {
                Order::Representative => &mut places.representative,
                Order::Epochs => &mut places.epochs,
            };
            of_order.push(proof.results.first_failing);
        }
    }
    Ok(places)
}

/// States that are tried at most.
pub const STATES: usize = 200;

/// The one in the middle; a fault that was not caught stands behind all that were. Of an even number, the worse of the two
/// in the middle.
pub fn median(places: &[Option<u64>]) -> Option<u64> {
    let mut sorted: Vec<u64> = places
        .iter()
        .map(|place| place.unwrap_or(u64::MAX))
        .collect();
    sorted.sort_unstable();
    let middle = sorted.get(sorted.len() / 2).copied();
    middle.filter(|place| *place != u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_caught_is_behind_what_was() {
        assert_eq!(median(&[Some(3), Some(1), Some(2)]), Some(2));
        assert_eq!(median(&[None, Some(1), Some(2)]), Some(2));
        assert_eq!(median(&[None, None, Some(2)]), None);
        assert_eq!(median(&[Some(1), Some(2)]), Some(2));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn where_none_can_be_tried_the_first_reason_is_the_error() {
        let case = faults().next().unwrap();
        let entry = |tried| Entry { case, tried };
        let not = |why: &str| entry(Err(why.to_owned()));
        let none = some_tried(vec![not("no FUSE"), not("no loop devices")]);
        assert!(matches!(none, Err(Error::Refused(why)) if why == "no FUSE"));
        let some = some_tried(vec![not("no FUSE"), entry(Ok(Places::default()))]);
        assert_eq!(some.unwrap().len(), 2);
    }

    #[test]
    fn there_are_as_many_faults_as_are_promised() {
        assert!(faults().count() >= 40, "{}", faults().count());
    }
}
