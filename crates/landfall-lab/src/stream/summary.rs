//! From single trials to figures over the rounds.

use super::{Phase, StreamDevice, Summary, Trial};
use crate::stats::{Estimate, Spread, median};

/// Figures over `trials`; `None` of none.
pub(super) fn summary(trials: &[Trial]) -> Option<Summary> {
    let over = |figure: fn(&Trial) -> Option<f64>| -> Option<Estimate> {
        Estimate::of(&trials.iter().filter_map(figure).collect::<Vec<f64>>())
    };
    let phase = |seconds: fn(&Trial) -> f64, rate: fn(&Trial) -> Option<f64>| -> Option<Phase> {
        let rates: Vec<f64> = trials.iter().filter_map(rate).collect();
        Some(Phase {
            seconds: Spread::of(&trials.iter().map(seconds).collect::<Vec<f64>>())?,
            // Where most trials left nothing to it, a rate of the others is no figure of the phase.
            mb_per_s: Spread::of(&rates).filter(|_| rates.len() * 2 > trials.len()),
        })
    };
    Some(Summary {
        hand_over: phase(|t| t.hand_over_seconds, |t| Some(t.hand_over_mb_per_s))?,
        sync: phase(|t| t.sync_seconds, |t| t.sync_mb_per_s)?,
        total: phase(
            |t| t.hand_over_seconds + t.sync_seconds,
            |t| Some(t.total_mb_per_s),
        )?,
        longest_stall_ms: over(|t| Some(t.longest_stall_ms))?,
        left_mib: over(|t| Some(t.left_mib))?,
        peak_resident_mib: over(|t| t.peak_resident_mib),
        cpu_s_per_gib: over(|t| Some(t.cpu_s_per_gib))?,
        device: device(trials),
    })
}

fn device(trials: &[Trial]) -> Option<StreamDevice> {
    let devices: Vec<StreamDevice> = trials.iter().filter_map(|trial| trial.device).collect();
    let middle =
        |figure: fn(&StreamDevice) -> f64| median(&devices.iter().map(figure).collect::<Vec<_>>());
    Some(StreamDevice {
        written_mib: middle(|d| d.written_mib)?,
        write_requests: middle(|d| d.write_requests)?,
        flushes: middle(|d| d.flushes)?,
        read_mib: middle(|d| d.read_mib)?,
    })
}
