//! What a power cut would have left.
//!
//! The disk keeps what was flushed. Of what was written since the last flush it may have kept anything:
//! each sector of each write arrived or did not. A [`Model`] says which of these *crash states* are
//! tried; each has a [`StateName`] from which it can be made again.
//!
//! A [`Survey`] lists those that are tried. A [`Walker`] says of a name which [`Piece`]s of which writes
//! make its image: a [`Composition`]. A [`CrashDisk`] makes it.

mod changes;
mod composition;
mod disk;
mod epoch;
mod identity;
mod image;
mod layout;
mod name;
#[cfg(test)]
mod oracle;
mod overwrites;
mod sample;
mod survey;
mod walker;

pub use composition::{Composition, WriteFate};
pub use disk::{CrashDisk, Piece};
pub use epoch::{Epoch, epochs};
pub use identity::Identity;
pub use layout::{FileKind, Layout, Stretch};
pub use name::{Choice, Model, StateName};
pub use overwrites::Overwrites;
pub use survey::{Coverage, CrashState, Order, Survey};
pub use walker::Walker;
