//! Proves the strategies that were measured: what was timed is held against power cuts here.

use std::collections::HashMap;
use std::time::Duration;

use landfall_os::{Allocation, SyncMethod};
use landfall_results::{FilesystemSpec, Series, SeriesProof};

use super::SyncResults;
use crate::{Error, Notice, Progress, Site, Stop, Weight, proof};

/// What a proof depends on.
type Written = (Option<SyncMethod>, Option<Allocation>, Option<u64>);

/// Proves each strategy that was measured, with at most `states` crash states each.
pub(super) fn strategies(
    site: &Site,
    filesystem_spec: &FilesystemSpec,
    found: &mut SyncResults,
    states: usize,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Option<Notice>, Error> {
    let mut known: HashMap<Written, SeriesProof> = HashMap::new();
    let measured: Vec<&mut Series> = found
        .series
        .iter_mut()
        .filter(|series| series.is_measured())
        .collect();
    let all = measured.len();
    for (index, strategy) in measured.into_iter().enumerate() {
        let what = format!("cutting the power on {}", strategy.key);
        progress.doing(&what, index, all, Duration::ZERO);
        let written = (
            strategy.axes.sync_method,
            strategy.axes.allocation,
            strategy.axes.size,
        );
        let proven = match known.get(&written) {
            _ if strategy.axes.threads > Some(1) => {
                proof::not_proven(filesystem_spec, "several threads are not proven")
            }
            Some(proven) => proven.clone(),
            None => {
                let proven = one(site, filesystem_spec, written, states, stop)?;
                known.insert(written, proven.clone());
                proven
            }
        };
        strategy.proof = Some(proven);
    }
    Ok((site.filesystem_spec().is_none()).then(|| {
        let text = format!(
            "What was timed in this directory was proven on another filesystem of the same type and options, '{filesystem_spec}', on a recorder: that shows what filesystem and kernel do, and not whether this disk honours a flush."
        );
        Notice::new("proven-elsewhere", Weight::Note, text)
    }))
}

fn one(
    site: &Site,
    filesystem_spec: &FilesystemSpec,
    (method, allocation, size): Written,
    states: usize,
    stop: &Stop,
) -> Result<SeriesProof, Error> {
    let set = |key: &str, value: Option<String>| Some((key.to_owned(), value?));
    let settings: Vec<(String, String)> = [
        set("method", method.map(|method| method.to_string())),
        set("allocation", allocation.map(|how| how.to_string())),
        set("size", size.map(|size| size.to_string())),
        set("records", Some(proof::TRANSACTIONS.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Room for what is allocated ahead.
    let ahead = allocation.and_then(Allocation::step_bytes).unwrap_or(0);
    let roomy = FilesystemSpec {
        size: Some(filesystem_spec.small_size() + 2 * ahead),
        ..filesystem_spec.clone()
    };
    proof::of("files", &settings, site, &roomy, states, stop)
}
