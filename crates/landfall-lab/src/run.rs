//! A whole run: experiments on a site, and the document that holds what they found.

use std::time::{Duration, Instant};

use landfall_results::Row;

use crate::{Error, Experiment, Notice, Progress, Results, SCHEMA_NAME, Site, Stop, Weight, facts};

/// Runs the experiments of `plans` on `site`, one after the other. `command` is what a user types to
/// repeat it.
///
/// Of several experiments one may be refused, for want of space say: then a notice says so, and what
/// the others found is not lost. Only if all are refused is that the error.
pub fn run(
    site: &Site,
    plans: &[Box<dyn Experiment>],
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
    let total: usize = plans.iter().map(|plan| plan.trials()).sum();
    let mut before = 0;
    for (index, plan) in plans.iter().enumerate() {
        let mut part = Part {
            whole: progress,
            before,
            total,
            later: plans[index + 1..].iter().map(|plan| plan.expected()).sum(),
        };
        let outcome = plan.run(site, stop, &mut part);
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
                text: format!("{}: {}", subject(plan.name()), notice.text),
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

/// What an experiment is about, before what is to be known of it alone.
fn subject(name: &'static str) -> &'static str {
    match name {
        "sync" => "Durable writes",
        "stream" => "Saving a state",
        "dump-vs-log" => "Dump or log",
        name => name,
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
