//! What was found of configurations, as it stands in the results document.

use std::collections::BTreeMap;

use landfall_os::Filesystem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Configuration;
use crate::disturbance::Disturbance;
use crate::numbers::two;
use crate::stats::Estimate;
use crate::{Preparation, SiteDescription};

/// Everything that was found of a plan's configurations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurements {
    /// How often each configuration was measured.
    pub rounds: u32,
    /// Seconds of load before the measured ones; more where it was waited for that the load is steady.
    pub warm_up_seconds: f64,
    /// How long a trial was meant to take, in seconds.
    pub seconds_per_trial: f64,
    /// The sites, in plan order.
    pub sites: Vec<SiteResult>,
    /// The databases that were created and filled, and then copied for each start.
    pub loads: Vec<Load>,
    /// The configurations, in plan order.
    pub configurations: Vec<ConfigurationResult>,
}

impl Measurements {
    /// The configuration of this name on this site with so many clients.
    pub fn find(&self, site: &str, name: &str, clients: u32) -> Option<&ConfigurationResult> {
        self.configurations.iter().find(|one| {
            (one.site.as_str(), one.name.as_str(), one.clients) == (site, name, clients)
        })
    }
}

/// One site of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SiteResult {
    /// Its name, as it is asked for: `dir`, `loop:ext3,data=journal`.
    pub key: String,
    /// What sort of site it is.
    pub description: SiteDescription,
    /// What it stands on; absent when it could not be made.
    pub filesystem: Option<Filesystem>,
    /// Why it could not be made.
    pub refused: Option<String>,
    /// Making it, which no trial is charged with.
    pub preparation: Preparation,
}

/// A database that was created and filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// The database.
    pub database: String,
    /// Its version, as it says itself.
    pub version: Option<String>,
    /// The settings that it was created and filled with.
    pub settings: BTreeMap<String, String>,
    /// The workload, with its settings.
    pub workload: String,
    /// Seconds it took.
    pub seconds: f64,
    /// Bytes of its files before anything was put into it.
    pub empty_bytes: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// One configuration: what it is and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationResult {
    /// Name, unique in an experiment and stable across runs.
    pub key: String,
    /// What tells it from others on the same site with as many clients.
    pub name: String,
    /// The site, by its key.
    pub site: String,
    /// Name of the database.
    pub database: String,
    /// All settings with which it ran.
    pub settings: BTreeMap<String, String>,
    /// The workload, with its settings.
    pub workload: String,
    /// Clients that asked at the same time.
    pub clients: u32,
    /// Threads that took CPU time meanwhile.
    #[serde(default, skip_serializing_if = "is_nobody")]
    pub busy: u32,
    /// Bytes of the database's files before anything was put into it: a server's own tables and logs.
    pub empty_bytes: Option<u64>,
    /// Bytes of the database's files when it was loaded.
    pub loaded_bytes: Option<u64>,
    /// Why it could not be measured here (any more): what is not installed, what was refused, what failed.
    pub unsupported: Option<String>,
    /// Medians over the rounds; absent when nothing was measured.
    pub summary: Option<Summary>,
    /// The rounds.
    pub trials: Vec<Trial>,
}

fn is_nobody(busy: &u32) -> bool {
    *busy == 0
}

impl ConfigurationResult {
    /// A configuration of which nothing was measured yet.
    pub(super) fn new(configuration: &Configuration) -> ConfigurationResult {
        ConfigurationResult {
            key: configuration.key(),
            name: configuration.name.clone(),
            site: configuration.site.key(),
            database: configuration.database.clone(),
            settings: configuration.all_settings().into_iter().collect(),
            workload: configuration.workload.clone(),
            clients: configuration.clients,
            busy: configuration.busy,
            empty_bytes: None,
            loaded_bytes: None,
            unsupported: None,
            summary: None,
            trials: Vec::new(),
        }
    }

    /// Bytes of its files without those that it had when it was empty.
    pub fn data_bytes(&self, bytes: f64) -> f64 {
        (bytes - self.empty_bytes.unwrap_or(0) as f64).max(0.0)
    }

    /// Pairs of a figure of this configuration and of another one, from the rounds that measured both.
    pub fn pairs(
        &self,
        other: &ConfigurationResult,
        figure: impl Fn(&Trial) -> Option<f64>,
    ) -> Vec<(f64, f64)> {
        let pair = |trial: &Trial| {
            let twin = other.trials.iter().find(|twin| twin.round == trial.round)?;
            Some((figure(trial)?, figure(twin)?))
        };
        self.trials.iter().filter_map(pair).collect()
    }
}

/// Medians over the rounds, with 95% bootstrap intervals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Requests per second, of all clients together.
    pub requests_per_second: Estimate,
    /// Median latency of a request, in microseconds.
    pub p50_us: Estimate,
    /// 99th percentile of the latency, in microseconds.
    pub p99_us: Estimate,
    /// CPU time of the database's own processes per request, in microseconds.
    pub server_cpu_us: Estimate,
    /// CPU time of this process per request, in microseconds: of the clients, of a database that is part of
    /// this program, and of a recorder.
    pub client_cpu_us: Estimate,
    /// KiB written per request; absent when there is no device to ask.
    pub kib: Option<Estimate>,
    /// Flushes per request.
    pub flushes: Option<Estimate>,
    /// What one request cost the device: the medians.
    pub device: Option<DeviceCost>,
    /// KiB programmed into the flash of a drive per request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nand_kib: Option<Estimate>,
    /// KiB per request that were written after the trials for them, once the database had to.
    pub owed_kib: Option<Estimate>,
    /// Bytes of the database's files at the end of a trial.
    pub database_bytes: Option<Estimate>,
}

