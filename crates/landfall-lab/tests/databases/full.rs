//! A disk without space, on a small filesystem of our own: needs root.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use landfall_databases::{DatabaseError, Templates};
use landfall_lab::Stop;
use landfall_lab::scratch_fs::{BackingDevice, FilesystemSpec, ScratchFilesystem};

use crate::client::Client;
use crate::{alone, create, left, servers, skip, start, with};

const MIB: u64 = 1 << 20;
/// Bytes of a row.
const ROW: usize = 64 << 10;
/// A server that says nothing for so long says nothing.
const SILENT: Duration = Duration::from_secs(300);

/// A small filesystem, and what it is in; nothing where none can be made.
fn filesystem(size: u64) -> Option<(ScratchFilesystem, tempfile::TempDir)> {
    let outside = tempfile::tempdir().unwrap();
    let filesystem_spec: FilesystemSpec = "ext4".parse().unwrap();
    let stop = Stop::default();
    let made = BackingDevice::image(outside.path(), size, &stop)
        .and_then(|backing| ScratchFilesystem::make(&filesystem_spec, backing, &stop));
    match made {
        Ok(made) => Some((made, outside)),
        Err(error) => {
            skip(&format!("no small filesystem: {error}"));
            None
        }
    }
}

/// Settings with which a server needs little space, and how much it needs at least.
fn small(name: &str) -> (&'static [(&'static str, &'static str)], u64) {
    match name {
        "mariadb" => (
            &[("innodb_log_file_size", "4M"), ("binlog", "yes")],
            96 * MIB,
        ),
        "myrocks" => (&[("binlog", "no")], 96 * MIB),
        "postgres" => (
            &[
                ("wal_segment_size", "1M"),
                ("max_wal_size", "4MB"),
                ("min_wal_size", "2MB"),
            ],
            96 * MIB,
        ),
        // It reserves two files of its log.
        "etcd" => (&[], 192 * MIB),
        _ => (&[], 24 * MIB),
    }
}

fn is_about_space(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Refused(text) if text.contains("space"))
}

#[test]
fn a_full_disk_is_called_one() {
    let _alone = alone();
    for name in servers() {
        let (settings, size) = small(name);
        let Some((made, outside)) = filesystem(size) else {
            return;
        };
        let directory = made.directory().join("data");
        std::fs::create_dir(&directory).unwrap();
        let database = with(name, settings).unwrap();
        create(&*database, &directory);
        let running = start(&*database, &directory);
        drop(Client::load(running.session().unwrap(), 1));
        let mut client = Client::new(1, running.session().unwrap()).sized(ROW);
        let (sender, receiver) = channel();
        let filling = thread::spawn(move || {
            let error = (1..size / ROW as u64 * 2).find_map(|row| client.put(row).err());
            let _ = sender.send(error);
        });
        let error = receiver.recv_timeout(SILENT);
        drop(running);
        filling.join().unwrap();
        match error {
            Ok(Some(error)) if is_about_space(&error) => println!("{name}: {error}"),
            other => panic!("{name}: {other:?}"),
        }
        left::assert_nothing(&directory);
        made.close().unwrap();
        drop(outside);
    }
}

#[test]
fn a_disk_that_is_too_small_is_called_so_when_the_database_is_made() {
    let _alone = alone();
    for name in servers() {
        let Some((made, outside)) = filesystem(16 * MIB) else {
            return;
        };
        let directory = made.directory().join("data");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(made.directory().join("ballast"), vec![1; 8 << 20]).unwrap();
        let templates = Templates::new(&std::env::temp_dir());
        let database = with(name, &[]).unwrap();
        match database.create(&directory, &templates, &Stop::default()) {
            Err(error) => assert!(is_about_space(&error), "{name}: {error}"),
            // It makes nothing before it is started.
            Ok(()) => assert_eq!(name, "redis"),
        }
        drop(templates);
        left::assert_nothing(&directory);
        made.close().unwrap();
        drop(outside);
    }
}
