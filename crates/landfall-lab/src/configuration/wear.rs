//! What a trial's writes cost the flash of a drive, where a recorder can tell where was written.
//!
//! The model takes a whole drive filled with what the device holds; so the device must hold this database and
//! nothing that others left: each start has a filesystem of its own where wear is asked for.

use landfall_recorder::Recorder;
use landfall_recorder::wear::{Drive, Wear};

use super::FlashWear;
use landfall_databases::DatabaseError;

/// Begins to keep where is written.
pub(super) fn begin(recorder: &Recorder) -> Result<(), DatabaseError> {
    recorder.keep_writes().map_err(failed)
}

/// What the writes since [`begin`] cost `drive`, if any were kept and there were some: `requests` were
/// served by them, so many in a second.
pub(super) fn end(
    recorder: &Recorder,
    drive: &Drive,
    requests: u64,
    requests_per_second: f64,
) -> Result<Option<FlashWear>, DatabaseError> {
    let Some(writes) = recorder.take_writes().filter(|writes| !writes.is_empty()) else {
        return Ok(None);
    };
    let wear = Wear::of_writes(&writes, drive).map_err(failed)?;
    let host = wear.host_bytes as f64 / requests as f64;
    Ok(Some(FlashWear {
        nand_kib: wear.nand_bytes_per(requests) / 1024.0,
        amplification: wear.amplification,
        rounding: wear.rounding(),
        copying: wear.copying(),
        rewrites: wear.rewrites,
        data_bytes: wear.pages_in_use * u64::from(drive.page()),
        steady: wear.steady,
        years: wear.years(drive, host * requests_per_second),
    }))
}

fn failed(error: std::io::Error) -> DatabaseError {
    DatabaseError::Failed(format!("cannot reckon the wear of a drive: {error}"))
}
