//! The run: what each protection costs, and then, if that is asked for, whether it protects.

use super::{Plan, TornResults, claims, safety};
use crate::{Error, Notice, Progress, Site, Stop, configuration};

/// Runs `plan` in the directory of `site`; returns what was found and what must be known about it.
pub fn run(
    site: &Site,
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<(TornResults, Vec<Notice>), Error> {
    let all = plan.configurations();
    if plan.proof_states.is_some() {
        // Found out before an hour of measuring, not after it.
        safety::require(site)?;
    }
    let (measurements, notices) = configuration::run(site, &all, "torn", stop, progress)?;
    let proofs = match plan.proof_states {
        Some(states) => safety::prove(site, states, stop, progress)?,
        None => Vec::new(),
    };
    let mut results = TornResults {
        plan: plan.kind,
        rows: plan.rows,
        latencies: plan.latencies.clone(),
        measurements,
        proofs,
        claims: Vec::new(),
    };
    results.claims = claims::judge(&results);
    Ok((results, notices))
}
