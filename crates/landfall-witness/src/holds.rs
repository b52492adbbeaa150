//! Which connection writes which stream, and how a connection is ended.
//!
//! **Invariant.** One connection at a time holds a stream. Who takes it from another ends that connection.
//!
//! **Locks.** The holds before the sockets.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::block::Run;

/// How long a connection whose writer is gone is waited for.
const GOING: Duration = Duration::from_secs(2);
/// How often it is looked again.
const LOOK: Duration = Duration::from_millis(50);

/// Who writes a stream.
pub(crate) struct Hold {
    pub connection: u64,
    pub run: Run,
    /// The start of the machine.
    pub boot: String,
}

/// All streams that are being written.
pub(crate) type Held<'a> = MutexGuard<'a, HashMap<String, Hold>>;

/// All connections, and which streams they hold.
#[derive(Default)]
pub(crate) struct Holds {
    streams: Mutex<HashMap<String, Hold>>,
    freed: Condvar,
    sockets: Mutex<HashMap<u64, TcpStream>>,
}

impl Holds {
    pub fn lock(&self) -> Held<'_> {
        lock(&self.streams)
    }

    /// A connection is there.
    pub fn open(&self, connection: u64, socket: TcpStream) {
        lock(&self.sockets).insert(connection, socket);
    }

    /// It is gone.
    pub fn closed(&self, connection: u64) {
        lock(&self.sockets).remove(&connection);
    }

    /// Ends a connection, whose thread does the rest.
    pub fn end(&self, connection: u64) {
        if let Some(socket) = lock(&self.sockets).get(&connection) {
            // One that is gone already needs no end.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Ends all.
    pub fn end_all(&self) {
        for socket in lock(&self.sockets).values() {
            // The same.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Waits until nobody writes the stream. A writer of an earlier start of the machine is gone, though its connection
    /// may not know; one that ended a moment ago is about to be.
    pub fn free(&self, stream: &str, boot: &str) -> Result<Held<'_>, String> {
        let end = Instant::now() + GOING;
        let mut streams = self.lock();
        while let Some(hold) = streams.get(stream) {
            if hold.boot != boot {
                self.end(hold.connection);
                streams.remove(stream);
                break;
            }
            if Instant::now() >= end {
                let text =
                    "another writer is writing this stream; end it, or name this one with --as";
                return Err(text.to_owned());
            }
            let waited = self.freed.wait_timeout(streams, LOOK);
            streams = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(streams)
    }

    /// Whether a connection still holds a stream for this run.
    pub fn is_held(&self, stream: &str, connection: u64, run: &Run) -> bool {
        let streams = self.lock();
        let hold = streams.get(stream);
        hold.is_some_and(|hold| hold.connection == connection && hold.run == *run)
    }

    /// A connection writes a stream no more, unless another has it by now.
    pub fn let_go(&self, stream: &str, connection: u64) {
        let mut streams = self.lock();
        let hold = streams.get(stream);
        if hold.is_some_and(|hold| hold.connection == connection) {
            streams.remove(stream);
            self.freed.notify_all();
        }
    }

    /// The runs of all writers that are connected.
    pub fn runs(&self) -> Vec<(String, Run)> {
        let streams = self.lock();
        let runs = streams
            .iter()
            .map(|(stream, hold)| (stream.clone(), hold.run));
        runs.collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
