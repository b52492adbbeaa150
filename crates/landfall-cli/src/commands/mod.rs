//! One module for each subcommand.

pub mod advise;
pub mod campaign;
pub mod clean;
pub mod compare;
mod documents;
mod files;
pub mod history;
pub mod inspect;
pub mod lab;
pub mod log;
pub mod prove;
pub mod show;
pub mod state;
pub mod store;
pub mod subjects;
pub mod witness;

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;
use landfall_results::numbers::thousands;

use crate::args::Arguments;
use crate::exit::{Code, Failure};
use crate::terminal::complain;

/// Prints the completions of a shell.
pub fn completions(shell: clap_complete::Shell) -> Result<Code, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "landfall", &mut script);
    print_bytes(&script)
}

/// Prints the manual page, or writes the pages of all commands into `directory`.
pub fn man(directory: Option<&Path>) -> Result<Code, Failure> {
    let command = Arguments::command();
    if let Some(directory) = directory {
        if !directory.is_dir() {
            let text = format!("there is no directory {}", directory.display());
            return Err(Failure::new(Code::Usage, text));
        }
        clap_mangen::generate_to(command, directory).map_err(|error| {
            let text = format!(
                "cannot write manual pages to {}: {error}",
                directory.display()
            );
            Failure::new(Code::Failed, text)
        })?;
        return Ok(Code::Measured);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| {
            Failure::new(
                Code::Failed,
                format!("cannot make the manual page: {error}"),
            )
        })?;
    print_bytes(&page)
}

/// How a command ends that found this, or why that could not be written. A loss is said all the same, and that beside it.
fn ended(code: Code, written: Result<(), Failure>) -> Result<Code, Failure> {
    match (code, written) {
        (Code::Lost, Err(failure)) => {
            complain(&failure.text);
            Ok(Code::Lost)
        }
        (code, written) => written.map(|()| code),
    }
}

/// Why the first of several attempts failed, all of which were made. Why others did is said at once.
fn first_failure(attempts: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let mut failures = attempts.into_iter().filter_map(Result::err);
    let first = failures.next();
    for other in failures {
        complain(&other.text);
    }
    first.map_or(Ok(()), Err)
}

/// `1 record`, `2 records`.
fn counted(count: u64, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", thousands(count as f64))
}

/// Writes to standard output; a reader that has seen enough (`head`) is no failure.
pub fn print_bytes(bytes: &[u8]) -> Result<Code, Failure> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(
            Code::Failed,
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(Code::Measured),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_said_also_where_it_could_not_be_written() {
        let full = || Err(Failure::new(Code::Failed, "cannot write"));
        assert_eq!(ended(Code::Lost, full()).unwrap(), Code::Lost);
        let failed = ended(Code::Measured, full()).unwrap_err();
        assert_eq!(failed.code, Code::Failed);
        assert_eq!(ended(Code::TooNoisy, Ok(())).unwrap(), Code::TooNoisy);
    }

    #[test]
    fn of_several_failures_the_first_counts_and_every_attempt_is_made() {
        let mut made = 0;
        let attempts = [Ok(()), Err("one"), Ok(()), Err("two"), Ok(())];
        let attempts = attempts.into_iter().map(|attempt| {
            made += 1;
            attempt.map_err(|text| Failure::new(Code::Failed, text))
        });
        assert_eq!(first_failure(attempts).unwrap_err().text, "one");
        assert_eq!(made, 5);
        first_failure([Ok(()), Ok(())]).unwrap();
    }
}
