//! A fixed pseudo-random order of the numbers below n, of any of which both the place and what stands
//! at a place can be computed, without a table.
//!
//! A Feistel network permutes the numbers of an even number of bits; what falls outside is permuted on
//! until it is inside, which takes fewer than four steps on average.

/// Rounds of the network: with fewer neighbours stay related.
const ROUNDS: usize = 4;

/// A permutation of the numbers below n.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    n: u64,
    /// Bits of each half.
    half: u32,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of the numbers below `n` that `seed` makes.
    pub fn new(n: u64, seed: u64) -> Permutation {
        let bits = (u64::BITS - n.saturating_sub(1).leading_zeros()).max(2);
        let mut random = fastrand::Rng::with_seed(seed);
        Permutation {
            n,
            half: bits.div_ceil(2),
            keys: std::array::from_fn(|_| random.u64(..)),
        }
    }

    /// What stands at `place`.
    pub fn at(&self, place: u64) -> u64 {
        self.inside(place, |number| {
            let (mut left, mut right) = self.split(number);
            for key in self.keys {
                (left, right) = (right, left ^ self.mixed(right, key));
            }
            self.joined(left, right)
        })
    }

    /// The place of `number`.
    pub fn place(&self, number: u64) -> u64 {
        self.inside(number, |place| {
            let (mut left, mut right) = self.split(place);
            for key in self.keys.into_iter().rev() {
                (left, right) = (right ^ self.mixed(left, key), left);
            }
            self.joined(left, right)
        })
    }

    fn inside(&self, start: u64, step: impl Fn(u64) -> u64) -> u64 {
        debug_assert!(start < self.n);
        let mut number = step(start);
        while number >= self.n {
            number = step(number);
        }
        number
    }

    fn split(&self, number: u64) -> (u64, u64) {
        (number >> self.half, number & self.mask())
    }

    fn joined(&self, left: u64, right: u64) -> u64 {
        left << self.half | right
    }

    fn mask(&self) -> u64 {
        (1 << self.half) - 1
    }

    /// A half, made unrecognisable.
    fn mixed(&self, half: u64, key: u64) -> u64 {
        let product = u128::from(half ^ key) * u128::from(key | 1);
        let folded = (product >> 64) as u64 ^ product as u64;
        (folded ^ folded >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - self.half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_has_one_place(n in 1..5000u64, seed: u64) {
            let permutation = Permutation::new(n, seed);
            let mut seen = vec![false; n as usize];
            for place in 0..n {
                let number = permutation.at(place);
                prop_assert!(!std::mem::replace(&mut seen[number as usize], true));
                prop_assert_eq!(permutation.place(number), place);
            }
        }

        #[test]
        fn large_ones_are_turned_round_too(n in 1..=u64::MAX / 4, seed: u64, part: u64) {
            let permutation = Permutation::new(n, seed);
            let number = part % n;
            prop_assert!(permutation.at(number) < n);
            prop_assert_eq!(permutation.place(permutation.at(number)), number);
        }
    }

    #[test]
    fn neighbours_are_not_neighbours_afterwards() {
        let n = 100_000;
        let permutation = Permutation::new(n, 1);
        let gaps = (1..n).map(|place| permutation.at(place).abs_diff(permutation.at(place - 1)));
        let mean = gaps.sum::<u64>() as f64 / (n - 1) as f64;
        // Of two numbers that have nothing to do with each other the distance is n/3.
        assert!((mean / n as f64 - 1.0 / 3.0).abs() < 0.01, "{mean}");
        // Nor does an order stay: half of the first half is in the first half.
        let low = (0..n / 2).filter(|&place| permutation.at(place) < n / 2);
        let share = low.count() as f64 / n as f64;
        assert!((share - 0.25).abs() < 0.01, "{share}");
    }

    #[test]
    fn seeds_make_different_ones() {
        let [one, other] = [1, 2].map(|seed| Permutation::new(1000, seed));
        let same = (0..1000).filter(|&place| one.at(place) == other.at(place));
        assert!(same.count() < 10);
    }
}
