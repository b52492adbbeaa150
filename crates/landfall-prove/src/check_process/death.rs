//! How a process ended, in plain words.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::Signal;

use crate::subject::{Recovered, SubjectError};

/// Signals that a program brings upon itself, and by what.
const CRASHES: [(Signal, &str, &str); 7] = [
    (
        Signal::BUS,
        "SIGBUS",
        "it touched a mapped page that its file does not have",
    ),
    (
        Signal::SEGV,
        "SIGSEGV",
        "it touched memory that is not its own",
    ),
    (Signal::ABORT, "SIGABRT", "it called abort()"),
    (Signal::ILL, "SIGILL", "it ran what is no instruction"),
    (Signal::FPE, "SIGFPE", "it divided by zero"),
    (Signal::TRAP, "SIGTRAP", "it trapped"),
    (
        Signal::SYS,
        "SIGSYS",
        "it made a system call that is not allowed",
    ),
];

/// What it says of a store that its process ended while it checked. A signal that no program brings upon itself says
/// nothing of the store: somebody else sent it, or memory ran out.
pub(super) fn of_store(
    status: ExitStatus,
    words: Option<String>,
) -> Result<Recovered, SubjectError> {
    let how = match status.signal() {
        None => format!("it ended its process with {status}"),
        Some(number) => match crash(number) {
            Some((name, why)) => format!("it crashed with {name}: {why}"),
            None => {
                return Err(SubjectError(format!(
                    "the process that checks was killed ({status}); memory may have run out"
                )));
            }
        },
    };
    Ok(Recovered::crashed(with_words(how, words)))
}

/// What is said where it ended before it could check anything.
pub(super) fn before_it_began(status: ExitStatus, words: Option<String>) -> String {
    with_words(format!("it ended at once with {status}"), words)
}

fn crash(number: i32) -> Option<(&'static str, &'static str)> {
    let mut crashes = CRASHES.iter();
    crashes.find_map(|&(signal, name, why)| (signal.as_raw() == number).then_some((name, why)))
}

fn with_words(how: String, words: Option<String>) -> String {
    match words {
        Some(words) => format!("{how}; its last words: {words}"),
        None => how,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn damage(status: i32, words: Option<&str>) -> Option<String> {
        let found = of_store(ExitStatus::from_raw(status), words.map(str::to_owned));
        found.ok()?.damage
    }

    #[test]
    fn a_crash_is_damage_in_plain_words() {
        assert_eq!(
            damage(Signal::BUS.as_raw(), None).unwrap(),
            "it crashed with SIGBUS: it touched a mapped page that its file does not have"
        );
        assert_eq!(
            damage(Signal::ABORT.as_raw(), Some("page 7: no such")).unwrap(),
            "it crashed with SIGABRT: it called abort(); its last words: page 7: no such"
        );
        assert_eq!(
            damage(3 << 8, None).unwrap(),
            "it ended its process with exit status: 3"
        );
    }

    #[test]
    fn who_was_killed_by_others_is_not_judged() {
        for signal in [Signal::KILL, Signal::TERM, Signal::INT, Signal::HUP] {
            assert_eq!(damage(signal.as_raw(), None), None);
        }
    }
}
