//! Where threads wait for an event without a lock.
//!
//! Who is woken need not take a lock to see why: when many threads are woken at once, and each took the
//! lock first, most would go to sleep again for that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::environment::Environment;

pub(crate) struct EventCount<E: Environment> {
    epochs: E::Epochs,
    waiting: AtomicU32,
}

/// The right to wait: taken with the lock held under which what is waited for was looked at.
#[must_use = "who has one is counted as waiting"]
pub(crate) struct Ticket(u32);

impl<E: Environment> EventCount<E> {
    pub fn new() -> EventCount<E> {
        EventCount {
            epochs: E::epochs(),
            waiting: AtomicU32::new(0),
        }
    }

    /// From here on no event is missed.
    pub fn ticket(&self) -> Ticket {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Ticket(E::epoch(&self.epochs))
    }

    /// Waits for an event, for so long at most, and now and then returns without reason.
    pub fn wait(&self, ticket: Ticket, at_most: Option<Duration>) {
        E::wait_for_epoch(&self.epochs, ticket.0, at_most);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// How many have the right to wait.
    #[cfg(test)]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Wakes one at least, if any waits.
    pub fn notify_one(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            E::raise_for_one(&self.epochs);
        }
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            E::raise_for_all(&self.epochs);
        }
    }
}
