//! A failing state in words: what happened before its power cut, and what it lacks of that.

use std::collections::BTreeMap;

use landfall_os::humanize::bytes_text;

use super::counted::{counted, number_is, whole};
use super::{FailingState, Happening, Moment};

/// Moments before a cut that a timeline holds at least, if there were so many; of fewer it holds all since the last flush,
/// and every write that is missing.
const WHOLE_TIMELINE: usize = 60;
/// A timeline of no more lines has one for each moment.
const FEW: usize = 20;

/// Which writes a failing state lacks, as far as its timeline tells.
pub fn missing(state: &FailingState) -> Option<String> {
    let cut = state.timeline.iter().take_while(|moment| !moment.after_cut);
    let before = &state.timeline[..cut.count()];
    if state.timeline.iter().any(|moment| moment.node.is_some()) {
        return Some(missing_of_nodes(before));
    }
    let is_whole = before.len() < WHOLE_TIMELINE;
    let is_flush = |moment: &Moment| moment.what == Happening::Flush;
    let flushed = before.iter().rposition(is_flush);
    let since = flushed.map_or(0, |flush| flush + 1);
    // A write that was under way when the flush came may be missing too.
    let first_gone = before.iter().position(lacks_any);
    let begin = first_gone.map_or(since, |gone| gone.min(since));
    let (mut writes, mut gone, mut torn) = (0, 0, 0);
    for moment in &before[begin..] {
        if let Happening::Write {
            sectors, missing, ..
        } = moment.what
        {
            writes += 1;
            gone += u64::from(missing == sectors);
            torn += u64::from((1..sectors).contains(&missing));
        }
    }
    // Writes that are durable by themselves may have pushed the last flush out of the timeline.
    let is_forced = |moment: &Moment| matches!(moment.what, Happening::Forced { .. });
    let is_since_flush = match flushed {
        Some(_) => begin == since,
        None => is_whole && !before.iter().any(is_forced),
    };
    let these = counted(writes, "write", "writes");
    let these = if is_since_flush {
        format!("{these} since the last flush")
    } else {
        format!("last {these}")
    };
    let text = match (gone, torn) {
        (0, 0) if flushed.is_none() && is_since_flush && writes == 0 => {
            "Nothing had reached the device by then, whatever had been acknowledged.".to_owned()
        }
        (0, 0) if is_whole => {
            "No write that had reached the device by then is missing: what else it takes was written later, or never."
                .to_owned()
        }
        // An older one may be.
        (0, 0) if flushed.is_some() => "No write since the last flush is missing.".to_owned(),
        (0, 0) => return None,
        (gone, _) if writes == 1 && !is_since_flush => {
            let fate = if gone == 1 { "missing" } else { "torn" };
            format!("The last write is {fate}.")
        }
        (gone, 0) if gone == writes && gone > 1 => format!("All of the {these} are missing."),
        (gone, 0) => format!("Of the {these} {} missing.", number_is(gone)),
        (0, torn) => format!("Of the {these} {} torn.", number_is(torn)),
        (gone, torn) => format!(
            "Of the {these} {} missing and {} torn.",
            number_is(gone),
            number_is(torn)
        ),
    };
    Some(text)
}

/// Whether it is a write of which something is missing.
fn lacks_any(moment: &Moment) -> bool {
    matches!(moment.what, Happening::Write { missing, .. } if missing > 0)
}

/// Which nodes of a cluster lack writes of those before the cut that are shown.
fn missing_of_nodes(before: &[Moment]) -> String {
    let mut lacking: BTreeMap<u64, u64> = BTreeMap::new();
    let lacks = before.iter().filter(|moment| lacks_any(moment));
    for node in lacks.filter_map(|moment| moment.node) {
        *lacking.entry(node).or_default() += 1;
    }
    if lacking.is_empty() {
        let lately = "All that had lately been written to the disks is there";
        return if before.len() < WHOLE_TIMELINE {
            format!("{lately}: what else was acknowledged had not been written.")
        } else {
            format!("{lately}.")
        };
    }
    let is_write = |moment: &&Moment| matches!(moment.what, Happening::Write { .. });
    let writes = before.iter().filter(is_write).count() as u64;
    let each = lacking
        .iter()
        .map(|(node, writes)| format!("node {node} lacks {}", whole(*writes)));
    let each: Vec<String> = each.collect();
    let these = counted(writes, "write", "writes");
    format!("Of the last {these} to the disks {}.", each.join(", "))
}

