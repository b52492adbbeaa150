//! Those who run a subject's transactions: one client, or several at the same time.

use std::thread;

use super::{AckSink, SubjectError};

impl dyn AckSink + '_ {
    /// Runs one client: calls `commit` with the number of each transaction, and acknowledges it when `commit` has
    /// returned. Ends when it is enough, or with the first error.
    pub fn commit_each(
        &mut self,
        mut commit: impl FnMut(u64) -> Result<(), SubjectError>,
    ) -> Result<(), SubjectError> {
        while let Some(transaction) = self.send() {
            commit(transaction)?;
            self.acknowledge(transaction);
        }
        Ok(())
    }
}

/// Runs so many clients at the same time, each in a thread, and waits for all of them. They share the sink through a
/// lock, so that what each says has one place among the device's writes.
pub fn at_the_same_time(
    clients: u32,
    run: impl Fn(u32) -> Result<(), SubjectError> + Sync,
) -> Result<(), SubjectError> {
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || run(client)))
            .collect();
        let mut outcomes = threads.into_iter().map(|thread| {
            let panicked = |_| Err(SubjectError("a client panicked".into()));
            thread.join().unwrap_or_else(panicked)
        });
        // Also those behind one that failed.
        outcomes.by_ref().fold(Ok(()), Result::and)
    })
}
