//! Crash states drawn at random, for epochs that have too many to try them all.
//!
//! A draw decides for each write that changes something whether it is absent, whole or torn; how likely
//! each is differs from draw to draw, so that among them are some with nearly everything, some with
//! nearly nothing and all between. A torn write has only its first changed sectors, or only its last, or
//! any of them; always whole atomic units of the device.
//!
//! What is drawn depends on the seed, the epoch, the number of the draw and the atomic unit only, so that a
//! [`Choice::Drawn`](super::Choice::Drawn) can be made again from its name. A change to this file, or to
//! the generator behind it, makes other states of old names: a test below notices.

use std::ops::Range;

use fastrand::Rng;

use super::changes::Changes;
use super::identity::seed_of;

/// How many of 16 writes are absent, before tearing. 0 and 16 stand for a few of all writes.
const ABSENT: [u64; 5] = [0, 4, 8, 12, 16];
/// How many of 8 writes that are not absent are torn.
const TORN: [u64; 3] = [0, 1, 4];

/// Which changes arrived in the draw of that number.
pub(super) fn sample(changes: &Changes, seed: u64, cut: u32, number: u32) -> Vec<bool> {
    let mut random = Rng::with_seed(seed_of(&[seed, cut.into(), number.into()]));
    let mut arrived = vec![false; changes.fragments()];
    let writes = changes.changing_writes().count() as u64;
    let absent = ABSENT[random.usize(..ABSENT.len())];
    // A write alone is worth drawing only if it is torn.
    let torn = match writes {
        1 => 8,
        _ => TORN[random.usize(..TORN.len())],
    };
    for write in changes.changing_writes() {
        let is_absent = match absent {
            0 => random.u64(..writes) == 0,
            16 => random.u64(..writes) != 0,
            of_16 => random.u64(..16) < of_16,
        };
        let own = changes.fragments_of_write(write as usize);
        if own.len() > 1 && random.u64(..8) < torn && (!is_absent || writes == 1) {
            tear(&mut arrived, own, &mut random);
        } else if !is_absent {
            arrived[own].fill(true);
        }
    }
    changes.of_fragments(|fragment| arrived[fragment])
}

/// Lets some of at least two fragments arrive.
fn tear(arrived: &mut [bool], own: Range<usize>, random: &mut Rng) {
    let middle = random.usize(own.start + 1..own.end);
    match random.u8(..3) {
        0 => arrived[own.start..middle].fill(true),
        1 => arrived[middle..own.end].fill(true),
        _ => arrived[own].fill_with(|| random.bool()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::Recording;
    use crate::crash::Walker;
    use crate::fixtures::RecordingBuilder;

    /// Which changes arrived in each of so many draws, as bits.
    fn draws(recording: &Recording, count: u32) -> Vec<u64> {
        let walker = Walker::new(recording).unwrap();
        let draw = |number| {
            let arrived = super::sample(walker.changes(), 7, 0, number);
            (0..)
                .zip(arrived)
                .map(|(n, arrived)| u64::from(arrived) << n)
                .sum()
        };
        (0..count).map(draw).collect()
    }

    fn four_writes_of_eight_sectors() -> Recording {
        let mut builder = RecordingBuilder::new(1 << 20);
        for write in 0..4 {
            builder = builder.sectors(write * 8, &[1, 2, 3, 4, 5, 6, 7, 8]);
        }
        builder.build()
    }

    #[test]
    fn a_name_means_the_same_state_for_ever() {
        let drawn = draws(&four_writes_of_eight_sectors(), 6);
        assert_eq!(
            drawn,
            [
                0xff00ffff, 0x74000000, 0xff00ff00, 0xfc4d00, 0xffffff00, 0xffffff
            ]
        );
    }

    #[test]
    fn draws_have_absent_whole_and_torn_writes_in_many_mixtures() {
        let drawn = draws(&four_writes_of_eight_sectors(), 1000);
        let different: HashSet<u64> = drawn.iter().copied().collect();
        assert!(different.len() > 300, "{}", different.len());
        for write in 0..4 {
            let parts = drawn.iter().map(|bits| bits >> (8 * write) & 0xff);
            let count = |what: &dyn Fn(u64) -> bool| parts.clone().filter(|&p| what(p)).count();
            let prefix = |part: u64| part & (part + 1) == 0 && part != 0 && part != 0xff;
            assert!(count(&|part| part == 0) > 200);
            assert!(count(&|part| part == 0xff) > 200);
            assert!(count(&prefix) > 20);
            assert!(count(&|part| prefix(!part & 0xff)) > 20);
        }
    }

    #[test]
    fn a_write_alone_is_torn() {
        let recording = RecordingBuilder::new(4096).sectors(0, &[1; 8]).build();
        let torn = draws(&recording, 100)
            .into_iter()
            .filter(|&bits| bits != 0 && bits != 0xff);
        assert!(torn.count() > 90);
    }

    #[test]
    fn nothing_is_drawn_from_an_epoch_that_changes_nothing() {
        let recording = RecordingBuilder::new(4096).sector(0, 0).build();
        assert_eq!(draws(&recording, 3), [0; 3]);
    }
}
