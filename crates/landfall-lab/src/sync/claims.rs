//! The published claims of experiment `sync`, and their verdicts.
//!
//! The first four figures, the one for ZFS and the remark on preallocating under load are
//! Matsunobu's (2009); the hope for `posix_fallocate` and the catch about partial pages come from
//! the discussion below that post. A claim is judged by a ratio that is formed round by round; its
//! band says how far today's ratio may be from the published one.

use landfall_os::{Allocation, Filesystem};
use landfall_results::{CacheState, Metric, Placement, Series};

use super::{Strategy, find};
use crate::claim::{self, Band, Claim, ClaimResult, Compared, Evidence, Figure, Only, Published};
use crate::facts::is_in_memory;

const SOURCE: &str = "Y. Matsunobu, \"Overwriting is much faster than appending\", 27 May 2009, http://yoshinorimatsunobu.blogspot.com/2009/05/overwriting-is-much-faster-than_28.html";
const DISCUSSION: &str =
    "discussion of Y. Matsunobu, \"Overwriting is much faster than appending\", 2009";

const APPEND: Strategy = Strategy::BASELINE.allocated(Allocation::Append);
const OVERWRITE: Strategy = Strategy::BASELINE;
const AT_ONCE: Strategy = Strategy::BASELINE.allocated(Allocation::ZeroFilled);
const SETTLED: Strategy = Strategy::BASELINE.allocated(Allocation::ZeroFilledSettled);
const UNWRITTEN: Strategy = Strategy::BASELINE.allocated(Allocation::Unwritten);
const STEPS: Strategy = Strategy::BASELINE.allocated(Allocation::Step { mib: 64 });
const ALIGNED_COLD: Strategy = Strategy {
    placement: Placement::Spaced,
    cache: CacheState::Cold,
    ..Strategy::BASELINE
};
const UNALIGNED_COLD: Strategy = Strategy {
    placement: Placement::Unaligned,
    ..ALIGNED_COLD
};

const fn rate(of: Strategy) -> Figure<Strategy> {
    Figure {
        metric: Metric::OpsPerSecond,
        name: "operations per second",
        of,
    }
}

const fn reads(of: Strategy) -> Figure<Strategy> {
    Figure {
        metric: Metric::Reads,
        name: "device reads per operation",
        of,
    }
}

static CLAIMS: [Claim<Strategy>; 8] = [
    Claim {
        published: Published {
            id: "overwrite-four-times-append",
            statement: "Appending takes 4 times as long",
            source: SOURCE,
            value: Some(12_330.0 / 3_086.0),
            band: Band::between(3.0, 5.33),
        },
        figure: rate(OVERWRITE),
        compared: Compared::Over(rate(APPEND)),
        only: None,
    },
    Claim {
        published: Published {
            id: "overwrite-beats-append",
            statement: "Overwriting is faster than appending",
            source: SOURCE,
            value: Some(12_330.0 / 3_086.0),
            band: Band::at_least(1.1),
        },
        figure: rate(OVERWRITE),
        compared: Compared::Over(rate(APPEND)),
        only: None,
    },
    Claim {
        published: Published {
            id: "at-once-costs-half",
            statement: "Just-written zeros halve the rate",
            source: SOURCE,
            value: Some(6_569.0 / 12_330.0),
            band: Band::between(0.4, 0.67),
        },
        figure: rate(AT_ONCE),
        compared: Compared::Over(rate(OVERWRITE)),
        only: None,
    },
    Claim {
        published: Published {
            id: "settled-as-overwrite",
            statement: "Settled zeros are at full speed",
            source: SOURCE,
            value: Some(11_670.0 / 12_330.0),
            band: Band::between(0.9, 1.1),
        },
        figure: rate(SETTLED),
        compared: Compared::Over(rate(OVERWRITE)),
        only: None,
    },
    Claim {
        published: Published {
            id: "preallocating-under-load-costs-half",
            statement: "Preallocating 64 MiB halves the rate",
            source: SOURCE,
            value: Some(6_569.0 / 12_330.0),
            band: Band::between(0.4, 0.67),
        },
        figure: rate(STEPS),
        compared: Compared::Over(rate(OVERWRITE)),
        only: None,
    },
    Claim {
        published: Published {
            id: "fallocate-makes-it-free",
            statement: "fallocate'd is as fast as written",
            source: DISCUSSION,
            value: None,
            band: Band::at_least(0.9),
        },
        figure: rate(UNWRITTEN),
        compared: Compared::Over(rate(OVERWRITE)),
        only: None,
    },
    Claim {
        published: Published {
            id: "copy-on-write-is-indifferent",
            statement: "Overwriting costs what appending does",
            source: SOURCE,
            value: Some(1.0),
            band: Band::between(0.8, 1.25),
        },
        figure: rate(OVERWRITE),
        compared: Compared::Over(rate(APPEND)),
        only: Some(Only::CopyOnWrite),
    },
    Claim {
        published: Published {
            id: "partial-page-must-be-read",
            statement: "An unaligned cold write costs a read",
            source: DISCUSSION,
            value: None,
            band: Band::at_least(0.9),
        },
        figure: reads(UNALIGNED_COLD),
        compared: Compared::Less(reads(ALIGNED_COLD)),
        only: None,
    },
];

