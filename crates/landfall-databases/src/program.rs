//! Finding a database's programs, and running those that end by themselves.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::DatabaseError;
use landfall_os::humanize::duration_text;
use landfall_os::{Process, Stop, end_with_this_thread};
use rustix::process::Signal;

/// Where servers are that are not meant to be typed; not in everybody's PATH.
const FOR_ADMINISTRATORS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];
/// How often it is looked whether a program has ended, or the user asked to stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long one that is told to end may take before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// As much is read of the end of what a program complained of.
const TAIL: u64 = 16 << 10;
/// So many lines of a log are shown.
const SHOWN: usize = 8;
/// How long a program may take that tells its version.
const TELLING: Duration = Duration::from_secs(60);

/// The program of that name: of the first directory of `first`, PATH or where administrators' programs
/// are that has it.
pub(super) fn find(name: &str, first: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = first
        .iter()
        .cloned()
        .chain(env::split_paths(&path))
        .chain(FOR_ADMINISTRATORS.map(PathBuf::from));
    let mut programs = directories.map(|directory| directory.join(name));
    programs.find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// A command that no option or language of its user changes.
pub(super) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    // What it says is read by us.
    command.env("LC_ALL", "C").env_remove("LANGUAGE");
    command
}

/// What a program printed.
pub(super) struct Printed {
    pub stdout: String,
}

/// Runs a program to its end, and fails with its last words if it does. After `most` it is killed.
pub(super) fn run(
    command: &mut Command,
    most: Duration,
    stop: &Stop,
) -> Result<Printed, DatabaseError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let lost = |error| DatabaseError::Failed(format!("cannot run {program}: {error}"));
    end_with_this_thread(command, Signal::KILL);
    let mut process = Process::start(command).map_err(lost)?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = process.wait(LOOK).map_err(lost)? {
            break status;
        }
        let is_late = begin.elapsed() > most;
        if is_late || stop.is_requested() {
            // First gently: what it runs may have more to give back than its process, as PostgreSQL has
            // while it is installed.
            process.terminate_alone();
            process.wait(GRACE).map_err(lost)?;
        }
        if stop.is_requested() {
            return Err(DatabaseError::Stopped);
        }
        if is_late {
            let most = duration_text(most.as_secs_f64());
            return Err(DatabaseError::Failed(format!(
                "{program} had not ended after {most} and was killed"
            )));
        }
    };
    let stdout = String::from_utf8_lossy(&process.stdout().map_err(lost)?).into_owned();
    if status.success() {
        return Ok(Printed { stdout });
    }
    let mut lines = process.stderr_lines(TAIL).map_err(lost)?;
    if lines.is_empty() {
        // Some complain where others answer.
        lines.extend(stdout.lines().map(str::to_owned));
    }
    if is_about_space(&lines) {
        return Err(DatabaseError::no_space(format!("{program} found no space")));
    }
    Err(DatabaseError::Failed(format!(
        "{program} failed ({status}){}",
        telling_lines(&lines)
    )))
}

/// What a program prints when it is run with `arguments`.
pub(super) fn ask(program: &Path, arguments: &[&str]) -> Result<String, DatabaseError> {
    let mut command = command(program);
    let printed = run(command.args(arguments), TELLING, &Stop::default())?;
    Ok(printed.stdout)
}

/// The lines of a log that say most, to be put behind what they are the reason for: from the first
/// complaint on, for what follows it is consequences; without one, the last.
pub(super) fn telling_lines(lines: &[String]) -> String {
    const COMPLAINTS: [&str; 8] = [
        "[ERROR]",
        "FATAL:",
        "PANIC:",
        "Assertion",
        "# FATAL",
        "\"level\":\"fatal\"",
        "\"level\":\"panic\"",
        "panic: ",
    ];
    // Said to whoever tries to connect too early, as we do.
    const TOO_EARLY: &str = "the database system is starting up";
    let lines: Vec<&str> = lines
        .iter()
        .map(|line| &**line)
        .filter(|line| !line.contains(TOO_EARLY))
        .collect();
    let complains = |line: &&str| COMPLAINTS.iter().any(|sign| line.contains(sign));
    let last = lines.len().saturating_sub(SHOWN);
    let first = lines.iter().position(complains).unwrap_or(last);
    let shown: Vec<&str> = lines[first..].iter().take(SHOWN).copied().collect();
    if shown.is_empty() {
        " without a word".into()
    } else {
        format!("; it says:\n  {}", shown.join("\n  "))
    }
}

/// Whether a log says that there was no space.
pub(super) fn is_about_space(lines: &[String]) -> bool {
    const SIGNS: [&str; 6] = [
        "No space left on device",
        "no space left on device",
        "Disk is full",
        "Errcode: 28",
        "errno: 28",
        "error 28",
    ];
    let says = |line: &String| SIGNS.iter().any(|sign| line.contains(sign));
    lines.iter().any(says)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, most: Duration, stop: &Stop) -> Result<Printed, DatabaseError> {
        let shell = find("sh", &[]).unwrap();
        run(command(&shell).args(["-c", script]), most, stop)
    }

    #[test]
    fn a_program_is_run_to_its_end() {
        let long = Duration::from_secs(600);
        let stop = Stop::default();
        assert_eq!(sh("echo a", long, &stop).unwrap().stdout, "a\n");
        let error = sh("echo first >&2; echo last >&2; exit 3", long, &stop);
        let text = error.err().unwrap().to_string();
        assert!(
            text.ends_with("failed (exit status: 3); it says:\n  first\n  last"),
            "{text}"
        );
        let full = sh("echo 'x: No space left on device' >&2; exit 1", long, &stop).err();
        assert!(matches!(full, Some(DatabaseError::Refused(_))), "{full:?}");
    }

    #[test]
    fn a_program_that_cannot_tell_its_version_says_why() {
        let shell = find("sh", &[]).unwrap();
        assert_eq!(ask(&shell, &["-c", "echo 1.2"]), Ok("1.2\n".to_owned()));
        let error = ask(&shell, &["-c", "echo no libx.so >&2; exit 127"]);
        let text = error.unwrap_err().to_string();
        assert!(text.ends_with("it says:\n  no libx.so"), "{text}");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let stop = Stop::default();
        let slow = sh("exec sleep 600", Duration::ZERO, &stop).err().unwrap();
        assert!(slow.to_string().ends_with("and was killed"), "{slow}");
        stop.flag()
            .store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = sh("exec sleep 600", Duration::MAX, &stop).err();
        assert_eq!(stopped, Some(DatabaseError::Stopped));
    }

    #[test]
    fn what_is_said_to_whoever_comes_too_early_is_no_complaint() {
        let early = "FATAL:  the database system is starting up".to_owned();
        let lines = [early.clone(), "PANIC:  invalid page".to_owned(), early];
        assert_eq!(telling_lines(&lines), "; it says:\n  PANIC:  invalid page");
    }

    #[test]
    fn what_follows_a_complaint_is_shown_and_else_the_end() {
        let mut lines: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        let shown = telling_lines(&lines);
        assert!(
            shown.starts_with("; it says:\n  12\n") && shown.ends_with("19"),
            "{shown}"
        );
        lines[3] = "PANIC:  no".into();
        let shown = telling_lines(&lines);
        assert!(
            shown.contains(":\n  PANIC:  no\n  4") && shown.ends_with("10"),
            "{shown}"
        );
        assert_eq!(telling_lines(&[]), " without a word");
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        assert_eq!(find("no-such-program-of-anybody", &[]), None);
    }
}
