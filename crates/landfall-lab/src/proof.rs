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
/// like that of `site`.
pub(crate) fn of(
    subject: &str,
    settings: &[(String, String)],
    site: &Site,
    filesystem_spec: &FilesystemSpec,
    transactions: u64,
    states: usize,
    stop: &Stop,
) -> Result<SeriesProof, Error> {
    let plan = match Plan::named(subject, settings, filesystem_spec.clone()) {
        Ok(plan) => plan,
        // A size that no subject has, say.
        Err(Error::Usage(why)) => return Ok(not_proven(filesystem_spec, &why)),
        Err(error) => return Err(error),
    };
    let plan = Plan {
        directory: site.directory().to_owned(),
        transactions,
        states,
        ..plan
    };
    let proof = match prove(&plan, stop, &mut Silent) {
        Ok(proof) => proof.results,
        // This filesystem on the recorder lacks what the site has, or has not the room for it.
        Err(Error::Refused(why) | Error::Subject(why)) => {
            return Ok(not_proven(filesystem_spec, &why));
        }
        Err(error) => return Err(error),
    };
    Ok(of_series(filesystem_spec, &proof))
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
    use landfall_results::proof::fixtures::failing;

    use super::*;

    #[test]
    fn a_filesystem_that_does_not_work_is_no_proof_that_nothing_is_lost() {
        let mut proof = failing();
        (proof.failing_states, proof.losing_states, proof.worst_lost) = (3, 0, 0);
        let series = of_series(&proof.filesystem_spec, &proof);
        assert_eq!((series.losing, series.lost_nothing()), (3, false));
    }
}
