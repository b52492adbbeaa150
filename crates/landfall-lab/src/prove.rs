//! Proofs as results documents.

use std::path::Path;
use std::time::Instant;

use landfall_os::Host;
use landfall_prove::cluster::ClusterPlan;
use landfall_prove::{Error, Plan, Progress, Proof, Stop, self_test};

use crate::{Found, Notice, Results, SCHEMA_NAME, SiteDescription, SiteKind};

/// Proves what `plan` says. `command` is what a user types to repeat it.
pub fn prove(
    plan: &Plan,
    command: &str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Results, Error> {
    let run = Run::begin(command, &plan.directory);
    let proof = landfall_prove::prove(plan, stop, progress)?;
    run.results(vec![proof], Vec::new())
}

/// Proves what `plan` says of a cluster.
pub fn prove_cluster(
    plan: &ClusterPlan,
    command: &str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Results, Error> {
    let run = Run::begin(command, &plan.directory);
    let proof = landfall_prove::cluster::prove_cluster(plan, stop, progress)?;
    run.results(vec![proof], Vec::new())
}

/// Tries every case of the self-test. Mount points, and what does not fit into memory, go to `directory`, or else to
/// the system's temporary directory.
pub fn self_test(
    directory: Option<&Path>,
    command: &str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Results, Error> {
    let temporary = std::env::temp_dir();
    let run = Run::begin(command, directory.unwrap_or(&temporary));
    let tried = self_test::run(directory, stop, progress)?;
    run.results(tried.proofs, tried.notices)
}

/// A run that proves.
struct Run<'a> {
    command: &'a str,
    directory: &'a Path,
    started: jiff::Timestamp,
    begin: Instant,
}

impl<'a> Run<'a> {
    fn begin(command: &'a str, directory: &'a Path) -> Run<'a> {
        Run {
            command,
            directory,
            started: jiff::Timestamp::now(),
            begin: Instant::now(),
        }
    }

    /// The document of what was proven; its site and filesystem are those of the first proof.
    fn results(self, proofs: Vec<Proof>, notices: Vec<Notice>) -> Result<Results, Error> {
        let Some(first) = proofs.first() else {
            return Err(Error::Refused("there is nothing to try".into()));
        };
        Ok(Results {
            schema: SCHEMA_NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: self.command.to_owned(),
            started: self.started.to_string(),
            seconds: self.begin.elapsed().as_secs_f64(),
            host: Host::this(),
            directory: self.directory.display().to_string(),
            site: SiteDescription {
                kind: SiteKind::Recorder,
                filesystem_spec: Some(first.results.filesystem_spec.clone()),
                size_bytes: Some(first.results.device_bytes),
                latency: None,
                below: None,
            },
            filesystem: first.filesystem.clone(),
            notices,
            experiments: proofs
                .into_iter()
                .map(|proof| Found::Prove(Box::new(proof.results)))
                .collect(),
        })
    }
}
