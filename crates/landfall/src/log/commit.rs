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

impl<E: Environment> Shared<E> {
    /// Waits until every record before `end` is durable.
    pub fn commit(self: &Arc<Self>, end: u64) -> Result<(), Error> {
        if self.durable_lsn() >= end {
            return Ok(());
        }
        let mut state = E::lock(&self.state);
        // The group that it was counted in.
        let mut counted = None;
        loop {
            if state.durable.lsn >= end {
                // Who was woken to write, and need not, wakes another.
                if state.driver.is_some() && state.filling.waiting > 0 {
                    self.done[state.filling.parity].wake_one();
                }
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
            if state.driver.is_some() && !state.is_gathering {
                state = self.gather(state);
                if state.driver.is_some() && state.durable.lsn < end && state.poison.is_none() {
                    state = self.drive(state, true);
                }
                continue;
            }
            state = self.done[parity].wait(state);
        }
    }

    /// Lets those come that committed with this thread lately, for no longer than a flush takes.
    ///
    /// If all of them come within that time, one flush for all of them is sooner done than two for half of them
    /// each. If they take longer (there are many for few processors), they had better do their work while the
    /// device does its own: then it is not tried again for a while.
    fn gather<'a>(self: &'a Arc<Self>, mut state: StateOf<'a, E>) -> StateOf<'a, E> {
        if state.committers <= state.filling.waiting || state.flush_time.is_zero() {
            return state;
        }
        if state.groups_to_skip > 0 {
            state.groups_to_skip -= 1;
            return state;
        }
        state.is_gathering = true;
        let begin = self.environment.now();
        while state.filling.waiting < state.committers
            && state.driver.is_some()
            && state.poison.is_none()
        {
            if self.environment.now() - begin > state.flush_time {
                state.in_vain = (2 * state.in_vain + 1).min(MOST_SKIPPED);
                state.groups_to_skip = state.in_vain;
                break;
            }
            drop(state);
            self.environment.yield_now();
            state = E::lock(&self.state);
        }
        state.is_gathering = false;
        if state.filling.waiting >= state.committers {
            state.in_vain = 0;
        }
        state
    }

    /// Writes what was gathered; nobody else is at it. `sync`: and makes it durable.
    pub(super) fn drive<'a>(
        self: &'a Arc<Self>,
        mut state: StateOf<'a, E>,
        sync: bool,
    ) -> StateOf<'a, E> {
        let Some(mut driver) = state.driver.take() else {
            return state;
        };
        let Some(other) = driver.spare.take() else {
            state.driver = Some(driver);
            return state;
        };
        if let Some(next) = state.filling.close(self.geometry.granule) {
            state.next_position = next;
        }
        let gathered = state.filling.bytes();
        let sync = sync
            || state.filling.waiting > 0
            || !state.filling.callbacks.is_empty()
            || driver.unsynced_bytes() + gathered > self.options.unsynced_bytes;
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
                if std::mem::replace(&mut state.is_streaming, !sync) && sync {
                    self.work.wake_all();
                }
                if sync {
                    self.set_durable(&mut state, end, driver.durable);
                    state.flush_time = (state.flush_time * 3 + took) / 4;
                    state.committers = committers + state.filling.waiting + joined;
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
        self.wake(&state, parity);
        if callbacks.is_empty() {
            return state;
        }
        let failure = result.err().and_then(|()| self.refusal(&state));
        drop(state);
        for (lsn, callback) in callbacks {
            call(
                callback,
                match &failure {
                    None => Ok(lsn),
                    Some(error) => Err(error.clone()),
                },
            );
        }
        E::lock(&self.state)
    }

    fn set_durable(&self, state: &mut State<E>, lsn: u64, position: u64) {
        state.durable = Durable { lsn, position };
        self.durable_lsn.store(lsn, Ordering::Release);
        if state.followers > 0 {
            self.durable.wake_all();
        }
    }

    /// After a group was written: those whose it was, one of the next to write that, and the others.
    fn wake(&self, state: &State<E>, parity: usize) {
        self.done[parity].wake_all();
        if state.filling.waiting > 0 {
            self.done[1 - parity].wake_one();
        }
        self.space.wake_all();
        if self.has_work(state) {
            self.writing.wake_one();
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
    fn has_work(&self, state: &State<E>) -> bool {
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
                state = self.drive(state, false);
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
