//! Devices by name and by numbers.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::solid::Solid;
use super::spinning::{Cache, Spinning};
use crate::quantity::{AS_DEVICE, UNLIMITED, Unit};

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;

/// The device that takes no time but what its numbers say.
const CUSTOM: &str = "custom";

const NAMED: &[(&str, &str)] = &[
    (
        "hdd-7200",
        "a 7,200 rpm SATA disk of 2008 with a volatile write cache of 32 MiB",
    ),
    (
        "hdd-15k-bbwc",
        "a 15,000 rpm SAS disk behind a RAID controller with 512 MiB of battery-backed write cache",
    ),
    (
        "ssd-consumer",
        "a SATA SSD without power-loss protection: fast writes, slow flushes",
    ),
    (
        "nvme",
        "an NVMe SSD with power-loss protection, as servers have: flushes cost next to nothing",
    ),
    (
        "cloud-volume",
        "a volume behind a network, limited to 3,000 operations and 131 MB a second; needs no flush",
    ),
    (
        CUSTOM,
        "as fast as this machine but for the numbers given, such as flush=1ms",
    ),
];

/// The times of a kind of device, written `hdd-7200`, `hdd-7200,cache=off` or `flush=1ms`: a name, and
/// numbers that are not as the name says. The text of a profile is the shortest that makes it again.
///
/// The numbers are in `docs/reference/latency-profiles.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    name: &'static str,
    medium: Medium,
}

/// What a device is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Spinning(Spinning),
    Solid(Solid),
}

/// A number of a profile that can be set.
#[derive(Debug)]
pub(super) enum Setting<'a> {
    Number {
        value: &'a mut u64,
        unit: Unit,
        limits: RangeInclusive<u64>,
    },
    /// Two times: `0.5ms..9ms`.
    Seek {
        shortest: &'a mut u64,
        longest: &'a mut u64,
    },
    Cache(&'a mut Cache),
}

impl Profile {
    /// All names, each with a line that says what it is.
    pub fn named() -> &'static [(&'static str, &'static str)] {
        NAMED
    }

    /// Whether it is of a disk that rotates.
    pub fn is_spinning(&self) -> bool {
        matches!(self.medium, Medium::Spinning(_))
    }

    pub(super) fn medium(&self) -> &Medium {
        &self.medium
    }

    fn of(name: &str) -> Option<Profile> {
        let (name, _) = NAMED.iter().find(|(known, _)| *known == name)?;
        let medium = medium(name)?;
        Some(Profile { name, medium })
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let mut settings = self.medium.settings();
        let keys: Vec<&str> = settings.iter().map(|(key, _)| *key).collect();
        match settings.iter_mut().find(|(known, _)| *known == key) {
            Some((_, setting)) => setting.set(key, value),
            None => Err(format!(
                "{} has no '{key}'; it has: {}",
                self.name,
                keys.join(", ")
            )),
        }
    }
}

impl Medium {
    fn settings(&mut self) -> Vec<(&'static str, Setting<'_>)> {
        match self {
            Medium::Spinning(numbers) => numbers.settings(),
            Medium::Solid(numbers) => numbers.settings(),
        }
    }

    /// The text of every number, always in the same order.
    fn texts(&self) -> Vec<(&'static str, String)> {
        let mut medium = self.clone();
        let settings = medium.settings();
        let texts = settings.iter().map(|(key, setting)| (*key, setting.text()));
        texts.collect()
    }
}

