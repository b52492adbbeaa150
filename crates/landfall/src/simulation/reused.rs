//! A log that fills its disk is truncated, so that what it gives up is taken for new records at once: not before that is durable.

use shuttle::thread;

use super::Fault;
use super::disk::{Disk, Loss};
use super::environment::{Simulated, Way};
use super::history::Broken;
use super::scenario::{Log, Outcome, simulate};
use super::torn_over::{small, wrong};
use crate::log::Handle;
use crate::{Error, Lsn};

const LIVES: usize = 8;
/// Segments that a disk has space for.
const SEGMENTS: u64 = 6;

/// In each life a log is filled, and truncated while the power goes.
pub(crate) fn reused(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let way = Way::any(rng);
        let scale = u64::from(way.granule) / 512;
        let options = small(scale);
        let mut disk = Disk::new(way.block(), rng.u64(..));
        // Where it may begin, and where it ends.
        let (mut firsts, mut end) = ([Lsn(1); 2], Lsn(1));
        for life in 0..LIVES {
            let environment = Simulated::new(&disk, way, planted, rng.u64(..));
            let log = Handle::open(&environment, options.clone()).map_err(wrong)?;
            let first = log.first_lsn();
            if !firsts.contains(&first) || log.next_lsn() < end {
                return Err(format!(
                    "in life {life} it is from {first:?} to {:?}, and not from one of {firsts:?} to {end:?}",
                    log.next_lsn()
                ));
            }
            read_all(&log)?;
            disk.set_space(SEGMENTS * options.segment_bytes);
            end = fill(&log, 1000 * scale as usize)?;
            let next = Lsn(rng.u64(first.0..=end.0));
            firsts = [first, next];
            disk.cut_power_after(rng.u64(0..16));
            // What it says is not known any more.
            drop(log.truncate_before(next));
            (0..rng.usize(0..30)).for_each(|_| thread::yield_now());
            disk.cut_power_now();
            drop(log);
            let loss = [Loss::Everything, Loss::Sectors, Loss::Nothing][rng.usize(0..3)];
            disk = disk.after_power_cut(loss, rng);
            found.states.insert(disk.digest());
        }
        Ok(())
    })
}

/// Appends durable records until there is no space; the next record then.
fn fill(log: &Log, bytes: usize) -> Result<Lsn, Broken> {
    loop {
        match log.append_durable(&vec![7; bytes]) {
            Ok(_) => {}
            Err(Error::NoSpace { .. }) => return Ok(log.durable_end()),
            Err(other) => return Err(wrong(other)),
        }
    }
}

fn read_all(log: &Log) -> Result<(), Broken> {
    let mut reader = log.read(log.first_lsn()).map_err(wrong)?;
    while reader.next().map_err(wrong)?.is_some() {}
    Ok(())
}
