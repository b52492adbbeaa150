//! What a rule is: a setting, its values, what each promises by its official document, and what has to be
//! measured or proven here before any of them is advised.
//!
//! Rules are data; `advice` is the only code that makes advice of them.

use landfall_results::proof::Hazard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::sync::Strategy;

/// What says whether ext4 is made with a journal.
pub const JOURNAL: &str = "journal";

/// With what settings of a binary log mean nothing.
pub const NO_BINLOG: (&str, &str) = ("log_bin", "OFF");

/// What stands for a setting that is best left alone.
pub const UNSET: &str = "unset";

/// What is set.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// MariaDB with InnoDB.
    Mariadb,
    /// MySQL with InnoDB.
    Mysql,
    /// MariaDB and MySQL with MyRocks.
    Myrocks,
    /// PostgreSQL.
    Postgres,
    /// SQLite.
    Sqlite,
    /// RocksDB, linked into a program.
    Rocksdb,
    /// Redis.
    Redis,
    /// etcd.
    Etcd,
    /// A broker of Kafka.
    Kafka,
    /// A server of NATS with JetStream.
    Nats,
    /// Landfall's own engine: a log, and a state on it.
    Landfall,
    /// Its store, which has leaves on the disk.
    LandfallStore,
    /// How the filesystem is mounted.
    Mount,
}

impl std::str::FromStr for System {
    type Err = String;

    fn from_str(text: &str) -> Result<System, String> {
        let known = System::ALL.into_iter().find(|system| system.key() == text);
        known.ok_or_else(|| {
            let names = System::ALL.map(System::key).join(", ");
            format!("there is no advice on '{text}'; there is on: {names}")
        })
    }
}

impl System {
    /// All of them, in the order in which they are shown.
    pub const ALL: [System; 13] = [
        System::Mariadb,
        System::Mysql,
        System::Myrocks,
        System::Postgres,
        System::Sqlite,
        System::Rocksdb,
        System::Redis,
        System::Etcd,
        System::Kafka,
        System::Nats,
        System::Landfall,
        System::LandfallStore,
        System::Mount,
    ];

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            System::Mariadb => "MariaDB",
            System::Mysql => "MySQL",
            System::Myrocks => "MyRocks",
            System::Postgres => "PostgreSQL",
            System::Sqlite => "SQLite",
            System::Rocksdb => "RocksDB",
            System::Redis => "Redis",
            System::Etcd => "etcd",
            System::Kafka => "Kafka",
            System::Nats => "NATS JetStream",
            System::Landfall => "Landfall's engine",
            System::LandfallStore => "Landfall's store",
            System::Mount => "mount options",
        }
    }

    /// As it is called on the command line, in results and by subjects.
    pub fn key(self) -> &'static str {
        match self {
            System::Mariadb => "mariadb",
            System::Mysql => "mysql",
            System::Myrocks => "myrocks",
            System::Postgres => "postgres",
            System::Sqlite => "sqlite",
            System::Rocksdb => "rocksdb",
            System::Redis => "redis",
            System::Etcd => "etcd",
            System::Kafka => "kafka",
            System::Nats => "nats",
            System::Landfall => "landfall",
            System::LandfallStore => "landfall-store",
            System::Mount => "mount",
        }
    }

    /// Whether it is set in a file of its own: the engine is in code, and mount options are the machine's.
    pub fn has_files(self) -> bool {
        !matches!(
            self,
            System::Landfall | System::LandfallStore | System::Mount
        )
    }

    /// Whether its configuration is an option file of MariaDB or MySQL.
    pub fn has_option_files(self) -> bool {
        matches!(self, System::Mariadb | System::Mysql | System::Myrocks)
    }
}

/// A setting with its values.
#[derive(Debug)]
pub struct Rule {
    /// A stable name.
    pub id: &'static str,
    /// What is set.
    pub system: System,
    /// The setting, as the system calls it.
    pub setting: &'static str,
    /// Its value where nobody sets it.
    pub default: &'static str,
    /// Its values. The first is what the others are held against: the safe one.
    pub choices: &'static [Choice],
    /// Under which circumstances there is anything to say; all of them must hold.
    pub when: &'static [Condition],
    /// Another setting, and the value of it with which this one means nothing.
    pub idle_with: Option<(&'static str, &'static str)>,
    /// The experiment that holds its values against each other in the system itself; `None` where nothing
    /// does.
    pub measured_by: Option<Measured>,
    /// The rule of another system that works alike, by its id: what that one did here stands in where this one was not
    /// tried; empty if there is none.
    pub as_in: &'static str,
    /// The version that has it first, or the only server; empty if all in use have it.
    pub since: &'static str,
    /// Why it is not to be written into the configuration of a server that has data already; empty if it may be.
    pub by_hand: &'static str,
    /// Whether the program that it is linked into sets it, and no file.
    pub in_code: bool,
    /// Values that are safe only with another setting at one of some values.
    pub safe_with: &'static [SafeWith],
    /// What it is there to protect from: a proof whose states did not fall into that says nothing of it, as long as it
    /// lost nothing.
    pub protects_from: Option<Hazard>,
    /// What it rests on.
    pub source: Source,
    /// What else must be known; empty if nothing.
    pub note: &'static str,
}

