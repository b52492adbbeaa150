//! Which configurations are measured, how often and for how long.

use std::time::Duration;

use landfall_recorder::wear::Drive;
use landfall_results::Axes;

use crate::SiteSpec;

/// Settings of a database or a workload, by name.
pub type Settings = Vec<(String, String)>;

/// What one start of a server takes besides its trials: copying the database, starting, stopping.
const START: Duration = Duration::from_millis(1_000);
/// What loading a database takes.
const LOAD: Duration = Duration::from_secs(8);
/// Bytes of an image that are written in a second, when one is made.
const MAKING: f64 = 500e6;

/// A site, a database with its settings, a workload and a number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// What tells it from others on the same site with as many clients: `mariadb sync_binlog=1`.
    pub name: String,
    /// The settings that the plan varies and the name is made of.
    pub varied: Settings,
    /// Percent of buffer, where that is what the plan varies.
    pub buffer: Option<u8>,
    /// Settings that were tried on top of that, in words.
    pub tried: Option<String>,
    /// The part of the experiment, where it has parts.
    pub part: Option<String>,
    /// Where the database is.
    pub site: SiteSpec,
    /// Name of the database.
    pub database: String,
    /// Settings with which the database is created and filled, and which it keeps: its page size, say.
    /// Configurations with equal ones begin with the same bytes.
    pub loaded_with: Settings,
    /// Settings with which it runs besides; one that is among `loaded_with` too replaces it.
    pub settings: Settings,
    /// Name of the workload.
    pub workload: String,
    /// Settings of the workload.
    pub workload_settings: Settings,
    /// Clients that ask at the same time.
    pub clients: u32,
    /// Threads that take CPU time meanwhile.
    pub busy: u32,
}

impl Default for Configuration {
    fn default() -> Configuration {
        Configuration {
            name: String::new(),
            varied: Vec::new(),
            buffer: None,
            tried: None,
            part: None,
            site: SiteSpec::Directory,
            database: String::new(),
            loaded_with: Vec::new(),
            settings: Vec::new(),
            workload: String::new(),
            workload_settings: Vec::new(),
            clients: 1,
            busy: 0,
        }
    }
}

impl Configuration {
    /// Name of the configuration, unique in a plan and stable across runs.
    pub fn key(&self) -> String {
        Axes::from(self).key()
    }

    /// All settings with which the database runs.
    pub fn all_settings(&self) -> Settings {
        let replaced = |key: &str| self.settings.iter().any(|(other, _)| other == key);
        self.loaded_with
            .iter()
            .filter(|(key, _)| !replaced(key))
            .chain(&self.settings)
            .cloned()
            .collect()
    }

    /// Whether both begin with the same bytes.
    pub(super) fn loads_as(&self, other: &Configuration) -> bool {
        let load = |one: &Configuration| {
            let database = (one.database.clone(), one.loaded_with.clone());
            (
                database,
                one.workload.clone(),
                one.workload_settings.clone(),
            )
        };
        load(self) == load(other)
    }

    /// Whether both can be measured on one start of the database: they differ in their clients only.
    fn starts_as(&self, other: &Configuration) -> bool {
        self.site == other.site
            && self.loads_as(other)
            && (&self.settings, self.busy) == (&other.settings, other.busy)
    }
}

impl From<&Configuration> for Axes {
    fn from(one: &Configuration) -> Axes {
        Axes {
            site: Some(one.site.key()),
            part: one.part.clone(),
            case: Some(one.name.clone()),
            varied: one.varied.clone(),
            buffer: one.buffer,
            tried: one.tried.clone(),
            database: Some(one.database.clone()),
            settings: one.all_settings().into_iter().collect(),
            workload: Some(one.workload.clone()),
            clients: Some(one.clients),
            busy: Some(one.busy).filter(|busy| *busy > 0),
            ..Axes::default()
        }
    }
}

/// How it is waited for that a load is steady: that what a request costs the device changes no more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UntilSteady {
    /// Seconds over which that cost is taken at a time.
    pub window_seconds: f64,
    /// Seconds after which it is measured all the same, and said.
    pub most_seconds: f64,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The configurations, in the order in which they are shown.
    pub configurations: Vec<Configuration>,
    /// How often each is measured.
    pub rounds: u32,
    /// Seconds of load before the measured ones.
    pub warm_up_seconds: f64,
    /// Whether the warm-up then goes on until the load is steady.
    pub steady: Option<UntilSteady>,
    /// Seconds that are measured.
    pub seconds: f64,
    /// Whether configurations that differ in their clients only are measured one after the other on one
    /// start of the database, where its content does not matter; otherwise each trial has its own.
    pub shares_starts: bool,
    /// Whether the database must write, after each trial, what it still owes for it, which is then counted
    /// too.
    pub settles: bool,
    /// The drive whose wear is reckoned, where a site is a recorder. Each start then has a filesystem that
    /// was made for it: what others left on the device would fill the drive.
    pub drive: Option<Drive>,
    /// Whether a database is loaded where it is measured, and loaded again for every trial: for sizes of which no
    /// disk holds two.
    pub loads_in_place: bool,
    /// Bytes of a database that is loaded.
    pub loaded_bytes: u64,
    /// Bytes that a trial may add to it.
    pub added_bytes: u64,
}

impl Plan {
    /// The sites, each once.
    pub fn sites(&self) -> Vec<&SiteSpec> {
        let mut sites: Vec<&SiteSpec> = Vec::new();
        for configuration in &self.configurations {
            if !sites.contains(&&configuration.site) {
                sites.push(&configuration.site);
            }
        }
        sites
    }