/// What one request cost the device that the directory stands on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCost {
    /// Write requests that carried data; absent where empty flushes cannot be told from them.
    pub writes: Option<f64>,
    /// Write requests as the kernel counts them, empty flushes included.
    pub write_requests: f64,
    /// KiB written.
    pub kib: f64,
    /// Flushes that the device executed.
    pub flushes: f64,
    /// Read requests.
    pub reads: f64,
}

impl DeviceCost {
    /// Writes per operation, to be read: at most as many as there were requests, where empty flushes cannot be told
    /// from writes.
    pub fn writes_text(&self) -> String {
        match self.writes {
            Some(writes) => two(writes),
            None => format!("≤{}", two(self.write_requests)),
        }
    }
}

/// Latencies of a trial's requests, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
}

/// One kind of request in a trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KindOfRequest {
    /// Its name.
    pub name: String,
    /// Requests done.
    pub requests: u64,
    /// Latencies; absent when none was done.
    pub latency: Option<Latency>,
}

/// What a database had still to write at the end of a trial, and then wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Owed {
    /// Bytes of pages that were newer in memory than in their files; absent when it does not tell.
    pub dirty_bytes: Option<u64>,
    /// Bytes that its compaction had still to rewrite, by its own estimate; absent when it does not tell.
    pub compaction_bytes: Option<u64>,
    /// Memtables that it had written out since it was started; absent when it has none.
    pub memtable_flushes: Option<u64>,
    /// KiB that were written, per request of the trial, when it had to write what it owed.
    pub kib: Option<f64>,
    /// Seconds which that took.
    pub seconds: f64,
}

/// What was asked and written in one of the equal stretches of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Requests done.
    pub requests: u64,
    /// Bytes that the device was given.
    pub bytes: u64,
}

/// Whether what a request cost the device still changed when the measured part of a trial began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Steadiness {
    /// Whether it did not, by the rule in `docs/experiment-amplify.md`.
    pub reached: bool,
    /// Seconds that clients had asked by then.
    pub seconds: f64,
    /// By what share the KiB per request of the later half of the windows differed from those of the
    /// quarter before it; absent when nothing was asked in one of them.
    pub change: Option<f64>,
    /// Memtables that were written since the database was started; absent when it has none.
    pub memtable_flushes: Option<u64>,
    /// How often its log was gone through since then; absent when it does not tell.
    pub log_rounds: Option<f64>,
    /// KiB per request, window by window.
    pub kib: Vec<f64>,
}

/// What a trial's writes cost the flash of the plan's drive, by the model of `docs/wear-model.md`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlashWear {
    /// KiB programmed into flash per request.
    pub nand_kib: f64,
    /// Bytes programmed per byte that the device was given: the product of the next two.
    pub amplification: f64,
    /// The part of it that comes from writes that do not cover whole flash pages.
    pub rounding: f64,
    /// The part that comes from garbage collection.
    pub copying: f64,
    /// How often a flash page was written, of those that were. Below 2 the amplification is that of the
    /// same writes coming again in the same order: too good, unless they do.
    pub rewrites: f64,
    /// Bytes of flash pages in use: what was ever written on the device.
    pub data_bytes: u64,
    /// Whether the model's amplification had become steady.
    pub steady: bool,
    /// Years until the drive is worn out, if requests came as fast as in this trial for ever.
    pub years: f64,
}

/// One configuration measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// The round, from 1.
    pub round: u32,
    /// Requests done; those that were rolled back are not among them.
    pub requests: u64,
    /// Requests that were rolled back because of another one.
    pub conflicts: u64,
    /// Seconds they took together.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_second: f64,
    /// Latencies; absent when no request was done.
    pub latency: Option<Latency>,
    /// The same for each kind of request, where the workload has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindOfRequest>,
    /// CPU time of the database's own processes per request, in microseconds.
    pub server_cpu_us: f64,
    /// CPU time of this process per request, in microseconds.
    pub client_cpu_us: f64,
    /// What one request cost the device. Its bytes are those that were written until nothing of it was left
    /// in the page cache.
    pub device: Option<DeviceCost>,
    /// The device, window by window, where it was watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// Whether it was waited for that the load is steady, and whether it became so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steadiness: Option<Steadiness>,
    /// What it cost the flash of a drive; absent where no recorder could tell where was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear: Option<FlashWear>,
    /// What the database still owed; absent when it was not asked.
    pub owed: Option<Owed>,
    /// Bytes of the database's files at the end.
    pub database_bytes: u64,
    /// Copying the database, starting it and warming it up, which is not part of `seconds`: seconds, and
    /// bytes copied. Where several trials had one start, the first of them has it.
    pub preparation: Preparation,
    /// CPU that others took during the trial, in processors.
    pub foreign_cpus: f64,
    /// Time that a hypervisor took away, in processors.
    pub stolen_cpus: f64,
    /// KiB per request that others wrote to the disk below, where the site is on an image.
    pub foreign_kib: Option<f64>,
    /// What disturbed the trial, if anything did.
    pub disturbances: Vec<Disturbance>,
}
