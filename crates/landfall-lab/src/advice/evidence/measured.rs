//! What a value gives in the system itself: two runs that differ in the setting, and in nothing else.

use std::collections::BTreeMap;

use super::{Evidence, alike, number, option_of, own_value};
use crate::SiteKind;
use crate::SiteResult;
use crate::advice::result::{Basis, Gain, Quantity};
use crate::configuration::Measurements;
use crate::rules::{self, Choice, Measured, Rule, System, Value, is_same};
use crate::scratch_fs::{FilesystemSpec, Kind};
use crate::stats::{Estimate, FEWEST_ROUNDS};
use landfall_results::{Metric, Series, Trial};

/// A value that was measured in the system itself.
pub(in crate::advice) struct Tried {
    pub value: String,
    /// What else was set along with it.
    pub with: BTreeMap<String, String>,
    pub gain: Gain,
}

impl Evidence<'_> {
    /// What `choice` gives against the rule's reference in the system itself, or in one that works alike, and with
    /// which values it was measured.
    pub fn measured(&self, rule: &Rule, choice: &Choice) -> Option<Tried> {
        self.in_system(rule, choice).or_else(|| {
            let (other, same) = alike(rule, choice)?;
            let mut tried = self.in_system(other, same)?;
            tried.gain.basis = Basis::Alike;
            Some(tried)
        })
    }

    /// Whether what measures a rule's values says anything of this directory: `lab torn` makes plain ext4, and nothing
    /// else.
    pub fn can_be_measured(&self, rule: &Rule) -> bool {
        match rule.measured_by {
            Some(Measured::Torn(_)) => {
                self.closeness(rule, &FilesystemSpec::plain(Kind::Ext4)) == (true, true)
            }
            _ => true,
        }
    }

    fn in_system(&self, rule: &Rule, choice: &Choice) -> Option<Tried> {
        let mut found: Vec<((usize, bool), Tried)> = Vec::new();
        for all in self.results.measurements() {
            let of_system = || all.series.iter().filter(|one| one.is_measured());
            for one in of_system() {
                let Some(site) = site_of(all, one) else {
                    continue;
                };
                let Some(rank) = self.rank(site, rule) else {
                    continue;
                };
                for other in of_system().filter(|other| other.key != one.key) {
                    if let Some(tried) = self.pair(rule, choice, all, site, one, other) {
                        // The likest site, then what has most clients, and then what loses nothing besides.
                        let unlike = rank * 1_000 - one.axes.clients.unwrap_or(1) as usize;
                        found.push(((unlike, !is_safe(rule, one)), tried));
                    }
                }
            }
        }
        let (_, tried) = found.into_iter().min_by_key(|(rank, _)| *rank)?;
        Some(tried)
    }

    /// `one` with the choice's value over `other` with the reference's, if they differ in nothing else.
    fn pair(
        &self,
        rule: &Rule,
        choice: &Choice,
        all: &Measurements,
        site: &SiteResult,
        one: &Series,
        other: &Series,
    ) -> Option<Tried> {
        let of = |one: &Series| {
            let axes = one.axes.clone();
            (axes.database, axes.workload, axes.clients, axes.busy)
        };
        if of(one) != of(other) {
            return None;
        }
        let database = one.axes.database.as_deref()?;
        let mut base = String::new();
        let value = match rule.system {
            System::Mount => {
                let others = site_of(all, other)?;
                let is_other = option(others, rule.setting).is_none();
                let value = option(site, rule.setting).filter(|_| is_other)?;
                let same = one.axes.settings == other.axes.settings
                    && without(site, rule.setting)? == without(others, rule.setting)?;
                same.then_some(value)?
            }
            system => {
                if database != system.key() || one.axes.site != other.axes.site {
                    return None;
                }
                // What it was started with where nobody said is our own business, and then the server's.
                let usual = landfall_databases::descriptions()
                    .filter(|known| known.name == database)
                    .flat_map(|known| known.settings)
                    .find(|setting| setting.name == rule.setting)
                    .and_then(|setting| setting.default)
                    .unwrap_or(rule.default);
                let of = |settings: &BTreeMap<String, String>| {
                    let own = settings.get(rule.setting).map(String::as_str);
                    own.unwrap_or(usual).to_owned()
                };
                let goes_along = |key: &str| choice.with.iter().any(|(with, _)| *with == key);
                let rest = |settings: &BTreeMap<String, String>| -> Vec<(String, String)> {
                    let rest = settings
                        .iter()
                        .filter(|(key, _)| *key != rule.setting && !goes_along(key));
                    rest.map(|(key, value)| (key.clone(), value.clone()))
                        .collect()
                };
                if rest(&one.axes.settings) != rest(&other.axes.settings) {
                    return None;
                }
                let value = of(&one.axes.settings);
                base = of(&other.axes.settings);
                is_choice(rule, choice, &value, &base).then_some(value)?
            }
        };
        // What goes along with it must have been tried too, and with nothing on the other side.
        let with: BTreeMap<String, String> = choice
            .with
            .iter()
            .map(|(key, _)| Some(((*key).to_owned(), one.axes.settings.get(*key)?.clone())))
            .collect::<Option<_>>()?;
        let mut along = choice.with.iter();
        if along.any(|(key, _)| other.axes.settings.contains_key(*key)) {
            return None;
        }
        let fixed = match choice.value {
            Value::Fixed(fixed) => is_same(fixed, &value),
            _ => true,
        };
        let on_recorder = site.description.kind == SiteKind::Recorder;
        // On a recorder bytes are those of the disk, and times are not. They matter where a rule is about bytes.
        if on_recorder && !matches!(rule.measured_by, Some(Measured::Amplify(_))) {
            return None;
        }
        let (of, pairs) = if on_recorder {
            (Quantity::Bytes, written(one, other))
        } else {
            (Quantity::Rate, one.pairs(other, Metric::RequestsPerSecond))
        };
        let clients = match one.axes.clients? {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        };
        let place = one.axes.site.as_deref()?;
        let gain = Gain {
            times: Estimate::of_ratio(&pairs).filter(|_| fixed)?,
            of,
            measured: match choice.value {
                Value::Fixed(_) => format!("{database}, {clients}, on {place}"),
                _ => {
                    format!("{database}, {value} against {base}, {clients}, on {place}")
                }
            },
            basis: Basis::System,
            is_certain: pairs.len() >= FEWEST_ROUNDS,
        };
        Some(Tried { value, with, gain })
    }

    /// How far a site is from the directory: 1 is the directory; `None` for one that says nothing of it: with
    /// another's times, of another type, or mounted otherwise but for the rule's own option.
    fn rank(&self, site: &SiteResult, rule: &Rule) -> Option<usize> {
        if site.description.latency.is_some() {
            return None;
        }
        let spec = || site.description.filesystem_spec.as_ref();
        let is_like = |spec: &&FilesystemSpec| self.closeness(rule, spec) == (true, true);
        match site.description.kind {
            SiteKind::Directory => Some(1),
            SiteKind::Loop => spec().filter(is_like).map(|_| 2),
            SiteKind::Recorder => spec().filter(is_like).map(|_| 3),
            SiteKind::Memory => None,
        }
    }
}

