//! Jobs for tests, and a program that notes how it was called.

// Every test file is a program of its own and uses only a part of this.
#![allow(dead_code)]

pub mod shards;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use landfall_campaign::emit::Job;
use tempfile::TempDir;

/// A campaign of four shards.
pub fn job(results: &str) -> Job {
    Job {
        name: "nightly-fleet".to_owned(),
        shards: 4,
        results: results.to_owned(),
        campaign: "0123456789abcdef".to_owned(),
        program: "landfall".to_owned(),
    }
}

/// A program in a directory of its own that notes the words of each call, and ends well, but for a merge where VERDICT is set.
pub struct Noting {
    dir: TempDir,
    program: PathBuf,
}

impl Noting {
    /// The program has this name.
    pub fn named(name: &str) -> Noting {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let program = dir.path().join(name);
        // A file for each call: calls may come at the same time.
        let script = "#!/bin/sh\n\
            printf '%s\\0' \"$@\" > \"$(mktemp \"$CALLS/XXXXXXXX\")\"\n\
            [ \"$2\" != merge ] || [ -z \"$VERDICT\" ] || { echo lost something; exit \"$VERDICT\"; }\n";
        write_program(&program, script);
        // What workflows become root by: here its caller is as good.
        write_program(&dir.path().join("sudo"), "#!/bin/sh\nshift\nexec \"$@\"\n");
        let noting = Noting { dir, program };
        fs::create_dir(noting.calls_dir()).expect("a directory can be made");
        noting
    }

    pub fn program(&self) -> &str {
        self.program.to_str().expect("temporary paths are text")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn calls_dir(&self) -> PathBuf {
        self.dir.path().join("calls")
    }

    /// `command` with all that the program and what stands for `sudo` need.
    pub fn around(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.dir.path().display()));
        command.env("CALLS", self.calls_dir());
        command.current_dir(self.dir.path());
    }

    /// The words of all calls since this was asked last, in the order of their text.
    pub fn calls(&self) -> Vec<Vec<String>> {
        let files = fs::read_dir(self.calls_dir()).expect("the directory can be read");
        let mut calls: Vec<Vec<String>> = files
            .map(|file| {
                let path = file.expect("an entry can be read").path();
                let text = fs::read_to_string(&path).expect("words are text");
                fs::remove_file(&path).expect("a file can be removed");
                text.split_terminator('\0').map(str::to_owned).collect()
            })
            .collect();
        calls.sort();
        calls
    }
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, script).expect("a file can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
}

/// How a shard of the campaign at `location` is run.
pub fn run(location: &str, shard: u32, shards: u32) -> Vec<String> {
    let shard = format!("{shard}/{shards}");
    ["campaign", "run", location, "--shard", &shard]
        .map(str::to_owned)
        .to_vec()
}

/// How its report is made: in the order of [`Noting::calls`].
pub fn merge_and_report(location: &str) -> [Vec<String>; 2] {
    ["merge", "report"].map(|what| ["campaign", what, location].map(str::to_owned).to_vec())
}

/// Says why a test does not run. Where everything that tests need was installed, which is what
/// LANDFALL_NO_SKIP says, that is a failure.
pub fn skip(why: &str) {
    let nothing_is_missing = std::env::var_os("LANDFALL_NO_SKIP").is_some();
    assert!(!nothing_is_missing, "skipped all the same: {why}");
    println!("skipped: {why}");
}
