//! What a results document says of a rule: rates held against each other, and what power cuts did.
//!
//! Ratios are formed round by round, between configurations that differ in the setting and in nothing else.
//! What the system itself did goes before what such writes did to a plain file. A disk with the times of
//! another, or in memory, says nothing of this one.

use std::collections::BTreeMap;

use super::result::{Gain, Proof, Quantity};
use super::rule::{Choice, Condition, Measured, Rule, System, Value, is_same};
use super::{rules, subject};
use crate::configuration::{ConfigurationResult, Measurements, SiteResult};
use crate::made::Recipe;
use crate::prove::{Breach, Outcome, ProofResults};
use crate::stats::{Estimate, FEWEST_ROUNDS};
use crate::sync::{StrategyResult, Summary};
use crate::{Results, SiteKind, database};

/// What 8 KiB overwritten and synced costs: a flush, on most disks.
pub(super) const FLUSH: &str = "overwrite/fdatasync/8K";
/// As many of them at the same time as the standard plan has.
pub(super) const PAGE_WRITES: &str = "overwrite/fdatasync/8K/16-threads-each";
/// Bytes that any disk writes whole or not at all.
const SECTOR: u64 = 512;

/// What is known of one directory.
pub(super) struct Evidence<'a> {
    pub results: &'a Results,
    /// Bytes that are written in an hour, if a target says so.
    pub hour: Option<f64>,
}

/// A value that was measured in the system itself.
pub(super) struct Tried {
    pub value: String,
    /// What else was set along with it.
    pub with: BTreeMap<String, String>,
    pub gain: Gain,
}

/// What a condition came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Holds {
    /// It holds, and what was seen; empty where that goes without saying.
    Yes(String),
    No,
    /// Nobody measured it.
    Unknown,
}

impl<'a> Evidence<'a> {
    /// A strategy of experiment `sync` that was measured.
    pub fn strategy(&self, key: &str) -> Option<(&'a StrategyResult, &'a Summary)> {
        let sync = self.results.sync()?;
        let strategy = sync.strategies.iter().find(|one| one.key == key)?;
        Some((strategy, strategy.summary.as_ref()?))
    }

    /// How many times as fast one strategy is as another.
    pub fn faster(&self, of: &str, over: &str) -> Option<Gain> {
        let (one, _) = self.strategy(of)?;
        let (other, _) = self.strategy(over)?;
        let rates: Vec<(f64, f64)> = one
            .trials
            .iter()
            .filter_map(|trial| {
                let twin = other.trials.iter().find(|twin| twin.round == trial.round)?;
                Some((trial.ops_per_second, twin.ops_per_second))
            })
            .collect();
        Some(Gain {
            times: Estimate::of_ratio(&rates)?,
            of: Quantity::Rate,
            measured: format!("{of} against {over}"),
            is_direct: false,
            is_certain: rates.len() >= FEWEST_ROUNDS,
        })
    }

    /// The value in this disk's numbers; `None` where they are not known.
    pub fn value(&self, value: Value) -> Option<String> {
        let rounded = |number: f64| {
            let digits = 10f64.powf(number.max(1.0).log10().floor() - 1.0).max(1.0);
            format!("{:.0}", (number / digits).round() * digits)
        };
        match value {
            Value::Fixed(text) => Some(text.to_owned()),
            Value::Flushes(times) => {
                let (_, summary) = self.strategy(FLUSH)?;
                Some(rounded((summary.p50_us.median * times).max(1.0)))
            }
            Value::PageWrites(share) => {
                let (_, summary) = self.strategy(PAGE_WRITES)?;
                // No server takes less.
                Some(rounded((summary.ops_per_second.median * share).max(100.0)))
            }
            Value::HourOfWrites => None,
        }
    }

    /// An hour of the target's writes, as the rule's system writes sizes; nothing if that is no more than what is
    /// usual, or no target was named.
    pub fn hour(&self, rule: &Rule) -> Option<String> {
        let mib = (self.hour? / f64::from(1 << 20)).ceil();
        let usual = number(rule.default)? as f64 / f64::from(1 << 20);
        let unit = match rule.system {
            System::Postgres => "MB",
            _ => "M",
        };
        (mib > usual).then(|| format!("{mib:.0}{unit}"))
    }

