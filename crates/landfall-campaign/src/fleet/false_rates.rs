//! How often a disk is called an outlier without cause, and how seldom one with cause is not. What takes minutes is ignored; what it
//! prints stands in `docs/explanation/fleet-outliers.md`, which says how to repeat it.

use landfall_lab::sync::Strategy;
use landfall_results::stats::Estimate;
use landfall_results::{Axes, Metric};

use super::disk::{Disk, Identity, Measured, States};
use super::figure::Figure;
use super::outlier::{self, Kind, Outlier};
use super::peers;
use super::scatter::{Scatter, quantile_of};
use super::synthetic::normal;

/// How disks scatter about the median of their model, as a deviate of their logarithm whose middle half is that of a standard
/// normal one.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Normal,
    Laplace,
    /// Student's t with three degrees of freedom.
    T3,
    /// One in five disks is five standard deviations slower, and nothing that is known of it tells.
    Mixture,
}

impl Shape {
    const ALL: [Shape; 4] = [Shape::Normal, Shape::Laplace, Shape::T3, Shape::Mixture];

    fn deviate(self, random: &mut fastrand::Rng) -> f64 {
        match self {
            Shape::Normal => normal(random),
            Shape::Laplace => {
                let sign = if random.bool() { 1.0 } else { -1.0 };
                sign * -(1.0 - random.f64()).ln() * 0.6745 / 2.0_f64.ln()
            }
            Shape::T3 => {
                let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                normal(random) / (squares / 3.0).sqrt() * 0.6745 / 0.7649
            }
            Shape::Mixture => normal(random) + if random.u8(..5) == 0 { 5.0 } else { 0.0 },
        }
    }
}

/// The three figures of a write: its rate, and two percentiles.
fn figures() -> Vec<Figure> {
    let axes = Axes::from(Strategy::BASELINE);
    [Metric::OpsPerSecond, Metric::P99Us, Metric::P999Us]
        .map(|metric| Figure::new("sync", &axes.key(), &axes, metric))
        .into()
}

/// A disk of one model with these times in µs: of an operation, and at both percentiles.
fn disk(number: usize, us: [f64; 3]) -> Disk {
    let [median, p99, p999] = us;
    let values = [1e6 / median, p99, p999];
    Disk {
        identity: Identity {
            machine: format!("m{number:05}"),
            directory: "/srv".to_owned(),
            devices: "nvme0n1".to_owned(),
            model: "one model".to_owned(),
            firmware: None,
            filesystem: "ext4".to_owned(),
            kernel: "6.18".to_owned(),
        },
        label: format!("m{number:05}"),
        volatile_cache: Some(true),
        virtual_driver: None,
        documents: 1,
        flush: None,
        figures: values
            .into_iter()
            .enumerate()
            .map(|(figure, value)| Measured {
                figure,
                rounds: 5,
                estimate: Estimate {
                    median: value,
                    low: value,
                    high: value,
                },
            })
            .collect(),
        states: States::default(),
    }
}

/// Disks that scatter about 118 µs, and about a tail of three and five times that.
fn fleet(count: usize, shape: Shape, scatter: f64, random: &mut fastrand::Rng) -> Vec<Disk> {
    let disks = (0..count).map(|number| {
        let median = 118.0 * (scatter * shape.deviate(random)).exp();
        let tail = (scatter * shape.deviate(random)).exp();
        disk(number, [median, 3.0 * median * tail, 5.0 * median * tail])
    });
    disks.collect()
}

fn outliers(disks: &[Disk]) -> Vec<Outlier> {
    outlier::find(disks, &figures(), &peers::classes(disks, &[])).outliers
}

/// Makes disks of a fleet outliers: every other one slow, and of the others one slow in the tail and one fast by turns. Returns how each of
/// these differs.
fn plant(disks: &mut [Disk], count: usize, times: f64) -> Vec<(usize, Kind)> {
    let step = disks.len() / count;
    let planted = (0..count).map(|one| {
        let kind = match one % 4 {
            0 | 2 => Kind::Slow,
            1 => Kind::SlowTail,
            _ => Kind::Fast,
        };
        (one * step, kind)
    });
    let planted: Vec<(usize, Kind)> = planted.collect();
    for (index, kind) in &planted {
        let factors = match kind {
            Kind::Slow => [1.0 / times, times, times],
            Kind::SlowTail => [1.0, times, times],
            Kind::Fast => [times, 1.0 / times, 1.0 / times],
        };
        for (measured, factor) in disks[*index].figures.iter_mut().zip(factors) {
            measured.estimate.median *= factor;
        }
    }
    planted
}

