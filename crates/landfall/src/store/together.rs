//! Pieces of work that several threads do at the same time.
//!
//! The caller's thread does them, and helpers, which have done theirs when it returns. What fails ends it: no further piece is begun,
//! and those that were begun are waited for. Without helpers the caller does all of them.
//!
//! Helpers of [`together`] are started for it, and are to allocate little: whoever starts takes any share of the allocator, and what
//! each share once had at its peak it keeps. A [`Helper`] stays, for work that takes memory.

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

impl<E: Environment, W> Work<E, W> {
    fn new(pieces: usize, work: W) -> Arc<Work<E, W>> {
        let progress = Progress {
            begun: 0,
            ended: 0,
            failure: None,
        };
        Arc::new(Work {
            pieces,
            progress: E::mutex(progress),
            work,
        })
    }

    /// What came of it, once nobody takes part any more.
    fn outcome(&self) -> Result<(), Error> {
        let mut progress = E::lock(&self.progress);
        let failure = progress.failure.take();
        let has_panicked = progress.ended < progress.begun;
        drop(progress);
        if has_panicked {
            // It has told of itself. What it leaves is not trusted, as if it had been the caller.
            resume_unwind(Box::new("a thread of a checkpoint panicked"));
        }
        failure.map_or(Ok(()), Err)
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
    let all = Work::<E, _>::new(pieces, work);
    let helpers = threads.min(pieces).saturating_sub(1);
    let help = |_| {
        let all = all.clone();
        environment.spawn(name, move || all.take_part()).ok()
    };
    let helpers: Vec<_> = (0..helpers).map_while(help).collect();
    all.take_part();
    helpers.into_iter().for_each(E::join);
    all.outcome()
}

type Job = Box<dyn FnOnce() + Send>;

struct Inbox {
    /// It has not begun.
    job: Option<Job>,
    is_busy: bool,
    /// No further job is begun.
    is_over: bool,
}

/// A thread that waits for something to help with. One job at a time is given to it.
pub(crate) struct Helper<E: Environment> {
    inbox: E::Mutex<Inbox>,
    changed: E::Condvar,
}

/// That a job has ended, also by a panic, which ends the thread.
struct Ended<'h, E: Environment>(&'h Helper<E>);

impl<E: Environment> Drop for Ended<'_, E> {
    fn drop(&mut self) {
        let mut inbox = E::lock(&self.0.inbox);
        inbox.is_busy = false;
        inbox.is_over |= std::thread::panicking();
        E::notify_all(&self.0.changed);
    }
}

impl<E: Environment> Helper<E> {
    pub fn new() -> Helper<E> {
        Helper {
            inbox: E::mutex(Inbox {
                job: None,
                is_busy: false,
                is_over: false,
            }),
            changed: E::condvar(),
        }
    }

    /// What its thread does, until it is over.
    pub fn work(&self) {
        let mut inbox = E::lock(&self.inbox);
        while !inbox.is_over {
            let Some(job) = inbox.job.take() else {
                inbox = E::wait(&self.changed, inbox);
                continue;
            };
            inbox.is_busy = true;
            drop(inbox);
            let ended = Ended(self);
            job();
            drop(ended);
            inbox = E::lock(&self.inbox);
        }
    }

    /// It begins nothing more.
    pub fn end(&self) {
        let mut inbox = E::lock(&self.inbox);
        inbox.is_over = true;
        inbox.job = None;
        drop(inbox);
        E::notify_all(&self.changed);
    }

    /// Has `work` done for each number below `pieces`, by this thread and the helper's.
    pub fn together(
        &self,
        pieces: usize,
        work: impl Fn(usize) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let all = Work::<E, _>::new(pieces, work);
        if pieces > 1 {
            let theirs = all.clone();
            let mut inbox = E::lock(&self.inbox);
            assert!(inbox.job.is_none() && !inbox.is_busy, "one job at a time");
            inbox.job = Some(Box::new(move || theirs.take_part()));
            E::notify_all(&self.changed);
        }
        all.take_part();
        let mut inbox = E::lock(&self.inbox);
        // If it has not begun there is nothing left for it.
        inbox.job = None;
        while inbox.is_busy {
            inbox = E::wait(&self.changed, inbox);
        }
        drop(inbox);
        all.outcome()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::environment::System;
    use crate::fuzzing::memory::Memory;

    type Own = Helper<System<Memory>>;

    /// With a helper whose thread runs, and ends with it.
    fn with_helper(test: impl FnOnce(&Arc<Own>)) {
        let helper = Arc::new(Own::new());
        let own = helper.clone();
        let thread = thread::spawn(move || own.work());
        test(&helper);
        helper.end();
        let _ = thread.join();
    }

    #[test]
    fn two_threads_do_it_again_and_again() {
        with_helper(|helper| {
            for _ in 0..3 {
                // Each piece waits until the other one was begun.
                let both = Arc::new(Barrier::new(2));
                let meet = move |_| {
                    both.wait();
                    Ok(())
                };
                helper.together(2, meet).unwrap();
            }
            let failing = |index| Err(Error::broken(if index == 0 { "first" } else { "other" }));
            assert!(helper.together(1, failing).is_err());
        });
    }

    #[test]
    fn a_helper_that_panics_is_told_of_and_missed() {
        with_helper(|helper| {
            let both = Arc::new(Barrier::new(2));
            let caller = thread::current().id();
            let panicking = move |_| {
                both.wait();
                assert!(thread::current().id() == caller, "as planned");
                Ok(())
            };
            let told = catch_unwind(AssertUnwindSafe(|| helper.together(2, panicking)));
            assert!(told.is_err());
            let done = Arc::new(System::<Memory>::mutex(0));
            let own = done.clone();
            let count = move |_| {
                *System::<Memory>::lock(&own) += 1;
                Ok(())
            };
            helper.together(5, count).unwrap();
            assert_eq!(*System::<Memory>::lock(&done), 5);
        });
    }
}
