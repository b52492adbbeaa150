//! How many power cuts may lose something, given that some were tried.

use statrs::distribution::{Beta, ContinuousCDF};

/// The confidence with which it is said.
const CONFIDENCE: f64 = 0.95;

/// The share of cuts that lose something, which with 95% confidence is not exceeded if `losing` of `cuts` did: the
/// one-sided bound of Clopper and Pearson (1934). `None` without a cut.
///
/// It is the share at which so few losses, or fewer, are seen in 5% of all series of so many cuts: a quantile of the beta
/// distribution.
pub fn losing_at_most(losing: u64, cuts: u64) -> Option<f64> {
    if cuts == 0 {
        return None;
    }
    if losing >= cuts {
        return Some(1.0);
    }
    let shares = Beta::new(losing as f64 + 1.0, (cuts - losing) as f64);
    shares.ok().map(|shares| shares.inverse_cdf(CONFIDENCE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(losing: u64, cuts: u64) -> f64 {
        (losing_at_most(losing, cuts).unwrap() * 1e4).round() / 100.0
    }

    #[test]
    fn without_a_loss_it_is_the_rule_of_three_and_exact() {
        // 1 - 0.05^(1/n)
        assert_eq!(percent(0, 1), 95.0);
        assert_eq!(percent(0, 20), 13.91);
        assert_eq!(percent(0, 59), 4.95);
        assert_eq!(percent(0, 299), 1.0);
        assert_eq!(percent(0, 1_000_000), 0.0);
    }

    #[test]
    fn with_losses_it_is_as_published_tables_have_it() {
        // The upper ends of two-sided 90% intervals of Clopper and Pearson.
        assert_eq!(percent(1, 10), 39.42);
        assert_eq!(percent(1, 20), 21.61);
        assert_eq!(percent(2, 20), 28.26);
        assert_eq!(percent(10, 20), 69.8);
        assert_eq!(percent(20, 20), 100.0);
    }

    #[test]
    fn nothing_is_said_without_a_cut() {
        assert_eq!(losing_at_most(0, 0), None);
    }

    #[test]
    fn more_losses_never_make_it_better_and_more_cuts_never_worse() {
        for cuts in 1..60 {
            for losing in 0..cuts {
                let one = losing_at_most(losing, cuts).unwrap();
                assert!(one >= losing as f64 / cuts as f64);
                assert!(losing_at_most(losing + 1, cuts).unwrap() >= one);
                assert!(losing_at_most(losing, cuts + 1).unwrap() <= one);
            }
        }
    }
}
