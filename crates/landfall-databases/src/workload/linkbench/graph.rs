//! The graph that is loaded: how many links go out of which node, and where to.
//!
//! Out-degrees follow the published cumulative distribution, of which the curve between the points is
//! straight up to five links, and beyond in logarithms of degree and share, as the tail of a power law is.
//! A node's place in it is fixed by a permutation. The node in the middle of each n-th of the curve is
//! taken, so that a small graph has the degrees of a sample of a large one: the original gives its top
//! node 961,963 links at any size, which at 100,000 nodes are three quarters of all.

use super::super::permutation::Permutation;

/// Cumulative share of the nodes, in percent, by out-degree.
const DEGREES: [(u64, f64); 17] = [
    (0, 45.33),
    (1, 77.46),
    (2, 86.96),
    (3, 91.99),
    (4, 94.45),
    (5, 95.83),
    (7, 97.0),
    (9, 98.0),
    (15, 99.0),
    (27, 99.5),
    (264, 99.9),
    (979, 99.95),
    (6_051, 99.99),
    (9_946, 99.995),
    (24_000, 99.999),
    (64_914, 99.9999),
    (961_963, 100.0),
];
/// Up to this degree the curve between two points is straight: each degree is a point.
const STRAIGHT: u64 = 5;
/// Types of links; a node's links are shared among them.
pub(super) const TYPES: u64 = 2;
/// The first type; the others follow. As large a number as the original's, since some databases store
/// small ones in fewer bytes.
pub(super) const FIRST_TYPE: u64 = 123_456_789;

/// The graph of so many nodes, with ids from 1.
pub(super) struct Graph {
    pub nodes: u64,
    /// Nodes by out-degree, the fewest first; numbered from 0.
    by_degree: Permutation,
}

impl Graph {
    pub fn new(nodes: u64, seed: u64) -> Graph {
        Graph {
            nodes,
            by_degree: Permutation::new(nodes, seed),
        }
    }

    /// Links that go out of a node.
    pub fn degree(&self, id: u64) -> u64 {
        let place = self.by_degree.place(id - 1);
        degree_at((place as f64 + 0.5) / self.nodes as f64).min(self.nodes)
    }

    /// Those of a type, numbered from 0.
    pub fn links(&self, id: u64, kind: u64) -> u64 {
        let degree = self.degree(id);
        degree / TYPES + u64::from(kind < degree % TYPES)
    }

    /// The node that has this place among all by degree, the most links first.
    pub fn by_degree(&self, rank: u64) -> u64 {
        self.by_degree.at(self.nodes - 1 - rank) + 1
    }
}

/// The smallest degree that this share of the nodes does not exceed.
fn degree_at(share: f64) -> u64 {
    let percent = share * 100.0;
    let above = DEGREES.partition_point(|&(_, cumulative)| cumulative < percent);
    let (Some(&(high, upper)), Some(&(low, lower))) = (
        DEGREES.get(above),
        above.checked_sub(1).and_then(|below| DEGREES.get(below)),
    ) else {
        return 0;
    };
    if high <= STRAIGHT {
        return high;
    }
    // How few have more.
    let (many, few, wanted) = (100.0 - lower, 100.0 - upper, 100.0 - percent);
    let (low, high) = (low as f64, high as f64);
    let degree = if few > 0.0 {
        low * (high / low).powf((many / wanted).ln() / (many / few).ln())
    } else {
        // The last piece ends where nobody has more, which has no logarithm: it goes on as the one
        // before it does.
        let (before, share_before) = DEGREES[DEGREES.len() - 3];
        let slope = (low / before as f64).ln() / ((100.0 - share_before) / many).ln();
        (low * (many / wanted).powf(slope)).min(high)
    };
    degree.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(nodes: u64) -> f64 {
        let graph = Graph::new(nodes, 1);
        let all: u64 = (1..=nodes).map(|id| graph.degree(id)).sum();
        all as f64 / nodes as f64
    }

    #[test]
    fn the_published_shares_have_the_published_degrees() {
        for (degree, cumulative) in &DEGREES[..16] {
            let share = cumulative / 100.0;
            assert_eq!(degree_at(share - 1e-12), *degree, "{cumulative}");
            assert!(degree_at(share + 1e-12) > *degree, "{cumulative}");
        }
        assert_eq!(degree_at(0.0), 0);
        assert_eq!(degree_at(1.0), 961_963);
    }

    #[test]
    fn the_mean_is_about_four_at_any_size() {
        // The original's without its top node: 3.8 at 100,000, 4.02 at a million, 4.07 at ten million.
        assert!((mean(50_000) - 3.9).abs() < 0.1, "{}", mean(50_000));
        assert!((mean(100_000) - 3.9).abs() < 0.1, "{}", mean(100_000));
        assert!((mean(1_000_000) - 4.02).abs() < 0.1, "{}", mean(1_000_000));
    }

    #[test]
    fn shares_of_the_nodes_are_the_published_ones() {
        let nodes = 100_000;
        let graph = Graph::new(nodes, 7);
        for (degree, cumulative) in &DEGREES[..12] {
            let found = (1..=nodes).filter(|&id| graph.degree(id) <= *degree);
            let percent = found.count() as f64 * 100.0 / nodes as f64;
            assert!((percent - cumulative).abs() < 0.01, "{degree}: {percent}");
        }
    }

    #[test]
    fn no_node_has_more_links_than_there_are_nodes() {
        for nodes in [1, 2, 10, 1000] {
            let graph = Graph::new(nodes, 1);
            assert!((1..=nodes).all(|id| graph.degree(id) <= nodes));
        }
    }

    #[test]
    fn links_are_shared_among_the_types() {
        let graph = Graph::new(1000, 1);
        for id in 1..=1000 {
            let links: Vec<u64> = (0..TYPES).map(|kind| graph.links(id, kind)).collect();
            assert_eq!(links.iter().sum::<u64>(), graph.degree(id));
            assert!(links[0] - links[1] <= 1);
        }
    }

    #[test]
    fn nodes_by_degree_begin_with_the_most_links() {
        let graph = Graph::new(10_000, 1);
        let degrees: Vec<u64> = (0..10_000)
            .map(|rank| graph.degree(graph.by_degree(rank)))
            .collect();
        assert!(degrees.is_sorted_by(|one, next| one >= next));
        assert!(degrees[0] > 5000);
    }
}
