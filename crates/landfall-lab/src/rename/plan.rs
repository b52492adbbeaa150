//! Which ways are measured, where and for how long.

use std::fmt::Write as _;
use std::time::Duration;

use landfall_os::humanize::{bytes_text, duration_text};

use super::Way;
use crate::{PlanKind, SiteSpec};

/// Where it is measured unless something else is asked for.
const SITES: [&str; 4] = ["dir", "loop:ext4", "loop:xfs", "loop:btrfs"];
/// Bytes that a site must have free: a few small files, and their filesystem's log.
const SITE_BYTES: u64 = 64 << 20;
/// Bytes of an image that are written in a second, when one is made.
const MAKING: f64 = 500e6;

/// What the user chose; what is empty is as in the standard plan.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Sites.
    pub sites: Vec<SiteSpec>,
    /// Ways.
    pub ways: Vec<Way>,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which plan it is.
    pub kind: PlanKind,
    /// The sites.
    pub sites: Vec<SiteSpec>,
    /// Whether the user named them.
    pub sites_are_chosen: bool,
    /// The ways.
    pub ways: Vec<Way>,
    /// Bytes of the file.
    pub size: u64,
    /// How often each is measured.
    pub rounds: u32,
    /// Seconds that a trial is measured for.
    pub seconds: f64,
    /// Crash states that each way is held against at most, if the power is cut.
    pub proof_states: Option<usize>,
}

impl Plan {
    /// Rounds, unless chosen.
    pub const ROUNDS: u32 = 5;
    /// Seconds of a trial, unless chosen.
    pub const SECONDS: f64 = 0.5;
    /// Bytes of the file, unless chosen.
    pub const SIZE: u64 = 4096;
    /// Crash states of a proof, unless chosen.
    pub const PROOF_STATES: u32 = 500;

    /// Every way, in the directory and on three filesystems.
    pub fn standard() -> Plan {
        Plan::chosen(Selection::default())
    }

    /// The standard plan, restricted to what the user chose.
    pub fn chosen(selection: Selection) -> Plan {
        let is_chosen = !selection.sites.is_empty() || !selection.ways.is_empty();
        let sites_are_chosen = !selection.sites.is_empty();
        // Each once.
        let mut ways: Vec<Way> = Vec::new();
        for way in selection.ways {
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        if ways.is_empty() {
            ways.extend(Way::ALL);
        }
        Plan {
            kind: if is_chosen {
                PlanKind::Chosen
            } else {
                PlanKind::Standard
            },
            sites: if sites_are_chosen {
                selection.sites
            } else {
                // All of them can be read: a test does.
                SITES.iter().filter_map(|site| site.parse().ok()).collect()
            },
            sites_are_chosen,
            ways,
            size: Self::SIZE,
            rounds: Self::ROUNDS,
            seconds: Self::SECONDS,
            proof_states: None,
        }
    }

    /// Whether it is measured in the directory, too.
    pub(super) fn has_directory(&self) -> bool {
        self.sites.contains(&SiteSpec::Directory)
    }

    /// The same in the directory alone.
    pub(super) fn in_directory(&self) -> Plan {
        Plan {
            sites: vec![SiteSpec::Directory],
            ..self.clone()
        }
    }

    /// Each way on each site, site by site.
    pub(super) fn cases(&self) -> Vec<(&SiteSpec, Way)> {
        let sites = self.sites.iter();
        sites
            .flat_map(|site| self.ways.iter().map(move |way| (site, *way)))
            .collect()
    }

    /// Bytes that a site must have free.
    pub(super) fn site_bytes(&self) -> u64 {
        SITE_BYTES.saturating_add(self.size.saturating_mul(4))
    }

    /// Bytes that the directory's filesystem must have free, for the files and the images that are made.
    pub(super) fn needed_bytes(&self) -> u64 {
        let site = |spec: &SiteSpec| match spec {
            SiteSpec::Directory => self.site_bytes(),
            SiteSpec::Loop(filesystem) => {
                filesystem.size_for(self.site_bytes()).unwrap_or(u64::MAX)
            }
            SiteSpec::Memory(_) | SiteSpec::Recorder(..) => 0,
        };
        self.sites.iter().map(site).fold(0, u64::saturating_add)
    }

    pub(super) fn all_trials(&self) -> usize {
        self.sites.len() * self.ways.len() * self.rounds as usize
    }

    pub(super) fn expected_time(&self) -> Duration {
        let trials = self.all_trials() as f64 * (self.seconds + 0.1);
        let seconds = trials + self.needed_bytes() as f64 / MAKING;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    pub(super) fn list(&self) -> String {
        let mut text = String::new();
        for site in &self.sites {
            for way in &self.ways {
                let key = way.axes(site.key(), self.size).key();
                let _ = writeln!(text, "{key}");
            }
        }
        let _ = writeln!(
            text,
            "\n{} ways on {} sites in {} rounds: about {}; {} must be free.",
            self.ways.len(),
            self.sites.len(),
            self.rounds,
            duration_text(self.expected_time().as_secs_f64()),
            bytes_text(self.needed_bytes()),
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_plan_has_every_way_on_every_site() {
        let plan = Plan::standard();
        assert_eq!(plan.cases().len(), SITES.len() * Way::ALL.len());
        assert_eq!(plan.in_directory().cases().len(), Way::ALL.len());
        assert!(plan.list().contains("loop:xfs/fdatasync+rename/4K"));
    }

    #[test]
    fn a_way_that_is_named_twice_is_measured_once() {
        let plan = Plan::chosen(Selection {
            ways: vec![Way::Rename, Way::Truncate, Way::Rename],
            ..Selection::default()
        });
        assert_eq!(plan.ways, [Way::Rename, Way::Truncate]);
    }

    /// Only what is measured there must be like something that can be made.
    #[test]
    fn sites_that_are_made_do_not_need_the_directory() {
        let on = |site: &str| {
            Plan::chosen(Selection {
                sites: vec![site.parse().unwrap()],
                ..Selection::default()
            })
        };
        assert!(Plan::standard().has_directory() && on("dir").has_directory());
        assert!(!on("recorder:ext4").has_directory());
    }
}
