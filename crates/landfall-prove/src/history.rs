//! What a subject sent and acknowledged, and where among the device's writes.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;

use landfall_recorder::{EventKind, Recording};
use landfall_results::proof::Hazard;

use crate::subject::{Mark, parse_marks};

/// Everything said during a recording, in order, each with the number of events before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// What had been said before the recording began.
    before: Acknowledged,
    marks: Vec<(usize, Mark)>,
}

impl History {
    /// Reads the marks of a recording; those that say nothing of transactions are an error.
    pub fn of(recording: &Recording) -> io::Result<History> {
        let mut marks = Vec::new();
        for (index, event) in recording.events().iter().enumerate() {
            if let EventKind::Mark(bytes) = event.kind {
                marks.push((index, recording.bytes(bytes)?));
            }
        }
        History::of_marks(marks)
    }

    /// Reads marks, each with the number of events before it.
    pub fn of_marks(written: Vec<(usize, Vec<u8>)>) -> io::Result<History> {
        let mut marks = Vec::new();
        for (index, bytes) in written {
            let said = parse_marks(&bytes)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            marks.extend(said.into_iter().map(|mark| (index, mark)));
        }
        let before = Acknowledged::default();
        Ok(History { before, marks })
    }

    /// Each transaction that was acknowledged, with how many events there were when that had been said.
    pub fn acknowledgements(&self) -> impl Iterator<Item = (u64, usize)> {
        let acknowledged = self.marks.iter();
        acknowledged.filter_map(|(index, mark)| match mark {
            Mark::Acknowledged(transaction) => Some((*transaction, index + 1)),
            _ => None,
        })
    }

    /// Of a recording during which nothing is said, since the power had gone before.
    pub fn ended(before: Acknowledged) -> History {
        let marks = Vec::new();
        History { before, marks }
    }

    /// How often something happened, as far as that was said: between which events, and how often in all.
    pub fn times(&self, hazard: Hazard) -> Times {
        let (mut times, mut under_way, mut begin) = (Times::default(), 0, 0);
        for (index, mark) in &self.marks {
            match mark {
                Mark::Began(what) if *what == hazard => {
                    if under_way == 0 {
                        begin = *index;
                    }
                    under_way += 1;
                }
                // What ends without having begun says nothing.
                Mark::Ended(what) if *what == hazard && under_way > 0 => {
                    under_way -= 1;
                    times.ended += 1;
                    if under_way == 0 {
                        times.spans.push(begin..*index);
                    }
                }
                Mark::Counted(what, count) if *what == hazard => times.counted = Some(*count),
                _ => {}
            }
        }
        if under_way > 0 {
            times.spans.push(begin..usize::MAX);
        }
        times
    }

    /// Everything that was said to have happened.
    pub fn hazards(&self) -> BTreeSet<Hazard> {
        let marks = self.marks.iter();
        marks
            .filter_map(|(_, mark)| match mark {
                Mark::Began(what) | Mark::Counted(what, _) => Some(*what),
                _ => None,
            })
            .collect()
    }

    /// What had been said when `position` events had happened.
    pub fn at(&self, position: usize) -> Acknowledged {
        let mut known = self.before.clone();
        for (index, mark) in &self.marks {
            if *index >= position {
                break;
            }
            match *mark {
                Mark::Sent(transaction) => drop(known.sent.insert(transaction)),
                // Whoever acknowledges has sent, whether he said so or not.
                Mark::Acknowledged(transaction) => {
                    known.sent.insert(transaction);
                    if known.acknowledged.insert(transaction) {
                        known.last_acknowledged = Some(transaction);
                    }
                }
                Mark::Began(_) | Mark::Ended(_) | Mark::Counted(..) => {}
            }
        }
        known
    }

