//! `landfall prove --in-uml`: the same command inside [User-mode Linux](landfall_prove::uml), which an ordinary user gets
//! without asking.

use std::ffi::OsString;
use std::path::Path;

use landfall_prove::scratch_fs::require_recorder;
use landfall_prove::uml::{self, Guest, PACKAGE};
use landfall_prove::{Error, Offer, Stop};

use crate::commands::{ended, print_bytes};
use crate::exit::{Code, Failure};
use crate::terminal::remark;

/// The option, which the inner command line always has: so the one that shows a state again has it too.
const OPTION: &str = "--in-uml";

/// Subjects that do not start inside.
const DO_NOT_START: [&str; 2] = ["mariadb", "myrocks"];

/// Whether the proof is to run inside: it was asked for, or this user can make no recorded filesystem in `directory`. An
/// ordinary user who cannot go inside either is refused.
pub fn is_needed(
    is_asked_for: bool,
    subject: Option<&str>,
    directory: &Path,
    offer: Offer,
    quiet: bool,
) -> Result<bool, Failure> {
    if uml::is_inside() || is_asked_for {
        return Ok(is_asked_for && !uml::is_inside());
    }
    let is_root = rustix::process::geteuid().is_root();
    // Capabilities would do.
    if (is_root && offer == Offer::Flushes) || require_recorder(directory, offer).is_ok() {
        return Ok(false);
    }
    if is_root && !uml::is_installed() {
        // Why it cannot be proven here is said as for all else that root lacks.
        return Ok(false);
    }
    if !uml::is_installed() {
        let text = format!(
            "a proof needs root, or User-mode Linux: run it with sudo, or install {PACKAGE}"
        );
        return Err(Failure::new(Code::Failed, text));
    }
    if let Some(subject) = subject.filter(|subject| DO_NOT_START.contains(subject)) {
        let needs = if is_root {
            "the kernel module nbd"
        } else {
            "root"
        };
        let text = format!(
            "{subject} needs {needs}: MariaDB reserves more addresses than a process has inside User-mode Linux; try an older MariaDB with {OPTION}"
        );
        return Err(Failure::new(Code::Failed, text));
    }
    if !quiet {
        let why = if is_root {
            "this kernel has no network block devices"
        } else {
            "you are not root"
        };
        remark(&format!(
            "{why}: the proof runs inside User-mode Linux, on that kernel's filesystems"
        ));
    }
    Ok(true)
}

/// What root can do whose machine lacks what a recorder needs, to be added to a sentence that refuses.
pub fn hint(directory: &Path, offer: Offer) -> String {
    let helps =
        !uml::is_inside() && uml::is_installed() && require_recorder(directory, offer).is_err();
    if helps {
        format!(", or add {OPTION}")
    } else {
        String::new()
    }
}

/// Runs this process's own command line inside; `stop` is raised by Ctrl-C.
pub fn run(stop: &Stop) -> Result<Code, Failure> {
    let guest = Guest {
        arguments: arguments(std::env::args_os().skip(1).collect()),
        ..Guest::default()
    };
    let inside = uml::run(&guest, stop).map_err(|error| match error {
        // Whatever kept it from being proven: it is not proven.
        Error::Refused(why) => Failure::new(Code::Failed, why),
        error => error.into(),
    })?;
    let printed = print_bytes(&inside.stdout).map(drop);
    ended(code(inside.status), printed)
}

/// The command line with the option.
fn arguments(mut words: Vec<OsString>) -> Vec<OsString> {
    if !words.iter().any(|word| word == OPTION) {
        let command = words.iter().position(|word| word == "prove");
        words.insert(command.map_or(0, |at| at + 1), OPTION.into());
    }
    words
}

/// The exit code that the command inside had.
fn code(number: i32) -> Code {
    [
        Code::Measured,
        Code::Usage,
        Code::Lost,
        Code::Refused,
        Code::TooNoisy,
        Code::Stopped,
    ]
    .into_iter()
    .find(|code| *code as i32 == number)
    .unwrap_or(Code::Failed)
}
