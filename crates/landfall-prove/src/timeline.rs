//! A failing state as it is shown: what happened to the device around the power cut.

use std::collections::HashMap;
use std::io;

use landfall_recorder::crash::{CrashState, Layout, Walker, WriteFate};
use landfall_recorder::{EventKind, Recording, SECTOR};
use landfall_results::proof::{FailingState, Happening, Moment};

use crate::Error;
use crate::cut_name::CutName;
use crate::judge::Judgement;
use crate::subject::{Mark, parse_marks};

/// Events shown after the cut, and epochs shown before it.
const AFTER: usize = 6;
const EPOCHS_BEFORE: u32 = 2;
/// Of more moments before the cut only the end is shown, about so many of them.
const MOST_BEFORE: usize = 60;

/// How many of a write's `sectors` are missing. Of those that it left as they were nobody can tell: where none of the others arrived, all
/// are.
pub(crate) fn missing(fate: &WriteFate, sectors: u64) -> u64 {
    let gone = fate.arrived.iter().filter(|arrived| !**arrived).count();
    if gone > 0 && gone == fate.arrived.len() {
        sectors
    } else {
        gone as u64
    }
}

/// What happened at an event of a device, of whose write so many sectors are missing.
pub(crate) fn happenings(
    recording: &Recording,
    event: usize,
    missing: impl FnOnce(u64) -> u64,
    file: impl FnOnce(u64) -> Option<String>,
) -> io::Result<Vec<Happening>> {
    Ok(match recording.events()[event].kind {
        EventKind::Write { offset, data } => {
            let bytes = u64::from(data.len);
            let sectors = bytes.div_ceil(SECTOR as u64);
            vec![Happening::Write {
                offset,
                bytes,
                sectors,
                missing: missing(sectors),
                file: file(offset),
            }]
        }
        EventKind::Flush { .. } => vec![Happening::Flush],
        EventKind::Forced { writes } => {
            let writes = recording.list(writes)?;
            let forced = writes.into_iter().filter_map(|write| {
                let EventKind::Write { offset, .. } = recording.events()[write].kind else {
                    return None;
                };
                Some(Happening::Forced { offset })
            });
            forced.collect()
        }
        EventKind::LyingFlush => vec![Happening::LyingFlush],
        EventKind::Refused => vec![Happening::Refused],
        EventKind::Mark(bytes) => {
            let marks = parse_marks(&recording.bytes(bytes)?).unwrap_or_default();
            let shown = marks.into_iter().filter_map(|mark| match mark {
                Mark::Sent(transaction) => Some(Happening::Send { transaction }),
                Mark::Acknowledged(transaction) => Some(Happening::Acknowledge { transaction }),
                Mark::Began(_) | Mark::Ended(_) | Mark::Counted(..) => None,
            });
            shown.collect()
        }
    })
}

/// The events around a cut after `position` events in epoch `cut`, with what became of its writes.
fn around(
    recording: &Recording,
    cut: u32,
    position: usize,
    fates: &[WriteFate],
    layout: &Layout,
) -> io::Result<Vec<Moment>> {
    let lacking = fates.iter().filter(|fate| fate.arrived.contains(&false));
    let lacking: HashMap<usize, &WriteFate> = lacking.map(|fate| (fate.event, fate)).collect();
    // Of a write that was under way some may be there: then it was before the cut.
    let is_torn = |fate: &WriteFate| fate.event == position && fate.arrived.contains(&true);
    let position = position + usize::from(fates.iter().any(is_torn));
    let events = recording.events();
    let mut epoch = 0;
    let mut begin = 0;
    for (index, event) in events.iter().enumerate() {
        if event.kind.ends_epoch() {
            epoch += 1;
            if epoch + EPOCHS_BEFORE == cut {
                begin = index + 1;
            }
            if epoch == cut {
                break;
            }
        }
    }
    // A write that was under way when a flush came may be missing after it, and the cut may be in the midst of an epoch.
    let begin = lacking
        .keys()
        .copied()
        .fold(begin.min(position), usize::min);
    let end = events.len().min(position + AFTER);
    let at = |index: usize| -> io::Result<Vec<Moment>> {
        let missing_of = |sectors| {
            let fate = lacking.get(&index);
            fate.map_or(0, |fate| missing(fate, sectors))
        };
        let file = |offset| layout.at(offset).map(|kind| layout.name(kind).to_owned());
        let all = happenings(recording, index, missing_of, file)?;
        let moments = all.into_iter().map(|what| Moment {
            ms: events[index].at.as_secs_f64() * 1e3,
            node: None,
            what,
            after_cut: index >= position,
        });
        Ok(moments.collect())
    };
    let mut moments = Vec::new();
    for index in (begin..position).rev() {
        if moments.len() >= MOST_BEFORE {
            break;
        }
        moments.extend(at(index)?.into_iter().rev());
    }
    moments.reverse();
    for index in position..end {
        moments.extend(at(index)?);
    }
    Ok(moments)
}

/// A failing state of this name, as it is shown, with the files that `layout` knows.
pub(crate) fn failing(
    recording: &Recording,
    layout: &Layout,
    name: &CutName,
    state: &CrashState,
    judgement: &Judgement,
    again: &str,
) -> Result<FailingState, Error> {
    let timeline = Walker::new(recording)
        .and_then(|mut walker| walker.fates(&state.name))
        .and_then(|fates| around(recording, state.name.cut, state.position, &fates, layout));
    Ok(FailingState {
        name: name.to_string(),
        command: format!("{again} --state {name}"),
        details: judgement
            .details
            .iter()
            .map(|(_, detail)| detail.clone())
            .collect(),
        timeline: timeline.map_err(Error::io("cannot read the recording"))?,
        found: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write of eight sectors, of which those that differ from what was there arrived or not.
    fn fate(arrived: &[bool]) -> WriteFate {
        WriteFate {
            event: 0,
            arrived: arrived.to_vec(),
            places: (0..arrived.len() as u32).collect(),
            fragments: vec![1; arrived.len()],
        }
    }

    #[test]
    fn a_write_of_which_nothing_arrived_is_missing_and_not_torn() {
        for (arrived, expected) in [
            (&[false][..], 8),
            (&[false; 8], 8),
            (&[true, false, false], 2),
            (&[true; 8], 0),
            (&[], 0),
        ] {
            assert_eq!(missing(&fate(arrived), 8), expected, "{arrived:?}");
        }
    }
}
