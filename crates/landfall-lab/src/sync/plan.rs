//! Which strategies are measured, how often, and for how long.

use std::collections::HashSet;
use std::time::Duration;

use landfall_os::{Allocation, SyncMethod};
use landfall_results::Axes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::proof::way_of_writing;
use super::{CacheState, Files, Placement, Strategy};
use crate::PlanKind;

/// Sizes of the size axis, in bytes.
const SIZES: [u64; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];
/// Threads of the thread axis.
const THREADS: [u32; 4] = [1, 2, 4, 16];
/// A trial of the published measurement: 1 GiB in writes of 8 KiB.
const PUBLISHED_OPERATIONS: u64 = 131_072;
/// Bytes that a trial writes at most unless the number of operations is given.
const TRIAL_BYTES: u64 = 64 << 20;
/// Operations that a trial has at least: fewer say nothing about a median.
const FEWEST_OPERATIONS: u64 = 16;

/// Milliseconds that a crash state takes to be made, recovered and looked at, on two processors.
const MS_PER_STATE: u64 = 10;

/// How many operations a trial has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operations {
    /// As many as fill the time of a trial at the rate of a short pilot, the same for all.
    ByTime,
    /// This many.
    Exactly(u64),
}

/// Axes restricted by the user; an axis that is not restricted keeps the plan's own values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Allocations.
    pub allocations: Vec<Allocation>,
    /// Sync methods.
    pub methods: Vec<SyncMethod>,
    /// Sizes in bytes.
    pub sizes: Vec<u64>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// One file or a file each.
    pub files: Vec<Files>,
    /// Placements.
    pub placements: Vec<Placement>,
    /// Cache states.
    pub caches: Vec<CacheState>,
}

impl Selection {
    fn is_empty(&self) -> bool {
        *self == Selection::default()
    }

