//! The wall: the size beyond which states are handed over much more slowly.
//!
//! A hand-over is a copy into the page cache until so much is dirty there that the kernel makes writers
//! wait; from then on it goes no faster than the disk. Two looks at it: the sizes between which the
//! median throughput collapses, and the place in the smallest state beyond them where its pace breaks.

use landfall_os::DirtyLimits;
use landfall_results::{Axes, Axis, Metric, Series, Trial};

use super::Wall;
use crate::stats::{Estimate, FEWEST_ROUNDS, median};

/// Beyond a wall throughput is at most this share of what it is before.
const COLLAPSE: f64 = 0.6;
/// Parts of a state that must lie on either side of a break, so that one slow call is none.
const FEWEST_PARTS: usize = 3;
const MIB: f64 = 1048576.0;

/// The walls of all methods and allocations that were measured at several sizes.
pub(super) fn find(series: &[Series], limits: Option<&DirtyLimits>) -> Vec<Wall> {
    let mut walls = Vec::new();
    let mut seen: Vec<Axes> = Vec::new();
    for one in series {
        let fixed = one.axes.without(Axis::Size);
        if !seen.contains(&fixed) {
            let mut sizes: Vec<&Series> = series
                .iter()
                .filter(|other| other.axes.without(Axis::Size) == fixed)
                // Fewer give no interval that could keep chance from building walls.
                .filter(|other| other.is_measured() && other.trials.len() >= FEWEST_ROUNDS)
                .collect();
            sizes.sort_by_key(|series| series.axes.size);
            walls.extend(of_series(&sizes, limits));
            seen.push(fixed);
        }
    }
    walls
}

