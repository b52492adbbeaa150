//! What a server is told on its command line, and whether it took it.

use std::fmt::Display;

use crate::DatabaseError;
use crate::SettingError;
use crate::setting::Chosen;

/// What every server here is told, so that it suits a small machine and does nothing by itself that
/// would be measured; each can be set otherwise.
const FIXED: [(&str, &str); 8] = [
    // No clients from elsewhere, so no names to look up.
    ("skip_name_resolve", "ON"),
    // 64 clients, those that look after the server, and room.
    ("max_connections", "200"),
    // Its counters cost memory and time, and nobody reads them.
    ("performance_schema", "OFF"),
    // What a run finds in memory must not depend on the run before, and nobody waits for it.
    ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
    ("innodb_buffer_pool_load_at_startup", "OFF"),
    // A lock that was not got in time ends the transaction, and not only its last statement: whoever
    // tries again must begin anew, as after a deadlock.
    ("innodb_rollback_on_timeout", "ON"),
    // Or a server that keeps a binary log does not start.
    ("server_id", "1"),
    // Statistics that are gathered in the background are written in the background.
    ("innodb_stats_auto_recalc", "OFF"),
];

/// Variables that are fixed when a data directory is made, or that cost a start to change.
const MADE_WITH: [&str; 5] = [
    "innodb_page_size",
    "innodb_log_file_size",
    "innodb_data_file_path",
    "innodb_undo_tablespaces",
    "innodb_checksum_algorithm",
];

/// Variables that would lead a server away from where we look for it.
const OURS: [&str; 31] = [
    "aria_log_dir_path",
    "basedir",
    "bind_address",
    "bootstrap",
    "datadir",
    "defaults_extra_file",
    "defaults_file",
    "extra_port",
    "general_log_file",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "log_bin_index",
    "log_error",
    "log_slow_query_file",
    "log_tc",
    "master_info_file",
    "no_defaults",
    "pid_file",
    "port",
    "relay_log",
    "relay_log_index",
    "relay_log_info_file",
    "rocksdb_datadir",
    "rocksdb_wal_dir",
    "skip_grant_tables",
    "skip_networking",
    "slow_query_log_file",
    "socket",
    "tmpdir",
    "user",
];

/// The settings of a server.
pub(super) struct Options {
    pub name: String,
    /// Later ones win.
    variables: Vec<Variable>,
    /// How many of them, from the end, were asked for.
    asked: usize,
}

/// A variable of the server, with dashes made underscores, and its value.
pub(super) type Variable = (String, String);

pub(super) fn variable(name: &str, value: impl Display) -> Variable {
    (name.to_owned(), value.to_string())
}

/// What says whether there is a binary log.
const LOG_BIN: &str = "log_bin";

/// How a server says of an option, which it takes for the sake of old files or of MySQL's, that it does nothing with it.
const DOES_NOTHING: [&str; 4] = [
    "was removed",
    "has been ignored",
    "Not used or needed",
    "To be implemented",
];

impl Options {
    /// With what an engine is told unless told otherwise, the variables that it has settings for, and
    /// those that are passed on.
    pub fn new(
        chosen: &Chosen,
        for_engine: Vec<Variable>,
        own: Vec<Variable>,
    ) -> Result<Options, SettingError> {
        let mut passed_on = chosen.passed_on().iter();
        let syncs = passed_on.any(|(variable, _)| variable == "sync_binlog");
        let binlog = chosen.one_of("binlog", &[("auto", syncs), ("yes", true), ("no", false)])?;
        if syncs && !binlog {
            return Err(chosen.wrong("binlog", "sync_binlog is set, which needs a binary log"));
        }
        Self::with_binlog(chosen, for_engine, own, binlog)
    }

