//! Pieces of work that several threads do at the same time.
//!
//! The caller's thread does them, and helpers, which have done theirs when it returns. What fails ends it: no further piece is begun,
//! and those that were begun are waited for. Without helpers the caller does all of them.
//!
//! Helpers of [`together`] are started for it, and are to allocate little: whoever starts takes any share of the allocator, and what
//! each share once had at its peak it keeps. [`Helpers`] stay: for work that takes memory, or that comes often.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;

use crate::Error;
use crate::environment::{Environment, planted};

#[derive(Default)]
struct Progress {
    begun: usize,
    ended: usize,
    failure: Option<Error>,
    has_panicked: bool,
}

struct Work<E: Environment, W> {
    #[cfg(any(test, feature = "mistakes"))]
    environment: E,
    pieces: usize,
    progress: E::Mutex<Progress>,
    /// All that were begun have ended.
    ended: E::Condvar,
    work: W,
}

/// That a piece has ended, also by a panic.
struct Piece<'w, E: Environment, W>(&'w Work<E, W>);

impl<E: Environment, W> Drop for Piece<'_, E, W> {
    fn drop(&mut self) {
        let mut progress = E::lock(&self.0.progress);
        progress.ended += 1;
        progress.has_panicked |= std::thread::panicking();
        if progress.ended == progress.begun {
            E::notify_all(&self.0.ended);
        }
    }
}

/// What others may help with.
trait Job: Send + Sync {
    /// Does one piece after the other that nobody has begun.
    fn take_part(&self);
}

impl<E: Environment, W: Fn(usize) -> Result<(), Error> + Send + Sync> Job for Work<E, W> {
    fn take_part(&self) {
        loop {
            let mut progress = E::lock(&self.progress);
            let index = progress.begun;
            // Who comes late finds it so, too: nothing is begun any more once the caller has gone on.
            if index == self.pieces || progress.failure.is_some() || progress.has_panicked {
                return;
            }
            progress.begun += 1;
            drop(progress);
            let piece = Piece(self);
            if let Err(error) = (self.work)(index) {
                E::lock(&self.progress).failure.get_or_insert(error);
            }
            drop(piece);
        }
    }
}

impl<E: Environment, W> Work<E, W> {
    fn new(environment: &E, pieces: usize, work: W) -> Arc<Work<E, W>> {
        #[cfg(not(any(test, feature = "mistakes")))]
        let _ = environment;
        Arc::new(Work {
            #[cfg(any(test, feature = "mistakes"))]
            environment: environment.clone(),
            pieces,
            progress: E::mutex(Progress::default()),
            ended: E::condvar(),
            work,
        })
    }

    /// What came of it, once all pieces that were begun have ended.
    fn outcome(&self) -> Result<(), Error> {
        let mut progress = E::lock(&self.progress);
        while progress.ended < progress.begun {
            progress = E::wait(&self.ended, progress);
        }
        let failure = progress.failure.clone();
        if planted!(self.environment, LateHelper) {
            progress.failure = None;
        }
        let has_panicked = progress.has_panicked;
        drop(progress);
        if has_panicked {
            // It has told of itself. What it leaves is not trusted, as if it had been the caller.
            resume_unwind(Box::new("a thread of the store panicked"));
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
    let all = Work::new(environment, pieces, work);
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

struct Inbox {
    /// Which nobody has begun to help with: one for each helper that is wanted.
    jobs: VecDeque<Arc<dyn Job>>,
    /// No further job is begun.
    is_over: bool,
}

/// Threads that wait for something to help with, at most so many. Those that have panicked are missed.
pub(crate) struct Helpers<E: Environment> {
    most: usize,
    inbox: E::Mutex<Inbox>,
    changed: E::Condvar,
}

impl<E: Environment> Helpers<E> {
    pub fn new(most: usize) -> Helpers<E> {
        Helpers {
            most,
            inbox: E::mutex(Inbox {
                jobs: VecDeque::new(),
                is_over: false,
            }),
            changed: E::condvar(),
        }
    }

    /// What each of the threads does, until it is over.
    pub fn work(&self) {
        let mut inbox = E::lock(&self.inbox);
        while !inbox.is_over {
            let Some(job) = inbox.jobs.pop_front() else {
                inbox = E::wait(&self.changed, inbox);
                continue;
            };
            drop(inbox);
            job.take_part();
            drop(job);
            inbox = E::lock(&self.inbox);
        }
    }

    /// They begin nothing more.
    pub fn end(&self) {
        let mut inbox = E::lock(&self.inbox);
        inbox.is_over = true;
        let jobs = std::mem::take(&mut inbox.jobs);
        drop(inbox);
        E::notify_all(&self.changed);
        drop(jobs);
    }

    /// Has `work` done for each number below `pieces`, by this thread and those of the helpers that are free.
    pub fn together(
        &self,
        environment: &E,
        pieces: usize,
        work: impl Fn(usize) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let all = Work::new(environment, pieces, work);
        let wanted = self.most.min(pieces.saturating_sub(1));
        let is_own = |job: &Arc<dyn Job>| std::ptr::addr_eq(Arc::as_ptr(job), Arc::as_ptr(&all));
        if wanted > 0 {
            let mut inbox = E::lock(&self.inbox);
            if !inbox.is_over {
                inbox
                    .jobs
                    .extend((0..wanted).map(|_| all.clone() as Arc<dyn Job>));
            }
            drop(inbox);
            (0..wanted).for_each(|_| E::notify_one(&self.changed));
        }
        all.take_part();
        if wanted > 0 {
            // There is nothing left for those that have not begun.
            E::lock(&self.inbox).jobs.retain(|job| !is_own(job));
        }
        all.outcome()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::thread;

    use super::*;
    use crate::environment::System;
    use crate::fuzzing::memory::Memory;

    type Own = Helpers<System<Memory>>;

    fn machine() -> System<Memory> {
        System::new(Memory::new(BTreeMap::new()))
    }

    /// With a helper whose thread runs, and ends with it.
    fn with_helper(test: impl FnOnce(&Arc<Own>)) {
        let helper = Arc::new(Own::new(1));
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
                helper.together(&machine(), 2, meet).unwrap();
            }
            let failing = |index| Err(Error::broken(if index == 0 { "first" } else { "other" }));
            assert!(helper.together(&machine(), 1, failing).is_err());
        });
    }

    #[test]
    fn who_comes_late_begins_nothing() {
        let begun = Arc::new(System::<Memory>::mutex(0));
        let own = begun.clone();
        let failing = move |_| {
            *System::<Memory>::lock(&own) += 1;
            Err(Error::broken("the first"))
        };
        let all = Work::new(&machine(), 3, failing);
        all.take_part();
        assert!(all.outcome().is_err());
        // As a helper that had the job, and did not run until now.
        all.take_part();
        assert_eq!(*System::<Memory>::lock(&begun), 1);
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
            let told = catch_unwind(AssertUnwindSafe(|| {
                helper.together(&machine(), 2, panicking)
            }));
            assert!(told.is_err());
            let done = Arc::new(System::<Memory>::mutex(0));
            let own = done.clone();
            let count = move |_| {
                *System::<Memory>::lock(&own) += 1;
                Ok(())
            };
            helper.together(&machine(), 5, count).unwrap();
            assert_eq!(*System::<Memory>::lock(&done), 5);
        });
    }
}
