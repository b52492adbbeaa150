//! The commands that get what is missing, as a user types them.
//!
//! Each leaves its results document where the next `landfall advise` finds it.

use super::evidence::options_that_matter;
use super::result::Choice;
use crate::Results;
use crate::rules::{self, JOURNAL, Measured, Promise, Rule, System, Value, is_same};
use crate::scratch_fs::{FilesystemSpec, like};
use crate::stats::FEWEST_ROUNDS;
use landfall_os::humanize::{quoted, size_name};

/// What commands are made from.
pub struct Commands<'a> {
    results: &'a Results,
    /// Where results documents are kept.
    report: &'a str,
}

impl<'a> Commands<'a> {
    /// For advice on what `results` are of, with documents in directory `report`.
    pub fn new(results: &'a Results, report: &'a str) -> Commands<'a> {
        Commands { results, report }
    }

    /// What times the writes that systems make, and proves them where that can be.
    pub(super) fn writes(&self) -> String {
        format!(
            "sudo landfall lab sync {} --prove --no-report --json {}",
            quoted(&self.results.directory),
            self.file("sync")
        )
    }

    /// What holds a value against the rule's reference; nothing where no experiment does.
    pub(super) fn measure(&self, rule: &Rule, known: &Choice) -> Option<String> {
        let directory = quoted(&self.results.directory);
        let system = rule.system.key();
        let (experiment, more, file) = match rule.measured_by? {
            Measured::Torn(part) => (
                "torn",
                format!(" --part {part} --latency none"),
                format!("torn-{part}"),
            ),
            Measured::Amplify(part) => (
                "amplify",
                // One round, which is usual, makes no interval.
                format!(" --part {part} --rounds {FEWEST_ROUNDS}"),
                format!("amplify-{part}"),
            ),
            Measured::Binlog if rule.system == System::Mount => {
                let own = format!("loop:{}", self.filesystem_spec(rule, None)?);
                let with = self.filesystem_spec(rule, Some(&known.value))?;
                let with = format!("loop:{with}");
                (
                    "binlog",
                    format!(
                        " --on {} --on {} --database mariadb",
                        quoted(&own),
                        quoted(&with)
                    ),
                    format!("binlog-{}-{}", rule.setting, known.value),
                )
            }
            Measured::Planned => (
                "binlog",
                format!(" --on dir --database {system}"),
                format!("binlog-{system}"),
            ),
            Measured::Binlog => {
                let with = known.with.iter();
                let set: String = [(&rule.setting.to_owned(), &known.value)]
                    .into_iter()
                    .chain(with)
                    .map(|(key, value)| format!(" --set {key}={}", quoted(value)))
                    .collect();
                (
                    "binlog",
                    format!(" --on dir --database {system}{set}"),
                    format!("binlog-{system}-{}-{}", rule.setting, known.value),
                )
            }
        };
        Some(format!(
            "sudo landfall lab {experiment} {directory}{more} --no-report --json {}",
            self.file(&file)
        ))
    }

    /// What cuts the power with the setting at this value, and every other of the system at a safe one: of the
    /// reference, one proof for all settings.
    pub(super) fn prove(&self, rule: &Rule, value: &str, is_reference: bool) -> Option<String> {
        let setting = rule.setting;
        // Another version may not know the setting.
        if !rule.since.is_empty() {
            return None;
        }
        let mut filesystem_spec = self.filesystem_spec(rule, None)?;
        let mut set = Vec::new();
        let subject = match rule.system {
            // They are no subjects.
            System::Mysql | System::Kafka | System::Nats => return None,
            // What it would be instead is no subject of its own, and what is usual is everywhere.
            System::Landfall if !is_reference => return None,
            System::Mount if is_reference => return None,
            System::Landfall => setting,
            // Of what it does to files that are made a plain file knows nothing.
            System::Mount if setting == JOURNAL => {
                set = safe(System::Mariadb);
                System::Mariadb.key()
            }
            System::Mount => {
                filesystem_spec = self.filesystem_spec(rule, Some(value))?;
                "files"
            }
            system => {
                set = safe(system);
                // Leaves that are never written over need no protection.
                if system == System::LandfallStore {
                    set.push(("in-place", "yes"));
                }
                if !is_reference {
                    set.retain(|(key, _)| *key != setting);
                    set.push((setting, value));
                }
                system.key()
            }
        };
        let set: String = set
            .iter()
            .map(|(key, value)| format!(" --set {key}={}", quoted(value)))
            .collect();
        let file = if is_reference {
            format!("prove-{subject}")
        } else {
            format!("prove-{subject}-{}-{value}", setting.replace(' ', "-"))
        };
        let atomic = rule
            .untorn()
            .map(|bytes| format!(" --atomic {}", size_name(bytes)));
        let atomic = atomic.unwrap_or_default();
        Some(format!(
            "sudo landfall prove {subject} --fs {}{set}{atomic} --no-report --json {}",
            quoted(&filesystem_spec.to_string()),
            self.file(&file)
        ))
    }

    /// How a filesystem like that of the directory is made: another would prove nothing of it. With a `value` of a
    /// rule on mounting it has that in place of its own.
    fn filesystem_spec(&self, rule: &Rule, value: Option<&str>) -> Option<FilesystemSpec> {
        let mut filesystem_spec = like(&self.results.filesystem).ok()?;
        // Settings are proven with a journal, since without one other things are lost.
        if rule.setting != JOURNAL {
            filesystem_spec.mkfs_options.clear();
        }
        let mut words = value.into_iter().filter(|_| rule.setting != JOURNAL);
        if rule.setting.starts_with("mkfs ") {
            let features = words.by_ref().map(str::to_owned);
            filesystem_spec
                .mkfs_options
                .extend(features.flat_map(|own| ["-O".to_owned(), own]));
        }
        let own = words.map(|value| mount_option(rule.setting, value));
        let others = filesystem_spec.mount_options.split(',');
        let others = options_that_matter(rule, filesystem_spec.kind.name(), others).into_iter();
        let all: Vec<String> = others.map(str::to_owned).chain(own).collect();
        filesystem_spec.mount_options = all.join(",");
        Some(filesystem_spec)
    }

    fn file(&self, name: &str) -> String {
        quoted(&format!("{}/{name}.json", self.report))
    }
}

/// What has to be set of a system for nothing of it to lose anything: what is not so unless set.
fn safe(system: System) -> Vec<(&'static str, &'static str)> {
    let safe = rules::of(system).filter_map(|rule| match rule.reference().value {
        Value::Fixed(value) if rule.reference().promise == Promise::Durable => {
            (!is_same(value, rule.default)).then_some((rule.setting, value))
        }
        _ => None,
    });
    safe.collect()
}

/// A mount option as mount(8) takes it.
fn mount_option(setting: &str, value: &str) -> String {
    match value {
        "on" => setting.to_owned(),
        value => format!("{setting}={value}"),
    }
}
