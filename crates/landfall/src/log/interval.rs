//! The log, made durable at intervals: for those whose policy it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Handle;
use super::event_count::EventCount;
use crate::environment::Environment;

/// The shortest interval: who waits for less does little else.
const LEAST: Duration = Duration::from_micros(if cfg!(test) { 100 } else { 1000 });

/// Makes the log durable at intervals, until `is_closing`, of which `closing` tells, or until that failed: whoever appends next
/// is told so by the log.
pub(crate) fn commit_at_intervals<E: Environment>(
    log: &Handle<E>,
    environment: &E,
    interval: Duration,
    is_closing: &AtomicBool,
    closing: &EventCount<E>,
) {
    let from_now = || environment.now().saturating_add(interval.max(LEAST));
    let mut until = from_now();
    while !is_closing.load(Ordering::SeqCst) {
        let ticket = closing.ticket();
        // It may have been opened just before.
        let rest = if is_closing.load(Ordering::SeqCst) {
            Duration::ZERO
        } else {
            until.saturating_sub(environment.now())
        };
        closing.wait(ticket, Some(rest));
        if environment.now() < until {
            continue;
        }
        // What is appended while this one waits is in the next.
        until = from_now();
        if let Err(error) = log.commit() {
            tracing::error!(%error, "what was appended could not be made durable");
            return;
        }
    }
}
