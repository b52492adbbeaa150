//! What an experiment timed, held against power cuts: a subject that writes in the same way, on a recorder.

use landfall_prove::scratch_fs::{self, FilesystemSpec, like};
use landfall_prove::{Offer, Plan, Silent, prove};
use landfall_results::SeriesProof;
use landfall_results::proof::{Outcome, ProofResults, summary_text};

use crate::{Error, Notice, Results, Site, Stop, Weight};

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
    let plan = Plan {
        directory: site.directory().to_owned(),
        transactions,
        states,
        ..Plan::named(subject, settings, filesystem_spec.clone())?
    };
    let proof = prove(&plan, stop, &mut Silent)?;
    Ok(of_series(filesystem_spec, &proof.results))
}

/// The same proof, of the series of this name; one that failed is not proven, and no reason to lose what was timed.
pub(crate) fn or_not_proven(
    proven: Result<SeriesProof, Error>,
    filesystem_spec: &FilesystemSpec,
    name: &str,
    stop: &Stop,
    notices: &mut Vec<Notice>,
) -> Result<SeriesProof, Error> {
    proven.or_else(|error| {
        let why = reason(error, name, stop, notices)?;
        Ok(not_proven(filesystem_spec, &why))
    })
}

/// Why nothing was proven of what has this name: a size that no subject has, what a filesystem on a recorder lacks, a
/// machine that failed. The last is noticed too, each reason once, since the run has failed then. A request to stop is
/// no reason.
pub(crate) fn reason(
    error: Error,
    name: &str,
    stop: &Stop,
    notices: &mut Vec<Notice>,
) -> Result<String, Error> {
    let has_failed = match error {
        Error::Stopped => return Err(Error::Stopped),
        // Most likely that is why.
        _ if stop.is_requested() => return Err(Error::Stopped),
        Error::Io { .. } => true,
        Error::Usage(_) | Error::Refused(_) | Error::Subject(_) => false,
    };
    let why = error.to_string();
    let ending = format!(" could not be proven: {why}.");
    let is_said = |known: &Notice| known.code == Results::FAILED && known.text.ends_with(&ending);
    if has_failed && !notices.iter().any(is_said) {
        let text = format!("{name}{ending}");
        let notice = Notice::new(Results::FAILED, Weight::Warning, text);
        notices.push(notice.because("What was timed stands."));
    }
    Ok(why)
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
fn not_proven(filesystem_spec: &FilesystemSpec, why: &str) -> SeriesProof {
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
        let of = |error, stop: &Stop| reason(error, "a", stop, &mut Vec::new());
        let why = of(failed(), &stop).unwrap();
        assert!(why.starts_with("cannot run it: "), "{why}");
        assert!(matches!(of(Error::Stopped, &stop), Err(Error::Stopped)));
        stop.flag().store(true, Ordering::Relaxed);
        assert!(matches!(of(failed(), &stop), Err(Error::Stopped)));
    }

    #[test]
    fn that_a_machine_failed_is_noticed_once_and_what_was_refused_is_not() {
        let stop = Stop::default();
        let filesystem = failing().filesystem_spec;
        let mut notices = Vec::new();
        let mut not_proven = |name: &str, error| {
            let proof = or_not_proven(Err(error), &filesystem, name, &stop, &mut notices);
            assert!(proof.unwrap().not_proven.is_some());
        };
        not_proven("a", Error::Refused("there is no FUSE".to_owned()));
        not_proven("b", Error::Subject("is not installed".to_owned()));
        for name in ["c", "d"] {
            let error = io::Error::from(io::ErrorKind::InvalidData);
            not_proven(name, Error::io("cannot run it")(error));
        }
        let [failed] = notices.as_slice() else {
            panic!("{notices:?}");
        };
        assert_eq!(failed.code, Results::FAILED);
        let words = "c could not be proven: cannot run it: ";
        assert!(failed.text.starts_with(words), "{failed:?}");
    }

    #[test]
    fn a_filesystem_that_does_not_work_is_no_proof_that_nothing_is_lost() {
        let mut proof = failing();
        (proof.failing_states, proof.losing_states, proof.worst_lost) = (3, 0, 0);
        let series = of_series(&proof.filesystem_spec, &proof);
        assert_eq!((series.losing, series.lost_nothing()), (3, false));
    }
}
