//! What else went on during a trial, as far as all experiments see it alike.
//!
//! CPU of others cannot be told from our own by one look at a counter, since the kernel works for us
//! on its own threads. But our own share is the same in every round, so whatever a round has beyond
//! the quietest round of the same strategy is somebody else's.

use crate::{Notice, Weight};

/// Processors that others may take before a trial counts as disturbed.
pub(crate) const CPU_SLACK: f64 = 0.25;

pub use landfall_results::Disturbance;

/// What a trial says of its surroundings.
pub(crate) trait Disturbed {
    /// Processors that others used.
    fn foreign_cpus(&self) -> f64;
    /// Processors that a hypervisor took away.
    fn stolen_cpus(&self) -> f64;
    /// Processors that others may have beyond the quietest round.
    fn cpu_slack(&self) -> f64 {
        CPU_SLACK
    }
    /// What disturbed it.
    fn disturbances(&mut self) -> &mut Vec<Disturbance>;
}

/// Marks the disturbed trials of one strategy; `foreign_traffic` looks at the device.
pub(crate) fn mark<T: Disturbed>(trials: &mut [T], foreign_traffic: impl Fn(&T) -> bool) {
    let quiet = least(trials, |trial| Some(trial.foreign_cpus()));
    for trial in trials {
        let mut found = Vec::new();
        if trial.foreign_cpus() > quiet + trial.cpu_slack() {
            found.push(Disturbance::ForeignCpu);
        }
        if trial.stolen_cpus() > trial.cpu_slack() {
            found.push(Disturbance::StolenCpu);
        }
        if foreign_traffic(trial) {
            found.push(Disturbance::ForeignTraffic);
        }
        *trial.disturbances() = found;
    }
}

/// The least of a figure over the trials of one strategy.
pub(crate) fn least<T>(trials: &[T], figure: impl Fn(&T) -> Option<f64>) -> f64 {
    trials
        .iter()
        .filter_map(figure)
        .min_by(f64::total_cmp)
        .unwrap_or(0.0)
}

/// What the whole run has to say about disturbances: `trials` are those of each trial.
pub(crate) fn notices(trials: &[&[Disturbance]]) -> Vec<Notice> {
    let kinds = [
        (
            Disturbance::ForeignCpu,
            "foreign-cpu",
            "other programs used the CPU",
        ),
        (
            Disturbance::StolenCpu,
            "stolen-cpu",
            "the hypervisor gave this machine's CPU to others",
        ),
        (
            Disturbance::ForeignTraffic,
            "foreign-traffic",
            "the device wrote or flushed for others meanwhile",
        ),
    ];
    let notice = |(kind, code, what)| {
        let hit = trials.iter().filter(|found| found.contains(&kind)).count();
        let weight = if hit * 5 > trials.len() {
            Weight::Warning
        } else {
            Weight::Note
        };
        let text = format!("{hit} of {} trials were disturbed: {what}.", trials.len());
        (hit > 0).then(|| Notice::new(code, weight, text))
    };
    kinds.into_iter().filter_map(notice).collect()
}
