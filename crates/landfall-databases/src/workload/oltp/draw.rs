//! What transactions are drawn from: ids and strings of digits.

use fastrand::Rng;

/// Which rows are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    /// Each as often as the others.
    Uniform,
    /// Three quarters of all requests want the middle: a hundredth of the rows, of which the first
    /// quarter is never wanted this way, as in the original. The others want the mean of twelve
    /// uniform draws.
    Special,
}

/// Share of requests of the special distribution that want something near the middle without being
/// after its hundredth.
const BROAD: f64 = 0.25;
/// Share of the rows that the rest wants.
const NARROW: f64 = 0.01;
/// Uniform draws of which the mean is taken.
const DRAWS: u32 = 12;

impl Distribution {
    /// A row's id from 1 to `rows`.
    pub fn id(self, random: &mut Rng, rows: u64) -> i64 {
        let above = match self {
            Distribution::Uniform => random.u64(..rows),
            Distribution::Special => {
                special(random, (rows - 1) as f64).min((rows - 1) as f64) as u64
            }
        };
        above as i64 + 1
    }
}

/// A number from 0 to about `span`.
fn special(random: &mut Rng, span: f64) -> f64 {
    let first = random.f64();
    if first < BROAD {
        let sum: f64 = (0..DRAWS).map(|_| random.f64()).sum();
        return sum / f64::from(DRAWS) * span;
    }
    // The same draw again, so that nothing falls into the first quarter.
    let narrow = span * NARROW;
    first * (narrow + 1.0) + span / 2.0 - narrow / 2.0
}

/// Groups of eleven digits with dashes between them: 10 groups are 119 characters.
pub(super) fn digits(random: &mut Rng, groups: usize) -> String {
    let mut text = String::with_capacity(groups * 12);
    for group in 0..groups {
        if group > 0 {
            text.push('-');
        }
        (0..11).for_each(|_| text.push(char::from(random.u8(b'0'..=b'9'))));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u64 = 100_001;
    const DRAWN: usize = 200_000;

    fn drawn(distribution: Distribution) -> Vec<i64> {
        let mut random = Rng::with_seed(1);
        (0..DRAWN)
            .map(|_| distribution.id(&mut random, ROWS))
            .collect()
    }

    fn share(drawn: &[i64], ids: std::ops::RangeInclusive<i64>) -> f64 {
        drawn.iter().filter(|id| ids.contains(id)).count() as f64 / drawn.len() as f64
    }

    #[test]
    fn uniform_ids_are_all_and_only_those_that_are_there() {
        let drawn = drawn(Distribution::Uniform);
        assert!(drawn.iter().all(|id| (1..=ROWS as i64).contains(id)));
        assert!((share(&drawn, 1..=50_000) - 0.5).abs() < 0.005);
        assert!(share(&drawn, 1..=100) > 0.0 && share(&drawn, 99_902..=100_001) > 0.0);
    }

    /// The shares that 200,000 draws of the original's have, too.
    #[test]
    fn special_ids_are_where_the_original_has_them() {
        let drawn = drawn(Distribution::Special);
        assert!((share(&drawn, 49_500..=50_502) - 0.762).abs() < 0.005);
        assert!(share(&drawn, 49_500..=49_749) < 0.005);
        assert!((share(&drawn, 49_750..=50_502) - 0.759).abs() < 0.005);
        let broad: Vec<f64> = drawn
            .iter()
            .filter(|id| !(49_500..=50_502).contains(*id))
            .map(|&id| id as f64)
            .collect();
        let mean = broad.iter().sum::<f64>() / broad.len() as f64;
        let variance = broad.iter().map(|id| (id - mean).powi(2)).sum::<f64>();
        assert!((mean - 50_000.0).abs() < 200.0);
        assert!(((variance / broad.len() as f64).sqrt() - 8532.0).abs() < 150.0);
    }

    #[test]
    fn the_only_row_is_always_found() {
        let mut random = Rng::with_seed(1);
        for distribution in [Distribution::Uniform, Distribution::Special] {
            (0..1000).for_each(|_| assert_eq!(distribution.id(&mut random, 1), 1));
        }
    }

    #[test]
    fn strings_are_groups_of_eleven_digits() {
        let mut random = Rng::with_seed(1);
        let text = digits(&mut random, 10);
        assert_eq!(text.len(), 119);
        for group in text.split('-') {
            assert_eq!(group.len(), 11);
            assert!(group.bytes().all(|byte| byte.is_ascii_digit()));
        }
        assert_eq!(digits(&mut random, 5).len(), 59);
    }
}
