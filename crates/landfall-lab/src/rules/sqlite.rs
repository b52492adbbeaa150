//! SQLite.

use super::{APPEND, UNSYNCED};
use crate::rules::{Choice, Measured, Rule, Source, System};

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
        safe_with: Some(("delete", "synchronous", "extra")),
        source: Source {
            title: "Write-Ahead Logging, SQLite documentation",
            address: "https://www.sqlite.org/wal.html",
        },
        note: "With synchronous=full it is not synced that the journal is gone; with synchronous=extra it is, and delete is durable.",
        ..BLANK
    },
    Rule {
        id: "sqlite-synchronous",
        setting: "synchronous",
        default: "full",
        choices: &[
            Choice::durable("full", Some(APPEND)),
            Choice::loses("normal", Some(UNSYNCED), "all since the last checkpoint"),
            Choice::damages("off", Some(UNSYNCED), "the database"),
            Choice::durable("extra", Some(APPEND)),
        ],
        source: Source {
            title: "PRAGMA synchronous, SQLite documentation",
            address: "https://www.sqlite.org/pragma.html#pragma_synchronous",
        },
        note: "For each connection anew. What is usual can differ by how it was built.",
        ..BLANK
    },
];
