//! How far values lie apart, and how many there is room for.

/// More rows than this are no picture any more.
pub const MOST_ROWS: usize = 40;
/// Rates further apart than this do not fit on one linear scale.
const WIDEST_LINEAR: f64 = 20.0;

/// Whether these values need a logarithmic scale.
pub fn is_wide(values: impl Iterator<Item = f64>) -> bool {
    span(values) > WIDEST_LINEAR
}

/// The greatest of these values over the least; 0 where that says nothing.
pub fn span(values: impl Iterator<Item = f64>) -> f64 {
    let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    if least > 0.0 { most / least } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_lie_far_apart_are_wide() {
        assert!(is_wide([1.0, 30.0].into_iter()));
        assert!(!is_wide([1.0, 10.0].into_iter()));
        assert!(!is_wide([0.0, 30.0].into_iter()), "0 has no logarithm");
        assert_eq!(span([].into_iter()), 0.0);
    }
}
