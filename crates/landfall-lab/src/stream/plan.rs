//! Which strategies are measured, at which sizes, and how often.

use landfall_os::{Allocation, StreamCall, StreamMethod};

use super::{Data, Strategy};
use crate::PlanKind;

const MIB: u64 = 1 << 20;
/// Sizes of a state, in bytes: those of the published measurement.
const SIZES: [u64; 6] = [
    128 * MIB,
    256 * MIB,
    512 * MIB,
    1024 * MIB,
    2048 * MIB,
    4096 * MIB,
];
/// Sizes of the short plan.
const SHORT_SIZES: [u64; 3] = [128 * MIB, 256 * MIB, 512 * MIB];
/// The short plan goes down to states of half a MiB.
const MOST_HALVINGS: u32 = 8;
/// Chunks of the chunk axis, in bytes.
const CHUNKS: [u64; 4] = [64 << 10, 256 << 10, MIB, 4 * MIB];
/// Methods that are measured at every size; the others are variants of these.
const METHODS: [StreamMethod; 5] = [
    StreamMethod::WRITE,
    StreamMethod::buffered(StreamCall::Paced),
    StreamMethod::MMAP,
    StreamMethod::direct(StreamCall::Write),
    StreamMethod::direct(StreamCall::IoUring),
];
/// Allocations of the allocation axis.
const ALLOCATIONS: [Allocation; 7] = [
    Allocation::Append,
    Allocation::Sparse,
    Allocation::Unwritten,
    Allocation::ZeroFilled,
    Allocation::ZeroFilledSettled,
    Allocation::Overwrite,
    Allocation::WriteZeroes,
];

/// Axes restricted by the user; an axis that is not restricted keeps what is usual.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Allocations; otherwise the one that is usual for each method.
    pub allocations: Vec<Allocation>,
    /// Methods; otherwise `write` and `mmap`.
    pub methods: Vec<StreamMethod>,
    /// Sizes of the state in bytes; otherwise those of the standard plan that fit.
    pub sizes: Vec<u64>,
    /// Bytes handed over by one call; otherwise 1 MiB.
    pub chunks: Vec<u64>,
}

/// A strategy that the axes ask for and that cannot be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Excluded {
    /// The strategy.
    pub strategy: Strategy,
    /// Why not.
    pub reason: String,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Which plan it is.
    pub kind: PlanKind,
    /// What the user chose; empty in the plans that are not `Chosen`.
    pub selection: Selection,
    /// What the bytes look like.
    pub data: Data,
    /// How often each strategy is measured.
    pub rounds: u32,
    /// Seconds that it should take at most; larger sizes are left out where the disk is too
    /// slow for them.
    pub most_seconds: Option<f64>,
}

impl Plan {
    /// Rounds, unless chosen.
    pub const ROUNDS: u32 = 5;

    /// The standard plan: five methods at every size; and at one size every method, every allocation
    /// and every chunk.
    pub fn standard() -> Plan {
        Plan {
            kind: PlanKind::Standard,
            selection: Selection::default(),
            data: Data::Incompressible,
            rounds: Plan::ROUNDS,
            most_seconds: None,
        }
    }

    /// A shorter form of it, that takes about a minute.
    pub fn short() -> Plan {
        Plan {
            kind: PlanKind::Short,
            most_seconds: Some(50.0),
            ..Plan::standard()
        }
    }

    /// The product of what `selection` names; naming nothing gives the standard plan.
    pub fn chosen(selection: Selection) -> Plan {
        if selection == Selection::default() {
            return Plan::standard();
        }
        Plan {
            kind: PlanKind::Chosen,
            selection,
            ..Plan::standard()
        }
    }

    /// Whether the sizes are the user's: one that does not fit is then refused instead of left out.
    pub fn sizes_are_chosen(&self) -> bool {
        !self.selection.sizes.is_empty()
    }

