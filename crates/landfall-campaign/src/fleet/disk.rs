//! A disk of the fleet: what is known of it, and what was measured on it.
//!
//! A disk is what a directory of a machine stands on. Documents of the same directory, with the same model, firmware, filesystem
//! and kernel beneath, are one disk measured several times: their rounds are put together.

use std::collections::{BTreeMap, BTreeSet};

use landfall_lab::sync::{Strategy, SyncResults, find};
use landfall_lab::{Found, Results};
use landfall_os::{Allocation, BlockDevice, DeviceKind, SyncCall, SyncMethod, WriteCache};
use landfall_results::stats::{Estimate, median};
use landfall_results::{Axes, Metric, Series};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Member;
use super::figure::{Figure, compared};
use super::robust;

/// What says which disk it is. Two of the same identity are one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// The machine.
    pub machine: String,
    /// The directory that was measured in.
    pub directory: String,
    /// The kernel's names of the devices beneath: `nvme0n1`.
    pub devices: String,
    /// Model as the device states it; of several, each once. Of a device that states none, what sort it is.
    pub model: String,
    /// Revision of its firmware, where it is stated.
    pub firmware: Option<String>,
    /// The filesystem's type, and what it was made on, where it was made for the measurement.
    pub filesystem: String,
    /// The kernel's release.
    pub kernel: String,
}

/// A disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// Which one it is.
    #[serde(flatten)]
    pub identity: Identity,
    /// Its machine; with the directory, where the machine has several disks.
    pub label: String,
    /// Whether it says that completed writes may sit in a volatile cache; absent where it says nothing.
    pub volatile_cache: Option<bool>,
    /// The driver of a virtual disk.
    pub virtual_driver: Option<String>,
    /// Different documents that it was measured in.
    pub documents: usize,
    /// How many times as long a synced direct write takes as one that is not synced, where both were measured and the device
    /// counted a flush for most.
    pub flush: Option<Estimate>,
    /// What was measured, in the order of the fleet's figures.
    pub figures: Vec<Measured>,
    /// Crash states that were tried on this machine, and those in which something was lost.
    pub states: States,
}

/// A figure of a disk: the median of its rounds, and the interval of that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Index into the fleet's figures.
    pub figure: usize,
    /// Rounds that it is the median of.
    pub rounds: usize,
    /// The median and its interval.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// Crash states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct States {
    /// Distinct states that were tried.
    pub tried: u64,
    /// Those in which an acknowledged write was lost, or another promise broken.
    pub lost: u64,
}

impl States {
    /// Those of a document: of its proofs, and of the strategies that were proven.
    pub(super) fn of(results: &Results) -> States {
        let proofs = results.proofs();
        let proofs = proofs.map(|proof| (proof.coverage.checked, proof.failing_states));
        let series = results.experiments.iter().flat_map(Found::series);
        let strategies = series.filter_map(|one| one.proof.as_ref());
        let strategies = strategies.map(|proof| (proof.states, proof.losing));
        let mut states = States::default();
        for (tried, lost) in proofs.chain(strategies) {
            // A document may say anything.
            states.tried = states.tried.saturating_add(tried);
            states.lost = states.lost.saturating_add(lost);
        }
        states
    }

    /// Both together.
    pub(super) fn and(self, other: States) -> States {
        States {
            tried: self.tried + other.tried,
            lost: self.lost + other.lost,
        }
    }
}

impl Disk {
    /// A figure, if it was measured.
    pub fn get(&self, figure: usize) -> Option<&Measured> {
        let found = self.figures.binary_search_by_key(&figure, |one| one.figure);
        found.ok().and_then(|index| self.figures.get(index))
    }
}

impl Identity {
    /// That of the disk beneath a document.
    fn of(member: &Member<'_>) -> Identity {
        let results = member.results;
        let storage = results.filesystem.storage();
        let disks = disks(results);
        let each = |of: fn(&BlockDevice) -> Option<String>| -> Option<String> {
            let all: BTreeSet<String> = disks.iter().filter_map(|disk| of(disk)).collect();
            let all: Vec<String> = all.into_iter().collect();
            (!all.is_empty()).then(|| all.join(" + "))
        };
        let made = results.site.text();
        Identity {
            machine: member.machine.to_owned(),
            directory: results.directory.clone(),
            devices: each(|disk| Some(disk.name.clone())).unwrap_or_default(),
            model: each(|disk| Some(model(disk))).unwrap_or_else(|| "no device".to_owned()),
            firmware: each(|disk| disk.firmware.clone()),
            filesystem: match made {
                Some(made) => format!("{} ({made})", storage.kind),
                None => storage.kind.clone(),
            },
            kernel: results.host.kernel.clone(),
        }
    }
}

/// The disks whose writes are counted, beneath what was measured on.
fn disks(results: &Results) -> Vec<&BlockDevice> {
    let devices = results.filesystem.storage().devices.iter();
    devices.flat_map(BlockDevice::counted_on).collect()
}

/// What a disk is called by those who buy it, or what sort of device it is.
fn model(disk: &BlockDevice) -> String {
    match (&disk.model, &disk.virtual_driver, &disk.kind) {
        (Some(model), ..) => model.clone(),
        (None, Some(driver), _) => format!("{driver} disk"),
        (None, None, DeviceKind::Loop { .. }) => "loop device".to_owned(),
        (None, None, DeviceKind::Recorder) => "recorder".to_owned(),
        (None, None, DeviceKind::Memory) => "memory".to_owned(),
        (None, None, _) => "model not stated".to_owned(),
    }
}

