//! Reports of hostile, empty and large documents.

use std::path::PathBuf;

use landfall_os::{Filesystem, Host, Medium, Space};

use super::render;
use crate::claim::{Band, ClaimResult, Verdict};
use crate::stats::Estimate;
use crate::sync::{
    DeviceCost, Latency, Operations, Plan, Preparation, StrategyResult, Summary, SyncResults, Trial,
};
use crate::{Experiment, Notice, Results, SCHEMA_NAME, Weight};

const HOSTILE: &str = "</script><script>alert('&')</script><!--";
const COST: DeviceCost = DeviceCost {
    writes: Some(1.0),
    write_requests: 2.0,
    kib: 8.0,
    flushes: 1.0,
    reads: 0.0,
};

fn estimate(median: f64) -> Estimate {
    Estimate {
        median,
        low: median * 0.9,
        high: median * 1.1,
    }
}

fn results(strategies: Vec<StrategyResult>) -> Results {
    Results {
        schema: SCHEMA_NAME.to_owned(),
        version: "0.0.0".to_owned(),
        command: "landfall lab".to_owned(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        seconds: 12.0,
        host: Host {
            kernel: "6.18".to_owned(),
            architecture: "x86_64".to_owned(),
            cpu: None,
            cpus: 4,
            memory_bytes: 8 << 30,
            hypervisor: None,
        },
        directory: "/data".to_owned(),
        filesystem: Filesystem {
            kind: "ext4".to_owned(),
            mount_point: PathBuf::from("/"),
            source: "/dev/sda".to_owned(),
            options: vec!["rw".to_owned()],
            medium: Medium::Device,
            copy_on_write: false,
            compression: None,
            direct_io: None,
            atomic_write_bytes: 0,
            space: Space {
                total_bytes: 1 << 40,
                available_bytes: 1 << 39,
            },
            upper: None,
            devices: Vec::new(),
        },
        notices: Vec::new(),
        experiments: vec![Experiment::Sync(SyncResults {
            plan: crate::sync::PlanKind::Standard,
            rounds: 10,
            seconds_per_trial: 0.25,
            operations: Operations::ByTime,
            settle_seconds: None,
            pilot: None,
            preparation: Preparation::default(),
            strategies,
            claims: Vec::new(),
        })],
    }
}

/// The standard plan, of which `measured` says what was measured.
fn strategies(measured: impl Fn(&StrategyResult) -> bool) -> Vec<StrategyResult> {
    let strategies = Plan::standard().strategies;
    let count = strategies.len() as f64;
    strategies
        .iter()
        .enumerate()
        .map(|(index, strategy)| {
            let mut result = StrategyResult {
                key: strategy.key(),
                allocation: strategy.allocation.to_string(),
                method: strategy.method.to_string(),
                durable: strategy.method.is_durable(),
                size: strategy.size,
                threads: strategy.threads,
                files: strategy.files,
                placement: strategy.placement,
                cache: strategy.cache,
                unsupported: Some("not supported here".to_owned()),
                summary: None,
                trials: Vec::new(),
            };
            if measured(&result) {
                let rate = 1000.0 + 1000.0 * index as f64 / count;
                result.unsupported = None;
                result.summary = Some(summary(rate));
                result.trials = (1..=10).map(|round| trial(round, rate)).collect();
            }
            result
        })
        .collect()
}

fn summary(rate: f64) -> Summary {
    let percentiles = [0.0, 5.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0];
    Summary {
        ops_per_second: estimate(rate),
        first_us: estimate(2e6 / rate),
        p50_us: estimate(1e6 / rate),
        p99_us: estimate(3e6 / rate),
        cpu_us: estimate(20.0),
        device: Some(COST),
        drift: Some(estimate(1.0)),
        distribution: percentiles
            .map(|percentile| (percentile, 1e6 / rate + percentile))
            .to_vec(),
    }
}

fn trial(round: u32, rate: f64) -> Trial {
    Trial {
        round,
        operations: 100,
        seconds: 100.0 / rate,
        ops_per_second: rate,
        first_us: 2e6 / rate,
        latency: Some(Latency {
            p50: 1.0,
            p90: 2.0,
            p99: 3.0,
            p999: 4.0,
            max: 5.0,
        }),
        cpu_us: 20.0,
        device: Some(COST),
        extension_seconds: 0.0,
        drift: Some(1.0),
        cut: false,
        preparation: Preparation::default(),
        foreign_cpus: 0.0,
        stolen_cpus: 0.0,
        disturbances: Vec::new(),
    }
}

fn page(results: &Results) -> String {
    render(results).expect("a report")
}

/// What comes before the scripts.
fn body(html: &str) -> &str {
    html.split("<script").next().unwrap_or_default()
}

#[test]
fn a_standard_run_has_every_chart_and_is_small() {
    let html = page(&results(strategies(|_| true)));
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert_eq!(body(&html).matches("data-expected=").count(), 10);
    assert_eq!(body(&html).matches("<summary>Data</summary>").count(), 10);
    assert!(!body(&html).contains("data-expected=\"0\""));
}

#[test]
fn what_the_machine_calls_itself_is_only_text() {
    let mut hostile = results(strategies(|_| true));
    hostile.directory = HOSTILE.to_owned();
    hostile.command = HOSTILE.to_owned();
    hostile.started = HOSTILE.to_owned();
    hostile.host.kernel = HOSTILE.to_owned();
    hostile.filesystem.kind = HOSTILE.to_owned();
    hostile.notices = vec![Notice::new("x", Weight::Danger, HOSTILE)];
    let Experiment::Sync(sync) = &mut hostile.experiments[0];
    sync.strategies[0].allocation = HOSTILE.to_owned();
    sync.strategies[1].unsupported = Some(HOSTILE.to_owned());
    sync.claims = vec![ClaimResult {
        id: "x".to_owned(),
        statement: HOSTILE.to_owned(),
        quantity: HOSTILE.to_owned(),
        published: None,
        source: format!("{HOSTILE} javascript:alert(1) https://example.org/\"><b>"),
        band: Band::at_least(1.0),
        today: None,
        verdict: Verdict::CannotBeTold,
        why: HOSTILE.to_owned(),
    }];
    let plain = page(&results(strategies(|_| true)));
    let html = page(&hostile);
    for sign in ["<script", "</script", "<b>", "<!--"] {
        let (here, there) = (html.matches(sign).count(), plain.matches(sign).count());
        assert_eq!(here, there, "{sign}");
    }
    assert!(!html.contains("href=\"javascript"));
}

#[test]
fn the_libraries_cannot_end_the_element_that_they_stand_in() {
    for library in [
        include_str!("vendor/d3.min.js"),
        include_str!("vendor/plot.umd.min.js"),
        include_str!("../../templates/report.js"),
    ] {
        assert!(!library.contains("</script") && !library.contains("<!--"));
    }
    assert!(!super::page::STYLE.contains("</style"));
}

#[test]
fn only_durable_writes_are_called_cheap() {
    let html = page(&results(strategies(|strategy| {
        strategy.method == "none" || strategy.key == "overwrite/fdatasync/8K"
    })));
    assert!(html.contains("The cheapest durable write of 8 KiB here:"));
    assert!(html.contains("by overwrite with fdatasync; nothing else of its kind was measured"));
    let html = page(&results(strategies(|strategy| !strategy.durable)));
    assert!(html.contains("No durable write was measured"));
    assert!(html.contains("Appending and overwriting were not both measured"));
}

#[test]
fn in_memory_nothing_is_called_durable() {
    let mut memory = results(strategies(|_| true));
    memory.filesystem.medium = Medium::Memory;
    let Experiment::Sync(sync) = &mut memory.experiments[0];
    for strategy in &mut sync.strategies {
        if let Some(summary) = &mut strategy.summary {
            summary.device = None;
        }
    }
    let html = page(&memory);
    assert!(html.contains("where nothing is durable"));
    assert!(html.contains("Writes per second, none of them durable"));
    assert!(!html.contains("\"durable\":true"));
    assert!(!html.contains("The cheapest durable write"));
    assert!(html.contains("writes and flushes could not be counted"));
    assert!(!body(&html).contains("id=\"cost-"));
}

#[test]
fn a_document_without_measurements_says_so() {
    let mut empty = results(Vec::new());
    assert!(page(&empty).contains("Nothing was measured"));
    empty.experiments.clear();
    assert!(page(&empty).contains("Nothing was measured"));
    let html = page(&results(strategies(|_| false)));
    assert!(html.contains("Nothing was measured"));
    assert!(html.contains("Not measured here"));
    assert!(!body(&html).contains("data-expected="));
}

#[test]
fn one_round_claims_no_interval() {
    let mut single = results(strategies(|_| true));
    let Experiment::Sync(sync) = &mut single.experiments[0];
    for strategy in &mut sync.strategies {
        strategy.trials.truncate(1);
    }
    let html = page(&single);
    assert!(html.contains("one round cannot say how far chance moved it"));
    assert!(html.contains("times as fast (one round)"));
    assert!(html.contains("A dot is a single measurement."));
}

#[test]
fn writes_that_cannot_be_told_from_flushes_are_bounded() {
    let mut bounded = results(strategies(|_| true));
    let Experiment::Sync(sync) = &mut bounded.experiments[0];
    for strategy in &mut sync.strategies {
        if let Some(device) = strategy.summary.as_mut().and_then(|s| s.device.as_mut()) {
            device.writes = None;
        }
    }
    let html = page(&bounded);
    assert!(html.contains("≤ 2.00"));
    assert!(html.contains("Overwriting costs at most 2 writes and 1 flush"));
}
