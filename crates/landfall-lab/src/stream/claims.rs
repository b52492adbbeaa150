//! The published claims of experiment `stream`, and their verdicts.
//!
//! They come from a published comparison of `write(2)` with `memset` into a mapping, for states of 128
//! to 4096 MB, on a spinning disk and on an SSD; and from its remark on `posix_fallocate`. A claim is
//! judged by a ratio that is formed round by round; its band says how far today's ratio may be from the
//! published one.

use landfall_os::{Allocation, DirtyLimits, Filesystem, StreamMethod};
use landfall_results::{Axis, Data, Metric, Series};

use super::{Wall, summary_text};
use crate::claim::{self, Band, Claim, ClaimResult, Compared, Evidence, Figure, Only, Published};
use crate::facts::is_in_memory;
use crate::numbers::thousands;
use crate::stats::median;
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

/// A way to hand a state over, and its size.
#[derive(Clone, Copy)]
struct Way {
    method: StreamMethod,
    allocation: Allocation,
    size: Size,
}

const fn way(method: StreamMethod, allocation: Allocation, size: Size) -> Way {
    Way {
        method,
        allocation,
        size,
    }
}

const fn hand_over(method: StreamMethod, allocation: Allocation, size: Size) -> Figure<Way> {
    Figure {
        metric: Metric::HandOverMbPerS,
        name: "hand-over MB/s",
        of: way(method, allocation, size),
    }
}

const fn total(method: StreamMethod, allocation: Allocation, size: Size) -> Figure<Way> {
    Figure {
        metric: Metric::TotalMbPerS,
        name: "MB/s until durable",
        of: way(method, allocation, size),
    }
}

