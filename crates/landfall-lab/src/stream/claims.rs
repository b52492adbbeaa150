//! The published claims of experiment `stream`, and their verdicts.
//!
//! They come from a published comparison of `write(2)` with `memset` into a mapping, for states of 128
//! to 4096 MB, on a spinning disk and on an SSD; and from its remark on `posix_fallocate`. A claim is
//! judged by a ratio that is formed round by round; its band says how far today's ratio may be from the
//! published one.

use landfall_os::{DirtyLimits, Filesystem, Medium};

use super::{Data, StrategyResult, Trial, Wall, sentences};
use crate::claim::{Band, ClaimResult, Verdict};
use crate::numbers::thousands;
use crate::stats::{Estimate, FEWEST_ROUNDS};
use landfall_os::humanize::bytes_text;

const SOURCE: &str = "published comparison of write(2) and mmap for handing over a large in-memory state, 128 to 4096 MB, phase by phase, on a spinning disk and on an SSD";

/// A size, as a claim names it.
#[derive(Clone, Copy)]
enum Size {
    /// The smallest that was measured.
    Smallest,
    /// The largest that was measured.
    Largest,
    /// This one, in bytes.
    Exactly(u64),
}

/// A figure of a strategy: a method, with the allocation that is usual for it, at a size.
#[derive(Clone, Copy)]
struct Figure {
    strategy: &'static str,
    size: Size,
    name: &'static str,
    value: fn(&Trial) -> f64,
}

const WRITE: &str = "append/write";
const MMAP: &str = "sparse/mmap";
const FALLOCATED: &str = "unwritten/write";

const fn hand_over(strategy: &'static str, size: Size) -> Figure {
    Figure {
        strategy,
        size,
        name: "hand-over MB/s",
        value: |trial| trial.hand_over_mb_per_s,
    }
}

const fn total(strategy: &'static str, size: Size) -> Figure {
    Figure {
        strategy,
        size,
        name: "MB/s until durable",
        value: |trial| trial.total_mb_per_s,
    }
}

struct Claim {
    id: &'static str,
    statement: &'static str,
    of: Figure,
    over: Figure,
    published: f64,
    band: Band,
    /// Whether the claim is about sizes beyond the kernel's dirty limits.
    beyond_limit: bool,
}

const CLAIMS: [Claim; 7] = [
    Claim {
        id: "hand-over-outruns-the-disk",
        statement: "write(2) hands a small state over about ten times as fast as it becomes durable",
        of: hand_over(WRITE, Size::Smallest),
        over: total(WRITE, Size::Smallest),
        // On the spinning disk, the middles of 1,196-1,378 and 103-113 MB/s.
        published: 1_287.0 / 108.0,
        band: Band::at_least(6.0),
        beyond_limit: false,
    },
    Claim {
        id: "hand-over-is-faster-than-durable",
        statement: "Handing over is faster than becoming durable, whatever the factor",
        of: hand_over(WRITE, Size::Smallest),
        over: total(WRITE, Size::Smallest),
        published: 1_287.0 / 108.0,
        band: Band::at_least(1.2),
        beyond_limit: false,
    },
    Claim {
        id: "durable-rate-has-no-size",
        statement: "With the sync, throughput is the same whatever the size",
        of: total(WRITE, Size::Largest),
        over: total(WRITE, Size::Smallest),
        // 103 to 113 MB/s over all sizes.
        published: 1.0,
        band: Band::between(0.8, 1.25),
        beyond_limit: false,
    },
    Claim {
        id: "mapping-as-fast-as-write",
        statement: "With the sync, memset into a mapping is within a tenth of write(2)",
        of: total(MMAP, Size::Largest),
        over: total(WRITE, Size::Largest),
        published: 1.0,
        band: Band::between(0.9, 1.1),
        beyond_limit: false,
    },
    Claim {
        id: "write-hits-a-wall",
        statement: "Beyond a size, write(2) hands over at a fraction of the pace: at 4 GB a seventh of that at 128 MB",
        of: hand_over(WRITE, Size::Largest),
        over: hand_over(WRITE, Size::Smallest),
        published: 184.0 / 1_287.0,
        band: Band {
            at_least: None,
            at_most: Some(0.5),
        },
        beyond_limit: true,
    },
    Claim {
        id: "mapping-keeps-its-pace",
        statement: "Through a mapping 2 GB are handed over at two thirds of the pace at which write(2) hands over small states (SSD)",
        of: hand_over(MMAP, Size::Exactly(2 << 30)),
        over: hand_over(WRITE, Size::Smallest),
        published: 1_014.0 / 1_470.0,
        band: Band::between(0.5, 1.0),
        beyond_limit: true,
    },
    Claim {
        id: "fallocate-costs-as-writing",
        statement: "posix_fallocate takes as long as writing the data durably (SSD)",
        of: Figure {
            strategy: FALLOCATED,
            size: Size::Largest,
            name: "time to allocate",
            value: |trial| trial.preparation.seconds,
        },
        over: Figure {
            strategy: WRITE,
            size: Size::Largest,
            name: "time until durable",
            value: |trial| trial.hand_over_seconds + trial.sync_seconds,
        },
        published: 1.0,
        band: Band::between(0.5, 2.0),
        beyond_limit: false,
    },
];

