//! Filling a database with several loaders at once.
//!
//! **Threads.** Loaders take chunks in ascending order from a common count, each over a session of its
//! own. The first that fails, or a request to stop, makes the others end after their chunk.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::{DatabaseError, Dialect, Running, Session};
use landfall_os::Stop;

/// How often a chunk is tried: what never succeeds is no conflict with another loader.
const TRIES: u32 = 100;

/// What is loaded, and in which portions.
pub(super) struct Load<'a> {
    pub running: &'a dyn Running,
    pub loaders: u32,
    /// Numbers of what is loaded.
    pub numbers: Range<u64>,
    /// So many of them at a time.
    pub chunk: u64,
    pub stop: &'a Stop,
}

/// Hands every chunk to `fill` with what `open` makes of a session. A chunk that meets a conflict is
/// tried again, so it must be one transaction.
pub(super) fn load<S>(
    load: &Load<'_>,
    open: impl Fn(Session) -> Result<S, DatabaseError> + Sync,
    fill: impl Fn(&mut S, Range<u64>) -> Result<(), DatabaseError> + Sync,
) -> Result<(), DatabaseError> {
    let next = AtomicU64::new(load.numbers.start);
    let failed = AtomicBool::new(false);
    let work = |session: Session| {
        let mut state = open(session)?;
        while !failed.load(Ordering::Relaxed) {
            if load.stop.is_requested() {
                return Err(DatabaseError::Stopped);
            }
            let start = next.fetch_add(load.chunk, Ordering::Relaxed);
            if start >= load.numbers.end {
                break;
            }
            let chunk = start..load.numbers.end.min(start + load.chunk);
            let mut tries = 1;
            while let Err(error) = fill(&mut state, chunk.clone()) {
                let is_conflict = matches!(error, DatabaseError::Conflict(_));
                if !is_conflict || tries == TRIES || load.stop.is_requested() {
                    return Err(error);
                }
                tries += 1;
            }
        }
        Ok(())
    };
    let first = load.running.session()?;
    let others = match &first {
        // Its writers take turns, and more than one of them only waits.
        Session::Sql(sql) if sql.dialect() == Dialect::Sqlite => 0,
        _ => load.loaders.saturating_sub(1),
    };
    let guarded = |session: Result<Session, DatabaseError>| {
        let result = session.and_then(work);
        if result.is_err() {
            failed.store(true, Ordering::Relaxed);
        }
        result
    };
    thread::scope(|scope| {
        let guarded = &guarded;
        let handles: Vec<_> = (0..others)
            .map(|_| scope.spawn(move || guarded(load.running.session())))
            .collect();
        let mut results = vec![guarded(Ok(first))];
        results.extend(handles.into_iter().map(|handle| {
            let panicked = |_| Err(DatabaseError::Failed("a loader panicked".to_owned()));
            handle.join().unwrap_or_else(panicked)
        }));
        results.into_iter().collect()
    })
}
