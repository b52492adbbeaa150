//! The timeline around a power cut: what was said, written and flushed, in order.

use crate::numbers::thousands;
use landfall_os::humanize::bytes_text;
use landfall_results::proof::timeline_text::words;
use landfall_results::proof::{FailingState, Happening, Moment};
use landfall_results::view::chart::{Chart, Drawing, Event, EventKind, Timeline};

/// Regions of the device that get a lane each, at most.
const MOST_REGIONS: usize = 5;
/// Writes that are closer than this belong to one region, in bytes.
const CLOSE: u64 = 64 << 10;

/// The timeline of a failing state.
pub(super) fn timeline(id: String, state: &FailingState) -> Chart {
    let moments = &state.timeline;
    let regions = Regions::of(moments);
    let cut = moments.partition_point(|moment| !moment.after_cut);
    let last_flush = moments[..cut]
        .iter()
        .rposition(|moment| moment.what == Happening::Flush);
    let mut lanes = vec!["sent".to_owned(), "acknowledged".to_owned()];
    lanes.extend(regions.names());
    let flushes = lanes.len();
    lanes.push("flush".to_owned());
    let events = moments
        .iter()
        .enumerate()
        .map(|(index, moment)| {
            let at = index + usize::from(index >= cut);
            event(at, moment, &regions, flushes)
        })
        .collect();
    let timeline = Timeline {
        lanes,
        flushes,
        events,
        cut,
        since: last_flush.map_or(0, |flush| flush + 1),
    };
    Chart::new(id, Drawing::Timeline(timeline))
}

/// Whether a write is missing from the state, in whole or in part.
pub(super) fn lacks_something(state: &FailingState) -> bool {
    let lacks =
        |moment: &Moment| matches!(moment.what, Happening::Write { missing, .. } if missing > 0);
    let mut before = state.timeline.iter().filter(|moment| !moment.after_cut);
    before.any(lacks)
}

fn event(at: usize, moment: &Moment, regions: &Regions, flushes: usize) -> Event {
    let (kind, lane, arrived, label, short) = match &moment.what {
        Happening::Send { transaction } => (
            EventKind::Send,
            0,
            1.0,
            transaction.to_string(),
            format!("{transaction} sent"),
        ),
        Happening::Acknowledge { transaction } => (
            EventKind::Acknowledge,
            1,
            1.0,
            transaction.to_string(),
            format!("{transaction} acknowledged"),
        ),
        Happening::Write {
            offset,
            bytes,
            sectors,
            missing,
            file,
        } => {
            let arrived = if moment.after_cut {
                0.0
            } else {
                1.0 - *missing as f64 / (*sectors).max(1) as f64
            };
            let label = match (moment.after_cut, missing) {
                (true, _) | (_, 0) => String::new(),
                (_, all) if all == sectors => "missing".to_owned(),
                (_, some) => format!("{some}/{sectors} missing"),
            };
            let mut short = format!("{} at {}", bytes_text(*bytes), mebibytes(*offset));
            if let Some(file) = file {
                short.push_str(&format!(", {file}"));
            }
            if !label.is_empty() {
                short.push_str(&format!(", {label}"));
            }
            (
                EventKind::Write,
                2 + regions.index(moment.node, *offset),
                arrived,
                label,
                short,
            )
        }
        Happening::Flush => (
            EventKind::Flush,
            flushes,
            1.0,
            String::new(),
            match moment.node {
                Some(node) => format!("node {node} flushes"),
                None => "flush".to_owned(),
            },
        ),
        Happening::Forced { .. } => (
            EventKind::Flush,
            flushes,
            1.0,
            "FUA".to_owned(),
            "one write durable".to_owned(),
        ),
        Happening::LyingFlush => (
            EventKind::LyingFlush,
            flushes,
            1.0,
            "not done".to_owned(),
            "flush, not done".to_owned(),
        ),
        Happening::Refused => (
            EventKind::Refused,
            flushes,
            1.0,
            "refused".to_owned(),
            "request refused".to_owned(),
        ),
    };
    let long = words(moment, |offset| thousands(offset as f64));
    Event {
        at,
        lane,
        kind,
        arrived,
        after: moment.after_cut,
        title: format!(
            "{:.3} ms: {long}{}",
            moment.ms,
            match (label.as_str(), moment.after_cut) {
                (_, true) => ", after the power cut".to_owned(),
                ("", false) => String::new(),
                (label, false) if kind == EventKind::Write => format!(", {label}"),
                _ => String::new(),
            }
        ),
        label,
        words: short,
    }
}

