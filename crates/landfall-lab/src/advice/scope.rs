//! The systems that advice is shown on: those that are installed here, and those that somebody named.
//!
//! Advice itself is on every system, since it is made from results and from nothing else; what is shown of it depends on
//! the machine.

use std::env;
use std::path::{Path, PathBuf};

use landfall_databases::Presence;

use crate::rules::System;

/// Where servers are that are not in everybody's PATH.
const ELSEWHERE: [&str; 4] = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/kafka/bin"];

/// The systems that advice is shown on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    systems: Vec<System>,
    is_named: bool,
}

impl Scope {
    /// What is installed here. Servers are asked for their versions, which takes a moment.
    pub fn here() -> Scope {
        let listed: Vec<&str> = landfall_databases::list()
            .filter(|(_, _, presence)| matches!(presence, Presence::Here { .. }))
            .map(|(known, ..)| known.name)
            .collect();
        let is_here = |system: &System| match system {
            // Landfall does not run them.
            System::Mysql => has_mysql(),
            System::Kafka => ["kafka-server-start.sh", "kafka-server-start"]
                .into_iter()
                .any(|name| program(name).is_some()),
            System::Nats => program("nats-server").is_some(),
            // What is linked into a program of the user's is nowhere to be found.
            System::Landfall | System::LandfallStore | System::Mount => true,
            system => listed.contains(&system.key()),
        };
        Scope::of(System::ALL.into_iter().filter(is_here))
    }

    /// These are installed.
    pub fn of(systems: impl IntoIterator<Item = System>) -> Scope {
        Scope {
            systems: systems.into_iter().collect(),
            is_named: false,
        }
    }

    /// These, whatever is installed.
    pub fn named(systems: &[System]) -> Scope {
        Scope {
            systems: systems.to_vec(),
            is_named: true,
        }
    }

    /// What is installed, and these besides.
    pub fn and(&self, named: &[System]) -> Scope {
        Scope::of(self.systems.iter().chain(named).copied())
    }

    /// Whether advice on this system is shown.
    pub fn has(&self, system: System) -> bool {
        self.systems.contains(&system)
    }

    /// Whether what is measured of this system serves advice that is shown: what MariaDB did stands in for MySQL.
    pub fn serves(&self, system: System) -> bool {
        self.has(system) || (system == System::Mariadb && self.has(System::Mysql))
    }

    /// Whether somebody named the systems: then others are not so much as mentioned.
    pub fn is_named(&self) -> bool {
        self.is_named
    }

    /// Of systems that a file may be meant for, those that are installed; all of them if none is.
    pub fn likely(&self, systems: &[System]) -> Vec<System> {
        let here = systems.iter().copied().filter(|system| self.has(*system));
        let here: Vec<System> = here.collect();
        if here.is_empty() {
            systems.to_vec()
        } else {
            here
        }
    }
}

/// Whether there is a MySQL server: MariaDB has a program of the same name, which is a link to its own.
fn has_mysql() -> bool {
    let target = program("mysqld").and_then(|path| path.canonicalize().ok());
    target.is_some_and(|path| path.file_name().is_some_and(|name| name != "mariadbd"))
}

fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> = env::split_paths(&path).collect();
    let elsewhere = ELSEWHERE.map(Path::new);
    let directories = directories.iter().map(PathBuf::as_path).chain(elsewhere);
    let mut programs = directories.map(|directory| directory.join(name));
    programs.find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_two_systems_is_that_of_the_installed_one() {
        use System::{Mariadb, Mysql};
        let both = [Mariadb, Mysql];
        assert_eq!(Scope::of([Mysql, System::Redis]).likely(&both), [Mysql]);
        assert_eq!(Scope::of([System::Redis]).likely(&both), both);
        assert_eq!(Scope::of(both).likely(&both), both);
        // It was said whose it is.
        assert_eq!(Scope::of([Mariadb]).likely(&[Mysql]), [Mysql]);
    }
}
