//! Records that are alike, written again and again over those that a power cut took: what is torn must not complete what was gone.
//!
//! In other scenes no two records have a sector in common, so that none of one can stand in for that of another.

use fastrand::Rng;
use shuttle::thread;

use super::Fault;
use super::disk::{Disk, How, Loss};
use super::environment::{Simulated, Way};
use super::history::Broken;
use super::scenario::{Log, Outcome, simulate};
use crate::log::Handle;
use crate::{Error, Options};

const LIVES: u8 = 8;
/// Bytes of a record where a sector has 512, of which the first few alone tell it from others: three sectors.
const BYTES: usize = 1300;
const OWN: usize = 100;

/// In each life of a log some records are appended, and nobody waits until they are durable.
pub(crate) fn torn_over(seed: u64, planted: Option<Fault>) -> Outcome {
    simulate(seed, move |rng, found| {
        let way = Way::any(rng);
        let scale = u64::from(way.granule) / 512;
        let options = small(scale).segment_bytes([4096, 16384][rng.usize(0..2)] * scale);
        let mut disk = Disk::new(way.block(), rng.u64(..));
        // By the byte that tells it.
        let mut known: Vec<u8> = Vec::new();
        let mut appended: Vec<u8> = Vec::new();
        for life in 0..LIVES {
            let open = |rng: &mut Rng| {
                let environment = Simulated::new(&disk, way, planted, rng.u64(..));
                Handle::open(&environment, options.clone())
            };
            // Something of the opening may fail, and it is opened again while the power stays.
            if rng.bool() {
                disk.fail_after(rng.u64(1..40), false, How::Io);
                drop(open(rng));
                disk.fail(None);
                disk.kill();
            }
            let log = open(rng).map_err(wrong)?;
            let there = everything(&log)?;
            let (before, since) = there
                .split_at_checked(known.len())
                .ok_or("records are gone")?;
            if before != known || !appended.starts_with(since) {
                return Err(format!(
                    "in life {life} there is {there:?}, where {known:?} was and {appended:?} was appended"
                ));
            }
            known = there;
            appended.clear();
            for _ in 0..rng.usize(1..4) {
                let own = 1 + life * 4 + appended.len() as u8;
                // Nothing that is there where nothing was written.
                let mut record = vec![u8::MAX; BYTES * scale as usize];
                record[..OWN].fill(own);
                log.append(&record).map_err(wrong)?;
                appended.push(own);
                pass(rng);
            }
            disk.cut_power_now();
            drop(log);
            disk = disk.after_power_cut(Loss::Sectors, rng);
            found.states.insert(disk.digest());
        }
        Ok(())
    })
}

/// Of a log that soon needs another segment, on a disk whose blocks have so many times 512 bytes.
pub(super) fn small(scale: u64) -> Options {
    Options {
        segment_bytes: 4096 * scale,
        spare_segments: 1,
        buffer_bytes: 4096 * scale,
        max_unwritten_bytes: 512 * scale,
        max_unsynced_bytes: 1 << 20,
        max_pending_commits: 4,
    }
}

pub(super) fn wrong(error: Error) -> Broken {
    format!("an honest disk failed: {error}")
}

/// Moments in which other threads write.
fn pass(rng: &mut Rng) {
    (0..rng.usize(0..60)).for_each(|_| thread::yield_now());
}

/// The byte of each record, in their order.
fn everything(log: &Log) -> Result<Vec<u8>, Broken> {
    let mut reader = log.read(log.first_lsn()).map_err(wrong)?;
    let mut all = Vec::new();
    while let Some((_, record)) = reader.next().map_err(wrong)? {
        all.extend(record.first());
    }
    Ok(all)
}
