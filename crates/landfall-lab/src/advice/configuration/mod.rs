//! Configuration files of servers, as far as rules look at them.
//!
//! What a server would take of them: sections, files that are included, spellings, and that the last word
//! counts. What is no setting is passed over; a file that cannot be read is an error, since what is in it may
//! be what matters.

mod spelling;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use self::spelling::{
    Include, is_server, mysql, mysql_include, postgres, postgres_include, pragma, property, redis,
    redis_include, yaml,
};
use super::rule::System;
use crate::Error;

/// Files that include each other deeper than this go round in a circle.
const DEEPEST: u32 = 10;
/// No configuration is larger.
const LARGEST: u64 = 16 << 20;

/// What a configuration sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// The settings in the order in which they stand: of those that come twice the last counts.
    pub settings: Vec<Set>,
}

/// One setting, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Its name, as rules have it.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Whether a server that does not know it passes over it.
    pub is_loose: bool,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl Configuration {
    /// What a setting is set to, where it is.
    pub fn get(&self, name: &str) -> Option<&Set> {
        self.settings.iter().rev().find(|set| set.name == name)
    }

    /// Reads the configuration of a system from a file, and from those that it includes.
    pub fn read(system: System, path: &Path) -> Result<Configuration, Error> {
        let mut configuration = Configuration::default();
        configuration.file(system, path, 0)?;
        if system == System::Postgres {
            // What was set by ALTER SYSTEM stands in the data directory, and counts more.
            let directory = match configuration.get("data_directory") {
                Some(set) => PathBuf::from(&set.value),
                None => path.parent().unwrap_or(Path::new("")).to_owned(),
            };
            let auto = directory.join("postgresql.auto.conf");
            match fs::metadata(&auto) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                _ => configuration.file(system, &auto, 0)?,
            }
        }
        Ok(configuration)
    }

    fn file(&mut self, system: System, path: &Path, depth: u32) -> Result<(), Error> {
        if depth > DEEPEST {
            return Err(Error::Usage(format!(
                "{} is included in a circle",
                path.display()
            )));
        }
        let text = text(path)?;
        let mut section = String::new();
        for (line, text) in text.lines().enumerate() {
            let text = text.trim();
            let include = match system {
                _ if system.has_option_files() => mysql_include(text),
                System::Postgres => postgres_include(text),
                System::Redis => redis_include(text),
                _ => None,
            };
            if let Some(include) = include {
                self.include(system, path, &include, depth)?;
                continue;
            }
            if let Some(name) = text
                .strip_prefix('[')
                .and_then(|rest| rest.split(']').next())
            {
                section = name.trim().to_ascii_lowercase();
                continue;
            }
            let found: Vec<(String, String)> = match system {
                System::Mariadb | System::Mysql | System::Myrocks => {
                    let is_its_own = is_server(system, &section);
                    mysql(text).filter(|_| is_its_own).into_iter().collect()
                }
                System::Postgres => postgres(text).into_iter().collect(),
                System::Redis => redis(text).into_iter().collect(),
                System::Etcd => yaml(text).into_iter().collect(),
                System::Kafka | System::Rocksdb => property(text).into_iter().collect(),
                System::Sqlite => text.split(';').filter_map(pragma).collect(),
                System::Landfall | System::Mount => Vec::new(),
            };
            for (name, value) in found {
                self.settings.push(Set {
                    name,
                    value,
                    is_loose: system.has_option_files() && text.starts_with("loose"),
                    file: path.to_owned(),
                    line: line + 1,
                });
            }
        }
        Ok(())
    }

    fn include(
        &mut self,
        system: System,
        from: &Path,
        include: &Include,
        depth: u32,
    ) -> Result<(), Error> {
        let beside = |path: &str| from.parent().unwrap_or(Path::new("")).join(path);
        match include {
            Include::File(path) => self.file(system, &beside(path), depth + 1),
            Include::IfThere(path) => match beside(path) {
                path if path.exists() => self.file(system, &path, depth + 1),
                _ => Ok(()),
            },
            Include::Directory(path, suffix) => {
                let directory = beside(path);
                let mut files: Vec<PathBuf> = fs::read_dir(&directory)
                    .map_err(|error| unreadable(&directory, &error))?
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| {
                        let name = path.file_name().unwrap_or_default().to_string_lossy();
                        path.is_file() && name.ends_with(suffix) && !name.starts_with('.')
                    })
                    .collect();
                files.sort();
                files
                    .iter()
                    .try_for_each(|path| self.file(system, path, depth + 1))
            }
        }
    }
}

/// Which system's configuration a file is, by its name; of an option file that does not tell whether it is MariaDB's or
/// MySQL's, by what is said in it, and MariaDB's if nothing is: of what is not set, that has the riskier values.
pub fn system_of(path: &Path) -> Option<System> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let has = |part: &str| name.contains(part);
    if has("myrocks") {
        Some(System::Myrocks)
    } else if has("mariadb") {
        Some(System::Mariadb)
    } else if has("mysql") {
        Some(System::Mysql)
    } else if name.ends_with(".cnf") {
        let text = text(path).unwrap_or_default().to_ascii_lowercase();
        // What the packages of each say in theirs, in comments and in names of directories.
        let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
        match says(&["dev.mysql.com", "mysql.conf.d"]) && !says(&["mariadb"]) {
            true => Some(System::Mysql),
            false => Some(System::Mariadb),
        }
    } else if has("postgres") {
        Some(System::Postgres)
    } else if has("redis") {
        Some(System::Redis)
    } else if has("etcd") {
        Some(System::Etcd)
    } else if has("kafka") || name == "server.properties" || name == "broker.properties" {
        Some(System::Kafka)
    } else if has("sqlite") {
        Some(System::Sqlite)
    } else if has("rocksdb") {
        Some(System::Rocksdb)
    } else {
        None
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::Usage(format!("cannot read {}: {error}", path.display()))
}

