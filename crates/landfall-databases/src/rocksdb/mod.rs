//! RocksDB, linked in where the feature `rocksdb` was asked for: a log-structured merge tree in C++.
//!
//! Its build takes many minutes and a C++ compiler, so that it is not part of every build; where it is not,
//! it is listed as absent, and says how to get it.

#[cfg(not(feature = "rocksdb"))]
mod absent;
#[cfg(not(feature = "rocksdb"))]
use absent as store;
#[cfg(feature = "rocksdb")]
mod store;

use std::path::Path;

use super::{Database, DatabaseError, Interface, Running, Templates};
use crate::SettingError;
use crate::registry::Kind;
use crate::setting::{Chosen, Description, Setting};
use crate::{Form, Listed};
use landfall_os::Stop;

pub(super) static KIND: Kind<dyn Database, Listed> = Kind {
    description: Description {
        name: "rocksdb",
        about: "RocksDB, linked in: a log-structured merge tree",
        passes_on: None,
        settings: &[
            Setting {
                name: "sync",
                default: Some("yes"),
                about: "whether a commit waits until its log is durable: yes or no",
                always_shown: true,
            },
            Setting {
                name: "recycle_log_file_num",
                default: Some("0"),
                about: "log files that are kept to be overwritten",
                always_shown: false,
            },
            Setting {
                name: "enable_pipelined_write",
                default: Some("no"),
                about: "whether the log and the memtable are written by a pipeline: yes or no",
                always_shown: false,
            },
            Setting {
                name: "write_buffer_size",
                default: Some("64M"),
                about: "bytes of a memtable before it is written out; the levels follow from it",
                always_shown: false,
            },
            Setting {
                name: "cache_size",
                default: Some("32M"),
                about: "bytes of blocks that are kept in memory",
                always_shown: false,
            },
            Setting {
                name: "compression",
                default: Some("lz4"),
                about: "of tables: lz4, zstd or none",
                always_shown: false,
            },
            Setting {
                name: "direct",
                default: Some("no"),
                about: "whether tables are read and written past the page cache: yes or no",
                always_shown: false,
            },
        ],
    },
    listed: Listed {
        presence: store::presence,
        title: "RocksDB",
        form: Form::LinkedInOnRequest,
    },
    make,
};

#[derive(Clone, Copy)]
enum Compression {
    None,
    Lz4,
    Zstd,
}

/// What was set.
#[derive(Clone)]
#[cfg_attr(
    not(feature = "rocksdb"),
    expect(dead_code, reason = "it is read where RocksDB is linked in")
)]
struct Settings {
    is_synced: bool,
    recycled_logs: usize,
    is_pipelined: bool,
    write_buffer_size: usize,
    cache_size: usize,
    compression: Compression,
    is_direct: bool,
}

struct RocksDb {
    name: String,
    settings: Settings,
}

fn make(chosen: &Chosen) -> Result<Box<dyn Database>, SettingError> {
    let compressions = [
        ("lz4", Compression::Lz4),
        ("zstd", Compression::Zstd),
        ("none", Compression::None),
    ];
    Ok(Box::new(RocksDb {
        name: chosen.name(),
        settings: Settings {
            is_synced: chosen.whether("sync")?,
            recycled_logs: chosen.number("recycle_log_file_num", 0, 1000)? as usize,
            is_pipelined: chosen.whether("enable_pipelined_write")?,
            // The library makes other numbers of those that are less or more.
            write_buffer_size: chosen.size("write_buffer_size", 64 << 10, 64 << 30)? as usize,
            cache_size: chosen.size("cache_size", 0, 1 << 44)? as usize,
            compression: chosen.one_of("compression", &compressions)?,
            is_direct: chosen.whether("direct")?,
        },
    }))
}

impl Database for RocksDb {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn interface(&self) -> Interface {
        Interface::OrderedKeys
    }

    fn create(&self, directory: &Path, _: &Templates, _: &Stop) -> Result<(), DatabaseError> {
        store::create(&self.settings, directory)
    }

    fn start(&self, directory: &Path, _: &Stop) -> Result<Box<dyn Running>, DatabaseError> {
        store::start(&self.settings, directory)
    }
}

#[cfg(all(test, feature = "rocksdb"))]
mod tests;
