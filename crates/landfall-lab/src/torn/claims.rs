//! The published claims of experiment `torn`, and their verdicts.
//!
//! The first is of May 2014; the conditions are of its update of June 2015, which was corrected in turn: the
//! cure may corrupt data. A claim is judged by a ratio that is formed round by round. Most are of a disk that
//! nobody has at hand, so that today's figure is that of a model of it, and says so.
//!
//! What was published of InnoDB is judged again of Landfall's store, in which protections differ and nothing else does.

use landfall_results::{Metric, Series};

use super::catalogue::{
    Condition, Protection, StoreProtection, data, name, small_pool, store_memory,
};
use super::sections::{disk_text, find};
use super::{Plan, TornProof, TornResults};
use crate::claim::{
    self, Band, Claim, ClaimResult, Compared, Evidence, Figure, Published, Verdict,
};
use crate::numbers::thousands;
use crate::stats::Estimate;
use landfall_os::humanize::bytes_text;

const FIRST: &str = "Y. Trudeau, \"How to improve InnoDB performance by 55% for write-bound loads\", Percona, 23 May 2014";
const UPDATE: &str = "Y. Trudeau, \"Update on the InnoDB double-write buffer and EXT4 transactions\", 17 June 2015, https://www.percona.com/blog/2015/06/17/update-on-the-innodb-double-write-buffer-and-ext4-transactions/";
const MANUAL: &str = "MySQL 8.0 Reference Manual, \"Doublewrite Buffer\", https://dev.mysql.com/doc/refman/8.0/en/innodb-doublewrite-buffer.html";
const SSD: &str = Plan::SSD;

/// A protection, on a disk and under a condition.
#[derive(Clone, Copy)]
struct Case {
    protection: Protection,
    disk: &'static str,
    condition: Condition,
}

const fn rate(protection: Protection, disk: &'static str, condition: Condition) -> Figure<Case> {
    Figure {
        metric: Metric::RequestsPerSecond,
        name: "requests per second",
        of: Case {
            protection,
            disk,
            condition,
        },
    }
}

/// A protection of Landfall's store, on a disk.
#[derive(Clone, Copy)]
struct StoreCase {
    protection: StoreProtection,
    disk: &'static str,
}

const fn of_store(
    metric: Metric,
    name: &'static str,
    protection: StoreProtection,
    disk: &'static str,
) -> Figure<StoreCase> {
    Figure {
        metric,
        name,
        of: StoreCase { protection, disk },
    }
}

const fn store_rate(protection: StoreProtection, disk: &'static str) -> Figure<StoreCase> {
    let metric = Metric::RequestsPerSecond;
    of_store(metric, "requests per second", protection, disk)
}

const fn store_kib(protection: StoreProtection, disk: &'static str) -> Figure<StoreCase> {
    of_store(Metric::Kib, "KiB per request", protection, disk)
}

/// Less than this is no gain.
const NO_GAIN: Band = Band::at_most(1.15);
const NONE: Band = Band::at_most(0.0);
/// About twice as much.
const TWICE: Band = Band::between(1.75, 2.25);