impl<'a> Setting<'a> {
    pub fn number(value: &'a mut u64, unit: Unit, limits: RangeInclusive<u64>) -> Setting<'a> {
        Setting::Number {
            value,
            unit,
            limits,
        }
    }

    fn text(&self) -> String {
        match self {
            Setting::Number { value, unit, .. } => unit.name(**value),
            Setting::Seek { shortest, longest } => {
                let (shortest, longest) = (Unit::Time.name(**shortest), Unit::Time.name(**longest));
                format!("{shortest}..{longest}")
            }
            Setting::Cache(cache) => cache.name().to_owned(),
        }
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        match self {
            Setting::Number {
                value,
                unit,
                limits,
            } => {
                **value = unit.setting(key, text, limits)?;
            }
            Setting::Seek { shortest, longest } => {
                let both = text.split_once("..").and_then(|(low, high)| {
                    let both = (Unit::Time.parse(low)?, Unit::Time.parse(high)?);
                    (both.0 <= both.1 && both.1 <= SECOND).then_some(both)
                });
                (**shortest, **longest) = both.ok_or_else(|| {
                    format!("'{key}={text}' is not two times of at most 1s; write 0.5ms..9ms")
                })?;
            }
            Setting::Cache(cache) => {
                let found = Cache::ALL.into_iter().find(|cache| cache.name() == text);
                **cache = found.ok_or_else(|| {
                    let names = Cache::ALL.map(Cache::name).join(", ");
                    format!("no cache is '{text}'; there are: {names}")
                })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = medium(self.name).map(|medium| medium.texts());
        let usual = usual.unwrap_or_default();
        let changed: Vec<String> = self
            .medium
            .texts()
            .into_iter()
            .filter(|number| !usual.contains(number))
            .map(|(key, text)| format!("{key}={text}"))
            .collect();
        // Numbers alone are custom.
        let name = (self.name != CUSTOM || changed.is_empty()).then(|| self.name.to_owned());
        let parts: Vec<String> = name.into_iter().chain(changed).collect();
        f.write_str(&parts.join(","))
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Profile, String> {
        let mut parts = text.split(',').peekable();
        let name = parts.next_if(|part| !part.contains('=')).unwrap_or(CUSTOM);
        let mut profile = Profile::of(name).ok_or_else(|| {
            let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
            format!(
                "no device is called '{name}'; there are: {}",
                names.join(", ")
            )
        })?;
        let mut given = Vec::new();
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!(
                    "'{part}' comes after a device and is no number of it; write {name},flush=1ms, say"
                ));
            };
            if given.contains(&key) {
                return Err(format!("'{key}' is given twice"));
            }
            profile.set(key, value)?;
            given.push(key);
        }
        Ok(profile)
    }
}

/// The numbers of a name. Where each comes from is in `docs/reference/latency-profiles.md`.
fn medium(name: &str) -> Option<Medium> {
    Some(match name {
        "hdd-7200" => Medium::Spinning(Spinning {
            // An average of 9.1 ms.
            shortest_seek: MILLISECOND,
            longest_seek: 18 * MILLISECOND,
            rotation: 8_333_333,
            transfer: 115 * MB,
            interface: 300 * MB,
            command: 50 * MICROSECOND,
            flush: 50 * MICROSECOND,
            cache: Cache::Volatile,
            cache_size: 32 << 20,
            queue: 128,
            capacity: AS_DEVICE,
        }),
        "hdd-15k-bbwc" => Medium::Spinning(Spinning {
            // An average of 3.7 ms.
            shortest_seek: 400 * MICROSECOND,
            longest_seek: 7_400 * MICROSECOND,
            rotation: 4 * MILLISECOND,
            transfer: 125 * MB,
            interface: 300 * MB,
            command: 50 * MICROSECOND,
            // The controller says that it needs none, so none is sent.
            flush: 0,
            cache: Cache::Battery,
            cache_size: 512 << 20,
            queue: 1 << 17,
            capacity: AS_DEVICE,
        }),
        "ssd-consumer" => Medium::Solid(Solid {
            read: 100 * MICROSECOND,
            write: 25 * MICROSECOND,
            transfer: 520 * MB,
            iops: UNLIMITED,
            queue: 10,
            flush: 1_700 * MICROSECOND,
        }),
        "nvme" => Medium::Solid(Solid {
            read: 80 * MICROSECOND,
            write: 20 * MICROSECOND,
            transfer: 2_000 * MB,
            iops: UNLIMITED,
            queue: 36,
            flush: 20 * MICROSECOND,
        }),
        "cloud-volume" => Medium::Solid(Solid {
            read: 700 * MICROSECOND,
            write: 700 * MICROSECOND,
            transfer: 131 * MB,
            iops: 3_000,
            queue: 64,
            flush: 0,
        }),
        CUSTOM => Medium::Solid(Solid {
            read: 0,
            write: 0,
            transfer: UNLIMITED,
            iops: UNLIMITED,
            queue: 1,
            flush: 0,
        }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(text: &str) -> String {
        text.parse::<Profile>().unwrap_err()
    }

    #[test]
    fn names_are_profiles() {
        for (name, about) in Profile::named() {
            assert_eq!(name.parse::<Profile>().unwrap().to_string(), *name);
            assert!(!about.is_empty());
        }
    }

    #[test]
    fn what_is_as_usual_is_not_written() {
        for (text, canonical) in [
            ("hdd-7200,cache=volatile", "hdd-7200"),
            (
                "hdd-7200,flush=1ms,cache=off",
                "hdd-7200,flush=1ms,cache=off",
            ),
            (
                "hdd-7200,cache=off,flush=1000us",
                "hdd-7200,flush=1ms,cache=off",
            ),
            ("custom,flush=1ms", "flush=1ms"),
            ("custom,flush=0s", "custom"),
            ("cloud-volume,iops=unlimited", "cloud-volume,iops=unlimited"),
            ("hdd-7200,capacity=1T", "hdd-7200,capacity=1T"),
            (
                "hdd-7200,seek=0.5ms..9ms,rotation=8.33ms,transfer=150MB/s,flush=1ms,queue=1,cache=battery,cache-size=64M",
                "hdd-7200,seek=500us..9ms,rotation=8.33ms,transfer=150MB/s,flush=1ms,cache=battery,cache-size=64M,queue=1",
            ),
        ] {
            let profile: Profile = text.parse().unwrap();
            assert_eq!(profile.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(profile));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_there_is() {
        assert!(refusal("floppy").contains("there are: hdd-7200, hdd-15k-bbwc"));
        assert!(refusal("").contains("there are"));
        assert!(refusal("nvme,seek=1ms..2ms").contains("nvme has no 'seek'; it has: read, write"));
        assert!(refusal("rotation=4ms").contains("custom has no 'rotation'"));
        assert!(refusal("flush=5").contains("is not a time; write"));
        assert!(refusal("flush=11s").contains("is not from 0ns to 10s"));
        assert!(refusal("hdd-7200,rotation=1us").contains("from 1ms to 100ms"));
        assert!(refusal("hdd-7200,transfer=unlimited").contains("from 1MB/s to 10GB/s"));
        assert!(refusal("hdd-7200,seek=9ms").contains("write 0.5ms..9ms"));
        assert!(refusal("hdd-7200,seek=9ms..1ms").contains("write 0.5ms..9ms"));
        assert!(refusal("hdd-7200,cache=on").contains("off, volatile, battery"));
        assert!(refusal("hdd-7200,cache-size=0").contains("is not from"));
        assert!(refusal("nvme,queue=0").contains("from 1 to 1024"));
        assert!(refusal("flush=1ms,flush=2ms").contains("twice"));
        assert!(refusal("flush=1ms,nvme").contains("'nvme' comes after"));
        assert!(refusal("nvme,").contains("comes after"));
    }

    proptest! {
        #[test]
        fn the_text_of_a_profile_makes_it_again(
            device in 0..NAMED.len(),
            values in prop::collection::vec((0..12usize, 0..1_000_000_000u64, 0..4usize), 0..12),
        ) {
            let mut text = NAMED[device].0.to_owned();
            let keys = medium(NAMED[device].0).unwrap().texts();
            for (key, value, unit) in values {
                let (key, usual) = &keys[key % keys.len()];
                let value = match (*key, unit) {
                    (_, 0) => usual.clone(),
                    ("seek", _) => format!("{value}ns..{}ns", 1_000_000_000),
                    ("cache", _) => Cache::ALL[(value % 3) as usize].name().to_owned(),
                    ("cache-size" | "capacity", _) => format!("{}", value + (64 << 10)),
                    ("transfer" | "interface", _) => format!("{}B/s", value + 1_000_000),
                    ("queue", _) => format!("{}", value % 1024 + 1),
                    ("iops", _) => format!("{}", value + 1),
                    ("rotation", _) => format!("{}ns", value % 99_000_000 + 1_000_000),
                    _ => format!("{value}ns"),
                };
                if !text.contains(&format!(",{key}=")) {
                    text.push_str(&format!(",{key}={value}"));
                }
            }
            let profile: Profile = text.parse().unwrap();
            prop_assert_eq!(profile.to_string().parse::<Profile>(), Ok(profile));
        }

        #[test]
        fn no_text_is_too_strange(text in "[a-z0-9=,.-]{0,40}") {
            let _ = text.parse::<Profile>();
        }
    }
}
