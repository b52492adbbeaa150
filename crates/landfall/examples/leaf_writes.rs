//! How many bytes of leaves a B-tree writes that keeps its changes in memory as records, not as dirty pages.
//!
//! `cargo run --release -p landfall --example leaf_writes` plays random updates of a table of 1,000,000 rows through such a
//! tree, without writing anything, and prints for each share of memory what was counted beside `c / (2m)`, and beside
//! `c (1 - e^-u) L / (116 u)`, which is less where a leaf has no change when its group is written: `c` is what a leaf is
//! compressed to, `m` the share of the rows whose changes wait in memory, `L` the bytes of a leaf, and `u` its changes when
//! it is written, `2 m L / 116`. The trace follows from the seed.
//!
//! Changes wait in memory, the newest of each row. When they are more than they may be, the group of leaves whose oldest
//! change is oldest is written: each of its leaves that has a change, whole.

use std::collections::HashSet;

/// Rows of the table, and bytes of each.
const ROWS: usize = 1_000_000;
const ROW: f64 = 116.0;
/// Leaves that are written together.
const GROUP_LEAVES: usize = 64;
/// What a leaf is compressed to.
const COMPRESSED: f64 = 0.5;
const SEED: u64 = 1;

/// Which rows are updated.
#[derive(Clone, Copy)]
enum Trace {
    Uniform,
    /// Row of rank k in proportion to k to the power of minus this.
    Zipf(f64),
}

/// Rows at random, as a trace says.
struct Rows {
    random: fastrand::Rng,
    /// Of a Zipf trace: how likely a row of this rank or a lower one is.
    up_to: Vec<f64>,
    /// Which row has which rank: neighbours are not alike.
    of_rank: Vec<u32>,
}

impl Rows {
    fn new(trace: Trace) -> Rows {
        let mut random = fastrand::Rng::with_seed(SEED);
        let (mut up_to, mut of_rank) = (Vec::new(), Vec::new());
        if let Trace::Zipf(exponent) = trace {
            let mut sum = 0.0;
            up_to.extend((1..=ROWS).map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            }));
            up_to.iter_mut().for_each(|part| *part /= sum);
            of_rank.extend(0..ROWS as u32);
            random.shuffle(&mut of_rank);
        }
        Rows {
            random,
            up_to,
            of_rank,
        }
    }

    fn next(&mut self) -> usize {
        if self.up_to.is_empty() {
            return self.random.usize(..ROWS);
        }
        let at = self.random.f64();
        let rank = self.up_to.partition_point(|part| *part < at);
        self.of_rank[rank.min(ROWS - 1)] as usize
    }
}

/// What a tree has in memory and has written.
struct Tree {
    rows_in_leaf: usize,
    /// Of each group: which rows have changed, and the number of the oldest change.
    groups: Vec<(HashSet<usize>, u64)>,
    changes: usize,
    updates: u64,
    leaves_written: u64,
    changes_written: u64,
}

impl Tree {
    fn new(leaf_bytes: f64) -> Tree {
        let rows_in_leaf = (leaf_bytes / ROW) as usize;
        let groups = ROWS.div_ceil(rows_in_leaf * GROUP_LEAVES);
        Tree {
            rows_in_leaf,
            groups: (0..groups).map(|_| (HashSet::new(), u64::MAX)).collect(),
            changes: 0,
            updates: 0,
            leaves_written: 0,
            changes_written: 0,
        }
    }

    /// Updates a row; `most` changes may wait.
    fn update(&mut self, row: usize, most: usize) {
        self.updates += 1;
        let (rows, oldest) = &mut self.groups[row / (self.rows_in_leaf * GROUP_LEAVES)];
        *oldest = (*oldest).min(self.updates);
        if rows.insert(row) {
            self.changes += 1;
        }
        while self.changes > most {
            self.write_oldest();
        }
    }

    fn write_oldest(&mut self) {
        let group = self.groups.iter_mut().min_by_key(|(_, oldest)| *oldest);
        let Some((rows, oldest)) = group else {
            return;
        };
        let mut leaves: Vec<usize> = rows.iter().map(|row| row / self.rows_in_leaf).collect();
        leaves.sort_unstable();
        leaves.dedup();
        self.leaves_written += leaves.len() as u64;
        self.changes_written += rows.len() as u64;
        self.changes -= rows.len();
        rows.clear();
        *oldest = u64::MAX;
    }
}

/// Bytes of leaves for each byte that was updated; changes of a leaf when it is written; updates whose row
/// was changed again in memory, as a share.
fn play(trace: Trace, leaf_bytes: f64, share: f64) -> (f64, f64, f64) {
    let mut rows = Rows::new(trace);
    let mut tree = Tree::new(leaf_bytes);
    let most = (ROWS as f64 * share) as usize;
    let groups = tree.groups.len() as u64;
    let mut writes_of_groups = 0;
    let mut begin = (0, 0, 0);
    // Twice through all groups until it is steady, and three times to measure.
    while writes_of_groups < 5 * groups {
        let before = tree.changes_written;
        tree.update(rows.next(), most);
        if tree.changes_written > before {
            writes_of_groups += 1;
            if writes_of_groups == 2 * groups {
                begin = (tree.updates, tree.leaves_written, tree.changes_written);
            }
        }
    }
    let updates = (tree.updates - begin.0) as f64;
    let leaves = (tree.leaves_written - begin.1) as f64;
    let changes = (tree.changes_written - begin.2) as f64;
    let amplification = leaves * leaf_bytes * COMPRESSED / (updates * ROW);
    (amplification, changes / leaves, 1.0 - changes / updates)
}

fn main() {
    println!(
        "| trace | leaf | data : changes | counted | c/(2m) | formula | counted / formula | changes a leaf | overwritten in memory |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, trace) in [
        ("uniform", Trace::Uniform),
        ("Zipf 0.8", Trace::Zipf(0.8)),
        ("Zipf 0.99", Trace::Zipf(0.99)),
    ] {
        for leaf_bytes in [4096.0, 16384.0] {
            for ratio in [20.0, 40.0, 160.0, 1000.0] {
                let (counted, changes, overwritten) = play(trace, leaf_bytes, 1.0 / ratio);
                let limit = COMPRESSED * ratio / 2.0;
                let expected = 2.0 / ratio * (leaf_bytes / ROW).floor();
                let formula =
                    COMPRESSED * (1.0 - (-expected).exp()) * leaf_bytes / (ROW * expected);
                println!(
                    "| {name} | {:.0} KiB | {ratio:.0} | {counted:.1} | {limit:.1} | {formula:.1} | {:.2} | {changes:.1} | {:.0}% |",
                    leaf_bytes / 1024.0,
                    counted / formula,
                    overwritten * 100.0,
                );
            }
        }
    }
}
