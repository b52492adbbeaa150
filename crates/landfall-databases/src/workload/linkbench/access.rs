//! Which nodes requests are about: few of them much more often than others.
//!
//! Each kind of access has a Zipf distribution of its own over ranks. A permutation says which node has
//! which rank: one for links and another for nodes, so that the links that are often read are often
//! written. A small share of the accesses to links goes to nodes by their out-degree instead, the most
//! links first.

use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Zipf};

use super::super::permutation::Permutation;
use super::graph::Graph;

/// One kind of access.
struct Skew {
    ranks: Zipf<f64>,
    scattered: Permutation,
    /// Share of the accesses that goes by out-degree.
    by_degree: f64,
}

impl Skew {
    fn new(nodes: u64, exponent: f64, by_degree: f64, seed: u64) -> Skew {
        Skew {
            ranks: Zipf::new(nodes as f64, exponent).expect("there are nodes"),
            scattered: Permutation::new(nodes, seed),
            by_degree,
        }
    }

    fn id(&self, graph: &Graph, random: &mut SmallRng) -> u64 {
        let rank = (self.ranks.sample(random) as u64).clamp(1, graph.nodes) - 1;
        if self.by_degree > 0.0 && random.random_bool(self.by_degree) {
            graph.by_degree(rank)
        } else {
            self.scattered.at(rank) + 1
        }
    }
}

/// How nodes are chosen. Those that are added after the load are never.
pub(super) struct Access {
    pub graph: Graph,
    link_read: Skew,
    link_write: Skew,
    node_read: Skew,
    node_update: Skew,
}

impl Access {
    pub fn new(nodes: u64, seed: u64) -> Access {
        let mut seeds = fastrand::Rng::with_seed(seed);
        let [of_graph, of_links, of_nodes] = std::array::from_fn(|_| seeds.u64(..));
        Access {
            graph: Graph::new(nodes, of_graph),
            link_read: Skew::new(nodes, 0.8, 0.005, of_links),
            // The original reads these two from the settings of link reads; they are what it means.
            link_write: Skew::new(nodes, 0.741, 0.05, of_links),
            node_read: Skew::new(nodes, 0.625, 0.0, of_nodes),
            node_update: Skew::new(nodes, 0.606, 0.0, of_nodes),
        }
    }

    /// The node whose links are read.
    pub fn link_read(&self, random: &mut SmallRng) -> u64 {
        self.link_read.id(&self.graph, random)
    }

    /// The node of whose links one is written.
    pub fn link_write(&self, random: &mut SmallRng) -> u64 {
        self.link_write.id(&self.graph, random)
    }

    /// The node that is read.
    pub fn node_read(&self, random: &mut SmallRng) -> u64 {
        self.node_read.id(&self.graph, random)
    }

    /// The node that is updated.
    pub fn node_update(&self, random: &mut SmallRng) -> u64 {
        self.node_update.id(&self.graph, random)
    }

    /// The node that is deleted: each as often as the others.
    pub fn node_delete(&self, random: &mut SmallRng) -> u64 {
        random.random_range(1..=self.graph.nodes)
    }

    /// Where a link of that type that leaves `id1` goes to, if it is to exist with this probability.
    pub fn target(&self, id1: u64, kind: u64, exists: f64, random: &mut SmallRng) -> u64 {
        id1 + random.random_range(..self.targets(id1, kind, exists))
    }

    /// So many different ones; where there are not as many, also those behind them.
    pub fn different_targets(
        &self,
        id1: u64,
        kind: u64,
        exists: f64,
        wanted: u64,
        random: &mut SmallRng,
    ) -> Vec<u64> {
        let range = self.targets(id1, kind, exists);
        if wanted >= range {
            return (id1..id1 + wanted).collect();
        }
        let mut targets = Vec::with_capacity(wanted as usize);
        while (targets.len() as u64) < wanted {
            let target = id1 + random.random_range(..range);
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        targets
    }

    fn targets(&self, id1: u64, kind: u64, exists: f64) -> u64 {
        let links = self.graph.links(id1, kind) as f64;
        ((links / exists).ceil() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    const NODES: u64 = 1_000_000;
    const DRAWN: usize = 200_000;

    /// Share of the accesses that goes to the hottest hundredth of the nodes.
    fn hottest(skew: &Skew, graph: &Graph) -> f64 {
        let mut random = SmallRng::seed_from_u64(1);
        let hot = (0..DRAWN).filter(|_| {
            let id = skew.id(graph, &mut random);
            skew.scattered.place(id - 1) < NODES / 100
        });
        hot.count() as f64 / DRAWN as f64
    }

    #[test]
    fn the_hottest_hundredth_has_the_published_share() {
        let access = Access::new(NODES, 1);
        let shares = [
            (&access.link_read, 0.36),
            (&access.link_write, 0.29),
            (&access.node_read, 0.17),
            (&access.node_update, 0.16),
        ];
        for (skew, expected) in shares {
            let share = hottest(skew, &access.graph);
            assert!((share - expected).abs() < 0.02, "{expected}: {share}");
        }
    }

    #[test]
    fn few_accesses_go_by_degree() {
        let access = Access::new(NODES, 1);
        // The hottest node by degree gets this share of them, and next to nothing of the others.
        let top = access.graph.by_degree(0);
        let share = |skew: &Skew| {
            let mut random = SmallRng::seed_from_u64(2);
            let hits = (0..DRAWN).filter(|_| skew.id(&access.graph, &mut random) == top);
            hits.count() as f64 / DRAWN as f64
        };
        let reads = share(&access.link_read);
        let writes = share(&access.link_write);
        assert!(reads < 0.001, "{reads}");
        assert!((0.0001..0.002).contains(&writes), "{writes}");
    }

    #[test]
    fn all_ids_are_reached_and_no_others() {
        let access = Access::new(10, 1);
        let mut random = SmallRng::seed_from_u64(1);
        let mut seen = [false; 10];
        for _ in 0..10_000 {
            for id in [
                access.link_read(&mut random),
                access.link_write(&mut random),
                access.node_read(&mut random),
                access.node_update(&mut random),
                access.node_delete(&mut random),
            ] {
                seen[id as usize - 1] = true;
            }
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn targets_exist_as_often_as_they_are_to() {
        let access = Access::new(100_000, 1);
        let id1 = access.graph.by_degree(0);
        let links = access.graph.links(id1, 0);
        let mut random = SmallRng::seed_from_u64(1);
        for exists in [0.05, 0.5, 0.9] {
            let hits = (0..DRAWN).filter(|_| {
                let id2 = access.target(id1, 0, exists, &mut random);
                assert!(id2 >= id1);
                id2 < id1 + links
            });
            let share = hits.count() as f64 / DRAWN as f64;
            assert!((share - exists).abs() < 0.005, "{exists}: {share}");
        }
        let without = (1..).find(|&id| access.graph.degree(id) == 0).unwrap();
        assert_eq!(access.target(without, 1, 0.5, &mut random), without);
        assert_eq!(
            access.different_targets(without, 1, 0.5, 9, &mut random),
            Vec::from_iter(without..without + 9)
        );
        let mut targets = access.different_targets(id1, 0, 0.5, 100, &mut random);
        targets.sort_unstable();
        targets.dedup();
        assert_eq!(targets.len(), 100);
    }
}
