//! Proves the strategies that were measured: what was timed is held against power cuts here.

use std::collections::HashMap;
use std::time::Instant;

use landfall_os::Allocation;
use landfall_results::{Axes, Axis, Files, FilesystemSpec, SeriesProof};

use super::{Plan, SyncResults};
use crate::{Error, Notice, Progress, Site, Stop, Weight, proof};

/// Transactions of each thread, at least.
const FEWEST_OF_A_THREAD: u64 = 4;

/// Bytes of files that any filesystem has room for that is made for a proof.
const SMALL_FILES: u64 = 8 << 20;

/// What a proof depends on: neither where in its file a write lands nor what the page cache holds.
pub(super) fn way_of_writing(axes: &Axes) -> Axes {
    axes.without(Axis::Pages)
}

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
    /// Proves each strategy that was measured; what several have in common is proven once. Returns what must be known
    /// about that.
    pub fn of(
        &self,
        found: &mut SyncResults,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Notice>, Error> {
        let mut notices = Vec::new();
        let mut known: HashMap<String, SeriesProof> = HashMap::new();
        let measured = found.series.iter_mut().filter(|one| one.is_measured());
        let (all, trials) = (self.plan.proofs(), self.plan.trials());
        let begin = Instant::now();
        for strategy in measured {
            let way = way_of_writing(&strategy.axes);
            let proven = match known.get(&way.key()) {
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
                    let proven = one(self, &way, &strategy.key, &mut notices)?;
                    known.insert(way.key(), proven.clone());
                    proven
                }
            };
            strategy.proof = Some(proven);
        }
        notices.extend(notice(self.site, self.filesystem_spec));
        Ok(notices)
    }
}

/// That the filesystem which was proven is another one than that which was measured, where it is.
fn notice(site: &Site, filesystem_spec: &FilesystemSpec) -> Option<Notice> {
    (site.filesystem_spec().is_none()).then(|| {
        let text = format!(
            "What was timed in this directory was proven on another filesystem of the same type and options, '{filesystem_spec}', on a recorder: that shows what filesystem and kernel do, and not whether this disk honours a flush, which only a witness on another host can know."
        );
        Notice::new("proven-elsewhere", Weight::Note, text)
    })
}

fn one(
    proofs: &Proofs<'_>,
    way: &Axes,
    name: &str,
    notices: &mut Vec<Notice>,
) -> Result<SeriesProof, Error> {
    let Proofs {
        site,
        filesystem_spec,
        states,
        stop,
        ..
    } = *proofs;
    let threads = u64::from(way.threads.unwrap_or(1));
    let (files, written) = match way.files {
        Some(Files::Each) => (Files::Each, threads),
        _ => (Files::Shared, 1),
    };
    // An equal share of each thread.
    let transactions = proof::TRANSACTIONS.max(FEWEST_OF_A_THREAD * threads);
    let transactions = transactions.next_multiple_of(threads);
    let set = |key: &str, value: Option<String>| Some((key.to_owned(), value?));
    let settings: Vec<(String, String)> = [
        set("method", way.sync_method.map(|method| method.to_string())),
        set("allocation", way.allocation.map(|how| how.to_string())),
        set("size", way.size.map(|size| size.to_string())),
        set("threads", Some(threads.to_string())),
        set("files", Some(files.key().to_owned())),
        set("records", Some((transactions / written).to_string())),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Room for all records, and for what is allocated ahead in each file.
    let ahead = way.allocation.and_then(Allocation::step_bytes).unwrap_or(0);
    let records = transactions.saturating_mul(way.size.unwrap_or(0));
    let roomy = FilesystemSpec {
        size: Some(size_for(filesystem_spec, records) + 2 * ahead * written),
        ..filesystem_spec.clone()
    };
    let proven = proof::of("files", &settings, site, &roomy, transactions, states, stop);
    // Where there is more room it is the same filesystem.
    proof::or_not_proven(proven, filesystem_spec, name, stop, notices)
}

/// Bytes of a device that has room for so many bytes of records: twice, since files that are recycled have old ones beside them.
fn size_for(filesystem_spec: &FilesystemSpec, records: u64) -> u64 {
    let needed = records.saturating_mul(2);
    if needed <= SMALL_FILES {
        filesystem_spec.small_size()
    } else {
        filesystem_spec.small_size_for(needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_results::Kind;

    #[test]
    fn large_records_have_room() {
        let ext4 = FilesystemSpec::plain(Kind::Ext4);
        let of = |size: u64| size_for(&ext4, proof::TRANSACTIONS * size);
        assert_eq!(of(8 << 10), ext4.small_size());
        assert!(of(4 << 20) > 2 * proof::TRANSACTIONS * (4 << 20));
    }
}
