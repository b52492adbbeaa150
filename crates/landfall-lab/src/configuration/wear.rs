//! What a trial's writes cost the flash of a drive, where a recorder can tell where was written.
//!
//! The model takes a whole drive filled with what the device holds; so the device must hold this database and
//! nothing that others left: each start has a filesystem of its own where wear is asked for.

use landfall_recorder::Recorder;
use landfall_recorder::wear::{Drive, Wear, Writes};

use landfall_databases::DatabaseError;
use landfall_results::{Metric, Trial};

/// Begins to keep where is written.
pub(super) fn begin(recorder: &Recorder) -> Result<(), DatabaseError> {
    recorder.keep_writes().map_err(failed)
}

/// What was written since [`begin`], if it was kept and there was something.
pub(super) fn end(recorder: &Recorder) -> Option<Writes> {
    recorder.take_writes().filter(|writes| !writes.is_empty())
}

/// Puts into the trial what these writes cost `drive`.
pub(super) fn tell(
    writes: &Writes,
    drive: &Drive,
    requests: u64,
    requests_per_second: f64,
    trial: &mut Trial,
) -> Result<(), DatabaseError> {
    let wear = Wear::of_writes(writes, drive).map_err(failed)?;
    let host = wear.host_bytes as f64 / requests as f64;
    let flash_bytes = wear.pages_in_use * u64::from(drive.page());
    for (metric, value) in [
        (Metric::NandKib, wear.nand_bytes_per(requests) / 1024.0),
        (Metric::Amplification, wear.amplification),
        (Metric::Rounding, wear.rounding()),
        (Metric::Copying, wear.copying()),
        (Metric::Rewrites, wear.rewrites),
        (Metric::FlashBytes, flash_bytes as f64),
        (Metric::Years, wear.years(drive, host * requests_per_second)),
    ] {
        trial.figures.set(metric, value);
    }
    trial.is_wear_steady = Some(wear.steady);
    Ok(())
}

fn failed(error: std::io::Error) -> DatabaseError {
    DatabaseError::Failed(format!("cannot reckon the wear of a drive: {error}"))
}
