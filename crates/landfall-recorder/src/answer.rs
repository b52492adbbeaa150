//! Answers to the kernel that are due later, sent by a thread of their own.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

use fuser::{ReplyData, ReplyEmpty, ReplyWrite};

use crate::device::{Device, Due};
use crate::nbd_device::NbdReply;

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

pub(crate) enum Reply {
    /// How many bytes, and what the device is told of it.
    Written(ReplyWrite, u32, Option<u64>),
    Read(ReplyData, Vec<u8>),
    Flushed(ReplyEmpty),
    /// To a request by the protocol of network block devices, and what the device is told of it.
    Nbd(NbdReply, Option<u64>),
}

impl Reply {
    fn send(self, device: &dyn Device) {
        // First: the kernel may send a flush as soon as it has the answer.
        if let Reply::Written(.., Some(event)) | Reply::Nbd(_, Some(event)) = self {
            device.answering(event);
        }
        match self {
            Reply::Written(reply, len, _) => reply.written(len),
            Reply::Read(reply, bytes) => reply.data(&bytes),
            Reply::Flushed(reply) => reply.ok(),
            Reply::Nbd(reply, _) => reply.send(),
        }
    }
}

/// An answer that is not sent at once.
struct Later {
    due: Instant,
    reply: Reply,
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
    device: Arc<dyn Device>,
    later: Sender<Later>,
}

impl Answers {
    /// Starts the thread that sends what is due later. It ends when these are gone, and all that clients wait for.
    pub fn start(device: Arc<dyn Device>) -> io::Result<(Answers, JoinHandle<()>)> {
        let (later, due) = channel();
        let behind = device.clone();
        let thread = std::thread::Builder::new()
            .name("landfall-answer".into())
            .spawn(move || send_all(behind.as_ref(), &due))?;
        Ok((Answers { device, later }, thread))
    }

    /// The device that they are of.
    pub fn device(&self) -> &dyn Device {
        self.device.as_ref()
    }

    /// Sends one when it is due.
    pub fn send(&self, due: Due, reply: Reply) {
        match due {
            None => reply.send(self.device.as_ref()),
            // Fails when the answering thread is gone, and the client with it.
            Some(due) => drop(self.later.send(Later { due, reply })),
        }
    }

    /// One that is sent when what is returned is dropped.
    pub fn on_drop(&self, reply: Reply) -> Answer {
        let later = Later {
            due: Instant::now(),
            reply,
        };
        Answer(Some((self.later.clone(), later)))
    }
}

/// Sends each answer when it is due, until nobody is left who might want one sent.
fn send_all(device: &dyn Device, arriving: &Receiver<Later>) {
    let mut waiting: BinaryHeap<Later> = BinaryHeap::new();
    loop {
        let now = Instant::now();
        while waiting.peek().is_some_and(|first| first.due <= now) {
            if let Some(first) = waiting.pop() {
                first.reply.send(device);
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
