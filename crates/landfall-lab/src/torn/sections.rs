//! The results in the order in which people read them: every protection on every disk; what becomes of the
//! gain when a condition is removed; PostgreSQL; Landfall's store; and whether it is safe.
//!
//! The terminal's tables and the report's charts are made from these, so that both show the same.

use landfall_results::{FilesystemSpec, Kind};
use landfall_results::{Metric, Series};

use super::catalogue::{Condition, Protection, StoreProtection, name, postgres_name, site};
use super::plan::latency;
use super::{Plan, TornResults};
use crate::stats::Estimate;

/// One disk with every protection of one engine.
#[derive(Clone, Debug)]
pub struct Sides<'a, P> {
    /// The disk.
    pub disk: &'a str,
    /// Those that were measured there.
    pub protections: Vec<Side<'a, P>>,
}

/// A protection on a disk.
#[derive(Clone, Debug)]
pub struct Side<'a, P> {
    /// Who protects pages.
    pub protection: P,
    /// What that costs there.
    pub series: &'a Series,
    /// Its rate over that of doublewrite, formed round by round.
    pub over: Option<Estimate>,
}

impl<'a, P: PartialEq> Sides<'a, P> {
    /// What a protection costs there.
    pub fn series(&self, protection: P) -> Option<&'a Series> {
        let mut sides = self.protections.iter();
        let side = sides.find(|side| side.protection == protection)?;
        Some(side.series)
    }
}

/// The usual protection and the published cure, under some conditions.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// What is different from what was published.
    pub label: String,
    /// The doublewrite buffer, on ext4 as it is.
    pub usual: &'a Series,
    /// data=journal without it.
    pub cure: &'a Series,
    /// Rate of the cure over the usual one, formed round by round.
    pub gain: Option<Estimate>,
}

/// Two settings of PostgreSQL on one disk.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The disk.
    pub disk: &'a str,
    /// `full_page_writes=on`.
    pub on: &'a Series,
    /// `full_page_writes=off`.
    pub off: &'a Series,
    /// Rate without over rate with.
    pub gain: Option<Estimate>,
}

/// What the disk is called where it is not a profile.
pub fn disk_text(disk: &str) -> &str {
    match disk {
        "none" => "this disk",
        profile => profile,
    }
}

pub(super) fn find<'a>(
    results: &'a TornResults,
    filesystem: FilesystemSpec,
    disk: &str,
    name: &str,
) -> Option<&'a Series> {
    let site = site(filesystem, latency(disk))?.key();
    let all = &results.measurements.series;
    all.iter()
        .find(|one| one.axes.site.as_ref() == Some(&site) && one.axes.case.as_deref() == Some(name))
}

/// `of` over `over`, round by round.
fn ratio(of: &Series, over: &Series) -> Option<Estimate> {
    of.ratio(over, Metric::RequestsPerSecond)
}

/// Every disk with each of the protections of one engine that was measured on it; `of` finds the series.
fn sides<'a, P: Copy + PartialEq>(
    results: &'a TornResults,
    all: &[P],
    doublewrite: P,
    of: impl Fn(&str, P) -> Option<&'a Series>,
) -> Vec<Sides<'a, P>> {
    let on = |disk: &'a String| {
        let usual = of(disk, doublewrite);
        let side = |&protection: &P| {
            let series = of(disk, protection)?;
            let usual = usual.filter(|_| protection != doublewrite);
            Some(Side {
                protection,
                series,
                over: usual.and_then(|usual| ratio(series, usual)),
            })
        };
        Sides {
            disk: disk.as_str(),
            protections: all.iter().filter_map(side).collect(),
        }
    };
    let found = results.latencies.iter().map(on);
    // Where there are only two, they are those of the conditions.
    found.filter(|sides| sides.protections.len() > 2).collect()
}

/// Every disk with every protection of MariaDB that was measured on it.
pub fn disks(results: &TornResults) -> Vec<Sides<'_, Protection>> {
    let of = |disk: &str, protection: Protection| {
        let name = name(protection, Condition::Published);
        find(results, protection.filesystem_spec(), disk, &name)
    };
    sides(results, &Protection::ALL, Protection::Doublewrite, of)
}

