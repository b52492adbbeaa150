//! The bytes of links and nodes: how many there are, and how well they compress.
//!
//! Sizes are log-normal. The bytes are fresh random ones, or a piece of a buffer that all share, and
//! which of the two is drawn for every 128 bytes.

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use rand_distr::{Distribution, LogNormal};

/// Bytes of the shared buffer, whatever the original's configuration says.
const MOTIFS: usize = 512;
/// Bytes for which it is drawn together whether they are fresh.
const CHUNK: usize = 128;
/// The standard deviation of the sizes' logarithm.
const SIGMA: f64 = 1.0;

/// What makes the bytes of links, or of nodes.
pub(super) struct Payload {
    size: LogNormal<f64>,
    most: usize,
    /// Share of chunks that are fresh.
    fresh: f64,
    /// Values of bytes: from the first, below the second.
    values: (u8, u8),
    motifs: Vec<u8>,
}

impl Payload {
    /// That of links: a third of it is left when it is compressed.
    pub fn of_links(seed: u64) -> Payload {
        Payload::new(8.0, 255, 0.225, (32, 100), seed)
    }

    /// That of nodes: two thirds are left.
    pub fn of_nodes(seed: u64) -> Payload {
        Payload::new(128.0, 1 << 20, 0.63, (50, 220), seed)
    }

    fn new(median: f64, most: usize, fresh: f64, values: (u8, u8), seed: u64) -> Payload {
        let size = LogNormal::new(median.ln(), SIGMA).expect("constant parameters are valid");
        let mut motifs = vec![0; MOTIFS];
        fill(&mut SmallRng::seed_from_u64(seed), values, &mut motifs);
        Payload {
            size,
            most,
            fresh,
            values,
            motifs,
        }
    }

    /// The next bytes.
    pub fn draw(&self, random: &mut SmallRng) -> Vec<u8> {
        let size = self.size.sample(random).round() as usize;
        let mut bytes = vec![0; size.min(self.most)];
        for chunk in bytes.chunks_mut(CHUNK) {
            if random.random_bool(self.fresh) {
                fill(random, self.values, chunk);
            } else {
                let start = random.random_range(..=MOTIFS - chunk.len());
                chunk.copy_from_slice(&self.motifs[start..start + chunk.len()]);
            }
        }
        bytes
    }
}

/// Fills with random bytes from the first value, below the second.
fn fill(random: &mut SmallRng, (from, to): (u8, u8), bytes: &mut [u8]) {
    random.fill_bytes(bytes);
    let values = u16::from(to - from);
    for byte in bytes {
        // So nearly uniform that nothing notices.
        *byte = from + ((u16::from(*byte) * values) >> 8) as u8;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn drawn(payload: &Payload, times: usize) -> Vec<Vec<u8>> {
        let mut random = SmallRng::seed_from_u64(1);
        (0..times).map(|_| payload.draw(&mut random)).collect()
    }

    /// What is left of pages of 16 KiB of such payloads.
    fn compressed(payload: &Payload) -> f64 {
        let bytes = drawn(payload, 20_000).concat();
        let pages = bytes.chunks_exact(16 << 10);
        let whole = pages.len() * (16 << 10);
        let small: usize = pages
            .map(|page| {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(page).unwrap();
                encoder.finish().unwrap().len()
            })
            .sum();
        small as f64 / whole as f64
    }

    #[test]
    fn sizes_are_log_normal() {
        for (payload, median) in [(Payload::of_links(1), 8), (Payload::of_nodes(1), 128)] {
            let mut sizes: Vec<usize> = drawn(&payload, 50_000).iter().map(Vec::len).collect();
            sizes.sort_unstable();
            let middle = sizes[sizes.len() / 2];
            assert!(middle.abs_diff(median) <= median / 20, "{middle}");
            // One standard deviation above the median it is e times as much.
            let above = sizes[(sizes.len() as f64 * 0.8413) as usize] as f64;
            let expected = median as f64 * std::f64::consts::E;
            assert!((above / expected - 1.0).abs() < 0.06, "{above}");
            assert!(*sizes.last().unwrap() <= payload.most);
        }
        // Sizes are rounded: the share below half a byte is that of ln 16 standard deviations below.
        let sizes = drawn(&Payload::of_links(1), 50_000);
        let empty = sizes.iter().filter(|bytes| bytes.is_empty()).count() as f64 / 50_000.0;
        assert!((0.002..0.004).contains(&empty), "{empty}");
    }

    #[test]
    fn links_compress_to_a_third_and_nodes_to_two_thirds() {
        let links = compressed(&Payload::of_links(1));
        assert!((0.25..0.38).contains(&links), "{links}");
        let nodes = compressed(&Payload::of_nodes(1));
        assert!((0.55..0.68).contains(&nodes), "{nodes}");
    }

    #[test]
    fn bytes_have_the_values_that_they_may() {
        let values = |payload: &Payload| {
            let bytes = drawn(payload, 10_000).concat();
            (*bytes.iter().min().unwrap(), *bytes.iter().max().unwrap())
        };
        assert_eq!(values(&Payload::of_links(1)), (32, 99));
        assert_eq!(values(&Payload::of_nodes(1)), (50, 219));
    }
}
