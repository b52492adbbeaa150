//! What must be known before a figure of this experiment is believed.

use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Saving, Series, Trial, Way};

use super::{DumpVsLogResults, Plan};
use crate::numbers::{short, thousands};
use crate::room::Room;
use crate::watch::{self, Watch};
use crate::{Notice, Weight};

/// A dump for which the device wrote more than this many times what it wrote in the quietest round was not
/// alone with it; nor was a log, whose bytes per update differ more between rounds, as groups do. What is written while
/// a snapshot is taken depends on how long that takes.
const FOREIGN_DUMP: f64 = 1.05;
const FOREIGN_LOG: f64 = 1.5;

/// What is disturbed. A log that writes 256 bytes a thousandth of a second is drowned by any other program that writes
/// at all.
pub(super) const WATCH: Watch = Watch {
    counted_late: 0.04,
    is_foreign: |series, trial| match series.axes.saving.map(Saving::way) {
        Some(Way::Dump) => exceeds(series, trial, Metric::DeviceWrittenMib, FOREIGN_DUMP),
        Some(Way::Log(_) | Way::File(_)) => exceeds(series, trial, Metric::Kib, FOREIGN_LOG),
        _ => false,
    },
};

/// Whether a trial has more than so many times the least of a figure.
fn exceeds(series: &Series, trial: &Trial, metric: Metric, times: f64) -> bool {
    let least = watch::least(series, metric);
    trial.get(metric).is_some_and(|value| value > least * times)
}

/// What was seen in the rounds.
pub(super) fn of_results(found: &DumpVsLogResults) -> Vec<Notice> {
    let logs = found.measured(&Saving::LOGS);
    let mut notices: Vec<Notice> = logs
        .filter_map(|(saving, log)| cannot_keep_up(found, saving, log))
        .collect();
    notices.extend(warm(found.cold));
    notices.extend(watch::notices(&found.series));
    notices.extend(watch::busy_machine(found.series.iter()));
    notices
}

fn cannot_keep_up(found: &DumpVsLogResults, saving: Saving, log: &Series) -> Option<Notice> {
    let text = format!(
        "{} cannot keep up: it accepted {} of {} updates per second, and its stalls grow for as long as it runs.",
        saving.name(),
        rate(log.median(Metric::OpsPerSecond)?),
        rate(found.updates_per_second),
    );
    (!found.keeps_up(log)).then(|| Notice::new("log-cannot-keep-up", Weight::Note, text))
}

fn warm(cold: bool) -> Option<Notice> {
    let text = "Restarts were read from memory, because their files could not be evicted from the page cache: after a power cut they take longer than is said here.";
    (!cold).then(|| Notice::new("warm-restart", Weight::Warning, text))
}

fn rate(per_second: f64) -> String {
    if per_second >= 1e3 {
        thousands(per_second)
    } else {
        short(per_second)
    }
}

/// Says so if the state is smaller than the plan has it.
pub(super) fn of_smaller_state(planned: &Plan, measured: &Plan, room: &Room) -> Option<Notice> {
    let text = format!(
        "Dump against log was measured with a state of {} instead of {}: {} are free and {} of memory available.",
        bytes_text(measured.state_bytes),
        bytes_text(planned.state_bytes),
        bytes_text(room.free),
        bytes_text(room.memory)
    );
    (measured.state_bytes < planned.state_bytes)
        .then(|| Notice::new("smaller-state", Weight::Note, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump_vs_log::fixtures::dump_vs_log_results;

    #[test]
    fn what_must_be_known_is_said() {
        let mut found = dump_vs_log_results();
        assert_eq!(of_results(&found), []);
        let log = found.series.iter_mut();
        for log in log.filter(|one| one.axes.saving == Some(Saving::LogGroup)) {
            for trial in &mut log.trials {
                trial.figures.set(Metric::Operations, 400.0);
                trial.figures.set(Metric::OpsPerSecond, 200.0);
            }
            log.summarize();
        }
        found.cold = false;
        let notices = of_results(&found);
        assert_eq!(notices[0].code, "log-cannot-keep-up");
        let text = &notices[0].text;
        assert!(text.contains("log/group cannot keep up"), "{text}");
        assert!(text.contains("200 of 1,000 updates"), "{text}");
        assert_eq!(
            (notices[1].code.as_str(), notices[1].weight),
            ("warm-restart", Weight::Warning)
        );
    }

    #[test]
    fn a_device_that_wrote_for_others_is_noticed() {
        let found = dump_vs_log_results();
        let is_foreign = |saving, metric, times| {
            let mut series = found.find(saving).unwrap().clone();
            let least = watch::least(&series, metric);
            series.trials[1].figures.set(metric, least * times);
            (WATCH.is_foreign)(&series, &series.trials[1])
        };
        assert!(is_foreign(Saving::Dump, Metric::DeviceWrittenMib, 1.06));
        assert!(!is_foreign(Saving::Dump, Metric::DeviceWrittenMib, 1.04));
        assert!(is_foreign(Saving::LogGroup, Metric::Kib, 1.6));
        assert!(!is_foreign(Saving::LogGroup, Metric::Kib, 1.4));
    }

    #[test]
    fn a_smaller_state_is_said() {
        let room = Room {
            free: 1 << 30,
            memory: 2 << 30,
            in_memory: false,
        };
        let plan = Plan::standard();
        let mut measured = plan.clone();
        assert_eq!(of_smaller_state(&plan, &measured, &room), None);
        measured.state_bytes /= 2;
        let notice = of_smaller_state(&plan, &measured, &room).unwrap();
        assert!(
            notice
                .text
                .contains("256 MiB instead of 512 MiB: 1.0 GiB are free"),
            "{}",
            notice.text
        );
    }
}
