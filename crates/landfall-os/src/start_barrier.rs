//! The start of a trial: threads wait until all may begin at once.
//!
//! Unlike the standard library's barrier it can be called off, when the system does not give as many threads as asked for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Where threads wait until all of them may begin at once.
#[derive(Default)]
pub struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    /// Whether those who waited may go; undecided at first.
    go: Option<bool>,
}

impl StartBarrier {
    /// Waits until the barrier opens; `false` when it was called off.
    pub fn pass(&self) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        self.changed.notify_all();
        loop {
            match state.go {
                Some(go) => return go,
                None => state = self.wait(state),
            }
        }
    }

    /// Opens the barrier when this many wait at it, right after doing `ready`.
    pub fn open<T>(&self, waiting: usize, ready: impl FnOnce() -> T) -> T {
        let mut state = self.lock();
        while state.waiting < waiting {
            state = self.wait(state);
        }
        let told = ready();
        state.go = Some(true);
        self.changed.notify_all();
        told
    }

    /// Sends all away who wait or will come.
    pub fn call_off(&self) {
        self.lock().go = Some(false);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn nobody_passes_before_all_are_there_and_ready() {
        let barrier = StartBarrier::default();
        let ready = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    assert!(barrier.pass());
                    assert!(ready.load(Ordering::SeqCst));
                });
            }
            barrier.open(8, || ready.store(true, Ordering::SeqCst));
        });
    }

    #[test]
    fn a_barrier_that_is_called_off_lets_nobody_wait() {
        let barrier = StartBarrier::default();
        std::thread::scope(|scope| {
            let early = scope.spawn(|| barrier.pass());
            barrier.call_off();
            assert!(!early.join().unwrap());
            assert!(!barrier.pass());
        });
    }
}
