//! What an experiment timed, held against power cuts: a subject that writes in the same way, on a recorder.

use landfall_prove::scratch_fs::{self, FilesystemSpec, like};
use landfall_prove::{Offer, Plan, Silent, prove};
use landfall_results::SeriesProof;
use landfall_results::proof::{Outcome, ProofResults, summary_text};

use crate::{Error, Site, Stop};

/// Transactions of a proof, if its threads are few.
pub(crate) const TRANSACTIONS: u64 = 24;

/// The filesystem that is proven on what was measured on `site`: the same where one was made, else
/// one of the same type and options; and whether anything can be proven at all, found out before an
/// hour of measuring.
pub(crate) fn filesystem_like(site: &Site) -> Result<FilesystemSpec, Error> {
    let filesystem_spec = match site.filesystem_spec() {
        Some(filesystem_spec) => FilesystemSpec {
            size: None,
            ..filesystem_spec.clone()
        },
        None => like(site.filesystem()).map_err(|why| {
            Error::Refused(format!(
                "nothing can be proven here: {why}; measure without --prove, or with --on recorder:ext4"
            ))
        })?,
    };
    require_recorder(site)?;
    Ok(filesystem_spec)
}

/// Refused where nothing can be proven, whatever the filesystem.
pub(crate) fn require_recorder(site: &Site) -> Result<(), Error> {
    scratch_fs::require_recorder(site.directory(), Offer::Flushes)
}

/// Proves a subject with these settings and so many transactions, with at most `states` crash states, on a filesystem
/// like that of `site`. One that fails is not proven, and no reason to lose what was timed.
pub(crate) fn of(
    subject: &str,
    settings: &[(String, String)],
    site: &Site,
    filesystem_spec: &FilesystemSpec,
    transactions: u64,
    states: usize,
    stop: &Stop,
) -> Result<SeriesProof, Error> {
    let proven = Plan::named(subject, settings, filesystem_spec.clone()).and_then(|plan| {
        let plan = Plan {
            directory: site.directory().to_owned(),
            transactions,
            states,
            ..plan
        };
        prove(&plan, stop, &mut Silent)
    });
    match proven {
        Ok(proof) => Ok(of_series(filesystem_spec, &proof.results)),
        Err(error) => Ok(not_proven(filesystem_spec, &reason(error, stop)?)),
    }
}

/// Why nothing was proven: a size that no subject has, what a filesystem on a recorder lacks, a machine that failed.
/// A request to stop is none.
pub(crate) fn reason(error: Error, stop: &Stop) -> Result<String, Error> {
    match error {
        Error::Stopped => Err(error),
        // Most likely that is why.
        _ if stop.is_requested() => Err(Error::Stopped),
        error => Ok(error.to_string()),
    }
}

/// What a proof says of who wrote. What fails without an acknowledged write missing, such as a filesystem that does not work, is no
/// less a failure.
fn of_series(filesystem_spec: &FilesystemSpec, proof: &ProofResults) -> SeriesProof {
    SeriesProof {
        filesystem_spec: FilesystemSpec {
            size: None,
            ..filesystem_spec.clone()
        },
        states: proof.coverage.checked,
        losing: proof.losing_states.max(proof.failing_states),
        worst_lost: proof.worst_lost,
        not_proven: (proof.outcome() == Outcome::NotProven).then(|| summary_text::verdict(proof)),
    }
}

/// Nothing was proven, and why.
pub(crate) fn not_proven(filesystem_spec: &FilesystemSpec, why: &str) -> SeriesProof {
    SeriesProof {
        filesystem_spec: filesystem_spec.clone(),
        states: 0,
        losing: 0,
        worst_lost: 0,
        not_proven: Some(why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::Ordering;

    use landfall_results::proof::fixtures::failing;

    use super::*;

    #[test]
    fn a_proof_that_fails_has_a_reason_unless_somebody_asked_to_stop() {
        let stop = Stop::default();
        let failed = || Error::io("cannot run it")(io::Error::from(io::ErrorKind::InvalidData));
        let why = reason(failed(), &stop).unwrap();
        assert!(why.starts_with("cannot run it: "), "{why}");
        assert!(matches!(reason(Error::Stopped, &stop), Err(Error::Stopped)));
        stop.flag().store(true, Ordering::Relaxed);
        assert!(matches!(reason(failed(), &stop), Err(Error::Stopped)));
    }

    #[test]
    fn a_filesystem_that_does_not_work_is_no_proof_that_nothing_is_lost() {
        let mut proof = failing();
        (proof.failing_states, proof.losing_states, proof.worst_lost) = (3, 0, 0);
        let series = of_series(&proof.filesystem_spec, &proof);
        assert_eq!((series.losing, series.lost_nothing()), (3, false));
    }
}
