//! The thread that makes segments ahead of need, and writes zeros to them. It also notes what is durable, where no block
//! has said so for long.

use std::io;
use std::sync::Arc;

use super::format::{Geometry, SegmentHeader, segment_name};
use super::segments::Task;
use super::shared::Shared;
use super::zeros;
use crate::environment::Buffer;
use crate::environment::{Durability, Environment, File, FileOf, Storage, planted};

pub(crate) fn start<E: Environment>(shared: &Arc<Shared<E>>) -> io::Result<E::Thread> {
    let own = shared.clone();
    shared
        .environment
        .spawn("landfall-segments", move || work(&own))
}

fn work<E: Environment>(shared: &Arc<Shared<E>>) {
    let mut state = E::lock(&shared.state);
    while !state.is_closing && !state.is_poisoned() {
        if shared.owes_promise(&state) {
            drop(state);
            shared.promise();
            state = E::lock(&shared.state);
            continue;
        }
        let Some(task) = state.next_task() else {
            state = shared.work.wait(state);
            continue;
        };
        drop(state);
        perform(shared, task);
        shared.space.wake_all();
        state = E::lock(&shared.state);
    }
}

fn perform<E: Environment>(shared: &Arc<Shared<E>>, task: Task<E>) {
    match task {
        Task::Ready {
            sequence,
            number,
            is_used,
        } => {
            let file = if is_used {
                shared.environment.storage().open(&segment_name(number))
            } else {
                make(&shared.environment, shared.geometry, number)
            };
            let file = match file {
                Ok(file) => Arc::new(file),
                Err(error) => {
                    tracing::warn!(%error, "no segment can be made");
                    let number = is_used.then_some(number);
                    return E::lock(&shared.state).segments.fail(error, number);
                }
            };
            let header = SegmentHeader {
                log: shared.log,
                sequence,
                durable: E::lock(&shared.state).durable.position,
            };
            let made = make_ready(
                &shared.environment,
                shared.geometry,
                header,
                &*file,
                !is_used,
            );
            let mut state = E::lock(&shared.state);
            state.tally.control_bytes += shared.geometry.granule;
            let made = made.and_then(|()| state.segments.add(sequence, number, file, is_used));
            // The file may be this segment, or not: another one must not be it as well.
            if let Err(error) = made {
                shared.poison(state, "making a segment", error);
            }
        }
        Task::Zero { sequence, file } => {
            let filled = fill(shared, sequence, &*file);
            if let Err(error) = filled {
                // It is slower to write without, and no less safe.
                tracing::warn!(%error, "zeros cannot be written ahead");
            }
            E::lock(&shared.state).segments.zeroed(sequence);
        }
        Task::Remove { number } => {
            // It has gone from the log already; what is left is found when the log is opened again.
            let removed = shared.environment.storage().remove(&segment_name(number));
            if let Err(error) = removed {
                tracing::warn!(%error, "a segment that is not needed cannot be removed");
            }
        }
    }
}

/// A file with the space for a segment, which is none yet. Its size is durable, so that who finds a header in a
/// shorter one knows that it was cut off.
pub(crate) fn make<E: Environment>(
    environment: &E,
    geometry: Geometry,
    number: u64,
) -> io::Result<FileOf<E>> {
    let (storage, name) = (environment.storage(), segment_name(number));
    let file = storage.create(&name)?;
    let make = || {
        file.allocate(geometry.segment)?;
        if planted!(environment, SkipSegmentSync) {
            return Ok(());
        }
        file.sync()
    };
    match make() {
        Ok(()) => Ok(file),
        Err(error) => {
            // Or it takes the space that there is until the log is opened again.
            let _ = storage.remove(&name);
            Err(error)
        }
    }
}

/// Makes a file of the right size a segment, durably.
pub(crate) fn make_ready<E: Environment>(
    environment: &E,
    geometry: Geometry,
    header: SegmentHeader,
    file: &FileOf<E>,
    is_new: bool,
) -> io::Result<()> {
    let mut buffer = Buffer::new(geometry.granule as usize);
    let granule = 0..geometry.granule as usize;
    header.encode(buffer.bytes_mut(granule.clone()));
    file.write(buffer.bytes(granule), 0, Durability::Later)?;
    if !planted!(environment, SkipSegmentSync) {
        file.sync()?;
    }
    if is_new && !planted!(environment, SkipDirectorySync) {
        environment.storage().sync()?;
    }
    Ok(())
}

/// Writes zeros to a segment as long as nobody wants to enter it.
pub(super) fn fill<E: Environment>(
    shared: &Arc<Shared<E>>,
    sequence: u64,
    file: &FileOf<E>,
) -> io::Result<()> {
    let geometry = shared.geometry;
    let goes_on = || {
        let state = E::lock(&shared.state);
        let is_wanted =
            state.segments.may_zero(sequence) || planted!(shared.environment, ZeroBehindWriter);
        is_wanted && !state.is_closing
    };
    let written = |bytes| E::lock(&shared.state).tally.zero_bytes += bytes;
    let is_written = zeros::write(file, geometry, geometry.granule, goes_on, written)?;
    if is_written { file.sync() } else { Ok(()) }
}
