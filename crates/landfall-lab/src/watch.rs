//! What else went on during the trials, as far as all experiments see it alike.
//!
//! CPU of others cannot be told from our own by one look at a counter, since the kernel works for us
//! on its own threads. But our own share is the same in every round, so whatever a round has beyond
//! the quietest round of the same series is somebody else's.

use landfall_results::{Disturbance, Metric, Series, Trial};

use crate::stats::median;
use crate::{Notice, Weight};

/// Processors that others may take before a trial counts as disturbed.
const CPU_SLACK: f64 = 0.25;
/// Share of the bytes that may be foreign: when a database writes its pages is partly chance.
const TRAFFIC_SLACK: f64 = 0.25;
/// KiB per second that any disk may write for others: a log line, a timestamp.
const TRAFFIC_FLOOR: f64 = 256.0;

/// What an experiment counts as a disturbance.
pub(crate) struct Watch {
    /// Seconds of CPU that may be counted in the wrong trial.
    pub counted_late: f64,
    /// Whether the device wrote or flushed more than this trial of the series can have caused.
    pub is_foreign: fn(&Series, &Trial) -> bool,
}

/// Marks the disturbed trials of a series.
pub(crate) fn mark(series: &mut Series, watch: &Watch) {
    let quiet = least(series, Metric::ForeignCpus);
    let disturbances = series.trials.iter().map(|trial| {
        let figure = |metric| trial.get(metric).unwrap_or(0.0);
        let late = trial.get(Metric::Seconds).filter(|seconds| *seconds > 0.0);
        let slack = CPU_SLACK + late.map_or(0.0, |seconds| watch.counted_late / seconds);
        let kinds = [
            (
                Disturbance::ForeignCpu,
                figure(Metric::ForeignCpus) > quiet + slack,
            ),
            (Disturbance::StolenCpu, figure(Metric::StolenCpus) > slack),
            (
                Disturbance::ForeignTraffic,
                (watch.is_foreign)(series, trial),
            ),
        ];
        let found = kinds.into_iter().filter(|(_, is_so)| *is_so);
        found.map(|(kind, _)| kind).collect()
    });
    let disturbances: Vec<Vec<Disturbance>> = disturbances.collect();
    for (trial, found) in series.trials.iter_mut().zip(disturbances) {
        trial.disturbances = found;
    }
}

/// Whether the device wrote more than the trial can have caused: what is known to be of others (`foreign`, in KiB per
/// operation), or else what it has beyond the quietest round of the series; `rate` are the operations in a second.
pub(crate) fn wrote_for_others(
    series: &Series,
    trial: &Trial,
    foreign: Option<f64>,
    rate: Metric,
) -> bool {
    let (Some(kib), Some(rate)) = (trial.get(Metric::Kib), trial.get(rate)) else {
        return false;
    };
    let foreign = foreign.unwrap_or_else(|| kib - least(series, Metric::Kib));
    foreign > TRAFFIC_SLACK * kib && foreign * rate > TRAFFIC_FLOOR
}

/// The least of a figure over the trials of a series.
pub(crate) fn least(series: &Series, metric: Metric) -> f64 {
    let values = series.values(metric).into_iter();
    values.min_by(f64::total_cmp).unwrap_or(0.0)
}

/// What the whole run has to say about disturbances.
pub(crate) fn notices(series: &[Series]) -> Vec<Notice> {
    let trials = || series.iter().flat_map(|one| &one.trials);
    let all = trials().count();
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
        let hit = trials().filter(|trial| trial.disturbances.contains(&kind));
        let hit = hit.count();
        let is_many = hit * 5 > all;
        let weight = if is_many {
            Weight::Warning
        } else {
            Weight::Note
        };
        let text = format!("{hit} of {all} trials were disturbed, and count: {what}.");
        (hit > 0).then(|| Notice::new(code, weight, text))
    };
    kinds.into_iter().filter_map(notice).collect()
}

/// Says so if others took processors all the time, during the trials of these series.
pub(crate) fn busy_machine<'a>(series: impl Iterator<Item = &'a Series>) -> Option<Notice> {
    let foreign: Vec<f64> = series
        .flat_map(|one| one.values(Metric::ForeignCpus))
        .collect();
    let constant = median(&foreign).filter(|cpus| *cpus > 2.0 * CPU_SLACK)?;
    let text = format!(
        "The machine was busy: {constant:.1} processors worked for something else in a typical trial."
    );
    let details =
        "Other programs or the kernel's own threads; figures would be better on an idle machine.";
    Some(Notice::new("busy-machine", Weight::Warning, text).because(details))
}
