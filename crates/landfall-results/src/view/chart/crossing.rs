//! Where the cost of a dump and those of logs cross.

use std::borrow::Cow;

use serde::Serialize;

/// Cost against the share of the state that changes between two saves; both logarithmic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossing {
    /// What the costs are in: `seconds` or `bytes`.
    pub unit: Cow<'static, str>,
    /// Least and greatest share in the picture.
    pub shares: (f64, f64),
    /// Least and greatest cost in the picture.
    pub costs: (f64, f64),
    /// What a dump costs.
    pub dump: DumpLine,
    /// What logs cost.
    pub logs: Vec<LogLine>,
}

/// The dump costs the same whatever has changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DumpLine {
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval, where that is in the picture.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// What is dumped, and the median, in words.
    pub text: String,
}

/// A log costs the more the more changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogLine {
    /// The policy by which it is synced.
    pub name: Cow<'static, str>,
    /// Index of the policy, the laxest first, which gives the line its colour and sign.
    pub policy: usize,
    /// Share and cost at both ends of what is in the picture; nothing of a line that passes it by.
    pub ends: Option<[(f64, f64); 2]>,
    /// Where it meets the dump, if that is in the picture.
    pub meets: Option<Meeting>,
    /// The share at which it does, in words.
    pub text: String,
}

/// The share at which a log costs as much as the dump.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Meeting {
    /// The median.
    pub share: f64,
    /// Lower end of the 95% interval, or of the picture.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
}

impl Crossing {
    /// Marks of a complete drawing: the dump's line, those of the logs, and where they meet.
    pub fn marks(&self) -> usize {
        let of = |log: &LogLine| usize::from(log.ends.is_some()) + usize::from(log.meets.is_some());
        1 + self.logs.iter().map(of).sum::<usize>()
    }
}
