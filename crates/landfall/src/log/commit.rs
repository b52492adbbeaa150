//! Committing: who writes, who waits, and for whom.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::gathering::Gather;
use super::group::{Callback, Group};
use super::group_writer::{Failed, IoCounts};
use super::shared::{Durable, Flight, Shared, State, StateOf};
use crate::environment::{Environment, planted};
use crate::{Error, Lsn};

impl<E: Environment> Shared<E> {
    /// Waits until every record before `end` is durable.
    pub fn commit(self: &Arc<Self>, end: u64) -> Result<(), Error> {
        if self.durable_lsn() >= end {
            return Ok(());
        }
        self.require_ours()?;
        self.commit_with(E::lock(&self.state), end)
    }

    /// As `commit`, by who has the lock already.
    pub(super) fn commit_with<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        end: u64,
    ) -> Result<(), Error> {
        // The group that it was counted in, and until when that one waits for others, if this thread leads it.
        let (mut counted, mut leads) = (None, None);
        loop {
            if state.durable.lsn >= end {
                return Ok(());
            }
            if let Some((doing, source)) = &state.poison {
                return Err(Error::Poisoned {
                    doing,
                    source: source.clone(),
                });
            }
            let flight = state.flight.as_mut();
            let parity = match flight.filter(|flight| flight.is_synced && end <= flight.end) {
                Some(flight) => {
                    if counted != Some(flight.parity) {
                        counted = Some(flight.parity);
                        flight.joined += 1;
                    }
                    flight.parity
                }
                None => {
                    let parity = state.filling.parity;
                    if counted != Some(parity) {
                        counted = Some(parity);
                        state.filling.waiting += 1;
                    }
                    parity
                }
            };
            if state.writer.is_some() {
                let waiting = state.filling.waiting;
                match state.gathering.decide(waiting, || self.environment.now()) {
                    Gather::Write => {
                        self.drive(state);
                        state = E::lock(&self.state);
                        continue;
                    }
                    Gather::Lead(until) => leads = Some(until),
                    Gather::Follow => {}
                }
            }
            let until = leads.filter(|_| state.gathering.until() == leads);
            let ticket = self.done[parity].ticket();
            drop(state);
            let at_most = until.map(|until| until.saturating_sub(self.environment.now()));
            self.done[parity].wait(ticket, at_most);
            if self.durable_lsn() >= end {
                return Ok(());
            }
            state = E::lock(&self.state);
        }
    }

    /// Writes what was gathered, if nobody else is at it, and makes it durable if that is waited for.
    ///
    /// Goes on as long as there is something that nobody else would write.
    pub(super) fn drive<'a>(self: &'a Arc<Self>, mut state: StateOf<'a, E>) {
        while let Some(next) = self.write_group(state) {
            state = next;
        }
    }

    /// Writes one group; the lock, if there is another one to be written that nobody waits for.
    fn write_group<'a>(self: &'a Arc<Self>, mut state: StateOf<'a, E>) -> Option<StateOf<'a, E>> {
        if !self.is_ours() {
            let error = io::Error::other(Error::Forked);
            self.poison(state, "looking whose it is", error);
            return None;
        }
        let mut writer = state.writer.take()?;
        let Some(other) = writer.spare.take() else {
            state.writer = Some(writer);
            return None;
        };
        state.gathering.begin();
        if let Some(next) = state.filling.close(self.geometry.granule) {
            state.next_position = next;
        }
        let gathered = state.filling.bytes();
        let is_awaited = state.filling.waiting > 0 || !state.filling.callbacks.is_empty();
        let sync =
            is_awaited || writer.unsynced_bytes() + gathered > self.options.max_unsynced_bytes;
        let parity = state.filling.parity;
        let mut group = std::mem::replace(&mut state.filling, other);
        state.filling.parity = 1 - parity;
        let end = state.batch_end;
        state.flight = Some(Flight {
            parity,
            end,
            is_synced: sync,
            joined: 0,
        });
        if planted!(self.environment, AcknowledgeEarly) && sync {
            let durable = writer.durable_with(end);
            let _ = self.set_durable(&mut state, durable);
        }
        drop(state);
        // There is room in the other one.
        self.space.wake_all();
        // Each block of the group says so.
        let promised = writer.durable;
        let begin = self.environment.now();
        let written = writer.write(&mut group, sync);
        let took = self.environment.now().saturating_sub(begin);
        let callbacks = std::mem::take(&mut group.callbacks);
        let committers = group.waiting;
        let mut state = E::lock(&self.state);
        let joined = state.flight.take().map_or(0, |flight| flight.joined);
        let failed = match written {
            Ok(counts) => {
                self.count(&mut state, &group, counts, took, sync);
                if std::mem::replace(&mut state.is_streaming, !is_awaited) && is_awaited {
                    self.work.wake_all();
                }
                if sync && !group.blocks.is_empty() {
                    state.promised = state.promised.max(promised);
                }
                if sync {
                    let together = committers + state.filling.waiting + joined;
                    state.gathering.note(together, took);
                    state.tally.commits += u64::from(committers + joined) + callbacks.len() as u64;
                    self.set_durable(&mut state, writer.durable_with(end)).err()
                } else if callbacks.is_empty() {
                    None
                } else {
                    Some(Failed {
                        doing: "acknowledging",
                        error: io::Error::other("what is acknowledged was not synced"),
                    })
                }
            }
            Err(_) if planted!(self.environment, NotPoisoned) => {
                self.set_durable(&mut state, writer.durable_with(end)).err()
            }
            Err(failed) => Some(failed),
        };
        group.clear();
        writer.spare = Some(group);
        state.writer = Some(writer);
        if let Some(Failed { doing, error }) = failed {
            self.poison(state, doing, error);
            let error = self.refusal(&E::lock(&self.state)).unwrap_or(Error::Closed);
            call_all(callbacks, |_| Err(error.clone()));
            return None;
        }
        let is_next_awaited = state.filling.waiting > 0;
        let owes_promise = self.owes_promise(&state);
        let has_work = self.has_work(&state);
        let is_left_to_us = has_work && !state.has_writer;
        // Who is woken finds the lock free.
        drop(state);
        self.done[parity].notify_all();
        if is_next_awaited {
            self.done[1 - parity].notify_one();
        }
        self.space.wake_all();
        if owes_promise {
            self.work.wake_all();
        }
        if has_work {
            self.writing.wake_one();
        }
        call_all(callbacks, Ok);
        is_left_to_us.then(|| E::lock(&self.state))
    }

    pub(super) fn set_durable(&self, state: &mut State<E>, durable: Durable) -> Result<(), Failed> {
        let before = state.durable;
        if durable.lsn < before.lsn
            || durable.position < before.position
            || durable.lsn > state.batch_end
        {
            return Err(Failed {
                doing: "acknowledging",
                error: io::Error::other("what is durable goes back, or ahead"),
            });
        }
        state.durable = durable;
        self.durable_lsn.store(durable.lsn, Ordering::Release);
        if state.followers > 0 {
            self.durable.wake_all();
        }
        Ok(())
    }

    fn count(
        &self,
        state: &mut State<E>,
        group: &Group<E>,
        counts: IoCounts,
        took: Duration,
        sync: bool,
    ) {
        let tally = &mut state.tally;
        tally.writes += counts.writes;
        tally.flushes += counts.flushes;
        tally.bytes += counts.bytes;
        tally.record_bytes += group
            .blocks
            .iter()
            .map(|block| block.length as u64)
            .sum::<u64>();
        if sync {
            tally.groups += 1;
            tally.record_flush(took);
        }
    }

    /// Whether there is something for the writer.
    pub(super) fn has_work(&self, state: &State<E>) -> bool {
        let bytes = state.filling.bytes();
        !state.filling.callbacks.is_empty() || bytes >= self.options.max_unwritten_bytes
    }

    /// Has the log's own thread write, which is started if it does not run yet; if it cannot be started, whoever appends writes.
    pub(super) fn ask_writer(self: &Arc<Self>, state: &mut State<E>) -> io::Result<()> {
        if !state.has_writer {
            let shared = self.clone();
            let thread = self
                .environment
                .spawn("landfall-writer", move || shared.write_for_others())?;
            state.has_writer = true;
            state.threads.push(thread);
        }
        if state.writer.is_some() {
            self.writing.wake_one();
        }
        Ok(())
    }

    fn write_for_others(self: Arc<Self>) {
        let mut state = E::lock(&self.state);
        while !state.is_poisoned() {
            if state.writer.is_some() && self.has_work(&state) {
                self.drive(state);
                state = E::lock(&self.state);
            } else if state.is_closing {
                return;
            } else {
                state = self.writing.wait(state);
            }
        }
    }
}

/// Calls callbacks; if one panics that is nobody else's trouble.
pub(super) fn call_all(
    callbacks: Vec<(Lsn, Callback)>,
    result: impl Fn(Lsn) -> Result<Lsn, Error>,
) {
    for (lsn, callback) in callbacks {
        let result = result(lsn);
        if catch_unwind(AssertUnwindSafe(|| callback(result))).is_err() {
            tracing::error!("a callback of the log panicked");
        }
    }
}