static CLAIMS: [Claim<Case>; 7] = [
    Claim {
        published: Published {
            id: "journal-beats-doublewrite",
            statement: "On a spinning disk, data=journal without the doublewrite buffer is 55% faster than with it on ext4 as it is",
            source: FIRST,
            value: Some(1.55),
            band: Band::at_least(1.3),
        },
        figure: rate(Protection::Journal, Plan::PUBLISHED, Condition::Published),
        compared: Compared::Over(rate(
            Protection::Doublewrite,
            Plan::PUBLISHED,
            Condition::Published,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "doublewrite-is-the-limit",
            statement: "It is the doublewrite buffer that is the limit: without it ext4 as it is is faster too",
            source: UPDATE,
            value: None,
            band: Band::at_least(1.2),
        },
        figure: rate(Protection::Nobody, Plan::PUBLISHED, Condition::Published),
        compared: Compared::Over(rate(
            Protection::Doublewrite,
            Plan::PUBLISHED,
            Condition::Published,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "hardly-on-flash",
            statement: "On an SSD the gain is hardly to be seen",
            source: UPDATE,
            value: None,
            band: NO_GAIN,
        },
        figure: rate(Protection::Journal, SSD, Condition::Published),
        compared: Compared::Over(rate(Protection::Doublewrite, SSD, Condition::Published)),
        only: None,
    },
    Claim {
        published: Published {
            id: "needs-spare-processors",
            statement: "Without processors to spare there is no gain",
            source: UPDATE,
            value: None,
            band: NO_GAIN,
        },
        figure: rate(
            Protection::Journal,
            Plan::PUBLISHED,
            Condition::SpareProcessors,
        ),
        compared: Compared::Over(rate(
            Protection::Doublewrite,
            Plan::PUBLISHED,
            Condition::SpareProcessors,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "needs-few-reads",
            statement: "With reads in the mix there is no gain",
            source: UPDATE,
            value: None,
            band: NO_GAIN,
        },
        figure: rate(Protection::Journal, Plan::PUBLISHED, Condition::FewReads),
        compared: Compared::Over(rate(
            Protection::Doublewrite,
            Plan::PUBLISHED,
            Condition::FewReads,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "needs-a-fitting-pool",
            statement: "With data that does not fit the buffer pool there is no gain",
            source: UPDATE,
            value: None,
            band: NO_GAIN,
        },
        figure: rate(Protection::Journal, Plan::PUBLISHED, Condition::FittingPool),
        compared: Compared::Over(rate(
            Protection::Doublewrite,
            Plan::PUBLISHED,
            Condition::FittingPool,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "needs-continuous-writes",
            statement: "Without a continuous load of page writes there is no gain",
            source: UPDATE,
            value: None,
            band: NO_GAIN,
        },
        figure: rate(
            Protection::Journal,
            Plan::PUBLISHED,
            Condition::ContinuousWrites,
        ),
        compared: Compared::Over(rate(
            Protection::Doublewrite,
            Plan::PUBLISHED,
            Condition::ContinuousWrites,
        )),
        only: None,
    },
];

static STORE_CLAIMS: [Claim<StoreCase>; 5] = [
    Claim {
        published: Published {
            id: "store-doublewrite-writes-twice",
            statement: "In Landfall's store too, doublewrite writes all data twice",
            source: MANUAL,
            value: Some(2.0),
            band: TWICE,
        },
        figure: store_kib(StoreProtection::Doublewrite, Plan::OWN),
        compared: Compared::Over(store_kib(StoreProtection::Nobody, Plan::OWN)),
        only: None,
    },
    Claim {
        published: Published {
            id: "store-doublewrite-is-not-half-the-rate",
            statement: "In Landfall's store too, doublewrite does not cost twice as much on a spinning disk",
            source: MANUAL,
            value: None,
            band: Band::at_most(1.75),
        },
        figure: store_rate(StoreProtection::Nobody, Plan::PUBLISHED),
        compared: Compared::Over(store_rate(StoreProtection::Doublewrite, Plan::PUBLISHED)),
        only: None,
    },
    Claim {
        published: Published {
            id: "store-doublewrite-is-not-half-the-rate-on-flash",
            statement: "In Landfall's store too, doublewrite does not cost twice as much on an SSD",
            source: MANUAL,
            value: None,
            band: Band::at_most(1.75),
        },
        figure: store_rate(StoreProtection::Nobody, SSD),
        compared: Compared::Over(store_rate(StoreProtection::Doublewrite, SSD)),
        only: None,
    },
    Claim {
        published: Published {
            id: "store-journal-beats-doublewrite",
            statement: "In Landfall's store too, data=journal without doublewrite is 55% faster than doublewrite on ext4 as it is, on a spinning disk",
            source: FIRST,
            value: Some(1.55),
            band: Band::at_least(1.3),
        },
        figure: store_rate(StoreProtection::Journal, Plan::PUBLISHED),
        compared: Compared::Over(store_rate(StoreProtection::Doublewrite, Plan::PUBLISHED)),
        only: None,
    },
    Claim {
        published: Published {
            id: "store-journal-hardly-on-flash",
            statement: "In Landfall's store too, the gain of data=journal is hardly to be seen on an SSD",
            source: UPDATE,
            value: None,
            band: NO_GAIN,
        },
        figure: store_rate(StoreProtection::Journal, SSD),
        compared: Compared::Over(store_rate(StoreProtection::Doublewrite, SSD)),
        only: None,
    },
];

/// A claim that no crash state puts data at risk.
struct AtRisk {
    /// Of which proof, by its name.
    proof: &'static str,
    /// Whether each commit is synced: one that was acknowledged and is missing was at risk then.
    is_synced: bool,
    published: Published,
}

static OF_PROOFS: [AtRisk; 3] = [
    AtRisk {
        proof: "data=journal, O_DIRECT, commits not synced",
        is_synced: false,
        published: Published {
            id: "no-data-at-risk",
            statement: "It does not put data at risk",
            source: FIRST,
            value: Some(0.0),
            band: NONE,
        },
    },
    AtRisk {
        proof: "data=journal, O_DIRECT",
        is_synced: true,
        published: Published {
            id: "no-data-at-risk-synced",
            statement: "Nor does it where each commit is synced",
            source: FIRST,
            value: None,
            band: NONE,
        },
    },
    AtRisk {
        proof: "data=journal, buffered",
        is_synced: true,
        published: Published {
            id: "no-data-at-risk-buffered",
            statement: "Nor does it where InnoDB writes through the page cache",
            source: FIRST,
            value: None,
            band: NONE,
        },
    },
];

/// Judges every claim of which something was measured.
pub(super) fn judge(results: &TornResults) -> Vec<ClaimResult> {
    let mut judged = claim::judge(&CLAIMS, results);
    judged.extend(claim::judge(&STORE_CLAIMS, results));
    let of_proofs = OF_PROOFS.iter().filter_map(|claim| {
        let mut proofs = results.proofs.iter();
        let proof = proofs.find(|proof| proof.name == claim.proof)?;
        Some(claim.judge(proof))
    });
    judged.extend(of_proofs);
    judged
}

impl AtRisk {
    fn judge(&self, proof: &TornProof) -> ClaimResult {
        let states = proof.states;
        let at_risk = self.states(proof);
        let lost = if self.is_synced {
            " or without an acknowledged commit"
        } else {
            ""
        };
        self.published.judge(
            format!(
                "{}crash states from which it did not recover, or recovered wrong{lost}, of {states}",
                proof.least_text()
            ),
            Estimate::of(&[at_risk as f64]),
            self.obstacle(proof).map(|why| (Verdict::CannotBeTold, why)),
            || match &proof.said {
                Some(said) => first_sentence(said),
                None if at_risk > 0 => {
                    format!("an acknowledged commit was missing in {at_risk} of {states}")
                }
                None => format!(
                    "{states} crash states were tried, torn at 512 bytes; that is no proof of all"
                ),
            },
        )
    }

    /// Crash states in which data was at risk.
    fn states(&self, proof: &TornProof) -> u64 {
        let broken = proof.damaged + proof.wrong;
        if self.is_synced {
            broken.max(proof.losing)
        } else {
            broken
        }
    }

    /// Why a proof says nothing of data at risk.
    fn obstacle(&self, proof: &TornProof) -> Option<String> {
        let is_untried = self.states(proof) == 0 && proof.is_untried() != Some(false);
        let untried = || {
            is_untried.then(|| {
                format!(
                    "none of {} crash states is known to have torn a page while it was written over",
                    proof.states
                )
            })
        };
        proof.not_proven.clone().or_else(untried)
    }
}

impl Evidence<Case> for TornResults {
    fn find(&self, wanted: &Case, _: &Case) -> Option<&Series> {
        let name = name(wanted.protection, wanted.condition);
        find(
            self,
            wanted.protection.filesystem_spec(),
            wanted.disk,
            &name,
        )
    }

    fn obstacle(&self, claim: &Claim<Case>, series: &[&Series]) -> Option<String> {
        let is_needed = claim.figure.of.condition == Condition::FittingPool;
        let fits = || is_needed.then(|| fits(self.rows, small_pool(self.rows)))?;
        series.iter().find_map(|one| one.obstacle()).or_else(fits)
    }

    fn explain(&self, claim: &Claim<Case>, series: &[&Series]) -> String {
        counted(claim.figure.of.disk, series)
    }
}

impl Evidence<StoreCase> for TornResults {
    fn find(&self, wanted: &StoreCase, _: &StoreCase) -> Option<&Series> {
        let StoreCase { protection, disk } = *wanted;
        find(self, protection.filesystem_spec(), disk, &protection.name())
    }

    fn obstacle(&self, _: &Claim<StoreCase>, series: &[&Series]) -> Option<String> {
        let fits = || fits(self.rows, store_memory(self.rows));
        series.iter().find_map(|one| one.obstacle()).or_else(fits)
    }

    fn explain(&self, claim: &Claim<StoreCase>, series: &[&Series]) -> String {
        counted(claim.figure.of.disk, series)
    }
}

/// That so many rows fit into memory that is meant to be too small for them, if they do.
fn fits(rows: u64, memory: u64) -> Option<String> {
    (data(rows) <= memory).then(|| {
        let (rows, memory) = (thousands(rows as f64), bytes_text(memory));
        format!("{rows} rows fit into the {memory} of memory that are meant to be too small for them; name more with --rows")
    })
}

/// What the counters say, and whose times they are.
fn counted(disk: &str, series: &[&Series]) -> String {
    let words = |one: &&Series| {
        Some(format!(
            "{:.0}/s, {:.1} KiB and {:.2} flushes each",
            one.median(Metric::RequestsPerSecond)?,
            one.median(Metric::Kib)?,
            one.median(Metric::Flushes)?
        ))
    };
    let figures: Option<Vec<String>> = series.iter().map(words).collect();
    let figures = figures.map_or(String::new(), |figures| {
        format!("; {}", figures.join(", against "))
    });
    match disk {
        Plan::OWN => format!("on {}{figures}", disk_text(disk)),
        profile => format!("on a model of such a disk ({profile}){figures}"),
    }
}

fn first_sentence(text: &str) -> String {
    let line = text
        .lines()
        .find(|line| line.contains("[ERROR]"))
        .unwrap_or(text);
    let line = line.split_once("[ERROR] ").map_or(line, |(_, error)| error);
    line.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Verdict;
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
        let of_proofs = OF_PROOFS.len() - 2;
        assert_eq!(claims.len(), CLAIMS.len() + STORE_CLAIMS.len() + of_proofs);
        for claim in &claims {
            assert_eq!(claim.verdict, Verdict::Holds, "{claim:?}");
        }
        assert!(
            claims[0].why.contains("a model of such a disk"),
            "{}",
            claims[0].why
        );
        let twice = &claims[CLAIMS.len()];
        assert_eq!(twice.id, "store-doublewrite-writes-twice");
        let why = &twice.why;
        assert!(why.starts_with("on this disk; "), "{why}");
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
    fn a_proof_that_tore_no_page_shows_nothing() {
        let results = torn_results();
        let judged = |change: fn(&mut TornProof)| {
            let mut results = results.clone();
            change(&mut results.proofs[2]);
            verdict(&judge(&results), "no-data-at-risk")
        };
        let torn_none = |proof: &mut TornProof| proof.exercised[0].states = Some(0);
        assert_eq!(judged(torn_none), Verdict::CannotBeTold);
        assert_eq!(
            judged(|proof| proof.exercised.clear()),
            Verdict::CannotBeTold
        );
        // What was damaged all the same is damaged.
        let damaged = |proof: &mut TornProof| {
            proof.exercised[0].states = Some(0);
            proof.damaged = 1;
        };
        assert_eq!(judged(damaged), Verdict::DoesNotHold);
    }

    #[test]
    fn a_commit_that_is_missing_was_at_risk_where_each_is_synced() {
        let judged = |name: &str, id: &str, change: fn(&mut TornProof)| {
            let mut results = torn_results();
            let proof = &mut results.proofs[2];
            proof.name = name.to_owned();
            proof.losing = 5;
            change(proof);
            verdict(&judge(&results), id)
        };
        let lax = "data=journal, O_DIRECT, commits not synced";
        assert_eq!(judged(lax, "no-data-at-risk", |_| {}), Verdict::Holds);
        let torn_none = |proof: &mut TornProof| proof.exercised[0].states = Some(0);
        for (name, id) in [
            ("data=journal, O_DIRECT", "no-data-at-risk-synced"),
            ("data=journal, buffered", "no-data-at-risk-buffered"),
        ] {
            assert_eq!(judged(name, id, |_| {}), Verdict::DoesNotHold);
            assert_eq!(judged(name, id, torn_none), Verdict::DoesNotHold);
            let lost_none = |proof: &mut TornProof| proof.losing = 0;
            assert_eq!(judged(name, id, lost_none), Verdict::Holds);
        }
    }

    #[test]
    fn rows_that_fit_into_the_least_memory_tell_nothing_of_less() {
        let of = |rows: u64, id: &str| {
            let results = TornResults {
                rows,
                ..torn_results()
            };
            verdict(&judge(&results), id)
        };
        for (rows, id) in [
            (25_000, "needs-a-fitting-pool"),
            (4_000, "store-doublewrite-writes-twice"),
        ] {
            assert_eq!(of(rows, id), Verdict::CannotBeTold);
            assert_eq!(of(2 * rows, id), Verdict::Holds);
        }
        assert_eq!(of(4_000, "needs-few-reads"), Verdict::Holds);
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