/// Every disk with every protection of Landfall's store that was measured on it.
pub fn stores(results: &TornResults) -> Vec<Sides<'_, StoreProtection>> {
    let of = |disk: &str, protection: StoreProtection| {
        find(
            results,
            protection.filesystem_spec(),
            disk,
            &protection.name(),
        )
    };
    let doublewrite = StoreProtection::Doublewrite;
    sides(results, &StoreProtection::ALL, doublewrite, of)
}

/// The disk on which conditions were removed.
pub fn base(results: &TornResults) -> Option<&str> {
    let mut disks = results.latencies.iter();
    let published = disks.clone().find(|disk| *disk == Plan::PUBLISHED);
    published.or(disks.next()).map(String::as_str)
}

/// The gain as published, on other disks, and without each condition.
pub fn conditions(results: &TornResults) -> Vec<Pair<'_>> {
    let pair = |disk: &str, condition: Condition, label: String| {
        let of = |protection: Protection| {
            find(
                results,
                protection.filesystem_spec(),
                disk,
                &name(protection, condition),
            )
        };
        let (usual, cure) = (of(Protection::Doublewrite)?, of(Protection::Journal)?);
        Some(Pair {
            label,
            gain: ratio(cure, usual),
            usual,
            cure,
        })
    };
    let Some(base) = base(results) else {
        return Vec::new();
    };
    let published = pair(
        base,
        Condition::Published,
        format!("as published, on {}", disk_text(base)),
    );
    let others = results.latencies.iter().filter(|disk| *disk != base);
    let on_others =
        others.filter_map(|disk| pair(disk, Condition::Published, disk_text(disk).to_owned()));
    let without = Condition::REMOVED
        .into_iter()
        .filter_map(|condition| pair(base, condition, condition.text().to_owned()));
    published
        .into_iter()
        .chain(on_others)
        .chain(without)
        .collect()
}

/// PostgreSQL on each disk that it was measured on.
pub fn sections(results: &TornResults) -> Vec<Section<'_>> {
    let section = |disk: &'_ String| {
        let of = |on| {
            find(
                results,
                FilesystemSpec::plain(Kind::Ext4),
                disk,
                &postgres_name(on),
            )
        };
        Some((of(true)?, of(false)?))
    };
    let found = results.latencies.iter().filter_map(|disk| {
        let (on, off) = section(disk)?;
        Some(Section {
            disk: disk.as_str(),
            gain: ratio(off, on),
            on,
            off,
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torn::fixtures::torn_results;

    #[test]
    fn every_disk_and_every_condition_has_its_row() {
        let results = torn_results();
        let disks = disks(&results);
        assert_eq!(disks.len(), 4);
        assert!(disks.iter().all(|sides| sides.protections.len() == 4));
        let over = |protection| {
            let mut sides = disks[0].protections.iter();
            let side = sides.find(|side| side.protection == protection);
            side.unwrap().over
        };
        let gain = over(Protection::Journal).unwrap();
        assert!((gain.median - 1.55).abs() < 0.01);
        assert!(over(Protection::Doublewrite).is_none());
        let conditions = conditions(&results);
        assert_eq!(conditions.len(), 1 + 3 + 5);
        assert_eq!(conditions[0].label, "as published, on hdd-7200,cache=off");
        assert_eq!(conditions[3].label, "this disk");
        assert!((conditions[4].gain.unwrap().median - 0.4).abs() < 0.01);
        assert_eq!(sections(&results).len(), 2);
        let stores = stores(&results);
        assert_eq!(stores.len(), 3);
        assert!(stores.iter().all(|sides| sides.protections.len() == 5));
        assert!(stores[0].series(StoreProtection::Nobody).is_some());
        let mut few = results.clone();
        few.measurements.series.clear();
        assert!(super::disks(&few).is_empty() && super::conditions(&few).is_empty());
        assert!(super::stores(&few).is_empty());
    }
}
