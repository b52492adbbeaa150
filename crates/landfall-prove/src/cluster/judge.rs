//! What a cluster lost.

use landfall_results::proof::Violation;

use super::Found;
use crate::Promise;
use crate::history::Acknowledged;
use crate::judge::{Judgement, judge, ranges};

/// Holds what a cluster still has against what had been said. Of one that could not be asked nothing is known but that.
pub(super) fn judge_cluster(found: &Found, said: &Acknowledged, promise: Promise) -> Judgement {
    let mut judgement = match &found.unavailable {
        Some(why) => {
            let mut judgement = Judgement::default();
            judgement.add(Violation::Unavailable, why.clone());
            return judgement;
        }
        None => judge(&found.recovered, said, promise),
    };
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
    fn what_a_late_node_takes_away_is_lost_and_members_may_differ() {
        let found = Found {
            recovered: Recovered {
                whole: [1, 2, 3].into(),
                ..Recovered::default()
            },
            taken: [4, 5].into(),
            disagreement: Some("node 1 has others".into()),
            unavailable: None,
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
