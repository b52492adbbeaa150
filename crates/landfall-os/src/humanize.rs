//! Sizes, durations and words of a command as people write and read them.

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Reads a size: `512`, `8K`, `8k`, `8KiB`, `64M`, `1G`. A K is 1,024 bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no size; write 512, 8K, 64M or 1G");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => KIB,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

/// The shortest exact name of a size that [`parse_size`] reads back: `512`, `8K`, `64M`.
pub fn size_name(bytes: u64) -> String {
    for (unit, name) in [(GIB, "G"), (MIB, "M"), (KIB, "K")] {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// A word as a shell takes it, in quotes where a person would write them: shlex's are also around every `=` and
/// comma, and twice where there is a `^`.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A rounded amount for reading: `640 MiB`, `1.2 GiB`.
pub fn bytes_text(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..MIB => format!("{:.0} KiB", value / KIB as f64),
        MIB..GIB => format!("{:.0} MiB", value / MIB as f64),
        _ => format!("{:.1} GiB", value / GIB as f64),
    }
}

/// A rounded time for reading: `45 s`, `3 min`, `2 h 05 min`.
pub fn duration_text(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..120 => format!("{whole} s"),
        120..7200 => format!("{} min", (whole + 30) / 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_in_the_usual_spellings() {
        assert_eq!(parse_size("512"), Ok(512));
        assert_eq!(parse_size("8k"), Ok(8192));
        assert_eq!(parse_size("8KiB"), Ok(8192));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        for wrong in ["", "K", "8X", "-1", "8.5K", "99999999999G"] {
            assert!(
                parse_size(wrong).unwrap_err().contains("is no size"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn amounts_read_well() {
        assert_eq!(bytes_text(100), "100 bytes");
        assert_eq!(bytes_text(640 << 20), "640 MiB");
        assert_eq!(bytes_text(1288490188), "1.2 GiB");
        assert_eq!(duration_text(44.6), "45 s");
        assert_eq!(duration_text(7500.0), "2 h 05 min");
    }

    proptest! {
        #[test]
        fn a_name_is_read_back(bytes in 0u64..1 << 40) {
            prop_assert_eq!(parse_size(&size_name(bytes)), Ok(bytes));
        }
    }
}