    /// The same where it is known whether there is a binary log.
    pub fn with_binlog(
        chosen: &Chosen,
        for_engine: Vec<Variable>,
        own: Vec<Variable>,
        binlog: bool,
    ) -> Result<Options, SettingError> {
        let name = chosen.name();
        let mut passed_on = Vec::new();
        for (variable, value) in chosen.passed_on() {
            let refuse = |why: &str| Err(SettingError(format!("{name} {variable}={value}: {why}")));
            if own.iter().any(|(name, _)| name == variable) {
                // The engine has taken it into its own.
                continue;
            }
            if let Some(meant) = prefixed(variable).filter(|meant| *meant != LOG_BIN) {
                return refuse(&format!("write {meant}=VALUE"));
            }
            if OURS.contains(&variable.as_str()) {
                return refuse("that is Landfall's to choose");
            }
            let is_off = ["off", "0", "false"].contains(&value.to_lowercase().as_str());
            if variable.starts_with("wsrep_") && !(variable == "wsrep_on" && is_off) {
                return refuse("Galera would listen to the network; leave it out");
            }
            if variable == LOG_BIN || prefixed(variable) == Some(LOG_BIN) {
                return refuse("whether there is a binary log is said by binlog=yes or binlog=no");
            }
            passed_on.push((variable.clone(), value.clone()));
        }
        let fixed = FIXED.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut variables = fixed.to_vec();
        variables.extend(for_engine);
        if binlog {
            // In the data directory, like everything else.
            variables.push((LOG_BIN.into(), "binlog".into()));
        }
        let asked = own.len() + passed_on.len();
        variables.extend(own);
        variables.extend(passed_on);
        Ok(Options {
            name,
            variables,
            asked,
        })
    }

    /// As arguments of the server.
    pub fn arguments(&self) -> Vec<String> {
        self.variables.iter().map(as_argument).collect()
    }

    /// Those that a data directory is made with.
    pub fn made_with(&self) -> Vec<String> {
        let made_with = |(name, _): &&Variable| MADE_WITH.contains(&name.as_str());
        self.variables
            .iter()
            .filter(made_with)
            .map(as_argument)
            .collect()
    }

    /// What was asked for, by name.
    pub fn asked(&self) -> &[Variable] {
        &self.variables[self.variables.len() - self.asked..]
    }

    /// Finds in the log of a server that did not start what it does not like among what was asked for.
    pub fn complaint(&self, log: &[String]) -> Option<DatabaseError> {
        let setting = |text: &str| Some(DatabaseError::Setting(format!("the server says: {text}")));
        // RocksDB has a word of its own for what it does not know.
        let mut families = log.iter().filter(|line| line.contains("family config"));
        if let Some(line) = families.next() {
            return setting(&format!("rocksdb_default_cf_options: {line}"));
        }
        let errors = log.iter().filter_map(|line| line.split_once("[ERROR] "));
        let mut complaints = errors.map(|(_, error)| error).filter(|error| {
            let words = error.replace('-', "_").to_lowercase();
            let mut words = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.any(|word| {
                // Options are written with two dashes.
                let word = word.trim_start_matches('_');
                self.asked().iter().any(|(name, _)| name == word)
            })
        });
        let complaint = complaints.next()?;
        setting(
            complaint
                .trim_start_matches("mariadbd: ")
                .trim_end_matches('.'),
        )
    }

    /// Finds in the log of a server that started with what of that which was asked for it does nothing, among what is no
    /// variable of it.
    pub fn ignored(
        &self,
        is_variable: impl Fn(&str) -> bool,
        log: &[String],
    ) -> Option<DatabaseError> {
        let warnings = log
            .iter()
            .filter_map(|line| line.split_once("[Warning] "))
            .filter(|(_, warning)| DOES_NOTHING.iter().any(|sign| warning.contains(sign)));
        let warnings: Vec<&str> = warnings.map(|(_, warning)| warning).collect();
        let asked = self.asked().iter().filter(|(name, _)| !is_variable(name));
        let mut ignored = asked.filter_map(|(name, value)| {
            let quoted = format!("'{name}'");
            let warning = warnings.iter().find(|warning| {
                let words = warning.replace('-', "_").to_lowercase();
                words.contains(&quoted)
            })?;
            Some((name, value, warning.trim_end_matches('.')))
        });
        let (name, value, warning) = ignored.next()?;
        Some(DatabaseError::Setting(format!(
            "{name}={value}: the server says: {warning}; leave it out"
        )))
    }

