//! What happened around a power cut, in a few lines.

use landfall_lab::numbers::thousands;
use landfall_results::proof::timeline_text::words;
use landfall_results::proof::{Happening, Moment};

use landfall_results::view::{Cell, Column, Row, Table, Tone};

/// Lines shown before the cut and after it; the report has them all.
const LAST: usize = 8;
const AFTER: usize = 2;
/// Lines of missing writes that are shown before those.
const EARLY: usize = 2;

/// A line: when, and what.
struct Line {
    ms: Option<f64>,
    text: String,
    tone: Tone,
    /// Whether a write is missing, in whole or in part.
    is_broken: bool,
}

/// What happened, as few lines before the cut and after it.
pub(super) fn timeline(timeline: &[Moment]) -> Table {
    let cut = timeline.partition_point(|moment| !moment.after_cut);
    let (before, after) = timeline.split_at(cut);
    let mut all = fewer(folded(before));
    all.push(Line {
        ms: None,
        text: "power cut".to_owned(),
        tone: Tone::Bad,
        is_broken: false,
    });
    all.extend(folded(after).into_iter().take(AFTER).map(|line| Line {
        tone: Tone::Faint,
        ..line
    }));
    let rows = all.into_iter().map(|line| {
        let time = line.ms.map_or(String::new(), |ms| format!("{ms:.3} ms"));
        Row::of("", [time.into(), Cell::toned(line.tone, line.text)])
    });
    Table::new("", "", vec![Column::new(""), Column::text("")]).with_rows(rows)
}

/// A line for each moment, but one for what was said of transactions without anything between.
fn folded(moments: &[Moment]) -> Vec<Line> {
    let mut all = Vec::new();
    for run in moments.chunk_by(|one, next| is_said(one) && is_said(next)) {
        if run.len() > 1 {
            let (text, tone) = said(run);
            all.push(Line {
                ms: run.first().map(|moment| moment.ms),
                text,
                tone,
                is_broken: false,
            });
        } else {
            all.extend(run.iter().map(line));
        }
    }
    all
}

fn is_said(moment: &Moment) -> bool {
    matches!(
        moment.what,
        Happening::Send { .. } | Happening::Acknowledge { .. }
    )
}

/// Consecutive sends and acknowledgements: `transactions 13-24 sent and acknowledged`.
fn said(run: &[Moment]) -> (String, Tone) {
    let (mut sent, mut acknowledged) = (Vec::new(), Vec::new());
    for moment in run {
        match moment.what {
            Happening::Send { transaction } => sent.push(transaction),
            Happening::Acknowledge { transaction } => acknowledged.push(transaction),
            _ => {}
        }
    }
    let some = |numbers: &[u64]| match numbers {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] if last.abs_diff(*first) + 1 == numbers.len() as u64 => {
            format!("{first}-{last}")
        }
        several => several
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let noun = |numbers: &[u64]| match numbers.len() {
        1 => "transaction",
        _ => "transactions",
    };
    let is_sent = |text: &str| format!("{} {} {text}", noun(&sent), some(&sent));
    let is_acknowledged = || {
        let (noun, some) = (noun(&acknowledged), some(&acknowledged));
        format!("{noun} {some} acknowledged")
    };
    match (sent.is_empty(), acknowledged.is_empty()) {
        (false, false) if sent == acknowledged => (is_sent("sent and acknowledged"), Tone::Strong),
        (false, false) => {
            let text = format!("{}, {} sent", is_acknowledged(), some(&sent));
            (text, Tone::Strong)
        }
        (true, _) => (is_acknowledged(), Tone::Strong),
        (false, true) => (is_sent("sent"), Tone::Plain),
    }
}

fn line(moment: &Moment) -> Line {
    let mut text = words(moment, |offset| thousands(offset as f64));
    let (mut tone, mut is_broken) = match moment.what {
        Happening::Acknowledge { .. } => (Tone::Strong, false),
        _ => (Tone::Plain, false),
    };
    if let Happening::Write {
        sectors, missing, ..
    } = moment.what
        && missing > 0
        && !moment.after_cut
    {
        (tone, is_broken) = (Tone::Bad, true);
        text.push_str(&if missing == sectors {
            ", missing".to_owned()
        } else {
            format!(", {missing} of its {sectors} sectors missing")
        });
    }
    Line {
        ms: Some(moment.ms),
        text,
        tone,
        is_broken,
    }
}

/// The last lines, and the first of those earlier ones of which something is missing; what is left out
/// is counted.
fn fewer(all: Vec<Line>) -> Vec<Line> {
    let begin = all.len().saturating_sub(LAST);
    let (mut shown, mut left) = (Vec::new(), Vec::new());
    let mut early = 0;
    for (index, line) in all.into_iter().enumerate() {
        let is_early = index < begin && line.is_broken && early < EARLY;
        early += usize::from(is_early);
        if index >= begin || is_early {
            shown.extend(left_out(&mut left));
            shown.push(line);
        } else {
            left.push(line);
        }
    }
    shown
}

/// The line that stands for those that are left out: a single one for itself.
fn left_out(left: &mut Vec<Line>) -> Option<Line> {
    let count = left.len();
    let last = left.pop();
    left.clear();
    match count {
        0 | 1 => last,
        more => Some(Line {
            ms: None,
            text: format!("… {more} more events"),
            tone: Tone::Faint,
            is_broken: false,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(moments: &[Moment]) -> String {
        let text = landfall_report::text::table(&super::timeline(moments));
        anstream::adapter::strip_str(&text).to_string()
    }

    fn of(what: impl IntoIterator<Item = Happening>) -> Vec<Moment> {
        what.into_iter()
            .map(|what| Moment {
                ms: 1.0,
                node: None,
                what,
                after_cut: false,
            })
            .collect()
    }

    fn write(missing: u64) -> Happening {
        Happening::Write {
            offset: 4096,
            bytes: 4096,
            sectors: 8,
            missing,
            file: None,
        }
    }

    #[test]
    fn what_is_said_without_a_write_between_is_one_line() {
        let pair = |transaction| {
            [
                Happening::Send { transaction },
                Happening::Acknowledge { transaction },
            ]
        };
        let text = timeline(&of((1..=24).flat_map(pair)));
        assert!(
            text.contains("transactions 1-24 sent and acknowledged"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 2);
        let text = timeline(&of([
            Happening::Acknowledge { transaction: 3 },
            Happening::Send { transaction: 4 },
            write(0),
            Happening::Send { transaction: 5 },
        ]));
        assert!(text.contains("transaction 3 acknowledged"), "{text}");
        assert!(text.contains(", 4 sent") && text.contains("transaction 5 sent"));
    }

    #[test]
    fn few_lines_are_shown_and_missing_writes_among_them() {
        let mut all: Vec<Happening> = (0..60).map(|_| write(0)).collect();
        (all[3], all[30], all[40]) = (write(8), write(3), write(8));
        let text = anstream::adapter::strip_str(&timeline(&of(all))).to_string();
        assert!(text.lines().count() <= 16, "{text}");
        for words in [
            "… 3 more events",
            "4,096, missing",
            ", 3 of its 8 sectors missing",
            "… 21 more events",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}
