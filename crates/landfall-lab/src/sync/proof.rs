//! Proves the strategies that were measured: what was timed is held against power cuts here.

use std::collections::HashMap;
use std::time::Duration;

use landfall_os::{Allocation, SyncMethod};
use landfall_prove::scratch_fs::{self, FilesystemSpec, like};
use landfall_prove::{Plan, Silent, prove, subjects};
use landfall_results::proof::{Outcome, summary_text};
use landfall_results::{Series, SeriesProof};

use super::SyncResults;
use crate::{Error, Notice, Progress, Site, Stop, Weight};

/// Records that each strategy writes.
const TRANSACTIONS: u64 = 24;

/// What a proof depends on.
type Written = (Option<SyncMethod>, Option<Allocation>, Option<u64>);

/// The filesystem that strategies measured on `site` are proven on: the same where one was made, else
/// one of the same type and options; and whether anything can be proven at all, found out before an
/// hour of measuring.
pub(crate) fn prepare(site: &Site) -> Result<FilesystemSpec, Error> {
    let filesystem_spec = match site.filesystem_spec() {
        Some(filesystem_spec) => FilesystemSpec {
            size: None,
            ..filesystem_spec.clone()
        },
        None => like(site.filesystem()).map_err(|why| {
            Error::Refused(format!(
                "nothing can be proven here: {why}; measure without --prove, or with --on recorder:ext4"
            ))
        })?,
    };
    scratch_fs::require_recorder(site.directory())?;
    Ok(filesystem_spec)
}

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
        let proof = match known.get(&written) {
            _ if strategy.axes.threads > Some(1) => {
                not_proven(filesystem_spec, "several threads are not proven")
            }
            Some(proof) => proof.clone(),
            None => {
                let proof = one(site, filesystem_spec, written, states, stop)?;
                known.insert(written, proof.clone());
                proof
            }
        };
        strategy.proof = Some(proof);
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
        set("records", Some(TRANSACTIONS.to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    let subject = match subjects::named("files", &settings) {
        Ok(subject) => subject,
        // A size that no subject has, say.
        Err(Error::Usage(why)) => return Ok(not_proven(filesystem_spec, &why)),
        Err(error) => return Err(error),
    };
    // Room for what is allocated ahead.
    let ahead = allocation.and_then(Allocation::step_bytes).unwrap_or(0);
    let roomy = FilesystemSpec {
        size: Some(filesystem_spec.small_size() + 2 * ahead),
        ..filesystem_spec.clone()
    };
    let plan = Plan {
        directory: site.directory().to_owned(),
        transactions: TRANSACTIONS,
        states,
        ..Plan::new(subject, roomy)
    };
    let proof = match prove(&plan, stop, &mut Silent) {
        Ok(proof) => proof.results,
        // This filesystem on the recorder lacks what the site has, or has not the room for it.
        Err(Error::Refused(why) | Error::Subject(why)) => {
            return Ok(not_proven(filesystem_spec, &why));
        }
        Err(error) => return Err(error),
    };
    Ok(SeriesProof {
        filesystem_spec: filesystem_spec.clone(),
        states: proof.coverage.checked,
        losing: proof.losing_states,
        worst_lost: proof.worst_lost,
        not_proven: (proof.outcome() == Outcome::NotProven).then(|| summary_text::verdict(&proof)),
    })
}

fn not_proven(filesystem_spec: &FilesystemSpec, why: &str) -> SeriesProof {
    SeriesProof {
        filesystem_spec: filesystem_spec.clone(),
        states: 0,
        losing: 0,
        worst_lost: 0,
        not_proven: Some(why.to_owned()),
    }
}