/// What a value is safe with, and without it not.
#[derive(Debug)]
pub struct SafeWith {
    /// The value.
    pub value: &'static str,
    /// The other setting.
    pub setting: &'static str,
    /// What that may be; the first is what to set.
    pub one_of: &'static [&'static str],
}

impl SafeWith {
    /// Whether the other setting is one of these values.
    pub fn is_met_by(&self, set: &str) -> bool {
        self.one_of.iter().any(|with| is_same(set, with))
    }
}

/// A value of a setting.
#[derive(Debug)]
pub struct Choice {
    /// The value.
    pub value: Value,
    /// Other settings that go with it, by their values.
    pub with: &'static [(&'static str, Value)],
    /// What the document says of it.
    pub promise: Promise,
    /// The strategy of experiment `sync` that does what the system then does with the disk, if one
    /// does.
    pub write: Option<Strategy>,
    /// Whether it is worth a measurement or a proof; others are there to be known where somebody has set them.
    pub is_tried: bool,
}

/// The value of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// This one.
    Fixed(&'static str),
    /// Any number above this: there to be known where somebody has set one.
    Above(u64),
    /// Any length of time, as `10s`: there to be known where somebody has set one.
    AnyTime,
    /// Microseconds: so many times the median flush of this disk.
    Flushes(f64),
    /// A share of the durable page writes that this disk does in a second, of 16 threads together.
    PageWrites(f64),
    /// Bytes that are written in an hour, of a target that was named.
    HourOfWrites,
}

/// What a value does to acknowledged data, by its document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Promise {
    /// What was acknowledged is there after a power cut.
    Durable,
    /// It has no say in that.
    Neutral,
    /// It has no say in that either, and fits what the rule's conditions saw.
    Fits,
    /// What may be lost.
    Loses(&'static str),
    /// What may be damaged.
    Damages(&'static str),
    /// Durability is others' business: whose.
    Replicated(&'static str),
}

/// What must be so before a rule speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Condition {
    /// One strategy of experiment `sync` is at least so many times as fast as another: the whole interval.
    Faster {
        /// The one.
        of: Strategy,
        /// The other.
        over: Strategy,
        /// So many times.
        times: f64,
    },
    /// A strategy does fewer than so many writes a second: the whole interval.
    Rare {
        /// The strategy.
        of: Strategy,
        /// Writes a second.
        per_second: f64,
    },
    /// The 99th percentile of a strategy's latency, in microseconds, is above this: the whole interval.
    Slow {
        /// The strategy.
        of: Strategy,
        /// Microseconds.
        us: f64,
    },
    /// The filesystem is copy-on-write.
    CopyOnWrite,
    /// The filesystem overwrites in place.
    InPlace,
    /// What the system writes of so many bytes is promised not to be torn.
    Untorn(u64),
    /// It does not.
    Torn(u64),
    /// The filesystem has a journal, or nobody knows.
    Journal,
    /// It could have one, and has none.
    NoJournal,
    /// The filesystem is one of these.
    Filesystem(&'static [&'static str]),
}

/// What holds a setting's values against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// `landfall lab binlog`, which tries its values unasked.
    Planned,
    /// `landfall lab binlog`, told to set it.
    Binlog,
    /// A part of `landfall lab torn`.
    Torn(&'static str),
    /// A part of `landfall lab amplify`.
    Amplify(&'static str),
}

/// An official document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its title.
    pub title: &'static str,
    /// Where it is.
    pub address: &'static str,
}

impl Choice {
    const fn new(value: Value, promise: Promise, write: Option<Strategy>) -> Choice {
        Choice {
            value,
            with: &[],
            promise,
            write,
            is_tried: true,
        }
    }

    /// A value that is durable; the system then does with the disk what strategy `write` does.
    pub(super) const fn durable(value: &'static str, write: Option<Strategy>) -> Choice {
        Choice::new(Value::Fixed(value), Promise::Durable, write)
    }

    /// One that may lose `what`.
    pub(super) const fn loses(
        value: &'static str,
        write: Option<Strategy>,
        what: &'static str,
    ) -> Choice {
        Choice::new(Value::Fixed(value), Promise::Loses(what), write)
    }

    /// One that may damage `what`.
    pub(super) const fn damages(
        value: &'static str,
        write: Option<Strategy>,
        what: &'static str,
    ) -> Choice {
        Choice::new(Value::Fixed(value), Promise::Damages(what), write)
    }

    /// The same, of which it is enough to know that.
    pub(super) const fn untried(self) -> Choice {
        Choice {
            is_tried: false,
            ..self
        }
    }

    /// Any number above `least`, which may lose `what`.
    pub(super) const fn loses_above(least: u64, what: &'static str) -> Choice {
        Choice::new(Value::Above(least), Promise::Loses(what), None).untried()
    }

