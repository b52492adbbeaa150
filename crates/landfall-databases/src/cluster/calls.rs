//! Clients whose calls are asynchronous.
//!
//! Threads: what a client does besides, it does in the thread that waits for an answer, and only while that waits. So it is in
//! the same [network](landfall_os::isolate_network), and nothing of it is left when [`Calls`] is dropped.

use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::ANSWERING;
use crate::DatabaseError;

/// What a client's calls are waited for with.
pub(crate) struct Calls(Runtime);

impl Calls {
    pub fn new() -> Result<Calls, DatabaseError> {
        let built = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build();
        let failed = |error| DatabaseError::io("cannot wait for a server", &error);
        built.map(Calls).map_err(failed)
    }

    /// Waits for an answer, but not longer than [`ANSWERING`]. `what` did not come if it is late: `a message`.
    pub fn wait<T>(&self, what: &str, call: impl Future<Output = T>) -> Result<T, DatabaseError> {
        self.wait_for(ANSWERING, what, call)
    }

    /// As [`wait`](Calls::wait), for another time.
    pub fn wait_for<T>(
        &self,
        most: Duration,
        what: &str,
        call: impl Future<Output = T>,
    ) -> Result<T, DatabaseError> {
        // Within, so that also who gives up may leave work behind for whom it runs in.
        let answer = self.0.block_on(async { timeout(most, call).await });
        answer.map_err(|_| DatabaseError::Late(format!("{what} did not come in time")))
    }
}
