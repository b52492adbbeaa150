//! Any program: one command runs transactions, another one says what is left of them after a power cut.
//! `docs/how-to/prove-your-program.md` is how to write the two.
//!
//! The commands are split into words as a shell does it, and started without one: a signal then reaches
//! the program and not a shell in front of it, a path needs no quotes, and a checker that is started
//! for each of thousands of crash states costs no second process. Who wants a shell writes `sh -c '…'`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::{failed, name_of};
use crate::Stop;
use crate::subject::number;
use crate::subject::{AckSink, Promise, Recovered, Subject, SubjectError, SubjectName};
use landfall_databases::registry::Kind;
use landfall_databases::setting::{Chosen, Description, Setting, SettingError};
use landfall_os::{Process, end_with_this_thread};
use rustix::process::Signal;

/// How often the sink is asked whether it is enough.
const LOOK: Duration = Duration::from_millis(10);
/// How long it may take to prepare.
const PREPARING: Duration = Duration::from_secs(600);
/// How long a program may take to end once it was told to.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes that a program may print that is waited for: of a checker, millions of transactions.
const MOST_OUTPUT: u64 = 64 << 20;

/// What somebody's programs promise, of one disk or of several.
pub(crate) const ATOMIC: Setting = Setting {
    name: "atomic",
    default: Some("yes"),
    about: "whether a transaction must be there whole or not at all: yes or no",
    always_shown: false,
};
pub(crate) const ORDERED: Setting = Setting {
    name: "ordered",
    default: Some("no"),
    about: "whether a transaction must not be there without all before it: yes or no",
    always_shown: false,
};

pub(super) static KIND: Kind<dyn Subject> = Kind {
    listed: (),
    description: Description {
        name: "command",
        about: "any program: one command that runs transactions, one that checks what is left",
        passes_on: None,
        settings: &[
            Setting {
                name: "cmd",
                default: None,
                about: "the program that runs transactions; {dir} is its directory, {ack} where it reports",
                always_shown: true,
            },
            Setting {
                name: "check",
                default: None,
                about: "the program that prints what is left in {dir}",
                always_shown: true,
            },
            Setting {
                name: "prepare",
                default: Some(""),
                about: "a program that makes in {dir} what must be there before the first transaction",
                always_shown: false,
            },
            Setting {
                name: "check-timeout",
                default: Some("30"),
                about: "seconds after which a checker that has not ended is killed",
                always_shown: false,
            },
            ATOMIC,
            ORDERED,
        ],
    },
    make,
};

struct AnyProgram {
    name: SubjectName,
    programs: Programs,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Subject>, SettingError> {
    Ok(Box::new(AnyProgram {
        name: name_of(chosen),
        programs: Programs::parse(chosen, "{dir}")?,
    }))
}

/// The programs of somebody's subject: of one directory, or of several.
pub(crate) struct Programs {
    pub promise: Promise,
    run: CommandLine,
    check: CommandLine,
    prepare: Option<CommandLine>,
    check_timeout: Duration,
}

/// How a program is ended that runs transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is told to end, and killed if it does not.
    InOrder,
    /// It is killed, with all that it started.
    Killed,
}

/// What came of a checker.
pub(crate) enum Checker {
    /// What it printed.
    Printed(String),
    /// It failed, or did not end.
    Failed(String),
}

impl Programs {
    /// Those that were set; `directories` is the place of one, or of several.
    pub fn parse(chosen: &Chosen, directories: &str) -> Result<Programs, SettingError> {
        let prepare = match chosen.text("prepare") {
            "" => None,
            _ => Some(CommandLine::parse(chosen, "prepare", &[directories])?),
        };
        let day = 24 * 3600;
        Ok(Programs {
            promise: Promise {
                atomic: chosen.whether("atomic")?,
                ordered: chosen.whether("ordered")?,
            },
            run: CommandLine::parse(chosen, "cmd", &[directories, "{ack}"])?,
            check: CommandLine::parse(chosen, "check", &[directories])?,
            prepare,
            check_timeout: Duration::from_secs(chosen.number("check-timeout", 1, day)?),
        })
    }

