//! Committing: who writes, who waits, and for whom.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::driver::{Asked, Failed};
use super::group::{Callback, Group};
use super::shared::{Durable, Flight, Shared, State, StateOf};
use crate::environment::{Environment, Fault};
use crate::{Error, Lsn};

/// Groups that are not waited for when waiting was in vain again and again, at most.
const MOST_SKIPPED: u32 = 63;
/// Flushes that a group waits for the others at most. That of 64 threads on two processors comes together in less than
/// two; given one only, groups were halves again and again, and a third fewer records were committed.
const GATHERING: u32 = 2;

impl<E: Environment> Shared<E> {
    /// Waits until every record before `end` is durable.
    pub fn commit(self: &Arc<Self>, end: u64) -> Result<(), Error> {
        if self.durable_lsn() >= end {
            return Ok(());
        }
        self.commit_with(E::lock(&self.state), end)
    }

    /// As `commit`, by who has the lock already.
    pub(super) fn commit_with<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        end: u64,
    ) -> Result<(), Error> {
        // The group that it was counted in, and whether it is the one that ends that one's waiting.
        let (mut counted, mut leads) = (None, false);
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
            if state.driver.is_some() && !self.is_to_wait(&mut state, &mut leads) {
                self.drive(state, true);
                state = E::lock(&self.state);
                continue;
            }
            let until = state.gather_until.filter(|_| leads);
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

    /// Whether the group is to wait for those who committed with this thread lately.
    ///
    /// One flush for all of them is cheaper than two for half of them each, and sooner done if they come quickly. The
    /// last of them writes; if they take too long, the first does, who `leads`. When that was in vain it is not tried
    /// again for a while.
    fn is_to_wait(&self, state: &mut State<E>, leads: &mut bool) -> bool {
        if state.filling.waiting >= state.committers {
            state.in_vain = 0;
            return false;
        }
        match state.gather_until {
            Some(until) if self.environment.now() < until => true,
            Some(_) => {
                state.in_vain = (2 * state.in_vain + 1).min(MOST_SKIPPED);
                state.groups_to_skip = state.in_vain;
                false
            }
            None if state.flush_time.is_zero() => false,
            None if state.groups_to_skip > 0 => {
                state.groups_to_skip -= 1;
                false
            }
            None => {
                state.gather_until = Some(self.environment.now() + GATHERING * state.flush_time);
                *leads = true;
                true
            }
        }
    }

    /// Writes what was gathered, if nobody else is at it. `sync`: and makes it durable.
    pub(super) fn drive(&self, mut state: StateOf<'_, E>, sync: bool) {
        let Some(mut driver) = state.driver.take() else {
            return;
        };
        let Some(other) = driver.spare.take() else {
            state.driver = Some(driver);
            return;
        };
        state.gather_until = None;
        if let Some(next) = state.filling.close(self.geometry.granule) {
            state.next_position = next;
        }
        let gathered = state.filling.bytes();
        let is_awaited = sync || state.filling.waiting > 0 || !state.filling.callbacks.is_empty();
        let sync = is_awaited || driver.unsynced_bytes() + gathered > self.options.unsynced_bytes;
        let parity = state.filling.parity;
        let mut group = std::mem::replace(&mut state.filling, other);
        state.filling.parity = 1 - parity;
        let end = state.unit_end;
        state.flight = Some(Flight {
            parity,
            end,
            is_synced: sync,
            joined: 0,
        });
        if self.environment.is_planted(Fault::AcknowledgeEarly) && sync {
            self.set_durable(&mut state, end, driver.durable);
        }
        drop(state);
        // There is room in the other one.
        self.space.wake_all();
        let begin = self.environment.now();
        let written = driver.write(&mut group, sync);
        let took = self.environment.now().saturating_sub(begin);
        let callbacks = std::mem::take(&mut group.callbacks);
        let committers = group.waiting;
        let mut state = E::lock(&self.state);
        let joined = state.flight.take().map_or(0, |flight| flight.joined);
        let result = match written {
            Ok(asked) => {
                self.count(&mut state, &group, asked, took, sync);
                if std::mem::replace(&mut state.is_streaming, !is_awaited) && is_awaited {
                    self.work.wake_all();
                }
                if sync {
                    self.set_durable(&mut state, end, driver.durable);
                    state.flush_time = (state.flush_time * 3 + took) / 4;
                    state.committers = committers + state.filling.waiting + joined;
                    state.tally.commits += u64::from(committers + joined) + callbacks.len() as u64;
                }
                Ok(())
            }
            Err(Failed { doing, error }) => {
                self.poison(&mut state, doing, error);
                if self.environment.is_planted(Fault::NotPoisoned) {
                    state.poison = None;
                    self.set_durable(&mut state, end, driver.durable);
                }
                Err(())
            }
        };
        group.clear();
        driver.spare = Some(group);
        state.driver = Some(driver);
        let failure = result.err().and_then(|()| self.refusal(&state));
        let is_next_awaited = state.filling.waiting > 0;
        let has_work = self.has_work(&state);
        // Who is woken finds the lock free.
        drop(state);
        self.done[parity].open_for_all();
        if is_next_awaited {
            self.done[1 - parity].open_for_one();
        }
        self.space.wake_all();
        if has_work {
            self.writing.wake_one();
        }
        for (lsn, callback) in callbacks {
            call(
                callback,
                match &failure {
                    None => Ok(lsn),
                    Some(error) => Err(error.clone()),
                },
            );
        }
    }

    fn set_durable(&self, state: &mut State<E>, lsn: u64, position: u64) {
        state.durable = Durable { lsn, position };
        self.durable_lsn.store(lsn, Ordering::Release);
        if state.followers > 0 {
            self.durable.wake_all();
        }
    }

    fn count(
        &self,
        state: &mut State<E>,
        group: &Group<E>,
        asked: Asked,
        took: Duration,
        sync: bool,
    ) {
        let tally = &mut state.tally;
        tally.writes += asked.writes;
        tally.flushes += asked.flushes;
        tally.bytes += asked.bytes;
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
        !state.filling.callbacks.is_empty() || bytes >= self.options.write_bytes
    }

    /// Has the log's own thread write, which is started if it does not run yet.
    pub(super) fn ask_writer(self: &Arc<Self>, state: &mut State<E>) {
        if !state.has_writer {
            let shared = self.clone();
            let started = self
                .environment
                .spawn("landfall-writer", move || shared.write_for_others());
            match started {
                Ok(thread) => {
                    state.has_writer = true;
                    state.threads.push(thread);
                }
                // Whoever needs room, or commits, writes himself; callbacks wait for that.
                Err(error) => tracing::warn!(%error, "the log's writer cannot be started"),
            }
        }
        if state.driver.is_some() {
            self.writing.wake_one();
        }
    }

    fn write_for_others(self: Arc<Self>) {
        let mut state = E::lock(&self.state);
        loop {
            if state.poison.is_some() {
                self.fail_callbacks(state);
                return;
            }
            if state.driver.is_some() && self.has_work(&state) {
                self.drive(state, false);
                state = E::lock(&self.state);
            } else if state.is_closing {
                return;
            } else {
                state = self.writing.wait(state);
            }
        }
    }

    /// Those who wait for a log that is poisoned are told so.
    fn fail_callbacks(&self, mut state: StateOf<'_, E>) {
        let callbacks = std::mem::take(&mut state.filling.callbacks);
        let error = self.refusal(&state).unwrap_or(Error::Closed);
        drop(state);
        for (_, callback) in callbacks {
            call(callback, Err(error.clone()));
        }
    }
}

/// Calls a callback; if it panics that is nobody else's trouble.
fn call(callback: Callback, result: Result<Lsn, Error>) {
    if catch_unwind(AssertUnwindSafe(|| callback(result))).is_err() {
        tracing::error!("a callback of the log panicked");
    }
}
