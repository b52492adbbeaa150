//! One order, and one clock, for the events of several recorders.
//!
//! An event gets its place in the common order when it gets that in its recorder's own, before it is answered: what was
//! caused by an answer comes later, on whichever device it is. So every beginning of the common order is a moment that has
//! been, or could have been: a *consistent cut* (Chandy and Lamport, ACM TOCS 3 (1), 1985).
//!
//! Threads: each recorder's lock is taken before the order's, and no other way round.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The order of several recorders' events: recorders that are started with the same one are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct CommonOrder(Arc<Mutex<Order>>);

#[derive(Debug, Default)]
struct Order {
    /// When the first recorder began to record.
    begin: Option<Instant>,
    /// Recorders that were started with it.
    recorders: u8,
    /// Whose each event is.
    events: Vec<u8>,
}

/// One recorder's part in a common order.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    order: CommonOrder,
    number: u8,
}

impl CommonOrder {
    /// The next recorder; `None` if there are too many.
    pub(crate) fn join(&self) -> Option<Part> {
        let mut order = self.lock();
        let number = order.recorders;
        order.recorders = number.checked_add(1)?;
        Some(Part {
            order: self.clone(),
            number,
        })
    }

    /// How many events there are until now.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.lock().events.len()
    }

    /// Whose each event is that was recorded until now.
    pub(crate) fn events(&self) -> Vec<u8> {
        self.lock().events.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Order> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Part {
    /// When the clock of all recorders began: now, if it had not.
    pub fn begin(&self) -> Instant {
        *self.order.lock().begin.get_or_insert_with(Instant::now)
    }

    /// The recorder has an event, which has not been answered.
    pub fn push(&self) {
        self.order.lock().events.push(self.number);
    }
}
