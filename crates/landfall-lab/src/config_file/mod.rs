//! ConfigFile files of servers, as far as rules look at them.
//!
//! What a server would take of them: sections, files that are included, spellings, and that the last word
//! counts. What is no setting is passed over; a file that cannot be read is an error, since what is in it may
//! be what matters.

mod etcd;
mod option_file;
mod spelling;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(crate) use self::option_file::version_of;
use self::option_file::{Section, mysql, mysql_include, persisted, says, section};
use self::spelling::{
    Include, nats, nats_include, postgres, postgres_include, pragma, property, redis,
    redis_include, sql_statements,
};
use crate::Error;
use crate::rules::{self, System};

/// Files that include each other deeper than this go round in a circle.
const DEEPEST: u32 = 10;
/// What MySQL keeps of SET PERSIST in its data directory.
const PERSISTED: &str = "mysqld-auto.cnf";
/// No configuration is larger.
const LARGEST: u64 = 16 << 20;

/// A configuration file that was named, and whose it may be: at least one system's.
#[derive(Clone, Debug)]
pub struct NamedConfig {
    /// The systems, the likeliest first.
    pub systems: Vec<System>,
    /// The file.
    pub path: PathBuf,
}

/// A file by its name, or with its system before it: `postgres=FILE`.
impl FromStr for NamedConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedConfig, String> {
        if let Some((name, path)) = text.split_once('=')
            && let Ok(system) = name.parse()
        {
            return Ok(NamedConfig {
                systems: vec![system],
                path: path.into(),
            });
        }
        let path = PathBuf::from(text);
        let systems = systems_of(&path);
        if systems.is_empty() {
            return Err(format!(
                "whose configuration it is cannot be told by its name; write mariadb={text}, say"
            ));
        }
        Ok(NamedConfig { systems, path })
    }
}

/// What a configuration sets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigFile {
    /// The settings in the order in which they count: of those that come twice the last does.
    pub settings: Vec<Set>,
    /// Sections for another server, or for one version of it, in which something is set that rules look at.
    pub passed_over: Vec<String>,
}

