//! What a power cut would have left.
//!
//! The disk keeps what was flushed. Of what was written since the last flush it may have kept anything:
//! each sector of each write arrived or did not. A [`Model`] says which of these *crash states* are
//! tried; each has a [`StateName`] from which it can be made again.

mod disk;
mod image;
mod name;

pub use disk::{CrashDisk, Piece};
pub use name::{Choice, Model, StateName};
