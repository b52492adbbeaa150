//! A condition that costs nothing to signal when nobody waits for it.
//!
//! The number of those who wait is changed with the lock held, as is what they wait for: whoever changes
//! that, and then sees nobody, has come before any of them looked.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::environment::Environment;

pub(crate) struct Waiters<E: Environment> {
    condvar: E::Condvar,
    waiting: AtomicU32,
}

impl<E: Environment> Waiters<E> {
    pub fn new() -> Waiters<E> {
        Waiters {
            condvar: E::condvar(),
            waiting: AtomicU32::new(0),
        }
    }

    /// Waits until somebody says so, and now and then without reason.
    pub fn wait<'a, T: Send + 'static>(&self, guard: E::Guard<'a, T>) -> E::Guard<'a, T> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let guard = E::wait(&self.condvar, guard);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        guard
    }

    /// Wakes one, if any waits.
    pub fn wake_one(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            E::notify_one(&self.condvar);
        }
    }

    /// Wakes all.
    pub fn wake_all(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            E::notify_all(&self.condvar);
        }
    }
}
