//! A drive by numbers.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::quantity::Unit;

/// Millionths in the whole.
const WHOLE: u64 = 1_000_000;

const UTILISATION: RangeInclusive<u64> = WHOLE / 10..=WHOLE / 100 * 99;
/// Those that make the same utilisations, and a little less.
const OVER_PROVISIONING: RangeInclusive<u64> = WHOLE / 50..=9 * WHOLE;
const PAGE: RangeInclusive<u64> = 512..=64 << 10;
const BLOCK: RangeInclusive<u64> = 2..=1 << 16;
const SIZE: RangeInclusive<u64> = 1_000_000..=1_000_000_000_000_000;
const TBW: RangeInclusive<u64> = 1_000_000..=1_000_000_000_000_000_000;
const RATED: RangeInclusive<u64> = WHOLE..=100 * WHOLE;

const KEYS: &str = "collector, over-provisioning, utilisation, page, block, size, tbw, rated";

/// Which block is erased when space is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// The one with the fewest valid pages.
    Greedy,
    /// The one that was filled first.
    Fifo,
}

impl Collector {
    const ALL: [Collector; 2] = [Collector::Greedy, Collector::Fifo];

    fn name(self) -> &'static str {
        match self {
            Collector::Greedy => "greedy",
            Collector::Fifo => "fifo",
        }
    }
}

/// How much more flash there is than data. Both are kept as they were given, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Data over flash.
    Utilisation(u64),
    /// Flash over data, less one.
    OverProvisioning(u64),
}

/// An SSD by numbers, written `collector=fifo,over-provisioning=28%,size=480GB,tbw=2PB`. What is not
/// given is as in the [default](Drive::default). The text of a drive names all of its numbers.
///
/// | key | meaning | default |
/// |---|---|---|
/// | `collector` | `greedy` or `fifo` | `greedy` |
/// | `over-provisioning` | flash beyond the pages in use, over those pages: of a drive that is full | 7% |
/// | `utilisation` | pages in use over all flash pages; instead of `over-provisioning` | |
/// | `page` | bytes of a flash page, a power of two | 4K |
/// | `block` | pages of a block, which is erased at once | 64 |
/// | `size` | bytes that the drive holds for the host | 1TB |
/// | `tbw` | bytes that the host may write, by the drive's rating | 600TB |
/// | `rated` | write amplification that the rating assumes | 1 |
///
/// Why the defaults are what they are is in `docs/reference/drives.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drive {
    collector: Collector,
    room: Room,
    page: u64,
    block: u64,
    size: u64,
    tbw: u64,
    /// Millionths.
    rated: u64,
}

impl Default for Drive {
    /// A full consumer drive of 1 TB, rated for 600 TB.
    fn default() -> Drive {
        Drive {
            collector: Collector::Greedy,
            room: Room::OverProvisioning(WHOLE / 100 * 7),
            page: 4096,
            block: 64,
            size: 1_000_000_000_000,
            tbw: 600_000_000_000_000,
            rated: WHOLE,
        }
    }
}

impl Drive {
    /// Which block is erased when space is needed.
    pub fn collector(&self) -> Collector {
        self.collector
    }

    /// Pages in use over all flash pages.
    pub fn utilisation(&self) -> f64 {
        match self.room {
            Room::Utilisation(share) => share as f64 / WHOLE as f64,
            Room::OverProvisioning(share) => WHOLE as f64 / (WHOLE + share) as f64,
        }
    }

    /// Bytes of a flash page, a power of two.
    pub fn page(&self) -> u32 {
        self.page as u32
    }

    /// Pages of a block.
    pub fn block(&self) -> u32 {
        self.block as u32
    }

    /// Bytes that it holds for the host.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that the host may write by its rating.
    pub fn tbw(&self) -> u64 {
        self.tbw
    }

    /// Write amplification that the rating assumes.
    pub fn rated(&self) -> f64 {
        self.rated as f64 / WHOLE as f64
    }

    /// Bytes that its flash may be programmed with: what the host may write by the rating, times the
    /// amplification that the rating assumes.
    pub fn nand_endurance(&self) -> f64 {
        self.tbw as f64 * self.rated()
    }

