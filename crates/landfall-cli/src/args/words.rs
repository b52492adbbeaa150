//! Command lines that are made of others: some options left out, with their values.

use clap::{Arg, CommandFactory};

use super::Arguments;

/// Options of `landfall prove` that say how a recording is made, and are known of one that is there.
pub const OF_MAKING: [&str; 6] = [
    "--cuts",
    "--transactions",
    "--fault",
    "--writeback",
    "--creation",
    "--fua",
];

/// Options of `landfall prove` that say which states of a recording are tried, and how.
pub const OF_TRYING: [&str; 8] = [
    "--states",
    "--replicas",
    "--minutes",
    "--model",
    "--order",
    "--workers",
    "--check-all",
    "--second-cuts",
];

/// The words of `landfall prove …` or another command without these options, however they were written.
pub fn without(words: &[String], options: &[&str]) -> Vec<String> {
    let arguments = Arguments::command();
    // Before its name there are only options of all commands, which take no values.
    let command = words
        .iter()
        .find_map(|word| arguments.find_subcommand(word));
    let (mut kept, mut words) = (Vec::new(), words.iter());
    let takes_value = |option: &str| {
        let is_it = |arg: &&Arg| {
            arg.get_long()
                .is_some_and(|long| option.strip_prefix("--") == Some(long))
        };
        let found = command
            .into_iter()
            .flat_map(clap::Command::get_arguments)
            .find(is_it);
        found.is_some_and(|arg| arg.get_action().takes_values())
    };
    while let Some(word) = words.next() {
        let (name, has_value) = match word.split_once('=') {
            Some((name, _)) => (name, true),
            None => (word.as_str(), false),
        };
        if !options.contains(&name) {
            kept.push(word.clone());
            // The value of an option that is kept may look like an option that is not.
            if !has_value && takes_value(name) {
                kept.extend(words.next().cloned());
            }
        } else if !has_value && takes_value(name) {
            words.next();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_go_with_their_values_and_values_stay_with_their_options() {
        let line = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let shown = |text: &str| {
            without(&line(text), &["--seed", "--writeback", "-q", "--states"]).join(" ")
        };
        assert_eq!(
            shown("prove files --seed 4 --writeback --fs ext4"),
            "prove files --fs ext4"
        );
        assert_eq!(
            shown("prove files --seed=4 -q --fs=ext4"),
            "prove files --fs=ext4"
        );
        assert_eq!(
            shown("prove command --cmd --seed --check c"),
            "prove command --cmd --seed --check c"
        );
        assert_eq!(shown("prove --states"), "prove");
        assert_eq!(shown("-q prove files --seed 4"), "prove files");
    }
}
