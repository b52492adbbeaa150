//! A whole run: experiments on a site, and the document that holds what they found.

use std::time::{Duration, Instant};

use landfall_os::Medium;
use landfall_results::{Metric, Series};

use crate::sync::SyncResults;
use crate::{
    Error, Experiment, Notice, Plan, Progress, Results, SCHEMA_NAME, Site, Stop, Weight, amplify,
    binlog, facts, prove, stream, sync, torn,
};
use landfall_results::Row;

/// Runs the experiments of `plans` on `site`, one after the other. `command` is what a user types to
/// repeat it.
///
/// Of several experiments one may be refused, for want of space say: then a notice says so, and what
/// the others found is not lost. Only if all are refused is that the error.
pub fn run(
    site: &Site,
    plans: &[Plan],
    command: &str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Results, Error> {
    let started = jiff::Timestamp::now();
    let begin = Instant::now();
    let mut notices = facts::notices(site.filesystem());
    notices.extend(site.notices());
    let mut experiments = Vec::new();
    let mut refused = None;
    let total: usize = plans.iter().map(Plan::trials).sum();
    let mut before = 0;
    for (index, plan) in plans.iter().enumerate() {
        let mut part = Part {
            whole: progress,
            before,
            total,
            later: plans[index + 1..].iter().map(Plan::expected).sum(),
        };
        let outcome = one(site, plan, stop, &mut part);
        before += plan.trials();
        let (experiment, more) = match outcome {
            Ok(found) => found,
            Err(Error::Refused(reason)) if plans.len() > 1 => {
                let text = format!("{} was not measured: {reason}.", plan.name());
                notices.push(Notice::new("not-measured", Weight::Warning, text));
                refused.get_or_insert(Error::Refused(reason));
                continue;
            }
            Err(error) => return Err(error),
        };
        experiments.push(experiment);
        notices.extend(more.into_iter().map(|notice| match plans.len() {
            1 => notice,
            // Of which experiment it speaks.
            _ => Notice {
                text: format!("{}: {}", plan.name(), notice.text),
                ..notice
            },
        }));
    }
    if let (true, Some(refused)) = (experiments.is_empty(), refused) {
        return Err(refused);
    }
    notices.sort_by_key(|notice| std::cmp::Reverse(notice.weight));
    Ok(Results {
        schema: SCHEMA_NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        started: started.to_string(),
        seconds: begin.elapsed().as_secs_f64(),
        host: site.host().clone(),
        directory: site.directory().display().to_string(),
        site: site.description().clone(),
        filesystem: site.filesystem().clone(),
        notices,
        experiments,
    })
}

/// Runs one experiment.
fn one(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(Experiment, Vec<Notice>), Error> {
    match plan {
        Plan::Sync(plan) => {
            let proof = match plan.proof_states {
                Some(states) => Some((prove::prepare(site)?, states)),
                None => None,
            };
            let (mut found, mut notices) = sync::run(site, plan, stop, progress)?;
            if let Some((filesystem_spec, states)) = proof {
                let notice =
                    prove::strategies(site, &filesystem_spec, &mut found, states, stop, progress)?;
                notices.extend(notice);
            }
            notices.extend(silent_device(site, &found));
            notices.extend(buffered_direct(site, &found));
            Ok((Experiment::Sync(found), notices))
        }
        Plan::Stream(plan) => {
            let (found, notices) = stream::run(site, plan, stop, progress)?;
            Ok((Experiment::Stream(Box::new(found)), notices))
        }
        Plan::Binlog(plan) => {
            let (found, notices) = binlog::run(site, plan, stop, progress)?;
            Ok((Experiment::Binlog(Box::new(found)), notices))
        }
        Plan::Torn(plan) => {
            let (found, notices) = torn::run(site, plan, stop, progress)?;
            Ok((Experiment::Torn(Box::new(found)), notices))
        }
        Plan::Amplify(plan) => {
            let (found, notices) = amplify::run(site, plan, stop, progress)?;
            Ok((Experiment::Amplify(Box::new(found)), notices))
        }
    }
}

/// One experiment's place in the whole run.
struct Part<'a> {
    whole: &'a mut dyn Progress,
    before: usize,
    total: usize,
    /// What the experiments after this one are expected to take.
    later: Duration,
}

impl Progress for Part<'_> {
    fn doing(&mut self, what: &str, done: usize, _: usize, left: Duration) {
        let done = (self.before + done).min(self.total);
        self.whole.doing(what, done, self.total, left + self.later);
    }

    fn measured(&mut self, row: &Row<'_>) {
        self.whole.measured(row);
    }
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
    let mut flushes = durable
        .filter_map(|one| one.median(Metric::Flushes))
        .peekable();
    flushes.peek()?;
    flushes.all(|flushes| flushes < 0.01).then(|| {
        Notice::new(
            "no-flush",
            Weight::Danger,
            "The disk says that its write cache is volatile, and synced writes did not make the kernel flush it: nothing measured here was shown to be durable. Look for barrier=0 or nobarrier among the mount options; or the driver (NVMe multipath, say) does not count flushes.",
        )
    })
}
