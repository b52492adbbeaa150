//! What can be wrong with a device besides losing power.

use std::fmt;
use std::str::FromStr;

/// One thing that goes wrong. Writes and flushes are counted from 1, from the moment at which the
/// fault is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The n-th write fails with EIO, and nothing of it reaches the medium.
    WriteError(u64),
    /// The n-th flush fails with EIO, and makes nothing durable.
    FlushError(u64),
    /// From the n-th write on there is no space (ENOSPC), as on a thin volume whose pool is full.
    NoSpace(u64),
    /// From the n-th write on the device refuses all writes (EROFS), as one does that has worn out.
    ReadOnly(u64),
    /// Every flush says that it has been done, and has not.
    LyingFlush,
}

const NAMES: &str = "write-error=N, flush-error=N, no-space=N, read-only=N, lying-flush";

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::WriteError(n) => write!(f, "write-error={n}"),
            Fault::FlushError(n) => write!(f, "flush-error={n}"),
            Fault::NoSpace(n) => write!(f, "no-space={n}"),
            Fault::ReadOnly(n) => write!(f, "read-only={n}"),
            Fault::LyingFlush => f.write_str("lying-flush"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let (name, number) = match text.split_once('=') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let number = number.map(|number| {
            let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
            Some(number)
        });
        Ok(match (name, number) {
            ("lying-flush", None) => Fault::LyingFlush,
            ("write-error", Some(Some(n))) => Fault::WriteError(n),
            ("flush-error", Some(Some(n))) => Fault::FlushError(n),
            ("no-space", Some(Some(n))) => Fault::NoSpace(n),
            ("read-only", Some(Some(n))) => Fault::ReadOnly(n),
            _ => {
                return Err(format!(
                    "'{text}' is no fault; there are: {NAMES} (N from 1)"
                ));
            }
        })
    }
}

/// Why the device refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Io,
    NoSpace,
    ReadOnly,
}

/// Faults, and how far the device is from each.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    faults: Vec<Fault>,
    writes: u64,
    flushes: u64,
}

/// What becomes of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushFate {
    Done,
    Lie,
    Refused(Refusal),
}

impl Faults {
    pub fn new(faults: Vec<Fault>) -> Faults {
        Faults {
            faults,
            writes: 0,
            flushes: 0,
        }
    }

    /// Counts a write; says why it fails, if it does.
    pub fn write(&mut self) -> Option<Refusal> {
        self.writes += 1;
        let writes = self.writes;
        self.faults.iter().find_map(|fault| match *fault {
            Fault::WriteError(n) if n == writes => Some(Refusal::Io),
            Fault::NoSpace(n) if n <= writes => Some(Refusal::NoSpace),
            Fault::ReadOnly(n) if n <= writes => Some(Refusal::ReadOnly),
            _ => None,
        })
    }

    /// Counts a flush; says what becomes of it.
    pub fn flush(&mut self) -> FlushFate {
        self.flushes += 1;
        if self.faults.contains(&Fault::FlushError(self.flushes)) {
            return FlushFate::Refused(Refusal::Io);
        }
        if self.faults.contains(&Fault::LyingFlush) {
            FlushFate::Lie
        } else {
            FlushFate::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for fault in [
            Fault::WriteError(1),
            Fault::FlushError(17),
            Fault::NoSpace(3),
            Fault::ReadOnly(9),
            Fault::LyingFlush,
        ] {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        for wrong in ["", "write-error", "write-error=0", "lying-flush=1", "eio=3"] {
            assert!(wrong.parse::<Fault>().unwrap_err().contains("there are"));
        }
    }

    #[test]
    fn each_fault_strikes_where_it_should() {
        let mut faults = Faults::new(vec![Fault::WriteError(2), Fault::NoSpace(4)]);
        let writes: Vec<_> = (0..5).map(|_| faults.write()).collect();
        let full = Some(Refusal::NoSpace);
        assert_eq!(writes, [None, Some(Refusal::Io), None, full, full]);
        let mut faults = Faults::new(vec![Fault::FlushError(2), Fault::LyingFlush]);
        let flushes: Vec<_> = (0..3).map(|_| faults.flush()).collect();
        let refused = FlushFate::Refused(Refusal::Io);
        assert_eq!(flushes, [FlushFate::Lie, refused, FlushFate::Lie]);
    }
}
