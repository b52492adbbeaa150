//! Where threads wait for their group, without a lock.
//!
//! Who is let through need not take a lock to see why: when many threads are woken at once, and each took the
//! lock first, most would go to sleep again for that.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::environment::Environment;

pub(crate) struct Gate<E: Environment> {
    gate: E::Gate,
    waiting: AtomicU32,
}

/// The right to wait: taken with the lock held under which what is waited for was looked at.
#[must_use = "who has one is counted as waiting"]
pub(crate) struct Ticket(u32);

impl<E: Environment> Gate<E> {
    pub fn new() -> Gate<E> {
        Gate {
            gate: E::gate(),
            waiting: AtomicU32::new(0),
        }
    }

    /// From here on no opening is missed.
    pub fn ticket(&self) -> Ticket {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Ticket(E::openings(&self.gate))
    }

    /// Waits until it is opened, for so long at most, and now and then returns without reason.
    pub fn wait(&self, ticket: Ticket, at_most: Option<Duration>) {
        E::wait_at(&self.gate, ticket.0, at_most);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Lets one through at least, if any waits.
    pub fn open_for_one(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            E::open_for_one(&self.gate);
        }
    }

    /// Lets all through.
    pub fn open_for_all(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            E::open_for_all(&self.gate);
        }
    }
}
