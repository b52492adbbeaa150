//! How etcd is told its flags: by a file of its own, by its environment or on its command line, as manifests of
//! Kubernetes, compose files and units of systemd have these too.

use super::spelling::{uncommented, unquoted};

/// What the name of a flag begins with as a variable of the environment.
const VARIABLE: &str = "ETCD_";

/// Everything that a text sets, and the line on which it stands, from 1.
pub(super) fn settings(text: &str) -> Vec<(usize, (String, String))> {
    let mut all = Vec::new();
    let mut named = None;
    for (line, text) in (1..).zip(text.lines()) {
        let found = of_line(text.trim(), &mut named);
        all.extend(found.into_iter().map(|setting| (line, setting)));
    }
    all
}

/// What a line sets, which may be several things in braces or brackets. `named` is what an earlier line has named, whose
/// value is still to come.
fn of_line(line: &str, named: &mut Option<String>) -> Vec<(String, String)> {
    // Systemd's own comments; the others are known to `uncommented`.
    if line.starts_with(';') {
        return Vec::new();
    }
    let mut all = Vec::new();
    for part in uncommented(line).split(['{', '}', '[', ']', ',']) {
        all.extend(words(part));
        all.extend(pair(part, named));
    }
    all
}

/// The flags and variables of a command line, however it is quoted: a shell may be told to run it.
fn words(part: &str) -> Vec<(String, String)> {
    let plain = part.replace(['"', '\'', '\\'], "");
    let ends = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(' | ')');
    plain.split(ends).filter_map(word).collect()
}

/// `--name=value`, `--name`, or `ETCD_NAME=value`, which a unit of systemd has behind `Environment=`.
fn word(word: &str) -> Option<(String, String)> {
    let word = word.strip_prefix("Environment=").unwrap_or(word);
    let flag = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
    if let Some(flag) = flag.filter(|flag| flag.starts_with(|c: char| c.is_ascii_alphabetic())) {
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        return Some((name.to_owned(), value.to_owned()));
    }
    let (name, value) = word.split_once('=')?;
    let is_variable = name.starts_with(VARIABLE);
    is_variable.then(|| (flag_of(name), value.to_owned()))
}

/// `name: value`; or the value of what was named before it, as Kubernetes has variables.
fn pair(part: &str, named: &mut Option<String>) -> Option<(String, String)> {
    let part = part.trim();
    let part = part.strip_prefix("- ").unwrap_or(part);
    let (name, value) = part.split_once(':')?;
    let (name, value) = (unquoted(name), unquoted(value));
    match name.as_str() {
        "value" => Some((named.take()?, value)),
        "name" => {
            *named = Some(flag_of(&value));
            Some((name, value))
        }
        _ => Some((flag_of(&name), value)),
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

    /// What a text says of syncing last, and where.
    fn no_fsync(text: &str) -> Option<(usize, String)> {
        let mut all = settings(text).into_iter().rev();
        all.find_map(|(line, (name, value))| (name == "unsafe-no-fsync").then_some((line, value)))
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
        let text = "--unsafe-no-fsync\n--unsafe-no-fsync=false\n# --unsafe-no-fsync\n; ETCD_UNSAFE_NO_FSYNC=true\n";
        assert_eq!(no_fsync(text), Some((2, "false".to_owned())));
        assert_eq!(no_fsync("command: etcd # --unsafe-no-fsync"), None);
    }
}
