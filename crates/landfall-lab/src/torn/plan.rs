//! What is measured, how often and for how long.

use super::catalogue::{Condition, Protection, StoreProtection, mariadb, postgres, store};
use crate::configuration;
use crate::{Error, PlanKind};

const MIB: u64 = 1 << 20;
/// Bytes of an empty server with the larger of its logs.
const EMPTY: u64 = 256 * MIB;
const ROW: u64 = 400;
/// Bytes that a server's files grow by in a second, at the most.
const GROWTH: u64 = 32 * MIB;

/// What the user chose; what is empty is as in the standard plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Disks, as latency profiles; `none` is the directory's own.
    pub latencies: Vec<String>,
    /// Parts: `disks`, `conditions`, `postgres`, `landfall`.
    pub parts: Vec<String>,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which plan it is.
    pub kind: PlanKind,
    /// Disks, as latency profiles; `none` is the directory's own.
    pub latencies: Vec<String>,
    /// Parts: `disks`, `conditions`, `postgres`, `landfall`.
    pub parts: Vec<String>,
    /// Rows of the table.
    pub rows: u64,
    /// How often each configuration is measured.
    pub rounds: u32,
    /// Seconds that a trial is measured for.
    pub seconds: f64,
    /// Crash states that each setting is held against, if it is to be proven.
    pub proof_states: Option<usize>,
}

impl Plan {
    /// Rounds, unless chosen.
    pub const ROUNDS: u32 = 5;
    /// Seconds of a trial, unless chosen: on the slowest disk the redo log is full once.
    pub const SECONDS: f64 = 5.0;
    /// Rows, unless chosen: what a disk that spins can copy for each trial.
    pub const ROWS: u64 = 100_000;
    /// Crash states of each proof, unless chosen.
    pub const PROOF_STATES: usize = 200;
    /// Seconds before a trial: the pool is read back, and the redo log fills up.
    const WARM_UP: f64 = 4.0;
    /// The disk of the publication: two of 7,200 revolutions a minute, with their caches switched off.
    pub const PUBLISHED: &str = "hdd-7200,cache=off";
    /// Disks: the published one, one behind a controller with a battery, one without moving parts, and the
    /// directory's own.
    pub const LATENCIES: [&str; 4] = [Self::PUBLISHED, "hdd-15k-bbwc", Self::SSD, Self::OWN];
    /// The one without moving parts.
    pub(super) const SSD: &str = "ssd-consumer";
    /// The directory's own.
    pub(super) const OWN: &str = "none";
    /// The parts of the experiment.
    pub const PARTS: [&str; 4] = ["disks", "conditions", "postgres", "landfall"];

    /// Every protection on every disk; each condition removed in turn; PostgreSQL; Landfall's store.
    pub fn standard() -> Plan {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Plan {
            kind: PlanKind::Standard,
            latencies: owned(&Self::LATENCIES),
            parts: owned(&Self::PARTS),
            rows: Self::ROWS,
            rounds: Self::ROUNDS,
            seconds: Self::SECONDS,
            proof_states: None,
        }
    }

    /// The standard plan, restricted to what the user chose.
    pub fn chosen(selection: Selection) -> Result<Plan, Error> {
        for part in &selection.parts {
            if !Self::PARTS.contains(&part.as_str()) {
                return Err(Error::Usage(format!(
                    "torn has no part '{part}'; it has: {}",
                    Self::PARTS.join(", ")
                )));
            }
        }
        let standard = Self::standard();
        let kind = if selection == Selection::default() {
            PlanKind::Standard
        } else {
            PlanKind::Chosen
        };
        let or = |chosen: Vec<String>, usual: &[String]| {
            if chosen.is_empty() {
                usual.to_vec()
            } else {
                chosen
            }
        };
        Ok(Plan {
            kind,
            latencies: or(selection.latencies, &standard.latencies),
            parts: or(selection.parts, &standard.parts),
            ..standard
        })
    }

    fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|one| one == part)
    }

    /// The disk on which conditions are removed: the published one, if it is among those that are measured.
    pub(super) fn base(&self) -> Option<&str> {
        let published = self.latencies.iter().find(|one| *one == Self::PUBLISHED);
        latency(published.or(self.latencies.first())?)
    }

    /// Everything that is measured.
    pub fn configurations(&self) -> configuration::Plan {
        let mut all = Vec::new();
        if self.has("disks") {
            for disk in &self.latencies {
                let of =
                    |protection| mariadb(self, protection, Condition::Published, latency(disk));
                all.extend(Protection::ALL.into_iter().filter_map(of));
            }
        }
        if self.has("conditions") {
            let published = (!self.has("disks")).then_some(Condition::Published);
            for condition in published.into_iter().chain(Condition::REMOVED) {
                let of = |protection| mariadb(self, protection, condition, self.base());
                let both = [Protection::Doublewrite, Protection::Journal];
                all.extend(both.into_iter().filter_map(of));
            }
        }
        if self.has("postgres") {
            for disk in self.among(&[Self::PUBLISHED, Self::OWN]) {
                let of = |full_page_writes| postgres(self, full_page_writes, disk);
                all.extend([true, false].into_iter().filter_map(of));
            }
        }
        if self.has("landfall") {
            for disk in self.among(&[Self::PUBLISHED, Self::SSD, Self::OWN]) {
                let of = |protection| store(self, protection, disk);
                all.extend(StoreProtection::ALL.into_iter().filter_map(of));
            }
        }
        configuration::Plan {
            configurations: all,
            rounds: self.rounds,
            warm_up_seconds: Self::WARM_UP,
            steady: None,
            seconds: self.seconds,
            // What is updated in place must be the same bytes each time.
            shares_starts: false,
            settles: false,
            drive: None,
            loads_in_place: false,
            loaded_bytes: EMPTY + self.rows.saturating_mul(ROW),
            added_bytes: ((self.seconds + Self::WARM_UP) * GROWTH as f64) as u64,
        }
    }

    /// Those of these disks that are measured, or else the one on which conditions are removed.
    fn among(&self, wanted: &[&str]) -> Vec<Option<&str>> {
        let measured = self.latencies.iter();
        let mut disks: Vec<Option<&str>> = measured
            .filter(|one| wanted.contains(&one.as_str()))
            .map(|one| latency(one))
            .collect();
        if disks.is_empty() {
            disks.push(self.base());
        }
        disks
    }
}

/// The profile of a disk; nothing for the directory's own.
pub(super) fn latency(disk: &str) -> Option<&str> {
    (disk != Plan::OWN).then_some(disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_plan_has_every_protection_every_condition_and_each_engine() {
        let plan = Plan::standard();
        let all = plan.configurations();
        assert_eq!(
            all.configurations.len(),
            4 * 4 + Condition::REMOVED.len() * 2 + 2 * 2 + 3 * 5
        );
        assert_eq!(all.sites().len(), 8);
        let mut keys: Vec<String> = all.configurations.iter().map(|one| one.key()).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all.configurations.len(), "keys are unique");
        assert!(all.expected().as_secs() < 45 * 60, "{:?}", all.expected());
    }

    #[test]
    fn a_store_differs_in_its_protection_only() {
        let plan = Plan::chosen(Selection {
            latencies: vec!["flush=1ms".into()],
            parts: vec!["landfall".into()],
        });
        let all = plan.unwrap().configurations();
        let keys: Vec<String> = all.configurations.iter().map(|one| one.key()).collect();
        let of = |site: &str, protection: &str| {
            format!(
                "recorder:{site} with flush=1ms/landfall-store protection={protection}/8 clients"
            )
        };
        let plain = ["shadow", "doublewrite", "image", "none"].map(|one| of("ext4", one));
        assert_eq!(keys[..4], plain);
        assert_eq!(keys[4..], [of("ext4,data=journal", "none")]);
        for one in &all.configurations {
            assert_eq!(one.loaded_with, all.configurations[0].loaded_with);
            landfall_databases::named(&one.database, &one.all_settings()).unwrap();
        }
    }

    #[test]
    fn a_part_on_its_own_has_what_it_is_compared_with() {
        let selection = Selection {
            latencies: vec!["flush=1ms".into()],
            parts: vec!["conditions".into()],
        };
        let plan = Plan::chosen(selection).unwrap();
        let all = plan.configurations();
        assert_eq!(all.configurations.len(), (1 + Condition::REMOVED.len()) * 2);
        assert_eq!(
            all.configurations[0].key(),
            "recorder:ext4 with flush=1ms/mariadb innodb_doublewrite=ON/8 clients"
        );
        let wrong = Selection {
            parts: vec!["disk".into()],
            ..Selection::default()
        };
        let refused = Plan::chosen(wrong).unwrap_err().to_string();
        assert!(refused.contains("it has: disks, conditions, postgres, landfall"));
    }
}
