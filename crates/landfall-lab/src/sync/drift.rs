//! Whether the rate held: within a trial, and over the whole run.
//!
//! Within a trial the last third of its operations is compared with the first; a device that fills a
//! cache, or a file that gets longer, shows there. Over the run the last third of the rounds is
//! compared with the first, over all strategies together; a machine that gets warm, or a neighbour
//! that comes or goes, shows there, and an interval over rounds is then wider than chance makes it.

use std::ops::RangeInclusive;

use landfall_results::{Metric, Series};

use crate::stats::{Estimate, FEWEST_ROUNDS, median};
use crate::{Notice, Weight};

/// Rates of a trial's last third over its first that are still called steady.
const STEADY_TRIAL: RangeInclusive<f64> = 0.8..=1.25;
/// The same of a run's rounds; all strategies together tell smaller differences from chance.
const STEADY_RUN: RangeInclusive<f64> = 0.9..=1.11;
/// Strategies that are named.
const MOST_NAMED: usize = 4;
/// Fewer rounds than this have no first and last third.
const FEWEST_WITH_THIRDS: usize = 3;

/// What is to be said about the rate not having held.
pub(super) fn notices(strategies: &[Series]) -> Vec<Notice> {
    within_trials(strategies)
        .into_iter()
        .chain(over_the_run(strategies))
        .collect()
}

/// Whether the whole interval lies outside of what is called steady.
fn is_outside(estimate: &Estimate, steady: &RangeInclusive<f64>) -> bool {
    estimate.high < *steady.start() || *steady.end() < estimate.low
}

fn within_trials(strategies: &[Series]) -> Option<Notice> {
    let drifting: Vec<&str> = strategies
        .iter()
        // One round has no interval.
        .filter(|strategy| strategy.trials.len() > 1)
        .filter(|strategy| {
            let drift = strategy.estimate(Metric::Drift);
            drift.is_some_and(|drift| is_outside(&drift, &STEADY_TRIAL))
        })
        .map(|strategy| strategy.key.as_str())
        .collect();
    (!drifting.is_empty()).then(|| {
        let named = drifting.iter().take(MOST_NAMED).copied();
        let named: Vec<&str> = named.collect();
        let more = match drifting.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "Not steady: the last third of a trial ran at another rate than the first: {}{more}.",
            named.join(", ")
        );
        let details = "Longer trials (--seconds) tell which rate lasts.";
        Notice::new("drift", Weight::Note, text).because(details)
    })
}

fn over_the_run(strategies: &[Series]) -> Option<Notice> {
    let ratios: Vec<f64> = strategies
        .iter()
        .filter(|strategy| strategy.trials.len() >= FEWEST_WITH_THIRDS)
        .filter_map(|strategy| {
            let rates = strategy.values(Metric::OpsPerSecond);
            let third = rates.len().div_ceil(3);
            let first = median(&rates[..third])?;
            Some(median(&rates[rates.len() - third..])? / first)
        })
        .collect();
    // Few strategies give no more of an interval than few rounds do.
    let is_certain = ratios.len() >= FEWEST_ROUNDS;
    let drift = Estimate::of(&ratios).filter(|_| is_certain)?;
    is_outside(&drift, &STEADY_RUN).then(|| {
        let text = format!(
            "The machine changed: the last third of the rounds ran at {:.2} times the rate of the first.",
            drift.median
        );
        let details = format!(
            "The 95% interval over the strategies is {:.2} to {:.2}. Ratios are formed within a round, and suffer less than rates.",
            drift.low, drift.high
        );
        Notice::new("run-drift", Weight::Warning, text).because(details)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Plan;
    use crate::sync::fixtures::measured;

    fn run(rates: &[f64]) -> Vec<Series> {
        let strategies = Plan::standard().strategies;
        let measured = |(index, strategy)| {
            let jitter = 1.0 + 0.02 * (index % 5) as f64;
            let rates: Vec<f64> = rates.iter().map(|rate| rate * jitter).collect();
            measured(strategy, &rates, 1.0, 1.0)
        };
        strategies.into_iter().enumerate().map(measured).collect()
    }

    #[test]
    fn a_machine_that_slows_down_is_noticed_and_one_that_does_not_is_not() {
        assert!(notices(&run(&[1_000.0, 1_030.0, 990.0, 980.0, 1_010.0])).is_empty());
        let slower = notices(&run(&[1_000.0, 980.0, 900.0, 800.0, 790.0]));
        assert_eq!(slower.len(), 1);
        assert_eq!(slower[0].code, "run-drift");
        assert!(notices(&run(&[1_000.0, 500.0])).is_empty(), "two rounds");
        let one = &run(&[1_000.0, 950.0, 890.0])[..1];
        assert!(notices(one).is_empty(), "one strategy");
    }

    #[test]
    fn a_rate_that_sinks_within_the_trial_is_noticed() {
        let mut strategies = run(&[1_000.0, 1_000.0]);
        for (trial, drift) in strategies[3].trials.iter_mut().zip([0.4, 0.6]) {
            trial.figures.set(Metric::Drift, drift);
        }
        strategies[3].summarize();
        let notices = notices(&strategies);
        assert_eq!(notices.len(), 1);
        assert!(notices[0].text.contains(&strategies[3].key));
    }
}
