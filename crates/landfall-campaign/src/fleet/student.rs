//! Quantiles of Student's t distribution: how far a value may lie from the middle before chance alone is unlikely.

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
    let x = freedom / (freedom + t * t);
    // Of x near 1 its complement is exact, where 1 - x would not be.
    let complement = t * t / (freedom + t * t);
    let (a, b) = (freedom / 2.0, 0.5);
    if x < (a + 1.0) / (a + b + 2.0) {
        incomplete_beta(a, b, x, complement)
    } else {
        1.0 - incomplete_beta(b, a, complement, x)
    }
}

/// The regularised incomplete beta function for `x` below its middle, and `y` = 1 - `x`: the continued fraction 26.5.8 of the
/// same book, from the front by the method of Lentz (1976).
fn incomplete_beta(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * y.ln()).exp() / a;
    let tiny = f64::MIN_POSITIVE * 1e10;
    let away = |value: f64| if value.abs() < tiny { tiny } else { value };
    let (mut fraction, mut c, mut d) = (1.0, 1.0, 1.0 / away(1.0 - (a + b) * x / (a + 1.0)));
    fraction *= d;
    for step in 1..1_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let before = fraction;
        for coefficient in [even, odd] {
            d = 1.0 / away(1.0 + coefficient * d);
            c = away(1.0 + coefficient / c);
            fraction *= c * d;
        }
        if (fraction / before - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function: Stirling's series, beyond 10.
fn ln_gamma(value: f64) -> f64 {
    let (mut x, mut below) = (value, 0.0);
    while x < 10.0 {
        below += x.ln();
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series =
        (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))) / x;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - below
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
