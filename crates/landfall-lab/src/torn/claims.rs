//! The published claims of experiment `torn`, and their verdicts.
//!
//! The first is of May 2014; the conditions are of its update of June 2015, which was corrected in turn: the
//! cure may corrupt data. A claim is judged by a ratio that is formed round by round. Most are of a disk that
//! nobody has at hand, so that today's figure is that of a model of it, and says so.

use landfall_results::{Metric, Series};

use super::catalogue::{Condition, Protection, name};
use super::sections::{disk_text, find};
use super::{Plan, TornResults};
use crate::claim::{Band, ClaimResult, Verdict};
use crate::stats::Estimate;

const FIRST: &str = "Y. Trudeau, \"How to improve InnoDB performance by 55% for write-bound loads\", Percona, 23 May 2014";
const UPDATE: &str = "Y. Trudeau, \"Update on the InnoDB double-write buffer and EXT4 transactions\", 17 June 2015, https://www.percona.com/blog/2015/06/17/update-on-the-innodb-double-write-buffer-and-ext4-transactions/";
const SSD: &str = "ssd-consumer";

/// What a claim measures.
enum Measure {
    /// Rate with one protection over that with another, on a disk, without a condition.
    Rates {
        of: Protection,
        over: Protection,
        disk: &'static str,
        condition: Condition,
    },
    /// Crash states of this proof that were damaged, or wrong.
    Damaged { name: &'static str },
}

struct Claim {
    id: &'static str,
    statement: &'static str,
    measure: Measure,
    published: Option<f64>,
    source: &'static str,
    band: Band,
}

const fn cure(disk: &'static str, condition: Condition) -> Measure {
    Measure::Rates {
        of: Protection::Journal,
        over: Protection::Doublewrite,
        disk,
        condition,
    }
}

/// Less than this is no gain.
const NO_GAIN: Band = Band {
    at_least: None,
    at_most: Some(1.15),
};
const NONE: Band = Band {
    at_least: None,
    at_most: Some(0.0),
};

static CLAIMS: [Claim; 10] = [
    Claim {
        id: "journal-beats-doublewrite",
        statement: "On a spinning disk, data=journal without the doublewrite buffer is 55% faster than with it on ext4 as it is",
        measure: cure(Plan::PUBLISHED, Condition::Published),
        published: Some(1.55),
        source: FIRST,
        band: Band::at_least(1.3),
    },
    Claim {
        id: "doublewrite-is-the-limit",
        statement: "It is the doublewrite buffer that is the limit: without it ext4 as it is is faster too",
        measure: Measure::Rates {
            of: Protection::Nobody,
            over: Protection::Doublewrite,
            disk: Plan::PUBLISHED,
            condition: Condition::Published,
        },
        published: None,
        source: UPDATE,
        band: Band::at_least(1.2),
    },
    Claim {
        id: "hardly-on-flash",
        statement: "On an SSD the gain is hardly to be seen",
        measure: cure(SSD, Condition::Published),
        published: None,
        source: UPDATE,
        band: NO_GAIN,
    },
    Claim {
        id: "needs-spare-processors",
        statement: "Without processors to spare there is no gain",
        measure: cure(Plan::PUBLISHED, Condition::SpareProcessors),
        published: None,
        source: UPDATE,
        band: NO_GAIN,
    },
    Claim {
        id: "needs-few-reads",
        statement: "With reads in the mix there is no gain",
        measure: cure(Plan::PUBLISHED, Condition::FewReads),
        published: None,
        source: UPDATE,
        band: NO_GAIN,
    },
    Claim {
        id: "needs-a-fitting-pool",
        statement: "With data that does not fit the buffer pool there is no gain",
        measure: cure(Plan::PUBLISHED, Condition::FittingPool),
        published: None,
        source: UPDATE,
        band: NO_GAIN,
    },
    Claim {
        id: "needs-continuous-writes",
        statement: "Without a continuous load of page writes there is no gain",
        measure: cure(Plan::PUBLISHED, Condition::ContinuousWrites),
        published: None,
        source: UPDATE,
        band: NO_GAIN,
    },
    Claim {
        id: "no-data-at-risk",
        statement: "It does not put data at risk",
        measure: Measure::Damaged {
            name: "data=journal, O_DIRECT, commits not synced",
        },
        published: Some(0.0),
        source: FIRST,
        band: NONE,
    },
    Claim {
        id: "no-data-at-risk-synced",
        statement: "Nor does it where each commit is synced",
        measure: Measure::Damaged {
            name: "data=journal, O_DIRECT",
        },
        published: None,
        source: FIRST,
        band: NONE,
    },
    Claim {
        id: "no-data-at-risk-buffered",
        statement: "Nor does it where InnoDB writes through the page cache",
        measure: Measure::Damaged {
            name: "data=journal, buffered",
        },
        published: None,
        source: FIRST,
        band: NONE,
    },
];

/// Judges every claim of which something was measured.
pub(super) fn judge(results: &TornResults) -> Vec<ClaimResult> {
    CLAIMS
        .iter()
        .filter_map(|claim| judge_one(claim, results))
        .collect()
}

fn judge_one(claim: &Claim, results: &TornResults) -> Option<ClaimResult> {
    let (quantity, today, obstacle, why) = match claim.measure {
        Measure::Rates {
            of,
            over,
            disk,
            condition,
        } => {
            let one = |protection: Protection| {
                find(
                    results,
                    protection.recipe(),
                    disk,
                    &name(protection, condition),
                )
            };
            let (of, over) = (one(of)?, one(over)?);
            (
                format!("requests per second, {} / {}", of.key, over.key),
                of.ratio(over, Metric::RequestsPerSecond),
                of.obstacle().or_else(|| over.obstacle()),
                explain(disk, of, over),
            )
        }
        Measure::Damaged { name } => {
            let proof = results.proofs.iter().find(|proof| proof.name == name)?;
            let damaged = (proof.damaged + proof.wrong) as f64;
            let states = proof.states;
            (
                format!("crash states from which it did not recover, or recovered wrong, of {states}"),
                Estimate::of(&[damaged]),
                proof.not_proven.clone(),
                proof.said.clone().map_or_else(
                    || format!("{states} crash states were tried, torn at 512 bytes; that is no proof of all"),
                    |said| first_sentence(&said),
                ),
            )
        }
    };
    let (verdict, why) = match (obstacle, &today) {
        (Some(obstacle), _) => (Verdict::CannotBeTold, obstacle),
        (None, None) => (Verdict::CannotBeTold, "nothing was measured".to_owned()),
        (None, Some(today)) => (claim.band.judge(today), why),
    };
    Some(ClaimResult {
        id: claim.id.to_owned(),
        statement: claim.statement.to_owned(),
        quantity,
        published: claim.published,
        source: claim.source.to_owned(),
        band: claim.band,
        today,
        verdict,
        why,
    })
}

fn first_sentence(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.contains("[ERROR]"))
        .unwrap_or(text);
    let line = line.split_once("[ERROR] ").map_or(line, |(_, error)| error);
    line.lines().next().unwrap_or_default().trim().to_owned()
}