/// What happened, in a few words; `place` says where a byte of the device is.
pub fn words(moment: &Moment, place: impl Fn(u64) -> String) -> String {
    let node = moment.node.map(|node| format!("node {node}: "));
    let what = match &moment.what {
        Happening::Write {
            offset,
            bytes,
            file,
            ..
        } => {
            let file = file.as_ref().map(|file| format!(" of {file}"));
            format!(
                "write {}{} at {}",
                bytes_text(*bytes),
                file.unwrap_or_default(),
                place(*offset)
            )
        }
        Happening::Flush => "flush".to_owned(),
        Happening::Forced { offset } => {
            format!("the write at {} is durable by itself", place(*offset))
        }
        Happening::LyingFlush => "flush that the device did not do".to_owned(),
        Happening::Refused => "request that the device refused".to_owned(),
        Happening::Send { transaction } => format!("transaction {transaction} sent"),
        Happening::Acknowledge { transaction } => {
            format!("transaction {transaction} acknowledged")
        }
    };
    node.unwrap_or_default() + &what
}

/// What happened around the cut of a failing state, a line each; transactions between which nothing reached the device
/// share one.
pub(super) fn timeline(state: &FailingState) -> String {
    let cut = state.timeline.iter().take_while(|moment| !moment.after_cut);
    let (before, after) = state.timeline.split_at(cut.count());
    let side = |moments: &[Moment]| -> String {
        let is_mark = |moment: &Moment| {
            matches!(
                moment.what,
                Happening::Send { .. } | Happening::Acknowledge { .. }
            )
        };
        let together =
            moments.chunk_by(|one, next| is_mark(one) && is_mark(next) && moments.len() > FEW);
        let lines = together.map(|these| match these {
            [first, _, _, ..] => line(first.ms, &marks(these)),
            _ => these.iter().map(|one| line(one.ms, &fate(one))).collect(),
        });
        lines.collect()
    };
    format!("{}{:14}the power is cut\n{}", side(before), "", side(after))
}

fn line(ms: f64, what: &str) -> String {
    format!("{ms:>9.3} ms  {what}\n")
}

/// What happened, and what the state has of it.
fn fate(moment: &Moment) -> String {
    let what = words(moment, |offset| format!("byte {}", whole(offset)));
    match &moment.what {
        // What came later is not missing, it was never there.
        Happening::Write {
            sectors, missing, ..
        } if !moment.after_cut && *missing > 0 => {
            let fate = if missing == sectors {
                "missing"
            } else {
                "torn"
            };
            format!("{what}: {fate}")
        }
        _ => what,
    }
}

