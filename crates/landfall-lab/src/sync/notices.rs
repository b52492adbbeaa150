//! What must be known of the device before a figure of `sync` is believed.

use landfall_os::Medium;
use landfall_results::{Metric, Series};

use super::SyncResults;
use crate::{Notice, Site, Weight};

/// Fewer flushes for each operation are somebody else's.
const FEWEST_FLUSHES: f64 = 0.01;

/// What the device makes doubtful.
pub(super) fn of_device(site: &Site, found: &SyncResults) -> impl Iterator<Item = Notice> {
    [silent_device(site, found), buffered_direct(site, found)]
        .into_iter()
        .flatten()
}

/// Direct methods where the kernel may have buffered them without a word: it then states no alignment
/// for direct I/O, or the filesystem checks sums (btrfs) or journals data.
fn buffered_direct(site: &Site, found: &SyncResults) -> Option<Notice> {
    let storage = site.filesystem().storage();
    let may_buffer = storage.direct_io.is_none()
        || storage.kind == "btrfs"
        || storage.option("data") == Some("journal");
    let ran = |series: &Series| {
        let is_direct = series.axes.sync_method.is_some_and(|method| method.direct);
        is_direct && series.is_measured()
    };
    (may_buffer && found.series.iter().any(ran)).then(|| {
        let text = format!(
            "On {} the kernel may buffer direct writes without saying so: what stands under direct+ may not have been direct.",
            storage.kind
        );
        Notice::new("direct-maybe-buffered", Weight::Note, text)
    })
}

/// Whether the kernel flushed the disk's cache for a series, if that was counted. Operations of several threads may share a
/// flush, all of them at the most.
fn is_flushed(series: &Series) -> Option<bool> {
    let threads = f64::from(series.axes.threads.unwrap_or(1));
    let least = FEWEST_FLUSHES.min(0.5 / threads);
    Some(series.median(Metric::Flushes)? >= least)
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
    let durable = found.series.iter().filter(|one| one.axes.is_durable());
    let mut flushed = durable.filter_map(is_flushed).peekable();
    flushed.peek()?;
    (!flushed.any(|flushed| flushed)).then(|| {
        Notice::new(
            "no-flush",
            Weight::Danger,
            "The disk says that its write cache is volatile, and synced writes did not make the kernel flush it: nothing measured here was shown to be durable. Look for barrier=0 or nobarrier among the mount options; or the driver (NVMe multipath, say) does not count flushes.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Strategy;
    use crate::sync::fixtures::measured;

    #[test]
    fn threads_that_share_flushes_are_flushed() {
        let flushed = |threads: u32, flushes: f64| {
            let strategy = Strategy {
                threads,
                ..Strategy::BASELINE
            };
            is_flushed(&measured(strategy, &[1_000.0; 5], 1.0, flushes))
        };
        assert_eq!(flushed(1, 1.0), Some(true));
        assert_eq!(flushed(1, 0.005), Some(false));
        assert_eq!(flushed(1024, 2.0 / 1024.0), Some(true));
        assert_eq!(flushed(1024, 0.0), Some(false));
    }
}