/// What the counters say, and whose times they are.
fn explain(disk: &str, of: &Series, over: &Series) -> String {
    let words = |one: &Series| {
        Some(format!(
            "{:.0}/s, {:.1} KiB and {:.2} flushes each",
            one.median(Metric::RequestsPerSecond)?,
            one.median(Metric::Kib)?,
            one.median(Metric::Flushes)?
        ))
    };
    let figures = words(of).zip(words(over));
    let figures = figures.map_or(String::new(), |(of, over)| {
        format!("; {of}, against {over}")
    });
    format!("on a model of such a disk ({}){figures}", disk_text(disk))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torn::fixtures::torn_results;

    fn verdict(claims: &[ClaimResult], id: &str) -> Verdict {
        let found = claims.iter().find(|claim| claim.id == id);
        found
            .unwrap_or_else(|| panic!("{id} was not judged"))
            .verdict
    }

    #[test]
    fn what_was_published_would_hold_of_itself() {
        let results = torn_results();
        let claims = judge(&results);
        // Of the synced and of the buffered one there is no proof.
        assert_eq!(claims.len(), CLAIMS.len() - 2);
        for claim in &claims {
            assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
        }
        assert!(
            claims[0].why.contains("a model of such a disk"),
            "{}",
            claims[0].why
        );
    }

    #[test]
    fn one_state_that_is_damaged_refutes_it() {
        let mut results = torn_results();
        results.proofs[2].damaged = 1;
        results.proofs[2].said =
            Some("MariaDB says:\n2026 [ERROR] InnoDB: corrupted page 405\nmore".into());
        let claims = judge(&results);
        assert_eq!(verdict(&claims, "no-data-at-risk"), Verdict::DoesNotHold);
        let claim = claims
            .iter()
            .find(|claim| claim.id == "no-data-at-risk")
            .unwrap();
        assert_eq!(claim.why, "InnoDB: corrupted page 405");
        results.proofs[2].not_proven = Some("nothing was acknowledged".into());
        let claims = judge(&results);
        assert_eq!(verdict(&claims, "no-data-at-risk"), Verdict::CannotBeTold);
    }

    #[test]
    fn few_rounds_tell_nothing() {
        let mut results = torn_results();
        for one in &mut results.measurements.series {
            one.trials.truncate(2);
        }
        let claims = judge(&results);
        assert_eq!(
            verdict(&claims, "journal-beats-doublewrite"),
            Verdict::CannotBeTold
        );
    }
}