/// Planted outliers that were not found, and found ones that were not planted.
fn missed_and_false(planted: &[(usize, Kind)], found: &[Outlier]) -> (usize, usize) {
    let is_found = |index: &usize| found.iter().any(|one| one.disk == *index);
    let is_planted = |one: &&Outlier| planted.iter().any(|(index, _)| *index == one.disk);
    let missed = planted.iter().filter(|(index, _)| !is_found(index)).count();
    (
        missed,
        found.len() - found.iter().filter(is_planted).count(),
    )
}

/// Fleets of 1,000 disks with 10 planted outliers: all found, and at most one other.
fn planted_are_found(
    seeds: std::ops::Range<u64>,
    times: f64,
    scatter: f64,
) -> (usize, usize, usize) {
    let (mut whole, mut missed, mut false_ones) = (0, 0, 0);
    for seed in seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disks = fleet(1_000, Shape::Normal, scatter, &mut random);
        let planted = plant(&mut disks, 10, times);
        let (not_found, others) = missed_and_false(&planted, &outliers(&disks));
        whole += usize::from(not_found == 0 && others <= 1);
        missed += not_found;
        false_ones += others;
    }
    (whole, missed, false_ones)
}

#[test]
fn ten_outliers_among_a_thousand_disks_are_found_and_at_most_one_other() {
    let (whole, missed, false_ones) = planted_are_found(0..20, 2.0, 0.05);
    assert_eq!((whole, missed), (20, 0), "{false_ones} false ones");
}

#[test]
#[ignore = "takes minutes; docs/explanation/fleet-outliers.md has what it prints"]
fn print_how_many_planted_outliers_are_found() {
    println!("times scatter fleets whole missed false");
    for (times, scatter) in [
        (2.0, 0.05),
        (2.0, 0.08),
        (2.0, 0.1),
        (1.5, 0.05),
        (1.5, 0.08),
        (3.0, 0.15),
    ] {
        let fleets = 250;
        let (whole, missed, false_ones) = planted_are_found(0..fleets, times, scatter);
        println!("{times:5} {scatter:7} {fleets:6} {whole:5} {missed:6} {false_ones:5}");
    }
}

#[test]
#[ignore = "takes minutes; docs/explanation/fleet-outliers.md has what it prints"]
fn print_how_many_are_false() {
    println!("disks shape fleets false-in-all false-a-fleet fleets-with-more-than-one");
    for count in [8, 20, 100, 1_000] {
        for shape in Shape::ALL {
            let fleets = 200_000 / count;
            let mut random = fastrand::Rng::with_seed(7);
            let found: Vec<usize> = (0..fleets)
                .map(|_| outliers(&fleet(count, shape, 0.1, &mut random)).len())
                .collect();
            let all: usize = found.iter().sum();
            let many = found.iter().filter(|one| **one > 1).count();
            println!(
                "{count:5} {:8} {fleets:6} {all:6} {:.3} {:.3}",
                format!("{shape:?}"),
                all as f64 / fleets as f64,
                many as f64 / fleets as f64
            );
        }
    }
}

/// Of the limit itself: how often a normal value exceeds it, over how often it should.
#[test]
#[ignore = "takes minutes"]
fn print_how_often_limits_are_exceeded() {
    for count in [8, 9, 10, 12, 20, 39, 40, 100, 300] {
        let probabilities = [1e-2, 1e-3, 1e-4, 1e-5];
        let mut beyond = [0_u64; 4];
        let fleets = 4_000_000 / count;
        let quantiles = probabilities.map(|one| quantile_of(count, one));
        let mut random = fastrand::Rng::with_seed(11);
        for _ in 0..fleets {
            let values: Vec<f64> = (0..count).map(|_| normal(&mut random)).collect();
            let scatter = Scatter::of(values.iter().copied());
            for (index, count) in beyond.iter_mut().enumerate() {
                let limit = scatter.limit_of(probabilities[index], quantiles[index]);
                *count += values
                    .iter()
                    .filter(|one| (**one - scatter.middle).abs() > limit)
                    .count() as u64;
            }
        }
        let shares = beyond
            .iter()
            .zip(probabilities)
            .map(|(count_beyond, probability)| {
                format!(
                    "{:.2}",
                    *count_beyond as f64 / (fleets * count) as f64 / probability
                )
            });
        println!("{count:4} {}", shares.collect::<Vec<_>>().join(" "));
    }
}
