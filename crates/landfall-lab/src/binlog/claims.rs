//! The published claims of experiment `binlog`, and their verdicts.
//!
//! They are of January 2009: sysbench without its reads, 100,000 rows, on ext3, ext2 and XFS of that time, on
//! a RAID controller with a battery and on a block device in memory. Where the number of threads is not told
//! with a figure, two are meant, with which the sentence before it ends. A claim is judged by ratios that are
//! formed round by round; its band says how far today's may be from the published one.

use landfall_results::{Metric, Series, Trial};

use super::plan::name;
use crate::SiteKind;
use crate::claim::{Band, ClaimResult, Verdict};
use crate::configuration::{Measurements, SiteResult};
use crate::scratch_fs::FilesystemSpec;
use crate::stats::Estimate;

const SOURCE: &str = "P. Zaitsev, \"Beware: ext3 and sync-binlog do not play well together\", 21 January 2009, https://www.percona.com/blog/2009/01/21/beware-ext3-and-sync-binlog-do-not-play-well-together/";

/// A filesystem, as a claim names it.
#[derive(Clone, Copy)]
struct Place {
    filesystem: &'static str,
    /// Its `data=`, where it is not the usual one.
    data: Option<&'static str>,
    in_memory: bool,
}

const fn disk(filesystem: &'static str) -> Place {
    Place {
        filesystem,
        data: None,
        in_memory: false,
    }
}

const EXT2: Place = disk("ext2");
const EXT3: Place = disk("ext3");
const EXT4: Place = disk("ext4");
const XFS: Place = disk("xfs");
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
        let recipe = site.description.recipe.as_deref().unwrap_or_default();
        let Ok(recipe) = recipe.parse::<FilesystemSpec>() else {
            return false;
        };
        let backing = if self.in_memory {
            site.description.kind == SiteKind::Memory
        } else {
            [SiteKind::Loop, SiteKind::Recorder].contains(&site.description.kind)
        };
        let data = match self.data {
            Some(mode) => recipe.mount_options == format!("data={mode}"),
            None => ["", "data=ordered"].contains(&&*recipe.mount_options),
        };
        backing && data && recipe.kind.name() == self.filesystem && recipe.mkfs_options.is_empty()
    }
}

/// What a claim measures. Two clients, unless said.
enum Measure {
    /// Transactions per second, the binary log synced: on one filesystem over another.
    Rates { of: Place, over: Place },
    /// The same: with two clients over one.
    Clients(Place),
    /// Transactions per second, the binary log synced over not synced.
    Left(Place),
    /// What is left on one filesystem over what is left on another.
    LeftRatio { of: Place, over: Place },
    /// Flushes per transaction of one client, the binary log synced less not synced.
    ExtraFlushes(Place),
}

struct Claim {
    id: &'static str,
    statement: &'static str,
    measure: Measure,
    published: Option<f64>,
    band: Band,
}

const fn at_most(high: f64) -> Band {
    Band {
        at_least: None,
        at_most: Some(high),
    }
}

static CLAIMS: [Claim; 11] = [
    Claim {
        id: "second-client-makes-ext3-slower",
        statement: "With the binary log synced, ext3 is slower with two clients than with one (1,060 to 610 a second)",
        measure: Measure::Clients(EXT3),
        published: Some(610.0 / 1_060.0),
        band: at_most(0.9),
    },
    Claim {
        id: "no-disk-needed",
        statement: "The loss is not the disk's: on ext3 in main memory a third is left when the binary log is synced (2,350 to 750 a second)",
        measure: Measure::Left(MEMORY),
        published: Some(750.0 / 2_350.0),
        band: Band::between(0.2, 0.5),
    },
    Claim {
        id: "writeback-is-no-cure",
        statement: "data=writeback is no faster than data=ordered",
        measure: Measure::Rates {
            of: WRITEBACK,
            over: EXT3,
        },
        published: Some(1.0),
        band: Band::between(0.8, 1.25),
    },
    Claim {
        id: "journal-is-no-cure",
        statement: "data=journal is as fast as data=ordered",
        measure: Measure::Rates {
            of: JOURNAL,
            over: EXT3,
        },
        published: Some(1.0),
        band: Band::between(0.8, 1.25),
    },
    Claim {
        id: "xfs-loses-a-tenth",
        statement: "On XFS syncing the binary log costs a tenth (2,550 to 2,350 a second)",
        measure: Measure::Left(XFS),
        published: Some(2_350.0 / 2_550.0),
        band: Band::between(0.85, 1.0),
    },
    Claim {
        id: "ext2-as-xfs",
        statement: "ext2 behaves as XFS does",
        measure: Measure::LeftRatio {
            of: EXT2,
            over: XFS,
        },
        published: Some(1.0),
        band: Band::between(0.85, 1.18),
    },
    Claim {
        id: "ext3-alone",
        statement: "The loss is ext3's alone: XFS keeps about three times as much of its rate (published of ext3 in main memory and XFS on a disk; here of both on the same disk)",
        measure: Measure::LeftRatio {
            of: EXT3,
            over: XFS,
        },
        published: Some((750.0 / 2_350.0) / (2_350.0 / 2_550.0)),
        band: at_most(0.6),
    },
    Claim {
        id: "growing-log-flushes-ext2",
        statement: "The preallocated log is not the cause, the growing one is: without a journal it costs one flush more",
        measure: Measure::ExtraFlushes(EXT2),
        published: None,
        band: Band::between(0.8, 1.2),
    },
    Claim {
        id: "growing-log-flushes-ext3",
        statement: "The growing log's metadata must be synced too: on ext3 it costs two flushes more",
        measure: Measure::ExtraFlushes(EXT3),
        published: None,
        band: Band::between(1.8, 2.2),
    },
    Claim {
        id: "growing-log-flushes-ext4",
        statement: "On ext4 as well",
        measure: Measure::ExtraFlushes(EXT4),
        published: None,
        band: Band::between(1.8, 2.2),
    },
    Claim {
        id: "growing-log-flushes-xfs",
        statement: "On XFS as well",
        measure: Measure::ExtraFlushes(XFS),
        published: None,
        band: Band::between(1.8, 2.2),
    },
];

