//! The thread that makes segments ahead of need.

use std::io;
use std::sync::Arc;

use super::buffer::Buffer;
use super::format::{Geometry, SegmentHeader, segment_name};
use super::segments::Task;
use super::shared::Shared;
use super::zeros;
use crate::environment::{Durability, Environment, Fault, File};

pub(crate) fn start<E: Environment>(shared: &Arc<Shared<E>>) -> io::Result<E::Thread> {
    let own = shared.clone();
    shared
        .environment
        .spawn("landfall-segments", move || work(&own))
}

fn work<E: Environment>(shared: &Arc<Shared<E>>) {
    let mut state = E::lock(&shared.state);
    while !state.is_closing && !state.is_poisoned() {
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
    let environment = &shared.environment;
    match task {
        Task::Ready {
            sequence,
            number,
            used,
        } => {
            let is_written = used.is_some();
            let file = match used.map_or_else(|| make(shared, number), Ok) {
                Ok(file) => file,
                Err(error) => {
                    tracing::warn!(%error, "no segment can be made");
                    return E::lock(&shared.state).segments.fail(error);
                }
            };
            let made = make_ready(
                environment,
                shared.geometry,
                shared.log,
                sequence,
                &*file,
                !is_written,
            );
            let mut state = E::lock(&shared.state);
            match made {
                Ok(()) => state.segments.add(sequence, number, file, is_written),
                // The file may be this segment, or not: another one must not be it as well.
                Err(error) => shared.poison(&mut state, "making a segment", error),
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
            if let Err(error) = environment.remove(&segment_name(number)) {
                tracing::warn!(%error, "a segment that is not needed cannot be removed");
            }
        }
    }
}

/// A file with the space for a segment, which is none yet.
fn make<E: Environment>(shared: &Arc<Shared<E>>, number: u64) -> io::Result<Arc<E::File>> {
    let name = segment_name(number);
    let file = shared.environment.create(&name)?;
    match file.allocate(shared.geometry.segment) {
        Ok(()) => Ok(Arc::new(file)),
        Err(error) => {
            // Or it takes the space that there is until the log is opened again.
            let _ = shared.environment.remove(&name);
            Err(error)
        }
    }
}

/// Makes a file of the right size a segment, durably.
pub(crate) fn make_ready<E: Environment>(
    environment: &E,
    geometry: Geometry,
    log: u64,
    sequence: u64,
    file: &E::File,
    is_new: bool,
) -> io::Result<()> {
    let mut buffer = Buffer::new(geometry.granule as usize);
    let granule = 0..geometry.granule as usize;
    SegmentHeader { log, sequence }.encode(buffer.bytes_mut(granule.clone()));
    file.write(buffer.bytes(granule), 0, Durability::Later)?;
    if !environment.is_planted(Fault::SkipSegmentSync) {
        file.sync()?;
    }
    if is_new && !environment.is_planted(Fault::SkipDirectorySync) {
        environment.sync_directory()?;
    }
    Ok(())
}

/// Writes zeros to a segment as long as nobody enters it.
fn fill<E: Environment>(shared: &Arc<Shared<E>>, sequence: u64, file: &E::File) -> io::Result<()> {
    let (geometry, mut at) = (shared.geometry, shared.geometry.granule);
    let heedless = shared.environment.is_planted(Fault::ZeroBehindWriter);
    while at < geometry.segment {
        let state = E::lock(&shared.state);
        let is_wanted = state.segments.may_zero(sequence) || heedless;
        let is_over = !is_wanted || state.is_closing;
        drop(state);
        if is_over {
            return Ok(());
        }
        let to = geometry.segment.min(at + zeros::chunk(geometry));
        zeros::write(file, geometry, at, to)?;
        at = to;
    }
    file.sync()
}