    /// The sizes of the plan, in bytes, smallest first.
    pub fn sizes(&self) -> Vec<u64> {
        let mut sizes = match (self.sizes_are_chosen(), self.kind) {
            (true, _) => self.selection.sizes.clone(),
            (false, PlanKind::Short) => SHORT_SIZES.to_vec(),
            (false, _) => SIZES.to_vec(),
        };
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    /// The sizes that fit where a state may have at most `largest` bytes and the disk takes `rate`
    /// durable bytes a second.
    ///
    /// The short plan is made smaller as a whole, so that it keeps its three sizes and its time; the
    /// others leave out what is too large, and sizes that the user chose stay as they are.
    pub fn sizes_within(&self, largest: u64, rate: f64) -> Vec<u64> {
        let sizes = self.sizes();
        if self.sizes_are_chosen() {
            return sizes;
        }
        if self.kind != PlanKind::Short {
            return sizes.into_iter().filter(|size| *size <= largest).collect();
        }
        let halved = |times: u32| -> Vec<u64> { sizes.iter().map(|size| size >> times).collect() };
        let fits = |sizes: &Vec<u64>| {
            let seconds = self.written_bytes(sizes) as f64 / rate;
            sizes.iter().all(|size| *size <= largest)
                && self.most_seconds.is_none_or(|most| seconds <= most)
        };
        (0..MOST_HALVINGS)
            .map(halved)
            .find(fits)
            .unwrap_or_else(|| halved(MOST_HALVINGS))
    }

    /// Bytes that must be free for the largest size.
    pub fn required_bytes(&self) -> u64 {
        self.sizes().last().copied().map_or(0, required_bytes)
    }

    /// Bytes that all rounds write where the state has these sizes.
    pub fn written_bytes(&self, sizes: &[u64]) -> u64 {
        let (strategies, _) = self.strategies(sizes);
        strategies.iter().map(written_bytes).sum::<u64>() * u64::from(self.rounds)
    }

    /// The strategies at these sizes, smallest first, in the order in which a round measures them, and
    /// what was asked for and makes no sense.
    pub fn strategies(&self, sizes: &[u64]) -> (Vec<Strategy>, Vec<Excluded>) {
        let mut strategies = Vec::new();
        let mut excluded = Vec::new();
        let candidates = match self.kind {
            PlanKind::Chosen => self.product(sizes),
            _ => self.axes(sizes),
        };
        for strategy in candidates {
            match strategy.contradiction() {
                Some(reason) => excluded.push(Excluded { strategy, reason }),
                None if strategies.contains(&strategy) => {}
                None => strategies.push(strategy),
            }
        }
        (strategies, excluded)
    }

    /// Each axis on its own.
    fn axes(&self, sizes: &[u64]) -> Vec<Strategy> {
        let short = self.kind == PlanKind::Short;
        let usual = |method, size| Strategy::usual(method, size, self.data);
        let by_size: &[StreamMethod] = if short { &METHODS[..3] } else { &METHODS };
        let mut all: Vec<Strategy> = sizes
            .iter()
            .flat_map(|&size| by_size.iter().map(move |&method| usual(method, size)))
            .collect();
        // The other axes are varied at one size: large enough to take a while, small enough to be
        // handed over without waiting for the disk.
        let middle = if short {
            sizes.first()
        } else {
            sizes.iter().rfind(|s| **s <= SIZES[2])
        };
        let Some(&size) = middle else { return all };
        all.extend(
            StreamMethod::all()
                .into_iter()
                .map(|method| usual(method, size)),
        );
        for method in [StreamMethod::WRITE, StreamMethod::MMAP] {
            let allocations = ALLOCATIONS.iter().filter(|&&allocation| {
                if method.is_mapped() {
                    matches!(allocation, Allocation::Unwritten | Allocation::Overwrite)
                } else {
                    true
                }
            });
            all.extend(allocations.map(|&allocation| Strategy {
                allocation,
                ..usual(method, size)
            }));
        }
        if !short {
            let chunks = CHUNKS.iter().filter(|&&chunk| chunk <= size);
            all.extend(chunks.map(|&chunk| Strategy {
                chunk,
                ..usual(StreamMethod::WRITE, size)
            }));
        }
        all
    }

    /// The product of what was chosen.
    fn product(&self, sizes: &[u64]) -> Vec<Strategy> {
        let Selection {
            allocations,
            methods,
            chunks,
            ..
        } = &self.selection;
        let usual_methods = [StreamMethod::WRITE, StreamMethod::MMAP];
        let methods = if methods.is_empty() {
            &usual_methods[..]
        } else {
            methods
        };
        let mut all = Vec::new();
        for &size in sizes {
            for &method in methods {
                let usual = Strategy::usual(method, size, self.data);
                let (own_allocation, own_chunk) = ([usual.allocation], [usual.chunk]);
                let allocations = if allocations.is_empty() {
                    &own_allocation[..]
                } else {
                    allocations
                };
                let chunks = if chunks.is_empty() {
                    &own_chunk[..]
                } else {
                    chunks
                };
                for &allocation in allocations {
                    all.extend(chunks.iter().map(|&chunk| Strategy {
                        allocation,
                        chunk,
                        ..usual
                    }));
                }
            }
        }
        all
    }

    /// Trials in all, if every size fits.
    pub fn trials(&self) -> usize {
        self.strategies(&self.sizes()).0.len() * self.rounds as usize
    }
}

/// Bytes that a trial writes: its state, and what is written before it in the same place.
pub fn written_bytes(strategy: &Strategy) -> u64 {
    match strategy.allocation {
        Allocation::Overwrite | Allocation::ZeroFilled | Allocation::ZeroFilledSettled => {
            2 * strategy.size
        }
        _ => strategy.size,
    }
}

/// The largest state that fits into `free` bytes, by the same reckoning.
pub fn largest_within(free: u64) -> u64 {
    free.saturating_sub(8 * MIB) / 11 * 10
}

/// Bytes that must be free for states of `size` bytes: one file at a time, and a tenth and 8 MiB for
/// the filesystem's own needs.
pub fn required_bytes(size: u64) -> u64 {
    size / 10 * 11 + 8 * MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(plan: &Plan, largest: u64) -> Vec<String> {
        plan.strategies(&plan.sizes_within(largest, f64::INFINITY))
            .0
            .iter()
            .map(Strategy::key)
            .collect()
    }

    #[test]
    fn the_standard_plan_has_every_method_at_every_size_and_each_axis_at_one() {
        let keys = keys(&Plan::standard(), u64::MAX);
        for size in ["128M", "256M", "512M", "1G", "2G", "4G"] {
            for method in [
                "append/write",
                "append/paced",
                "sparse/mmap",
                "append/direct+write",
                "append/direct+io_uring",
            ] {
                assert!(
                    keys.contains(&format!("{method}/{size}")),
                    "{method} {size}"
                );
            }
        }
        for allocation in ALLOCATIONS {
            assert!(
                keys.contains(&format!("{allocation}/write/512M")),
                "{allocation}"
            );
        }
        for method in StreamMethod::all() {
            let suffix = format!("/{method}/512M");
            assert!(keys.iter().any(|key| key.ends_with(&suffix)), "{method}");
        }
        for chunk in ["64K", "256K", "4M"] {
            assert!(keys.contains(&format!("append/write/512M/chunk-{chunk}")));
        }
        assert_eq!(keys.len(), 6 * 5 + 2 + 6 + 2 + 3);
    }

    #[test]
    fn sizes_that_do_not_fit_take_the_other_axes_down_with_them() {
        let keys = keys(&Plan::standard(), 300 << 20);
        assert!(keys.contains(&"unwritten/write/256M".to_owned()));
        assert!(!keys.iter().any(|key| key.contains("512M")));
    }

    #[test]
    fn the_short_plan_keeps_its_shape_on_small_and_slow_disks() {
        let plan = Plan::short();
        let mib = |sizes: Vec<u64>| sizes.iter().map(|s| s >> 20).collect::<Vec<_>>();
        assert_eq!(mib(plan.sizes_within(u64::MAX, 500e6)), [128, 256, 512]);
        assert_eq!(mib(plan.sizes_within(300 << 20, 1e9)), [64, 128, 256]);
        // 300 MB a second, for at most 50 seconds.
        assert_eq!(mib(plan.sizes_within(u64::MAX, 300e6)), [64, 128, 256]);
        assert_eq!(plan.sizes_within(0, 1.0)[0], 512 << 10);
        for halvings in 0..MOST_HALVINGS {
            let largest = SHORT_SIZES[2] >> halvings;
            assert_eq!(keys(&plan, largest).len(), keys(&plan, u64::MAX).len());
        }
    }

    #[test]
    fn sizes_that_the_user_chose_are_never_left_out() {
        let plan = Plan::chosen(Selection {
            sizes: vec![4 << 30],
            ..Selection::default()
        });
        assert_eq!(plan.sizes_within(1 << 20, 1.0), [4 << 30]);
    }

    #[test]
    fn choosing_an_axis_keeps_the_others_as_usual() {
        let plan = Plan::chosen(Selection {
            sizes: vec![8 << 20, 1 << 20],
            ..Selection::default()
        });
        assert_eq!(
            keys(&plan, u64::MAX),
            [
                "append/write/1M",
                "sparse/mmap/1M",
                "append/write/8M",
                "sparse/mmap/8M"
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_named() {
        let plan = Plan::chosen(Selection {
            allocations: vec![Allocation::Append, Allocation::Recycled],
            methods: vec![StreamMethod::MMAP],
            sizes: vec![1 << 20],
            ..Selection::default()
        });
        let (strategies, excluded) = plan.strategies(&plan.sizes());
        assert!(strategies.is_empty());
        assert_eq!(excluded.len(), 2);
    }
}