/// Judges every claim whose configurations were part of the plan.
pub(super) fn judge(measurements: &Measurements) -> Vec<ClaimResult> {
    CLAIMS
        .iter()
        .filter_map(|claim| judge_one(claim, measurements))
        .collect()
}

fn judge_one(claim: &Claim, measurements: &Measurements) -> Option<ClaimResult> {
    let measured = Measured::of(&claim.measure, measurements)?;
    let obstacle = measured
        .configurations
        .iter()
        .find_map(|one| one.obstacle());
    let today = Estimate::of(&measured.rounds);
    let (verdict, why) = match (obstacle, &today) {
        (Some(obstacle), _) => (Verdict::CannotBeTold, obstacle),
        (None, None) => (
            Verdict::CannotBeTold,
            "the device's counters cannot be read".to_owned(),
        ),
        (None, Some(today)) => (claim.band.judge(today), explain(&measured.configurations)),
    };
    Some(ClaimResult {
        id: claim.id.to_owned(),
        statement: claim.statement.to_owned(),
        quantity: measured.quantity,
        published: claim.published,
        source: SOURCE.to_owned(),
        band: claim.band,
        today,
        verdict,
        why,
    })
}

/// The figure of a claim, round by round.
struct Measured<'a> {
    quantity: String,
    rounds: Vec<f64>,
    configurations: Vec<&'a Series>,
}

impl<'a> Measured<'a> {
    /// `None` where the plan does not have what it takes.
    fn of(measure: &Measure, all: &'a Measurements) -> Option<Measured<'a>> {
        let find = |place: &Place, sync: &str, clients: u32| {
            let site = all.sites.iter().find(|site| place.is(site))?;
            all.find(&site.key, &name(sync, 1), clients)
        };
        let rates = |a: &Series, b: &Series| -> Vec<f64> {
            let pairs = a.pairs(b, Metric::RequestsPerSecond);
            pairs.iter().map(|(a, b)| a / b).collect()
        };
        let tps = "transactions per second";
        Some(match measure {
            Measure::Rates { of, over } => {
                let (a, b) = (find(of, "1", 2)?, find(over, "1", 2)?);
                Measured {
                    quantity: format!("{tps}, {} / {}", a.key, b.key),
                    rounds: rates(a, b),
                    configurations: vec![a, b],
                }
            }
            Measure::Clients(place) => {
                let (two, one) = (find(place, "1", 2)?, find(place, "1", 1)?);
                Measured {
                    quantity: format!("{tps}, {} / {}", two.key, one.key),
                    rounds: rates(two, one),
                    configurations: vec![two, one],
                }
            }
            Measure::Left(place) => {
                let (with, without) = (find(place, "1", 2)?, find(place, "0", 2)?);
                Measured {
                    quantity: format!("{tps}, {} / {}", with.key, without.key),
                    rounds: rates(with, without),
                    configurations: vec![with, without],
                }
            }
            Measure::LeftRatio { of, over } => {
                let (a, b) = (find(of, "1", 2)?, find(of, "0", 2)?);
                let (c, d) = (find(over, "1", 2)?, find(over, "0", 2)?);
                // Of the rounds that measured all four.
                let round = |trial: &Trial| {
                    let of = |one: &Series| {
                        let same = one.trials.iter().find(|other| other.round == trial.round)?;
                        same.get(Metric::RequestsPerSecond)
                    };
                    Some((of(a)? / of(b)?) / (of(c)? / of(d)?))
                };
                Measured {
                    quantity: format!("({tps}, {} / {}) / the same on {}", a.key, b.key, place(c)),
                    rounds: a.trials.iter().filter_map(round).collect(),
                    configurations: vec![a, b, c, d],
                }
            }
            Measure::ExtraFlushes(place) => {
                let (with, without) = (find(place, "1", 1)?, find(place, "0", 1)?);
                let pairs = with.pairs(without, Metric::Flushes);
                Measured {
                    quantity: format!("flushes per transaction, {} - {}", with.key, without.key),
                    rounds: pairs.iter().map(|(with, without)| with - without).collect(),
                    configurations: vec![with, without],
                }
            }
        })
    }
}

/// The site that it was measured on.
fn place(one: &Series) -> &str {
    one.axes.site.as_deref().unwrap_or_default()
}

/// What the counters say about why.
fn explain(configurations: &[&Series]) -> String {
    let words = configurations.iter().filter_map(|one| {
        let clients = one.axes.clients?;
        Some(format!(
            "{}, {}, {clients} client{}: {:.0}/s, {:.2} flushes, {:.1} KiB",
            place(one),
            one.axes.settings.get("sync_binlog")?,
            if clients == 1 { "" } else { "s" },
            one.median(Metric::RequestsPerSecond)?,
            one.median(Metric::Flushes)?,
            one.median(Metric::Kib)?
        ))
    });
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binlog::fixtures::{RATES, mariadb, of_all, published};

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
    fn nothing_is_claimed_of_filesystems_that_were_not_asked_for() {
        let claims = judge(&of_all(&["dir", "loop:ext4,barrier=0"]));
        assert!(claims.is_empty(), "{claims:?}");
    }
}
