//! What the terminal and the report say of the results in the same words.

use super::{BreakEven, Cost, DumpVsLogResults};
use crate::numbers::thousands;
use landfall_results::{Policy, Saving, Way};

/// Which accepted updates a power cut may take, by what is promised: no power has been cut here to see it.
pub fn loses(saving: Saving) -> &'static str {
    let policy = match saving.way() {
        Way::Dump | Way::Replay => return "all changes since the last dump",
        Way::File(policy) | Way::Log(policy) | Way::Snapshot(policy) => policy,
    };
    match policy {
        // What its options let the engine's log keep back, as long as nobody commits.
        Policy::Never => "up to 64 MiB of updates, however old they are",
        Policy::EverySecond => "up to a second of updates, and as long as a commit takes",
        Policy::Group | Policy::EveryUpdate => {
            "nothing that was accepted, where filesystem and disk keep what a sync promises"
        }
    }
}

/// Where the costs of a log and of the dump meet.
pub fn crossing(found: &DumpVsLogResults, log: Saving, cost: Cost) -> Option<&BreakEven> {
    found
        .break_even
        .iter()
        .find(|point| (point.saving, point.cost) == (log, cost))
        .filter(|point| point.share.median.is_finite() && point.share.median > 0.0)
}

/// A share in percent, to about two digits.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        value if value >= 99.5 => format!("{}%", thousands(value)),
        value if value >= 9.95 => format!("{value:.0}%"),
        value if value >= 0.995 => format!("{value:.1}%"),
        value if value >= 0.0995 => format!("{value:.2}%"),
        value if value >= 0.00095 => {
            format!("{value:.4}")
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
                + "%"
        }
        value if value > 0.0 => "under 0.001%".to_owned(),
        _ => "0%".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump_vs_log::fixtures::dump_vs_log_results;

    #[test]
    fn shares_have_two_digits() {
        let texts = [23.0, 0.42, 0.0123, 0.00263, 0.00001234, 0.000001, 0.0].map(percent);
        assert_eq!(
            texts,
            [
                "2,300%",
                "42%",
                "1.2%",
                "0.26%",
                "0.0012%",
                "under 0.001%",
                "0%"
            ]
        );
    }

    #[test]
    fn a_crossing_at_nothing_is_none() {
        let mut found = dump_vs_log_results();
        let share = |found: &DumpVsLogResults| {
            crossing(found, Saving::LogNever, Cost::Seconds).map(|point| point.share.median)
        };
        assert!(share(&found).is_some_and(|share| (0.7..0.8).contains(&share)));
        for point in &mut found.break_even {
            point.share.median = 0.0;
        }
        assert_eq!(share(&found), None);
    }
}