/// Judges every claim whose strategies were part of the plan.
pub(super) fn judge(
    filesystem: &Filesystem,
    strategies: &[StrategyResult],
    data: Data,
    walls: &[Wall],
    limits: Option<&DirtyLimits>,
) -> Vec<ClaimResult> {
    CLAIMS
        .iter()
        .filter_map(|claim| {
            let (of, over) = find_both(claim, strategies)?;
            Some(judge_one(claim, of, over, filesystem, data, walls, limits))
        })
        .collect()
}

/// Both strategies of a claim. Where both are asked for at the largest size, it is the largest that
/// both have; where sizes are compared, there must be two.
fn find_both<'a>(
    claim: &Claim,
    strategies: &'a [StrategyResult],
) -> Option<(&'a StrategyResult, &'a StrategyResult)> {
    let of_name = |name: &str| -> Vec<&'a StrategyResult> {
        let usual = |strategy: &&StrategyResult| {
            format!("{}/{}", strategy.allocation, strategy.method) == name
                && strategy.chunk == super::Strategy::CHUNK.min(strategy.size)
        };
        let mut found: Vec<&StrategyResult> = strategies.iter().filter(usual).collect();
        found.sort_by_key(|strategy| strategy.size);
        found
    };
    let (ofs, overs) = (of_name(claim.of.strategy), of_name(claim.over.strategy));
    let pick = |own: &[&'a StrategyResult], others: &[&StrategyResult], size: Size| {
        let shared = |strategy: &&&StrategyResult| others.iter().any(|o| o.size == strategy.size);
        match size {
            Size::Smallest => own.first().copied(),
            Size::Largest => own.iter().rfind(shared).copied(),
            Size::Exactly(size) => own.iter().find(|strategy| strategy.size == size).copied(),
        }
    };
    let of = pick(&ofs, &overs, claim.of.size)?;
    let over = pick(&overs, &ofs, claim.over.size)?;
    let same_figure = claim.of.name == claim.over.name && of.key == over.key;
    (!same_figure).then_some((of, over))
}

fn judge_one(
    claim: &Claim,
    of: &StrategyResult,
    over: &StrategyResult,
    filesystem: &Filesystem,
    data: Data,
    walls: &[Wall],
    limits: Option<&DirtyLimits>,
) -> ClaimResult {
    let pairs: Vec<(f64, f64)> = of
        .trials
        .iter()
        .filter_map(|trial| {
            let other = over.trials.iter().find(|o| o.round == trial.round)?;
            Some(((claim.of.value)(trial), (claim.over.value)(other)))
        })
        .collect();
    let today = Estimate::of_ratio(&pairs);
    let obstacle = obstacle(claim, of, over, filesystem, data, walls, limits);
    let (verdict, why) = match (obstacle, &today) {
        (Some(obstacle), _) => (Verdict::CannotBeTold, obstacle),
        (None, None) => (Verdict::CannotBeTold, "nothing was measured".to_owned()),
        (None, Some(today)) => (claim.band.judge(today), explain(claim, of, over)),
    };
    ClaimResult {
        id: claim.id.to_owned(),
        statement: claim.statement.to_owned(),
        quantity: format!(
            "{} of {} / {} of {}",
            claim.of.name, of.key, claim.over.name, over.key
        ),
        published: Some(claim.published),
        source: SOURCE.to_owned(),
        band: claim.band,
        today,
        verdict,
        why,
    }
}

