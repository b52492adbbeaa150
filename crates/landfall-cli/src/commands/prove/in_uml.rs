//! `landfall prove --in-uml`: the same command inside [User-mode Linux](landfall_prove::uml).

use landfall_prove::uml::{self, Guest, PACKAGE};
use landfall_prove::{Error, Stop};

use crate::commands::print_bytes;
use crate::exit::{Code, Failure};

/// What a user without root can do, to be added to a sentence that refuses; nothing for others.
pub fn hint() -> String {
    if uml::is_inside() || rustix::process::geteuid().is_root() {
        return String::new();
    }
    format!(", or add --in-uml ({PACKAGE})")
}

/// Runs this process's own command line inside; `stop` is raised by Ctrl-C.
pub fn run(stop: &Stop) -> Result<Code, Failure> {
    let guest = Guest {
        arguments: std::env::args_os().skip(1).collect(),
        ..Guest::default()
    };
    let ended = uml::run(&guest, stop).map_err(|error| match error {
        // Whatever kept it from being proven: it is not proven.
        Error::Refused(why) => Failure::new(Code::Failed, why),
        error => error.into(),
    })?;
    print_bytes(&ended.stdout)?;
    Ok(code(ended.status))
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