/// The site on which a series was measured.
fn site_of<'a>(all: &'a Measurements, one: &Series) -> Option<&'a SiteResult> {
    let key = one.axes.site.as_ref()?;
    all.sites.iter().find(|site| site.key == *key)
}

/// How few KiB each of both wrote for a request in the rounds that measured both, what it owed included.
fn written(one: &Series, other: &Series) -> Vec<(f64, f64)> {
    let few = |trial: &Trial| {
        let owed = trial.get(Metric::OwedKib).unwrap_or(0.0);
        let kib = trial.get(Metric::Kib)? + owed;
        (kib > 0.0).then(|| 1.0 / kib)
    };
    let pair = |trial: &Trial| {
        let twin = other.trials.iter().find(|twin| twin.round == trial.round)?;
        Some((few(trial)?, few(twin)?))
    };
    one.trials.iter().filter_map(pair).collect()
}

/// Whether nothing that was set, but for the rule's own setting, may lose anything.
fn is_safe(rule: &Rule, one: &Series) -> bool {
    let system = System::ALL
        .into_iter()
        .find(|system| one.axes.database.as_deref() == Some(system.key()));
    let get = |key: &str| one.axes.settings.get(key).map(String::as_str);
    system.is_none_or(|system| rules::are_safe(system, Some(rule), get))
}

/// Whether a value measured against another is this choice against the reference.
fn is_choice(rule: &Rule, choice: &Choice, value: &str, base: &str) -> bool {
    match (choice.value, rule.reference().value) {
        (Value::Fixed(fixed), Value::Fixed(reference)) => {
            is_same(fixed, value) && is_same(reference, base)
        }
        // So many of something: more of it against less.
        _ => match (number(value), number(base)) {
            (Some(value), Some(base)) => value > base,
            _ => false,
        },
    }
}

/// The mount option of a site that sets this.
fn option(site: &SiteResult, name: &str) -> Option<String> {
    option_of(site.description.filesystem_spec.as_ref()?, name)
}

/// The filesystem spec of a site without one of its mount options.
fn without(site: &SiteResult, name: &str) -> Option<(FilesystemSpec, SiteKind)> {
    let spec = site.description.filesystem_spec.as_ref()?;
    let rest: Vec<&str> = spec
        .mount_options
        .split(',')
        .filter(|option| own_value(option, name).is_none())
        .collect();
    let rest = rest.join(",");
    let spec = FilesystemSpec {
        mount_options: rest,
        ..spec.clone()
    };
    Some((spec, site.description.kind))
}
