//! Which databases are asked, of what size, where and for how long.

use landfall_recorder::wear::Drive;

use super::Updates;
use super::catalogue::{self, Part};
use crate::configuration::{self, UntilSteady};
use crate::{Error, PlanKind, SiteSpec};

const MIB: u64 = 1 << 20;
/// Bytes of an empty MariaDB with its redo log; the others are smaller.
const EMPTY: u64 = 128 * MIB;
/// Bytes of a database for each id, uncompressed: nodes, links, their second index, counts. Less when it is
/// large: 800 at a million ids, 660 at a hundred million.
const PER_ID: u64 = 1_200;
/// What is added to them while a trial runs, at the most: what a log-structured tree has twice, and logs.
const ADDED_PER_ID: u64 = 700;
/// Less is no pool at all for a server.
const LEAST_POOL: u64 = 6 * MIB;
const LEAST_REDO: u64 = 8 * MIB;

/// How large the data is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// What a laptop measures in less than half an hour.
    #[default]
    Standard,
    /// 10 million ids, some 7 GB.
    TenMillion,
    /// 100 million ids, some 66 GB: published.
    HundredMillion,
    /// A billion ids, some 670 GB: published.
    Billion,
}

impl Scale {
    /// Ids of nodes.
    fn ids(self) -> u64 {
        match self {
            Scale::Standard => 100_000,
            Scale::TenMillion => 10_000_000,
            Scale::HundredMillion => 100_000_000,
            Scale::Billion => 1_000_000_000,
        }
    }

    /// Clients: 10 and 20 were published.
    fn clients(self) -> u32 {
        match self {
            Scale::Standard => 4,
            Scale::TenMillion | Scale::HundredMillion => 10,
            Scale::Billion => 20,
        }
    }

    /// Seconds of a trial.
    fn seconds(self) -> f64 {
        match self {
            Scale::Standard => 10.0,
            Scale::TenMillion => 900.0,
            Scale::HundredMillion => 3_600.0,
            Scale::Billion => 4.0 * 3_600.0,
        }
    }

    fn steady(self) -> UntilSteady {
        let (window_seconds, most_seconds) = match self {
            Scale::Standard => (1.0, 40.0),
            Scale::TenMillion => (30.0, 2.0 * 3_600.0),
            Scale::HundredMillion => (60.0, 8.0 * 3_600.0),
            Scale::Billion => (300.0, 24.0 * 3_600.0),
        };
        UntilSteady {
            window_seconds,
            most_seconds,
        }
    }

    /// Beyond what a filesystem is made for.
    fn is_large(self) -> bool {
        self != Scale::Standard
    }
}

/// What the user chose; what is empty is as in the standard plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// How large the data is.
    pub scale: Scale,
    /// Where to measure.
    pub site: Option<SiteSpec>,
    /// Parts of the experiment.
    pub parts: Vec<Part>,
    /// Databases, by name.
    pub databases: Vec<String>,
    /// Words of names of configurations.
    pub only: Vec<String>,
    /// Ids of nodes.
    pub ids: Option<u64>,
    /// Clients that ask at the same time.
    pub clients: Option<u32>,
    /// Bytes of what a database keeps in memory, where its data does not fit.
    pub pool: Option<u64>,
    /// Seconds of a trial.
    pub seconds: Option<f64>,
    /// Seconds after which a load is measured that is not steady.
    pub most_seconds: Option<f64>,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which plan it is.
    pub kind: PlanKind,
    /// Where to measure.
    pub site: SiteSpec,
    /// Whether the user named the site.
    pub site_is_chosen: bool,
    /// How large the data is meant to be.
    pub scale: Scale,
    /// Parts of the experiment.
    pub parts: Vec<Part>,
    /// Databases that are asked; empty: all.
    pub databases: Vec<String>,
    /// Words that the name of a configuration must have one of; empty: any.
    pub only: Vec<String>,
    /// Ids of nodes.
    pub ids: u64,
    /// Clients that ask at the same time.
    pub clients: u32,
    /// Bytes of what a database keeps in memory, where its data does not fit, if chosen.
    pub pool: Option<u64>,
    /// How often each configuration is measured.
    pub rounds: u32,
    /// Seconds of a trial, once the load is steady.
    pub seconds: f64,
    /// How it is waited for that it is.
    pub steady: UntilSteady,
    /// The drive whose wear is reckoned.
    pub drive: Drive,
}

