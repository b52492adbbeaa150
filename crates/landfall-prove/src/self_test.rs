//! The prover's teeth: what is known to be safe, and faults that it must catch.
//!
//! A case whose filesystem or call is missing on this machine is refused, not passed over.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Instant;

use landfall_results::proof::{Expectation, Violation};
use landfall_results::{Notice, Weight};

use crate::cases::{CASES, Case};
use crate::cluster::{ClusterCase, prove_cluster};
use crate::progress::Silent;
use crate::{Enough, Error, Progress, Proof, Stop, prove, subjects};

/// Cases that are tried at the same time: one records, or waits for a server, while the states of the other are checked.
const TOGETHER: usize = 2;

/// What came of all cases.
pub struct SelfTest {
    /// Of each what it came to, and what it should.
    pub proofs: Vec<Proof>,
    /// Cases that this machine cannot try.
    pub notices: Vec<Notice>,
}

/// Why there is no proof of a case.
enum Untried {
    /// It cannot be tried here: which it is, and why.
    NotHere(String, String),
    Failed(Error),
}

/// Tries every case; mount points, and what does not fit into memory, go to `directory`, or else to the system's
/// temporary directory.
pub fn run(
    directory: Option<&Path>,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<SelfTest, Error> {
    let of_disks = CASES.iter().filter(|case| case.in_self_test);
    let cases: Vec<Known> = of_disks
        .map(Known::OfDisk)
        .chain(ClusterCase::all().map(Known::OfCluster))
        .collect();
    let begin = Instant::now();
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut tried: Vec<Option<Result<Proof, Untried>>> = cases.iter().map(|_| None).collect();
    thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..TOGETHER {
            let (cases, next, is_over) = (&cases, &next, &is_over);
            let sender: Sender<(usize, Result<Proof, Untried>)> = sender.clone();
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    let proof = case.try_it(directory, stop);
                    if matches!(proof, Err(Untried::Failed(_))) {
                        is_over.store(true, Ordering::Relaxed);
                    }
                    let _ = sender.send((index, proof));
                }
            });
        }
        drop(sender);
        let mut done = 0;
        progress.doing("trying what is known", 0, cases.len(), Default::default());
        for (index, proof) in receiver {
            tried[index] = Some(proof);
            done += 1;
            let left = begin.elapsed() / done * (cases.len() as u32 - done);
            progress.doing("trying what is known", done as usize, cases.len(), left);
        }
    });
    let (mut proofs, mut notices) = (Vec::new(), Vec::new());
    let mut first_reason = None;
    for (case, tried) in cases.iter().zip(tried) {
        match tried {
            Some(Ok(proof)) => proofs.push(proof),
            Some(Err(Untried::NotHere(name, why))) => {
                let text = format!("{name} on {} was not tried: {why}.", case.filesystem());
                notices.push(Notice::new("not-tried", Weight::Warning, text));
                first_reason.get_or_insert(why);
            }
            Some(Err(Untried::Failed(error))) => return Err(error),
            // Another one failed before.
            None => {}
        }
    }
    match first_reason.filter(|_| proofs.is_empty()) {
        // Where not even one can be tried, the reason is no notice.
        Some(why) => Err(Error::Refused(why)),
        None => Ok(SelfTest { proofs, notices }),
    }
}

/// What is known: of one disk, or of those of a cluster.
enum Known {
    OfDisk(&'static Case),
    OfCluster(ClusterCase),
}

impl Known {
    fn filesystem(&self) -> &'static str {
        match self {
            Known::OfDisk(case) => case.filesystem,
            Known::OfCluster(_) => ClusterCase::FILESYSTEM,
        }
    }

    fn try_it(&self, directory: Option<&Path>, stop: &Stop) -> Result<Proof, Untried> {
        match self {
            Known::OfDisk(case) => try_case(case, directory, stop),
            Known::OfCluster(case) => {
                let plan = case.plan(directory).map_err(Untried::Failed)?;
                let name = plan.subject.name().to_string();
                let proof = prove_cluster(&plan, stop, &mut Silent);
                as_expected(proof, name, case.expected)
            }
        }
    }
}

fn try_case(case: &Case, directory: Option<&Path>, stop: &Stop) -> Result<Proof, Untried> {
    if !subjects::list().any(|known| known.name == case.subject) {
        let why = "it is left out of this build".to_owned();
        return Err(Untried::NotHere(case.subject.to_owned(), why));
    }
    let mut plan = case.plan(directory).map_err(Untried::Failed)?;
    if let Some(violation) = sign(case) {
        plan.enough = Enough::FirstWith(violation);
        // Not those besides that another worker was quicker with.
        plan.workers = Some(1);
    }
    let name = plan.subject.name().to_string();
    as_expected(prove(&plan, stop, &mut Silent), name, case.expected)
}

/// What is enough to have been seen once, if anything is, in a state that one power cut has left.
fn sign(case: &Case) -> Option<Violation> {
    match case.expected {
        _ if case.second_cuts > 0 => None,
        Expectation::LosesNothing | Expectation::LosesOnlyLast => None,
        Expectation::Loses => Some(Violation::Lost),
        Expectation::Tears => Some(Violation::HalfApplied),
        Expectation::Damages => Some(Violation::Damaged),
    }
}

fn as_expected(
    proof: Result<Proof, Error>,
    name: String,
    expected: Expectation,
) -> Result<Proof, Untried> {
    match proof {
        Ok(mut proof) => {
            proof.results.expected = Some(expected);
            Ok(proof)
        }
        Err(Error::Refused(why) | Error::Subject(why)) => Err(Untried::NotHere(name, why)),
        Err(error) => Err(Untried::Failed(error)),
    }
}
