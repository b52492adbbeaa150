//! The run, what is refused before it, and what must be known about it.

use std::time::Duration;

use landfall_results::Series;

use landfall_os::available_memory;

use super::{AmplifyResults, Plan, Updates, claims, summary_text};
use crate::configuration::Measurements;
use crate::{Error, Experiment, Found, Notice, Progress, Site, Stop, Weight, configuration};
use landfall_os::humanize::bytes_text;

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "amplify"
    }

    fn trials(&self) -> usize {
        self.configurations().trials()
    }

    fn expected(&self) -> Duration {
        self.configurations().expected()
    }

    fn required_bytes(&self) -> u64 {
        self.configurations().required_bytes()
    }

    fn listing(&self) -> String {
        self.configurations().listing()
    }

    fn run(
        &self,
        site: &Site,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> Result<(Found, Vec<Notice>), Error> {
        require_memory(self)?;
        let mut measure = |plan: &Plan| {
            configuration::run(site, &plan.configurations(), "amplify", stop, progress)
        };
        let (measurements, mut notices) = match measure(self) {
            Err(Error::Refused(reason)) if !self.site_is_chosen && is_about_recorder(self) => {
                let (measurements, mut notices) = measure(&self.in_directory())?;
                notices.push(Notice::new(
                    "directory-only",
                    Weight::Warning,
                    format!("The directory was measured, because no recorder could be made ({reason}): what others write there is counted too, and no wear can be told."),
                ));
                (measurements, notices)
            }
            measured => measured?,
        };
        notices.extend(remarks(&measurements));
        let results = AmplifyResults {
            plan: self.kind,
            ids: self.ids,
            clients: self.clients,
            pool_bytes: self.pool_bytes(),
            updates: Updates::of(self),
            drive: self.drive.to_string(),
            claims: claims::judge(&measurements, self.ids),
            measurements,
        };
        Ok((results.into(), notices))
    }
}

fn is_about_recorder(plan: &Plan) -> bool {
    plan.site != plan.in_directory().site
}

fn require_memory(plan: &Plan) -> Result<(), Error> {
    let needed = plan.memory_bytes();
    let available = available_memory().unwrap_or(u64::MAX);
    if needed <= available / 4 * 3 {
        Ok(())
    } else {
        Err(Error::Refused(format!(
            "a database of this plan keeps {} in memory, which is more than three quarters of the {} that is available: choose fewer --ids, or leave out --part knobs and choose a smaller --pool",
            bytes_text(needed),
            bytes_text(available),
        )))
    }
}

/// Where figures are not what they seem.
fn remarks(measurements: &Measurements) -> Vec<Notice> {
    let all = &measurements.series;
    let named = |is: &dyn Fn(&&Series) -> bool| -> Vec<String> {
        all.iter().filter(is).map(Series::name).collect()
    };
    let mut notices = Vec::new();
    let mut warn = |code: &str, weight: Weight, names: Vec<String>, text: &str| {
        if !names.is_empty() {
            let text = format!("{}: {text}", names.join(", "));
            notices.push(Notice::new(code, weight, text));
        }
    };
    warn(
        "not-steady",
        Weight::Warning,
        named(&|one| summary_text::is_unsteady(one)),
        "what a request costs had not become steady in the time that it had; --most-seconds gives it more.",
    );
    let last = |one: &Series| one.trials.last().cloned().unwrap_or_default();
    warn(
        "short-for-wear",
        Weight::Warning,
        named(&|one| summary_text::is_seldom_rewritten(&last(one))),
        "flash pages were written less than twice on average while it was measured, so that the drive's amplification is that of the same writes coming again in the same order, which is too little; --seconds makes a trial longer.",
    );
    warn(
        "wear-not-steady",
        Weight::Warning,
        named(&|one| last(one).is_wear_steady == Some(false)),
        "the model of the drive did not become steady, and its figures are those of a drive whose state still changes.",
    );
    let measured = all.iter().any(Series::is_measured);
    if measured && all.iter().all(|one| last(one).is_wear_steady.is_none()) {
        notices.push(Notice::new(
            "no-wear",
            Weight::Note,
            "What the writes cost the flash of a drive is not told: only a recorder knows where was written (--on recorder:ext4).",
        ));
    }
    notices
}

#[cfg(test)]
mod tests {
    use super::super::Selection;
    use super::super::fixtures::{measured, measurements};
    use super::*;
    use landfall_results::Metric;

    #[test]
    fn figures_that_are_not_what_they_seem_are_named() {
        let mut one = measured("innodb 16k", 48.0, 150);
        let trial = &mut one.trials[0];
        trial.steadiness.as_mut().unwrap().reached = false;
        trial.figures.set(Metric::Rewrites, 1.5);
        let mut other = measured("myrocks zstd", 4.0, 70);
        other.trials[0].is_wear_steady = Some(false);
        let found = measurements(vec![one, other]);
        let codes: Vec<String> = remarks(&found).into_iter().map(|n| n.code).collect();
        assert_eq!(codes, ["not-steady", "short-for-wear", "wear-not-steady"]);
        let mut without = measured("innodb 16k", 48.0, 150);
        without.trials[0].is_wear_steady = None;
        without.trials[0].figures.set(Metric::Rewrites, None);
        let codes = remarks(&measurements(vec![without]));
        assert_eq!(codes[0].code, "no-wear");
    }

    #[test]
    fn more_than_the_memory_is_refused() {
        let plan = Plan::chosen(Selection {
            pool: Some(1 << 50),
            ..Selection::default()
        });
        let refused = require_memory(&plan.unwrap()).unwrap_err().to_string();
        assert!(refused.contains("--pool"), "{refused}");
        require_memory(&Plan::standard()).unwrap();
    }
}