    /// What must and may be there in a state: what had been acknowledged when `position` events had
    /// happened, and what had been sent before the last write that arrived, which was one of the first
    /// `written` events. Who acknowledges has sent, so that a transaction may be among both or only
    /// among those acknowledged: then whatever is there of it was written too early. Of one that was
    /// never said to be sent nobody knows when it was: it may be there.
    pub fn between(&self, written: usize, position: usize) -> Acknowledged {
        let now = self.at(position);
        let mut sent = self.at(written).sent;
        let missing: BTreeSet<u64> = now.acknowledged.difference(&sent).copied().collect();
        if !missing.is_empty() {
            let marks = self.marks.iter();
            let said: BTreeSet<u64> = marks
                .filter_map(|(_, mark)| match mark {
                    Mark::Sent(transaction) => Some(*transaction),
                    _ => None,
                })
                .collect();
            sent.extend(missing.difference(&said));
        }
        Acknowledged { sent, ..now }
    }

    /// Everything said in the end.
    pub fn whole(&self) -> Acknowledged {
        self.at(usize::MAX)
    }
}

/// How often something happened, as far as that was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Between which events; where several were under way at the same time, they are one.
    pub spans: Vec<Range<usize>>,
    /// How often it was said to have begun and ended.
    pub ended: u64,
    /// How often it happened, as the subject counted itself.
    pub counted: Option<u64>,
}

/// Transactions that had been sent and acknowledged at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Sent.
    pub sent: BTreeSet<u64>,
    /// Acknowledged as durable.
    pub acknowledged: BTreeSet<u64>,
    /// The one of those that was acknowledged last, which with several clients need not have the greatest number.
    pub last_acknowledged: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_the_same_time_is_one_span() {
        let (one, other) = (Hazard::Checkpoint, Hazard::Snapshot);
        let history = History {
            before: Acknowledged::default(),
            marks: vec![
                (1, Mark::Ended(one)),
                (2, Mark::Began(one)),
                (3, Mark::Began(one)),
                (4, Mark::Began(other)),
                (5, Mark::Ended(one)),
                (7, Mark::Ended(one)),
                (9, Mark::Began(one)),
                (9, Mark::Ended(one)),
                (9, Mark::Counted(one, 5)),
            ],
        };
        let times = history.times(one);
        assert_eq!(times.spans, [2..7, 9..9]);
        assert_eq!((times.ended, times.counted), (3, Some(5)));
        // It was cut off.
        assert_eq!(
            history.times(other).spans,
            std::slice::from_ref(&(4..usize::MAX))
        );
        assert_eq!(history.times(Hazard::Compaction), Times::default());
        assert_eq!(history.hazards(), [one, other].into());
        assert_eq!(history.whole(), Acknowledged::default());
    }

    #[test]
    fn what_was_said_later_is_not_counted() {
        let history = History {
            before: Acknowledged::default(),
            marks: vec![
                (0, Mark::Sent(1)),
                (4, Mark::Acknowledged(1)),
                (5, Mark::Acknowledged(2)),
            ],
        };
        let at = |position| {
            let said = history.at(position);
            (said.sent.len(), said.acknowledged.len())
        };
        assert_eq!(
            [at(0), at(1), at(4), at(5), at(6)],
            [(0, 0), (1, 0), (1, 0), (1, 1), (2, 2)]
        );
        assert_eq!(history.whole(), history.at(6));
        // Of the other one nobody knows when it was sent.
        let said = history.between(1, 6);
        assert_eq!((said.sent.len(), said.acknowledged.len()), (2, 2));
        assert_eq!(history.between(1, 5).sent.len(), 1);
    }

    #[test]
    fn what_was_sent_too_late_is_told_from_what_was_never_said_to_be_sent() {
        let history = |marks| History {
            before: Acknowledged::default(),
            marks,
        };
        let told = history(vec![(3, Mark::Sent(1)), (4, Mark::Acknowledged(1))]);
        assert!(told.between(2, 6).sent.is_empty());
        let untold = history(vec![(4, Mark::Acknowledged(1))]);
        assert_eq!(untold.between(2, 6).sent, [1].into());
        assert!(untold.between(2, 4).sent.is_empty());
    }

    #[test]
    fn what_was_said_before_the_recording_is_known_at_each_moment() {
        let before = Acknowledged {
            sent: [1, 2].into(),
            acknowledged: [1].into(),
            last_acknowledged: Some(1),
        };
        let history = History::ended(before.clone());
        assert_eq!(history.between(0, 0), before);
        assert_eq!(history.whole(), before);
    }
}
