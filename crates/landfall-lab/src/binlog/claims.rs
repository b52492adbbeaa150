//! The published claims of experiment `binlog`, and their verdicts.
//!
//! They are of January 2009: sysbench without its reads, 100,000 rows, on ext3, ext2 and XFS of that time, on
//! a RAID controller with a battery and on a block device in memory. Where the number of threads is not told
//! with a figure, two are meant, with which the sentence before it ends. A claim is judged by ratios that are
//! formed round by round; its band says how far today's may be from the published one.

use landfall_results::{Metric, Series};

use super::plan::name;
use crate::SiteKind;
use crate::SiteResult;
use crate::claim::{self, Band, Claim, ClaimResult, Compared, Evidence, Figure, Published};
use crate::configuration::Measurements;
use crate::scratch_fs::Kind;

const SOURCE: &str = "P. Zaitsev, \"Beware: ext3 and sync-binlog do not play well together\", 21 January 2009, https://www.percona.com/blog/2009/01/21/beware-ext3-and-sync-binlog-do-not-play-well-together/";

/// A filesystem, as a claim names it.
#[derive(Clone, Copy)]
struct Place {
    filesystem: Kind,
    /// Its `data=`, where it is not the usual one.
    data: Option<&'static str>,
    in_memory: bool,
}

const fn disk(filesystem: Kind) -> Place {
    Place {
        filesystem,
        data: None,
        in_memory: false,
    }
}

const EXT2: Place = disk(Kind::Ext2);
const EXT3: Place = disk(Kind::Ext3);
const EXT4: Place = disk(Kind::Ext4);
const XFS: Place = disk(Kind::Xfs);
const WRITEBACK: Place = Place {
    data: Some("writeback"),
    ..EXT3
};
const JOURNAL: Place = Place {
    data: Some("journal"),
    ..EXT3
};
const MEMORY: Place = Place {
    in_memory: true,
    ..EXT3
};

impl Place {
    fn is(&self, site: &SiteResult) -> bool {
        let Some(spec) = &site.description.filesystem_spec else {
            return false;
        };
        let backing = if self.in_memory {
            site.description.kind == SiteKind::Memory
        } else {
            [SiteKind::Loop, SiteKind::Recorder].contains(&site.description.kind)
        };
        let data = match self.data {
            Some(mode) => spec.mount_options == format!("data={mode}"),
            None => ["", "data=ordered"].contains(&&*spec.mount_options),
        };
        backing && data && spec.kind == self.filesystem && spec.mkfs_options.is_empty()
    }
}

/// A database with its binary log synced or not, on a filesystem.
#[derive(Clone, Copy)]
struct Case {
    place: Place,
    sync_binlog: &'static str,
    clients: u32,
}

impl Place {
    /// Two clients, and the binary log synced.
    const fn synced(self) -> Case {
        Case {
            place: self,
            sync_binlog: "1",
            clients: 2,
        }
    }

    /// Two clients, and the binary log not synced.
    const fn unsynced(self) -> Case {
        Case {
            sync_binlog: "0",
            ..self.synced()
        }
    }
}

impl Case {
    /// The same with one client.
    const fn of_one(self) -> Case {
        Case { clients: 1, ..self }
    }
}

const fn rate(of: Case) -> Figure<Case> {
    Figure {
        metric: Metric::RequestsPerSecond,
        name: "transactions per second",
        of,
    }
}

/// Of one client, whose commits share no flush.
const fn flushes(of: Case) -> Figure<Case> {
    Figure {
        metric: Metric::Flushes,
        name: "flushes per transaction",
        of: of.of_one(),
    }
}

