//! Running `mkfs`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Kind;
use crate::Error;

/// What the user can do when a program is missing.
fn package(kind: Kind) -> &'static str {
    match kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => "e2fsprogs",
        Kind::Xfs => "xfsprogs",
        Kind::Btrfs => "btrfs-progs",
    }
}

/// Makes a filesystem on `device`. `options` are the user's and come last, so that they win.
pub(super) fn run(kind: Kind, options: &[String], device: &Path) -> Result<(), Error> {
    let program = format!("mkfs.{kind}");
    let output = Command::new(&program)
        .args(arguments(kind, options))
        .arg(device)
        // Debian keeps it where only root's shells look.
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Error::Refused(format!(
                "{program} is not installed: install it (Debian: apt-get install {}), or name another filesystem",
                package(kind)
            )),
            _ => Error::io(format!("cannot run {program}"))(error),
        })?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = complaint(&program, &String::from_utf8_lossy(&output.stderr));
    Err(Error::Refused(if complaint.is_empty() {
        format!("{program} failed ({}) and did not say why", output.status)
    } else {
        format!("{program} made no filesystem: {complaint}")
    }))
}

pub(super) fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/sbin:/usr/sbin:/sbin")
}

/// Nothing is left to be done later, which would be counted, and nothing is discarded, which would leave
/// holes in an image. Blocks are of 4 KiB, as on any disk: on a device below 512 MiB `mkfs.ext4` would make
/// them smaller, and every journal commit a quarter as large.
fn arguments(kind: Kind, options: &[String]) -> Vec<String> {
    let mut words: Vec<String> = match kind {
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => {
            ["-q", "-F", "-b", "4096"].map(str::to_owned).to_vec()
        }
        Kind::Xfs | Kind::Btrfs => {
            return ["-q", "-f", "-K"]
                .into_iter()
                .map(str::to_owned)
                .chain(options.iter().cloned())
                .collect();
        }
    };
    // Of several `-E` only the last is heeded, so that there must be one.
    let mut extended = vec!["nodiscard", "lazy_itable_init=0"];
    if kind != Kind::Ext2 {
        extended.push("lazy_journal_init=0");
    }
    let mut others = Vec::new();
    let mut options = options.iter();
    while let Some(word) = options.next() {
        match word.strip_prefix("-E") {
            Some("") => extended.extend(options.next().map(String::as_str)),
            Some(value) => extended.push(value),
            None => others.push(word.clone()),
        }
    }
    words.extend(["-E".into(), extended.join(",")]);
    words.extend(others);
    words
}

/// What a program complained of, without its name in front and its usage behind.
fn complaint(program: &str, stderr: &str) -> String {
    let lines: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty() && !line.to_lowercase().starts_with("usage"))
        .take(2)
        .map(|line| line.trim_start_matches(program).trim_start_matches(": "))
        .map(|line| line.trim_start_matches("ERROR: ").trim_end_matches('.'))
        .collect();
    lines.join("; ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind, options: &[&str]) -> String {
        let options: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
        arguments(kind, &options).join(" ")
    }

    #[test]
    fn extended_options_are_joined_and_the_users_come_last() {
        assert_eq!(
            of(
                Kind::Ext4,
                &["-O", "fast_commit", "-E", "stride=4", "-Etest_fs"]
            ),
            "-q -F -b 4096 -E nodiscard,lazy_itable_init=0,lazy_journal_init=0,stride=4,test_fs -O fast_commit"
        );
        assert_eq!(
            of(Kind::Ext2, &[]),
            "-q -F -b 4096 -E nodiscard,lazy_itable_init=0"
        );
        assert_eq!(of(Kind::Xfs, &["-m", "reflink=0"]), "-q -f -K -m reflink=0");
    }

    #[test]
    fn a_complaint_is_quoted_without_its_decoration() {
        assert_eq!(
            complaint(
                "mkfs.xfs",
                "Filesystem must be larger than 300MB.\nUsage: mkfs.xfs\n/* …"
            ),
            "Filesystem must be larger than 300MB"
        );
        assert_eq!(
            complaint(
                "mkfs.ext4",
                "\nBad option(s) specified: foo\n\nExtended options are …"
            ),
            "Bad option(s) specified: foo"
        );
        assert_eq!(
            complaint(
                "mkfs.btrfs",
                "ERROR: 'x' is too small\nERROR: minimum size is 114294784\n"
            ),
            "'x' is too small; minimum size is 114294784"
        );
        assert_eq!(
            complaint("mkfs.ext4", "mkfs.ext4: invalid block size - 77\n"),
            "invalid block size - 77"
        );
    }
}
