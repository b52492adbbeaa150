//! What is loaded: nodes, their links, and the counts of those.
//!
//! Everything about a node follows from the seed and its id, so that any number of loaders make the same.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::graph::{FIRST_TYPE, TYPES};
use super::request::{Link, LinkKey, Node, Source};

/// Ids that a loader takes at a time.
pub(super) const CHUNK: u64 = 2048;
/// Links that are inserted at once, at most.
pub(super) const BATCH: usize = 1024;
/// When loaded links were made: in the 50 days from here on, milliseconds since 1970 (May 2013).
const EPOCH: u64 = 1_368_000_000_000;
const SPAN: u64 = 50 * 24 * 3600 * 1000;

/// A node with all that begins at it.
pub(super) struct Loaded {
    pub id: u64,
    pub node: Node,
    random: SmallRng,
}

impl Source {
    /// The node of that id.
    pub fn loaded(&self, id: u64, seed: u64) -> Loaded {
        // Far from the seeds of other ids, whatever the seed.
        let mut random = SmallRng::seed_from_u64(seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Loaded {
            id,
            node: Node {
                version: 1,
                time: ((EPOCH + SPAN) / 1000) as u32,
                data: self.nodes.draw(&mut random),
            },
            random,
        }
    }
}

impl Loaded {
    /// How many links of each type go out of it, where there are any.
    pub fn counts(&self, source: &Source) -> Vec<(u64, u64)> {
        let graph = &source.access.graph;
        let counts = (0..TYPES).map(|kind| (FIRST_TYPE + kind, graph.links(self.id, kind)));
        counts.filter(|&(_, count)| count > 0).collect()
    }

    /// Its links: the i-th goes to the i-th id from its own on.
    pub fn links(mut self, source: &Source) -> impl Iterator<Item = Link> {
        let id1 = self.id;
        let keys = self
            .counts(source)
            .into_iter()
            .flat_map(move |(kind, count)| {
                (id1..id1 + count).map(move |id2| LinkKey { id1, kind, id2 })
            });
        keys.map(move |key| Link {
            key,
            is_visible: true,
            time: EPOCH + self.random.random_range(..SPAN),
            version: 0,
            data: source.links.draw(&mut self.random),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_links() {
        let source = Source::new(1000, 1);
        for id in 1..=1000 {
            let counts: Vec<(u64, u64)> = source.loaded(id, 1).counts(&source);
            let links: Vec<Link> = source.loaded(id, 1).links(&source).collect();
            assert_eq!(links.len() as u64, source.access.graph.degree(id));
            for (kind, count) in counts {
                let of_kind = links.iter().filter(|link| link.key.kind == kind);
                let id2s: Vec<u64> = of_kind.map(|link| link.key.id2).collect();
                assert_eq!(id2s, (id..id + count).collect::<Vec<u64>>());
            }
            for link in links {
                assert!(link.is_visible && link.key.id1 == id);
                assert!((EPOCH..EPOCH + SPAN).contains(&link.time));
            }
        }
    }

    #[test]
    fn a_node_is_the_same_every_time_and_others_are_not() {
        let source = Source::new(1000, 1);
        let loaded = |id, seed| source.loaded(id, seed).node;
        assert_eq!(loaded(5, 1), loaded(5, 1));
        assert_ne!(loaded(5, 1), loaded(6, 1));
        assert_ne!(loaded(5, 1), loaded(5, 2));
    }
}