    /// Whether a condition holds here.
    pub fn holds(&self, condition: Condition) -> Holds {
        let storage = self.results.filesystem.storage();
        let is = |so: bool, why: &str| match so {
            true => Holds::Yes(why.to_owned()),
            false => Holds::No,
        };
        match condition {
            Condition::Faster { of, over, times } => match self.faster(of, over) {
                None => Holds::Unknown,
                Some(gain) if !gain.is_certain => Holds::Unknown,
                Some(gain) if gain.times.low >= times => Holds::Yes(said(of, over, &gain)),
                Some(_) => Holds::No,
            },
            Condition::Rare { of, per_second } => match self.strategy(of) {
                None => Holds::Unknown,
                Some((_, summary)) if summary.ops_per_second.high < per_second => {
                    Holds::Yes(format!(
                        "{of} does {:.0} writes a second here, fewer than {per_second:.0}",
                        summary.ops_per_second.median
                    ))
                }
                Some(_) => Holds::No,
            },
            Condition::Slow { of, us } => match self.strategy(of) {
                None => Holds::Unknown,
                Some((_, summary)) if summary.p99_us.low > us => {
                    let ms = |us: f64| us / 1e3;
                    Holds::Yes(format!(
                        "the 99th percentile of {of} is {:.1} ms here, above {:.0}",
                        ms(summary.p99_us.median),
                        ms(us)
                    ))
                }
                Some(_) => Holds::No,
            },
            Condition::CopyOnWrite => is(
                storage.copy_on_write,
                &format!("{} is copy-on-write", storage.kind),
            ),
            Condition::InPlace => is(!storage.copy_on_write, ""),
            Condition::Untorn(bytes) => is(
                self.results.filesystem.atomic_write_bytes >= bytes,
                "the device promises that such writes are not torn",
            ),
            Condition::Torn(bytes) => is(self.results.filesystem.atomic_write_bytes < bytes, ""),
            Condition::Filesystem(kinds) => is(kinds.contains(&storage.kind.as_str()), ""),
        }
    }