/// Where on the device, for reading.
fn mebibytes(offset: u64) -> String {
    let text = format!("{:.1}", offset as f64 / f64::from(1 << 20));
    format!("{} MiB", text.strip_suffix(".0").unwrap_or(&text))
}

/// Parts of the device that were written to, told apart by the widest gaps between them; of a cluster its nodes.
struct Regions {
    /// Where each begins, in order.
    begins: Vec<u64>,
    /// Nodes of the cluster; 0: it is none.
    nodes: u64,
}

impl Regions {
    fn of(moments: &[Moment]) -> Regions {
        let mut extents: Vec<(u64, u64)> = moments
            .iter()
            .filter_map(|moment| match moment.what {
                Happening::Write { offset, bytes, .. } => Some((offset, offset + bytes)),
                _ => None,
            })
            .collect();
        extents.sort_unstable();
        let mut end = 0;
        // Gaps before an extent, with where it begins.
        let mut gaps: Vec<(u64, u64)> = Vec::new();
        for (index, (begin, extent_end)) in extents.iter().enumerate() {
            let gap = begin.saturating_sub(end);
            if index == 0 {
                gaps.push((u64::MAX, *begin));
            } else if gap >= CLOSE {
                gaps.push((gap, *begin));
            }
            end = end.max(*extent_end);
        }
        gaps.sort_unstable_by(|a, b| b.cmp(a));
        gaps.truncate(MOST_REGIONS);
        let mut begins: Vec<u64> = gaps.into_iter().map(|(_, begin)| begin).collect();
        begins.sort_unstable();
        let nodes = moments.iter().filter_map(|moment| moment.node);
        let nodes = nodes.max().map_or(0, |last| last + 1);
        Regions { begins, nodes }
    }

    /// The region that holds the byte at `offset`, or the node.
    fn index(&self, node: Option<u64>, offset: u64) -> usize {
        if let Some(node) = node {
            return node as usize;
        }
        let after = self.begins.partition_point(|begin| *begin <= offset);
        after.saturating_sub(1)
    }

    fn names(&self) -> Vec<String> {
        if self.nodes > 0 {
            return (0..self.nodes)
                .map(|node| format!("node {node} writes"))
                .collect();
        }
        self.begins
            .iter()
            .map(|begin| format!("write at {}", mebibytes(*begin)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_results::proof::fixtures::{failing, moment, state, write};

    fn drawn(state: &FailingState) -> Timeline {
        match timeline("t".to_owned(), state).drawing {
            Drawing::Timeline(timeline) => timeline,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_cut_stands_between_what_was_before_and_after_it() {
        let state = failing().shortest.unwrap();
        let drawn = drawn(&state);
        assert_eq!((drawn.cut, drawn.since, drawn.marks()), (9, 3, 12));
        let places: Vec<usize> = drawn.events.iter().map(|event| event.at).collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11]);
        assert_eq!(
            drawn.lanes,
            [
                "sent",
                "acknowledged",
                "write at 9 MiB",
                "write at 16 MiB",
                "flush"
            ]
        );
        let lanes: Vec<usize> = drawn.events.iter().map(|event| event.lane).collect();
        assert_eq!(lanes, [0, 2, 4, 1, 0, 2, 3, 3, 1, 4, 3]);
        assert_eq!(drawn.events[5].label, "missing");
        assert_eq!(
            (drawn.events[6].label.as_str(), drawn.events[6].arrived),
            ("3/8 missing", 0.625)
        );
        // After the cut nothing is missing: it was never there.
        assert_eq!(drawn.events[10].label, "");
    }

    #[test]
    fn writes_all_over_the_device_share_few_lanes() {
        let writes = (0..40).map(|index| moment(0.0, write((index * index) << 20, 8, 0), false));
        let drawn = drawn(&state(writes.collect()));
        assert_eq!(drawn.lanes.len(), 3 + MOST_REGIONS);
        assert!(
            drawn
                .events
                .iter()
                .all(|event| (2..2 + MOST_REGIONS).contains(&event.lane))
        );
        assert_eq!(drawn.events[0].lane, 2);
    }

    #[test]
    fn a_timeline_without_writes_is_drawn_too() {
        let said = vec![moment(0.0, Happening::Send { transaction: 1 }, false)];
        assert_eq!(drawn(&state(said)).marks(), 2);
        assert_eq!(drawn(&state(Vec::new())).marks(), 1);
    }
}
