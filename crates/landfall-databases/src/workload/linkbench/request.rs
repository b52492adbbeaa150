//! Requests: which there are, how often, and of what.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Geometric};

use super::access::Access;
use super::graph::{FIRST_TYPE, TYPES};
use super::payload::Payload;
use super::store::Answer;

/// The type of all nodes.
pub(super) const NODE_TYPE: u32 = 2048;
/// Links that a list has, at most.
pub(super) const LIST_LIMIT: usize = 10_000;
/// Share of the lists that continue an earlier one.
const HISTORY: f64 = 0.003;
/// Lists that hit their limit and can be continued; the oldest is forgotten.
const TAILS: usize = 1024;
/// Links that are got at once: after each the next is one too, with this probability less than one.
const LAST: f64 = 0.382;
const MOST: u64 = 128;

/// Names of the kinds of requests, in the order of [`SHARES`].
pub(super) const NAMES: [&str; 10] = [
    "add_link",
    "delete_link",
    "update_link",
    "count_links",
    "multiget_links",
    "get_link_list",
    "get_node",
    "add_node",
    "update_node",
    "delete_node",
];

/// How many of a hundred requests are of each kind.
const SHARES: [f64; 10] = [
    8.9886601, 2.9907664, 8.0122125, 4.8863567, 0.5261142, 50.7119145, 12.9326683, 2.5732789,
    7.366437, 1.0115914,
];

/// What a link is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinkKey {
    pub id1: u64,
    pub kind: u64,
    pub id2: u64,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub key: LinkKey,
    /// Whether lists show it and counts count it.
    pub is_visible: bool,
    /// Milliseconds since 1970.
    pub time: u64,
    pub version: u32,
    pub data: Vec<u8>,
}

/// A node, without its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub version: u64,
    /// Seconds since 1970.
    pub time: u32,
    pub data: Vec<u8>,
}

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    AddLink(Link),
    DeleteLink {
        key: LinkKey,
        time: u64,
    },
    UpdateLink(Link),
    CountLinks {
        id1: u64,
        kind: u64,
    },
    GetLinks {
        id1: u64,
        kind: u64,
        id2s: Vec<u64>,
    },
    /// Visible links, those of the latest time first, of before a time.
    ListLinks {
        id1: u64,
        kind: u64,
        before: u64,
    },
    GetNode(u64),
    AddNode(Node),
    UpdateNode(u64, Node),
    DeleteNode(u64),
}

impl Request {
    /// Which of [`NAMES`].
    pub fn kind(&self) -> usize {
        match self {
            Request::AddLink(_) => 0,
            Request::DeleteLink { .. } => 1,
            Request::UpdateLink(_) => 2,
            Request::CountLinks { .. } => 3,
            Request::GetLinks { .. } => 4,
            Request::ListLinks { .. } => 5,
            Request::GetNode(_) => 6,
            Request::AddNode(_) => 7,
            Request::UpdateNode(..) => 8,
            Request::DeleteNode(_) => 9,
        }
    }
}

/// What all clients draw from.
pub(super) struct Source {
    pub access: Access,
    pub links: Payload,
    pub nodes: Payload,
}

impl Source {
    pub fn new(nodes: u64, seed: u64) -> Source {
        Source {
            access: Access::new(nodes, seed),
            links: Payload::of_links(seed),
            nodes: Payload::of_nodes(seed),
        }
    }
}