fn text(path: &Path) -> Result<String, Error> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if metadata.is_dir() || metadata.len() > LARGEST {
        return Err(Error::Usage(format!(
            "{} is no configuration file",
            path.display()
        )));
    }
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(system: System, files: &[(&str, &str)]) -> Result<Configuration, Error> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Configuration::read(system, &directory.path().join(files[0].0))
    }

    fn values(configuration: &Configuration, names: &[&str]) -> Vec<Option<String>> {
        let get = |name: &&str| Some(configuration.get(name)?.value.clone());
        names.iter().map(get).collect()
    }

    #[test]
    fn of_mariadb_sections_prefixes_and_includes_count() {
        let found = read(
            System::Mariadb,
            &[
                (
                    "my.cnf",
                    "innodb_doublewrite=9\n[client]\nsync_binlog=7\n[mysqld]\n# innodb_page_size=4K\nsync-binlog = 0 # why not\nskip-innodb-doublewrite\nloose_innodb_log_file_write_through\n!includedir conf.d\n[mariadb-10.11]\ninnodb_page_size='8k'\n",
                ),
                ("conf.d/a.cnf", "[mariadb]\nsync_binlog=1\n"),
                ("conf.d/b.cnf", "[mysqldump]\nsync_binlog=5\n"),
                ("conf.d/c.txt", "[mysqld]\nsync_binlog=6\n"),
            ],
        )
        .unwrap();
        let names = [
            "sync_binlog",
            "innodb_doublewrite",
            "innodb_log_file_write_through",
            "innodb_page_size",
        ];
        let expected = ["1", "OFF", "ON", "8k"].map(|value| Some(value.to_owned()));
        assert_eq!(values(&found, &names), expected);
        let set = found.get("sync_binlog").unwrap();
        assert_eq!((set.file.ends_with("conf.d/a.cnf"), set.line), (true, 2));
    }

    #[test]
    fn of_postgresql_the_last_word_counts_and_alter_system_is_the_last() {
        let found = read(
            System::Postgres,
            &[
                (
                    "postgresql.conf",
                    "fsync on\n#wal_sync_method = fsync\nwal_sync_method = 'open_datasync'   # tried\nSynchronous_Commit=off\ninclude_dir 'conf.d'\ninclude_if_exists = 'none.conf'\n",
                ),
                ("conf.d/x.conf", "commit_delay = 100\n"),
                ("postgresql.auto.conf", "synchronous_commit = 'on'\n"),
            ],
        )
        .unwrap();
        let names = [
            "fsync",
            "wal_sync_method",
            "synchronous_commit",
            "commit_delay",
        ];
        let expected = ["on", "open_datasync", "on", "100"].map(|value| Some(value.to_owned()));
        assert_eq!(values(&found, &names), expected);
    }

    #[test]
    fn the_others_are_read_in_their_own_ways() {
        for (system, text, name, value) in [
            (
                System::Redis,
                "appendfsync everysec\n",
                "appendfsync",
                "everysec",
            ),
            (
                System::Etcd,
                "unsafe-no-fsync: true # no\n",
                "unsafe-no-fsync",
                "true",
            ),
            (
                System::Kafka,
                "log.flush.interval.messages=1\n",
                "log.flush.interval.messages",
                "1",
            ),
            (
                System::Sqlite,
                "PRAGMA journal_mode = WAL;\n",
                "journal_mode",
                "wal",
            ),
            (
                System::Sqlite,
                "pragma main.synchronous(1); PRAGMA x=1",
                "synchronous",
                "normal",
            ),
        ] {
            let found = read(system, &[("file", text)]).unwrap();
            assert_eq!(values(&found, &[name]), [Some(value.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_so_is_a_circle() {
        let missing = read(System::Mariadb, &[("my.cnf", "!include other.cnf\n")]);
        assert!(missing.unwrap_err().to_string().contains("other.cnf"));
        let circle = read(System::Mariadb, &[("my.cnf", "!include my.cnf\n")]);
        assert!(circle.unwrap_err().to_string().contains("in a circle"));
    }

    #[test]
    fn a_file_is_known_by_its_name() {
        for (name, system) in [
            ("my.cnf", Some(System::Mariadb)),
            ("50-server.cnf", Some(System::Mariadb)),
            ("mariadb.cnf", Some(System::Mariadb)),
            ("mysqld.cnf", Some(System::Mysql)),
            ("myrocks.cnf", Some(System::Myrocks)),
            ("postgresql.conf", Some(System::Postgres)),
            ("redis.conf", Some(System::Redis)),
            ("etcd.conf.yml", Some(System::Etcd)),
            ("server.properties", Some(System::Kafka)),
            ("sqlite.sql", Some(System::Sqlite)),
            ("something.conf", None),
        ] {
            assert_eq!(system_of(Path::new(name)), system, "{name}");
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my.cnf");
        for (text, system) in [
            ("!includedir /etc/mysql/mysql.conf.d/", System::Mysql),
            ("!includedir /etc/mysql/mariadb.conf.d/", System::Mariadb),
            ("# see dev.mysql.com\n[mariadb]", System::Mariadb),
            ("[mysqld]", System::Mariadb),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(system_of(&path), Some(system), "{text}");
        }
    }
}
