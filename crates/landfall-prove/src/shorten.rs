//! Makes a failing state shorter: as little as possible is missing, and it still fails.

use std::io;

use landfall_recorder::crash::{Choice, CrashState, Model, StateName, Walker, WriteFate};
use landfall_results::proof::Violation;

use crate::Stop;
use crate::judge::Judgement;
use crate::worker::{Case, Checked, Worker};

/// Parts of writes that a name has bits for.
const MOST_PARTS: usize = 64;

/// From a state in which `violation` was seen, the one that is left when everything has been put back that
/// need not be missing; `None` if nothing could be put back.
///
/// First whole writes are put back, then what arrives together of them, each if the state still fails
/// with it. Epochs with more of those than a name can choose are left as they are, and so are states of a disk that
/// writes in order, which would not have a write put back behind one that is missing, or of one that keeps nothing that was
/// not flushed.
pub(crate) fn shorten(
    case: &Case<'_>,
    state: &CrashState,
    violation: Violation,
    model: Model,
    stop: &Stop,
) -> io::Result<Option<(CrashState, Judgement)>> {
    if model == Model::Flushed || matches!(state.name.choice, Choice::First { .. }) {
        return Ok(None);
    }
    let mut walker = Walker::new(case.recording)?;
    let fates = walker.fates(&state.name)?;
    let parts: Vec<bool> = fates.iter().flat_map(fragments).collect();
    if parts.len() > MOST_PARTS {
        return Ok(None);
    }
    let mut worker = Worker::new(case)?;
    let mut best = None;
    let mut present = bits(&parts);
    let single = (0..parts.len()).map(|part| 1 << part);
    for put_back in whole_writes(&fates).into_iter().chain(single) {
        let candidate = present | put_back;
        if candidate == present || stop.is_requested() {
            continue;
        }
        let name = StateName {
            choice: Choice::Sectors(candidate),
            ..state.name
        };
        let composition = walker.composition(&name)?;
        if let Checked::Judged(judgement) = worker.check(&name, composition.position)
            && judgement.violations.contains(&violation)
        {
            present = candidate;
            let shorter = CrashState {
                name,
                position: composition.position,
                image: composition.image,
                omitted: composition.omitted,
            };
            best = Some((shorter, judgement));
        }
    }
    Ok(best)
}

/// Which fragments of a write arrived.
fn fragments(fate: &WriteFate) -> Vec<bool> {
    let begins = fate.fragments.iter().scan(0, |begin, len| {
        let this = *begin;
        *begin += len;
        Some(this)
    });
    begins.map(|begin| fate.arrived[begin]).collect()
}

/// The bits of those that arrived.
fn bits(arrived: &[bool]) -> u64 {
    let set = arrived.iter().enumerate().filter(|(_, arrived)| **arrived);
    set.fold(0, |bits, (part, _)| bits | 1 << part)
}

/// For each write the bits of its fragments.
fn whole_writes(fates: &[WriteFate]) -> Vec<u64> {
    let mut first = 0;
    let mut writes = Vec::new();
    for fate in fates {
        let count = fate.fragments.len();
        writes.push((first..first + count).fold(0, |bits, part| bits | 1 << part));
        first += count;
    }
    writes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_of_the_fragments_in_order() {
        let fate = |arrived: &[bool]| WriteFate {
            event: 0,
            arrived: arrived.to_vec(),
            places: (0..arrived.len() as u32).collect(),
            fragments: vec![1; arrived.len()],
        };
        let fates = [fate(&[true, false]), fate(&[]), fate(&[true; 3])];
        assert_eq!(whole_writes(&fates), [0b11, 0, 0b11100]);
        assert_eq!(bits(&[true, false, true, true, true]), 0b11101);
        assert_eq!(bits(&[true; 64]), u64::MAX);
        let eight = WriteFate {
            event: 0,
            arrived: [[true; 3], [false; 3]].concat(),
            places: (0..6).collect(),
            fragments: vec![2, 1, 3],
        };
        assert_eq!(fragments(&eight), [true, true, false]);
        assert_eq!(whole_writes(&[eight]), [0b111]);
    }
}
