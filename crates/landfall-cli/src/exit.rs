//! Exit codes, and failures that carry one. Scripts rely on these numbers.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Measured, or done.
    Measured = 0,
    /// Something failed.
    Failed = 1,
    /// The command line, or a file named on it, makes no sense.
    Usage = 2,
    /// Acknowledged data was lost, or another promise broken.
    Lost = 3,
    /// The target is unsafe or unsuitable and was refused; nothing was measured.
    Refused = 4,
    /// Measured, but too noisy to conclude anything.
    TooNoisy = 5,
    /// Stopped by a signal; 128 and the number of SIGINT, as shells do.
    Stopped = 130,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// Why a command did not succeed: one sentence and the exit code.
#[derive(Debug)]
pub struct Failure {
    pub code: Code,
    pub text: String,
}

impl Failure {
    pub fn new(code: Code, text: impl Into<String>) -> Failure {
        Failure {
            code,
            text: text.into(),
        }
    }
}

impl From<landfall_lab::Error> for Failure {
    fn from(error: landfall_lab::Error) -> Failure {
        use landfall_lab::Error;
        let code = match &error {
            Error::Stopped => Code::Stopped,
            Error::Usage(_) => Code::Usage,
            Error::Refused(_) => Code::Refused,
            Error::Subject(_) | Error::Io { .. } => Code::Failed,
        };
        Failure::new(code, error.to_string())
    }
}
