//! What is said of experiment `dump-vs-log` in sentences.

use crate::dump_vs_log::summary_text::{crossing, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults, Policy};
use crate::numbers::interval;
use landfall_os::humanize::bytes_text;

/// How much must change before a dump takes less than a log.
pub(super) fn break_even(found: &DumpVsLogResults) -> Option<String> {
    let share = |policy, cost| Some(crossing(found, policy, cost)?.share);
    let strict = share(Policy::EveryUpdate, Cost::Seconds)?;
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
    if let Some(group) = share(Policy::Group, Cost::Seconds) {
        text.push_str(&format!(
            "; with updates synced in groups, once {}",
            percent(group.median)
        ));
    }
    if let Some(bytes) = share(Policy::EveryUpdate, Cost::Bytes) {
        text.push_str(&format!(
            "; and it writes fewer bytes once {}",
            percent(bytes.median)
        ));
    }
    Some(text + ".")
}

/// What a power cut may take, by policy.
pub(super) fn losses(in_memory: bool) -> String {
    if in_memory {
        return "In main memory a power cut takes everything.".to_owned();
    }
    let policies = Policy::ALL.map(|policy| format!("{}: {}", policy.name(), policy.loses()));
    format!(
        "What a power cut may take. Dump: all changes since the last one; {}.",
        policies.join("; ")
    )
}
