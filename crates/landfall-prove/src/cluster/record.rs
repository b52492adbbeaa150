//! Runs a cluster on recorded filesystems, and kills it.

use std::fs::{self, File};
use std::path::PathBuf;

use landfall_os::sync_filesystem;
use landfall_recorder::{CommonOrder, Options, SiteRecording};

use super::{ClusterPlan, Cuts, Rolling};
use crate::record::run_workload;
use crate::scratch_fs::{BackingDevice, ScratchFilesystem};
use crate::worker::home;
use crate::{Error, Stop};

/// What was recorded of a cluster.
pub(super) struct RecordedSite {
    /// Of each node's device.
    pub recording: SiteRecording,
    /// Events of all nodes until the last of them was killed. What came later was written by kernels that still had power.
    pub killed_at: usize,
    /// Nodes that ended before the others, each with how many events of all nodes there were by then.
    pub ended: Vec<(usize, usize)>,
}

/// Prepares the cluster and records what it does, in a network of its own. When it has been killed the filesystems write out
/// what they have, as they do where the power stays on: that is in the recording too, after `killed_at`.
pub(super) fn record(plan: &ClusterPlan, memory: u64, stop: &Stop) -> Result<RecordedSite, Error> {
    let order = CommonOrder::default();
    let size = plan.filesystem.small_size_for(plan.subject.capacity());
    let made = (0..plan.nodes).map(|_| {
        let options = Options {
            memory,
            directory: plan.directory.clone(),
            hold: plan.hold,
            order: Some(order.clone()),
            ..Options::new(size)
        };
        let backing = BackingDevice::recorder(&options, 0)?;
        ScratchFilesystem::make(&plan.filesystem, backing, stop)
    });
    let made = made.collect::<Result<Vec<ScratchFilesystem>, Error>>()?;
    let directories: Vec<PathBuf> = made.iter().map(|one| home(one.directory())).collect();
    for directory in &directories {
        fs::create_dir(directory).map_err(Error::io("cannot create a node's directory"))?;
    }
    plan.subject.prepare(&directories, stop).map_err(|error| {
        if stop.is_requested() {
            return Error::Stopped;
        }
        let name = plan.subject.name();
        Error::Subject(format!("{name} cannot be prepared: {error}"))
    })?;
    let recorders: Vec<_> = made
        .iter()
        .filter_map(ScratchFilesystem::recorder)
        .collect();
    assert_eq!(recorders.len(), made.len(), "each is on a recorder");
    // Nothing runs: it does not matter that one begins after the other.
    sync(&made)?;
    for recorder in &recorders {
        recorder
            .record()
            .map_err(Error::io("cannot begin to record"))?;
    }
    let mut rolling = match plan.cuts {
        Cuts::Rolling => {
            let first = plan.seed as usize % plan.nodes;
            Rolling::new(&order, plan.nodes, plan.transactions, first)
        }
        _ => Rolling::none(&order),
    };
    let run =
        |sink: &mut dyn crate::AckSink| plan.subject.run(&directories, sink, &mut rolling, stop);
    let result = run_workload(recorders[0], plan.transactions, None, stop, run)?;
    let killed_at = order.len();
    let ended = rolling.ended();
    // The marks have been written; whoever keeps his power keeps what is in the page cache.
    sync(&made)?;
    let recording = SiteRecording::finish(&order, &recorders);
    let recording = recording.map_err(Error::io("cannot keep the recording"))?;
    match result {
        _ if stop.is_requested() => return Err(Error::Stopped),
        Ok(()) => {}
        Err(error) => {
            let name = plan.subject.name();
            return Err(Error::Subject(format!("{name} cannot be run: {error}")));
        }
    }
    for one in made {
        one.close()?;
    }
    Ok(RecordedSite {
        recording,
        killed_at,
        ended,
    })
}

fn sync(made: &[ScratchFilesystem]) -> Result<(), Error> {
    for one in made {
        File::open(one.directory())
            .and_then(|root| sync_filesystem(&root))
            .map_err(Error::io("cannot sync a node's filesystem"))?;
    }
    Ok(())
}
