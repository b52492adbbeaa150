//! From one thread to another: what the first has filled the second uses, and gives back to be filled again.
//!
//! As many things go round as were put in at the beginning, so memory is bounded, and who is faster waits. The first ends
//! it when there is no more; the second when it can use no more, and the first is told so.

use std::collections::VecDeque;

use crate::environment::Environment;
use crate::log::waiters::Waiters;

pub(super) struct HandOver<E: Environment, T: Send + 'static> {
    between: E::Mutex<Between<T>>,
    changed: Waiters<E>,
}

struct Between<T> {
    full: VecDeque<T>,
    empty: Vec<T>,
    /// No more is put in.
    is_complete: bool,
    /// No more is taken out.
    is_refused: bool,
}

impl<E: Environment, T: Send + 'static> HandOver<E, T> {
    pub fn new(empty: Vec<T>) -> HandOver<E, T> {
        let between = Between {
            full: VecDeque::new(),
            empty,
            is_complete: false,
            is_refused: false,
        };
        HandOver {
            between: E::mutex(between),
            changed: Waiters::new(),
        }
    }

    /// One to be filled; `None`: nobody would use it.
    pub fn empty(&self) -> Option<T> {
        let mut between = E::lock(&self.between);
        loop {
            if between.is_refused {
                return None;
            }
            if let Some(empty) = between.empty.pop() {
                return Some(empty);
            }
            between = self.changed.wait(between);
        }
    }

    /// Hands over one that was filled.
    pub fn put(&self, full: T) {
        E::lock(&self.between).full.push_back(full);
        self.changed.wake_all();
    }

    /// The next one that was filled; `None`: that was all.
    pub fn take(&self) -> Option<T> {
        let mut between = E::lock(&self.between);
        loop {
            if let Some(full) = between.full.pop_front() {
                return Some(full);
            }
            if between.is_complete {
                return None;
            }
            between = self.changed.wait(between);
        }
    }

    /// Gives one back that was used.
    pub fn give_back(&self, used: T) {
        E::lock(&self.between).empty.push(used);
        self.changed.wake_all();
    }

    /// No more is put in.
    pub fn complete(&self) {
        E::lock(&self.between).is_complete = true;
        self.changed.wake_all();
    }

    /// Says when it is dropped that no more is put in: also by a thread that panics, for which nobody must wait for ever.
    pub fn completing(&self) -> Completing<'_, E, T> {
        Completing(self)
    }

    /// No more is taken out.
    pub fn refuse(&self) {
        E::lock(&self.between).is_refused = true;
        self.changed.wake_all();
    }
}

/// What whoever fills holds as long as there may be more.
pub(super) struct Completing<'a, E: Environment, T: Send + 'static>(&'a HandOver<E, T>);

impl<E: Environment, T: Send + 'static> Drop for Completing<'_, E, T> {
    fn drop(&mut self) {
        self.0.complete();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::environment::Machine;

    #[test]
    fn nobody_waits_for_a_thread_that_panicked() {
        let numbers = HandOver::<Machine, u32>::new(vec![1, 2]);
        let filling = catch_unwind(AssertUnwindSafe(|| {
            let _completing = numbers.completing();
            let one = numbers.empty();
            numbers.put(one.unwrap_or(0));
            panic!("as was planned");
        }));
        assert!(filling.is_err());
        assert_eq!(numbers.take(), Some(2));
        assert_eq!(numbers.take(), None);
    }
}
