//! Which block the n-th write goes to: known to the writer and to the witness without a word between them.
//!
//! That is what makes the one write in flight harmless. When the power is cut after the n-th acknowledgement, the writer
//! may have begun write n + 1 and no other, since it waits for each. Whatever is in *its* block, be it the new write, what
//! was there before, or a torn half of both, accuses nobody: [`promised`] leaves that block out.

use std::ops::RangeInclusive;

use landfall_results::witness::{Order, Strategy};

/// Blocks that are the fewest: with one of them in flight, nothing would be promised of fewer.
pub(crate) const FEWEST_BLOCKS: u32 = 2;
/// Blocks that are the most: the witness keeps a time for each.
pub(crate) const MOST_BLOCKS: u32 = 1 << 16;

/// The block that the n-th write goes to, from 1.
pub(crate) fn block_of(strategy: &Strategy, write: u64) -> u32 {
    let blocks = u64::from(strategy.blocks);
    let place = (write - 1) % blocks;
    let block = match strategy.order {
        Order::Sequential => place,
        Order::Scattered => place * stride(blocks) % blocks,
    };
    block as u32
}

/// The writes that must be there when this many were acknowledged: the last to each block but one, which is that of the
/// write that may be in flight.
pub(crate) fn promised(strategy: &Strategy, acknowledged: u64) -> RangeInclusive<u64> {
    let kept = u64::from(strategy.blocks) - 1;
    acknowledged.saturating_sub(kept) + 1..=acknowledged
}

/// About the golden section of all blocks, and without a common divisor: each block has its turn, and neighbours are far
/// apart in time.
fn stride(blocks: u64) -> u64 {
    let golden = (blocks as f64 * 0.618) as u64;
    (golden.max(1)..)
        .find(|stride| divisor(*stride, blocks) == 1)
        .unwrap_or(1)
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use landfall_results::witness::{Order, Strategy};
    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::{block_of, promised};

    fn strategy(blocks: u32, order: Order) -> Strategy {
        Strategy {
            method: landfall_os::SyncMethod::FDATASYNC,
            block_bytes: 4096,
            blocks,
            order,
        }
    }

    proptest! {
        #[test]
        fn what_is_promised_is_the_last_write_to_each_block_but_that_in_flight(
            blocks in 2..200u32,
            writes in 0..1000u64,
            scattered: bool,
        ) {
            let order = if scattered { Order::Scattered } else { Order::Sequential };
            let strategy = strategy(blocks, order);
            let mut last = BTreeMap::new();
            for write in 1..=writes {
                last.insert(block_of(&strategy, write), write);
            }
            last.remove(&block_of(&strategy, writes + 1));
            let promised: BTreeMap<u32, u64> = promised(&strategy, writes)
                .map(|write| (block_of(&strategy, write), write))
                .collect();
            prop_assert_eq!(promised, last);
        }

        #[test]
        fn each_block_has_its_turn(blocks in 2..5000u32) {
            let strategy = strategy(blocks, Order::Scattered);
            let mut seen: Vec<u32> = (1..=u64::from(blocks)).map(|write| block_of(&strategy, write)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..blocks));
        }
    }
}