/// What keeps a claim from being judged here, if anything does.
fn obstacle(
    claim: &Claim,
    of: &StrategyResult,
    over: &StrategyResult,
    filesystem: &Filesystem,
    data: Data,
    walls: &[Wall],
    limits: Option<&DirtyLimits>,
) -> Option<String> {
    if filesystem.storage().medium == Medium::Memory {
        return Some("this directory is in main memory, where nothing becomes durable".into());
    }
    for strategy in [of, over] {
        if let Some(reason) = &strategy.unsupported {
            return Some(format!("{} could not be measured: {reason}", strategy.key));
        }
        if strategy.trials.len() < FEWEST_ROUNDS {
            return Some(format!(
                "fewer than {FEWEST_ROUNDS} rounds give no interval to judge by; measure more with --rounds"
            ));
        }
    }
    if data == Data::Zeros {
        return Some("the state is all zeros, which may never reach a disk".into());
    }
    if !claim.beyond_limit {
        return None;
    }
    let limits = limits?;
    // Where any method hits the kernel's wall, the others could. One that something else makes, memory
    // that is slow to be had, says nothing of it.
    if walls.iter().any(|wall| wall.is_at_limit(limits)) {
        return None;
    }
    let limit = limits.throttle_bytes;
    (of.size < limit).then(|| {
        format!(
            "the state, {}, stays below the {} of dirty data at which this kernel slows writers down: no wall is to be expected; name larger ones with --size",
            bytes_text(of.size),
            bytes_text(limit)
        )
    })
}

