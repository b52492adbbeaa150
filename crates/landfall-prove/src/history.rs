//! What a subject sent and acknowledged, and where among the device's writes.

use std::collections::BTreeSet;
use std::io;

use landfall_recorder::{EventKind, Recording};

use crate::subject::{Mark, parse_marks};

/// Everything said during a recording, in order, each with the number of events before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    marks: Vec<(usize, Mark)>,
}

impl History {
    /// Reads the marks of a recording; those that say nothing of transactions are an error.
    pub fn of(recording: &Recording) -> io::Result<History> {
        let mut marks = Vec::new();
        for (index, event) in recording.events().iter().enumerate() {
            if let EventKind::Mark(bytes) = event.kind {
                let said = parse_marks(&recording.bytes(bytes)?)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                marks.extend(said.into_iter().map(|mark| (index, mark)));
            }
        }
        Ok(History { marks })
    }

    /// What had been said when `position` events had happened.
    pub fn at(&self, position: usize) -> Acknowledged {
        let mut known = Acknowledged::default();
        for (index, mark) in &self.marks {
            if *index >= position {
                break;
            }
            match *mark {
                Mark::Sent(transaction) => known.sent.insert(transaction),
                // Whoever acknowledges has sent, whether he said so or not.
                Mark::Acknowledged(transaction) => {
                    known.sent.insert(transaction);
                    known.acknowledged.insert(transaction)
                }
            };
        }
        known
    }

    /// What must and may be there in a state: what had been acknowledged when `position` events had
    /// happened, and what had been sent before the last write that arrived, which was one of the first
    /// `written` events. Who acknowledges has sent, so that a transaction may be among both or only
    /// among those acknowledged: then whatever is there of it was written too early.
    pub fn between(&self, written: usize, position: usize) -> Acknowledged {
        Acknowledged {
            sent: self.at(written).sent,
            acknowledged: self.at(position).acknowledged,
        }
    }

    /// Everything said in the end.
    pub fn whole(&self) -> Acknowledged {
        self.at(usize::MAX)
    }
}

/// Transactions that had been sent and acknowledged at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Sent.
    pub sent: BTreeSet<u64>,
    /// Acknowledged as durable.
    pub acknowledged: BTreeSet<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_later_is_not_counted() {
        let history = History {
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
        let said = history.between(1, 6);
        assert_eq!((said.sent.len(), said.acknowledged.len()), (1, 2));
    }
}
