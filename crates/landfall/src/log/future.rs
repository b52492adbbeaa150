//! A commit as a future, for whatever runtime there is.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use crate::{Error, Lsn};

/// Ready when a record is durable, or never will be by its handle.
///
/// Nothing is undone when it is dropped: the record stays appended.
///
/// Whichever thread wrote the record wakes the task, perhaps in the middle of a checkpoint. A waker must leave it at that, as
/// those of executors do: one that runs or drops the task in place, which then uses the log or the store, may wait for itself.
#[derive(Debug)]
#[must_use = "the record is durable when this is ready"]
pub struct Commit(Arc<Mutex<Slot>>);

#[derive(Debug)]
enum Slot {
    Pending(Option<Waker>),
    Done(Result<Lsn, Error>),
}

impl Commit {
    /// The future, and what makes it ready.
    pub(crate) fn new() -> (Commit, impl FnOnce(Result<Lsn, Error>) + Send + 'static) {
        let slot = Arc::new(Mutex::new(Slot::Pending(None)));
        let done = slot.clone();
        let done = move |result| {
            let mut slot = done.lock().unwrap_or_else(PoisonError::into_inner);
            let before = std::mem::replace(&mut *slot, Slot::Done(result));
            drop(slot);
            if let Slot::Pending(Some(waker)) = before {
                waker.wake();
            }
        };
        (Commit(slot), done)
    }

    /// One that is ready.
    pub(crate) fn ready(lsn: Lsn) -> Commit {
        Commit(Arc::new(Mutex::new(Slot::Done(Ok(lsn)))))
    }

    /// Waits until the record is durable, for programs that have no runtime.
    pub fn wait(mut self) -> Result<Lsn, Error> {
        let waker = Waker::from(Arc::new(Parked(thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }
}

/// A thread that waits.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Future for Commit {
    type Output = Result<Lsn, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *slot {
            Slot::Done(result) => Poll::Ready(result.clone()),
            Slot::Pending(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