    /// How often that programs as many bytes as the drive holds. Where it is far from the number of
    /// cycles that such flash is known to take, some thousand, `rated` is wrong.
    pub fn cycles(&self) -> f64 {
        self.nand_endurance() / self.size as f64
    }

    /// Years until that is used up by a host that writes so many bytes a second, each of which costs
    /// `amplification` bytes of flash. Infinite if nothing is written.
    pub fn years(&self, host_bytes_per_second: f64, amplification: f64) -> f64 {
        const YEAR: f64 = 365.25 * 24.0 * 3600.0;
        self.nand_endurance() / (host_bytes_per_second * amplification) / YEAR
    }

    /// Blocks of the flash that holds so many pages, to the nearest, but always with a page to spare.
    pub(super) fn blocks(&self, pages: u64) -> u64 {
        let (numerator, denominator) = match self.room {
            Room::Utilisation(share) => (WHOLE, share),
            Room::OverProvisioning(share) => (WHOLE + share, WHOLE),
        };
        let dividend = u128::from(pages) * u128::from(numerator);
        let divisor = u128::from(denominator) * u128::from(self.block);
        let nearest = (dividend + divisor / 2) / divisor;
        (pages / self.block + 1).max(u64::try_from(nearest).unwrap_or(u64::MAX))
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "collector" => {
                let found = Collector::ALL.into_iter().find(|one| one.name() == text);
                self.collector = found.ok_or_else(|| {
                    let names = Collector::ALL.map(Collector::name).join(", ");
                    format!("no collector is '{text}'; there are: {names}")
                })?;
            }
            "over-provisioning" => {
                let share = Unit::Share.setting(key, text, &OVER_PROVISIONING)?;
                self.room = Room::OverProvisioning(share);
            }
            "utilisation" => {
                let share = Unit::Share.setting(key, text, &UTILISATION)?;
                self.room = Room::Utilisation(share);
            }
            "page" => {
                self.page = Unit::Size.setting(key, text, &PAGE)?;
                if !self.page.is_power_of_two() {
                    return Err(format!(
                        "'{key}={text}' is not a power of two; write 4K, 8K or 16K"
                    ));
                }
            }
            "block" => self.block = Unit::Count.setting(key, text, &BLOCK)?,
            "size" => self.size = Unit::Capacity.setting(key, text, &SIZE)?,
            "tbw" => self.tbw = Unit::Capacity.setting(key, text, &TBW)?,
            "rated" => self.rated = Unit::Factor.setting(key, text, &RATED)?,
            _ => return Err(format!("a drive has no '{key}'; it has: {KEYS}")),
        }
        Ok(())
    }
}

impl fmt::Display for Drive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (room, share) = match self.room {
            Room::OverProvisioning(share) => ("over-provisioning", share),
            Room::Utilisation(share) => ("utilisation", share),
        };
        write!(
            f,
            "collector={},{room}={},page={},block={},size={},tbw={},rated={}",
            self.collector.name(),
            Unit::Share.name(share),
            Unit::Size.name(self.page),
            Unit::Count.name(self.block),
            Unit::Capacity.name(self.size),
            Unit::Capacity.name(self.tbw),
            Unit::Factor.name(self.rated),
        )
    }
}

impl FromStr for Drive {
    type Err = String;

