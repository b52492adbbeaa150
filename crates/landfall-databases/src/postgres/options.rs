//! What a server is told on its command line, and whether it took it.

use crate::DatabaseError;
use crate::SettingError;
use crate::setting::Chosen;

/// What every server here is told; each but the first two can be set otherwise.
const FIXED: [(&str, &str); 8] = [
    ("listen_addresses", ""),
    ("logging_collector", "off"),
    // 64 clients, those that look after the server, and room.
    ("max_connections", "200"),
    // What goes wrong with the server, and not what clients do wrong: they hear of it themselves.
    ("log_min_messages", "log"),
    ("log_checkpoints", "off"),
    ("log_line_prefix", ""),
    // A server one of whose processes has died is to be seen as dead.
    ("restart_after_crash", "off"),
    // It costs each statement a system call.
    ("update_process_title", "off"),
];

/// What a server of a cluster is told besides; each can be set otherwise.
const REPLICATED: [(&str, &str); 3] = [
    // Whoever comes late finds what he lacks.
    ("wal_keep_size", "64MB"),
    // A follower asks again soon whether its leader is there.
    ("wal_retrieve_retry_interval", "100ms"),
    // A server that led can be rewound without checksums too.
    ("wal_log_hints", "on"),
];
/// For what a commit may wait where there is one server, and what else where there are several.
const LEVELS: [&str; 5] = ["on", "local", "off", "remote_write", "remote_apply"];
const LEVELS_ALONE: usize = 3;

/// Parameters that would lead a server away from where we look for it.
const OURS: [&str; 14] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "listen_addresses",
    "log_destination",
    "logging_collector",
    "port",
    "primary_conninfo",
    "shared_preload_libraries_dir",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
];

/// A parameter's name as it is read back; the server takes dashes for underscores.
pub(super) fn as_parameter(key: &str) -> String {
    key.replace('-', "_").to_lowercase()
}

/// Which standbys a commit waits for.
const STANDBYS: &str = "synchronous_standby_names";

/// What a data directory is made with that is to have no checksums, and since which version: before, it had none unless told.
const NO_CHECKSUMS: &str = "--no-data-checksums";
const NO_CHECKSUMS_SINCE: u32 = 18;

type Parameter = (String, String);

/// The settings of a server.
#[derive(Clone)]
pub(super) struct Options {
    pub name: String,
    /// What was asked for.
    asked: Vec<Parameter>,
    made_with: Vec<String>,
    is_replicated: bool,
}

impl Options {
    /// None.
    pub fn plain() -> Options {
        Options {
            name: "postgres".into(),
            asked: Vec::new(),
            made_with: Vec::new(),
            is_replicated: false,
        }
    }

    pub fn new(chosen: &Chosen) -> Result<Options, SettingError> {
        let waits = |(name, value): &(String, String)| name == STANDBYS && !value.is_empty();
        if chosen.passed_on().iter().any(waits) {
            let name = chosen.name();
            return Err(SettingError(format!(
                "{name}: one server has no standbys, and its commits would wait for ever: leave {STANDBYS} out"
            )));
        }
        Self::with_levels(chosen, &LEVELS[..LEVELS_ALONE])
    }

    /// Those of each server of a cluster.
    pub fn of_cluster(chosen: &Chosen) -> Result<Options, SettingError> {
        let mut options = Self::with_levels(chosen, &LEVELS)?;
        let names = chosen.text(STANDBYS);
        if names.contains(|c: char| c.is_control() || c == '\'') {
            return Err(chosen.wrong(STANDBYS, "it is as PostgreSQL takes it: ANY 1 (*)"));
        }
        let fsync = chosen.one_of("fsync", &[("on", "on"), ("off", "off")])?;
        for (name, value) in [(STANDBYS, names), ("fsync", fsync)] {
            options.asked.push((name.to_owned(), value.to_owned()));
        }
        options.is_replicated = true;
        Ok(options)
    }

    /// The same for a server that nobody follows, so that nobody is waited for.
    pub fn alone(&self) -> Options {
        let mut alone = self.clone();
        alone.asked.push((STANDBYS.into(), String::new()));
        alone
    }