    /// Complains if a server, which says what a variable of some type is, made another number of it.
    pub fn hold_against(
        &self,
        variable: &str,
        kind: &str,
        actual: &str,
    ) -> Result<(), DatabaseError> {
        let asked = self.asked().iter().rfind(|(name, _)| name == variable);
        let Some((name, value)) = asked else {
            return Ok(());
        };
        let is_same = if kind == "BOOLEAN" {
            switch(value) == switch(actual)
        } else if kind.contains("INT") || kind == "DOUBLE" {
            number(value).is_none() || number(value) == number(actual)
        } else {
            // Texts, paths, enumerations and sets: what it does not like it refuses.
            true
        };
        if is_same {
            Ok(())
        } else {
            Err(DatabaseError::Setting(format!(
                "{name}={value}: the server makes {actual} of it; say so, or set another value"
            )))
        }
    }
}

/// A setting's name as the server writes it.
pub(super) fn as_variable(key: &str) -> String {
    key.replace('-', "_").to_lowercase()
}

/// The variable that an option names with words before it that change its meaning, or give it a second name, as each variable of a plugin
/// has: no rule and no proof would know it.
fn prefixed(option: &str) -> Option<&str> {
    // There are variables that begin so.
    const NAMES: [&str; 4] = [
        "plugin_dir",
        "plugin_load",
        "plugin_load_add",
        "plugin_maturity",
    ];
    const FAMILIES: [&str; 8] = [
        "innodb_", "rocksdb_", "aria_", "sync_", "log_bin", "binlog_", "plugin_", "wsrep_",
    ];
    let always = ["loose_", "enable_", "disable_", "maximum_", "plugin_"];
    let always = always.iter().find_map(|prefix| option.strip_prefix(prefix));
    let is_of_family = |rest: &&str| FAMILIES.iter().any(|family| rest.starts_with(family));
    let rest = match option.strip_prefix("skip_").filter(is_of_family) {
        _ if NAMES.contains(&option) => None,
        None => always,
        skipped => skipped,
    }?;
    Some(prefixed(rest).unwrap_or(rest))
}

fn as_argument((name, value): &Variable) -> String {
    format!("--{name}={value}")
}

/// A number as the server reads it: with a suffix for powers of 1024.
fn number(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let exponent = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    let number: f64 = digits.parse().ok()?;
    Some(number * 1024_f64.powi(exponent))
}