    fn from_str(text: &str) -> Result<Drive, String> {
        let mut drive = Drive::default();
        let mut given = Vec::new();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                return Err(format!(
                    "'{part}' is no number of a drive; write collector=fifo,tbw=600TB, say; there are: {KEYS}"
                ));
            };
            if given.contains(&key) {
                return Err(format!("'{key}' is given twice"));
            }
            drive.set(key, value)?;
            given.push(key);
        }
        if given.contains(&"utilisation") && given.contains(&"over-provisioning") {
            return Err("'utilisation' and 'over-provisioning' say the same; give one".to_owned());
        }
        Ok(drive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refusal(text: &str) -> String {
        text.parse::<Drive>().unwrap_err()
    }

    #[test]
    fn a_drive_names_all_of_its_numbers() {
        for (text, full) in [
            (
                "collector=greedy",
                "collector=greedy,over-provisioning=7%,page=4K,block=64,size=1TB,tbw=600TB,rated=1",
            ),
            (
                "rated=2.5,tbw=1.2PB,size=480GB,block=256,page=16K,utilisation=90.5%,collector=fifo",
                "collector=fifo,utilisation=90.5%,page=16K,block=256,size=480GB,tbw=1.2PB,rated=2.5",
            ),
        ] {
            let drive: Drive = text.parse().unwrap();
            assert_eq!(drive.to_string(), full);
            assert_eq!(full.parse(), Ok(drive));
        }
        assert_eq!("block=64".parse(), Ok(Drive::default()));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_there_is() {
        assert!(refusal("").contains("there are: collector, over-provisioning"));
        assert!(refusal("nvme").contains("'nvme' is no number of a drive; write"));
        assert!(refusal("collector=fifo,").contains("'' is no number"));
        assert!(refusal("colour=red").contains("no 'colour'; it has: collector"));
        assert!(refusal("collector=lru").contains("there are: greedy, fifo"));
        assert!(refusal("over-provisioning=7").contains("is not a share; write 7%"));
        assert!(refusal("over-provisioning=0%").contains("from 2% to 900%"));
        assert!(refusal("utilisation=100%").contains("from 10% to 99%"));
        assert!(refusal("page=3K").contains("not a power of two; write 4K"));
        assert!(refusal("page=256").contains("from 512 to 64K"));
        assert!(refusal("block=1").contains("from 2 to 65536"));
        assert!(refusal("size=1T").contains("is not a capacity; write 480GB"));
        assert!(refusal("tbw=600").contains("is not a capacity"));
        assert!(refusal("rated=0.5").contains("from 1 to 100"));
        assert!(refusal("block=64,block=64").contains("twice"));
        assert!(refusal("utilisation=90%,over-provisioning=7%").contains("give one"));
    }

    #[test]
    fn flash_is_as_large_as_the_utilisation_says() {
        let drive: Drive = "utilisation=80%".parse().unwrap();
        assert_eq!(drive.blocks(64 * 800), 1000);
        let drive: Drive = "over-provisioning=25%".parse().unwrap();
        assert!((drive.utilisation() - 0.8).abs() < 1e-12);
        assert_eq!(drive.blocks(64 * 800), 1000);
        // To the nearest block, and never so few that nothing is to spare.
        assert_eq!(drive.blocks(64 * 801), 1001);
        assert_eq!(drive.blocks(64 * 802), 1003);
        for pages in [0, 1, 63, 64, 65] {
            assert!(drive.blocks(pages) * 64 > pages);
        }
        assert!(drive.blocks(u64::MAX) > u64::MAX / 64);
    }

    #[test]
    fn endurance_is_the_rating_by_the_amplification_it_assumes() {
        let drive: Drive = "tbw=600TB,rated=2,size=1TB".parse().unwrap();
        assert_eq!(drive.nand_endurance(), 1.2e15);
        assert_eq!(drive.cycles(), 1200.0);
        // 1.2 PB at 4 MB/s of flash: 3e8 seconds.
        assert!((drive.years(1e6, 4.0) - 3e8 / 31_557_600.0).abs() < 1e-9);
        assert_eq!(drive.years(0.0, 4.0), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn the_text_of_a_drive_makes_it_again(
            fifo: bool,
            is_utilisation: bool,
            share in UTILISATION,
            page in 9..=16u32,
            block in BLOCK,
            size in SIZE,
            tbw in TBW,
            rated in RATED,
        ) {
            let drive = Drive {
                collector: Collector::ALL[usize::from(fifo)],
                room: if is_utilisation { Room::Utilisation(share) } else { Room::OverProvisioning(share) },
                page: 1 << page,
                block,
                size,
                tbw,
                rated,
            };
            prop_assert_eq!(drive.to_string().parse::<Drive>(), Ok(drive));
        }

        #[test]
        fn no_text_is_too_strange(text in "[a-z0-9=,.%-]{0,40}") {
            let _ = text.parse::<Drive>();
        }
    }
}