    /// Any length of time, after which what was written until then is synced; it may lose `what`.
    pub(super) const fn loses_any_time(what: &'static str) -> Choice {
        Choice::new(Value::AnyTime, Promise::Loses(what), None).untried()
    }

    /// One that has no say in durability.
    pub(super) const fn neutral(value: Value, write: Option<Strategy>) -> Choice {
        Choice::new(value, Promise::Neutral, write)
    }
}

impl Rule {
    /// What every rule has unless it says otherwise.
    pub(super) const BLANK: Rule = Rule {
        id: "",
        system: System::Mariadb,
        setting: "",
        default: "",
        choices: &[],
        when: &[],
        idle_with: None,
        measured_by: None,
        as_in: "",
        since: "",
        by_hand: "",
        in_code: false,
        safe_with: &[],
        protects_from: None,
        source: Source {
            title: "",
            address: "",
        },
        note: "",
    };

    /// What the other values are held against.
    pub fn reference(&self) -> &'static Choice {
        // A test looks that every rule has one.
        &self.choices[0]
    }

    /// The choice of this value, as a configuration writes it.
    pub fn choice(&self, value: &str) -> Option<&'static Choice> {
        let number: Option<u64> = value.parse().ok();
        self.choices.iter().find(|choice| match choice.value {
            Value::Fixed(known) => is_same(known, value),
            Value::Above(least) => number.is_some_and(|number| number > least),
            Value::AnyTime => value.starts_with(|c: char| c.is_ascii_digit()),
            Value::Flushes(_) | Value::PageWrites(_) | Value::HourOfWrites => false,
        })
    }
}

impl Rule {
    /// Bytes that the device must promise to write whole for it to speak, if it takes such a promise.
    pub fn untorn(&self) -> Option<u64> {
        self.when.iter().find_map(|condition| match condition {
            Condition::Untorn(bytes) => Some(*bytes),
            _ => None,
        })
    }

    /// Whether its values differ in what survives a power cut.
    pub fn is_about_durability(&self) -> bool {
        let mut promises = self.choices.iter().map(|choice| choice.promise);
        promises.any(|promise| promise.is_about_durability())
    }

    /// Whether this value loses nothing, by its document; one that it does not name is not known to. `get` says
    /// what else is set.
    pub fn is_safe<'a>(&self, value: &str, get: impl Fn(&str) -> Option<&'a str>) -> bool {
        if !self.is_about_durability() {
            return true;
        }
        match self.needs(value).next() {
            Some(_) => self.lacking(value, get).is_none(),
            None => self
                .choice(value)
                .is_some_and(|choice| !choice.promise.is_unsafe()),
        }
    }

    /// Other settings that a value is safe only with.
    pub fn needs(&self, value: &str) -> impl Iterator<Item = &'static SafeWith> {
        let all = self.safe_with.iter();
        all.filter(move |needs| is_same(needs.value, value))
    }

    /// The first of them that is set to something else; `get` says to what.
    pub fn lacking<'a>(
        &self,
        value: &str,
        get: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<&'static SafeWith> {
        self.needs(value)
            .find(|needs| get(needs.setting).is_none_or(|set| !needs.is_met_by(set)))
    }
}

impl Promise {
    /// What it risks, by its document; empty if nothing.
    pub fn risk(&self) -> &'static str {
        match self {
            Promise::Durable | Promise::Neutral | Promise::Fits => "",
            Promise::Loses(what) | Promise::Damages(what) | Promise::Replicated(what) => what,
        }
    }

    /// Whether it has a say in what survives a power cut.
    pub fn is_about_durability(&self) -> bool {
        !matches!(self, Promise::Neutral | Promise::Fits)
    }

    /// Whether acknowledged data may be lost with it.
    pub fn is_unsafe(&self) -> bool {
        matches!(self, Promise::Loses(_) | Promise::Damages(_))
    }
}

/// Whether two values mean the same: `ON`, `1` and `yes` do, as do `16K` and `16384`.
pub fn is_same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

/// A value as it can be compared.
fn plain(value: &str) -> String {
    let lower = value.trim().trim_matches(['"', '\'']).to_ascii_lowercase();
    match lower.as_str() {
        // PostgreSQL takes as many letters as tell them apart.
        "on" | "yes" | "ye" | "y" | "true" | "tru" | "tr" | "t" => return "1".to_owned(),
        "off" | "of" | "no" | "n" | "false" | "fals" | "fal" | "fa" | "f" => {
            return "0".to_owned();
        }
        _ => {}
    }
    match landfall_os::humanize::parse_size(&lower) {
        Ok(bytes) => bytes.to_string(),
        Err(_) => lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_however_they_are_written() {
        for (a, b) in [
            ("ON", "1"),
            ("yes", "true"),
            ("off", "0"),
            ("of", "fals"),
            ("16K", "16384"),
            ("'fdatasync'", "FDATASYNC"),
            ("64MB", "64M"),
        ] {
            assert!(is_same(a, b), "{a} {b}");
        }
        for (a, b) in [("1", "2"), ("on", "off"), ("fsync", "fdatasync")] {
            assert!(!is_same(a, b), "{a} {b}");
        }
    }
}
