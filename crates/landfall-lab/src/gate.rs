//! The start of a trial: workers wait at a gate that opens for all at once.
//!
//! Unlike a barrier it can be called off, when the system does not give as many threads as asked for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    /// Whether those who waited may go; undecided at first.
    go: Option<bool>,
}

impl Gate {
    /// Waits until the gate opens; `false` when it was called off.
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

    /// Opens the gate when this many wait at it, right after doing `ready`.
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
        let gate = Gate::default();
        let ready = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    assert!(gate.pass());
                    assert!(ready.load(Ordering::SeqCst));
                });
            }
            gate.open(8, || ready.store(true, Ordering::SeqCst));
        });
    }

    #[test]
    fn a_gate_that_is_called_off_lets_nobody_wait() {
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let early = scope.spawn(|| gate.pass());
            gate.call_off();
            assert!(!early.join().unwrap());
            assert!(!gate.pass());
        });
    }
}
