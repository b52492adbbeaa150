//! The way of writing that screen and report name first, and how far it is known to be the fastest that is safe.
//!
//! Nothing that is not meant to be durable, or lost something when the power was cut, is named first. Nothing is said to
//! lose nothing that was not proven.

use landfall_os::Medium;
use landfall_results::{Metric, Series, SeriesProof};

use super::safety::is_at_risk;
use crate::Results;
use crate::facts::virtual_disk;
use crate::numbers::thousands;
use crate::sync::SyncResults;
use crate::sync::safety::{Safety, fastest_durable, is_comparable, safety, timed, way};

/// The way that stands first, and those that cannot be told from it.
pub(super) struct Lead<'a> {
    pub series: &'a Series,
    /// Others that are as fast, by their intervals.
    pub ties: Vec<&'a Series>,
    pub is_proven: bool,
    /// No other that is meant to be durable was measured with as much at once.
    is_alone: bool,
}

impl<'a> Lead<'a> {
    /// What was proven where anything was, and otherwise what is meant to be durable.
    pub fn of(sync: &'a SyncResults) -> Option<Lead<'a>> {
        let is_proven = timed(sync).any(|(series, _)| safety(series) != Safety::NotProven);
        let trusted = |series: &Series| !is_proven || safety(series) == Safety::LostNothing;
        let ((series, _), ties) = fastest_durable(sync, trusted)?;
        let mut rivals = timed(sync).map(|(one, _)| one);
        let is_alone = !rivals.any(|one| {
            one.axes.is_durable() && one.key != series.key && is_comparable(one, series)
        });
        Some(Lead {
            is_alone,
            series,
            ties: ties.into_iter().map(|(series, _)| series).collect(),
            is_proven,
        })
    }

    pub fn has_spread(&self) -> bool {
        self.series.trials.len() > 1
    }

    /// Whether its figures say that nothing is faster, or only as fast.
    pub fn is_sure(&self, results: &Results) -> bool {
        self.has_spread() && !results.is_too_noisy()
    }

    /// Whether rounds of another are all faster than the same rounds of this one, though both vary by more than that.
    fn is_a_little_slower(&self) -> bool {
        let is_faster = |other: &&Series| {
            let ratio = other.ratio(self.series, Metric::OpsPerSecond);
            ratio.is_some_and(|ratio| ratio.low > 1.0)
        };
        self.ties.iter().any(is_faster)
    }

    /// What proved that it lost nothing.
    pub fn proof(&self) -> Option<&'a SeriesProof> {
        self.series.proof.as_ref().filter(|_| self.is_proven)
    }

    /// Whether something here makes it unsafe whatever is documented, or was proven on other disks.
    pub fn is_doubtful(&self, results: &Results) -> bool {
        is_at_risk(&results.filesystem, self.series) || results.is_in_doubt()
    }

    /// That it is to be used, and why; `rate`: how often it writes, and what.
    pub fn advice(&self, results: &Results, rate: &str) -> String {
        let way = way(self.series);
        if self.is_doubtful(results) {
            let so = match self.proof() {
                Some(_) => "lost nothing in simulated power cuts",
                None => "is meant to be durable",
            };
            return format!("The fastest that {so}: {way}, {rate}.");
        }
        if self.is_alone {
            return format!("The only durable way that was measured: {way}, {rate}.");
        }
        let others = match (self.is_sure(results), self.is_a_little_slower()) {
            (false, _) => "perhaps none as safe is faster",
            (true, true) => "none as safe is much faster",
            (true, false) => "none as safe is clearly faster",
        };
        format!("Use {way}, {rate}: {others}.")
    }

    /// How far it is known to be safe, and on whom that depends.
    pub fn standing(&self, results: &Results) -> String {
        if let Some(proof) = self.proof() {
            let states = thousands(proof.states as f64);
            return format!("It lost nothing in {states} simulated power cuts.");
        }
        if self.is_doubtful(results) {
            return "No power cut tested it.".to_owned();
        }
        let storage = results.filesystem.storage();
        let depends = match storage.medium {
            Medium::Device if virtual_disk(storage).is_some() => " if the host really flushes",
            Medium::Device | Medium::Memory => "",
            Medium::Network => " if the server really flushes",
            Medium::Passthrough | Medium::Unknown => " if what is below really flushes",
        };
        format!("Documented as safe{depends}; no power cut tested it.")
    }
}