/// What else was seen.
fn explain(claim: &Claim, of: &StrategyResult, over: &StrategyResult) -> String {
    let (Some(first), Some(second)) = (&of.summary, &over.summary) else {
        return String::new();
    };
    let middle = |strategy: &StrategyResult, figure: fn(&Trial) -> f64| {
        let values: Vec<f64> = strategy.trials.iter().map(figure).collect();
        crate::stats::median(&values).unwrap_or(0.0)
    };
    let (a, b) = (middle(of, claim.of.value), middle(over, claim.over.value));
    let print = |figure: &Figure, value: f64| {
        if figure.name.starts_with("time ") {
            sentences::seconds_text(value)
        } else {
            thousands(value)
        }
    };
    let (a, b) = (print(&claim.of, a), print(&claim.over, b));
    let mut text = if claim.of.name == claim.over.name {
        format!("{}: {a} against {b}", claim.of.name)
    } else {
        format!("{}: {a}; {}: {b}", claim.of.name, claim.over.name)
    };
    if claim.of.name == claim.over.name && of.method != over.method {
        text.push_str(&format!(
            "; the longest call took {:.1} against {:.1} ms",
            first.longest_stall_ms.median, second.longest_stall_ms.median
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Strategy;
    use crate::stream::fixtures::{measured, stream_results};
    use crate::sync::fixtures::filesystem;
    use landfall_os::{Allocation, StreamMethod};

    /// The spinning disk of the publication.
    fn published() -> Vec<StrategyResult> {
        let sizes = [
            (128, 1_287.0),
            (1024, 1_287.0),
            (2048, 369.0),
            (4096, 184.0),
        ];
        let of = |method| {
            sizes.map(|(mib, rate)| {
                let strategy = Strategy::usual(method, mib << 20, Data::Incompressible);
                let rates = [0.99, 1.0, 1.01, 1.0, 1.0].map(|j| (rate * j, 108.0 * j));
                measured(strategy, &rates)
            })
        };
        let mut all = [of(StreamMethod::WRITE), of(StreamMethod::MMAP)].concat();
        let mut allocated = measured(
            Strategy {
                allocation: Allocation::Unwritten,
                ..Strategy::usual(StreamMethod::WRITE, 128 << 20, Data::Incompressible)
            },
            &[(1_200.0, 108.0); 5],
        );
        for trial in &mut allocated.trials {
            trial.preparation.seconds = (128 << 20) as f64 / 1e6 / 108.0;
        }
        all.push(allocated);
        all
    }

    fn verdicts(strategies: &[StrategyResult], limit: u64) -> Vec<(String, Verdict)> {
        let limits = DirtyLimits {
            background_bytes: limit / 2,
            limit_bytes: limit * 3 / 2,
            throttle_bytes: limit,
            device_limit_bytes: None,
            expire_seconds: 30.0,
        };
        let filesystem = filesystem("ext3", Medium::Device);
        judge(
            &filesystem,
            strategies,
            Data::Incompressible,
            &[],
            Some(&limits),
        )
        .into_iter()
        .map(|claim| (claim.id, claim.verdict))
        .collect()
    }

    #[test]
    fn what_was_published_holds_for_what_was_published() {
        let verdicts = verdicts(&published(), 1 << 30);
        assert_eq!(verdicts.len(), CLAIMS.len());
        for (id, verdict) in verdicts {
            // The mapping's pace was published for the SSD.
            let expected = match id.as_str() {
                "mapping-keeps-its-pace" => Verdict::DoesNotHold,
                _ => Verdict::Holds,
            };
            assert_eq!(verdict, expected, "{id}");
        }
    }

    #[test]
    fn a_wall_that_is_out_of_reach_is_not_denied() {
        let small: Vec<StrategyResult> = published()
            .into_iter()
            .filter(|strategy| strategy.size <= 1 << 30)
            .collect();
        let of = |limit| {
            let verdicts = verdicts(&small, limit);
            let wall = verdicts.iter().find(|(id, _)| id == "write-hits-a-wall");
            wall.map(|(_, verdict)| *verdict)
        };
        assert_eq!(of(4 << 30), Some(Verdict::CannotBeTold));
        assert_eq!(of(512 << 20), Some(Verdict::DoesNotHold));
    }

    #[test]
    fn only_a_wall_of_the_kernels_makes_sizes_below_its_limit_large_enough() {
        let limits = DirtyLimits {
            background_bytes: 4 << 30,
            limit_bytes: 12 << 30,
            throttle_bytes: 8 << 30,
            device_limit_bytes: None,
            expire_seconds: 30.0,
        };
        let filesystem = filesystem("ext4", Medium::Device);
        let verdict = |limits: &DirtyLimits, share: f64| {
            let mut wall = stream_results().walls;
            wall[0].share_of_limit = Some(share);
            let data = Data::Incompressible;
            let claims = judge(&filesystem, &published(), data, &wall, Some(limits));
            let claim = claims
                .into_iter()
                .find(|claim| claim.id == "write-hits-a-wall");
            claim.map(|claim| claim.verdict)
        };
        assert_eq!(verdict(&limits, 0.9), Some(Verdict::CannotBeTold));
        let lower = DirtyLimits {
            throttle_bytes: 1 << 30,
            ..limits
        };
        assert_eq!(verdict(&lower, 0.9), Some(Verdict::Holds));
    }

    #[test]
    fn of_zeros_nothing_is_claimed() {
        let filesystem = filesystem("ext4", Medium::Device);
        let claims = judge(&filesystem, &published(), Data::Zeros, &[], None);
        assert_eq!(claims.len(), CLAIMS.len());
        assert!(
            claims
                .iter()
                .all(|claim| claim.verdict == Verdict::CannotBeTold)
        );
    }

    #[test]
    fn few_rounds_and_one_size_give_no_verdict() {
        let mut few = published();
        for strategy in &mut few {
            strategy.trials.truncate(3);
        }
        let all = verdicts(&few, 1 << 30);
        assert!(
            all.iter()
                .all(|(_, verdict)| *verdict == Verdict::CannotBeTold)
        );
        let one: Vec<StrategyResult> = published()
            .into_iter()
            .filter(|strategy| strategy.size == 128 << 20 && strategy.method == "write")
            .collect();
        let ids: Vec<String> = verdicts(&one, 1 << 30)
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert!(!ids.contains(&"write-hits-a-wall".to_owned()), "{ids:?}");
        assert!(
            ids.contains(&"fallocate-costs-as-writing".to_owned()),
            "{ids:?}"
        );
    }
}
