//! Proves that the program understands every command that a page of the repository names, as it stands there.
//!
//! Nothing is run: most of them take root, servers or minutes. `tests/documented_commands.rs` runs what does not.

// The test that runs commands uses the rest of it.
#[allow(dead_code)]
#[path = "../../tests/common/pages.rs"]
mod pages;

use clap::{CommandFactory, Parser};

use super::{Arguments, Command, LabRequest};
use pages::{Documented, are_here, documented_commands};

/// What is wrong with a command, if anything is.
fn complaint(documented: &Documented) -> Option<String> {
    let words = ["landfall"]
        .into_iter()
        .chain(documented.words.iter().map(String::as_str));
    let parsed = match Arguments::try_parse_from(words) {
        Ok(parsed) => parsed,
        // In a sentence `landfall log` names a command, and is not to be typed.
        Err(_) if !documented.in_block && is_name(&documented.words) => return None,
        Err(error) if error.use_stderr() => return Some(error.to_string()),
        Err(_) => return None,
    };
    match parsed.command {
        // The values of an experiment's axes must also make a plan; a configuration would have to be there.
        Command::Lab(lab) if !documented.words.iter().any(|word| word == "--config") => {
            LabRequest::try_from(*lab).err().map(|failure| failure.text)
        }
        _ => None,
    }
}

/// Whether it is the name of a command, or of an option of one: `landfall advise --check`.
fn is_name(words: &[String]) -> bool {
    let program = Arguments::command();
    let mut command = &program;
    let mut words = words.iter();
    for word in words.by_ref() {
        match command.find_subcommand(word) {
            Some(found) => command = found,
            None => {
                let mut options = command.get_arguments().filter_map(clap::Arg::get_long);
                let is_option = options.any(|name| word.strip_prefix("--") == Some(name));
                return is_option && words.next().is_none();
            }
        }
    }
    true
}

#[test]
fn every_documented_command_is_understood() {
    if !are_here() {
        return println!("a package has no pages");
    }
    let all = documented_commands();
    // A page that nobody reads any more must not make this test an empty one.
    assert!(all.len() > 100, "only {} commands were found", all.len());
    let wrong: Vec<String> = all
        .iter()
        .filter_map(|one| {
            Some(format!(
                "{}: {:?}\n  {}",
                one.place,
                one.words,
                complaint(one)?
            ))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