/// One setting, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Its name, as rules have it.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The version of the server that alone reads it, if it stands in such a section.
    pub version: Option<String>,
    /// Whether a server that does not know it passes over it.
    pub is_loose: bool,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl ConfigFile {
    /// What a setting is set to, where it is.
    pub fn get(&self, name: &str) -> Option<&Set> {
        let mut last_first = self.settings.iter().rev();
        last_first.find(|set| set.name == name && set.version.is_none())
    }

    /// The versions that have sections of their own, each once.
    pub fn versions(&self) -> Vec<&str> {
        let mut versions: Vec<&str> = Vec::new();
        for version in self
            .settings
            .iter()
            .filter_map(|set| set.version.as_deref())
        {
            if !versions.contains(&version) {
                versions.push(version);
            }
        }
        versions
    }

    /// What a server of this version takes of it.
    pub fn for_version(&self, version: &str) -> ConfigFile {
        let settings = self.settings.iter().filter(|set| {
            let own = set.version.as_deref();
            own.is_none_or(|own| own == version)
        });
        let settings = settings.map(|set| Set {
            version: None,
            ..set.clone()
        });
        ConfigFile {
            settings: settings.collect(),
            passed_over: self.passed_over.clone(),
        }
    }

    /// Reads the configuration of a system from a file, and from those that it includes.
    pub fn read(system: System, path: &Path) -> Result<ConfigFile, Error> {
        let mut configuration = ConfigFile::default();
        configuration.file(system, path, 0)?;
        // What a client has set for good stands in the data directory, and counts more.
        let set = |name: &str| Some(PathBuf::from(&configuration.get(name)?.value));
        let persisted = match system {
            System::Postgres => {
                let directory = set("data_directory");
                let directory = directory.or_else(|| path.parent().map(Path::to_owned));
                directory.map(|directory| directory.join("postgresql.auto.conf"))
            }
            System::Mysql => set("datadir").map(|directory| directory.join(PERSISTED)),
            _ => None,
        };
        if let Some(file) = persisted {
            match fs::metadata(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                _ => configuration.file(system, &file, 0)?,
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
        if path.file_name().is_some_and(|name| name == PERSISTED) {
            return self.persisted(path, &text);
        }
        if system == System::Sqlite {
            for (line, statement) in sql_statements(&text) {
                if let Some(found) = pragma(&statement) {
                    self.add(found, path, line);
                }
            }
            return Ok(());
        }
        if system == System::Etcd {
            for (line, found) in etcd::settings(&text) {
                self.add(found, path, line);
            }
            return Ok(());
        }
        let mut name_of_section = String::new();
        for (line, text) in text.lines().enumerate() {
            let text = text.trim();
            let include = match system {
                _ if system.has_option_files() => mysql_include(text),
                System::Postgres => postgres_include(text),
                System::Redis => redis_include(text),
                System::Nats => nats_include(text),
                _ => None,
            };
            if let Some(include) = include {
                self.include(system, path, &include, depth)?;
                // Of NATS there may be settings in the same line.
                if system != System::Nats {
                    continue;
                }
            }
            if has_sections(system)
                && let Some(name) = text
                    .strip_prefix('[')
                    .and_then(|rest| rest.split(']').next())
            {
                name_of_section = name.trim().to_ascii_lowercase();
                continue;
            }
            let found: Vec<(String, String)> = match system {
                System::Mariadb | System::Mysql | System::Myrocks => {
                    let found = mysql(text);
                    self.of_section(system, &name_of_section, found)
                        .into_iter()
                        .collect()
                }
                System::Postgres => postgres(text).into_iter().collect(),
                System::Redis => redis(text).into_iter().collect(),
                System::Nats => nats(text).into_iter().collect(),
                System::Kafka | System::Rocksdb => property(text).into_iter().collect(),
                // The first two are read as a whole, the others have no files.
                System::Sqlite
                | System::Etcd
                | System::Landfall
                | System::LandfallStore
                | System::Mount => Vec::new(),
            };
            let version = version_of(&name_of_section).filter(|_| system.has_option_files());
            for (name, value) in found {
                self.settings.push(Set {
                    name,
                    value,
                    version: version.map(str::to_owned),
                    is_loose: system.has_option_files() && text.starts_with("loose"),
                    file: path.to_owned(),
                    line: line + 1,
                });
            }
        }
        Ok(())
    }

    /// A setting that every version of a server takes.
    fn add(&mut self, (name, value): (String, String), path: &Path, line: usize) {
        self.settings.push(Set {
            name,
            value,
            version: None,
            is_loose: false,
            file: path.to_owned(),
            line,
        });
    }

    /// A setting, if it stands in a section that the system's server reads.
    fn of_section(
        &mut self,
        system: System,
        name: &str,
        found: Option<(String, String)>,
    ) -> Option<(String, String)> {
        let own = section(system, name);
        let is_named = match own {
            Section::Own => version_of(name).is_some(),
            Section::Others => true,
            Section::Client => false,
        };
        let is_new = !self.passed_over.iter().any(|known| known == name);
        let is_known = |(set, _): &(String, String)| rules::names(system).contains(&set.as_str());
        if is_named && is_new && found.as_ref().is_some_and(is_known) {
            self.passed_over.push(name.to_owned());
        }
        found.filter(|_| matches!(own, Section::Own))
    }

    /// What MySQL's SET PERSIST has written.
    fn persisted(&mut self, path: &Path, text: &str) -> Result<(), Error> {
        let found = persisted(text)
            .map_err(|error| Error::Usage(format!("cannot read {}: {error}", path.display())))?;
        for set in found {
            self.add(set, path, 1);
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
            Include::Directory { path, begin, end } => {
                let directory = beside(path);
                let mut files: Vec<PathBuf> = fs::read_dir(&directory)
                    .map_err(|error| unreadable(&directory, &error))?
                    .filter_map(|entry| Some(entry.ok()?.path()))
                    .filter(|path| {
                        let name = path.file_name().unwrap_or_default().to_string_lossy();
                        path.is_file()
                            && name.len() >= begin.len() + end.len()
                            && name.starts_with(begin.as_str())
                            && name.ends_with(end.as_str())
                            && !name.starts_with('.')
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

/// Whether a line in brackets begins a section: elsewhere it may be a list.
fn has_sections(system: System) -> bool {
    system.has_option_files() || system == System::Rocksdb
}

/// Whose configuration a file may be, by its name; of an option file by what it says, too, and of one that says nothing
/// MariaDB's and MySQL's both, which differ in what they do unless told. Empty if that cannot be told.
pub fn systems_of(path: &Path) -> Vec<System> {
    let name = path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_ascii_lowercase();
    let has = |part: &str| name.contains(part);
    if has("myrocks") {
        return vec![System::Myrocks];
    }
    if has("mariadb") || has("mysql") || name.ends_with(".cnf") {
        let told = says(&format!(
            "{}\n{}",
            path.display(),
            text(path).unwrap_or_default()
        ));
        return match told {
            (true, false) => vec![System::Mariadb],
            (false, true) => vec![System::Mysql],
            _ if has("mariadb") => vec![System::Mariadb],
            _ if has("mysql") => vec![System::Mysql],
            _ => vec![System::Mariadb, System::Mysql],
        };
    }
    let known = if has("postgres") {
        Some(System::Postgres)
    } else if has("redis") {
        Some(System::Redis)
    } else if has("etcd") {
        Some(System::Etcd)
    } else if has("kafka") || name == "server.properties" || name == "broker.properties" {
        Some(System::Kafka)
    } else if has("nats") {
        Some(System::Nats)
    } else if has("sqlite") {
        Some(System::Sqlite)
    } else if has("rocksdb") {
        Some(System::Rocksdb)
    } else {
        None
    };
    known.into_iter().collect()
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

    fn read(system: System, files: &[(&str, &str)]) -> Result<ConfigFile, Error> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        ConfigFile::read(system, &directory.path().join(files[0].0))
    }

    fn values(configuration: &ConfigFile, names: &[&str]) -> Vec<Option<String>> {
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
                    "innodb_doublewrite=9\n[client]\nsync_binlog=7\n[mysqld]\n# innodb_page_size=4K\nsync-binlog = 0 # why not\nskip-innodb-doublewrite=1\nloose_innodb_log_file_write_through\n!includedir conf.d\n[mariadb-10.11]\ninnodb_page_size='8k'\n",
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
        let expected = ["1", "OFF", "ON"].map(|value| Some(value.to_owned()));
        assert_eq!(values(&found, &names[..3]), expected);
        assert_eq!(found.get("innodb_page_size"), None);
        // That is for one version, which reads all the others too.
        assert_eq!(found.versions(), ["10.11"]);
        let expected = ["1", "OFF", "ON", "8k"].map(|value| Some(value.to_owned()));
        assert_eq!(values(&found.for_version("10.11"), &names), expected);
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
                System::Etcd,
                "{name: a, unsafe-no-fsync: true}\n",
                "unsafe-no-fsync",
                "true",
            ),
            (
                System::Etcd,
                "{\n  \"unsafe-no-fsync\": true,\n  \"name\": \"a\"\n}\n",
                "unsafe-no-fsync",
                "true",
            ),
            (
                System::Etcd,
                "  - command:\n    - etcd\n    - --unsafe-no-fsync=true\n",
                "unsafe-no-fsync",
                "true",
            ),
            (
                System::Etcd,
                "command: [\"etcd\", \"--unsafe-no-fsync\"]\n",
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
                System::Kafka,
                "log.flush.interval.messages 10000\n",
                "log.flush.interval.messages",
                "10000",
            ),
            (
                System::Kafka,
                "log.flush.interval.messages : 10000\n",
                "log.flush.interval.messages",
                "10000",
            ),
            (
                System::Nats,
                "jetstream { store_dir: /data, sync_interval: \"10s\" } # often\n",
                "sync_interval",
                "10s",
            ),
            (
                System::Nats,
                "  sync_interval = always\n",
                "sync_interval",
                "always",
            ),
            (
                System::Nats,
                "jetstream { sync_interval: always } // each\n",
                "sync_interval",
                "always",
            ),
            (
                System::Nats,
                "\tsync_interval\talways\t// each\n",
                "sync_interval",
                "always",
            ),
            (
                System::Nats,
                "urls: [\n[\"nats://a:6222\"]\n]\nsync_interval \t= always\n",
                "sync_interval",
                "always",
            ),
            (
                System::Nats,
                "jetstream: {\n  domain: \"a//b\", sync_interval: always\n}\n",
                "sync_interval",
                "always",
            ),
            (
                System::Etcd,
                "[\"etcd\", \"--unsafe-no-fsync\"]\n",
                "unsafe-no-fsync",
                "true",
            ),
            (
                System::Rocksdb,
                "[CFOptions \"default\"]\n  compression=kNoCompression\n",
                "compression",
                "kNoCompression",
            ),
            (
                System::Sqlite,
                "PRAGMA synchronous=OFF; -- PRAGMA a=b; PRAGMA synchronous=FULL;\n/* no;\nPRAGMA synchronous=FULL; */ PRAGMA c='--';",
                "synchronous",
                "off",
            ),
            (
                System::Nats,
                "jetstream { sync: always }\n",
                "sync_interval",
                "always",
            ),
            (
                System::Nats,
                "{ \"jetstream\": { \"sync_interval\": \"always\" } }\n",
                "sync_interval",
                "always",
            ),
            (
                System::Mariadb,
                "[mysqld]\ninnodb-flush-method = 5\n",
                "innodb_flush_method",
                "O_DIRECT_NO_FSYNC",
            ),
            (
                System::Sqlite,
                "PRAGMA synchronous = ON;\n",
                "synchronous",
                "normal",
            ),
            (
                System::Sqlite,
                "PRAGMA journal_mode = WAL;\n",
                "journal_mode",
                "wal",
            ),
            (
                System::Sqlite,
                "PRAGMA journal_mode=WAL\npragma synchronous=OFF\n",
                "journal_mode",
                "wal",
            ),
            (
                System::Etcd,
                "  - |\n    exec etcd \\\n      --unsafe-no-fsync=true \\\n      --name=a\n",
                "unsafe-no-fsync",
                "true",
            ),
            (
                System::Etcd,
                "      --unsafe-no-fsync \\\n",
                "unsafe-no-fsync",
                "true",
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
    fn a_pragma_counts_that_is_of_the_main_database_or_of_all() {
        for (text, value) in [
            (
                "PRAGMA main.synchronous=FULL; PRAGMA aux.synchronous=OFF;",
                "full",
            ),
            (
                "PRAGMA synchronous=FULL; PRAGMA temp.synchronous(0);",
                "full",
            ),
            (
                "PRAGMA aux.synchronous=OFF; PRAGMA MAIN . synchronous = 1;",
                "normal",
            ),
            ("PRAGMA \"main\".synchronous=OFF;", "off"),
        ] {
            let found = read(System::Sqlite, &[("file", text)]).unwrap();
            assert_eq!(
                values(&found, &["synchronous"]),
                [Some(value.to_owned())],
                "{text}"
            );
        }
        let found = read(System::Sqlite, &[("file", "PRAGMA aux.journal_mode=OFF;")]).unwrap();
        assert_eq!(found.get("journal_mode"), None);
    }

    #[test]
    fn a_statement_of_sql_may_take_several_lines() {
        for (text, line) in [
            ("PRAGMA\n synchronous = OFF;\n", 1),
            ("SELECT 1;\n\nPRAGMA synchronous\n= OFF;\n", 3),
            ("-- first\n.bail on\nPRAGMA synchronous=OFF", 3),
            ("PRAGMA journal_mode=WAL\nPRAGMA synchronous=OFF\n", 2),
            (".print It's on\nPRAGMA synchronous=OFF;\n", 2),
            ("SELECT 'a\n''b;';/*\n;*/\n PRAGMA synchronous=OFF;\n", 4),
        ] {
            let found = read(System::Sqlite, &[("file", text)]).unwrap();
            let set = found.get("synchronous").unwrap();
            assert_eq!((set.value.as_str(), set.line), ("off", line), "{text}");
        }
    }

    #[test]
    fn what_stands_in_quotes_or_comments_is_no_statement() {
        for text in [
            "INSERT INTO n VALUES('a; PRAGMA synchronous=OFF; b');",
            "INSERT INTO n VALUES('a\nPRAGMA synchronous=OFF; b');",
            ".print It's on\n/* x; PRAGMA synchronous=OFF; */\n",
            "SELECT 1 -- It's one; PRAGMA synchronous=OFF;\n; /*\n.print */",
        ] {
            let found = read(System::Sqlite, &[("file", text)]).unwrap();
            assert_eq!(found.settings, [], "{text}");
        }
    }

    #[test]
    fn of_nats_what_is_included_counts_in_a_block_too() {
        let within = ("js.conf", "sync_interval: always\n");
        for text in [
            "jetstream {\n  include ./js.conf # here\n}\n",
            "jetstream { store_dir: /data; include './js.conf' }\n",
        ] {
            let found = read(System::Nats, &[("nats.conf", text), within]).unwrap();
            assert_eq!(
                values(&found, &["sync_interval"]),
                [Some("always".to_owned())]
            );
        }
        let missing = read(System::Nats, &[("nats.conf", "include ./js.conf\n")]);
        assert!(missing.unwrap_err().to_string().contains("js.conf"));
    }

    #[test]
    fn of_nats_a_line_that_slashes_begin_sets_nothing() {
        for text in [
            "// jetstream { sync_interval: always }\n",
            "  //jetstream { sync_interval: always }\n",
        ] {
            let found = read(System::Nats, &[("nats.conf", text)]).unwrap();
            assert_eq!(found.get("sync_interval"), None, "{text}");
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
        let both = [System::Mariadb, System::Mysql];
        for (name, system) in [
            ("my.cnf", &both[..]),
            ("50-server.cnf", &both),
            ("mariadb.conf.d/50-server.cnf", &[System::Mariadb]),
            ("mariadb.cnf", &[System::Mariadb]),
            ("mysqld.cnf", &[System::Mysql]),
            ("myrocks.cnf", &[System::Myrocks]),
            ("postgresql.conf", &[System::Postgres]),
            ("redis.conf", &[System::Redis]),
            ("etcd.conf.yml", &[System::Etcd]),
            ("server.properties", &[System::Kafka]),
            ("nats-server.conf", &[System::Nats]),
            ("sqlite.sql", &[System::Sqlite]),
            ("something.conf", &[]),
        ] {
            assert_eq!(systems_of(Path::new(name)), system, "{name}");
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my.cnf");
        for (text, system) in [
            ("!includedir /etc/mysql/mysql.conf.d/", &[System::Mysql][..]),
            ("!includedir /etc/mysql/mariadb.conf.d/", &[System::Mariadb]),
            ("[mysqld]\ngtid-mode=ON", &[System::Mysql]),
            ("# see dev.mysql.com\n[mariadb]", &both),
            ("[mysqld]", &both),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(systems_of(&path), system, "{text}");
        }
        // What a file says counts more than what it is called.
        let path = directory.path().join("mysqld.cnf");
        fs::write(&path, "[mariadb]\nlog_bin").unwrap();
        assert_eq!(systems_of(&path), [System::Mariadb]);
    }
}
