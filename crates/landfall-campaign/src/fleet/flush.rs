//! Disks whose flush is suspicious: quicker than a volatile cache can be written out.
//!
//! Time alone proves nothing: a cache with a capacitor behind it is flushed as quickly as a flush is ignored. So no disk is said to
//! lie here; only a real power cut tells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::figure::Figure;
use super::outlier::{Kind, Outlier, times};

/// A flush that adds less than this share to a write costs next to nothing.
pub const NEXT_TO_NOTHING: f64 = 0.1;

/// What makes a flush suspicious.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Sign {
    /// It costs next to nothing beside a write without one.
    CostsNothing,
    /// It is far quicker than that of other disks of the model.
    QuickerThanPeers,
}

/// A disk whose flush is suspicious.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suspicion {
    /// Index into the fleet's disks.
    pub disk: usize,
    /// Its label.
    pub label: String,
    /// Its model.
    pub model: String,
    /// What makes it suspicious.
    pub sign: Sign,
    /// Why, in a sentence.
    pub reason: String,
}

/// All disks that say that their cache is volatile, and flush it too quickly.
pub(super) fn suspicious(
    disks: &[Disk],
    figures: &[Figure],
    outliers: &[Outlier],
) -> Vec<Suspicion> {
    let volatile = disks
        .iter()
        .enumerate()
        .filter(|(_, disk)| disk.volatile_cache == Some(true));
    let mut suspicions = Vec::new();
    for (index, disk) in volatile {
        let said = costs_nothing(disk)
            .map(|reason| (Sign::CostsNothing, reason))
            .or_else(|| {
                let reason = quicker_than_peers(index, figures, outliers)?;
                Some((Sign::QuickerThanPeers, reason))
            });
        if let Some((sign, reason)) = said {
            suspicions.push(Suspicion {
                disk: index,
                label: disk.label.clone(),
                model: disk.identity.model.clone(),
                sign,
                reason,
            });
        }
    }
    suspicions
}

/// Why a flush costs next to nothing, if the whole interval says so.
fn costs_nothing(disk: &Disk) -> Option<String> {
    let ratio = disk.flush?;
    let added = |ratio: f64| format!("{:.0}%", (ratio - 1.0).max(0.0) * 100.0);
    (ratio.high < 1.0 + NEXT_TO_NOTHING).then(|| {
        let who = match &disk.virtual_driver {
            Some(driver) => format!("its {driver} disk, which a host serves,"),
            None => format!("its disk ({})", disk.identity.model),
        };
        format!(
            "{}: {who} says that its cache is volatile, yet a flush adds {} [{}, {}] to a write.",
            disk.label,
            added(ratio.median),
            added(ratio.low),
            added(ratio.high),
        )
    })
}

/// Why it is quicker than its peers, if it is an outlier by a durable write.
fn quicker_than_peers(index: usize, figures: &[Figure], outliers: &[Outlier]) -> Option<String> {
    let outlier = outliers.iter().find(|one| one.disk == index)?;
    // Among other models a quick disk is nothing strange.
    if outlier.kind != Kind::Fast || outlier.peers.model.is_none() {
        return None;
    }
    let mut durable = outlier.deviations.iter();
    let told = durable.find(|one| one.slowness < 1.0 && figures[one.figure].durable)?;
    Some(format!(
        "{}: {} takes {} times what the other {} {} take, though its cache is volatile too.",
        outlier.label,
        figures[told.figure].what,
        times(told.slowness),
        told.count,
        outlier.peers.text(),
    ))
}
