//! From a plan to a results document.

use std::time::Instant;

use landfall_os::Medium;

use crate::facts;
use crate::sync::{self, Plan, StrategyResult, SyncResults};
use crate::{Error, Experiment, Notice, Progress, Results, SCHEMA_NAME, Site, Stop, Weight};

/// Runs experiment `sync` on `site`. `command` is what a user types to repeat it.
pub fn run_sync(
    site: &Site,
    plan: &Plan,
    command: &str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Results, Error> {
    let started = jiff::Timestamp::now();
    let begin = Instant::now();
    let mut notices = facts::notices(site.filesystem());
    notices.extend(site.leftover_notices());
    let (found, more) = sync::run(site, plan, stop, progress)?;
    notices.extend(more);
    notices.extend(silent_device(site, &found));
    notices.extend(buffered_direct(site, &found));
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.weight));
    Ok(Results {
        schema: SCHEMA_NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        started: started.to_string(),
        seconds: begin.elapsed().as_secs_f64(),
        host: site.host().clone(),
        directory: site.directory().display().to_string(),
        filesystem: site.filesystem().clone(),
        notices,
        experiments: vec![Experiment::Sync(found)],
    })
}

/// Direct methods where the kernel may have buffered them without a word: it then states no alignment
/// for direct I/O, or the filesystem checks sums (btrfs) or journals data.
fn buffered_direct(site: &Site, found: &SyncResults) -> Option<Notice> {
    let storage = site.filesystem().storage();
    let may_buffer = storage.direct_io.is_none()
        || storage.kind == "btrfs"
        || storage.option("data") == Some("journal");
    let ran = |strategy: &StrategyResult| {
        strategy.method.starts_with("direct+") && strategy.summary.is_some()
    };
    (may_buffer && found.strategies.iter().any(ran)).then(|| {
        let text = format!(
            "On {} the kernel may buffer direct writes without saying so: what stands under direct+ may not have been direct.",
            storage.kind
        );
        Notice::new("direct-maybe-buffered", Weight::Note, text)
    })
}

/// A device that says it has a volatile cache, and was never asked to flush it by durable writes.
fn silent_device(site: &Site, found: &SyncResults) -> Option<Notice> {
    let storage = site.filesystem().storage();
    let volatile = storage
        .devices
        .iter()
        .any(|device| device.has_volatile_cache());
    if storage.medium != Medium::Device || !volatile {
        return None;
    }
    let mut durable = found
        .strategies
        .iter()
        .filter(|strategy| strategy.durable)
        .filter_map(|strategy| strategy.summary.as_ref()?.device)
        .peekable();
    durable.peek()?;
    durable.all(|device| device.flushes < 0.01).then(|| {
        Notice::new(
            "no-flush",
            Weight::Danger,
            "The disk says that its write cache is volatile, and synced writes did not make the kernel flush it: nothing measured here was shown to be durable. Look for barrier=0 or nobarrier among the mount options; or the driver (NVMe multipath, say) does not count flushes.",
        )
    })
}