/// Whether a switch is on; `None`: it is neither.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_uppercase().as_str() {
        "1" | "ON" | "TRUE" | "" => Some(true),
        "0" | "OFF" | "FALSE" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mariadb::innodb;

    fn options(set: &[(&str, &str)]) -> Result<Options, String> {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let set: Vec<_> = set.iter().map(owned).collect();
        Chosen::new(&innodb::KIND.description, &set)
            .and_then(|chosen| Options::new(&chosen, Vec::new(), innodb::variables(&chosen)?))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_set_comes_after_what_is_fixed() {
        let options = options(&[("innodb_page_size", "4K"), ("max-connections", "7")]).unwrap();
        let arguments = options.arguments();
        let place = |text: &str| arguments.iter().position(|one| one == text).unwrap();
        assert!(place("--max_connections=7") > place("--max_connections=200"));
        let made_with = options.made_with();
        assert!(made_with.contains(&"--innodb_page_size=4096".to_owned()));
        assert!(!made_with.iter().any(|one| one.contains("connections")));
        let shouted = self::options(&[("InnoDB-Page-Size", "4K")]).unwrap();
        assert!(shouted.name.contains(" innodb_page_size=4K"));
    }

    #[test]
    fn a_binary_log_is_kept_where_it_is_asked_for() {
        let has_one = |set| {
            options(set).map(|options| options.arguments().contains(&"--log_bin=binlog".into()))
        };
        assert_eq!(has_one(&[]), Ok(false));
        assert_eq!(has_one(&[("binlog", "yes")]), Ok(true));
        assert_eq!(has_one(&[("sync-binlog", "0")]), Ok(true));
        let error = has_one(&[("sync_binlog", "0"), ("binlog", "no")]).unwrap_err();
        assert!(
            error.starts_with("mariadb binlog=no: sync_binlog"),
            "{error}"
        );
    }

    #[test]
    fn what_is_ours_to_say_is_refused() {
        for (set, why) in [
            (("datadir", "/"), "Landfall's to choose"),
            (("log-bin", "x"), "binlog=yes"),
            (("rocksdb-wal-dir", "/var/tmp"), "Landfall's to choose"),
            (
                ("plugin-innodb-doublewrite", "OFF"),
                "write innodb_doublewrite=VALUE",
            ),
            (
                ("skip-plugin-innodb-doublewrite", "1"),
                "write innodb_doublewrite=VALUE",
            ),
            (("skip-log-bin", "1"), "binlog=yes"),
            (
                ("skip-innodb-doublewrite", "1"),
                "write innodb_doublewrite=VALUE",
            ),
            (("Loose_sync_binlog", "1"), "write sync_binlog=VALUE"),
            (
                ("skip-binlog-annotate-row-events", "1"),
                "write binlog_annotate_row_events=VALUE",
            ),
            (("wsrep-on", "ON"), "listen to the network"),
            (("innodb_page_size", "6K"), "a power of two"),
        ] {
            let error = options(&[set]).map(|_| ()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_complaint_about_what_was_set_is_found_in_the_log() {
        let options = options(&[("innodb_flush_method", "foo"), ("no_such", "1")]).unwrap();
        let complaint = |line: &str| options.complaint(&[format!("2026-11-21 13:17:40 0 {line}")]);
        for line in [
            "[ERROR] mariadbd: Error while setting value 'foo' to 'innodb-flush-method'",
            "[ERROR] mariadbd: unknown variable 'no_such=1'",
            "[ERROR] mariadbd: unknown option '--no-such'",
            "[ERROR] InnoDB: innodb_page_size=16384 requires innodb_buffer_pool_size >= 6 MiB current 2 MiB",
        ] {
            assert!(complaint(line).is_some(), "{line}");
        }
        assert_eq!(complaint("[Note] innodb_flush_method"), None);
        assert_eq!(complaint("[ERROR] Aborting"), None);
    }

    #[test]
    fn what_a_server_does_nothing_with_is_named() {
        let options = options(&[("innodb-log-checksums", "OFF"), ("innodb", "FORCE")]).unwrap();
        let ignored = |is_variable: bool, warning: &str| {
            let log = [format!("2026-11-21 13:17:40 0 [Warning] {warning}")];
            options.ignored(|_| is_variable, &log)
        };
        let removed = "'innodb-log-checksums' was removed. It does nothing now and exists only for compatibility with old my.cnf files.";
        assert_eq!(
            ignored(false, removed).unwrap().to_string(),
            "innodb_log_checksums=OFF: the server says: 'innodb-log-checksums' was removed. It does nothing now and exists only for compatibility with old my.cnf files; leave it out"
        );
        assert_eq!(ignored(true, removed), None);
        for other in [
            "'innodb-file-format' was removed.",
            "'innodb_log_checksums' is deprecated and will be removed in a future release",
            "InnoDB: the file was removed",
        ] {
            assert_eq!(ignored(false, other), None, "{other}");
        }
    }

    #[test]
    fn a_value_that_the_server_changed_is_named() {
        let options = options(&[
            ("innodb_log_file_size", "8000000"),
            ("x", "4k"),
            ("y", "on"),
        ]);
        let options = options.unwrap();
        let kept = |name, kind, actual| options.hold_against(name, kind, actual).is_ok();
        assert!(!kept("innodb_log_file_size", "BIGINT UNSIGNED", "7999488"));
        assert!(kept("x", "INT UNSIGNED", "4096"));
        assert!(kept("y", "BOOLEAN", "ON"));
        assert!(!kept("y", "BOOLEAN", "OFF"));
        assert!(kept("not_set", "BOOLEAN", "OFF"));
    }
}
