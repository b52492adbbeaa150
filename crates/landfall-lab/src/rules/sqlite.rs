//! SQLite.

use super::{APPEND, UNSYNCED};
use crate::rules::{Choice, Measured, Rule, SafeWith, Source, System};

const BLANK: Rule = Rule {
    system: System::Sqlite,
    measured_by: Some(Measured::Planned),
    ..Rule::BLANK
};

pub(super) static RULES: [Rule; 2] = [
    Rule {
        id: "sqlite-journal-mode",
        setting: "journal_mode",
        default: "delete",
        choices: &[
            Choice::durable("wal", None),
            Choice::loses("delete", None, "the last transaction"),
            Choice::damages("memory", None, "the database").untried(),
            Choice::damages("off", None, "the database").untried(),
        ],
        safe_with: &[SafeWith {
            value: "delete",
            setting: "synchronous",
            one_of: &["extra"],
        }],
        source: Source {
            title: "Write-Ahead Logging, SQLite documentation",
            address: "https://www.sqlite.org/wal.html",
        },
        note: "synchronous=full does not sync the deletion of the journal. synchronous=extra does, which makes delete durable.",
        ..BLANK
    },
    Rule {
        id: "sqlite-synchronous",
        setting: "synchronous",
        default: "full",
        choices: &[
            Choice::durable("full", Some(APPEND)),
            Choice::loses(
                "normal",
                Some(UNSYNCED),
                "the last commits in WAL mode, and in rollback mode, by a very small chance on older filesystems, the database",
            ),
            Choice::damages("off", Some(UNSYNCED), "the database"),
            Choice::durable("extra", Some(APPEND)),
        ],
        source: Source {
            title: "PRAGMA synchronous, SQLite documentation",
            address: "https://www.sqlite.org/pragma.html#pragma_synchronous",
        },
        note: "To be set for each connection. The default depends on how SQLite was built.",
        ..BLANK
    },
];
