//! From single trials to figures over the rounds, and what must be said about them.

use super::{
    DumpResult, DumpTrial, DumpVsLogResults, LogResult, LogTrial, Plan, Policy, Replay, break_even,
};
use crate::numbers::{short, thousands};
use crate::stats::{Estimate, median};
use crate::{Notice, Weight};

/// A log that accepts less than this share of the updates that come in does not keep up.
const KEEPS_UP: f64 = 0.95;

/// A dump for which the device wrote more than this many times what it wrote in the quietest round was not
/// alone with it; nor was a log, whose bytes per update differ more between rounds, as groups do.
const FOREIGN_DUMP: f64 = 1.05;
const FOREIGN_LOG: f64 = 1.5;

/// Everything that was measured.
pub(super) struct Measured {
    pub dumps: Vec<DumpTrial>,
    /// Seconds of each round.
    pub replays: Vec<f64>,
    pub logs: Vec<(Policy, Vec<LogTrial>)>,
    /// Whether every file was gone from the page cache before it was read back.
    pub cold: bool,
}

/// The results, and what must be known about them; `None` if not one round was measured.
pub(super) fn results(plan: &Plan, measured: Measured) -> Option<(DumpVsLogResults, Vec<Notice>)> {
    let logs = measured
        .logs
        .into_iter()
        .map(|(policy, trials)| log_result(plan, policy, trials))
        .collect::<Option<Vec<LogResult>>>()?;
    let notices = logs
        .iter()
        .filter_map(|log| cannot_keep_up(plan, log))
        .chain(warm(measured.cold))
        .chain(foreign_traffic(&measured.dumps, &logs))
        .collect();
    let results = DumpVsLogResults {
        plan: plan.kind,
        state_bytes: plan.saved_bytes(),
        record_bytes: plan.record_bytes,
        updates_per_second: plan.updates_per_second,
        log_seconds: plan.log_seconds,
        rounds: plan.rounds,
        cold: measured.cold,
        break_even: break_even::all(plan, &measured.dumps, &logs),
        dump: dump_result(measured.dumps)?,
        logs,
        replay: Replay {
            records: plan.records(),
            seconds: Estimate::of(&measured.replays)?,
        },
        claims: Vec::new(),
    };
    Some((results, notices))
}

fn dump_result(trials: Vec<DumpTrial>) -> Option<DumpResult> {
    Some(DumpResult {
        hand_over_seconds: estimate(&trials, |trial| trial.hand_over_seconds)?,
        seconds: estimate(&trials, |trial| trial.seconds)?,
        longest_call_ms: estimate(&trials, |trial| trial.longest_call_ms)?,
        device_kib: middle(&trials, |trial| trial.device_kib),
        flushes: middle(&trials, |trial| trial.flushes),
        restart_seconds: estimate(&trials, |trial| trial.restart_seconds)?,
        trials,
    })
}

/// The figures of one policy; `None` of no trials.
pub(super) fn log_result(plan: &Plan, policy: Policy, trials: Vec<LogTrial>) -> Option<LogResult> {
    let each = |trial: &LogTrial, whole: f64| whole / trial.updates.max(1) as f64;
    let due = plan.pace().updates as f64;
    let slow = trials
        .iter()
        .filter(|trial| (trial.updates as f64) < KEEPS_UP * due)
        .count();
    Some(LogResult {
        policy,
        accepted_per_second: estimate(&trials, |trial| trial.updates as f64 / trial.seconds)?,
        kept_up: slow * 2 < trials.len(),
        longest_stall_ms: estimate(&trials, |trial| trial.longest_stall_ms)?,
        p99_stall_ms: estimate(&trials, |trial| trial.p99_stall_ms)?,
        us_per_update: estimate(&trials, |trial| trial.us_per_update)?,
        bytes_per_update: middle(&trials, |trial| Some(each(trial, trial.bytes as f64)))?,
        device_bytes_per_update: middle(&trials, |trial| {
            Some(each(trial, trial.device_kib? * 1024.0))
        }),
        flushes_per_update: middle(&trials, |trial| Some(each(trial, trial.flushes?))),
        restart_seconds: estimate(&trials, |trial| trial.restart_seconds)?,
        trials,
    })
}

fn estimate<T>(trials: &[T], figure: impl Fn(&T) -> f64) -> Option<Estimate> {
    Estimate::of(&trials.iter().map(figure).collect::<Vec<f64>>())
}

fn middle<T>(trials: &[T], figure: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    median(&trials.iter().filter_map(figure).collect::<Vec<f64>>())
}

