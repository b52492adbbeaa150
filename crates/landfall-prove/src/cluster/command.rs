//! Any programs as a cluster: one command that starts the nodes and runs transactions, another one that starts them again after
//! a power cut and says what is left. `docs/how-to/prove-a-cluster.md` is how to write the two.

use std::path::PathBuf;

use super::{Boot, ClusterSubject, Found, Rolling, name_of};
use crate::Stop;
use crate::subject::{AckSink, Promise, Recovered, SubjectError, SubjectName, number};
use crate::subjects::command::{ATOMIC, Checker, Ending, ORDERED, Programs, parse_report_with};
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};

pub(super) static DESCRIPTION: Description = Description {
    name: "command",
    about: "any programs: one command that starts all nodes and runs transactions, one that starts them again and checks what is left",
    passes_on: None,
    settings: &[
        Setting {
            name: "cmd",
            default: None,
            about: "the program that starts all nodes and runs transactions until it is killed; {dirs} are the nodes' directories, {ack} where it reports",
            always_shown: true,
        },
        Setting {
            name: "check",
            default: None,
            about: "the program that starts the nodes in {dirs} again, in the order {boot}, and prints what is left",
            always_shown: true,
        },
        Setting {
            name: "prepare",
            default: Some(""),
            about: "a program that makes in {dirs} what must be there before the first transaction",
            always_shown: false,
        },
        Setting {
            name: "check-timeout",
            default: Some("120"),
            about: "seconds after which a checker that has not ended is killed",
            always_shown: false,
        },
        ATOMIC,
        ORDERED,
    ],
};

/// Somebody's cluster.
pub(super) struct AnyCluster {
    name: SubjectName,
    programs: Programs,
}

impl AnyCluster {
    pub fn new(settings: &[(String, String)], nodes: usize) -> Result<AnyCluster, SettingError> {
        let chosen = Chosen::new(&DESCRIPTION, settings)?;
        if !chosen.text("check").contains("{boot}") {
            let why = "it has no {boot}, the order in which it is to start the nodes";
            return Err(chosen.wrong("check", why));
        }
        Ok(AnyCluster {
            name: name_of(&chosen, nodes),
            programs: Programs::parse(&chosen, "{dirs}")?,
        })
    }
}

impl ClusterSubject for AnyCluster {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        self.programs.promise
    }

    fn ends_one_by_one(&self) -> bool {
        // Which of its processes are a node's only the command knows.
        false
    }

    fn prepare(&self, directories: &[PathBuf], stop: &Stop) -> Result<(), SubjectError> {
        self.programs.prepare(&[("{dirs}", directories)], stop)
    }

    fn run(
        &self,
        directories: &[PathBuf],
        sink: &mut dyn AckSink,
        rolling: &mut Rolling<'_>,
        _: &Stop,
    ) -> Result<(), SubjectError> {
        debug_assert!(!rolling.is_asked_for());
        let places = [("{dirs}", directories)];
        self.programs.run(&places, sink, Ending::Killed)
    }

    fn check(
        &self,
        directories: &[PathBuf],
        boot: &Boot,
        stop: &Stop,
    ) -> Result<Found, SubjectError> {
        let boot = [PathBuf::from(boot.to_string())];
        let places = [("{dirs}", directories), ("{boot}", &boot)];
        match self.programs.check(&places, stop)? {
            Checker::Printed(text) => parse(&text).map_err(SubjectError),
            Checker::Failed(why) => Ok(Found {
                recovered: Recovered::damaged(why),
                unread: true,
                ..Found::default()
            }),
        }
    }
}

/// Reads what a checker printed: lines of any checker's, and those that only a cluster's has.
fn parse(text: &str) -> Result<Found, String> {
    let mut found = Found::default();
    let mut more = |word: &str, rest: &str| match (word, number(rest)) {
        ("taken", Some(transaction)) => {
            found.taken.insert(transaction);
            true
        }
        ("unavailable", _) => {
            found.unavailable.get_or_insert(rest.to_owned());
            true
        }
        ("disagree", _) => {
            found.disagreement.get_or_insert(rest.to_owned());
            true
        }
        _ => false,
    };
    let recovered = parse_report_with(text, &mut more).map_err(|error| {
        format!("{error}; of a cluster also 'taken N', 'unavailable TEXT' or 'disagree TEXT'")
    })?;
    found.recovered = recovered;
    found
        .recovered
        .whole
        .retain(|transaction| !found.taken.contains(transaction));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_checker_of_a_cluster_prints_is_read() {
        let found = parse("1\n2\ntaken 2\npartial 3\ndisagree node 1 has other records\n").unwrap();
        assert_eq!(found.recovered.whole, [1].into());
        assert_eq!(found.recovered.partial, [3].into());
        assert_eq!(found.taken, [2].into());
        let disagreement = found.disagreement.unwrap();
        assert_eq!(disagreement, "node 1 has other records");
        let silent = parse("unavailable no leader in a minute").unwrap();
        assert_eq!(silent.unavailable.unwrap(), "no leader in a minute");
        let wrong = parse("taken two").unwrap_err();
        assert!(
            wrong.contains("'taken two'") && wrong.ends_with("'disagree TEXT'"),
            "{wrong}"
        );
    }

    #[test]
    fn programs_must_know_where_the_nodes_are() {
        let set = |cmd: &str, check: &str| {
            let set = [("cmd", cmd), ("check", check)];
            let set: Vec<_> = set
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into();
            AnyCluster::new(&set, 3)
                .map(|cluster| cluster.name.to_string())
                .map_err(|error| error.0)
        };
        let whole = set("run {dirs} {ack}", "check {boot} {dirs}").unwrap();
        assert!(whole.starts_with("command nodes=3 cmd="), "{whole}");
        assert!(
            set("run {dirs} {ack}", "check {dirs}")
                .unwrap_err()
                .contains("{boot}")
        );
        assert!(
            set("run {dir} {ack}", "check {boot} {dirs}")
                .unwrap_err()
                .contains("{dirs}")
        );
        assert!(
            set("run {dirs}", "check {boot} {dirs}")
                .unwrap_err()
                .contains("{ack}")
        );
    }
}
