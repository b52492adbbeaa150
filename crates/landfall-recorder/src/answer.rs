//! Answers to the kernel that are due later, sent by a thread of their own.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// Lets a client that has written a mark go on, when dropped.
pub struct Answer(Option<(Sender<Later>, Later)>);

impl Drop for Answer {
    fn drop(&mut self) {
        if let Some((sender, later)) = self.0.take() {
            // Without a server there is no client either.
            let _ = sender.send(later);
        }
    }
}

/// When a request that has been done is answered; `None`: at once.
pub(crate) type Due = Option<Instant>;

/// An answer that is not sent at once.
struct Later {
    due: Instant,
    send: Box<dyn FnOnce() + Send>,
}

/// The one that is due first is the greatest.
impl Ord for Later {
    fn cmp(&self, other: &Later) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Later) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Later) -> bool {
        self.due == other.due
    }
}

impl Eq for Later {}

/// Where answers go, now or later.
pub(crate) struct Answers {
    later: Sender<Later>,
}

impl Answers {
    /// Where they go, and what is to send those that are due later.
    pub fn new() -> (Answers, Sending) {
        let (later, arriving) = channel();
        (Answers { later }, Sending { arriving })
    }

    /// Sends one when it is due.
    pub fn send(&self, due: Due, send: impl FnOnce() + Send + 'static) {
        match due {
            None => send(),
            Some(due) => {
                let send = Box::new(send);
                // Fails when the answering thread is gone, and the client with it.
                drop(self.later.send(Later { due, send }));
            }
        }
    }

    /// One that is sent when what is returned is dropped.
    pub fn on_drop(&self, send: impl FnOnce() + Send + 'static) -> Answer {
        let later = Later {
            due: Instant::now(),
            send: Box::new(send),
        };
        Answer(Some((self.later.clone(), later)))
    }
}

/// Sends what is due later.
pub(crate) struct Sending {
    arriving: Receiver<Later>,
}

impl Sending {
    /// Starts the thread that does it. It ends when the [`Answers`] are gone, and all that clients wait for.
    ///
    /// It shares the calling thread's descriptors, and must not have mounts that the caller has left: were it the last
    /// to have both, its end would wait for a write to the device before it closes what the device is served by, for
    /// ever.
    pub fn start(self) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new()
            .name("landfall-answer".into())
            .spawn(move || send_all(&self.arriving))
    }
}

/// Sends each answer when it is due, until nobody is left who might want one sent.
fn send_all(arriving: &Receiver<Later>) {
    let mut waiting: BinaryHeap<Later> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|first| first.due <= now) {
            if let Some(first) = waiting.pop() {
                (first.send)();
            }
        }
        let next = match waiting.peek() {
            Some(first) => arriving.recv_timeout(first.due.saturating_duration_since(now)),
            None => arriving.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(later) => waiting.push(later),
            Err(RecvTimeoutError::Timeout) => {}
            // Whoever could be answered is gone.
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}