/// Several marks in one line: `transactions 3 to 9 sent, 3 to 8 acknowledged`.
fn marks(moments: &[Moment]) -> String {
    let span = |numbers: Vec<u64>| match (numbers.iter().min(), numbers.iter().max()) {
        (Some(first), Some(last)) if first < last => format!("{first} to {last}"),
        (Some(only), _) => only.to_string(),
        _ => "none".to_owned(),
    };
    let sent = moments.iter().filter_map(|moment| match moment.what {
        Happening::Send { transaction } => Some(transaction),
        _ => None,
    });
    let acknowledged = moments.iter().filter_map(|moment| match moment.what {
        Happening::Acknowledge { transaction } => Some(transaction),
        _ => None,
    });
    format!(
        "transactions {} sent, {} acknowledged",
        span(sent.collect()),
        span(acknowledged.collect())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::fixtures::{failing, moment, state, write};
    use crate::proof::summary_text::of;

    #[test]
    fn a_write_is_named_after_its_file_where_one_is_known() {
        let of = |file: Option<&str>| Happening::Write {
            offset: 4096,
            bytes: 8192,
            sectors: 16,
            missing: 0,
            file: file.map(str::to_owned),
        };
        let place = |offset: u64| offset.to_string();
        let text = words(&moment(1.0, of(Some("pg_wal/#")), false), place);
        assert_eq!(text, "write 8 KiB of pg_wal/# at 4096");
        assert_eq!(
            words(&moment(1.0, of(None), false), place),
            "write 8 KiB at 4096"
        );
    }

    #[test]
    fn transactions_between_which_nothing_was_written_share_a_line() {
        let mut failing = failing();
        let marks = (1..=30).flat_map(|transaction| {
            let sent = moment(0.5, Happening::Send { transaction }, false);
            [
                sent,
                moment(0.6, Happening::Acknowledge { transaction }, false),
            ]
        });
        failing.shortest = Some(state(marks.collect()));
        let text = of(&failing);
        let (_, timeline) = text.split_once("    0.500 ms  ").unwrap();
        assert_eq!(
            timeline,
            "transactions 1 to 30 sent, 1 to 30 acknowledged\n              the power is cut\n"
        );
    }

    #[test]
    fn the_missing_writes_are_those_since_the_last_flush() {
        let text = |moments| missing(&state(moments));
        assert_eq!(
            text(failing().shortest.unwrap().timeline).unwrap(),
            "Of the 3 writes since the last flush 1 is missing and 1 is torn."
        );
        let whole = vec![moment(0.0, write(0, 8, 0), false)];
        assert!(text(whole).unwrap().starts_with("No write that had"));
        assert!(text(Vec::new()).unwrap().starts_with("Nothing had reached"));
        let many = (0..70).map(|_| moment(0.0, write(0, 8, 0), false));
        assert_eq!(text(many.collect()), None);
    }

    #[test]
    fn a_write_that_was_under_way_at_the_last_flush_may_be_missing_too() {
        let text = |what: &[Happening]| {
            let moments = what.iter().map(|what| moment(0.0, what.clone(), false));
            missing(&state(moments.collect()))
        };
        let (there, gone, flush) = (write(0, 8, 0), write(0, 8, 8), Happening::Flush);
        let carried = [&there, &gone, &flush, &there].map(Clone::clone);
        let said = "Of the last 2 writes 1 is missing.";
        assert_eq!(text(&carried).unwrap(), said);
        let only = text(&[gone.clone(), flush.clone()]).unwrap();
        assert_eq!(only, "The last write is missing.");
        // Of a long timeline nothing is known but what it shows.
        let mut long = vec![there.clone(); 70];
        long.extend([flush, there.clone()]);
        let said = "No write since the last flush is missing.";
        assert_eq!(text(&long).unwrap(), said);
    }

    #[test]
    fn where_writes_are_durable_by_themselves_the_last_flush_may_not_be_shown() {
        let text = |last: Happening| {
            let forced = Happening::Forced { offset: 0 };
            let moments = [write(0, 8, 0), forced, last].map(|what| moment(0.0, what, false));
            missing(&state(moments.into())).unwrap()
        };
        let gone = text(write(0, 8, 8));
        assert_eq!(gone, "Of the last 2 writes 1 is missing.");
        assert!(text(write(0, 8, 0)).starts_with("No write that had reached"));
    }

    #[test]
    fn of_nodes_is_said_what_is_seen() {
        let text = |moments: Vec<Moment>| {
            let nodes = moments.into_iter().enumerate();
            let nodes = nodes.map(|(place, moment)| Moment {
                node: Some(place as u64 % 2),
                ..moment
            });
            missing(&state(nodes.collect())).unwrap()
        };
        let there = moment(0.0, write(0, 8, 0), false);
        let gone = moment(0.0, write(0, 8, 8), false);
        let lacking = text(vec![there.clone(), gone.clone(), gone]);
        let said = "Of the last 3 writes to the disks node 0 lacks 1, node 1 lacks 1.";
        assert_eq!(lacking, said);
        let few = text(vec![there.clone()]);
        assert!(few.ends_with("had not been written."), "{few}");
        let many = text(vec![there; 70]);
        assert!(many.ends_with("disks is there."), "{many}");
    }
}
