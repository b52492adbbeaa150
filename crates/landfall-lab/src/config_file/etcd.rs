//! How etcd is told its flags: by a file of its own, by its environment or on its command line, as manifests of
//! Kubernetes, compose files and units of systemd have these too.

use super::spelling::{uncommented, unquoted};
use crate::rules::is_same;

/// What the name of a flag begins with as a variable of the environment.
const VARIABLE: &str = "ETCD_";

/// The flag that makes etcd not sync. It takes no word after it as its value.
const NO_FSYNC: &str = "unsafe-no-fsync";

/// What parts a line in braces or brackets.
const BETWEEN: [char; 5] = ['{', '}', '[', ']', ','];

/// Everything that a text sets, and the line on which it stands, from 1, what counts last.
///
/// Flags count more than variables, wherever these stand. That one of several etcds in a text does not sync is said,
/// whatever the others do: which of them is meant is not known.
pub(super) fn settings(text: &str) -> Vec<(usize, (String, String))> {
    let mut all = Vec::new();
    let mut entry = Entry::default();
    for (line, text) in (1..).zip(text.lines()) {
        let found = of_line(text.trim(), &mut entry);
        all.extend(found.into_iter().map(|setting| (line, setting)));
    }
    all.sort_by_key(|(_, (name, value))| (is_unsafe(name, value), !name.starts_with(VARIABLE)));
    let named = |(line, (name, value)): (usize, (String, String))| (line, (flag_of(&name), value));
    all.into_iter().map(named).collect()
}

fn is_unsafe(name: &str, value: &str) -> bool {
    flag_of(name) == NO_FSYNC && is_same(value, "true")
}

/// An entry of a list, which has a name and a value on lines of their own, as Kubernetes has variables: what is known
/// of it yet.
#[derive(Default)]
struct Entry {
    name: Option<String>,
    value: Option<String>,
}

impl Entry {
    /// What it sets, if both are known; then it is over.
    fn take(&mut self) -> Option<(String, String)> {
        let Entry { name, value } = self;
        if name.is_none() || value.is_none() {
            return None;
        }
        name.take().zip(value.take())
    }
}

/// What a line sets, which may be several things in braces or brackets. `entry` is what earlier lines have begun.
fn of_line(line: &str, entry: &mut Entry) -> Vec<(String, String)> {
    // Systemd's own comments; the others are known to `uncommented`.
    if line.starts_with(';') {
        return Vec::new();
    }
    let mut all = Vec::new();
    for part in uncommented(line).split_inclusive(BETWEEN) {
        let inner = part.trim_end_matches(BETWEEN);
        all.extend(words(inner));
        all.extend(pair(inner, entry));
        // An entry may stand in braces.
        if part.ends_with(['{', '}']) {
            *entry = Entry::default();
        }
    }
    all
}

/// The flags and variables of command lines, however they are quoted: a shell may be told to run them, and a string of
/// JSON may have several lines.
fn words(part: &str) -> Vec<(String, String)> {
    let plain = part
        .replace("\\n", " ")
        .replace("\\t", " ")
        .replace("\\r", " ")
        .replace(['"', '\'', '\\'], "");
    let commands = plain.split([';', '&', '|', '(', ')']);
    commands.flat_map(of_command).collect()
}

fn of_command(command: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut words = command.split_whitespace().peekable();
    while let Some(one) = words.next() {
        let Some((name, value)) = word(one) else {
            continue;
        };
        let value = match value {
            Some(value) => value,
            None if name == NO_FSYNC => "true".to_owned(),
            None => {
                let is_value = |next: &&str| !next.starts_with('-') && !next.starts_with(VARIABLE);
                let next = words.next_if(is_value);
                next.unwrap_or("true").to_owned()
            }
        };
        all.push((name, value));
    }
    all
}

/// `--name=value`, `--name`, or `ETCD_NAME=value`, which a unit of systemd has behind `Environment=`.
fn word(word: &str) -> Option<(String, Option<String>)> {
    let word = word.strip_prefix("Environment=").unwrap_or(word);
    let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
    if let Some(flag) = flag.filter(|flag| flag.starts_with(|c: char| c.is_ascii_alphabetic())) {
        return Some(match flag.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (flag.to_owned(), None),
        });
    }
    let (name, value) = word.split_once('=')?;
    let is_variable = name.starts_with(VARIABLE);
    is_variable.then(|| (name.to_owned(), Some(value.to_owned())))
}

