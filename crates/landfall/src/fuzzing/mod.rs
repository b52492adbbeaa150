//! What the fuzz targets do, and tests that do it again with everything that fuzzing has kept: `corpus`.
//!
//! - `reader` takes a directory for a log, `store` for a store;
//! - `memory` is a directory in memory; `directory` is that of a log as a row of bytes, `store_directory` that of a store;
//!   `checksums` makes those of a row right again; `corpus` is what is kept.
//!
//! `LANDFALL_UPDATE=1 cargo test -p landfall --lib fuzzing` writes what fuzzing begins from.

mod checksums;
#[cfg(test)]
mod corpus;
mod directory;
pub(crate) mod memory;
pub mod reader;
pub mod store;
mod store_directory;

use crate::{Error, Options};

#[cfg(fuzzing)]
pub use self::checksums::correct;

fn options() -> Options {
    Options::default()
        .segment_bytes(directory::SEGMENT as u64)
        .buffer_bytes(8 << 10)
        .max_unwritten_bytes(4 << 10)
        .spare_segments(1)
}

/// What looks from outside says the same of a directory that is refused, and what is damaged stays as it is.
fn check_refusal(error: &Error, seen: Option<Error>, is_unchanged: bool) {
    let is_other = matches!(error, Error::OtherKind { .. });
    match seen {
        // Who looks from outside may take any kind, and say what else is wrong.
        _ if is_other => {}
        Some(seen) => assert_eq!(error.to_string(), seen.to_string()),
        // Its files are larger than all that there is, or its numbers are none that a log is made with.
        None => assert!(!is_damage(error), "{error}"),
    }
    assert!(is_unchanged || !(is_damage(error) || is_other), "{error}");
}

fn is_damage(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. }
            | Error::Version { .. }
            | Error::NotALog { .. }
            | Error::MissingSegment { .. }
            | Error::Command { .. }
            | Error::LogLost { .. }
    )
}