static CLAIMS: [Claim<Way>; 7] = [
    Claim {
        published: Published {
            id: "hand-over-outruns-the-disk",
            statement: "write(2) is 10 times as fast as with its sync",
            source: SOURCE,
            // On the spinning disk, the middles of 1,196-1,378 and 103-113 MB/s.
            value: Some(1_287.0 / 108.0),
            band: Band::at_least(6.0),
        },
        figure: hand_over(StreamMethod::WRITE, Allocation::Append, Size::Smallest),
        compared: Compared::Over(total(
            StreamMethod::WRITE,
            Allocation::Append,
            Size::Smallest,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "hand-over-is-faster-than-durable",
            statement: "write(2) is faster than with its sync",
            source: SOURCE,
            value: Some(1_287.0 / 108.0),
            band: Band::at_least(1.2),
        },
        figure: hand_over(StreamMethod::WRITE, Allocation::Append, Size::Smallest),
        compared: Compared::Over(total(
            StreamMethod::WRITE,
            Allocation::Append,
            Size::Smallest,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "durable-rate-has-no-size",
            statement: "With sync, throughput does not depend on size",
            source: SOURCE,
            // 103 to 113 MB/s over all sizes.
            value: Some(1.0),
            band: Band::between(0.8, 1.25),
        },
        figure: total(StreamMethod::WRITE, Allocation::Append, Size::Largest),
        compared: Compared::Over(total(
            StreamMethod::WRITE,
            Allocation::Append,
            Size::Smallest,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "mapping-as-fast-as-write",
            statement: "mmap with sync is within a tenth of write(2)",
            source: SOURCE,
            value: Some(1.0),
            band: Band::between(0.9, 1.1),
        },
        figure: total(StreamMethod::MMAP, Allocation::Sparse, Size::Largest),
        compared: Compared::Over(total(
            StreamMethod::WRITE,
            Allocation::Append,
            Size::Largest,
        )),
        only: None,
    },
    Claim {
        published: Published {
            id: "write-hits-a-wall",
            statement: "Beyond a size, write(2) slows to a fraction of its pace",
            source: SOURCE,
            value: Some(184.0 / 1_287.0),
            band: Band::at_most(0.5),
        },
        figure: hand_over(StreamMethod::WRITE, Allocation::Append, Size::Largest),
        compared: Compared::Over(hand_over(
            StreamMethod::WRITE,
            Allocation::Append,
            Size::Smallest,
        )),
        only: Some(Only::BeyondDirtyLimits),
    },
    Claim {
        published: Published {
            id: "mapping-keeps-its-pace",
            statement: "mmap keeps 2/3 of write(2)'s small-state pace at 2 GB",
            source: SOURCE,
            value: Some(1_014.0 / 1_470.0),
            band: Band::between(0.5, 1.0),
        },
        figure: hand_over(
            StreamMethod::MMAP,
            Allocation::Sparse,
            Size::Exactly(2 << 30),
        ),
        compared: Compared::Over(hand_over(
            StreamMethod::WRITE,
            Allocation::Append,
            Size::Smallest,
        )),
        only: Some(Only::BeyondDirtyLimits),
    },
    Claim {
        published: Published {
            id: "fallocate-costs-as-writing",
            statement: "posix_fallocate takes the time of a durable write",
            source: SOURCE,
            value: Some(1.0),
            band: Band::between(0.5, 2.0),
        },
        figure: Figure {
            of: way(StreamMethod::WRITE, Allocation::Unwritten, Size::Largest),
            metric: Metric::PreparationSeconds,
            name: "time to allocate",
        },
        compared: Compared::Over(Figure {
            of: way(StreamMethod::WRITE, Allocation::Append, Size::Largest),
            metric: Metric::Seconds,
            name: "time until durable",
        }),
        only: None,
    },
];

/// Judges every claim whose strategies were part of the plan.
pub(super) fn judge(
    filesystem: &Filesystem,
    series: &[Series],
    data: Data,
    walls: &[Wall],
    limits: Option<&DirtyLimits>,
) -> Vec<ClaimResult> {
    let measured = Measured {
        filesystem,
        series,
        data,
        walls,
        limits,
    };
    claim::judge(&CLAIMS, &measured)
}

struct Measured<'a> {
    filesystem: &'a Filesystem,
    series: &'a [Series],
    data: Data,
    walls: &'a [Wall],
    limits: Option<&'a DirtyLimits>,
}

impl Measured<'_> {
    /// What was measured of a way, by size.
    fn by_size(&self, way: &Way) -> Vec<&Series> {
        let is_of_it = |one: &&Series| {
            let axes = (one.axes.allocation, one.axes.stream_method);
            axes == (Some(way.allocation), Some(way.method)) && one.axes.has_usual_chunk()
        };
        let mut found: Vec<&Series> = self.series.iter().filter(is_of_it).collect();
        found.sort_by_key(|series| series.axes.size);
        found
    }
}

impl Evidence<Way> for Measured<'_> {
    /// The largest is the largest that both have.
    fn find(&self, wanted: &Way, with: &Way) -> Option<&Series> {
        let (own, others) = (self.by_size(wanted), self.by_size(with));
        let is_shared = |one: &&&Series| others.iter().any(|o| o.axes.size == one.axes.size);
        match wanted.size {
            Size::Smallest => own.first().copied(),
            Size::Largest => own.iter().rfind(is_shared).copied(),
            Size::Exactly(size) => own.iter().find(|one| one.axes.size == Some(size)).copied(),
        }
    }

    fn obstacle(&self, claim: &Claim<Way>, series: &[&Series]) -> Option<String> {
        if is_in_memory(self.filesystem) {
            return Some("this is in main memory, where nothing becomes durable".into());
        }
        if let Some(obstacle) = series.iter().find_map(|one| one.obstacle()) {
            return Some(obstacle);
        }
        if self.data == Data::Zeros {
            return Some("the state is all zeros, which may never reach a disk".into());
        }
        if claim.only != Some(Only::BeyondDirtyLimits) {
            return None;
        }
        let Some(limits) = self.limits else {
            return Some(
                "it is not known at how much dirty data this kernel slows writers down".into(),
            );
        };
        let (axes, limit) = (&series.first()?.axes, limits.throttle_bytes);
        // Where any method hits the kernel's wall, the others could with as large a state. One that something else makes,
        // memory that is slow to be had, says nothing of it.
        let is_reached =
            |wall: &Wall| wall.is_at_limit(limits) && Some(wall.size_after) <= axes.size;
        if self.walls.iter().any(is_reached) {
            return None;
        }
        (axes.size < Some(limit)).then(|| {
            format!(
                "the state, {}, stays below the {} of dirty data at which this kernel slows writers down: no wall is to be expected; name larger ones with --size",
                axes.text(Axis::Size),
                bytes_text(limit)
            )
        })
    }

    fn explain(&self, claim: &Claim<Way>, series: &[&Series]) -> String {
        let print = |figure: &Figure<Way>, series: &Series| {
            let value = median(&series.values(figure.metric)).unwrap_or(0.0);
            if figure.metric.description().unit == "s" {
                summary_text::seconds_text(value)
            } else {
                thousands(value)
            }
        };
        let (figures, &[of, over]) = (claim.figures(), series) else {
            return String::new();
        };
        let (first, second) = (figures[0], figures[1]);
        let (a, b) = (print(first, of), print(second, over));
        let is_one_figure = first.name == second.name;
        let mut text = if is_one_figure {
            format!("{}: {a} against {b}", first.name)
        } else {
            format!("{}: {a}; {}: {b}", first.name, second.name)
        };
        let stall = |series: &Series| series.median(Metric::LongestStallMs);
        if is_one_figure
            && first.of.method != second.of.method
            && let (Some(first), Some(second)) = (stall(of), stall(over))
        {
            text += &format!("; the longest call took {first:.1} against {second:.1} ms");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::fixtures::recorded;
    use crate::claim::Verdict;
    use crate::stream::Strategy;
    use crate::stream::fixtures::{measured, stream_results};
    use crate::sync::fixtures::filesystem;
    use landfall_os::Medium;

    /// The spinning disk of the publication.
    fn published() -> Vec<Series> {
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
            let seconds = (128 << 20) as f64 / 1e6 / 108.0;
            trial.figures.set(Metric::PreparationSeconds, seconds);
        }
        all.push(allocated);
        all
    }

    fn verdicts(strategies: &[Series], limit: u64) -> Vec<(String, Verdict)> {
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
        let small: Vec<Series> = published()
            .into_iter()
            .filter(|strategy| strategy.axes.size <= Some(1 << 30))
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
    fn a_wall_beyond_the_state_is_none_of_it() {
        let limits = DirtyLimits {
            background_bytes: 1 << 30,
            limit_bytes: 5 << 30,
            throttle_bytes: 3 << 30,
            device_limit_bytes: None,
            expire_seconds: 30.0,
        };
        let filesystem = filesystem("ext4", Medium::Device);
        let verdict = |size_after: u64, limits: Option<&DirtyLimits>| {
            let mut walls = stream_results().walls;
            walls[0].size_after = size_after;
            let data = Data::Incompressible;
            let claims = judge(&filesystem, &published(), data, &walls, limits);
            let mut claims = claims.into_iter();
            let claim = claims.find(|claim| claim.id == "mapping-keeps-its-pace");
            claim.map(|claim| claim.verdict)
        };
        // It is judged of 2 GiB.
        assert_eq!(verdict(4 << 30, Some(&limits)), Some(Verdict::CannotBeTold));
        let lower = DirtyLimits {
            throttle_bytes: 2200 << 20,
            ..limits
        };
        assert_eq!(verdict(2 << 30, Some(&lower)), Some(Verdict::DoesNotHold));
        assert_eq!(verdict(2 << 30, None), Some(Verdict::CannotBeTold));
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
    fn of_a_disk_in_memory_nothing_is_claimed() {
        let filesystem = recorded("memory").filesystem;
        assert_eq!(filesystem.medium, Medium::Device);
        let data = Data::Incompressible;
        let claims = judge(&filesystem, &published(), data, &[], None);
        let tells_nothing = |claim: &ClaimResult| claim.verdict == Verdict::CannotBeTold;
        assert!(claims.iter().all(tells_nothing), "{claims:?}");
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
        let one: Vec<Series> = published()
            .into_iter()
            .filter(|strategy| {
                strategy.axes.size == Some(128 << 20)
                    && strategy.axes.stream_method == Some(StreamMethod::WRITE)
            })
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