/// All disks in the order of their identities, and all figures that any has, in order. The same document twice counts once, so
/// neither the order of documents nor their number matters.
pub(super) fn collect(members: &[Member<'_>]) -> (Vec<Disk>, Vec<Figure>) {
    let mut by_identity: BTreeMap<Identity, Vec<&Results>> = BTreeMap::new();
    for member in members {
        // A document of proofs alone stands on no disk.
        if member.results.findings().next().is_some() {
            let documents = by_identity.entry(Identity::of(member)).or_default();
            documents.push(member.results);
        }
    }
    let mut values: BTreeMap<Name<'_>, (&Axes, Vec<OfDisk>)> = BTreeMap::new();
    let mut disks = Vec::new();
    for (at, (identity, documents)) in by_identity.into_iter().enumerate() {
        for (name, (axes, rounds)) in rounds(&documents) {
            let (_, of_disks) = values.entry(name).or_insert((axes, Vec::new()));
            of_disks.push((at, rounds));
        }
        disks.push(Disk::new(identity, &documents));
    }
    let mut figures = Vec::new();
    for ((experiment, series, metric), (axes, measured)) in values {
        for (disk, rounds) in measured {
            if let Some(estimate) = robust::estimate(&rounds) {
                disks[disk].figures.push(Measured {
                    figure: figures.len(),
                    rounds: rounds.len(),
                    estimate,
                });
            }
        }
        figures.push(Figure::new(experiment, series, axes, metric));
    }
    label(&mut disks);
    (disks, figures)
}

impl Disk {
    fn new(identity: Identity, documents: &[&Results]) -> Disk {
        let beneath: Vec<&BlockDevice> = documents.iter().flat_map(|one| disks(one)).collect();
        let caches = beneath.iter().filter_map(|disk| disk.write_cache);
        let volatile = caches.map(|cache| cache == WriteCache::Volatile);
        let drivers: BTreeSet<&String> = beneath
            .iter()
            .filter_map(|disk| disk.virtual_driver.as_ref())
            .collect();
        Disk {
            label: String::new(),
            volatile_cache: volatile.reduce(|one, other| one || other),
            virtual_driver: drivers.first().map(|driver| (*driver).clone()),
            documents: documents.len(),
            flush: flush(documents),
            figures: Vec::new(),
            states: documents
                .iter()
                .map(|one| States::of(one))
                .fold(States::default(), States::and),
            identity,
        }
    }
}

/// A machine's name says which disk it is, unless it has several.
fn label(disks: &mut [Disk]) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for disk in disks.iter() {
        *counts.entry(disk.identity.machine.clone()).or_default() += 1;
    }
    for disk in disks {
        let Identity {
            machine, directory, ..
        } = &disk.identity;
        disk.label = if counts.get(machine) == Some(&1) {
            machine.clone()
        } else {
            format!("{machine}:{directory}")
        };
    }
}

/// Index of a disk, and the rounds of a figure on it.
type OfDisk = (usize, Vec<f64>);

/// What a figure is called, in the order of the fleet's figures: experiment, key of the series, metric. It says which axes the
/// series has.
type Name<'a> = (&'a str, &'a str, Metric);

/// What all rounds of these documents gave, figure by figure; sorted, so that their order is forgotten.
fn rounds<'a>(documents: &[&'a Results]) -> BTreeMap<Name<'a>, (&'a Axes, Vec<f64>)> {
    let mut rounds: BTreeMap<Name<'a>, (&Axes, Vec<f64>)> = BTreeMap::new();
    for experiment in documents.iter().flat_map(|one| &one.experiments) {
        for series in experiment.series() {
            for (metric, fewest) in compared() {
                let values = values(series, metric, fewest);
                if !values.is_empty() {
                    let name = (experiment.name(), series.key.as_str(), metric);
                    let (_, all) = rounds.entry(name).or_insert((&series.axes, Vec::new()));
                    all.extend(values);
                }
            }
        }
    }
    for (_, values) in rounds.values_mut() {
        values.sort_by(f64::total_cmp);
    }
    rounds
}

/// A metric of the trials that had operations enough for it; what is not positive has no logarithm.
fn values(series: &Series, metric: Metric, fewest: f64) -> Vec<f64> {
    let trials = series.trials.iter();
    let long = trials.filter(|trial| {
        let operations = trial.get(Metric::Operations);
        operations.is_none_or(|operations| operations >= fewest)
    });
    let values = long.filter_map(|trial| trial.get(metric));
    values
        .filter(|value| value.is_finite() && *value > 0.0)
        .collect()
}

/// Flushes per write below which a sync did not reach the device.
const FEWEST_FLUSHES: f64 = 0.5;

/// How many times as long a direct write takes with a sync as without, formed round by round.
fn flush(documents: &[&Results]) -> Option<Estimate> {
    let direct = |call| {
        Strategy::BASELINE
            .allocated(Allocation::Overwrite)
            .synced(SyncMethod::direct(call))
    };
    let mut ratios = Vec::new();
    for found in documents.iter().flat_map(|one| one.all::<SyncResults>()) {
        let synced = find(&found.series, &direct(SyncCall::Fdatasync));
        let unsynced = find(&found.series, &direct(SyncCall::None));
        if let (Some(synced), Some(unsynced)) = (synced, unsynced) {
            let flushes = median(&synced.values(Metric::Flushes));
            if flushes.is_some_and(|flushes| flushes >= FEWEST_FLUSHES) {
                let pairs = synced.pairs(unsynced, Metric::P50Us);
                let pairs = pairs.into_iter().filter(|(_, without)| *without > 0.0);
                ratios.extend(pairs.map(|(with, without)| with / without));
            }
        }
    }
    robust::estimate(&ratios)
}
