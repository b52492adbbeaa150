//! A thread that serves the kernel.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

/// The thread. It ends when the kernel lets go of what it serves.
#[derive(Debug)]
pub(crate) struct Server {
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl Server {
    /// Starts it, and waits until it says that it is ready, and what for.
    pub fn start<T: Send + 'static>(
        serve: impl FnOnce(Sender<T>) -> io::Result<()> + Send + 'static,
    ) -> io::Result<(Server, T)> {
        let (ready, is_ready) = channel();
        let thread = std::thread::Builder::new()
            .name("landfall-device".into())
            .spawn(move || serve(ready))?;
        let mut server = Server {
            thread: Some(thread),
        };
        match is_ready.recv() {
            Ok(what) => Ok((server, what)),
            // It never came so far: its result says why.
            Err(_) => {
                server.join()?;
                Err(io::Error::other("the device's server ended early"))
            }
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end.
    pub fn join(&mut self) -> io::Result<()> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(io::Error::other("the device's server panicked")),
            None => Ok(()),
        }
    }
}