    /// The product of the axes, each falling back to `defaults` where nothing was chosen.
    fn product(&self, defaults: &Selection) -> Vec<Strategy> {
        fn pick<'a, T>(chosen: &'a [T], default: &'a [T]) -> &'a [T] {
            if chosen.is_empty() { default } else { chosen }
        }
        let mut strategies = Vec::new();
        for &allocation in pick(&self.allocations, &defaults.allocations) {
            for &method in pick(&self.methods, &defaults.methods) {
                for &size in pick(&self.sizes, &defaults.sizes) {
                    for &threads in pick(&self.threads, &defaults.threads) {
                        for &files in pick(&self.files, &defaults.files) {
                            for &placement in pick(&self.placements, &defaults.placements) {
                                for &cache in pick(&self.caches, &defaults.caches) {
                                    strategies.push(Strategy {
                                        allocation,
                                        method,
                                        size,
                                        threads,
                                        files: if threads == 1 { Files::Shared } else { files },
                                        placement,
                                        cache,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
        strategies
    }
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
    /// The strategies, in the order in which a round measures them.
    pub strategies: Vec<Strategy>,
    /// What was asked for and makes no sense.
    pub excluded: Vec<Excluded>,
    /// How often each strategy is measured.
    pub rounds: u32,
    /// How long a trial is meant to take, in seconds; it is stopped after four times that.
    pub seconds: f64,
    /// How many operations a trial has.
    pub operations: Operations,
    /// Seconds to wait after zero-filling for `zero-filled-settled`, as the published measurement
    /// did; without it the zeros are synced instead.
    pub settle_seconds: Option<f64>,
    /// Crash states that each strategy is held against, at most; `None`: it is only timed.
    pub proof_states: Option<usize>,
}

impl Plan {
    /// A trial's time in seconds, unless chosen.
    pub const SECONDS: f64 = 0.25;
    /// Crash states that each strategy is held against where it is proven, unless chosen.
    pub const PROOF_STATES: u32 = 300;
    /// Rounds, unless chosen.
    pub const ROUNDS: u32 = 5;

    /// The standard plan: each axis on its own.
    pub fn standard() -> Plan {
        let base = Strategy::BASELINE;
        let allocations = Allocation::ALL.map(|allocation| Strategy { allocation, ..base });
        let methods = SyncMethod::all()
            .into_iter()
            .map(|method| Strategy { method, ..base });
        let sizes = SIZES.map(|size| Strategy { size, ..base });
        let threads = THREADS.into_iter().flat_map(|threads| {
            [Files::Shared, Files::Each].map(|files| Strategy {
                threads,
                files: if threads == 1 { Files::Shared } else { files },
                ..base
            })
        });
        let all = allocations
            .into_iter()
            .chain(methods)
            .chain(sizes)
            .chain(threads)
            .chain(Self::placements());
        Plan::of(PlanKind::Standard, all.collect())
    }

    /// What `landfall lab sync --prove` measures and proves.
    pub fn proving() -> Plan {
        Plan {
            proof_states: Some(Plan::PROOF_STATES as usize),
            ..Plan::standard()
        }
    }

    /// The product of all axes, restricted to what `selection` names.
    pub fn full(selection: &Selection) -> Plan {
        let mut all = selection.product(&Selection {
            allocations: Allocation::ALL.to_vec(),
            methods: SyncMethod::all(),
            sizes: SIZES.to_vec(),
            threads: THREADS.to_vec(),
            files: vec![Files::Shared, Files::Each],
            placements: vec![Placement::Sequential],
            caches: vec![CacheState::Warm],
        });
        if selection.is_empty() {
            all.extend(Self::placements());
        }
        Plan::of(PlanKind::Full, all)
    }

    /// The product of what `selection` names; an axis that it does not name keeps the value of the
    /// standard plan's centre. Naming nothing gives the standard plan.
    pub fn chosen(selection: &Selection) -> Plan {
        if selection.is_empty() {
            return Plan::standard();
        }
        let base = Strategy::BASELINE;
        let strategies = selection.product(&Selection {
            allocations: vec![base.allocation],
            methods: vec![base.method],
            sizes: vec![base.size],
            threads: vec![base.threads],
            files: vec![base.files],
            placements: vec![base.placement],
            caches: vec![base.cache],
        });
        Plan::of(PlanKind::Chosen, strategies)
    }

    /// The four corners of "a partial page that is not cached must first be read".
    fn placements() -> impl Iterator<Item = Strategy> {
        [Placement::Spaced, Placement::Unaligned]
            .into_iter()
            .flat_map(|placement| {
                [CacheState::Warm, CacheState::Cold].map(|cache| Strategy {
                    placement,
                    cache,
                    ..Strategy::BASELINE
                })
            })
    }

    fn of(kind: PlanKind, candidates: Vec<Strategy>) -> Plan {
        let mut plan = Plan {
            kind,
            strategies: Vec::new(),
            excluded: Vec::new(),
            rounds: Plan::ROUNDS,
            seconds: Plan::SECONDS,
            operations: Operations::ByTime,
            settle_seconds: None,
            proof_states: None,
        };
        for strategy in candidates {
            match strategy.contradiction() {
                Some(reason) => plan.excluded.push(Excluded { strategy, reason }),
                None if plan.strategies.contains(&strategy) => {}
                None => plan.strategies.push(strategy),
            }
        }
        plan
    }

    /// Trials in all.
    pub fn trials(&self) -> usize {
        self.strategies.len() * self.rounds as usize
    }

    /// Operations of one trial of `strategy` where the pilot found `rate` operations per second.
    ///
    /// All strategies of one size get the same number, so that what is paid once in a trial (the
    /// flush of a zero-filled file) weighs the same everywhere. Two exceptions: an allocation in
    /// steps gets whole steps, or it would pay for space that it does not use; and every thread
    /// gets the same share.
    pub fn operations_of(&self, strategy: &Strategy, rate: f64) -> u64 {
        let wanted = match self.operations {
            Operations::Exactly(number) => number,
            Operations::ByTime => {
                let by_time = (rate * self.seconds) as u64;
                let by_bytes = TRIAL_BYTES / strategy.size;
                let wanted = by_time
                    .min(by_bytes)
                    .clamp(FEWEST_OPERATIONS, PUBLISHED_OPERATIONS);
                match strategy.allocation.step_bytes() {
                    Some(step) => (wanted * strategy.size).next_multiple_of(step) / strategy.size,
                    None => wanted,
                }
            }
        };
        wanted.next_multiple_of(u64::from(strategy.threads))
    }

    /// Proofs that are made: what writes in the same way is proven once.
    pub fn proofs(&self) -> usize {
        if self.proof_states.is_none() {
            return 0;
        }
        let axes = self.strategies.iter().map(|one| Axes::from(*one));
        let ways = axes.map(|axes| way_of_writing(&axes).key());
        ways.collect::<HashSet<_>>().len()
    }

    /// How long so many proofs take, before anything is known about the machine.
    pub fn expected_of_proofs(&self, proofs: usize) -> Duration {
        let states = self.proof_states.unwrap_or(0) * proofs;
        Duration::from_millis(states as u64 * MS_PER_STATE)
    }

    /// Seconds and bytes that the plan takes where a durable write takes `1/rate` seconds, without
    /// preparations.
    pub fn expected(&self, rate: f64) -> (f64, u64) {
        let (mut seconds, mut bytes) = (0.0, 0);
        for strategy in &self.strategies {
            let operations = self.operations_of(strategy, rate);
            let factor = if strategy.method.is_durable() {
                1.0
            } else {
                0.2
            };
            seconds += (operations as f64 / rate * factor).min(self.time_limit(strategy));
            bytes += operations * strategy.size;
        }
        (
            seconds * f64::from(self.rounds),
            bytes * u64::from(self.rounds),
        )
    }

    /// Seconds after which a trial is stopped. A number of operations that the user gave is kept to,
    /// however long it takes.
    pub fn time_limit(&self, strategy: &Strategy) -> f64 {
        match (self.operations, strategy.allocation.step_bytes()) {
            (Operations::Exactly(_), _) => f64::INFINITY,
            // Whole steps are longer than other trials from the outset.
            (Operations::ByTime, Some(_)) => self.seconds * 16.0,
            (Operations::ByTime, None) => self.seconds * 4.0,
        }
    }
}

/// Bytes that a run needs in its directory at once: the written files that are kept for overwriting
/// and recycling, and the largest files that are made for one trial.
pub fn required_bytes(plan: &Plan, rate: f64) -> u64 {
    // By number of the file: each is kept as long as the longest trial that writes it.
    let (mut kept, mut recycled): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut transient = 0;
    for strategy in &plan.strategies {
        let files = strategy.file_count();
        let span = strategy.span(plan.operations_of(strategy, rate) / u64::from(files));
        let keep = match strategy.allocation {
            Allocation::Overwrite => &mut kept,
            Allocation::Recycled => &mut recycled,
            other => {
                // Steps are whole, however few operations were asked for.
                let span = span.next_multiple_of(other.step_bytes().unwrap_or(1));
                transient = transient.max(span * u64::from(files));
                continue;
            }
        };
        keep.resize(keep.len().max(files as usize), 0);
        keep.iter_mut()
            .take(files as usize)
            .for_each(|length| *length = span.max(*length));
    }
    let all = kept.iter().chain(&recycled).sum::<u64>() + transient;
    // A tenth and 8 MiB for the filesystem's own needs.
    all / 10 * 11 + (8 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn keys(plan: &Plan) -> Vec<String> {
        plan.strategies.iter().map(Strategy::key).collect()
    }

    #[test]
    fn the_standard_plan_varies_one_axis_at_a_time() {
        let keys = keys(&Plan::standard());
        for allocation in Allocation::ALL {
            assert!(
                keys.contains(&format!("{allocation}/fdatasync/8K")),
                "{allocation}"
            );
        }
        for method in SyncMethod::all() {
            assert!(keys.contains(&format!("overwrite/{method}/8K")), "{method}");
        }
        for size in ["512", "1K", "2K", "4K", "8K", "16K", "32K", "64K"] {
            assert!(
                keys.contains(&format!("overwrite/fdatasync/{size}")),
                "{size}"
            );
        }
        for threads in [2, 4, 16] {
            for files in ["shared", "each"] {
                assert!(
                    keys.contains(&format!("overwrite/fdatasync/8K/{threads}-threads-{files}"))
                );
            }
        }
        for corner in ["spaced", "spaced/cold", "unaligned", "unaligned/cold"] {
            assert!(keys.contains(&format!("overwrite/fdatasync/8K/{corner}")));
        }
        assert_eq!(keys.len(), 10 + 15 + 7 + 6 + 4);
    }

    #[test]
    fn the_full_plan_is_the_whole_product() {
        let plan = Plan::full(&Selection::default());
        // Ten allocations, 16 methods, 8 sizes, 7 thread settings, and the four placements; less
        // appending through a mapping.
        assert_eq!(plan.strategies.len() + 8 * 7, 10 * 16 * 8 * 7 + 4);
        assert!(
            plan.excluded
                .iter()
                .all(|excluded| excluded.reason.contains("mapping"))
        );
    }

    #[test]
    fn choosing_an_axis_keeps_the_others_at_the_centre() {
        let plan = Plan::chosen(&Selection {
            allocations: vec![Allocation::Append, Allocation::Overwrite],
            threads: vec![1, 2],
            ..Selection::default()
        });
        assert_eq!(
            keys(&plan),
            [
                "append/fdatasync/8K",
                "append/fdatasync/8K/2-threads-shared",
                "overwrite/fdatasync/8K",
                "overwrite/fdatasync/8K/2-threads-shared",
            ]
        );
    }

    #[test]
    fn steps_are_whole_and_threads_have_equal_shares() {
        let plan = Plan::standard();
        let step = Strategy {
            allocation: Allocation::Step { mib: 4 },
            ..Strategy::BASELINE
        };
        assert_eq!(plan.operations_of(&step, 4_000.0), 1024);
        let threads = Strategy {
            threads: 16,
            ..Strategy::BASELINE
        };
        assert_eq!(plan.operations_of(&threads, 4_100.0), 1040);
        assert_eq!(
            plan.operations_of(&Strategy::BASELINE, 10.0),
            FEWEST_OPERATIONS
        );
    }

    /// What is needed beyond the filesystem's own needs, in MiB.
    fn needed(selection: &Selection, operations: u64) -> u64 {
        let plan = Plan {
            operations: Operations::Exactly(operations),
            ..Plan::chosen(selection)
        };
        ((required_bytes(&plan, f64::INFINITY) - (8 << 20)) / 11 * 10).div_ceil(1 << 20)
    }

    #[test]
    fn a_file_for_each_thread_and_whole_steps_need_their_space() {
        let step = Selection {
            allocations: vec![Allocation::Step { mib: 64 }],
            threads: vec![1, 2],
            files: vec![Files::Each],
            ..Selection::default()
        };
        assert_eq!(needed(&step, 20), 2 * 64);
        // 32 MiB in one file, in two, and in four: the files of the fewest threads are longest.
        let each = Selection {
            threads: vec![4, 2, 1],
            files: vec![Files::Each],
            ..Selection::default()
        };
        assert_eq!(needed(&each, 4096), 32 + 16 + 8 + 8);
        let both = Selection {
            allocations: vec![
                Allocation::Overwrite,
                Allocation::Recycled,
                Allocation::Append,
            ],
            ..Selection::default()
        };
        assert_eq!(needed(&both, 4096), 3 * 32);
    }

    proptest! {
        /// Whatever is chosen, no strategy appears twice, none is contradictory, and every
        /// combination is either measured or excluded with a reason.
        #[test]
        fn a_choice_is_measured_or_explained(
            allocations in prop::sample::subsequence(Allocation::ALL.to_vec(), 0..=10),
            methods in prop::sample::subsequence(SyncMethod::all(), 0..=16),
            sizes in prop::sample::subsequence(vec![100u64, 512, 4096, 8192, 5 << 20], 0..=5),
            threads in prop::sample::subsequence(vec![1u32, 2, 3, 16], 0..=4),
            files in prop::sample::subsequence(vec![Files::Shared, Files::Each], 0..=2),
            full: bool,
        ) {
            let selection = Selection {
                allocations, methods, sizes, threads, files, ..Selection::default()
            };
            let plan = if full { Plan::full(&selection) } else { Plan::chosen(&selection) };
            let mut keys = keys(&plan);
            keys.sort();
            let measured = keys.len();
            keys.dedup();
            prop_assert_eq!(keys.len(), measured);
            prop_assert!(plan.strategies.iter().all(|s| s.contradiction().is_none()));
            prop_assert!(plan.excluded.iter().all(|e| !e.reason.is_empty()));
            prop_assert!(measured + plan.excluded.len() > 0);
            for strategy in &plan.strategies {
                let operations = plan.operations_of(strategy, 5_000.0);
                prop_assert!(operations.is_multiple_of(u64::from(strategy.threads)));
                prop_assert!(operations >= 1);
            }
        }
    }
}
