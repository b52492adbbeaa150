//! Proves the strategies that were measured: what was timed is held against power cuts here.

use std::collections::HashMap;
use std::time::Instant;

use landfall_os::{Allocation, SyncMethod};
use landfall_results::{FilesystemSpec, SeriesProof};

use super::{Plan, SyncResults};
use crate::{Error, Notice, Progress, Site, Stop, Weight, proof};

/// What a proof depends on.
type Written = (Option<SyncMethod>, Option<Allocation>, Option<u64>);

/// What proofs of strategies go by.
pub(super) struct Proofs<'a> {
    pub site: &'a Site,
    pub plan: &'a Plan,
    pub filesystem_spec: &'a FilesystemSpec,
    /// Crash states at most, of each.
    pub states: usize,
    pub stop: &'a Stop,
}

impl Proofs<'_> {
    /// Proves each strategy that was measured; what several have in common is proven once.
    pub fn of(
        &self,
        found: &mut SyncResults,
        progress: &mut dyn Progress,
    ) -> Result<Option<Notice>, Error> {
        let mut known: HashMap<Written, SeriesProof> = HashMap::new();
        let measured = found.series.iter_mut().filter(|one| one.is_measured());
        let (all, trials) = (self.plan.proofs(), self.plan.trials());
        let begin = Instant::now();
        for strategy in measured {
            let written = (
                strategy.axes.sync_method,
                strategy.axes.allocation,
                strategy.axes.size,
            );
            let proven = match known.get(&written) {
                _ if strategy.axes.threads > Some(1) => {
                    proof::not_proven(self.filesystem_spec, "several threads are not proven")
                }
                Some(proven) => proven.clone(),
                None => {
                    let done = known.len();
                    let what = format!("proof {} of {all}: {}", done + 1, strategy.key);
                    let left = all.saturating_sub(done);
                    let left = match u32::try_from(done) {
                        Ok(done) if done > 0 => begin.elapsed() / done * left as u32,
                        _ => self.plan.expected_of_proofs(left),
                    };
                    progress.doing(&what, trials, trials, left);
                    let proven = one(self, written)?;
                    known.insert(written, proven.clone());
                    proven
                }
            };
            strategy.proof = Some(proven);
        }
        Ok(notice(self.site, self.filesystem_spec))
    }
}

/// That the filesystem which was proven is another one than that which was measured, where it is.
fn notice(site: &Site, filesystem_spec: &FilesystemSpec) -> Option<Notice> {
    (site.filesystem_spec().is_none()).then(|| {
        let text = format!(
            "What was timed in this directory was proven on another filesystem of the same type and options, '{filesystem_spec}', on a recorder: that shows what filesystem and kernel do, and not whether this disk honours a flush."
        );
        Notice::new("proven-elsewhere", Weight::Note, text)
    })
}

fn one(proofs: &Proofs<'_>, (method, allocation, size): Written) -> Result<SeriesProof, Error> {
    let Proofs {
        site,
        filesystem_spec,
        states,
        stop,
        ..
    } = *proofs;
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