static CLAIMS: [Claim<Case>; 11] = [
    Claim {
        published: Published {
            id: "second-client-makes-ext3-slower",
            statement: "With the binary log synced, ext3 is slower with two clients than with one (1,060 to 610 a second)",
            source: SOURCE,
            value: Some(610.0 / 1_060.0),
            band: Band::at_most(0.9),
        },
        figure: rate(EXT3.synced()),
        compared: Compared::Over(rate(EXT3.synced().of_one())),
        only: None,
    },
    Claim {
        published: Published {
            id: "no-disk-needed",
            statement: "The loss is not the disk's: on ext3 in main memory a third is left when the binary log is synced (2,350 to 750 a second)",
            source: SOURCE,
            value: Some(750.0 / 2_350.0),
            band: Band::between(0.2, 0.5),
        },
        figure: rate(MEMORY.synced()),
        compared: Compared::Over(rate(MEMORY.unsynced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "writeback-is-no-cure",
            statement: "data=writeback is no faster than data=ordered",
            source: SOURCE,
            value: Some(1.0),
            band: Band::between(0.8, 1.25),
        },
        figure: rate(WRITEBACK.synced()),
        compared: Compared::Over(rate(EXT3.synced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "journal-is-no-cure",
            statement: "data=journal is as fast as data=ordered",
            source: SOURCE,
            value: Some(1.0),
            band: Band::between(0.8, 1.25),
        },
        figure: rate(JOURNAL.synced()),
        compared: Compared::Over(rate(EXT3.synced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "xfs-loses-a-tenth",
            statement: "On XFS syncing the binary log costs a tenth (2,550 to 2,350 a second)",
            source: SOURCE,
            value: Some(2_350.0 / 2_550.0),
            band: Band::between(0.85, 1.0),
        },
        figure: rate(XFS.synced()),
        compared: Compared::Over(rate(XFS.unsynced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "ext2-as-xfs",
            statement: "ext2 behaves as XFS does",
            source: SOURCE,
            value: Some(1.0),
            band: Band::between(0.85, 1.18),
        },
        figure: rate(EXT2.synced()),
        compared: Compared::OverAsMuch(
            rate(EXT2.unsynced()),
            [rate(XFS.synced()), rate(XFS.unsynced())],
        ),
        only: None,
    },
    Claim {
        published: Published {
            id: "ext3-alone",
            statement: "The loss is ext3's alone: XFS keeps about three times as much of its rate (published of ext3 in main memory and XFS on a disk; here of both on the same disk)",
            source: SOURCE,
            value: Some((750.0 / 2_350.0) / (2_350.0 / 2_550.0)),
            band: Band::at_most(0.6),
        },
        figure: rate(EXT3.synced()),
        compared: Compared::OverAsMuch(
            rate(EXT3.unsynced()),
            [rate(XFS.synced()), rate(XFS.unsynced())],
        ),
        only: None,
    },
    Claim {
        published: Published {
            id: "growing-log-flushes-ext2",
            statement: "The preallocated log is not the cause, the growing one is: without a journal it costs one flush more",
            source: SOURCE,
            value: None,
            band: Band::between(0.8, 1.2),
        },
        figure: flushes(EXT2.synced()),
        compared: Compared::Less(flushes(EXT2.unsynced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "growing-log-flushes-ext3",
            statement: "The growing log's metadata must be synced too: on ext3 it costs two flushes more",
            source: SOURCE,
            value: None,
            band: Band::between(1.8, 2.2),
        },
        figure: flushes(EXT3.synced()),
        compared: Compared::Less(flushes(EXT3.unsynced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "growing-log-flushes-ext4",
            statement: "On ext4 as well",
            source: SOURCE,
            value: None,
            band: Band::between(1.8, 2.2),
        },
        figure: flushes(EXT4.synced()),
        compared: Compared::Less(flushes(EXT4.unsynced())),
        only: None,
    },
    Claim {
        published: Published {
            id: "growing-log-flushes-xfs",
            statement: "On XFS as well",
            source: SOURCE,
            value: None,
            band: Band::between(1.8, 2.2),
        },
        figure: flushes(XFS.synced()),
        compared: Compared::Less(flushes(XFS.unsynced())),
        only: None,
    },
];

/// Judges every claim whose cases were part of the plan. Only filesystems on devices of one kind are compared: on the first
/// kind that has them all.
pub(super) fn judge(measurements: &Measurements) -> Vec<ClaimResult> {
    let mut devices: Vec<Device<'_>> = Vec::new();
    for device in measurements.sites.iter().map(device) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    let on = |device| {
        let evidence = OfDevice {
            measurements,
            device,
        };
        claim::judge(&CLAIMS, &evidence)
    };
    let of_devices: Vec<ClaimResult> = devices.into_iter().flat_map(on).collect();
    let first = |claim: &Claim<Case>| {
        let mut judged = of_devices.iter();
        judged.find(|one| one.id == claim.published.id).cloned()
    };
    CLAIMS.iter().filter_map(first).collect()
}

/// What a filesystem stands on: what kind of device, and the times that it takes.
type Device<'a> = (SiteKind, Option<&'a str>);

fn device(site: &SiteResult) -> Device<'_> {
    (site.description.kind, site.description.latency.as_deref())
}

/// What was measured on devices of one kind.
struct OfDevice<'a> {
    measurements: &'a Measurements,
    device: Device<'a>,
}

impl Evidence<Case> for OfDevice<'_> {
    fn find(&self, wanted: &Case, _: &Case) -> Option<&Series> {
        let is_it = |site: &&SiteResult| device(site) == self.device && wanted.place.is(site);
        let site = self.measurements.sites.iter().find(is_it)?;
        self.measurements
            .find(&site.key, &name(wanted.sync_binlog, 1), wanted.clients)
    }

    fn obstacle(&self, _: &Claim<Case>, series: &[&Series]) -> Option<String> {
        series.iter().find_map(|one| one.obstacle())
    }

    fn explain(&self, _: &Claim<Case>, series: &[&Series]) -> String {
        let words = series.iter().filter_map(|one| {
            let clients = one.axes.clients?;
            Some(format!(
                "{}, {}, {clients} client{}: {:.0}/s, {:.2} flushes, {:.1} KiB",
                one.axes.site.as_deref()?,
                one.axes.settings.get("sync_binlog")?,
                if clients == 1 { "" } else { "s" },
                one.median(Metric::RequestsPerSecond)?,
                one.median(Metric::Flushes)?,
                one.median(Metric::Kib)?
            ))
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::fixtures::{RATES, mariadb, of_all, published};
    use crate::claim::Verdict;

    fn verdict(claims: &[ClaimResult], id: &str) -> Verdict {
        let found = claims.iter().find(|claim| claim.id == id);
        found
            .unwrap_or_else(|| panic!("{id} was not judged"))
            .verdict
    }

    #[test]
    fn what_was_published_would_hold_of_itself() {
        let claims = judge(&published());
        assert_eq!(claims.len(), CLAIMS.len());
        for claim in &claims {
            assert_eq!(claim.verdict, Verdict::Holds, "{}: {claim:?}", claim.id);
            if let (Some(published), Some(today)) = (claim.published, claim.today) {
                let close = (today.median / published - 1.0).abs() < 0.05;
                assert!(close, "{}: {published} and {today:?}", claim.id);
            }
        }
    }

    #[test]
    fn on_a_filesystem_that_scales_the_drop_does_not_hold() {
        let mut all = published();
        for one in &mut all.series {
            let of = (one.axes.site.as_deref(), one.axes.clients);
            if of == (Some("loop:ext3"), Some(2)) {
                *one = mariadb(
                    "loop:ext3",
                    &one.axes.settings["sync_binlog"].clone(),
                    2,
                    1_600.0,
                );
            }
        }
        let claims = judge(&all);
        let id = "second-client-makes-ext3-slower";
        assert_eq!(verdict(&claims, id), Verdict::DoesNotHold);
        assert!(
            claims[0].why.contains("loop:ext3, 1, 2 clients: 1600/s"),
            "{}",
            claims[0].why
        );
    }

    #[test]
    fn few_rounds_and_what_was_not_measured_give_no_verdict() {
        let mut all = published();
        for one in &mut all.series {
            match one.axes.site.as_deref().unwrap_or_default() {
                "loop:xfs" => one.trials.truncate(RATES.len() - 1),
                "loop:ext2" => one.unsupported = Some("no mkfs.ext2".into()),
                _ => {}
            }
        }
        let claims = judge(&all);
        assert_eq!(verdict(&claims, "xfs-loses-a-tenth"), Verdict::CannotBeTold);
        assert_eq!(
            verdict(&claims, "growing-log-flushes-ext2"),
            Verdict::CannotBeTold
        );
        assert_eq!(verdict(&claims, "growing-log-flushes-ext3"), Verdict::Holds);
    }

    #[test]
    fn devices_of_two_kinds_are_not_compared() {
        let id = "writeback-is-no-cure";
        let is_judged = |all: &Measurements| judge(all).iter().any(|claim| claim.id == id);
        let mut all = of_all(&["loop:ext3", "loop:ext3,data=writeback"]);
        assert!(is_judged(&all));
        all.sites[1].description.kind = SiteKind::Recorder;
        all.sites[1].description.latency = Some("nvme".to_owned());
        assert!(!is_judged(&all));
        all.sites[0].description.kind = SiteKind::Recorder;
        assert!(!is_judged(&all), "one takes other times");
        all.sites[0].description.latency = Some("nvme".to_owned());
        assert!(is_judged(&all));
    }

    #[test]
    fn nothing_is_claimed_of_filesystems_that_were_not_asked_for() {
        let claims = judge(&of_all(&["dir", "loop:ext4,barrier=0"]));
        assert!(claims.is_empty(), "{claims:?}");
    }
}
