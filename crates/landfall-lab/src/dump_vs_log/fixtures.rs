//! Made-up results for tests.

use landfall_results::metric::Figures;
use landfall_results::{Axes, Metric, Saving, Series, Trial, Way};

use super::{DumpVsLogResults, Plan, break_even};

const ROUNDS: u32 = 5;

/// A state of 128 MiB, kept in every way.
pub(crate) fn dump_vs_log_results() -> DumpVsLogResults {
    let plan = Plan {
        state_bytes: 128 << 20,
        log_seconds: 2.0,
        ..Plan::standard()
    };
    let series: Vec<Series> = Saving::ALL.map(series).into();
    DumpVsLogResults {
        plan: plan.kind,
        state_bytes: plan.state_bytes,
        record_bytes: plan.record_bytes,
        updates_per_second: plan.updates_per_second,
        log_seconds: plan.log_seconds,
        rounds: ROUNDS,
        cold: true,
        break_even: break_even::all(&plan, &series),
        series,
        claims: Vec::new(),
    }
}

fn series(saving: Saving) -> Series {
    let mut series = Series::new(Axes {
        saving: Some(saving),
        size: Some(128 << 20),
        ..Axes::default()
    });
    // Ten percent to either side of the middle.
    for (round, share) in (1..=ROUNDS).zip([0.9, 0.95, 1.0, 1.05, 1.1]) {
        series.trials.push(Trial {
            round,
            figures: figures(saving, share),
            ..Trial::default()
        });
    }
    series.summarize();
    series
}

fn figures(saving: Saving, share: f64) -> Figures {
    let us = match saving {
        Saving::LogNever => 1.0,
        Saving::LogEverySecond | Saving::SnapshotEverySecond => 2.0,
        Saving::LogGroup => 60.0,
        Saving::FileEveryUpdate => 300.0,
        _ => 150.0,
    } * share;
    let figures = Figures::default().with(Metric::RestartSeconds, 0.2 * share);
    let whole = |figures: Figures, seconds: f64| {
        figures
            .with(Metric::Seconds, seconds)
            .with(Metric::TotalMbPerS, 134.2 / seconds)
            .with(Metric::DeviceWrittenMib, 128.0)
            .with(Metric::DeviceFlushes, 3.0)
    };
    let updates = |figures: Figures| {
        figures
            .with(Metric::Operations, 2_000.0)
            .with(Metric::OpsPerSecond, 1_000.0)
            .with(Metric::LongestStallMs, us / 10.0)
            .with(Metric::P99StallMs, us / 50.0)
            .with(Metric::UsPerUpdate, us)
    };
    match saving.way() {
        Way::Dump => whole(figures, 0.4 * share)
            .with(Metric::HandOverSeconds, 0.1 * share)
            .with(Metric::HandOverMbPerS, 1_342.0 / share)
            .with(Metric::LongestStallMs, 100.0 * share),
        Way::Replay => figures.with(Metric::Operations, 100_000.0),
        Way::Log(_) | Way::File(_) => {
            let is_durable = us > 50.0;
            updates(figures)
                .with(Metric::Seconds, 2.0)
                .with(Metric::ProgramKib, 0.5)
                .with(Metric::Kib, if is_durable { 8.0 } else { 0.28 })
                .with(Metric::Flushes, if is_durable { 1.0 } else { 0.0 })
        }
        Way::Snapshot(_) => {
            whole(updates(figures), 0.5 * share).with(Metric::LongestCaptureMs, 0.3 * share)
        }
    }
}