/// Judges every claim whose strategies were part of the plan.
pub(super) fn judge(filesystem: &Filesystem, series: &[Series]) -> Vec<ClaimResult> {
    claim::judge(&CLAIMS, &Measured { filesystem, series })
}

struct Measured<'a> {
    filesystem: &'a Filesystem,
    series: &'a [Series],
}

impl Evidence<Strategy> for Measured<'_> {
    fn find(&self, wanted: &Strategy, _: &Strategy) -> Option<&Series> {
        find(self.series, wanted)
    }

    fn elsewhere(&self, claim: &Claim<Strategy>) -> Option<String> {
        let storage = self.filesystem.storage();
        let is_elsewhere = claim.only == Some(Only::CopyOnWrite) && !storage.copy_on_write;
        is_elsewhere.then(|| format!("{} does not copy on write", storage.kind))
    }

    fn obstacle(&self, _: &Claim<Strategy>, series: &[&Series]) -> Option<String> {
        if is_in_memory(self.filesystem) {
            return Some("this is in main memory, where no write is durable".into());
        }
        series.iter().find_map(|one| obstacle(one))
    }

    fn explain(&self, claim: &Claim<Strategy>, series: &[&Series]) -> String {
        let mut parts: Vec<String> = series.iter().filter_map(|one| device_words(one)).collect();
        parts.extend(remark(claim, series));
        parts.extend(series.iter().filter_map(|one| reserve(one)));
        parts.join("; ")
    }
}

/// What keeps a claim about a strategy from being judged.
fn obstacle(strategy: &Series) -> Option<String> {
    if let Some(obstacle) = strategy.obstacle() {
        return Some(obstacle);
    }
    let step = strategy.axes.allocation.and_then(Allocation::step_bytes);
    let size = strategy.axes.size.unwrap_or(0) as f64;
    let operations = strategy.values(Metric::Operations);
    if let Some(step) = step
        && operations.iter().any(|count| count * size < step as f64)
    {
        return Some("trials were shorter than a step, most of which was written in vain".into());
    }
    None
}

/// What weakens a verdict on a strategy, if anything does: what is paid once in a trial weighs too much in one that ended
/// early.
fn reserve(strategy: &Series) -> Option<String> {
    let is_cut = strategy.trials.iter().any(|trial| trial.cut);
    (is_cut && strategy.axes.allocation != Some(Allocation::Overwrite)).then(|| {
        format!(
            "trials of {} were stopped by the clock; give --seconds for longer ones",
            strategy.key
        )
    })
}

/// What there is to say of what a claim is about.
fn remark(claim: &Claim<Strategy>, series: &[&Series]) -> Option<String> {
    let &[of, over] = series else { return None };
    let both = |metric| of.median(metric).zip(over.median(metric));
    if claim.figure.of == AT_ONCE {
        let (at_once, settled) = both(Metric::FirstUs)?;
        return Some(format!(
            "the first operation takes {:.1} ms against {:.2} ms, since it flushes the zeros",
            at_once / 1e3,
            settled / 1e3,
        ));
    }
    if claim.figure.of == STEPS {
        let share = of.trials.iter().filter_map(|trial| {
            Some(trial.get(Metric::ExtensionSeconds)? / trial.get(Metric::Seconds)?)
        });
        let share = share.sum::<f64>() / of.trials.len().max(1) as f64;
        let share = share * 100.0;
        return Some(format!("{share:.0}% of the time went into writing zeros"));
    }
    if claim.figure.metric == Metric::Reads {
        let (unaligned, aligned) = both(Metric::P50Us)?;
        return Some(format!(
            "median latency {unaligned:.0} against {aligned:.0} µs"
        ));
    }
    None
}

