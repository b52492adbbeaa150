//! A failing state of a cluster as it is shown: what happened to the nodes' devices before the power cut.

use std::collections::HashMap;
use std::io;

use landfall_recorder::EventKind;
use landfall_recorder::crash::{Walker, WriteFate};
use landfall_results::proof::{FailingState, Moment};

use super::ClusterStateName;
use super::name::Fate;
use super::survey::node_state;
use super::worker::Case;
use crate::judge::Judgement;
use crate::timeline::{happenings, missing};

/// Moments shown before the cut, at least if there are so many, and events after it.
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
    let mut fates: HashMap<(usize, usize), WriteFate> = HashMap::new();
    for (node, fate) in name.fates.iter().enumerate() {
        if !matches!(fate, Fate::Cut(_)) {
            continue;
        }
        let mut walker = Walker::new(&site.devices()[node])?;
        let state = node_state(&walker, name.seed, *fate, cut[node]);
        for fate in walker.fates_before(&state, cut[node])? {
            fates.insert((node, fate.event), fate);
        }
    }
    let events: Vec<(usize, usize)> = site.in_order().take(name.moment + AFTER).collect();
    let at = |place: usize| -> io::Result<Vec<Moment>> {
        let (node, event) = events[place];
        let recording = &site.devices()[node];
        let is_mark = matches!(recording.events()[event].kind, EventKind::Mark(_));
        let after_cut = place >= name.moment;
        // The node had no power any more, whatever its kernel went on to write. Marks are the client's.
        if !is_mark && !after_cut && event >= cut[node] {
            return Ok(Vec::new());
        }
        let missing_of = |sectors| match name.fates[node] {
            // It is as before all of them.
            Fate::Begun => sectors,
            _ => {
                let fate = fates.get(&(node, event));
                fate.map_or(0, |fate| missing(fate, sectors))
            }
        };
        let all = happenings(recording, event, missing_of, |_| None)?;
        let moments = all.into_iter().map(|what| Moment {
            ms: recording.events()[event].at.as_secs_f64() * 1e3,
            node: (!is_mark).then_some(node as u64),
            what,
            after_cut,
        });
        Ok(moments.collect())
    };
    // Marks of what is not shown leave room for what was before.
    let mut moments = Vec::new();
    for place in (0..name.moment.min(events.len())).rev() {
        if moments.len() >= BEFORE {
            break;
        }
        moments.extend(at(place)?.into_iter().rev());
    }
    moments.reverse();
    for place in name.moment.min(events.len())..events.len() {
        moments.extend(at(place)?);
    }
    Ok(moments)
}
