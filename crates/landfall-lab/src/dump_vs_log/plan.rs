//! What is saved, and for how long it is logged.

use std::time::Duration;

use landfall::Options;
use landfall_results::Saving;

use super::pace::Pace;
use super::record::HEADER;
use crate::{Error, PlanKind};

/// Seconds that a round takes besides logging, roughly.
const OVERHEAD_SECONDS: f64 = 1.5;
/// Records of the log that is replayed, at most: enough to tell what one costs.
const REPLAYED: u64 = 100_000;
/// The granule of a log on nearly every device: an update that is committed on its own takes as many whole ones as it
/// needs. Where blocks are larger, logs take more space than is reckoned here.
const GRANULE: u64 = 512;
/// Bytes that the log adds to a record, at most.
const BLOCK_HEADER: u64 = 64;
/// Bytes of a segment, from and to.
const SEGMENTS: (u64, u64) = (1 << 20, 16 << 20);
/// Segments ahead: a few more than are reckoned, where blocks are larger; and at most as many as the engine allows.
const LEAST_SPARE: u64 = 4;
const MOST_SPARE: u64 = 16;
/// Segments of the state's log: the one in use, and those that are made ahead.
const STATE_SPARE: u32 = 1;

/// A state and the updates to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which plan it is.
    pub kind: PlanKind,
    /// Bytes of the state; rounded down to whole records.
    pub state_bytes: u64,
    /// Whether the user chose them: a state that does not fit is then refused instead of made smaller.
    pub state_is_chosen: bool,
    /// Bytes of a record, header included.
    pub record_bytes: u64,
    /// Updates that come in per second.
    pub updates_per_second: f64,
    /// Seconds for which each policy logs them.
    pub log_seconds: f64,
    /// How often everything is measured.
    pub rounds: u32,
}

impl Plan {
    /// Rounds, unless chosen.
    pub const ROUNDS: u32 = 5;

    /// A state of half a GiB in records of 256 bytes, of which a thousand a second change.
    pub fn standard() -> Plan {
        Plan {
            kind: PlanKind::Standard,
            state_bytes: 512 << 20,
            state_is_chosen: false,
            record_bytes: 256,
            updates_per_second: 1_000.0,
            log_seconds: 3.0,
            rounds: Plan::ROUNDS,
        }
    }

    /// A quarter of that, logged for as long as a sync every second needs to be seen.
    pub fn short() -> Plan {
        Plan {
            kind: PlanKind::Short,
            state_bytes: 128 << 20,
            log_seconds: 1.1,
            ..Plan::standard()
        }
    }

    /// Trials in all: each way in each round.
    pub fn trials(&self) -> usize {
        Saving::ALL.len() * self.rounds as usize
    }

    /// Roughly how long it takes.
    pub fn expected(&self) -> Duration {
        let round = self.log_seconds * Saving::LOGS.len() as f64 + OVERHEAD_SECONDS;
        Duration::try_from_secs_f64(round * f64::from(self.rounds)).unwrap_or(Duration::MAX)
    }

    /// Records in the state.
    pub fn records(&self) -> u64 {
        self.state_bytes / self.record_bytes
    }

    /// Bytes of the state in whole records.
    pub fn saved_bytes(&self) -> u64 {
        self.records() * self.record_bytes
    }

    /// How the updates come in.
    pub(super) fn pace(&self) -> Pace {
        Pace::new(self.updates_per_second, self.log_seconds)
    }

    /// Records of the log that is replayed.
    pub(super) fn replayed(&self) -> u64 {
        self.records().min(REPLAYED)
    }

    /// Bytes that all rounds write: a dump, two snapshots, a long log whose segments are zeros first, and a log of the
    /// updates in each way.
    pub fn written_bytes(&self) -> u64 {
        let logs = self.log_bytes().saturating_mul(Saving::LOGS.len() as u64);
        let replay = self.replay_bytes().saturating_mul(2);
        let round = self.state_bytes.saturating_mul(3);
        let round = round.saturating_add(replay).saturating_add(logs);
        round.saturating_mul(u64::from(self.rounds))
    }

    /// Bytes of a log of all updates, if it keeps up and each is committed on its own.
    fn log_bytes(&self) -> u64 {
        let updates = (self.updates_per_second * self.log_seconds) as u64;
        let granules = self
            .record_bytes
            .saturating_add(BLOCK_HEADER)
            .div_ceil(GRANULE);
        updates.saturating_mul(granules.saturating_mul(GRANULE))
    }

    fn replay_bytes(&self) -> u64 {
        self.replayed().saturating_mul(self.record_bytes)
    }

    /// Options of the log of updates: as much is written ahead as a trial needs, so that it does as a log does that has
    /// been in use for long, whose segments come back when a dump has made them superfluous.
    pub(super) fn log_options(&self) -> Options {
        let spare = (self.log_bytes() / self.segment_bytes()).saturating_add(1);
        let spare = spare.clamp(LEAST_SPARE, MOST_SPARE) as u32;
        Options::default()
            .segment_bytes(self.segment_bytes())
            .spare_segments(spare)
    }

    /// Options of the log that is replayed, and of the state's own.
    pub(super) fn other_log_options(&self) -> Options {
        Options::default()
            .segment_bytes(self.segment_bytes())
            .spare_segments(STATE_SPARE)
    }

    fn segment_bytes(&self) -> u64 {
        let (least, most) = SEGMENTS;
        let wanted = self.log_bytes() / MOST_SPARE;
        wanted.clamp(least, most).next_multiple_of(least)
    }

    /// Bytes that must be free: the dump that is, the last snapshot, whatever of both is being written, a long log,
    /// and a log of the updates, with the segments that are made ahead; and a tenth and 8 MiB for the filesystem's own
    /// needs.
    pub fn required_bytes(&self) -> u64 {
        let files = self.state_bytes.saturating_mul(3);
        let files = files.saturating_add(self.replay_bytes());
        let files = files.saturating_add(self.log_bytes());
        let ahead = u64::from(2 * (STATE_SPARE + 2)) + LEAST_SPARE + 2;
        let files = files.saturating_add(ahead * self.segment_bytes());
        (files / 10).saturating_mul(11).saturating_add(8 << 20)
    }

    /// Refuses what cannot be measured, before anything is.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Usage(text));
        if self.record_bytes <= HEADER as u64 {
            return refuse(format!(
                "a record has a header of {HEADER} bytes: name at least {} bytes with --record",
                HEADER + 1
            ));
        }
        if self.record_bytes > self.state_bytes {
            return refuse(format!(
                "a record of {} bytes is larger than a state of {}: name a smaller --record",
                self.record_bytes, self.state_bytes
            ));
        }
        if !(self.updates_per_second.is_finite() && self.updates_per_second > 0.0) {
            return refuse("at least some updates must come in per second".into());
        }
        if !(self.log_seconds.is_finite() && self.log_seconds > 0.0) {
            return refuse("updates must be logged for some time".into());
        }
        if self.rounds == 0 {
            return refuse("at least one round is needed".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_a_number_is_not_taken_for_little() {
        let plan = Plan {
            state_bytes: 1 << 40,
            record_bytes: 1 << 40,
            updates_per_second: 1e7,
            log_seconds: 86_400.0,
            ..Plan::standard()
        };
        assert_eq!(plan.required_bytes(), u64::MAX);
        assert_eq!(plan.written_bytes(), u64::MAX);
    }
}