fn device_words(series: &Series) -> Option<String> {
    let name = match (series.axes.placement, series.axes.cache) {
        (Some(Placement::Sequential), Some(CacheState::Warm)) => {
            series.axes.allocation?.to_string()
        }
        (Some(Placement::Unaligned), _) => "unaligned/cold".to_owned(),
        _ => "spaced/cold".to_owned(),
    };
    let requests = series.median(Metric::WriteRequests)?;
    let writes = match series.median(Metric::Writes) {
        Some(writes) => format!("{writes:.1} writes"),
        None => format!("{requests:.1} requests"),
    };
    let reads = series.median(Metric::Reads)?;
    let reads = if reads >= 0.05 {
        format!(", {reads:.1} reads")
    } else {
        String::new()
    };
    Some(format!(
        "{name}: {writes}, {:.1} flushes, {:.1} KiB{reads}",
        series.median(Metric::Flushes)?,
        series.median(Metric::Kib)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::fixtures::recorded;
    use crate::claim::Verdict;
    use crate::sync::fixtures::{filesystem, measured};
    use landfall_os::Medium;

    const ROUNDS: [f64; 5] = [1_000.0, 1_100.0, 900.0, 1_050.0, 950.0];

    /// Appending at `ROUNDS`, overwriting `factor` times as fast in every round.
    fn appending_and_overwriting(factor: f64) -> Vec<Series> {
        let append = Strategy {
            allocation: Allocation::Append,
            ..Strategy::BASELINE
        };
        vec![
            measured(append, &ROUNDS, 3.0, 2.0),
            measured(
                Strategy::BASELINE,
                &ROUNDS.map(|rate| rate * factor),
                1.0,
                1.0,
            ),
        ]
    }

    fn verdict(claims: &[ClaimResult], id: &str) -> Verdict {
        claims.iter().find(|claim| claim.id == id).unwrap().verdict
    }

    #[test]
    fn a_claim_follows_the_ratio_of_each_round() {
        let ext4 = filesystem("ext4", Medium::Device);
        for (factor, four, faster) in [
            (4.0, Verdict::Holds, Verdict::Holds),
            (2.0, Verdict::DoesNotHold, Verdict::Holds),
            (1.0, Verdict::DoesNotHold, Verdict::DoesNotHold),
        ] {
            let claims = judge(&ext4, &appending_and_overwriting(factor));
            assert_eq!(
                verdict(&claims, "overwrite-four-times-append"),
                four,
                "{factor}"
            );
            assert_eq!(
                verdict(&claims, "overwrite-beats-append"),
                faster,
                "{factor}"
            );
        }
    }

    #[test]
    fn few_rounds_are_not_enough_for_a_verdict() {
        let mut strategies = appending_and_overwriting(4.0);
        strategies[0].trials.truncate(4);
        let claims = judge(&filesystem("ext4", Medium::Device), &strategies);
        assert_eq!(
            verdict(&claims, "overwrite-beats-append"),
            Verdict::CannotBeTold
        );
        assert!(claims[0].why.contains("--rounds"), "{}", claims[0].why);
    }

    #[test]
    fn the_counters_say_why() {
        let claims = judge(
            &filesystem("ext4", Medium::Device),
            &appending_and_overwriting(4.0),
        );
        assert!(
            claims[0].why.contains("append: 3.0 writes, 2.0 flushes"),
            "{}",
            claims[0].why
        );
        assert!(
            claims[0].why.contains("overwrite: 1.0 writes, 1.0 flushes"),
            "{}",
            claims[0].why
        );
    }

    #[test]
    fn an_interval_astride_a_threshold_tells_nothing() {
        let mut strategies = appending_and_overwriting(4.0);
        for (trial, rate) in strategies[1].trials.iter_mut().zip([900.0, 20_000.0]) {
            trial.figures.set(Metric::OpsPerSecond, rate);
        }
        let claims = judge(&filesystem("ext4", Medium::Device), &strategies);
        assert_eq!(
            verdict(&claims, "overwrite-four-times-append"),
            Verdict::CannotBeTold
        );
    }

    #[test]
    fn nothing_is_claimed_of_memory_of_missing_strategies_or_of_another_filesystem() {
        let strategies = appending_and_overwriting(4.0);
        let in_memory = judge(&filesystem("tmpfs", Medium::Memory), &strategies);
        let tells_nothing =
            |claim: &ClaimResult| !matches!(claim.verdict, Verdict::Holds | Verdict::DoesNotHold);
        assert!(in_memory.iter().all(tells_nothing));
        // Its filesystem is on a device, which is in main memory.
        let on_memory = recorded("memory").filesystem;
        assert_eq!(on_memory.medium, Medium::Device);
        assert!(judge(&on_memory, &strategies).iter().all(tells_nothing));
        let ext4 = judge(&filesystem("ext4", Medium::Device), &strategies);
        assert!(ext4.iter().all(|claim| claim.id != "at-once-costs-half"));
        assert_eq!(
            verdict(&ext4, "copy-on-write-is-indifferent"),
            Verdict::DoesNotApply
        );
        let btrfs = judge(
            &filesystem("btrfs", Medium::Device),
            &appending_and_overwriting(1.0),
        );
        assert_eq!(
            verdict(&btrfs, "copy-on-write-is-indifferent"),
            Verdict::Holds
        );
    }

    #[test]
    fn trials_that_were_stopped_weaken_a_verdict_and_do_not_prevent_it() {
        let mut strategies = appending_and_overwriting(4.0);
        strategies[0].trials[1].cut = true;
        let claims = judge(&filesystem("ext4", Medium::Device), &strategies);
        assert_eq!(verdict(&claims, "overwrite-beats-append"), Verdict::Holds);
        assert!(
            claims[0].why.contains("stopped by the clock"),
            "{}",
            claims[0].why
        );
    }

    #[test]
    fn steps_that_were_not_used_up_tell_nothing() {
        let steps = Strategy {
            allocation: Allocation::Step { mib: 64 },
            ..Strategy::BASELINE
        };
        let strategies = [
            measured(steps, &ROUNDS, 1.0, 1.0),
            measured(Strategy::BASELINE, &ROUNDS, 1.0, 1.0),
        ];
        let claims = judge(&filesystem("ext4", Medium::Device), &strategies);
        let id = "preallocating-under-load-costs-half";
        assert_eq!(verdict(&claims, id), Verdict::CannotBeTold);
    }
}
