//! In which order crash states are tried.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use super::{Coverage, CrashState, Survey};
use crate::crash::Identity;

/// States of the first pass through the recording; each pass has twice as many as the one before.
const FIRST_PASS: usize = 16;

/// In which order crash states are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they come in the recording.
    Epochs,
    /// One of each kind first, the dangerous and the rare kinds before the others; only of a disk that writes in any
    /// order.
    #[default]
    Representative,
}

impl Order {
    /// Every order.
    pub const ALL: [Order; 2] = [Order::Epochs, Order::Representative];
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Order::Epochs => "epochs",
            Order::Representative => "representative",
        })
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(name: &str) -> Result<Order, String> {
        let mut all = Order::ALL.into_iter();
        all.find(|order| order.to_string() == name).ok_or_else(|| {
            format!("no order is called '{name}'; there are: epochs, representative")
        })
    }
}

/// `first` in passes, each by epoch, and then `rest`; each image once, with the name that says most was acknowledged.
pub(super) fn joined(
    first: Vec<CrashState>,
    rest: Vec<CrashState>,
    coverage: Coverage,
    limit: usize,
) -> Survey {
    let mut by_image: HashMap<Identity, CrashState> = HashMap::with_capacity(rest.len());
    for state in &rest {
        let latest = by_image.entry(state.image).or_insert(*state);
        if latest.position < state.position {
            *latest = *state;
        }
    }
    let mut taken = HashSet::with_capacity(limit.min(first.len() + rest.len()));
    let mut latest = |state: CrashState| {
        let other = by_image.get(&state.image).copied();
        let latest = other.filter(|other| other.position > state.position);
        taken.insert(state.image).then(|| latest.unwrap_or(state))
    };
    let mut states: Vec<CrashState> = first.into_iter().filter_map(&mut latest).collect();
    let (mut begin, mut len) = (0, FIRST_PASS);
    while begin < states.len() {
        let end = states.len().min(begin + len);
        states[begin..end].sort_unstable_by_key(|state| (state.name.cut, state.name.choice));
        (begin, len) = (end, 2 * len);
    }
    let leading = states.len().min(limit);
    states.extend(rest.into_iter().filter_map(latest));
    states.truncate(limit);
    Survey {
        states,
        leading,
        coverage,
    }
}
