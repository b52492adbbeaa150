//! Experiment `dump-vs-log` on the command line.

use clap::Args;
use landfall_os::humanize::parse_size;

use super::Plan;
use crate::arguments::{ExperimentArguments, Request, SiteArguments, seconds, state_size};
use crate::{Error, PlanKind};

/// What experiment `dump-vs-log` is asked for.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    site: SiteArguments,

    #[command(flatten)]
    options: Options,
}

impl ExperimentArguments for Arguments {
    fn request(self) -> Result<Request, Error> {
        Ok(Request {
            site: self.site.spec()?,
            dir: self.site.dir,
            plan: Box::new(self.options.plan()?),
        })
    }
}

#[derive(Args)]
#[command(next_help_heading = "What to measure")]
struct Options {
    /// Bytes of the state [default: 512M, as far as there is room].
    #[arg(long, value_name = "SIZE", value_parser = state_size)]
    state: Option<u64>,

    /// Bytes of a record [default: 256].
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    record: Option<u64>,

    /// Updates that come in per second [default: 1000].
    #[arg(long, value_name = "N", value_parser = updates)]
    updates: Option<f64>,

    /// Seconds for which each policy logs [default: 3].
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,

    /// Rounds: how often everything is measured.
    #[arg(long, value_name = "N", default_value_t = Plan::ROUNDS, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

impl Options {
    /// The plan that these arguments ask for.
    fn plan(&self) -> Result<Plan, Error> {
        let usual = Plan::standard();
        let is_usual = self.state.is_none()
            && self.record.is_none()
            && self.updates.is_none()
            && self.seconds.is_none();
        let plan = Plan {
            kind: if is_usual {
                PlanKind::Standard
            } else {
                PlanKind::Chosen
            },
            state_bytes: self.state.unwrap_or(usual.state_bytes),
            state_is_chosen: self.state.is_some(),
            record_bytes: self.record.unwrap_or(usual.record_bytes),
            updates_per_second: self.updates.unwrap_or(usual.updates_per_second),
            log_seconds: self.seconds.unwrap_or(usual.log_seconds),
            rounds: self.rounds,
        };
        plan.check()?;
        Ok(plan)
    }
}

fn updates(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(updates) if (0.1..=1e7).contains(&updates) => Ok(updates),
        _ => Err("updates come in from 0.1 to 10000000 times a second".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::parsed;

    #[test]
    fn a_state_that_is_named_is_chosen() {
        let plan = |line: &str| parsed::<Arguments>(line).unwrap().options.plan();
        let chosen = plan("--state 2M --updates 50 /tmp").unwrap();
        assert_eq!(
            (chosen.state_bytes, chosen.updates_per_second),
            (2 << 20, 50.0)
        );
        assert!(chosen.state_is_chosen);
        assert_eq!(chosen.kind, PlanKind::Chosen);
        assert_eq!(plan("/tmp").unwrap(), Plan::standard());
    }
}