/// The wall of one method, if it has one: `sizes` are its results, smallest first.
///
/// It stands before the first size from which on every size is handed over at no more than 0.6 times
/// the slowest median of the sizes before it, where the intervals on both sides lie apart. Where
/// several places qualify, it is the one with the deepest fall.
fn of_series(sizes: &[&Series], limits: Option<&DirtyLimits>) -> Option<Wall> {
    let rates: Vec<Estimate> = sizes
        .iter()
        .filter_map(|series| series.estimate(Metric::HandOverMbPerS))
        .collect();
    let fall = |split: usize| -> Option<f64> {
        let (before, after) = rates.split_at_checked(split)?;
        let slowest = before.iter().min_by(|a, b| a.median.total_cmp(&b.median))?;
        let fastest = after.iter().max_by(|a, b| a.median.total_cmp(&b.median))?;
        let ratio = fastest.median / slowest.median;
        (ratio <= COLLAPSE && fastest.high < slowest.low).then_some(ratio)
    };
    let (split, _) = (1..rates.len())
        .filter_map(|split| Some((split, fall(split)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    // The smallest beyond it, whose parts are the finest.
    let beyond = sizes[split];
    let size_after = beyond.axes.size?;
    let breaks: Vec<f64> = beyond
        .trials
        .iter()
        .filter_map(|trial| break_at(trial, size_after))
        .collect();
    let at_mib = Estimate::of(&breaks);
    let limit = limits.map(|limits| limits.throttle_bytes as f64 / MIB);
    let left = beyond.median(Metric::LeftMib)?;
    Some(Wall {
        method: beyond.axes.stream_method?,
        allocation: beyond.axes.allocation?,
        size_before: sizes[split - 1].axes.size?,
        size_after,
        before_mb_per_s: rates[split - 1],
        after_mb_per_s: rates[split],
        at_mib,
        share_of_limit: limit.map(|limit| left / limit),
    })
}

/// MiB handed over when the pace of a trial broke for good; `None` where it did not.
///
/// The break is where cutting the parts in two leaves their times closest to the medians of both
/// sides (least absolute deviations): one slow call is none.
fn break_at(trial: &Trial, size: u64) -> Option<f64> {
    let mut begin = 0.0;
    let parts: Vec<f64> = trial
        .pace
        .iter()
        .map(|end| end - std::mem::replace(&mut begin, *end))
        .collect();
    let deviations = |parts: &[f64]| -> f64 {
        let middle = median(parts).unwrap_or(0.0);
        parts.iter().map(|part| (part - middle).abs()).sum()
    };
    let last = parts.len().checked_sub(FEWEST_PARTS)?;
    let cost = |at: usize| deviations(&parts[..at]) + deviations(&parts[at..]);
    let at = (FEWEST_PARTS..=last).min_by(|a, b| cost(*a).total_cmp(&cost(*b)))?;
    let ratio = median(&parts[..at])? / median(&parts[at..])?;
    (ratio <= COLLAPSE).then(|| size as f64 / MIB * at as f64 / parts.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fixtures::measured;
    use crate::stream::{Data, Strategy};
    use landfall_os::StreamMethod;

    fn series(rates: &[(u64, f64)]) -> Vec<Series> {
        let of = |&(mib, rate): &(u64, f64)| {
            let strategy = Strategy::usual(StreamMethod::WRITE, mib << 20, Data::Incompressible);
            let rates = [0.96, 1.0, 1.03, 0.98, 1.01].map(|jitter| (rate * jitter, 100.0));
            measured(strategy, &rates)
        };
        rates.iter().map(of).collect()
    }

    /// The figures that were published for a spinning disk.
    const PUBLISHED: [(u64, f64); 6] = [
        (128, 1_196.0),
        (256, 1_300.0),
        (512, 1_378.0),
        (1024, 1_250.0),
        (2048, 369.0),
        (4096, 184.0),
    ];

    #[test]
    fn the_published_wall_is_found_where_it_was_seen() {
        let walls = find(&series(&PUBLISHED), None);
        assert_eq!(walls.len(), 1);
        let wall = &walls[0];
        assert_eq!(
            (wall.size_before, wall.size_after),
            (1024 << 20, 2048 << 20)
        );
        assert_eq!(wall.before_mb_per_s.median.round(), 1_250.0);
        assert_eq!(wall.after_mb_per_s.median.round(), 369.0);
        assert_eq!(wall.share_of_limit, None);
    }

    #[test]
    fn a_slope_two_humps_and_a_single_size_are_no_wall() {
        let slope = [
            (128, 1_300.0),
            (256, 1_200.0),
            (512, 1_000.0),
            (1024, 900.0),
        ];
        assert!(find(&series(&slope), None).is_empty());
        assert!(find(&series(&PUBLISHED[..1]), None).is_empty());
        // Slow at one size only: it recovers.
        let dip = [(128, 1_300.0), (256, 400.0), (512, 1_300.0)];
        assert!(find(&series(&dip), None).is_empty());
        // Two humps: the medians fall, the intervals overlap.
        let strategy = |mib: u64| Strategy::usual(StreamMethod::WRITE, mib << 20, Data::Zeros);
        let humps = [
            measured(
                strategy(1),
                &[500.0, 1300.0, 1300.0, 1300.0, 500.0].map(|r| (r, 100.0)),
            ),
            measured(
                strategy(2),
                &[500.0, 1300.0, 500.0, 500.0, 500.0].map(|r| (r, 100.0)),
            ),
        ];
        assert!(find(&humps, None).is_empty());
    }

    #[test]
    fn the_place_is_found_in_the_pace_and_held_against_the_limit() {
        let mut strategies = series(&PUBLISHED);
        for trial in &mut strategies[4].trials {
            // The first half of 2 GiB at ten times the pace of the rest.
            let mut time = 0.0;
            trial.pace = (0..64)
                .map(|part| {
                    time += if part < 32 { 0.1 } else { 1.0 };
                    time
                })
                .collect();
        }
        let limits = DirtyLimits {
            background_bytes: 512 << 20,
            limit_bytes: 1536 << 20,
            throttle_bytes: 1024 << 20,
            device_limit_bytes: None,
            expire_seconds: 30.0,
        };
        let wall = &find(&strategies, Some(&limits))[0];
        assert_eq!(wall.at_mib.unwrap().median, 1_024.0);
        // All of the state was dirty at the end, in these made-up trials.
        assert_eq!(wall.share_of_limit, Some(2.0));
    }

    #[test]
    fn an_even_pace_does_not_break() {
        let strategies = series(&PUBLISHED);
        assert_eq!(break_at(&strategies[0].trials[0], 128 << 20), None);
        let mut one_slow_call = strategies[0].trials[0].clone();
        one_slow_call.pace = (1..=64).map(f64::from).collect();
        one_slow_call.pace[63] = 70.0;
        assert_eq!(break_at(&one_slow_call, 128 << 20), None);
    }
}
