//! What was timed and counted, as figures of a trial.

use std::time::Duration;

use landfall_os::DeviceCounters;
use landfall_results::metric::Figures;
use landfall_results::{Metric, Trial};

use super::dump::Dumped;
use super::updates::Logged;
use crate::readings::Readings;

/// How long a trial took, and what was counted in it.
pub(super) struct Measured {
    pub round: u32,
    /// Until it was over.
    pub timed: Readings,
    /// Until what it had left was written as well.
    pub settled: Readings,
}

impl Measured {
    fn figures(&self, seconds: f64) -> Figures {
        let (foreign_cpus, stolen_cpus) = self.timed.foreign(seconds);
        Figures::default()
            .with(Metric::Seconds, seconds)
            .with(Metric::ForeignCpus, foreign_cpus)
            .with(Metric::StolenCpus, stolen_cpus)
    }

    /// Of all that a device did for a state that was written as a whole.
    fn whole(&self, seconds: f64, state_bytes: u64) -> Figures {
        let device = self.settled.device.as_ref();
        let written = device.map(|device| device.write_bytes as f64 / f64::from(1 << 20));
        self.figures(seconds)
            .with(Metric::TotalMbPerS, state_bytes as f64 / 1e6 / seconds)
            .with(Metric::DeviceWrittenMib, written)
            .with(
                Metric::DeviceFlushes,
                device.map(|device| device.flushes as f64),
            )
    }

    fn trial(&self, figures: Figures) -> Trial {
        Trial {
            round: self.round,
            figures,
            ..Trial::default()
        }
    }

    /// A dump, for whose hand-over the program stood still.
    pub fn dump(&self, dumped: &Dumped, state_bytes: u64, restart: Duration) -> Trial {
        let hand_over = dumped.hand_over.as_secs_f64();
        let figures = self
            .whole(dumped.total.as_secs_f64(), state_bytes)
            .with(Metric::HandOverSeconds, hand_over)
            .with(
                Metric::HandOverMbPerS,
                state_bytes as f64 / 1e6 / hand_over.max(1e-9),
            )
            .with(Metric::LongestStallMs, hand_over * 1e3)
            .with(Metric::RestartSeconds, restart.as_secs_f64());
        self.trial(figures)
    }

    /// Updates that were logged for a time; the program wrote so many bytes for them.
    pub fn log(&self, logged: &Logged, program_bytes: u64, restart: Duration) -> Trial {
        let updates = logged.updates as f64;
        // Of requests and flushes, what the policy asked for; of bytes, also what it left to be written later.
        let timed = |count: fn(&DeviceCounters) -> Option<u64>| {
            let count = self.timed.device.as_ref().and_then(count)?;
            Some(count as f64 / updates)
        };
        let settled = self.settled.device.as_ref();
        let kib = settled.map(|device| device.write_bytes as f64 / 1024.0 / updates);
        let figures = with_updates(self.figures(logged.elapsed.as_secs_f64()), logged)
            .with(Metric::ProgramKib, program_bytes as f64 / 1024.0 / updates)
            .with(Metric::Kib, kib)
            .with(Metric::Writes, timed(|device| device.data_writes))
            .with(
                Metric::WriteRequests,
                timed(|device| Some(device.write_requests)),
            )
            .with(Metric::Flushes, timed(|device| Some(device.flushes)))
            .with(Metric::RestartSeconds, restart.as_secs_f64());
        self.trial(figures)
    }

    /// A snapshot, while updates went on.
    pub fn snapshot(
        &self,
        snapshot: &landfall::Snapshot,
        logged: &Logged,
        state_bytes: u64,
        restart: Duration,
    ) -> Trial {
        let whole = self.whole(snapshot.took.as_secs_f64(), state_bytes);
        let capture = snapshot.longest_capture.as_secs_f64() * 1e3;
        let figures = with_updates(whole, logged)
            .with(Metric::LongestCaptureMs, capture)
            .with(Metric::RestartSeconds, restart.as_secs_f64());
        self.trial(figures)
    }
}

/// So many records of a log were read back and applied.
pub(super) fn of_replay(round: u32, records: u64, took: Duration) -> Trial {
    Trial {
        round,
        figures: Figures::default()
            .with(Metric::Operations, records as f64)
            .with(Metric::RestartSeconds, took.as_secs_f64()),
        ..Trial::default()
    }
}

fn with_updates(figures: Figures, logged: &Logged) -> Figures {
    let updates = logged.updates as f64;
    let milliseconds = |duration: Duration| duration.as_secs_f64() * 1e3;
    // The histogram rounds up.
    let p99 = Duration::from_nanos(logged.stalls.value_at_quantile(0.99));
    figures
        .with(Metric::Operations, updates)
        .with(
            Metric::OpsPerSecond,
            updates / logged.elapsed.as_secs_f64().max(1e-9),
        )
        .with(Metric::LongestStallMs, milliseconds(logged.longest_stall))
        .with(
            Metric::P99StallMs,
            milliseconds(p99.min(logged.longest_stall)),
        )
        .with(
            Metric::UsPerUpdate,
            logged.in_calls.as_secs_f64() * 1e6 / updates,
        )
}
