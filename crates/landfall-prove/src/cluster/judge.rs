//! What a cluster lost.

use landfall_results::proof::Violation;

use super::Found;
use crate::Promise;
use crate::history::Acknowledged;
use crate::judge::{Judgement, judge, ranges};

/// Holds what a cluster still has against what had been said.
pub(super) fn judge_cluster(found: &Found, said: &Acknowledged, promise: Promise) -> Judgement {
    let mut judgement = if found.is_read() {
        judge(&found.recovered, said, promise)
    } else {
        judge_unread(found, said, promise)
    };
    if let Some(why) = &found.unavailable {
        judgement.add(Violation::Unavailable, why.clone());
    }
    if let Some(disagreement) = &found.disagreement {
        judgement.add(Violation::Disagreed, disagreement.clone());
    }
    let taken: std::collections::BTreeSet<u64> =
        found.taken.intersection(&judgement.lost).copied().collect();
    if !taken.is_empty() {
        let detail = format!(
            "transaction {} had been there until the last node joined",
            ranges(&taken)
        );
        judgement.details.push((Violation::Lost, detail));
    }
    judgement
}

/// Of a cluster that could not be asked: what it showed all the same counts. What it did not show is not known to be gone.
fn judge_unread(found: &Found, said: &Acknowledged, promise: Promise) -> Judgement {
    let said = Acknowledged {
        sent: said.sent.clone(),
        ..Acknowledged::default()
    };
    let promise = Promise {
        ordered: false,
        ..promise
    };
    judge(&found.recovered, &said, promise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Recovered;

    fn said() -> Acknowledged {
        Acknowledged {
            sent: (1..=5).collect(),
            acknowledged: (1..=4).collect(),
            last_acknowledged: Some(4),
        }
    }

    #[test]
    fn one_that_cannot_be_asked_has_not_lost_anything() {
        let found = Found {
            unavailable: Some("no leader".into()),
            ..Found::default()
        };
        let judgement = judge_cluster(&found, &said(), Promise::STRICT);
        assert_eq!(judgement.violations, [Violation::Unavailable].into());
        assert!(judgement.lost.is_empty() && !judgement.kept());
    }

    #[test]
    fn a_check_that_failed_has_found_damage_and_no_loss() {
        let found = Found {
            recovered: Recovered::damaged("exit status: 1"),
            unread: true,
            ..Found::default()
        };
        let judgement = judge_cluster(&found, &said(), Promise::STRICT);
        assert_eq!(judgement.violations, [Violation::Damaged].into());
        assert!(judgement.lost.is_empty());
    }

    #[test]
    fn what_one_that_cannot_be_asked_shows_all_the_same_counts() {
        use Violation::{Damaged, Disagreed, Invented, Unavailable};
        let found = Found {
            recovered: Recovered {
                // Without 2 and 4, which were acknowledged, and with 9, which was never sent.
                whole: [1, 3, 9].into(),
                invented: vec!["a stray file".into()],
                damage: Some("malformed".into()),
                ..Recovered::default()
            },
            taken: [4].into(),
            unavailable: Some("no leader".into()),
            unread: false,
            disagreement: Some("node 1 has others".into()),
        };
        let judgement = judge_cluster(&found, &said(), Promise::STRICT);
        let expected = [Damaged, Invented, Disagreed, Unavailable].into();
        assert_eq!(judgement.violations, expected);
        assert!(judgement.lost.is_empty() && !judgement.only_last);
        let invented = judgement.details.iter();
        let invented = invented.filter(|(violation, _)| *violation == Invented);
        assert_eq!(invented.count(), 2);
    }

    #[test]
    fn what_a_late_node_takes_away_is_lost_and_members_may_differ() {
        let found = Found {
            recovered: Recovered {
                whole: [1, 2, 3].into(),
                ..Recovered::default()
            },
            taken: [4, 5].into(),
            disagreement: Some("node 1 has others".into()),
            ..Found::default()
        };
        let judgement = judge_cluster(&found, &said(), Promise::STRICT);
        let expected = [Violation::Lost, Violation::Disagreed].into();
        assert_eq!(judgement.violations, expected);
        assert_eq!(judgement.lost, [4].into());
        assert!(
            judgement
                .details
                .last()
                .unwrap()
                .1
                .contains("transaction 4 had been")
        );
    }
}
