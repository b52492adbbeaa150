//! Pieces of work that several threads do at the same time.
//!
//! The caller's thread does them, and helpers that are started for this and have ended when it returns. What fails ends it: no
//! further piece is begun, and those that were begun are waited for. Without helpers the caller does all of them.

use std::panic::resume_unwind;
use std::sync::Arc;

use crate::Error;
use crate::environment::Environment;

struct Progress {
    begun: usize,
    ended: usize,
    failure: Option<Error>,
}

struct Work<E: Environment, W> {
    pieces: usize,
    progress: E::Mutex<Progress>,
    work: W,
}

impl<E: Environment, W: Fn(usize) -> Result<(), Error>> Work<E, W> {
    /// Does one piece after the other that nobody has begun.
    fn take_part(&self) {
        loop {
            let mut progress = E::lock(&self.progress);
            let index = progress.begun;
            if index == self.pieces || progress.failure.is_some() {
                return;
            }
            progress.begun += 1;
            drop(progress);
            let done = (self.work)(index);
            let mut progress = E::lock(&self.progress);
            progress.ended += 1;
            if let Err(error) = done {
                progress.failure.get_or_insert(error);
            }
        }
    }
}

/// Has `work` done for each number below `pieces`, by at most so many threads, which are called by this name.
pub(super) fn together<E: Environment>(
    environment: &E,
    name: &str,
    threads: usize,
    pieces: usize,
    work: impl Fn(usize) -> Result<(), Error> + Send + Sync + 'static,
) -> Result<(), Error> {
    let progress = Progress {
        begun: 0,
        ended: 0,
        failure: None,
    };
    let all = Arc::new(Work::<E, _> {
        pieces,
        progress: E::mutex(progress),
        work,
    });
    let helpers = threads.min(pieces).saturating_sub(1);
    let help = |_| {
        let all = all.clone();
        environment.spawn(name, move || all.take_part()).ok()
    };
    let helpers: Vec<_> = (0..helpers).map_while(help).collect();
    all.take_part();
    helpers.into_iter().for_each(E::join);
    let mut progress = E::lock(&all.progress);
    let failure = progress.failure.take();
    let has_panicked = progress.ended < progress.begun;
    drop(progress);
    if has_panicked {
        // It has told of itself. What it leaves is not trusted, as if it had been the caller.
        resume_unwind(Box::new("a thread of a checkpoint panicked"));
    }
    failure.map_or(Ok(()), Err)
}
