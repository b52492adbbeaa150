//! What was lost: what is found after a power cut, held against what had been said before it.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::Said;
use super::subject::{Promise, Recovered};

/// A way of breaking a promise.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Breach {
    /// The filesystem could not be mounted, or complained, or could not be written to any more.
    Filesystem,
    /// The subject did not recover, or its own integrity check failed.
    Damaged,
    /// A transaction that had been acknowledged is not there.
    Lost,
    /// A part of a transaction is there, of a subject that promises all or nothing.
    HalfApplied,
    /// Something is there that was never sent.
    Invented,
    /// The subject's own record of its transactions, which replicas follow, differs from what it has.
    Diverged,
    /// A transaction is there without one before it, of a subject that promises order.
    OutOfOrder,
}

impl Breach {
    /// All of them, the worst first.
    pub const ALL: [Breach; 7] = [
        Breach::Filesystem,
        Breach::Damaged,
        Breach::Invented,
        Breach::HalfApplied,
        Breach::Diverged,
        Breach::OutOfOrder,
        Breach::Lost,
    ];

    /// In a few words, as in "in 3 states …".
    pub fn words(self) -> &'static str {
        match self {
            Breach::Filesystem => "the filesystem did not recover",
            Breach::Damaged => "the subject did not recover",
            Breach::Lost => "acknowledged transactions were lost",
            Breach::HalfApplied => "a transaction was half-applied",
            Breach::Invented => "something was there that had never been sent",
            Breach::Diverged => "the log for replicas and the database did not have the same",
            Breach::OutOfOrder => "a transaction was there without one before it",
        }
    }
}

/// What one crash state lost; nothing, if there is no breach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Promises that were broken.
    pub breaches: BTreeSet<Breach>,
    /// Acknowledged transactions that are not there.
    pub lost: BTreeSet<u64>,
    /// Whether no more is lost than the transaction acknowledged last.
    pub only_last: bool,
    /// What is wrong: which promise, and a sentence about it.
    pub details: Vec<(Breach, String)>,
}

impl Judgement {
    /// Whether every promise was kept.
    pub fn kept(&self) -> bool {
        self.breaches.is_empty()
    }

    /// The worst breach; without any, a loss.
    pub fn worst(&self) -> Breach {
        let mut all = Breach::ALL.into_iter();
        all.find(|breach| self.breaches.contains(breach))
            .unwrap_or(Breach::Lost)
    }

    /// The first sentence about a breach.
    pub fn detail(&self, breach: Breach) -> String {
        let mut details = self.details.iter();
        details
            .find_map(|(which, detail)| (*which == breach).then(|| detail.clone()))
            .unwrap_or_else(|| breach.words().to_owned())
    }

    /// A filesystem that could be read, and is not well all the same.
    pub fn add_filesystem(&mut self, problem: String) {
        self.breaches.insert(Breach::Filesystem);
        self.details.push((Breach::Filesystem, problem));
    }

    /// A filesystem that did not recover: nothing acknowledged can be read.
    pub fn of_filesystem(said: &Said, problem: String) -> Judgement {
        let mut judgement = Judgement {
            lost: said.acknowledged.clone(),
            details: vec![(Breach::Filesystem, problem)],
            ..Judgement::default()
        };
        judgement.breaches.insert(Breach::Filesystem);
        if !judgement.lost.is_empty() {
            judgement.breaches.insert(Breach::Lost);
        }
        judgement.only_last = is_only_last(&judgement.lost, said);
        judgement
    }
}

fn is_only_last(lost: &BTreeSet<u64>, said: &Said) -> bool {
    lost.len() == 1 && lost.last() == said.acknowledged.last()
}

/// Holds what was found against what had been said.
pub fn judge(found: &Recovered, said: &Said, promise: Promise) -> Judgement {
    let mut judgement = Judgement::default();
    let mut breach = |which, detail: String| {
        judgement.breaches.insert(which);
        judgement.details.push((which, detail));
    };
    if let Some(damage) = &found.damage {
        breach(Breach::Damaged, damage.clone());
    }
    let lost: BTreeSet<u64> = said
        .acknowledged
        .difference(&found.whole)
        .copied()
        .collect();
    if !lost.is_empty() {
        let detail = match said.acknowledged.len() {
            _ if is_only_last(&lost, said) => {
                format!(
                    "transaction {}, the last one acknowledged, is not there",
                    ranges(&lost)
                )
            }
            all => format!(
                "of {all} acknowledged transactions {} are not there: {}",
                lost.len(),
                ranges(&lost)
            ),
        };
        breach(Breach::Lost, detail);
    }
    if promise.atomic && !found.partial.is_empty() {
        let detail = format!(
            "only a part is there of transaction {}",
            ranges(&found.partial)
        );
        breach(Breach::HalfApplied, detail);
    }
    let never: BTreeSet<u64> = found
        .whole
        .union(&found.partial)
        .filter(|transaction| !said.sent.contains(transaction))
        .copied()
        .collect();
    if !never.is_empty() {
        let detail = format!("transaction {} is there and was not sent", ranges(&never));
        breach(Breach::Invented, detail);
    }
    for invention in &found.invented {
        breach(Breach::Invented, invention.clone());
    }
    if let Some(difference) = &found.diverged {
        breach(Breach::Diverged, difference.clone());
    }
    if promise.ordered
        && let Some(last) = found.whole.last()
    {
        let skipped: BTreeSet<u64> = said
            .sent
            .range(..last)
            .filter(|transaction| !found.whole.contains(transaction))
            .copied()
            .collect();
        if !skipped.is_empty() {
            let detail = format!(
                "transaction {last} is there, and {} before it is not",
                ranges(&skipped)
            );
            breach(Breach::OutOfOrder, detail);
        }
    }
    judgement.only_last = is_only_last(&lost, said);
    judgement.lost = lost;
    judgement
}

