//! What makes a data directory a standby's, and what becomes of one that was a primary's.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Programs, REMEDY, TITLE, refused};
use crate::{DatabaseError, program};
use landfall_os::{Stop, sync_directory};

/// Where clients come to node 0, and standbys too.
const PORT: u16 = 5500;
/// The file that makes a node a standby.
const STANDBY: &str = "standby.signal";
/// How long a node may take to become as another one.
const COPYING: Duration = Duration::from_secs(10 * 60);

pub(super) fn port(node: usize) -> u16 {
    PORT + node as u16
}

/// How a standby comes to its primary.
pub(super) fn primary(node: usize, leader: usize) -> String {
    let port = port(leader);
    format!("host=127.0.0.1 port={port} user=postgres application_name=n{node}")
}

/// Whether a node's files say that it follows another one.
pub(super) fn is_standby(data: &Path) -> bool {
    data.join(STANDBY).exists()
}

/// The last timeline of which a node has something; names of its log's files begin with it.
pub(super) fn timeline(data: &Path) -> Result<u64, DatabaseError> {
    let mut last = 0;
    for entry in fs::read_dir(data.join("pg_wal")).map_err(refused(data))? {
        let name = entry.map_err(refused(data))?.file_name();
        let name = name.to_string_lossy();
        let digits = name.get(..8).unwrap_or_default();
        if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            last = last.max(hexadecimal(digits));
        }
    }
    Ok(last)
}

/// The number of a timeline; 0: it is none.
pub(super) fn hexadecimal(digits: &str) -> u64 {
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

/// Makes the data of one that led such that it can follow `leader`.
pub(super) fn take_back(
    programs: &Programs,
    data: &Path,
    leader: usize,
    stop: &Stop,
) -> Result<(), DatabaseError> {
    let port = port(leader);
    let beside: Vec<PathBuf> = programs
        .server
        .parent()
        .map(Path::to_owned)
        .into_iter()
        .collect();
    let required = |name: &str| {
        program::find(name, &beside).ok_or_else(|| DatabaseError::NotInstalled {
            what: format!("{TITLE}'s {name}"),
            remedy: REMEDY.into(),
        })
    };
    let mut rewind = programs.command(&required("pg_rewind")?);
    rewind.arg("--target-pgdata").arg(data).arg(format!(
        "--source-server=host=127.0.0.1 port={port} user=postgres dbname=postgres"
    ));
    match program::run(&mut rewind, COPYING, stop) {
        // It lacks a file of the log, or was not ended in order.
        Err(DatabaseError::Failed(_)) => {}
        rewound => return rewound.map(drop),
    }
    fs::remove_dir_all(data)
        .and_then(|()| fs::create_dir(data))
        .map_err(refused(data))?;
    programs.adopt(data)?;
    let mut copy = programs.command(&required("pg_basebackup")?);
    copy.arg("--pgdata").arg(data);
    copy.args([
        "--host=127.0.0.1",
        "--username=postgres",
        "--checkpoint=fast",
    ]);
    copy.arg(format!("--port={port}"));
    program::run(&mut copy, COPYING, stop).map(drop)
}

/// Writes into the files of a node that it follows another one.
pub(super) fn become_standby(data: &Path, node: usize, leader: usize) -> Result<(), DatabaseError> {
    // As ALTER SYSTEM would; the last line counts.
    let line = format!("primary_conninfo = '{}'\n", primary(node, leader));
    let write = |name: &str, text: &str| {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).open(data.join(name))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write("postgresql.auto.conf", &line)
        .and_then(|()| write(STANDBY, ""))
        .and_then(|()| sync_directory(data))
        .map_err(refused(data))
}
