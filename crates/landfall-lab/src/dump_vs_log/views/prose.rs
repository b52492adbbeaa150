//! What is said of experiment `dump-vs-log` in sentences.

use crate::dump_vs_log::summary_text::{crossing, loses, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults};
use crate::numbers::{interval, short};
use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Saving};

/// How much must change before a dump takes less than a log.
pub(super) fn break_even(found: &DumpVsLogResults) -> Option<String> {
    let share = |log, cost| Some(crossing(found, log, cost)?.share);
    let strict = share(Saving::LogEveryUpdate, Cost::Seconds)?;
    let certain = if found.rounds > 1 {
        format!(" (95% interval {})", interval(&strict, percent))
    } else {
        String::new()
    };
    let repeated = if strict.median > 1.0 {
        ", so only if records change more than once"
    } else {
        ""
    };
    let mut text = format!(
        "Dumping {} takes the program less time than logging with a sync for every update once {}{certain} of the state changes between two saves{repeated}",
        bytes_text(found.state_bytes),
        percent(strict.median),
    );
    if let Some(group) = share(Saving::LogGroup, Cost::Seconds) {
        text.push_str(&format!(
            "; with updates synced in groups, once {}",
            percent(group.median)
        ));
    }
    if let Some(bytes) = share(Saving::LogEveryUpdate, Cost::Bytes) {
        text.push_str(&format!(
            "; and it writes fewer bytes once {}",
            percent(bytes.median)
        ));
    }
    Some(text + ".")
}

/// How long a snapshot keeps an update waiting, beside a dump.
pub(super) fn stalls(found: &DumpVsLogResults) -> Option<String> {
    let stall = |saving| found.find(saving)?.median(Metric::LongestStallMs);
    Some(format!(
        "A dump stops the program for {} ms; while the engine takes a snapshot, an update waits {} ms at the longest if it is not synced, and {} ms if it is.",
        short(stall(Saving::Dump)?),
        short(stall(Saving::SnapshotEverySecond)?),
        short(stall(Saving::SnapshotEveryUpdate)?),
    ))
}

/// What a power cut may take, by log.
pub(super) fn losses(in_memory: bool) -> String {
    if in_memory {
        return "In main memory a power cut takes everything.".to_owned();
    }
    let all = [Saving::Dump].into_iter().chain(Saving::LOGS);
    let all: Vec<String> = all
        .map(|saving| format!("{}: {}", saving.name(), loses(saving)))
        .collect();
    format!("What a power cut may take. {}.", all.join("; "))
}
