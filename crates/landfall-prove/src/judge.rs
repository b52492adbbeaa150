//! What was lost: what is found after a power cut, held against what had been said before it.

use std::collections::BTreeSet;

use landfall_results::proof::Violation;

use crate::history::Acknowledged;
use crate::subject::{Promise, Recovered};

/// What one crash state lost; nothing, if there is no violation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Promises that were broken.
    pub violations: BTreeSet<Violation>,
    /// Whether the subject crashed.
    pub crashed: bool,
    /// Acknowledged transactions that are not there.
    pub lost: BTreeSet<u64>,
    /// Whether no more is lost than the transaction acknowledged last.
    pub only_last: bool,
    /// What is wrong: which promise, and a sentence about it.
    pub details: Vec<(Violation, String)>,
}

impl Judgement {
    /// Whether every promise was kept.
    pub fn kept(&self) -> bool {
        self.violations.is_empty()
    }

    /// The worst violation; without any, a loss.
    pub fn worst(&self) -> Violation {
        let mut all = Violation::ALL.into_iter();
        all.find(|violation| self.violations.contains(violation))
            .unwrap_or(Violation::Lost)
    }

    /// The first sentence about a violation.
    pub fn detail(&self, violation: Violation) -> String {
        let mut details = self.details.iter();
        details
            .find_map(|(which, detail)| (*which == violation).then(|| detail.clone()))
            .unwrap_or_else(|| violation.words().to_owned())
    }

    /// A promise was broken, in this way.
    pub fn add(&mut self, violation: Violation, detail: String) {
        self.violations.insert(violation);
        self.details.push((violation, detail));
    }

    /// A filesystem that could be read, and is not well all the same.
    pub fn add_filesystem(&mut self, problem: String) {
        self.add(Violation::Filesystem, problem);
    }

    /// A filesystem that did not recover: nothing acknowledged can be read.
    pub fn of_filesystem(said: &Acknowledged, problem: String) -> Judgement {
        let mut judgement = Judgement {
            lost: said.acknowledged.clone(),
            details: vec![(Violation::Filesystem, problem)],
            ..Judgement::default()
        };
        judgement.violations.insert(Violation::Filesystem);
        if !judgement.lost.is_empty() {
            judgement.violations.insert(Violation::Lost);
        }
        judgement.only_last = is_only_last(&judgement.lost, said);
        judgement
    }
}

fn is_only_last(lost: &BTreeSet<u64>, said: &Acknowledged) -> bool {
    lost.len() == 1 && lost.last().copied() == said.last_acknowledged
}

/// Holds what was found against what had been said.
pub fn judge(found: &Recovered, said: &Acknowledged, promise: Promise) -> Judgement {
    let mut judgement = Judgement {
        crashed: found.crashed,
        ..Judgement::default()
    };
    let mut violation = |which, detail: String| {
        judgement.violations.insert(which);
        judgement.details.push((which, detail));
    };
    if let Some(damage) = &found.damage {
        violation(Violation::Damaged, damage.clone());
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
        violation(Violation::Lost, detail);
    }
    if promise.atomic && !found.partial.is_empty() {
        let detail = format!(
            "only a part is there of transaction {}",
            ranges(&found.partial)
        );
        violation(Violation::HalfApplied, detail);
    }
    let never: BTreeSet<u64> = found
        .whole
        .union(&found.partial)
        .filter(|transaction| !said.sent.contains(transaction))
        .copied()
        .collect();
    if !never.is_empty() {
        let detail = format!("transaction {} is there and was not sent", ranges(&never));
        violation(Violation::Invented, detail);
    }
    for invention in &found.invented {
        violation(Violation::Invented, invention.clone());
    }
    if let Some(difference) = &found.diverged {
        violation(Violation::Diverged, difference.clone());
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
            violation(Violation::OutOfOrder, detail);
        }
    }
    judgement.only_last = is_only_last(&lost, said);
    judgement.lost = lost;
    judgement
}