/// Numbers as `1-5, 7, 9-10`; the first few of many.
fn ranges(numbers: &BTreeSet<u64>) -> String {
    const MOST: usize = 6;
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, end)) if *end + 1 == number => *end = number,
            _ => runs.push((number, number)),
        }
    }
    let more = runs.len().saturating_sub(MOST);
    let mut texts: Vec<String> = runs
        .iter()
        .take(MOST)
        .map(|(start, end)| match end - start {
            0 => start.to_string(),
            _ => format!("{start}-{end}"),
        })
        .collect();
    if more > 0 {
        texts.push("…".into());
    }
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Promise = Promise {
        atomic: true,
        ordered: true,
    };
    const LOOSE: Promise = Promise {
        atomic: false,
        ordered: false,
    };

    fn said(sent: u64, acknowledged: u64) -> Said {
        Said {
            sent: (1..=sent).collect(),
            acknowledged: (1..=acknowledged).collect(),
        }
    }

    fn found(whole: impl IntoIterator<Item = u64>) -> Recovered {
        Recovered {
            whole: whole.into_iter().collect(),
            ..Recovered::default()
        }
    }

    fn breaches(found: &Recovered, said: &Said, promise: Promise) -> Vec<Breach> {
        judge(found, said, promise).breaches.into_iter().collect()
    }

    #[test]
    fn a_transaction_under_way_may_be_there_or_not() {
        for whole in [4, 5] {
            assert!(judge(&found(1..=whole), &said(5, 4), STRICT).kept());
        }
    }

    #[test]
    fn each_breach_is_seen() {
        let at = said(5, 4);
        assert_eq!(breaches(&found(1..=3), &at, STRICT), [Breach::Lost]);
        assert_eq!(breaches(&found(1..=6), &at, STRICT), [Breach::Invented]);
        assert_eq!(
            breaches(&found([1, 2, 4]), &at, STRICT),
            [Breach::Lost, Breach::OutOfOrder]
        );
        assert_eq!(breaches(&found([1, 2, 4]), &at, LOOSE), [Breach::Lost]);
        let mut half = found(1..=4);
        half.partial.insert(5);
        assert_eq!(breaches(&half, &at, STRICT), [Breach::HalfApplied]);
        assert!(judge(&half, &at, LOOSE).kept());
        let mut odd = found(1..=4);
        odd.invented.push("a stray file".into());
        odd.damage = Some("malformed".into());
        odd.diverged = Some("the log lacks 4".into());
        assert_eq!(
            breaches(&odd, &at, STRICT),
            [Breach::Damaged, Breach::Invented, Breach::Diverged]
        );
    }

    #[test]
    fn the_last_one_alone_is_told_from_more() {
        let last = judge(&found(1..=3), &said(5, 4), STRICT);
        assert!(last.only_last && last.lost.len() == 1);
        let other = judge(&found([1, 2, 4]), &said(5, 4), LOOSE);
        assert!(!other.only_last && other.lost.len() == 1);
        let more = judge(&found(1..=2), &said(5, 4), STRICT);
        assert!(!more.only_last);
        assert_eq!(
            more.detail(Breach::Lost),
            "of 4 acknowledged transactions 2 are not there: 3-4"
        );
    }

    #[test]
    fn without_a_filesystem_everything_is_lost() {
        let judgement = Judgement::of_filesystem(&said(2, 1), "cannot be mounted".into());
        let breaches: Vec<_> = judgement.breaches.iter().copied().collect();
        assert_eq!(breaches, [Breach::Filesystem, Breach::Lost]);
        let nothing_yet = Judgement::of_filesystem(&said(1, 0), "cannot be mounted".into());
        assert!(!nothing_yet.breaches.contains(&Breach::Lost));
    }

    #[test]
    fn many_numbers_are_shortened() {
        assert_eq!(ranges(&[1, 2, 3, 5].into()), "1-3, 5");
        let odd: BTreeSet<u64> = (0..20).map(|n| 2 * n + 1).collect();
        assert_eq!(ranges(&odd), "1, 3, 5, 7, 9, 11, …");
    }
}