fn cannot_keep_up(plan: &Plan, log: &LogResult) -> Option<Notice> {
    let text = format!(
        "A log synced by the policy {} cannot keep up: it accepted {} of {} updates per second, and its stalls grow for as long as it runs.",
        log.policy.name(),
        rate(log.accepted_per_second.median),
        rate(plan.updates_per_second),
    );
    (!log.kept_up).then(|| Notice::new("log-cannot-keep-up", Weight::Note, text))
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

/// Says so if the device wrote for others, which makes a log look as if it wrote more: a log that writes
/// 256 bytes a thousandth of a second is drowned by any other program that writes at all.
fn foreign_traffic(dumps: &[DumpTrial], logs: &[LogResult]) -> Option<Notice> {
    let mut disturbed = above_quietest(dumps, FOREIGN_DUMP, |dump| dump.device_kib);
    let mut trials = dumps.len();
    for log in logs {
        let each = |trial: &LogTrial| Some(trial.device_kib? / trial.updates.max(1) as f64);
        disturbed += above_quietest(&log.trials, FOREIGN_LOG, each);
        trials += log.trials.len();
    }
    let weight = if disturbed * 5 > trials {
        Weight::Warning
    } else {
        Weight::Note
    };
    let text = format!(
        "During {disturbed} of {trials} dumps and logs the device wrote for others meanwhile: logs look dearer by bytes, and their break-even by bytes lower, than they are."
    );
    (disturbed > 0).then(|| Notice::new("foreign-traffic", weight, text))
}

/// How many of `trials` have more than `times` the least value of a figure.
fn above_quietest<T>(trials: &[T], times: f64, figure: impl Fn(&T) -> Option<f64>) -> usize {
    let values = || trials.iter().filter_map(&figure);
    let quietest = values().min_by(f64::total_cmp).unwrap_or(0.0);
    values().filter(|value| *value > quietest * times).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(round: u32, updates: u64) -> LogTrial {
        LogTrial {
            round,
            updates,
            seconds: 1.5,
            longest_stall_ms: 1.0,
            p99_stall_ms: 1.0,
            us_per_update: 1.0,
            syncs: 0,
            bytes: updates * 256,
            device_kib: Some(updates as f64),
            flushes: None,
            restart_seconds: 1.0,
        }
    }

    fn log(updates: &[u64]) -> LogResult {
        let trials = (1..)
            .zip(updates)
            .map(|(round, n)| trial(round, *n))
            .collect();
        log_result(&Plan::short(), Policy::EveryUpdate, trials).unwrap()
    }

    #[test]
    fn a_log_keeps_up_if_it_does_in_most_rounds() {
        // 1,500 come in.
        assert!(log(&[1_500, 1_425, 300]).kept_up);
        assert!(!log(&[1_500, 1_424, 300]).kept_up);
        assert!(!log(&[1_500, 300]).kept_up);
    }

    #[test]
    fn figures_are_per_update() {
        let log = log(&[1_500, 300]);
        assert_eq!(log.bytes_per_update, 256.0);
        assert_eq!(log.device_bytes_per_update, Some(1024.0));
        assert_eq!(log.flushes_per_update, None);
        assert_eq!(log.accepted_per_second.high, 1_000.0);
    }

    #[test]
    fn what_must_be_known_is_said() {
        let notice = cannot_keep_up(&Plan::short(), &log(&[300])).unwrap();
        assert_eq!(notice.code, "log-cannot-keep-up");
        assert!(
            notice.text.contains("200 of 1,000 updates"),
            "{}",
            notice.text
        );
        assert_eq!(cannot_keep_up(&Plan::short(), &log(&[1_500])), None);
        assert_eq!(warm(true), None);
        assert_eq!(warm(false).unwrap().weight, Weight::Warning);
    }

    #[test]
    fn a_device_that_wrote_for_others_is_noticed() {
        let mut busy = log(&[1_500, 1_500, 1_500]);
        assert_eq!(foreign_traffic(&[], std::slice::from_ref(&busy)), None);
        busy.trials[1].device_kib = Some(1e6);
        let notice = foreign_traffic(&[], std::slice::from_ref(&busy)).unwrap();
        assert!(
            notice.text.contains("1 of 3 dumps and logs"),
            "{}",
            notice.text
        );
        assert_eq!(notice.weight, Weight::Warning);
        busy.trials
            .iter_mut()
            .for_each(|trial| trial.device_kib = None);
        assert_eq!(foreign_traffic(&[], &[busy]), None);
    }
}