/// Numbers as `1-5, 7, 9-10`; the first few of many.
pub(crate) fn ranges(numbers: &BTreeSet<u64>) -> String {
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
    use crate::history::History;

    const STRICT: Promise = Promise {
        atomic: true,
        ordered: true,
    };
    const LOOSE: Promise = Promise {
        atomic: false,
        ordered: false,
    };

    fn said(sent: u64, acknowledged: u64) -> Acknowledged {
        Acknowledged {
            sent: (1..=sent).collect(),
            acknowledged: (1..=acknowledged).collect(),
            last_acknowledged: Some(acknowledged).filter(|&last| last > 0),
        }
    }

    fn found(whole: impl IntoIterator<Item = u64>) -> Recovered {
        Recovered {
            whole: whole.into_iter().collect(),
            ..Recovered::default()
        }
    }

    fn violations(found: &Recovered, said: &Acknowledged, promise: Promise) -> Vec<Violation> {
        judge(found, said, promise).violations.into_iter().collect()
    }

    #[test]
    fn a_transaction_under_way_may_be_there_or_not() {
        for whole in [4, 5] {
            assert!(judge(&found(1..=whole), &said(5, 4), STRICT).kept());
        }
    }

    #[test]
    fn each_violation_is_seen() {
        let at = said(5, 4);
        assert_eq!(violations(&found(1..=3), &at, STRICT), [Violation::Lost]);
        assert_eq!(
            violations(&found(1..=6), &at, STRICT),
            [Violation::Invented]
        );
        assert_eq!(
            violations(&found([1, 2, 4]), &at, STRICT),
            [Violation::Lost, Violation::OutOfOrder]
        );
        assert_eq!(violations(&found([1, 2, 4]), &at, LOOSE), [Violation::Lost]);
        let mut half = found(1..=4);
        half.partial.insert(5);
        assert_eq!(violations(&half, &at, STRICT), [Violation::HalfApplied]);
        assert!(judge(&half, &at, LOOSE).kept());
        let mut odd = found(1..=4);
        odd.invented.push("a stray file".into());
        odd.damage = Some("malformed".into());
        odd.diverged = Some("the log lacks 4".into());
        assert_eq!(
            violations(&odd, &at, STRICT),
            [Violation::Damaged, Violation::Invented, Violation::Diverged]
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
            more.detail(Violation::Lost),
            "of 4 acknowledged transactions 2 are not there: 3-4"
        );
    }

    #[test]
    fn the_last_one_is_that_which_was_acknowledged_last() {
        let marks = [8, 7].map(|number| (number, format!("ack {number}").into_bytes()));
        let said = History::of_marks(marks.into()).unwrap().whole();
        assert!(!judge(&found([7]), &said, LOOSE).only_last);
        let last = judge(&found([8]), &said, LOOSE);
        assert!(last.only_last);
        assert_eq!(
            last.detail(Violation::Lost),
            "transaction 7, the last one acknowledged, is not there"
        );
    }

    #[test]
    fn without_a_filesystem_everything_is_lost() {
        let judgement = Judgement::of_filesystem(&said(2, 1), "cannot be mounted".into());
        let violations: Vec<_> = judgement.violations.iter().copied().collect();
        assert_eq!(violations, [Violation::Filesystem, Violation::Lost]);
        let nothing_yet = Judgement::of_filesystem(&said(1, 0), "cannot be mounted".into());
        assert!(!nothing_yet.violations.contains(&Violation::Lost));
    }

    #[test]
    fn many_numbers_are_shortened() {
        assert_eq!(ranges(&[1, 2, 3, 5].into()), "1-3, 5");
        let odd: BTreeSet<u64> = (0..20).map(|n| 2 * n + 1).collect();
        assert_eq!(ranges(&odd), "1, 3, 5, 7, 9, 11, …");
    }
}
