//! What is saved, and for how long it is logged.

use std::time::Duration;

use super::Policy;
use super::pace::Pace;
use super::record::HEADER;
use crate::{Error, PlanKind};

/// Seconds that a round takes besides logging, roughly.
const OVERHEAD_SECONDS: f64 = 1.0;

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
            log_seconds: 1.5,
            ..Plan::standard()
        }
    }

    /// Trials in all: a dump, a replay and a log for each policy in each round.
    pub fn trials(&self) -> usize {
        (2 + Policy::ALL.len()) * self.rounds as usize
    }

    /// Roughly how long it takes.
    pub fn expected(&self) -> Duration {
        let round = self.log_seconds * Policy::ALL.len() as f64 + OVERHEAD_SECONDS;
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

    /// Bytes that all rounds write: a dump, a log of every record, and a log of the updates for each
    /// policy.
    pub fn written_bytes(&self) -> u64 {
        let logs = self.log_bytes().saturating_mul(Policy::ALL.len() as u64);
        let round = self.state_bytes.saturating_mul(2).saturating_add(logs);
        round.saturating_mul(u64::from(self.rounds))
    }

    /// Bytes of a log of all updates, if it keeps up.
    fn log_bytes(&self) -> u64 {
        let updates = (self.updates_per_second * self.log_seconds) as u64;
        updates.saturating_mul(self.record_bytes)
    }

    /// Bytes that must be free: the dump that is, the one that is being written, a log of every record,
    /// and a log of the updates; and a tenth and 8 MiB for the filesystem's own needs.
    pub fn required_bytes(&self) -> u64 {
        let files = self.state_bytes.saturating_mul(3);
        let files = files.saturating_add(self.log_bytes());
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
