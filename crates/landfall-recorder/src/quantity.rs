//! Times, rates, sizes and counts as people write and read them.
//!
//! Everything is a whole number inside (nanoseconds, bytes per second, bytes, millionths) and exact in
//! text, so that what is printed is read back as the same number.

use std::ops::RangeInclusive;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes per second; a kB is 1,000 bytes. [`UNLIMITED`] has a name.
    Rate,
    /// Bytes; a K is 1,024 of them. [`AS_DEVICE`] has a name.
    Size,
    /// A plain number. [`UNLIMITED`] has a name.
    Count,
    /// Bytes as drives are sold: a kB is 1,000 of them.
    Capacity,
    /// Millionths, written in per cent.
    Share,
    /// Millionths, written as a plain number that may have a fraction.
    Factor,
}

/// The rate, or the number of operations per second, that limits nothing.
pub(crate) const UNLIMITED: u64 = u64::MAX;
/// The size that means: as large as the device.
pub(crate) const AS_DEVICE: u64 = 0;

/// More digits than these are no number that anybody means.
const MOST_DIGITS: usize = 15;

impl Unit {
    /// Names and factors, the smallest first.
    fn factors(self) -> &'static [(&'static str, u64)] {
        match self {
            Unit::Time => &[
                ("ns", 1),
                ("us", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
            ],
            Unit::Rate => &[
                ("B/s", 1),
                ("kB/s", 1_000),
                ("MB/s", 1_000_000),
                ("GB/s", 1_000_000_000),
            ],
            Unit::Size => &[
                ("", 1),
                ("K", 1 << 10),
                ("M", 1 << 20),
                ("G", 1 << 30),
                ("T", 1 << 40),
            ],
            Unit::Count => &[("", 1)],
            Unit::Capacity => &[
                ("B", 1),
                ("kB", 1_000),
                ("MB", 1_000_000),
                ("GB", 1_000_000_000),
                ("TB", 1_000_000_000_000),
                ("PB", 1_000_000_000_000_000),
            ],
            Unit::Share => &[("%", 10_000)],
            Unit::Factor => &[("", 1_000_000)],
        }
    }

    /// The number that has a name, and its name.
    fn special(self) -> Option<(u64, &'static str)> {
        match self {
            Unit::Time | Unit::Capacity | Unit::Share | Unit::Factor => None,
            Unit::Rate | Unit::Count => Some((UNLIMITED, "unlimited")),
            Unit::Size => Some((AS_DEVICE, "device")),
        }
    }

    /// What to write: `a time; write 20us, 1.5ms or 2s`.
    fn advice(self) -> &'static str {
        match self {
            Unit::Time => "a time; write 20us, 1.5ms or 2s",
            Unit::Rate => "a rate; write 800kB/s, 150MB/s or 2GB/s",
            Unit::Size => "a size; write 512K, 64M or 1G",
            Unit::Count => "a number; write 1, 32 or 3000",
            Unit::Capacity => "a capacity; write 480GB, 1TB or 1.2PB",
            Unit::Share => "a share; write 7%, 12.5% or 80%",
            Unit::Factor => "a factor; write 1, 2.5 or 10",
        }
    }

    /// The number in `key=text`, if it is within the limits; else a sentence that says what to write.
    pub fn setting(
        self,
        key: &str,
        text: &str,
        limits: &RangeInclusive<u64>,
    ) -> Result<u64, String> {
        let value = self
            .parse(text)
            .ok_or_else(|| format!("'{key}={text}' is not {}", self.advice()))?;
        if !limits.contains(&value) {
            let (least, most) = (self.name(*limits.start()), self.name(*limits.end()));
            return Err(format!("'{key}={text}' is not from {least} to {most}"));
        }
        Ok(value)
    }

    /// The number in the text; `None` if there is none, or none that is whole in the smallest unit.
    pub fn parse(self, text: &str) -> Option<u64> {
        if let Some((value, name)) = self.special()
            && text == name
        {
            return Some(value);
        }
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let digits = text.len() - text.trim_start_matches(is_number).len();
        let (number, unit) = text.split_at(digits);
        let unit = if unit == "µs" { "us" } else { unit };
        let (_, factor) = self.factors().iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        if whole.len() > MOST_DIGITS || fraction.len() > MOST_DIGITS {
            return None;
        }
        let scale = 10u128.pow(fraction.len() as u32);
        let whole: u128 = whole.parse().ok()?;
        let scaled = (whole * scale + fraction.parse::<u128>().ok()?) * u128::from(*factor);
        if !scaled.is_multiple_of(scale) {
            return None;
        }
        u64::try_from(scaled / scale).ok()
    }

    /// The number in the largest unit in which it is at least 1 and exact: `1.5ms`, `115MB/s`, `64M`.
    pub fn name(self, value: u64) -> String {
        if let Some((special, name)) = self.special()
            && value == special
        {
            return name.to_owned();
        }
        // A fraction of a binary unit may not be exact in decimals.
        let has_fractions = !matches!(self, Unit::Size | Unit::Count);
        let fits = |factor: u64| value >= factor && (has_fractions || value.is_multiple_of(factor));
        let (unit, factor) = match self.factors().iter().rev().find(|(_, f)| fits(*f)) {
            Some(found) => *found,
            None => self.factors()[0],
        };
        let (whole, rest) = (value / factor, value % factor);
        if rest == 0 {
            return format!("{whole}{unit}");
        }
        let digits = factor.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNITS: [Unit; 7] = [
        Unit::Time,
        Unit::Rate,
        Unit::Size,
        Unit::Count,
        Unit::Capacity,
        Unit::Share,
        Unit::Factor,
    ];

    #[test]
    fn numbers_are_read_in_the_usual_spellings() {
        assert_eq!(Unit::Time.parse("8.33ms"), Some(8_330_000));
        assert_eq!(Unit::Time.parse("20us"), Some(20_000));
        assert_eq!(Unit::Time.parse("20µs"), Some(20_000));
        assert_eq!(Unit::Time.parse("0s"), Some(0));
        assert_eq!(Unit::Rate.parse("1.5MB/s"), Some(1_500_000));
        assert_eq!(Unit::Rate.parse("unlimited"), Some(UNLIMITED));
        assert_eq!(Unit::Size.parse("0.5G"), Some(512 << 20));
        assert_eq!(Unit::Size.parse("device"), Some(AS_DEVICE));
        assert_eq!(Unit::Count.parse("3000"), Some(3000));
        assert_eq!(Unit::Capacity.parse("1.2PB"), Some(1_200_000_000_000_000));
        assert_eq!(Unit::Share.parse("7.5%"), Some(75_000));
        assert_eq!(Unit::Factor.parse("2.5"), Some(2_500_000));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for wrong in [
            "",
            "ms",
            "5",
            "-1ms",
            "1.2.3ms",
            ".5ms",
            "1.ms",
            "0.1ns",
            "1 ms",
            "1e3ms",
            "1234567890123456ms",
            "999999999999999s",
            "unlimited",
        ] {
            assert_eq!(Unit::Time.parse(wrong), None, "{wrong}");
        }
        assert_eq!(Unit::Rate.parse("150"), None);
        assert_eq!(Unit::Size.parse("64MB/s"), None);
        assert_eq!(Unit::Count.parse("1.5"), None);
        assert_eq!(Unit::Capacity.parse("1T"), None);
        assert_eq!(Unit::Share.parse("7"), None);
        assert_eq!(Unit::Share.parse("0.00001%"), None);
        assert_eq!(Unit::Factor.parse("2x"), None);
    }

    #[test]
    fn names_are_short() {
        assert_eq!(Unit::Time.name(8_333_333), "8.333333ms");
        assert_eq!(Unit::Time.name(1_050_000_000), "1.05s");
        assert_eq!(Unit::Time.name(0), "0ns");
        assert_eq!(Unit::Rate.name(115_000_000), "115MB/s");
        assert_eq!(Unit::Size.name(64 << 20), "64M");
        assert_eq!(Unit::Size.name((64 << 20) + 1), "67108865");
        assert_eq!(Unit::Count.name(UNLIMITED), "unlimited");
        assert_eq!(Unit::Capacity.name(1_500_000_000_000), "1.5TB");
        assert_eq!(Unit::Share.name(75_000), "7.5%");
        assert_eq!(Unit::Share.name(500), "0.05%");
        assert_eq!(Unit::Factor.name(2_500_000), "2.5");
    }

    proptest! {
        #[test]
        fn a_name_is_read_back(value in 0u64..1_000_000_000_000_000, unit in 0..UNITS.len()) {
            prop_assert_eq!(UNITS[unit].parse(&UNITS[unit].name(value)), Some(value));
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,40}", unit in 0..UNITS.len()) {
            let _ = UNITS[unit].parse(&text);
        }
    }
}