impl Plan {
    /// Rounds, unless chosen: a trial is long, and its windows say how much its figures move.
    pub const ROUNDS: u32 = 1;

    /// The standard parts at a scale that takes less than half an hour, on ext4 on a recorder.
    pub fn standard() -> Plan {
        let scale = Scale::Standard;
        Plan {
            kind: PlanKind::Standard,
            site: recorder(),
            site_is_chosen: false,
            scale,
            parts: Part::STANDARD.to_vec(),
            databases: Vec::new(),
            only: Vec::new(),
            ids: scale.ids(),
            clients: scale.clients(),
            pool: None,
            rounds: Self::ROUNDS,
            seconds: scale.seconds(),
            steady: scale.steady(),
            drive: Drive::default(),
        }
    }

    /// The standard plan with what the user chose.
    pub fn chosen(selection: Selection) -> Result<Plan, Error> {
        let standard = Self::standard();
        let scale = selection.scale;
        let kind = if selection == Selection::default() {
            PlanKind::Standard
        } else {
            PlanKind::Chosen
        };
        let mut steady = scale.steady();
        if let Some(most) = selection.most_seconds {
            steady.most_seconds = most;
            // It can only be known after eight of them.
            steady.window_seconds = steady.window_seconds.min(most / 8.0);
        }
        let site = match (&selection.site, scale.is_large()) {
            (Some(site), _) => site.clone(),
            (None, false) => standard.site,
            // No filesystem is made for so much.
            (None, true) => SiteSpec::Directory,
        };
        let plan = Plan {
            kind,
            site_is_chosen: selection.site.is_some(),
            site,
            scale,
            parts: if selection.parts.is_empty() {
                standard.parts
            } else {
                selection.parts
            },
            ids: selection.ids.unwrap_or(scale.ids()),
            clients: selection.clients.unwrap_or(scale.clients()),
            seconds: selection.seconds.unwrap_or(scale.seconds()),
            pool: selection.pool,
            databases: selection.databases,
            only: selection.only,
            steady,
            ..standard
        };
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), Error> {
        let all = catalogue::configurations(&Plan {
            databases: Vec::new(),
            only: Vec::new(),
            ..self.clone()
        });
        let mut known: Vec<&str> = all.iter().map(|one| one.database.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        for name in &self.databases {
            if !known.contains(&name.as_str()) {
                return Err(Error::Usage(format!(
                    "this plan has no database '{name}'; it has: {}",
                    known.join(", ")
                )));
            }
        }
        for word in &self.only {
            if !all.iter().any(|one| has_word(&one.name, word)) {
                return Err(Error::Usage(format!(
                    "no configuration of this plan has '{word}' in its name; --list shows them all"
                )));
            }
        }
        if self.configurations().configurations.is_empty() {
            Err(Error::Usage(
            "no configuration is of these databases and has these names too; --list shows them all".into(),
        ))
        } else {
            Ok(())
        }
    }

    /// The same where no recorder can be had: in the directory.
    pub(super) fn in_directory(&self) -> Plan {
        Plan {
            site: SiteSpec::Directory,
            ..self.clone()
        }
    }

    /// Bytes of pool where the data does not fit: a tenth of it, a quarter of what is large.
    pub fn pool_bytes(&self) -> u64 {
        let share = (self.ids * 150).next_multiple_of(MIB);
        self.pool.unwrap_or(share.max(LEAST_POOL))
    }

    /// Bytes of pool where all of it fits, with what is added.
    pub(super) fn large_pool_bytes(&self) -> u64 {
        (self.ids * 2 * PER_ID).next_multiple_of(MIB).max(64 * MIB)
    }

    /// Bytes of address space for a database that is mapped: it does not grow beyond.
    pub(super) fn map_bytes(&self) -> u64 {
        (self.ids * 16 * PER_ID).next_multiple_of(1 << 30)
    }

    /// Bytes of redo log where the data does not fit.
    pub(super) fn redo_bytes(&self) -> u64 {
        (self.ids * 100).next_multiple_of(MIB).max(LEAST_REDO)
    }

    /// Where it fits: a log that comes round often, and one that does seldom.
    pub(super) fn small_redo_bytes(&self) -> u64 {
        (self.ids * 60).next_multiple_of(MIB).max(LEAST_REDO)
    }

    pub(super) fn large_redo_bytes(&self) -> u64 {
        4 * self.small_redo_bytes()
    }

    /// The most memory that a database takes for its pages.
    pub(super) fn memory_bytes(&self) -> u64 {
        if self.parts.contains(&Part::Knobs) {
            self.large_pool_bytes().max(self.pool_bytes())
        } else {
            self.pool_bytes()
        }
    }

    /// Bytes of the larger data of a graph, by its ids, and of rows that are updated.
    fn larger(&self, per_id: u64, of_updates: impl Fn(&Updates) -> u64) -> u64 {
        let updates = Updates::of(self).as_ref().map_or(0, of_updates);
        self.ids.saturating_mul(per_id).max(updates)
    }

    /// Everything that is measured.
    pub fn configurations(&self) -> configuration::Plan {
        let mut configurations = catalogue::configurations(self);
        configurations.retain(|one| {
            let of_these = self.databases.is_empty() || self.databases.contains(&one.database);
            let named = |word: &String| has_word(&one.name, word);
            of_these && (self.only.is_empty() || self.only.iter().any(named))
        });
        configuration::Plan {
            configurations,
            rounds: self.rounds,
            warm_up_seconds: 0.0,
            steady: Some(self.steady),
            seconds: self.seconds,
            drive: Some(self.drive.clone()),
            loads_in_place: self.scale.is_large(),
            shares_starts: false,
            settles: true,
            loaded_bytes: EMPTY
                .saturating_add(self.larger(PER_ID, Updates::loaded_bytes))
                .saturating_add(self.large_redo_bytes()),
            added_bytes: EMPTY.saturating_add(self.larger(ADDED_PER_ID, Updates::added_bytes)),
        }
    }
}

/// Whether a name has these whole words: `16k` is in `innodb 16k`, and not in `innodb 16k+2x`.
fn has_word(name: &str, words: &str) -> bool {
    format!(" {name} ").contains(&format!(" {words} "))
}

/// ext4 on a recorder, which counts exactly and knows where was written. It says that it rotates, or MariaDB
/// would ignore what it is told of the neighbours of dirty pages.
fn recorder() -> SiteSpec {
    use crate::scratch_fs::{FilesystemSpec, Kind};
    let filesystem_spec = FilesystemSpec {
        is_rotational: true,
        ..FilesystemSpec::plain(Kind::Ext4)
    };
    SiteSpec::Recorder(filesystem_spec, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Configuration;

    fn names(plan: &Plan) -> Vec<String> {
        let all = plan.configurations().configurations;
        all.into_iter().map(|one| one.name).collect()
    }

    fn chosen(selection: Selection) -> Plan {
        Plan::chosen(selection).unwrap()
    }

    fn every_part(scale: Scale) -> Plan {
        chosen(Selection {
            scale,
            parts: Part::ALL.to_vec(),
            ..Selection::default()
        })
    }

    #[test]
    fn the_standard_plan_has_its_parts_and_takes_less_than_half_an_hour() {
        let plan = Plan::standard();
        let all = names(&plan);
        let planned = plan.configurations().configurations;
        for part in Part::ALL {
            let is_of = |one: &Configuration| one.part.as_deref() == Some(part.name());
            let is_standard = Part::STANDARD.contains(&part);
            assert_eq!(planned.iter().any(is_of), is_standard, "{part:?}");
        }
        let mut unique = all.clone();
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all.len(), "{all:?}");
        assert_eq!(chosen(Selection::default()), plan);
        let expected = plan.configurations().expected();
        assert!(expected.as_secs() <= 25 * 60, "{expected:?}");
    }

    #[test]
    fn the_names_that_claims_look_for_are_there() {
        let all = names(&every_part(Scale::Standard));
        for name in [
            catalogue::PAGES_16,
            catalogue::PAGES_8,
            catalogue::PAGES_4,
            catalogue::PAGES_8_COMPRESSED,
            catalogue::NO_DOUBLEWRITE,
            catalogue::LANDFALL_16,
            catalogue::LANDFALL_8,
            catalogue::LANDFALL_4,
            catalogue::LANDFALL_16_UNPROTECTED,
            catalogue::LANDFALL_16_RECORDS,
            catalogue::LANDFALL_4_RECORDS,
            catalogue::BUFFER_0,
            catalogue::BUFFER_11,
            catalogue::UNIFORM_0,
            catalogue::UNIFORM_11,
            catalogue::WRITE_OPTIMISED,
            catalogue::IN_POOL,
            catalogue::SMALL_REDO,
            catalogue::FEW_DIRTY,
            catalogue::NEIGHBOURS,
            catalogue::POSTGRES_IN_POOL,
            catalogue::POSTGRES_OFTEN,
        ] {
            assert!(all.iter().any(|one| one == name), "{name}");
        }
    }

    #[test]
    fn every_setting_is_one_that_the_database_has() {
        for scale in [Scale::Standard, Scale::Billion] {
            let plan = every_part(scale);
            for one in plan.configurations().configurations {
                for set in [&one.loaded_with, &one.all_settings()] {
                    let named = landfall_databases::named(&one.database, set);
                    assert!(named.is_ok(), "{}: {:?}", one.name, named.err());
                }
            }
        }
    }

    #[test]
    fn rows_that_are_updated_have_room() {
        let bytes = |part| {
            let plan = chosen(Selection {
                parts: vec![part],
                ..Selection::default()
            });
            plan.configurations().site_bytes()
        };
        let rows = Plan::standard().ids * 20;
        assert!(bytes(Part::Curve) > bytes(Part::Buffer) + 200 * rows);
        assert_eq!(bytes(Part::Curve), bytes(Part::CurveZipf));
    }

    #[test]
    fn data_is_several_times_the_pool_or_fits_it() {
        for scale in [Scale::Standard, Scale::HundredMillion] {
            let plan = chosen(Selection {
                scale,
                ..Selection::default()
            });
            let data = plan.ids * 660;
            assert!(data > 4 * plan.pool_bytes(), "{scale:?}");
            assert!(plan.large_pool_bytes() > data * 5 / 4);
            assert!(plan.large_redo_bytes() < data);
        }
    }

    #[test]
    fn a_published_size_is_loaded_where_it_is_measured() {
        let plan = chosen(Selection {
            scale: Scale::HundredMillion,
            parts: vec![Part::Pages],
            ..Selection::default()
        });
        assert_eq!(plan.site, SiteSpec::Directory);
        let all = plan.configurations();
        assert!(all.loads_in_place);
        let gigabytes = all.required_bytes() >> 30;
        assert!((100..250).contains(&gigabytes), "{gigabytes} GiB");
    }

    #[test]
    fn what_is_chosen_restricts_the_plan() {
        let plan = chosen(Selection {
            parts: vec![Part::Databases],
            ..Selection::default()
        });
        assert!(
            names(&plan).contains(&"innodb 16k".to_owned()),
            "for comparison"
        );
        let plan = chosen(Selection {
            parts: vec![Part::Buffer],
            ..Selection::default()
        });
        assert_eq!(
            names(&plan),
            [
                "innodb 16k",
                "myrocks zstd",
                "landfall buffer 0%",
                "landfall buffer 2%",
                "landfall buffer 5%",
                "landfall buffer 8%",
                "landfall buffer 11%",
                "landfall buffer 16%",
            ]
        );
        let plan = chosen(Selection {
            only: vec!["16k".into(), "16k+2x".into(), "zstd".into()],
            databases: vec!["mariadb".into()],
            parts: vec![Part::Pages],
            ..Selection::default()
        });
        assert_eq!(
            names(&plan),
            ["innodb 16k", "innodb 16k+2x", "innodb 16k doublewrite=off"]
        );
        assert_eq!(plan.kind, PlanKind::Chosen);
        for (databases, only, says) in [
            (vec!["oracle"], vec![], "it has: fjall"),
            (vec![], vec!["64k"], "'64k'"),
            (vec!["sqlite"], vec!["zstd"], "--list"),
        ] {
            let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
            let refused = Plan::chosen(Selection {
                databases: owned(databases),
                only: owned(only),
                ..Selection::default()
            });
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn less_time_to_become_steady_makes_shorter_windows() {
        let plan = chosen(Selection {
            most_seconds: Some(2.0),
            ..Selection::default()
        });
        assert_eq!(plan.steady.window_seconds, 0.25);
    }
}
