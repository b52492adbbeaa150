//! What a proof has exercised: what happened in a recording that the subject must be protected from, and in how many of the
//! checked states the power was cut meanwhile.
//!
//! Pages that were written over are seen at the device, as far as it is known which file lies where. What else a subject does
//! it says itself, by [marks](crate::subject::Mark) when it begins and ends; and what it counted itself goes before how
//! often that was said.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroU64;

use landfall_recorder::crash::{FileKind, Layout, Overwrites, StateName, epochs};
use landfall_results::proof::{Exercised, Hazard};

use crate::history::Times;
use crate::subject::Subject;
use crate::worker::Case;

/// What the checked states say something of, in the order of the subject's hazards.
pub(crate) fn exercised(
    case: &Case<'_>,
    layout: &Layout,
    checked: &[StateName],
) -> io::Result<Vec<Exercised>> {
    let hazards = case.subject.hazards();
    let is_of_pages = |what| matches!(what, Hazard::PageTorn | Hazard::PageOverwritten);
    let pages = if hazards.iter().any(|(what, _)| is_of_pages(*what)) && !layout.is_empty() {
        let pages = Pages::of(case.subject, layout);
        let page_at = |offset| pages.at(offset);
        let states = checked.iter().copied();
        Some(Overwrites::of(case.recording, states, page_at)?)
    } else {
        None
    };
    let epochs = epochs(case.recording)?.into_iter();
    let writes: Vec<Vec<usize>> = epochs.map(|epoch| epoch.writes).collect();
    let counts = |what| match (what, pages) {
        (Hazard::PageTorn, Some(pages)) => (Some(pages.tearable), Some(pages.torn_states)),
        (Hazard::PageOverwritten, Some(pages)) => (Some(pages.pages), Some(pages.states)),
        (Hazard::PageTorn | Hazard::PageOverwritten, None) => (None, None),
        _ => said(&case.history.times(what), &writes, checked),
    };
    let of = |(what, protected_by): (Hazard, &[&str])| {
        let (happened, states) = counts(what);
        Exercised {
            what,
            happened,
            states,
            protected_by: protected_by.iter().map(|&name| name.to_owned()).collect(),
        }
    };
    let more = case.history.hazards().into_iter();
    let more = more.filter(|what| hazards.iter().all(|(known, _)| known != what));
    let more: Vec<Exercised> = more.map(|what| of((what, &[]))).collect();
    Ok(hazards.into_iter().map(of).chain(more).collect())
}

/// How often something happened, and in how many states the power was cut while it was written; `epochs` has the writes of
/// each.
fn said(times: &Times, epochs: &[Vec<usize>], checked: &[StateName]) -> (Option<u64>, Option<u64>) {
    let said = (!times.spans.is_empty()).then_some(times.ended);
    let happened = times.counted.or(said);
    let is_met = |writes: &Vec<usize>| {
        let mut writes = writes.iter();
        writes.any(|write| times.spans.iter().any(|span| span.contains(write)))
    };
    let met: Vec<bool> = epochs.iter().map(is_met).collect();
    let states = checked.iter().filter(|state| {
        let is_met = met.get(state.cut as usize).copied();
        is_met.unwrap_or(false)
    });
    // What it does by itself nobody saw begin.
    let is_known = !times.spans.is_empty() || happened == Some(0);
    (happened, is_known.then(|| states.count() as u64))
}

/// Which page each byte of a device is in.
struct Pages<'a> {
    layout: &'a Layout,
    sizes: HashMap<FileKind, Option<NonZeroU64>>,
}

impl<'a> Pages<'a> {
    fn of(subject: &dyn Subject, layout: &'a Layout) -> Pages<'a> {
        let size = |kind| (kind, subject.page_size(layout.name(kind)));
        Pages {
            layout,
            sizes: layout.kinds().map(size).collect(),
        }
    }

    /// The first byte of the page that a byte of the device is in. A page of two stretches counts as two.
    fn at(&self, offset: u64) -> Option<u64> {
        let (kind, place) = self.layout.place(offset)?;
        let size = (*self.sizes.get(&kind)?)?;
        Some(offset.wrapping_sub(place % size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_falls_into_what_was_written_meanwhile() {
        // A checkpoint from event 3 on to event 8; the last of its writes is in the second epoch.
        let epochs = [vec![1], vec![4, 5], vec![10]];
        let states = ["1:0:none", "1:1:none", "1:1:only0", "1:2:none"];
        let states = states.map(|name| name.parse().unwrap());
        let times = |counted, spans: &[std::ops::Range<usize>]| Times {
            spans: spans.to_vec(),
            ended: spans.len() as u64,
            counted,
        };
        let said = |times: &Times| said(times, &epochs, &states);
        let all = std::slice::from_ref(&(3..8));
        assert_eq!(said(&times(Some(4), all)), (Some(4), Some(2)));
        assert_eq!(said(&times(None, all)), (Some(1), Some(2)));
        // It was told to, and says that there was nothing to do.
        assert_eq!(said(&times(Some(0), all)), (Some(0), Some(2)));
        assert_eq!(said(&times(Some(4), &[])), (Some(4), None));
        assert_eq!(said(&times(Some(0), &[])), (Some(0), Some(0)));
        assert_eq!(said(&times(None, &[])), (None, None));
    }
}
