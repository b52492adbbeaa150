//! The run: what each protection costs, and then, if that is asked for, whether it protects.

use std::time::Duration;

use super::{Plan, TornResults, claims, safety};
use crate::{Error, Experiment, Found, Notice, Progress, Site, Stop, configuration, proof};

impl Experiment for Plan {
    fn name(&self) -> &'static str {
        "torn"
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
        let all = self.configurations();
        if self.proof_states.is_some() {
            // Found out before an hour of measuring, not after it.
            proof::require_recorder(site)?;
        }
        let (measurements, mut notices) = configuration::run(site, &all, "torn", stop, progress)?;
        let proofs = match self.proof_states {
            Some(states) => safety::prove(site, states, stop, progress, &mut notices)?,
            None => Vec::new(),
        };
        let mut results = TornResults {
            plan: self.kind,
            rows: self.rows,
            latencies: self.latencies.clone(),
            measurements,
            proofs,
            claims: Vec::new(),
        };
        results.claims = claims::judge(&results);
        Ok((results.into(), notices))
    }
}
