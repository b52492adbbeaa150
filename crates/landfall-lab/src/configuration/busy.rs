//! Threads that take CPU time from whatever else wants it, where a configuration asks for that.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use landfall_os::thread_cpu;

use landfall_databases::DatabaseError;

/// How often a thread looks whether it is to end.
const TURNS: u32 = 10_000;

/// Busy threads; they end when this is dropped.
pub(super) struct Busy {
    over: Arc<AtomicBool>,
    threads: Vec<(Arc<AtomicU64>, JoinHandle<()>)>,
}

impl Busy {
    /// Starts so many.
    pub fn start(count: u32) -> Result<Busy, DatabaseError> {
        let mut busy = Busy {
            over: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..count {
            let (over, used) = (Arc::clone(&busy.over), Arc::new(AtomicU64::new(0)));
            let told = Arc::clone(&used);
            let turn = move || {
                while !over.load(Ordering::Relaxed) {
                    for _ in 0..TURNS {
                        hint::spin_loop();
                    }
                    told.store(thread_cpu().as_nanos() as u64, Ordering::Relaxed);
                }
            };
            let thread = thread::Builder::new().spawn(turn).map_err(|error| {
                DatabaseError::Refused(format!("the system gives no more threads: {error}"))
            })?;
            busy.threads.push((used, thread));
        }
        Ok(busy)
    }

    /// CPU time that they have used, which this process is charged with.
    pub fn cpu(&self) -> Duration {
        let used = self
            .threads
            .iter()
            .map(|(used, _)| used.load(Ordering::Relaxed));
        Duration::from_nanos(used.sum())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for (_, thread) in self.threads.drain(..) {
            // It only counts: it cannot fail.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_use_time_until_they_are_dropped() {
        let busy = Busy::start(2).unwrap();
        while busy.cpu() < Duration::from_millis(20) {
            thread::sleep(Duration::from_millis(1));
        }
        drop(busy);
        assert_eq!(Busy::start(0).unwrap().cpu(), Duration::ZERO);
    }
}
