//! The ways to come by the space that is written.
//!
//! What the space was before the write decides what the filesystem must do besides writing the data:
//! grow the file, allocate blocks, turn an unwritten extent into a written one, or nothing at all.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::retry_on_intr;

const MIB: u64 = 1 << 20;
/// `FALLOC_FL_WRITE_ZEROES`, since Linux 6.17; not in the libraries yet.
const FALLOC_FL_WRITE_ZEROES: u32 = 0x80;

/// How the space that a write lands on was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Allocation {
    /// The file is empty and grows with every write.
    Append,
    /// The file exists and every block of it was written and synced before.
    Overwrite,
    /// Zeros are written to the whole file, without a sync, and the writes begin at once.
    ZeroFilled,
    /// Zeros are written to the whole file and settle (see the lab) before the writes begin.
    ZeroFilledSettled,
    /// `fallocate(2)`: space is reserved in unwritten extents.
    Unwritten,
    /// `ftruncate(2)`: the file has its size and no blocks.
    Sparse,
    /// `fallocate(2)` with `FALLOC_FL_WRITE_ZEROES`: written extents, zeroed by the device.
    WriteZeroes,
    /// An old file of written blocks, renamed and overwritten from its start.
    Recycled,
    /// The file grows by steps of this many MiB of zeros, written and synced when a write needs them.
    Step {
        /// MiB in a step.
        mib: u32,
    },
}

impl Allocation {
    /// Every allocation that the standard plan measures.
    pub const ALL: [Allocation; 10] = [
        Allocation::Append,
        Allocation::Overwrite,
        Allocation::ZeroFilled,
        Allocation::ZeroFilledSettled,
        Allocation::Unwritten,
        Allocation::Sparse,
        Allocation::WriteZeroes,
        Allocation::Recycled,
        Allocation::Step { mib: 4 },
        Allocation::Step { mib: 64 },
    ];

    /// What it is, in a sentence for people who read its name.
    pub fn meaning(self) -> &'static str {
        match self {
            Allocation::Append => "The file is empty at first and grows with every write.",
            Allocation::Overwrite => {
                "The file exists, and each of its blocks was written and synced before."
            }
            Allocation::ZeroFilled => {
                "Zeros are written to the whole file, without a sync, just before the writes begin."
            }
            Allocation::ZeroFilledSettled => {
                "Zeros are written to the whole file and reach the disk before the writes begin."
            }
            Allocation::Unwritten => {
                "fallocate(2) reserves the space, in extents that are marked as unwritten."
            }
            Allocation::Sparse => "ftruncate(2) sets the file's size; it has no blocks yet.",
            Allocation::WriteZeroes => {
                "fallocate(2) with FALLOC_FL_WRITE_ZEROES: the device zeroes the blocks by itself."
            }
            Allocation::Recycled => {
                "An old file of written blocks is renamed and overwritten, as databases reuse logs."
            }
            Allocation::Step { .. } => {
                "The file grows by steps of so many MiB: zeros, written and synced when a write needs them."
            }
        }
    }

    /// The size of a step in bytes, for an allocation that grows in steps.
    pub fn step_bytes(self) -> Option<u64> {
        match self {
            Allocation::Step { mib } => Some(u64::from(mib) * MIB),
            _ => None,
        }
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allocation::Append => f.pad("append"),
            Allocation::Overwrite => f.pad("overwrite"),
            Allocation::ZeroFilled => f.pad("zero-filled"),
            Allocation::ZeroFilledSettled => f.pad("zero-filled-settled"),
            Allocation::Unwritten => f.pad("unwritten"),
            Allocation::Sparse => f.pad("sparse"),
            Allocation::WriteZeroes => f.pad("write-zeroes"),
            Allocation::Recycled => f.pad("recycled"),
            Allocation::Step { mib } => f.pad(&format!("step-{mib}m")),
        }
    }
}