    /// What `choice` gives against the rule's reference in the system itself, and with which values it was
    /// measured.
    pub fn measured(&self, rule: &Rule, choice: &Choice) -> Option<Tried> {
        let mut found: Vec<(usize, Tried)> = Vec::new();
        for all in self.results.measurements() {
            let of_system = || {
                let trials = |one: &&ConfigurationResult| one.summary.is_some();
                all.configurations.iter().filter(trials)
            };
            for one in of_system() {
                let Some(site) = all.sites.iter().find(|site| site.key == one.site) else {
                    continue;
                };
                let Some(rank) = self.rank(site, rule) else {
                    continue;
                };
                for other in of_system().filter(|other| other.key != one.key) {
                    if let Some(tried) = self.pair(rule, choice, all, site, one, other) {
                        // The likest site, and then what has most clients.
                        found.push((rank * 1_000 - one.clients as usize, tried));
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
        one: &ConfigurationResult,
        other: &ConfigurationResult,
    ) -> Option<Tried> {
        let like = |a: &ConfigurationResult, b: &ConfigurationResult| {
            (&a.database, &a.workload, a.clients, a.busy)
                == (&b.database, &b.workload, b.clients, b.busy)
        };
        if !like(one, other) {
            return None;
        }
        let mut base = String::new();
        let value = match rule.system {
            System::Mount => {
                let others = all.sites.iter().find(|site| site.key == other.site)?;
                let is_other = option(others, rule.setting).is_none();
                let value = option(site, rule.setting).filter(|_| is_other)?;
                let same = one.settings == other.settings
                    && without(site, rule.setting)? == without(others, rule.setting)?;
                same.then_some(value)?
            }
            system => {
                if one.database != system.key() || one.site != other.site {
                    return None;
                }
                // What it was started with where nobody said is our own business, and then the server's.
                let usual = database::descriptions()
                    .filter(|known| known.name == one.database)
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
                if rest(&one.settings) != rest(&other.settings) {
                    return None;
                }
                let value = of(&one.settings);
                base = of(&other.settings);
                is_choice(rule, choice, &value, &base).then_some(value)?
            }
        };
        // What goes along with it must have been tried too, and with nothing on the other side.
        let with: BTreeMap<String, String> = choice
            .with
            .iter()
            .map(|(key, _)| Some(((*key).to_owned(), one.settings.get(*key)?.clone())))
            .collect::<Option<_>>()?;
        let mut along = choice.with.iter();
        if along.any(|(key, _)| other.settings.contains_key(*key)) {
            return None;
        }
        let fixed = match choice.value {
            Value::Fixed(fixed) => is_same(fixed, &value),
            _ => true,
        };
        let on_recorder = site.description.kind == SiteKind::Recorder;
        // On a recorder bytes are those of the disk, and times are not. They matter where a rule is about bytes.
        if on_recorder && rule.measured_by != Some(Measured::Amplify) {
            return None;
        }
        let (of, figure): (_, fn(&crate::configuration::Trial) -> Option<f64>) = match on_recorder {
            true => (Quantity::Bytes, |trial| {
                let kib = trial.device?.kib + trial.owed.and_then(|owed| owed.kib).unwrap_or(0.0);
                (kib > 0.0).then(|| 1.0 / kib)
            }),
            false => (Quantity::Rate, |trial| Some(trial.requests_per_second)),
        };
        let pairs = one.pairs(other, figure);
        let clients = match one.clients {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        };
        let gain = Gain {
            times: Estimate::of_ratio(&pairs).filter(|_| fixed)?,
            of,
            measured: match choice.value {
                Value::Fixed(_) => format!("{}, {clients}, on {}", one.database, one.site),
                _ => format!(
                    "{}, {value} against {base}, {clients}, on {}",
                    one.database, one.site
                ),
            },
            is_direct: true,
            is_certain: pairs.len() >= FEWEST_ROUNDS,
        };
        Some(Tried { value, with, gain })
    }

    /// How far a site is from the directory: 1 is the directory; `None` for one that says nothing of it: with
    /// another's times, of another type, or mounted otherwise but for the rule's own option.
    fn rank(&self, site: &SiteResult, rule: &Rule) -> Option<usize> {
        let storage = self.results.filesystem.storage();
        if site.description.latency.is_some() {
            return None;
        }
        let is_like = |recipe: &Recipe| {
            let mut options = recipe.mount_options.split(',');
            recipe.kind.name() == storage.kind
                && options.all(|option| {
                    let is_own = rule.system == System::Mount
                        && option.split('=').next() == Some(rule.setting);
                    option.is_empty() || is_own || storage.options.iter().any(|own| own == option)
                })
        };
        let recipe = || site.description.recipe.as_deref()?.parse::<Recipe>().ok();
        match site.description.kind {
            SiteKind::Directory => Some(1),
            SiteKind::Loop => recipe().filter(is_like).map(|_| 2),
            SiteKind::Recorder => recipe().filter(is_like).map(|_| 3),
            SiteKind::Memory => None,
        }
    }

    /// What power cuts did to the system with the rule's setting at this value, and no other that loses
    /// anything.
    pub fn proof(&self, rule: &Rule, choice: &Choice, value: &str) -> Option<Proof> {
        let direct = self.system_proof(rule, value);
        direct.or_else(|| {
            let (strategy, _) = self.strategy(choice.write)?;
            let proof = strategy.proof.as_ref()?;
            (proof.not_proven.is_none() && proof.states > 0).then(|| Proof {
                subject: strategy.way(),
                recipe: proof.recipe.clone(),
                states: proof.states,
                losing: proof.losing,
                is_direct: false,
            })
        })
    }

    fn system_proof(&self, rule: &Rule, value: &str) -> Option<Proof> {
        let promised = self.results.filesystem.atomic_write_bytes.max(SECTOR);
        // What rests on a promise of the device is tried on a disk that keeps it.
        let least = rule.untorn().unwrap_or(0);
        let sound = |proof: &&ProofResults| {
            proof.faults.is_empty()
                && (least..=promised).contains(&proof.atomic_bytes)
                && proof.outcome() != Outcome::NotProven
        };
        let proofs = self.results.proofs().filter(sound);
        let proofs = proofs.filter(|proof| speaks_of(rule, value, &proof.subject, &proof.recipe));
        let of_proofs = proofs.map(|proof| Proof {
            subject: proof.subject.clone(),
            recipe: proof.recipe.clone(),
            states: proof.coverage.checked,
            losing: lost(rule, proof),
            is_direct: true,
        });
        let torn = self
            .results
            .torn()
            .into_iter()
            .flat_map(|torn| &torn.proofs);
        let torn = torn.filter(|proof| proof.not_proven.is_none() && proof.states > 0);
        let torn = torn.filter(|_| least == 0);
        let of_torn = torn
            .filter(|proof| speaks_of(rule, value, &proof.subject, &proof.recipe))
            .map(|proof| Proof {
                subject: proof.subject.clone(),
                recipe: proof.recipe.clone(),
                states: proof.states,
                losing: proof.damaged + proof.wrong,
                is_direct: true,
            });
        let all: Vec<Proof> = of_proofs.chain(of_torn).collect();
        let any_like = all.iter().any(|proof| self.is_like(&proof.recipe));
        let losing: Vec<Tested> = all
            .iter()
            .filter(|proof| proof.losing > 0)
            .map(|proof| tested(rule.system, proof))
            .collect();
        // What lost something once is not made safe by having lost nothing another time. But where it lost nothing
        // with another setting beside it, that one was to blame.
        all.into_iter()
            .filter(|proof| !any_like || self.is_like(&proof.recipe))
            .map(|proof| (!losing.contains(&tested(rule.system, &proof)), proof))
            .max_by_key(|(is_safe, proof)| (*is_safe, proof.losing > 0, proof.states))
            .map(|(_, proof)| proof)
    }

    /// Whether a filesystem made by this recipe is of the directory's type.
    fn is_like(&self, recipe: &str) -> bool {
        let kind = &self.results.filesystem.storage().kind;
        let recipe = recipe.parse::<Recipe>();
        recipe.is_ok_and(|recipe| recipe.kind.name() == kind)
    }
}

/// The values of a system's settings, by which proofs are of one thing or of several.
type Tested = Vec<Option<String>>;

/// What a proof was of: each setting that there are rules about, as it was set or is unless set.
fn tested(system: System, proof: &Proof) -> Tested {
    let subject = subject::Subject::parse(&proof.subject);
    let value = |name: &str| {
        let own = subject.as_ref().and_then(|subject| subject.get(name));
        let usual = || {
            let rule = rules::of(system).find(|rule| rule.setting == name)?;
            rule.idle_with.is_none().then_some(rule.default)
        };
        own.or_else(usual).map(str::to_ascii_lowercase)
    };
    let names = rules::names(system);
    let settings = names.into_iter().map(value);
    // A mount option counts as a setting does.
    let mounted = rules::of(System::Mount).map(|rule| option_of(&proof.recipe, rule.setting));
    settings.chain(mounted).collect()
}

/// States in which a proof lost or damaged something that the rule is about. That replicas part from their master is
/// what a binary log's setting is about, and no other.
fn lost(rule: &Rule, proof: &ProofResults) -> u64 {
    if rule.setting == "sync_binlog" {
        return proof.failing_states;
    }
    let others = proof.breaches.iter();
    let others = others.filter(|count| count.breach != Breach::Diverged);
    let most = others.map(|count| count.states).max().unwrap_or(0);
    most.max(proof.losing_states)
}

/// What was seen, in words.
fn said(of: &str, over: &str, gain: &Gain) -> String {
    format!(
        "{of} does {:.2} ({:.2}–{:.2}) times as many writes a second as {over} here",
        gain.times.median, gain.times.low, gain.times.high
    )
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

fn number(text: &str) -> Option<u64> {
    crate::parse_size(text).ok()
}

/// The mount option of a site that sets this, with its value: `data=journal`, `barrier=0`.
fn option(site: &SiteResult, name: &str) -> Option<String> {
    option_of(site.description.recipe.as_deref()?, name)
}

fn option_of(recipe: &str, name: &str) -> Option<String> {
    let recipe: Recipe = recipe.parse().ok()?;
    if let Some(feature) = name.strip_prefix("mkfs ") {
        let words = recipe.mkfs_options.iter();
        let mut features = words.flat_map(|words| words.split([' ', ',']));
        return features
            .any(|own| own == feature)
            .then(|| feature.to_owned());
    }
    let mut options = recipe.mount_options.split(',');
    if name == "barrier" && options.clone().any(|option| option == "nobarrier") {
        return Some("0".to_owned());
    }
    options
        .find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
        .map(str::to_owned)
}

/// The recipe of a site without one of its mount options.
fn without(site: &SiteResult, name: &str) -> Option<(Recipe, SiteKind)> {
    let recipe: Recipe = site.description.recipe.as_deref()?.parse().ok()?;
    let rest: Vec<&str> = recipe
        .mount_options
        .split(',')
        .filter(|option| option.split('=').next() != Some(name))
        .collect();
    let rest = rest.join(",");
    let recipe = Recipe {
        mount_options: rest,
        ..recipe
    };
    Some((recipe, site.description.kind))
}

/// Whether a proof of this subject says what the setting loses at this value: its own, and not another's.
fn speaks_of(rule: &Rule, value: &str, subject: &str, recipe: &str) -> bool {
    let Some(subject) = subject::Subject::parse(subject) else {
        return false;
    };
    // Not what another mount option lost.
    let is_plain = rules::of(System::Mount)
        .filter(|mount| mount.setting != rule.setting)
        .all(|mount| {
            let own = option_of(recipe, mount.setting);
            own.is_none_or(|own| mount.is_safe(&own, |_| None))
        });
    if rule.system == System::Mount {
        let is_safe = System::ALL
            .into_iter()
            .find(|system| system.key() == subject.name)
            .is_none_or(|system| rules::are_safe(system, None, |key| subject.get(key)));
        let own = option_of(recipe, rule.setting);
        return is_safe
            && is_plain
            && subject.is_meant_to_be_durable()
            && own.is_some_and(|own| is_same(&own, value));
    }
    let own = subject.get(rule.setting);
    // What hangs on another setting was not there at all.
    let usual = rule.idle_with.is_none().then_some(rule.default);
    let own = own.or(usual);
    subject.is_of(rule)
        && is_plain
        && own.is_some_and(|own| is_same(own, value))
        && rules::are_safe(rule.system, Some(rule), |key| subject.get(key))
}
