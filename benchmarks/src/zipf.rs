//! Which records YCSB asks for: few of them often, most of them seldom.
//!
//! By Gray and others, "Quickly Generating Billion-Record Synthetic Databases" (1994), as YCSB does it.

use crate::rows::mix;

const THETA: f64 = 0.99;

/// Numbers from 0 on, of which a lower one comes more often.
pub struct Zipf {
    items: f64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    pub fn new(items: u64) -> Zipf {
        let zeta = (1..=items).map(|item| (item as f64).powf(-THETA)).sum();
        Zipf::with_zeta(items, zeta)
    }

    /// YCSB's: over ten billion items, which [`scrambled`](Zipf::scrambled) spreads over however many records there are.
    pub fn of_ycsb() -> Zipf {
        Zipf::with_zeta(10_000_000_000, 26.469_028_201_783_02)
    }

    fn with_zeta(items: u64, zeta: f64) -> Zipf {
        let items = items as f64;
        let zeta_of_two = 1.0 + 0.5_f64.powf(THETA);
        Zipf {
            items,
            zeta,
            alpha: 1.0 / (1.0 - THETA),
            eta: (1.0 - (2.0 / items).powf(1.0 - THETA)) / (1.0 - zeta_of_two / zeta),
        }
    }

    pub fn next(&self, random: &mut fastrand::Rng) -> u64 {
        let u = random.f64();
        let place = u * self.zeta;
        if place < 1.0 {
            0
        } else if place < 1.0 + 0.5_f64.powf(THETA) {
            1
        } else {
            (self.items * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64
        }
    }

    /// One of so many records; those that come often are anywhere among them.
    pub fn scrambled(&self, records: u64, random: &mut fastrand::Rng) -> u64 {
        mix(self.next(random)) % records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_come_as_often_as_they_should() {
        let zipf = Zipf::new(1000);
        let mut random = fastrand::Rng::with_seed(1);
        let mut counts = [0_u32; 1000];
        for _ in 0..1_000_000 {
            counts[zipf.next(&mut random) as usize] += 1;
        }
        let zeta: f64 = (1..=1000).map(|item| f64::from(item).powf(-THETA)).sum();
        for item in [1, 2] {
            let expected = 1e6 * f64::from(item).powf(-THETA) / zeta;
            let counted = f64::from(counts[item as usize - 1]);
            assert!((counted / expected - 1.0).abs() < 0.02, "{item}: {counted}");
        }
    }
}
