//! What a results document says of a rule: rates held against each other, and what power cuts did.
//!
//! - here: writes to a plain file, conditions, and values in this disk's numbers;
//! - `measured`: what a value gives in the system itself;
//! - `proven`: what it lost.
//!
//! Ratios are formed round by round, between configurations that differ in the setting and in nothing else.
//! What the system itself did goes before what one did that works alike, and that before what such writes did to a
//! plain file. A disk with the times of
//! another, or in memory, says nothing of this one.

mod measured;
mod proven;

use std::collections::BTreeSet;

use super::result::{Basis, Gain, Quantity};
use crate::Results;
use crate::rules::{self, Choice, Condition, JOURNAL, Rule, System, Value, is_same};
use crate::scratch_fs::{FilesystemSpec, Kind, NO_JOURNAL, matters};
use crate::stats::{Estimate, FEWEST_ROUNDS};
use crate::sync::{Strategy, SyncResults, find};
use landfall_results::{Metric, Series};

/// What 8 KiB overwritten and synced costs: a flush, on most disks.
pub(super) const FLUSH: Strategy = Strategy::BASELINE;

/// What is known of one directory.
pub(super) struct Evidence<'a> {
    pub results: &'a Results,
    /// Bytes that are written in an hour, if a target says so.
    pub hour: Option<f64>,
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
    pub fn strategy(&self, strategy: Strategy) -> Option<&'a Series> {
        let series = find(&self.results.first::<SyncResults>()?.series, &strategy)?;
        series.is_measured().then_some(series)
    }

    /// How many times as fast one strategy is as another.
    pub fn faster(&self, of: Strategy, over: Strategy) -> Option<Gain> {
        faster(self.strategy(of)?, self.strategy(over)?)
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
                let flush = self.strategy(FLUSH)?.median(Metric::P50Us)?;
                Some(rounded((flush * times).max(1.0)))
            }
            Value::PageWrites(share) => {
                let rate = self
                    .strategy(rules::PAGE_WRITES)?
                    .median(Metric::OpsPerSecond)?;
                // No server takes less.
                Some(rounded((rate * share).max(100.0)))
            }
            Value::HourOfWrites | Value::Above(_) | Value::AnyTime => None,
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

    /// Whether a condition of a system's rule holds here.
    pub fn holds(&self, system: System, condition: Condition) -> Holds {
        let storage = self.results.filesystem.storage();
        let is = |so: bool, why: &str| {
            if so {
                Holds::Yes(why.to_owned())
            } else {
                Holds::No
            }
        };
        // Few rounds give no interval.
        let estimate = |of, metric| {
            let series = self.strategy(of)?;
            let is_certain = series.values(metric).len() >= FEWEST_ROUNDS;
            series.estimate(metric).filter(|_| is_certain)
        };
        match condition {
            Condition::Faster { of, over, times } => match self.faster(of, over) {
                None => Holds::Unknown,
                Some(gain) if !gain.is_certain => Holds::Unknown,
                Some(gain) if gain.times.low >= times => Holds::Yes(said(of, over, &gain)),
                Some(_) => Holds::No,
            },
            Condition::Rare { of, per_second } => match estimate(of, Metric::OpsPerSecond) {
                None => Holds::Unknown,
                Some(rate) if rate.high < per_second => Holds::Yes(format!(
                    "{of} reaches {:.0} writes a second here, fewer than {per_second:.0}",
                    rate.median
                )),
                Some(_) => Holds::No,
            },
            Condition::Slow { of, us } => match estimate(of, Metric::P99Us) {
                None => Holds::Unknown,
                Some(latency) if latency.low > us => {
                    let ms = |us: f64| us / 1e3;
                    Holds::Yes(format!(
                        "the p99 of {of} is {:.1} ms here, above {:.0} ms",
                        ms(latency.median),
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
                self.untorn_bytes(system) >= bytes,
                "such writes are promised not to be torn",
            ),
            Condition::Torn(bytes) => is(self.untorn_bytes(system) < bytes, ""),
            Condition::Journal => is(storage.journal != Some(false), ""),
            Condition::NoJournal => is(
                storage.journal == Some(false),
                &format!("this {} has no journal", storage.kind),
            ),
            Condition::Filesystem(kinds) => is(kinds.contains(&storage.kind.as_str()), ""),
        }
    }
}

/// What was seen, in words.
fn said(of: Strategy, over: Strategy, gain: &Gain) -> String {
    format!(
        "here {of} is {:.2} ({:.2}–{:.2}) times as fast as {over}",
        gain.times.median, gain.times.low, gain.times.high
    )
}

/// How many times as many writes one series does in a second as another.
pub(super) fn faster(of: &Series, over: &Series) -> Option<Gain> {
    let rates = of.pairs(over, Metric::OpsPerSecond);
    Some(Gain {
        times: Estimate::of_ratio(&rates)?,
        of: Quantity::Rate,
        measured: format!("{} against {}", of.key, over.key),
        basis: Basis::Writes,
        is_certain: rates.len() >= FEWEST_ROUNDS,
    })
}

impl Evidence<'_> {
    /// Bytes of the largest write of a system that is promised not to be torn; 0: none is.
    ///
    /// Landfall asks for that with each write (`RWF_ATOMIC`), and a filesystem may keep its promise by writing elsewhere what asks.
    /// Other systems do not ask. For them holds what the devices do with every write, if the filesystem does not split it, which
    /// ext4's promise includes.
    pub(super) fn untorn_bytes(&self, system: System) -> u64 {
        let filesystem = &self.results.filesystem;
        let promised = filesystem.atomic_write_bytes;
        let storage = filesystem.storage();
        let devices = storage.devices.iter();
        let of_devices = devices.map(|device| device.atomic_write_bytes).min();
        match system {
            System::Landfall | System::LandfallStore => promised,
            _ if storage.kind == Kind::Ext4.name() => promised.min(of_devices.unwrap_or(0)),
            _ => 0,
        }
    }

    /// Whether the directory is on a filesystem that could have a journal, and has none.
    pub fn has_no_journal(&self) -> bool {
        let storage = self.results.filesystem.storage();
        storage.kind == Kind::Ext4.name() && storage.journal == Some(false)
    }

    /// Whether a filesystem that was made is of the directory's type, and whether it was made and mounted in the
    /// same way as far as that is known, but for the rule's own option.
    fn closeness(&self, rule: &Rule, spec: &FilesystemSpec) -> (bool, bool) {
        let storage = self.results.filesystem.storage();
        let kind = storage.kind.as_str();
        let is_plain = rules::of_mounting(kind)
            .filter(|mount| mount.setting.starts_with("mkfs ") && mount.setting != rule.setting)
            .all(|mount| option_of(spec, mount.setting).is_none());
        let has_none = option_of(spec, JOURNAL).is_some();
        let is_journalled_alike = match (spec.kind, storage.journal) {
            _ if rule.setting == JOURNAL => true,
            (Kind::Ext4, Some(has_journal)) => has_journal != has_none,
            _ => true,
        };
        let own = options_that_matter(rule, kind, storage.options.iter().map(String::as_str));
        let made = options_that_matter(rule, kind, spec.mount_options.split(','));
        let is_alike = is_plain && is_journalled_alike && own == made;
        (spec.kind.name() == kind, is_alike)
    }
}

/// The rule of a system that works alike, with the choice of the same value.
fn alike(rule: &Rule, choice: &Choice) -> Option<(&'static Rule, &'static Choice)> {
    let other = rules::all().find(|other| other.id == rule.as_in)?;
    let mut choices = other.choices.iter();
    let same = choices.find(|other| other.value == choice.value)?;
    Some((other, same))
}

fn number(text: &str) -> Option<u64> {
    landfall_os::humanize::parse_size(text).ok()
}

/// The mount option of a filesystem spec that sets this, with its value: `data=journal`, `barrier=0`; `on` where it takes none.
fn option_of(spec: &FilesystemSpec, name: &str) -> Option<String> {
    if name == JOURNAL {
        let mut words = spec.mkfs_options.iter();
        return words
            .any(|word| word.contains(NO_JOURNAL))
            .then(|| "off".to_owned());
    }
    if let Some(feature) = name.strip_prefix("mkfs ") {
        let words = spec.mkfs_options.iter();
        let mut features = words.flat_map(|words| words.split([' ', ',']));
        return features
            .any(|own| own == feature)
            .then(|| feature.to_owned());
    }
    let mut options = spec.mount_options.split(',');
    options.find_map(|option| own_value(option, name))
}

/// The value that a mount option gives to this, if it does: `on` where it takes none.
fn own_value(option: &str, name: &str) -> Option<String> {
    match option.split_once('=') {
        Some((key, value)) => (key == name).then(|| value.to_owned()),
        None if name == "barrier" && option == "nobarrier" => Some("0".to_owned()),
        None => (option == name).then(|| "on".to_owned()),
    }
}

/// The options that bear on what survives a power cut, but for the rule's own, and for what is so anyway.
pub(super) fn options_that_matter<'a>(
    rule: &Rule,
    kind: &str,
    options: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let is_own =
        |option: &str| rule.system == System::Mount && own_value(option, rule.setting).is_some();
    let is_usual = |option: &str| {
        rules::of_mounting(kind).any(|mount| {
            own_value(option, mount.setting).is_some_and(|own| is_same(&own, mount.default))
        })
    };
    let options = options.into_iter();
    options
        .filter(|option| matters(option) && !is_own(option) && !is_usual(option))
        .collect()
}
