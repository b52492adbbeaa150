//! What a device writes whole or not at all.

use std::fmt;
use std::str::FromStr;

use crate::event::SECTOR;

/// What a device writes whole or not at all when the power goes: so many bytes that begin at a multiple
/// of their number, if one write has them all or a part of them.
///
/// 512 bytes is what any disk keeps to. Disks with physical sectors of 4096 bytes keep to those, and some
/// drives and cloud volumes promise more (NVMe's AWUPF, "torn write prevention").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicUnit(u32);

impl AtomicUnit {
    /// The most that can be asked for, in bytes.
    pub const MOST: u32 = 1 << 20;

    /// In bytes.
    pub fn bytes(self) -> u64 {
        self.0.into()
    }

    /// In sectors.
    pub(crate) fn sectors(self) -> u64 {
        self.bytes() / SECTOR as u64
    }
}

impl Default for AtomicUnit {
    fn default() -> AtomicUnit {
        AtomicUnit(SECTOR as u32)
    }
}

impl TryFrom<u64> for AtomicUnit {
    type Error = String;

    fn try_from(bytes: u64) -> Result<AtomicUnit, String> {
        let known = u32::try_from(bytes).ok();
        known
            .filter(|bytes| bytes.is_power_of_two())
            .filter(|bytes| (SECTOR as u32..=AtomicUnit::MOST).contains(bytes))
            .map(AtomicUnit)
            .ok_or_else(|| {
                format!(
                    "{bytes} bytes are no unit of a disk: it is a power of two from 512 to 1048576"
                )
            })
    }
}

/// As bytes, or with a `K`.
impl FromStr for AtomicUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<AtomicUnit, String> {
        let (number, factor) = match text.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1024),
            None => (text, 1),
        };
        let bytes = number.parse::<u64>().ok();
        let bytes = bytes.and_then(|number| number.checked_mul(factor));
        bytes
            .ok_or_else(|| format!("'{text}' is no size; write 512, 4K or 16K"))?
            .try_into()
    }
}

impl fmt::Display for AtomicUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes.is_multiple_of(1024) => write!(f, "{}K", bytes / 1024),
            bytes => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_back_as_they_are_written() {
        for text in ["512", "4K", "16K", "1024K"] {
            // 1 KiB and more have a K.
            assert_eq!(text.parse::<AtomicUnit>().unwrap().to_string(), text);
        }
        assert_eq!("4096".parse::<AtomicUnit>().unwrap().to_string(), "4K");
        for wrong in ["", "4M", "511", "256", "3K", "2048K", "-1"] {
            assert!(wrong.parse::<AtomicUnit>().is_err(), "{wrong}");
        }
    }
}