    fn with_levels(chosen: &Chosen, levels: &[&'static str]) -> Result<Options, SettingError> {
        let segment = chosen.size("wal_segment_size", 1 << 20, 1 << 30)?;
        if !segment.is_power_of_two() {
            return Err(chosen.wrong("wal_segment_size", "it is a power of two"));
        }
        let mut made_with = vec![format!("--wal-segsize={}", segment >> 20)];
        let checksums = if chosen.whether("checksums")? {
            "--data-checksums"
        } else {
            NO_CHECKSUMS
        };
        made_with.push(checksums.to_owned());
        let levels: Vec<_> = levels.iter().map(|&level| (level, level)).collect();
        let commit = chosen.one_of("synchronous_commit", &levels)?;
        let buffers = chosen.size("shared_buffers", 128 << 10, 1 << 42)?;
        let mut asked = vec![
            ("synchronous_commit".into(), commit.to_owned()),
            ("shared_buffers".into(), format!("{}kB", buffers >> 10)),
        ];
        let name = chosen.name();
        for (parameter, value) in chosen.passed_on() {
            if OURS.contains(&parameter.as_str()) {
                return Err(SettingError(format!(
                    "{name}: {parameter} is Landfall's to choose"
                )));
            }
            asked.push((parameter.clone(), value.clone()));
        }
        Ok(Options {
            name,
            asked,
            made_with,
            is_replicated: false,
        })
    }

    /// As values of `-c`; later ones win.
    pub fn arguments(&self) -> Vec<String> {
        let besides: &[_] = if self.is_replicated { &REPLICATED } else { &[] };
        let fixed = FIXED.iter().chain(besides);
        let fixed = fixed.map(|&(name, value)| (name.to_owned(), value.to_owned()));
        fixed
            .chain(self.asked.iter().cloned())
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    }

    /// What a data directory is made with by programs of this version.
    pub fn made_with(&self, version: &str) -> Vec<String> {
        let knows = |option: &str| option != NO_CHECKSUMS || major(version) >= NO_CHECKSUMS_SINCE;
        let made_with = self.made_with.iter().filter(|option| knows(option));
        made_with.cloned().collect()
    }

    /// Complains of a name with a dot that no parameter of the server has: it takes any, for a library that may come.
    pub fn require_known(&self, is_parameter: impl Fn(&str) -> bool) -> Result<(), DatabaseError> {
        let mut names = self.asked.iter().map(|(name, _)| name);
        match names.find(|name| name.contains('.') && !is_parameter(name)) {
            None => Ok(()),
            Some(name) => Err(DatabaseError::Setting(format!(
                "{name}: the server and its loaded libraries have no such parameter: load one with shared_preload_libraries, or leave it out"
            ))),
        }
    }

    /// Finds in the log of a server that did not start what it does not like among what was asked for.
    pub fn complaint(&self, log: &[String]) -> Option<DatabaseError> {
        let is_about = |line: &str| {
            let mut names = self.asked.iter();
            names.any(|(name, _)| line.contains(&format!("\"{name}\"")))
        };
        let mut lines = log.iter();
        let complaint = lines.find_map(|line| {
            let text = line.strip_prefix("FATAL:").or(line.strip_prefix("LOG:"))?;
            is_about(text).then_some(text.trim())
        })?;
        let hint = lines.next().and_then(|line| line.strip_prefix("HINT:"));
        let hint = hint.map(|hint| format!("; {}", hint.trim().trim_end_matches('.')));
        Some(DatabaseError::Setting(format!(
            "the server says: {complaint}{}",
            hint.unwrap_or_default()
        )))
    }

    /// Complains if a server, which says what a parameter is and in which unit, made another number of it.
    pub fn hold_against(&self, name: &str, actual: &str, unit: &str) -> Result<(), DatabaseError> {
        let asked = self.asked.iter().rfind(|(asked, _)| asked == name);
        let Some((_, value)) = asked else {
            return Ok(());
        };
        let (is, should) = (amount(actual, unit), amount(value, unit));
        match (is, should) {
            (Some(is), Some(should)) if is != should => Err(DatabaseError::Setting(format!(
                "{name}={value}: the server makes {actual} {unit} of it; say so, or set another value"
            ))),
            _ => Ok(()),
        }
    }
}

/// The number before the first dot of a version such as `15.10` or `18beta1`; 0: there is none.
fn major(version: &str) -> u32 {
    let digits = version.split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// A number with a unit of memory or time, which `unit` is where it has none, in bytes or microseconds.
fn amount(text: &str, unit: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let of_its_own = &text[digits.len()..];
    let number: f64 = digits.trim().parse().ok()?;
    let factor = |unit: &str| {
        Some(match unit {
            "" => 1.0,
            "B" => 1.0,
            "kB" => 1024.0,
            "8kB" => 8192.0,
            "MB" => 1048576.0,
            "16MB" => 16777216.0,
            "GB" => 1073741824.0,
            "TB" => 1099511627776.0,
            "us" => 1.0,
            "ms" => 1e3,
            "s" => 1e6,
            "min" => 60e6,
            "h" => 3600e6,
            "d" => 86400e6,
            _ => return None,
        })
    };
    match of_its_own {
        "" => Some(number * factor(unit)?),
        own => Some(number * factor(own)?),
    }
}

#[cfg(test)]
mod tests {
    use super::super::KIND;
    use super::*;

    fn options(set: &[(&str, &str)]) -> Result<Options, String> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let set: Vec<_> = set.iter().map(owned).collect();
        Chosen::new(&KIND.description, &set)
            .and_then(|chosen| Options::new(&chosen))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_set_comes_after_what_is_fixed() {
        let options = options(&[("max_connections", "7"), ("wal_segment_size", "1M")]).unwrap();
        let arguments = options.arguments();
        let place = |text: &str| arguments.iter().position(|one| one == text).unwrap();
        assert!(place("max_connections=7") > place("max_connections=200"));
        assert!(arguments.contains(&"shared_buffers=131072kB".to_owned()));
        let made_with = ["--wal-segsize=1", "--data-checksums"];
        assert_eq!(options.made_with("15.10"), made_with);
        let spelled = self::options(&[("full-page-writes", "off")]).unwrap();
        assert!(
            spelled.name.ends_with(" full_page_writes=off"),
            "{}",
            spelled.name
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (set, why) in [
            (("port", "1"), "Landfall's to choose"),
            (("Listen-Addresses", "*"), "Landfall's to choose"),
            (("synchronous-commit", "remote_apply"), "on, local, off"),
            (("wal_segment_size", "3M"), "a power of two"),
            (("synchronous_commit", "remote_apply"), "on, local, off"),
            (("synchronous_standby_names", "*"), "has no standbys"),
        ] {
            let error = options(&[set]).map(|_| ()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn whoever_wants_no_checksums_says_so_where_there_would_be_some() {
        let options = options(&[("checksums", "no"), ("wal_segment_size", "1M")]).unwrap();
        assert_eq!(options.made_with("17.6"), ["--wal-segsize=1"]);
        let told = ["--wal-segsize=1", NO_CHECKSUMS];
        assert_eq!(options.made_with("18beta1"), told);
        assert_eq!(options.made_with("18.1"), told);
    }

    #[test]
    fn a_name_with_a_dot_that_no_parameter_has_is_refused() {
        let options = options(&[("auto_explain.log_nested", "on"), ("fsync", "off")]).unwrap();
        let known = options.require_known(|name| name == "auto_explain.log_nested");
        assert_eq!(known, Ok(()));
        let error = options.require_known(|_| false).unwrap_err().to_string();
        assert!(error.starts_with("auto_explain.log_nested: "), "{error}");
    }

    #[test]
    fn a_complaint_about_what_was_set_is_found_in_the_log() {
        let options = options(&[("wal_sync_method", "foo")]).unwrap();
        let complaint = |lines: &[&str]| {
            let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            options.complaint(&lines).map(|error| error.to_string())
        };
        assert_eq!(
            complaint(&[
                "FATAL:  invalid value for parameter \"wal_sync_method\": \"foo\"",
                "HINT:  Available values: fsync, fdatasync.",
            ])
            .unwrap(),
            "the server says: invalid value for parameter \"wal_sync_method\": \"foo\"; Available values: fsync, fdatasync"
        );
        assert_eq!(
            complaint(&["PANIC:  could not locate a valid checkpoint record"]),
            None
        );
    }

    #[test]
    fn a_value_that_the_server_changed_is_named() {
        let options = options(&[("max_wal_size", "1500kB"), ("commit_delay", "1.4")]).unwrap();
        assert!(options.hold_against("max_wal_size", "1", "MB").is_err());
        assert!(options.hold_against("commit_delay", "1", "").is_err());
        let buffers = options.hold_against("shared_buffers", "16384", "8kB");
        assert_eq!(buffers, Ok(()));
        let text = options.hold_against("synchronous_commit", "on", "");
        assert_eq!(text, Ok(()));
        assert_eq!(amount("5min", "s"), amount("300", "s"));
    }
}
