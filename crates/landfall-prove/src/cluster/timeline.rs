//! A failing state of a cluster as it is shown: what happened to the nodes' devices before the power cut.

use std::collections::HashMap;
use std::io;

use landfall_recorder::crash::Walker;
use landfall_recorder::{EventKind, SECTOR};
use landfall_results::proof::{FailingState, Happening, Moment};

use super::ClusterStateName;
use super::name::Fate;
use super::survey::node_state;
use super::worker::Case;
use crate::judge::Judgement;
use crate::subject::{Mark, parse_marks};

/// Events shown before the cut, and after it.
const BEFORE: usize = 60;
const AFTER: usize = 6;

/// A failing state, as it is shown.
pub(super) fn failing(
    case: &Case<'_>,
    name: &ClusterStateName,
    judgement: &Judgement,
    again: &str,
) -> io::Result<FailingState> {
    Ok(FailingState {
        name: name.to_string(),
        command: format!("{again} --state {name}"),
        details: judgement
            .details
            .iter()
            .map(|(_, detail)| detail.clone())
            .collect(),
        timeline: around(case, name)?,
        found: None,
    })
}

fn around(case: &Case<'_>, name: &ClusterStateName) -> io::Result<Vec<Moment>> {
    let site = case.recording;
    let cut = case.cut(name.moment);
    let mut missing: HashMap<(usize, usize), u64> = HashMap::new();
    for (node, fate) in name.fates.iter().enumerate() {
        if !matches!(fate, Fate::Cut(_)) {
            continue;
        }
        let mut walker = Walker::new(&site.devices()[node])?;
        let state = node_state(&walker, name.seed, *fate, cut[node]);
        for fate in walker.fates_before(&state, cut[node])? {
            let sectors = fate.arrived.iter().filter(|arrived| !**arrived).count();
            missing.insert((node, fate.event), sectors as u64);
        }
    }
    let mut moments = Vec::new();
    let first = name.moment.saturating_sub(BEFORE);
    for (place, (node, event)) in site.in_order().enumerate().skip(first).take(BEFORE + AFTER) {
        let recording = &site.devices()[node];
        let event_of = recording.events()[event];
        let mut push = |node: Option<usize>, what| {
            moments.push(Moment {
                ms: event_of.at.as_secs_f64() * 1e3,
                node: node.map(|node| node as u64),
                what,
                after_cut: place >= name.moment,
            });
        };
        match event_of.kind {
            EventKind::Write { offset, data } => {
                let sectors = u64::from(data.len).div_ceil(SECTOR as u64);
                let missing = match name.fates[node] {
                    // It is as before all of them.
                    Fate::Begun => sectors,
                    _ => missing.get(&(node, event)).copied().unwrap_or(0),
                };
                push(
                    Some(node),
                    Happening::Write {
                        offset,
                        bytes: u64::from(data.len),
                        sectors,
                        missing,
                        file: None,
                    },
                );
            }
            EventKind::Flush { .. } => push(Some(node), Happening::Flush),
            EventKind::LyingFlush => push(Some(node), Happening::LyingFlush),
            EventKind::Refused => push(Some(node), Happening::Refused),
            EventKind::Forced { writes } => {
                for write in recording.list(writes)? {
                    if let EventKind::Write { offset, .. } = recording.events()[write].kind {
                        push(Some(node), Happening::Forced { offset });
                    }
                }
            }
            EventKind::Mark(bytes) => {
                for mark in parse_marks(&recording.bytes(bytes)?).unwrap_or_default() {
                    match mark {
                        Mark::Sent(transaction) => push(None, Happening::Send { transaction }),
                        Mark::Acknowledged(transaction) => {
                            push(None, Happening::Acknowledge { transaction });
                        }
                        Mark::Began(_) | Mark::Ended(_) | Mark::Counted(..) => {}
                    }
                }
            }
        }
    }
    Ok(moments)
}
