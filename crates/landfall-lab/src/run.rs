//! A whole run: experiments on a site, and the document that holds what they found.

use std::time::{Duration, Instant};

use landfall_results::Row;

use crate::{Error, Experiment, Notice, Progress, Results, SCHEMA_NAME, Site, Stop, Weight, facts};

/// Runs the experiments of `plans` on `site`, one after the other. `command` is what a user types to
/// repeat it.
///
/// Of several experiments one may be refused, for want of space say, or fail after another has found something: then a
/// notice says so, and what the others found is not lost. Only if all are refused is that the error. Whoever asks to stop
/// gets nothing.
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
            Err(error) => {
                let others_count = match error {
                    Error::Stopped => false,
                    Error::Refused(_) => plans.len() > 1,
                    // Most likely that is why.
                    _ if stop.is_requested() => false,
                    _ => !experiments.is_empty(),
                };
                if !others_count {
                    return Err(error);
                }
                let code = match error {
                    Error::Refused(_) => Results::NOT_MEASURED,
                    _ => Results::FAILED,
                };
                let text = format!("{} was not measured: {error}.", plan.name());
                notices.push(Notice::new(code, Weight::Warning, text));
                refused.get_or_insert(error);
                continue;
            }
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::sync::fixtures::sync_results;
    use crate::{Found, Silent};

    type Outcome = Result<(Found, Vec<Notice>), Error>;

    /// An experiment that ends like this.
    struct Fake(fn(&Stop) -> Outcome);

    impl Experiment for Fake {
        fn name(&self) -> &'static str {
            "fake"
        }

        fn trials(&self) -> usize {
            1
        }

        fn expected(&self) -> Duration {
            Duration::ZERO
        }

        fn required_bytes(&self) -> u64 {
            0
        }

        fn listing(&self) -> String {
            String::new()
        }

        fn run(&self, _: &Site, stop: &Stop, _: &mut dyn Progress) -> Outcome {
            (self.0)(stop)
        }
    }

    fn finds(_: &Stop) -> Outcome {
        Ok((sync_results(Vec::new()).into(), Vec::new()))
    }

    fn fails(_: &Stop) -> Outcome {
        let error = io::Error::from(io::ErrorKind::InvalidData);
        Err(Error::io("cannot measure it")(error))
    }

    fn stops(_: &Stop) -> Outcome {
        Err(Error::Stopped)
    }

    /// What is stopped in the middle may fail of it.
    fn fails_when_stopped(stop: &Stop) -> Outcome {
        stop.flag().store(true, Ordering::Relaxed);
        fails(stop)
    }

    fn run_all(outcomes: &[fn(&Stop) -> Outcome]) -> Result<Results, Error> {
        let directory = tempfile::tempdir().unwrap();
        let site = Site::open(directory.path()).unwrap();
        let plans = outcomes
            .iter()
            .map(|outcome| -> Box<dyn Experiment> { Box::new(Fake(*outcome)) });
        let plans: Vec<_> = plans.collect();
        let results = run(&site, &plans, "landfall lab", &Stop::default(), &mut Silent);
        site.close().unwrap();
        results
    }

    #[test]
    fn what_was_found_is_not_lost_by_what_fails_after_it() {
        let results = run_all(&[finds, fails, finds]).unwrap();
        assert_eq!(results.experiments.len(), 2);
        assert!(results.has_failed());
        let mut notices = results.notices.iter();
        let failed = notices.find(|notice| notice.code == Results::FAILED);
        let text = &failed.unwrap().text;
        let words = "fake was not measured: cannot measure it: ";
        assert!(text.starts_with(words), "{text}");
        assert!(matches!(run_all(&[fails, finds]), Err(Error::Io { .. })));
        assert!(matches!(run_all(&[finds, stops]), Err(Error::Stopped)));
        let stopped = run_all(&[finds, fails_when_stopped]);
        assert!(matches!(stopped, Err(Error::Io { .. })));
    }
}
