//! What the engine's subjects share: what its errors mean to a proof.

use crate::subject::{Recovered, SubjectError};

/// What keeps a subject from being run is no finding.
pub(super) fn cannot(error: landfall::Error) -> SubjectError {
    SubjectError(error.to_string())
}

/// What was found after a power cut. Whatever the engine refuses then is damage, but for a device that is too small.
pub(super) fn recovered(
    found: Result<Recovered, landfall::Error>,
) -> Result<Recovered, SubjectError> {
    match found {
        Ok(found) => Ok(found),
        Err(landfall::Error::NoSpace { .. }) => Err(SubjectError(
            "there is no space for a segment: make the filesystem larger with size=".into(),
        )),
        Err(error) => Ok(Recovered::damaged(error.to_string())),
    }
}