    /// The configurations that are measured on one start of a database, by index.
    pub fn starts(&self) -> Vec<Vec<usize>> {
        let mut starts: Vec<Vec<usize>> = Vec::new();
        for (index, configuration) in self.configurations.iter().enumerate() {
            let same = |start: &&mut Vec<usize>| {
                self.shares_starts && self.configurations[start[0]].starts_as(configuration)
            };
            match starts.iter_mut().find(same) {
                Some(start) => start.push(index),
                None => starts.push(vec![index]),
            }
        }
        starts
    }

    /// The first configuration of each database that is loaded.
    pub(super) fn loads(&self) -> Vec<&Configuration> {
        let mut loads: Vec<&Configuration> = Vec::new();
        for configuration in &self.configurations {
            if !loads.iter().any(|load| load.loads_as(configuration)) {
                loads.push(configuration);
            }
        }
        loads
    }

    /// Trials in all.
    pub fn trials(&self) -> usize {
        self.configurations.len() * self.rounds as usize
    }

    /// Bytes that a site must have free: a database, and what a start adds to it.
    pub fn site_bytes(&self) -> u64 {
        let starts = self.starts();
        let trials = starts.iter().map(Vec::len).max().unwrap_or(0) as u64;
        self.loaded_bytes
            .saturating_add(self.added_bytes.saturating_mul(trials))
    }

    /// Bytes that the directory's filesystem must have free: the databases that are loaded, the images
    /// that are made, and a database where the directory itself is a site.
    pub fn required_bytes(&self) -> u64 {
        let site = |spec: &&SiteSpec| match spec {
            SiteSpec::Directory => self.site_bytes(),
            SiteSpec::Loop(filesystem_spec) => filesystem_spec
                .size_for(self.site_bytes())
                .unwrap_or(u64::MAX),
            SiteSpec::Memory(_) | SiteSpec::Recorder(..) => 0,
        };
        let sites = self.sites().iter().map(site).fold(0, u64::saturating_add);
        let loads = if self.loads_in_place {
            0
        } else {
            self.loads().len() as u64
        };
        sites.saturating_add(self.loaded_bytes.saturating_mul(loads))
    }

    /// Seconds that a trial is expected to take.
    pub(super) fn trial_seconds(&self) -> f64 {
        let steady = self.steady.map_or(0.0, |steady| {
            let first = 8.0 * steady.window_seconds;
            (first + steady.most_seconds.max(first)) / 2.0
        });
        self.seconds + self.warm_up_seconds + steady
    }

    /// Bytes that are written in all, at the most: images, loads, copies, and what is measured.
    pub fn written_bytes(&self) -> u64 {
        let copies = self.starts().len() as u64 * u64::from(self.rounds);
        let copied = self.loaded_bytes.saturating_mul(copies);
        let measured = self.added_bytes.saturating_mul(self.trials() as u64);
        self.required_bytes()
            .saturating_add(copied)
            .saturating_add(measured)
    }

    /// How long it is expected to take, before anything is known about the machine.
    pub fn expected(&self) -> Duration {
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let trials = seconds(self.trials() as f64 * self.trial_seconds());
        let starts = (self.starts().len() as u32).saturating_mul(self.rounds);
        let loads = if self.loads_in_place {
            starts
        } else {
            self.loads().len() as u32
        };
        trials
            .saturating_add(START.saturating_mul(starts))
            .saturating_add(LOAD.saturating_mul(loads))
            .saturating_add(seconds(self.required_bytes() as f64 / MAKING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(site: &str, name: &str, clients: u32) -> Configuration {
        Configuration {
            name: name.to_owned(),
            site: site.parse().unwrap(),
            database: "mariadb".into(),
            loaded_with: vec![("a".into(), "1".into()), ("b".into(), "1".into())],
            settings: vec![("b".into(), name.to_owned())],
            workload: "puts".into(),
            clients,
            ..Configuration::default()
        }
    }

    fn plan(shares_starts: bool) -> Plan {
        let mut configurations = Vec::new();
        for site in ["dir", "loop:ext4"] {
            for name in ["2", "3"] {
                configurations.extend([1, 16].map(|clients| configuration(site, name, clients)));
            }
        }
        Plan {
            configurations,
            rounds: 5,
            warm_up_seconds: 0.5,
            seconds: 1.0,
            shares_starts,
            settles: false,
            steady: None,
            drive: None,
            loads_in_place: false,
            loaded_bytes: 100 << 20,
            added_bytes: 10 << 20,
        }
    }

    #[test]
    fn a_start_serves_all_numbers_of_clients_where_that_is_meant() {
        assert_eq!(
            plan(true).starts(),
            [vec![0, 1], vec![2, 3], vec![4, 5], vec![6, 7]]
        );
        assert_eq!(plan(false).starts().len(), 8);
        assert_eq!(plan(true).sites().len(), 2);
        // What differs when it runs makes no difference to what is loaded.
        assert_eq!(plan(true).loads().len(), 1);
    }

    #[test]
    fn what_a_run_needs_is_known_before_it_begins() {
        let plan = plan(true);
        assert_eq!(plan.site_bytes(), 120 << 20);
        assert_eq!(plan.required_bytes(), (100 << 20) + (120 << 20) + (1 << 30));
        assert!(plan.expected() > Duration::from_secs(5 * 8));
        assert_eq!(plan.trials(), 40);
    }

    #[test]
    fn settings_replace_those_it_was_loaded_with() {
        let one = configuration("loop:ext3,data=journal", "7", 1);
        let all: Vec<String> = one
            .all_settings()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(all, ["a=1", "b=7"]);
        assert_eq!(one.key(), "loop:ext3,data=journal/7/1 client");
    }
}