/// `name: value`; and what an entry sets whose name and value are both known now, in whatever order they stand.
fn pair(part: &str, entry: &mut Entry) -> Vec<(String, String)> {
    let part = part.trim();
    // What the entry before this one has begun ends here.
    if part == "-" || part.starts_with("- ") {
        *entry = Entry::default();
    }
    let part = part.strip_prefix("- ").unwrap_or(part);
    let Some((name, value)) = part.split_once(':') else {
        return Vec::new();
    };
    let (name, value) = (unquoted(name), unquoted(value));
    match name.as_str() {
        "value" => {
            entry.value = Some(value);
            entry.take().into_iter().collect()
        }
        "name" => {
            entry.name = Some(value.clone());
            // It may be etcd's own name, too.
            let own = (name, value);
            std::iter::once(own).chain(entry.take()).collect()
        }
        _ => vec![(name, value)],
    }
}

/// The flag that a variable stands for: `unsafe-no-fsync` of `ETCD_UNSAFE_NO_FSYNC`.
fn flag_of(name: &str) -> String {
    match name.strip_prefix(VARIABLE) {
        Some(rest) => rest.to_ascii_lowercase().replace('_', "-"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text says of a flag last, and where.
    fn last(text: &str, flag: &str) -> Option<(usize, String)> {
        let mut all = settings(text).into_iter().rev();
        all.find_map(|(line, (name, value))| (name == flag).then_some((line, value)))
    }

    /// What it says of syncing.
    fn no_fsync(text: &str) -> Option<(usize, String)> {
        last(text, NO_FSYNC)
    }

    #[track_caller]
    fn assert_unsafe(text: &str, line: usize) {
        assert_eq!(no_fsync(text), Some((line, "true".to_owned())), "{text}");
    }

    #[test]
    fn a_variable_is_a_flag_in_a_list_of_a_compose_file() {
        assert_unsafe("environment:\n  - ETCD_UNSAFE_NO_FSYNC=true\n", 2);
        assert_unsafe("environment:\n  - \"ETCD_UNSAFE_NO_FSYNC=true\"\n", 2);
    }

    #[test]
    fn a_variable_is_a_flag_in_a_map_of_a_compose_file() {
        assert_unsafe("environment:\n  ETCD_UNSAFE_NO_FSYNC: \"true\"\n", 2);
        assert_unsafe("environment: {ETCD_UNSAFE_NO_FSYNC: 'true'}\n", 1);
    }

    #[test]
    fn the_value_of_a_variable_follows_its_name_in_kubernetes() {
        assert_unsafe(
            "env:\n- name: ETCD_NAME\n  value: a\n- name: ETCD_UNSAFE_NO_FSYNC\n  # why not\n  value: \"true\"\n",
            6,
        );
        assert_unsafe("env: [{name: ETCD_UNSAFE_NO_FSYNC, value: \"true\"}]\n", 1);
        // Arguments of kubeadm have names too.
        assert_unsafe("- name: unsafe-no-fsync\n  value: \"true\"\n", 2);
        assert_eq!(no_fsync("- name: other\n  value: \"true\"\n"), None);
    }

    #[test]
    fn a_flag_counts_in_the_command_that_a_shell_is_given() {
        assert_unsafe("[\"/bin/sh\",\"-c\",\"exec etcd --unsafe-no-fsync\"]", 1);
        assert_unsafe(
            "command: [\"sh\", \"-c\", \"etcd --unsafe-no-fsync; sleep 1\"]",
            1,
        );
        assert_unsafe("exec env ETCD_UNSAFE_NO_FSYNC=true etcd --name a", 1);
    }

    #[test]
    fn a_flag_counts_in_a_command_on_one_line() {
        assert_unsafe("command: etcd --unsafe-no-fsync\n", 1);
        assert_unsafe(
            "command: etcd --name a -unsafe-no-fsync --log-level=info",
            1,
        );
    }

    #[test]
    fn a_list_on_its_own_line_is_no_section() {
        assert_unsafe("command:\n  [\"etcd\", \"--unsafe-no-fsync\"]\n", 2);
    }

    #[test]
    fn a_unit_of_systemd_has_variables_and_a_command() {
        assert_unsafe("[Service]\nEnvironment=ETCD_UNSAFE_NO_FSYNC=true\n", 2);
        assert_unsafe(
            "Environment=\"ETCD_NAME=a b\" \"ETCD_UNSAFE_NO_FSYNC=true\"\n",
            1,
        );
        assert_unsafe("[Service]\nExecStart=/usr/bin/etcd --unsafe-no-fsync\n", 2);
        assert_unsafe("ExecStart=/usr/bin/etcd \\\n  --unsafe-no-fsync \\\n", 2);
    }

    #[test]
    fn the_last_word_counts_and_comments_do_not() {
        let text = "--wal-dir=/a\n--wal-dir=/b\n# --unsafe-no-fsync\n; ETCD_UNSAFE_NO_FSYNC=true\n";
        assert_eq!(last(text, "wal-dir"), Some((2, "/b".to_owned())));
        assert_eq!(no_fsync(text), None);
        assert_eq!(no_fsync("command: etcd # --unsafe-no-fsync"), None);
        assert_eq!(no_fsync("description: etcd's # --unsafe-no-fsync"), None);
    }

    #[test]
    fn a_flag_counts_more_than_a_variable_wherever_it_stands() {
        let text = "ExecStart=etcd --wal-dir=/a --unsafe-no-fsync\nEnvironment=ETCD_WAL_DIR=/b\nEnvironment=ETCD_UNSAFE_NO_FSYNC=false\n";
        assert_eq!(last(text, "wal-dir"), Some((1, "/a".to_owned())));
        assert_unsafe(text, 1);
    }

    #[test]
    fn of_several_that_one_does_not_sync_is_said() {
        assert_unsafe("- --unsafe-no-fsync=true\n- --unsafe-no-fsync=false\n", 1);
        assert_unsafe(
            "a: {ETCD_UNSAFE_NO_FSYNC: \"true\"}\nb: {ETCD_UNSAFE_NO_FSYNC: \"false\"}\n",
            1,
        );
        let safe = "--unsafe-no-fsync=false\n--unsafe-no-fsync=false\n";
        assert_eq!(no_fsync(safe), Some((2, "false".to_owned())));
    }

    #[test]
    fn the_value_of_a_variable_may_stand_before_its_name() {
        let text = "env:\n- value: \"true\"\n  name: ETCD_UNSAFE_NO_FSYNC\n- value: a\n  name: ETCD_NAME\n";
        assert_unsafe(text, 3);
        assert_unsafe("env: [{value: \"true\", name: ETCD_UNSAFE_NO_FSYNC}]\n", 1);
    }

    #[test]
    fn an_entry_takes_nothing_of_another() {
        let text =
            "- name: ETCD_UNSAFE_NO_FSYNC\n  valueFrom: x\n- value: \"true\"\n  name: OTHER\n";
        assert_eq!(no_fsync(text), None);
        let text = "- value: \"true\"\n- name: ETCD_UNSAFE_NO_FSYNC\n";
        assert_eq!(no_fsync(text), None);
        let text = "[{name: ETCD_UNSAFE_NO_FSYNC}, {value: \"true\", name: OTHER}]\n";
        assert_eq!(no_fsync(text), None);
    }

    #[test]
    fn the_value_of_a_flag_may_stand_behind_a_blank() {
        let text = "ExecStart=etcd --wal-dir /x --name a --unsafe-no-fsync\n";
        assert_eq!(last(text, "wal-dir"), Some((1, "/x".to_owned())));
        assert_unsafe(text, 1);
        // A switch takes no word, and a flag no other flag.
        assert_unsafe("etcd --unsafe-no-fsync false", 1);
        assert_unsafe("etcd --debug --unsafe-no-fsync", 1);
        assert_unsafe("docker run -e ETCD_UNSAFE_NO_FSYNC=true etcd", 1);
    }

    #[test]
    fn a_string_of_json_may_have_several_lines() {
        assert_unsafe(
            r#"["sh", "-c", "exec etcd\n--unsafe-no-fsync\n--name=a"]"#,
            1,
        );
    }

    #[test]
    fn an_apostrophe_within_a_word_begins_no_quote() {
        let text = "command: echo it's up, etcd # --unsafe-no-fsync isn't set";
        assert_eq!(no_fsync(text), None);
    }
}
