//! Servers that are written in Java.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program;

/// Variables by which others than we would tell it something.
const VARIABLES: [&str; 4] = [
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
];

/// The program `java`, where it is installed.
pub(super) fn find() -> Option<PathBuf> {
    let chosen = env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
    let first = chosen.map(|home| Path::new(&home).join("bin"));
    program::find("java", first.as_slice())
}

/// A command for a program that needs little memory and should be there soon, and whose files are in `private` unless it is
/// told otherwise.
pub(super) fn command(java: &Path, class_path: &str, private: &Path) -> Command {
    let mut command = program::command(java);
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    let private = private.display();
    command.args([
        "-Xmx220m",
        "-XX:+UseSerialGC",
        // Better code would come too late to be of use.
        "-XX:TieredStopAtLevel=1",
        "-XX:-UsePerfData",
        // What it complains of is what comes first, and of interest.
        "-XX:MaxJavaStackTraceDepth=2",
        "-Djava.awt.headless=true",
    ]);
    command
        .arg(format!("-Djava.io.tmpdir={private}"))
        .arg(format!("-Duser.home={private}"))
        .arg(format!("-XX:ErrorFile={private}/error.log"))
        .args(["-cp", class_path]);
    command
}