/// What one client asks next.
pub(super) struct Draw {
    random: SmallRng,
    /// How many links are got at once, less one.
    more: Geometric,
    /// Lists that hit their limit: of which node and type, and the time of their last link.
    tails: Vec<(u64, u64, u64)>,
    /// Which of them is forgotten next.
    oldest: usize,
}

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw {
            random: SmallRng::seed_from_u64(seed),
            more: Geometric::new(LAST).expect("a constant probability is valid"),
            tails: Vec::new(),
            oldest: 0,
        }
    }

    /// The next request, at this time in milliseconds since 1970.
    pub fn next(&mut self, source: &Source, time: u64) -> Request {
        let Source {
            access,
            links,
            nodes,
        } = source;
        let random = &mut self.random;
        let number = random.random_range(0.0..SHARES.iter().sum());
        let mut upper = 0.0;
        let number = SHARES.iter().position(|share| {
            upper += share;
            number < upper
        });
        let kind = random.random_range(0..TYPES);
        let change = |random: &mut SmallRng, exists: f64| {
            let id1 = access.link_write(random);
            let id2 = access.target(id1, kind, exists, random);
            let kind = FIRST_TYPE + kind;
            LinkKey { id1, kind, id2 }
        };
        let link = |random: &mut SmallRng, exists: f64| Link {
            key: change(random, exists),
            is_visible: true,
            time,
            version: 0,
            data: links.draw(random),
        };
        let node = |random: &mut SmallRng, version: u64| Node {
            version,
            time: (time / 1000) as u32,
            data: nodes.draw(random),
        };
        match number.unwrap_or(0) {
            0 => Request::AddLink(link(random, 0.05)),
            1 => Request::DeleteLink {
                key: change(random, 0.9),
                time,
            },
            2 => Request::UpdateLink(link(random, 0.9)),
            3 => Request::CountLinks {
                id1: access.link_read(random),
                kind: FIRST_TYPE + kind,
            },
            4 => {
                let id1 = access.link_read(random);
                let wanted = (1 + self.more.sample(random)).min(MOST);
                Request::GetLinks {
                    id1,
                    kind: FIRST_TYPE + kind,
                    id2s: access.different_targets(id1, kind, 0.5, wanted, random),
                }
            }
            5 => self.list(access, kind),
            6 => Request::GetNode(access.node_read(random)),
            7 => Request::AddNode(node(random, 1)),
            // Whatever it was before.
            8 => Request::UpdateNode(access.node_update(random), node(random, 2)),
            _ => Request::DeleteNode(access.node_delete(random)),
        }
    }

    fn list(&mut self, access: &Access, kind: u64) -> Request {
        let random = &mut self.random;
        if random.random_bool(HISTORY) && !self.tails.is_empty() {
            let (id1, kind, before) = self.tails[random.random_range(..self.tails.len())];
            return Request::ListLinks { id1, kind, before };
        }
        Request::ListLinks {
            id1: access.link_read(random),
            kind: FIRST_TYPE + kind,
            before: i64::MAX as u64,
        }
    }

    /// Remembers where a list can be continued.
    pub fn remember(&mut self, answer: &Answer) {
        let Answer::Links(links) = answer else { return };
        let Some(last) = links.last().filter(|_| links.len() == LIST_LIMIT) else {
            return;
        };
        let tail = (last.key.id1, last.key.kind, last.time);
        if self.tails.len() < TAILS {
            self.tails.push(tail);
        } else {
            self.tails[self.oldest] = tail;
            self.oldest = (self.oldest + 1) % TAILS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: usize = 200_000;

    fn drawn(times: usize) -> Vec<Request> {
        let source = Source::new(10_000, 1);
        let mut draw = Draw::new(1);
        (0..times).map(|_| draw.next(&source, 7)).collect()
    }

    #[test]
    fn the_mix_is_the_published_one() {
        let all: f64 = SHARES.iter().sum();
        assert!((all - 100.0).abs() < 1e-6, "{all}");
        let mut counts = [0; NAMES.len()];
        for request in drawn(DRAWN) {
            counts[request.kind()] += 1;
        }
        for (kind, share) in SHARES.iter().enumerate() {
            let percent = counts[kind] as f64 * 100.0 / DRAWN as f64;
            assert!((percent - share).abs() < 0.35, "{}: {percent}", NAMES[kind]);
        }
    }

    #[test]
    fn links_are_got_by_few_ids() {
        let sizes: Vec<f64> = drawn(DRAWN * 2)
            .iter()
            .filter_map(|request| match request {
                Request::GetLinks { id1, id2s, .. } => {
                    assert!(id2s.iter().all(|id2| id2 >= id1));
                    Some(id2s.len() as f64)
                }
                _ => None,
            })
            .collect();
        // Of 2.6 that are wanted; many nodes have not as many to choose from.
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((1.1..2.6).contains(&mean), "{mean}");
        let mut random = SmallRng::seed_from_u64(1);
        let more = Draw::new(1).more;
        let wanted: u64 = (0..DRAWN).map(|_| 1 + more.sample(&mut random)).sum();
        let mean = wanted as f64 / DRAWN as f64;
        assert!((mean - 2.618).abs() < 0.02, "{mean}");
    }

    #[test]
    fn the_same_seed_asks_the_same() {
        assert_eq!(drawn(1000), drawn(1000));
    }

    #[test]
    fn only_lists_that_hit_their_limit_are_continued() {
        let source = Source::new(100, 1);
        let mut draw = Draw::new(1);
        let link = |time| Link {
            key: LinkKey {
                id1: 5,
                kind: 6,
                id2: 7,
            },
            is_visible: true,
            time,
            version: 0,
            data: Vec::new(),
        };
        let continued = |draw: &mut Draw| {
            let lists = (0..20_000).filter_map(|_| match draw.next(&source, 7) {
                Request::ListLinks { before, .. } => Some(before),
                _ => None,
            });
            lists.filter(|&before| before < i64::MAX as u64).count()
        };
        draw.remember(&Answer::Links(vec![link(1); LIST_LIMIT - 1]));
        assert_eq!(continued(&mut draw), 0);
        for time in 0..2 * TAILS as u64 {
            draw.remember(&Answer::Links(vec![link(time); LIST_LIMIT]));
        }
        assert_eq!(draw.tails.len(), TAILS);
        assert!(draw.tails.iter().all(|tail| tail.2 >= TAILS as u64));
        // 0.3% of the half of 20,000 that are lists.
        assert!((10..60).contains(&continued(&mut draw)));
    }
}
