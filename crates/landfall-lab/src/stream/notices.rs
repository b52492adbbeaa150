//! What must be known before a figure of this experiment is believed.

use super::ceiling::FAST_ENOUGH;
use super::{Ceiling, Excluded, Plan};
use crate::room::Room;
use crate::stats::median;
use crate::watch::{self, Watch};
use crate::{Notice, PlanKind, Weight};
use landfall_os::humanize::{bytes_text, size_name};
use landfall_results::{Metric, Series, left_out};

/// Seconds of CPU that may be counted in the wrong trial.
const COUNTED_LATE: f64 = 0.04;
/// MiB that the device may write for others in a trial: a superblock, a log.
const TRAFFIC_FLOOR: f64 = 8.0;
/// Share of a trial's bytes that may be foreign.
const TRAFFIC_SLACK: f64 = 0.05;
/// Hand-overs of one kind may differ in CPU by this factor, above this many seconds per GiB.
const MEMORY_SLACK: f64 = 3.0;
const LEAST_CPU: f64 = 0.1;
/// MiB of foreign dirty data that count: they take room below the dirty limits.
const DIRTY_SLACK: f64 = 64.0;

/// What is disturbed. How a state is cut into requests is the kernel's affair and varies, so only bytes are compared.
///
/// A trial may last some tens of milliseconds, and the kernel counts CPU in hundredths of a second for each
/// processor.
pub(super) const WATCH: Watch = Watch {
    counted_late: COUNTED_LATE,
    is_foreign: |series, trial| {
        let own = watch::least(series, Metric::DeviceWrittenMib);
        trial.get(Metric::DeviceWrittenMib).is_some_and(|written| {
            let extra = written - own;
            extra > TRAFFIC_FLOOR && extra > TRAFFIC_SLACK * own
        })
    },
};

/// What of the plan is not measured, and why.
pub(super) fn of_plan(
    plan: &Plan,
    sizes: &[u64],
    excluded: &[Excluded],
    room: &Room,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    let names = |sizes: &[u64]| {
        sizes
            .iter()
            .map(|s| size_name(*s))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let missing: Vec<u64> = plan
        .sizes()
        .into_iter()
        .filter(|size| !sizes.contains(size))
        .collect();
    let largest = room.largest();
    if !missing.is_empty() {
        let reason = if missing.iter().any(|size| *size > largest) {
            format!(
                "{} are free and {} of memory available",
                bytes_text(room.free),
                bytes_text(room.memory)
            )
        } else {
            "on this disk they would take too long".to_owned()
        };
        let instead = match plan.kind {
            PlanKind::Short => format!("; measured instead: {}", names(sizes)),
            _ => String::new(),
        };
        let text = format!(
            "States of {} were left out: {reason}{instead}.",
            names(&missing)
        );
        notices.push(Notice::new("sizes-left-out", Weight::Note, text));
    }
    let excluded = excluded.iter();
    notices.extend(left_out(
        excluded.map(|one| (one.strategy.key(), one.reason.as_str())),
    ));
    notices
}

/// What disturbed the trials, and what limits them besides the disk.
pub(super) fn of_results(series: &[Series], ceilings: &[Ceiling]) -> Vec<Notice> {
    let trials = || series.iter().flat_map(|one| &one.trials);
    let mut notices = watch::notices(series);
    let dirty = trials()
        .filter(|trial| trial.get(Metric::DirtyBeforeMib) > Some(DIRTY_SLACK))
        .count();
    if dirty > 0 {
        let text = format!(
            "{dirty} of {} trials began with more than {DIRTY_SLACK} MiB of dirty data of other programs, which count towards the kernel's limits as well.",
            trials().count()
        );
        notices.push(Notice::new("foreign-dirty", Weight::Note, text));
    }
    notices.extend(slow_generator(series, ceilings));
    notices.extend(slow_memory(series));
    notices
}

/// Hand-overs of one kind that take several times the CPU in some rounds: the time does not go to the
/// disk, but into having memory.
fn slow_memory(strategies: &[Series]) -> Option<Notice> {
    let spread = |series: &Series| -> Option<(f64, f64)> {
        let cpu = series.values(Metric::CpuSPerGib).into_iter();
        let (least, most) = cpu.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        (most > MEMORY_SLACK * least.max(LEAST_CPU)).then_some((least, most))
    };
    let worst = strategies
        .iter()
        .filter_map(spread)
        .max_by(|a, b| (a.1 / a.0.max(LEAST_CPU)).total_cmp(&(b.1 / b.0.max(LEAST_CPU))))?;
    let text = format!(
        "Times may be too long: memory was slow to get, and the kernel took {:.1} to {:.1} s of CPU time for each GiB.",
        worst.0, worst.1
    );
    let details = "Virtual machines whose host provides memory at first touch behave so. Look at the single rounds, not only at the medians.";
    Some(Notice::new("slow-memory", Weight::Warning, text).because(details))
}

/// Making the bytes must not be what is measured.
fn slow_generator(series: &[Series], ceilings: &[Ceiling]) -> Option<Notice> {
    let generator = ceilings
        .iter()
        .filter(|ceiling| ceiling.method.is_none())
        .map(|ceiling| ceiling.mb_per_s)
        .min_by(f64::total_cmp)?;
    let rates: Vec<f64> = series
        .iter()
        .flat_map(|one| one.values(Metric::HandOverMbPerS))
        .collect();
    let fastest = rates.iter().copied().max_by(f64::total_cmp)?;
    let typical = median(&rates)?;
    (generator < FAST_ENOUGH * fastest).then(|| {
        let text = format!(
            "Making the bytes takes part of the hand-over: they are made at {generator:.0} MB/s, and handed over at {fastest:.0} at the most, {typical:.0} typically."
        );
        Notice::new("slow-generator", Weight::Note, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fixtures::{measured, stream_results};
    use crate::stream::{Data, Strategy};
    use landfall_os::StreamMethod;

    #[test]
    fn bytes_of_others_are_seen() {
        let strategy = Strategy::usual(StreamMethod::WRITE, 128 << 20, Data::Incompressible);
        let mut series = measured(strategy, &[(900.0, 100.0); 5]);
        let figures = &mut series.trials[2].figures;
        figures.set(Metric::DeviceWrittenMib, 128.0 + 20.0);
        watch::mark(&mut series, &WATCH);
        let trials = series.trials.iter();
        let hit: Vec<bool> = trials.map(|t| !t.disturbances.is_empty()).collect();
        assert_eq!(hit, [false, false, true, false, false]);
    }

    #[test]
    fn memory_that_is_slow_to_be_had_is_said() {
        let strategy = Strategy::usual(StreamMethod::WRITE, 128 << 20, Data::Incompressible);
        let mut result = measured(strategy, &[(900.0, 100.0); 5]);
        assert!(slow_memory(std::slice::from_ref(&result)).is_none());
        result.trials[3].figures.set(Metric::CpuSPerGib, 2.0);
        let notice = slow_memory(&[result]).unwrap();
        assert!(notice.text.contains("took 0.3 to 2.0 s of CPU time"));
    }

    #[test]
    fn a_generator_that_is_too_slow_is_said() {
        let results = stream_results();
        let mut ceilings = results.ceilings.clone();
        let codes = |ceilings: &[Ceiling]| -> Vec<String> {
            let notices = of_results(&results.series, ceilings);
            notices.into_iter().map(|notice| notice.code).collect()
        };
        assert!(!codes(&ceilings).contains(&"slow-generator".to_owned()));
        ceilings[0].mb_per_s = 2_000.0;
        assert!(codes(&ceilings).contains(&"slow-generator".to_owned()));
    }
}
