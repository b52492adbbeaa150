//! The prover's teeth: what is known to be safe, and faults that it must catch.
//!
//! A case whose filesystem or call is missing on this machine is refused, not passed over.

use std::path::Path;

use landfall_results::{Notice, Weight};

use crate::cases::CASES;
use crate::{Error, Progress, Proof, Stop, prove, subjects};

/// What came of all cases.
pub struct SelfTest {
    /// Of each what it came to, and what it should.
    pub proofs: Vec<Proof>,
    /// Cases that this machine cannot try.
    pub notices: Vec<Notice>,
}

/// Tries every case; mount points, and what does not fit into memory, go to `directory`, or else to the system's
/// temporary directory.
pub fn run(
    directory: Option<&Path>,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<SelfTest, Error> {
    let mut proofs = Vec::new();
    let mut notices = Vec::new();
    for case in CASES.iter().filter(|case| case.in_self_test) {
        let mut not_tried = |name: &str, why: &str| {
            let text = format!("{name} on {} was not tried: {why}.", case.filesystem);
            notices.push(Notice::new("not-tried", Weight::Warning, text));
        };
        if !subjects::list().any(|known| known.name == case.subject) {
            not_tried(case.subject, "it is left out of this build");
            continue;
        }
        let plan = case.plan(directory)?;
        match prove(&plan, stop, progress) {
            Ok(mut proof) => {
                proof.results.expected = Some(case.expected);
                proofs.push(proof);
            }
            // Where not even the first can be tried, nothing can.
            Err(Error::Refused(why) | Error::Subject(why)) if !proofs.is_empty() => {
                not_tried(&plan.subject.name().to_string(), &why);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(SelfTest { proofs, notices })
}