impl std::str::FromStr for Allocation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if let Some(known) = Allocation::ALL.into_iter().find(|a| a.to_string() == name) {
            return Ok(known);
        }
        let step = name.strip_prefix("step-").and_then(|s| s.strip_suffix('m'));
        match step.map(str::parse::<u32>) {
            Some(Ok(mib)) if (1..=4096).contains(&mib) => Ok(Allocation::Step { mib }),
            Some(_) => Err(format!("'{name}': a step is from step-1m to step-4096m")),
            None => {
                let names: Vec<String> = Allocation::ALL.iter().map(ToString::to_string).collect();
                Err(format!(
                    "no allocation is called '{name}'; there are: {}",
                    names.join(", ")
                ))
            }
        }
    }
}

/// Reserves `len` bytes as unwritten extents and sets the file's size.
pub fn allocate_unwritten(file: &File, len: u64) -> io::Result<()> {
    let none = FallocateFlags::empty();
    Ok(retry_on_intr(|| fallocate(file, none, 0, len))?)
}

/// Allocates `len` bytes as *written* zeros by `FALLOC_FL_WRITE_ZEROES`.
///
/// Needs Linux 6.17, a filesystem that knows the flag and a device that can unmap to zeros;
/// otherwise the error is `EOPNOTSUPP` (or `EINVAL` from an older kernel).
pub fn allocate_write_zeroes(file: &File, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::from_bits_retain(FALLOC_FL_WRITE_ZEROES);
    Ok(retry_on_intr(|| fallocate(file, flags, 0, len))?)
}

/// Why a file could not be prepared.
#[derive(Debug)]
pub enum PrepareError {
    /// This filesystem or device cannot do it: a result.
    Unsupported(String),
    /// Something failed.
    Io(io::Error),
}

impl From<io::Error> for PrepareError {
    fn from(error: io::Error) -> Self {
        PrepareError::Io(error)
    }
}

/// Gives the new, empty `file` the `len` bytes of space that it has by `allocation` before anything is
/// written to it: none, if it comes by its space by being written.
pub fn reserve(file: &File, allocation: Allocation, len: u64) -> Result<(), PrepareError> {
    match allocation {
        Allocation::Unwritten => {
            allocate_unwritten(file, len).map_err(|error| unsupported("fallocate", error))
        }
        Allocation::WriteZeroes => allocate_write_zeroes(file, len)
            .map_err(|error| unsupported("FALLOC_FL_WRITE_ZEROES", error)),
        Allocation::Sparse => Ok(file.set_len(len)?),
        _ => Ok(()),
    }
}

/// Tells "not supported here" from other failures of allocating space by `what`.
fn unsupported(what: &str, error: io::Error) -> PrepareError {
    match error.kind() {
        io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput => PrepareError::Unsupported(
            format!("{what} is not supported by this filesystem and device"),
        ),
        _ => PrepareError::Io(error),
    }
}

/// Writes zeros from `from` to `to` through the page cache, 1 MiB at a time, and does not sync.
///
/// `stop` is asked before every chunk; when it says yes the call ends with
/// [`io::ErrorKind::Interrupted`].
pub fn zero_fill(file: &File, from: u64, to: u64, stop: &dyn Fn() -> bool) -> io::Result<()> {
    let zeros = vec![0u8; MIB as usize];
    let mut offset = from;
    while offset < to {
        if stop() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = (to - offset).min(MIB) as usize;
        file.write_all_at(&zeros[..len], offset)?;
        offset += len as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back() {
        for allocation in Allocation::ALL {
            assert_eq!(allocation.to_string().parse(), Ok(allocation));
        }
        assert_eq!("step-8m".parse(), Ok(Allocation::Step { mib: 8 }));
    }

    #[test]
    fn wrong_names_say_what_there_is() {
        assert!(
            "appending"
                .parse::<Allocation>()
                .unwrap_err()
                .contains("append, overwrite")
        );
        assert!(
            "step-0m"
                .parse::<Allocation>()
                .unwrap_err()
                .contains("step-1m")
        );
        assert!(
            "step-xm"
                .parse::<Allocation>()
                .unwrap_err()
                .contains("step-1m")
        );
    }

    #[test]
    fn zero_filling_stops_when_told() {
        let file = tempfile::tempfile().unwrap();
        let error = zero_fill(&file, 0, 10, &|| true).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        zero_fill(&file, 0, 3 * MIB + 5, &|| false).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 3 * MIB + 5);
    }
}
