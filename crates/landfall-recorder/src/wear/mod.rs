//! What writes cost the flash of a drive: a page-mapped flash translation layer with garbage collection.
//!
//! - [`Drive`]: an SSD by numbers, as text.
//! - [`Flash`]: one at work. It is told each write and counts what is programmed and erased.
//! - [`Writes`]: where a device was written, without what was written: 8 bytes per write.
//! - [`Wear`]: what a recording, or any [`Writes`], costs a drive once it has gone on for long.
//!
//! A recording is of a device far smaller than a drive. The drive is therefore taken in *miniature*: its
//! flash is as large as the pages in use (those that were ever written) divided by the drive's
//! utilisation. Space that a filesystem never touched is no spare flash, and the result is that of a
//! whole drive filled with what was recorded.
//!
//! Invariants: a page in use is on exactly one flash page; a flash page is programmed once between two
//! erases; as many pages are programmed as the host wrote and the collector copied. There are no threads
//! and no clock; the same writes always cost the same. It fails only where a device is too large for
//! tables of 32 bits, or where nothing was written.
//!
//! ```
//! use landfall_recorder::wear::{Drive, Wear, Writes};
//!
//! let drive: Drive = "collector=fifo,utilisation=80%".parse()?;
//! let mut writes = Writes::new(64 << 20)?;
//! for page in 0..16_384 {
//!     writes.push(page * 4096, 512);
//! }
//! let wear = Wear::of_writes(&writes, &drive)?;
//! // A sector costs a page, and in this order nothing is ever copied.
//! assert_eq!(wear.rounding(), 8.0);
//! assert_eq!(wear.copying(), 1.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What the model leaves out is in `docs/explanation/wear-model.md`, and the values it is checked by in `docs/results/wear-model.md`.

mod drive;
mod flash;
mod steady;
#[cfg(test)]
mod tests;
mod victims;
mod writes;

pub use drive::{Collector, Drive};
pub use flash::{Counts, Flash};
pub use steady::Wear;
pub use writes::Writes;
