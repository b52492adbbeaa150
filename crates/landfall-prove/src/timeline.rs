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

/// The events around a cut after `position` events in epoch `cut`, with what became of its writes.
fn around(
    recording: &Recording,
    cut: u32,
    position: usize,
    fates: &[WriteFate],
    layout: &Layout,
) -> io::Result<Vec<Moment>> {
    let missing: HashMap<usize, u64> = fates
        .iter()
        .map(|fate| {
            let missing = fate.arrived.iter().filter(|arrived| !**arrived);
            (fate.event, missing.count() as u64)
        })
        .filter(|(_, missing)| *missing > 0)
        .collect();
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
    let begin = missing
        .keys()
        .copied()
        .fold(begin.min(position), usize::min);
    let end = events.len().min(position + AFTER);
    let at = |index: usize| -> io::Result<Vec<Moment>> {
        let event = events[index];
        let mut moments = Vec::new();
        let mut push = |what| {
            moments.push(Moment {
                ms: event.at.as_secs_f64() * 1e3,
                node: None,
                what,
                after_cut: index >= position,
            });
        };
        match event.kind {
            EventKind::Write { offset, data } => {
                let sectors = u64::from(data.len).div_ceil(SECTOR as u64);
                push(Happening::Write {
                    offset,
                    bytes: u64::from(data.len),
                    sectors,
                    missing: missing.get(&index).copied().unwrap_or(0),
                    file: layout.at(offset).map(|kind| layout.name(kind).to_owned()),
                });
            }
            EventKind::Flush { .. } => push(Happening::Flush),
            EventKind::Forced { writes } => {
                for write in recording.list(writes)? {
                    if let EventKind::Write { offset, .. } = events[write].kind {
                        push(Happening::Forced { offset });
                    }
                }
            }
            EventKind::LyingFlush => push(Happening::LyingFlush),
            EventKind::Refused => push(Happening::Refused),
            EventKind::Mark(bytes) => {
                for mark in parse_marks(&recording.bytes(bytes)?).unwrap_or_default() {
                    match mark {
                        Mark::Sent(transaction) => push(Happening::Send { transaction }),
                        Mark::Acknowledged(transaction) => {
                            push(Happening::Acknowledge { transaction });
                        }
                        Mark::Began(_) | Mark::Ended(_) | Mark::Counted(..) => {}
                    }
                }
            }
        }
        Ok(moments)
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