    pub fn prepare(&self, places: &[Place<'_>], stop: &Stop) -> Result<(), SubjectError> {
        let Some(command) = &self.prepare else {
            return Ok(());
        };
        let mut process = command.start(places)?;
        match wait(&mut process, PREPARING, stop)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let words = last_words(&process, status);
                Err(SubjectError(format!("it could not be prepared: {words}")))
            }
            None => {
                let minutes = PREPARING.as_secs() / 60;
                let why = format!("it was not prepared within {minutes} minutes, and killed");
                Err(SubjectError(why))
            }
        }
    }

    /// Runs transactions until the sink says that it is enough.
    pub fn run(
        &self,
        places: &[Place<'_>],
        sink: &dyn AckSink,
        ending: Ending,
    ) -> Result<(), SubjectError> {
        let Some(mark_file) = sink.mark_file() else {
            let why = "a program can only be run where it can report: there is no mark file";
            return Err(SubjectError(why.into()));
        };
        let ack = [mark_file];
        let mut places = places.to_vec();
        places.push(("{ack}", &ack));
        let mut process = self.run.start(&places)?;
        while !sink.is_enough() {
            match process.wait(LOOK).map_err(lost)? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    let words = last_words(&process, status);
                    return Err(SubjectError(format!("the program failed: {words}")));
                }
                None => {}
            }
        }
        match ending {
            Ending::InOrder => process.terminate(),
            Ending::Killed => process.kill(),
        }
        // However it ends: what it did so far counts. If it does not, it is killed.
        process.wait(GRACE).map_err(lost)?;
        Ok(())
    }

    pub fn check(&self, places: &[Place<'_>], stop: &Stop) -> Result<Checker, SubjectError> {
        let mut process = self.check.start(places)?;
        let Some(status) = wait(&mut process, self.check_timeout, stop)? else {
            let seconds = self.check_timeout.as_secs();
            let damage = format!("the checker had not ended after {seconds} s and was killed");
            return Ok(Checker::Failed(damage));
        };
        if !status.success() {
            let words = last_words(&process, status);
            return Ok(Checker::Failed(format!("the checker failed: {words}")));
        }
        let printed = process.stdout().map_err(lost)?;
        Ok(Checker::Printed(
            String::from_utf8_lossy(&printed).into_owned(),
        ))
    }
}

/// Waits for a program that prints little and may be cut off; `None`: it has not ended in time.
fn wait(
    process: &mut Process,
    most: Duration,
    stop: &Stop,
) -> Result<Option<ExitStatus>, SubjectError> {
    let begin = Instant::now();
    loop {
        let left = most.saturating_sub(begin.elapsed());
        let ended = process.wait(left.min(LOOK * 10)).map_err(lost)?;
        if ended.is_some() || left.is_zero() {
            return Ok(ended);
        }
        if stop.is_requested() {
            return Err(SubjectError("stopped".into()));
        }
        if process.stdout_len().map_err(lost)? > MOST_OUTPUT {
            let most = MOST_OUTPUT >> 20;
            return Err(SubjectError(format!(
                "the program printed more than {most} MiB"
            )));
        }
    }
}

/// A program and its arguments, with places for paths.
struct CommandLine(Vec<String>);

/// The name of a place, and the paths that come there: several only if the place is a word of its own.
pub(crate) type Place<'a> = (&'a str, &'a [PathBuf]);

impl CommandLine {
    fn parse(chosen: &Chosen, setting: &str, places: &[&str]) -> Result<CommandLine, SettingError> {
        let words = shlex::split(chosen.text(setting))
            .filter(|words| !words.is_empty())
            .ok_or_else(|| chosen.wrong(setting, "it is a command, with quotes in pairs"))?;
        for place in places {
            if !words.iter().any(|word| word.contains(place)) {
                let why = format!("it has no {place}, so the program would not know where that is");
                return Err(chosen.wrong(setting, why));
            }
        }
        Ok(CommandLine(words))
    }

