//! Quantiles of Student's t distribution: how far a value may lie from the middle before chance alone is unlikely.

use statrs::function::beta::beta_reg;

/// Beyond so many degrees of freedom it is the normal distribution for every purpose here.
const NORMAL: f64 = 1e5;

/// The value that |t| exceeds with this probability, for so many degrees of freedom; infinite where that is 0.
pub(super) fn exceeded_with(probability: f64, freedom: f64) -> f64 {
    if probability <= 0.0 {
        return f64::INFINITY;
    }
    let freedom = freedom.min(NORMAL);
    // Bisection of the logarithm: the tails of few degrees of freedom are long.
    let (mut low, mut high) = (-20.0_f64, 200.0_f64);
    for _ in 0..56 {
        let middle = (low + high) / 2.0;
        if both_tails(middle.exp(), freedom) > probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.exp()
}

/// The probability that |t| exceeds `t`: a regularised incomplete beta function (Abramowitz and Stegun 1964, 26.7.1).
fn both_tails(t: f64, freedom: f64) -> f64 {
    beta_reg(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against printed tables, both tails together.
    #[test]
    fn quantiles_are_those_of_tables() {
        for (probability, freedom, expected) in [
            (0.05, 1.0, 12.706_2),
            (0.05, 3.0, 3.182_4),
            (0.001, 5.0, 6.868_8),
            (0.01, 30.0, 2.750_0),
            (0.05, 1e9, 1.959_96),
            (0.001, 1e9, 3.290_5),
            (2e-9, 1e9, 5.997_8),
        ] {
            let found = exceeded_with(probability, freedom);
            assert!(
                (found / expected - 1.0).abs() < 2e-4,
                "{probability}, {freedom}: {found}"
            );
        }
        assert_eq!(exceeded_with(0.0, 5.0), f64::INFINITY);
    }

    #[test]
    fn what_is_exceeded_less_often_lies_further_out() {
        for freedom in [3.0, 8.0, 40.0, 1e5] {
            let quantiles = [1e-1, 1e-3, 1e-5, 1e-7].map(|one| exceeded_with(one, freedom));
            assert!(quantiles.is_sorted(), "{freedom}: {quantiles:?}");
        }
    }
}
