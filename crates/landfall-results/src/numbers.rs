//! Numbers as tables and the report print them.

use crate::stats::Estimate;

/// How a number is written.
pub type Print = fn(f64) -> String;

/// What stands where there is no value.
pub const NOTHING: &str = "–";

/// Two decimals.
pub fn two(value: f64) -> String {
    format!("{value:.2}")
}

/// About three significant digits.
pub fn short(value: f64) -> String {
    match value {
        value if value >= 1e4 => thousands(value),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => two(value),
    }
}

/// A whole number with commas.
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The interval of an estimate.
pub fn interval(estimate: &Estimate, print: fn(f64) -> String) -> String {
    format!("{}–{}", print(estimate.low), print(estimate.high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(1_234_567.4), "1,234,567");
        assert_eq!(thousands(999.6), "1,000");
        assert_eq!(short(12_345.0), "12,345");
        assert_eq!(short(99.96), "100");
        assert_eq!(short(9.996), "10.0");
        assert_eq!(short(0.123), "0.12");
    }
}