    /// Starts it with these paths in their places.
    fn start(&self, places: &[Place<'_>]) -> Result<Process, SubjectError> {
        let mut words = self.0.iter().flat_map(|word| {
            let own = places.iter().find(|(name, _)| name == word);
            match own {
                Some((_, paths)) => paths.iter().map(|path| path.clone().into()).collect(),
                None => vec![put(word, places)],
            }
        });
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(words);
        // By SIGKILL we leave nobody behind either.
        end_with_this_thread(&mut command, Signal::KILL);
        let started = Process::start(&mut command);
        started.map_err(|error| failed(&format!("cannot start {}", program.display()), error))
    }
}

/// Puts each path where its name is. What a path itself says is no name.
fn put(word: &str, places: &[Place<'_>]) -> OsString {
    let mut result = OsString::new();
    let mut rest = word;
    loop {
        let found = places
            .iter()
            .filter_map(|&(name, paths)| Some((rest.find(name)?, name, paths.first()?)))
            .min_by_key(|&(at, ..)| at);
        let Some((at, name, path)) = found else {
            result.push(rest);
            return result;
        };
        result.push(&rest[..at]);
        result.push(path);
        rest = &rest[at + name.len()..];
    }
}

/// What a program said before it ended like this.
fn last_words(process: &Process, status: ExitStatus) -> String {
    match process.last_words() {
        Some(words) => format!("{words} ({status})"),
        None => status.to_string(),
    }
}

impl Subject for AnyProgram {
    fn name(&self) -> SubjectName {
        self.name.clone()
    }

    fn promise(&self) -> Promise {
        self.programs.promise
    }

    fn is_linked_in(&self) -> bool {
        false
    }

    fn prepare(&self, directory: &Path, stop: &Stop) -> Result<(), SubjectError> {
        self.programs
            .prepare(&[("{dir}", &[directory.to_owned()])], stop)
    }

    fn run(&self, directory: &Path, sink: &mut dyn AckSink, _: &Stop) -> Result<(), SubjectError> {
        let places = [directory.to_owned()];
        self.programs
            .run(&[("{dir}", &places)], sink, Ending::InOrder)
    }

    fn check(&self, directory: &Path, stop: &Stop) -> Result<Recovered, SubjectError> {
        let places = [directory.to_owned()];
        match self.programs.check(&[("{dir}", &places)], stop)? {
            Checker::Printed(text) => parse_report(&text).map_err(SubjectError),
            Checker::Failed(damage) => Ok(Recovered::damaged(damage)),
        }
    }
}

fn lost(error: std::io::Error) -> SubjectError {
    failed("cannot follow the program", error)
}

/// Reads what a checker printed.
fn parse_report(text: &str) -> Result<Recovered, String> {
    parse_report_with(text, &mut |_, _| false)
}

/// Reads what a checker printed; `more` takes the word of a line that is not known, and the rest of it, if it knows it.
pub(crate) fn parse_report_with(
    text: &str,
    more: &mut dyn FnMut(&str, &str) -> bool,
) -> Result<Recovered, String> {
    let mut found = Recovered::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match (word, number(rest), number(line)) {
            (_, _, Some(transaction)) => {
                found.whole.insert(transaction);
            }
            ("partial", Some(transaction), _) => {
                found.partial.insert(transaction);
            }
            ("invented", ..) => found.invented.push(rest.to_owned()),
            ("damage", ..) => {
                found.damage.get_or_insert(rest.to_owned());
            }
            _ if more(word, rest) => {}
            _ => {
                return Err(format!(
                    "the checker printed '{}': a line is N, 'partial N', 'invented TEXT' or \
                     'damage TEXT'",
                    line.escape_debug()
                ));
            }
        }
    }
    found
        .whole
        .retain(|transaction| !found.partial.contains(transaction));
    Ok(found)
}

#[cfg(test)]
mod tests;
