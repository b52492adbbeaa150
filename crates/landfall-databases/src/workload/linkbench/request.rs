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
/// Links that are got at once, as in the original: at least two, and after each further one another, with
/// this probability less than one; 3.6 on average.
const FEWEST: u64 = 2;
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

/// Those of them that only read.
pub(super) const READS: &[&str] = &["count_links", "multiget_links", "get_link_list", "get_node"];

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

/// Where a list of links begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Latest,
    /// Behind the last link of an earlier list, which had this time.
    Behind(u64),
}

impl Start {
    /// The latest time of the list, and how many of its links are skipped: as in the original the last
    /// link of the earlier list, which has this time too.
    pub fn place(self) -> (u64, u64) {
        match self {
            Start::Latest => (i64::MAX as u64, 0),
            Start::Behind(time) => (time, 1),
        }
    }
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
    /// Visible links, those of the latest time first.
    ListLinks {
        id1: u64,
        kind: u64,
        from: Start,
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
    /// How many links are got at once, less the fewest.
    more: Geometric,
    /// Lists that hit their limit, and go on behind it.
    tails: Vec<Tail>,
}

/// How far the list of a node's links of a type was read.
struct Tail {
    id1: u64,
    kind: u64,
    /// That of the last link that was read.
    time: u64,
}

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw {
            random: SmallRng::seed_from_u64(seed),
            more: Geometric::new(LAST).expect("a constant probability is valid"),
            tails: Vec::new(),
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
                let wanted = (FEWEST + self.more.sample(random)).min(MOST);
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
            let tail = &self.tails[random.random_range(..self.tails.len())];
            return Request::ListLinks {
                id1: tail.id1,
                kind: tail.kind,
                from: Start::Behind(tail.time),
            };
        }
        Request::ListLinks {
            id1: access.link_read(random),
            kind: FIRST_TYPE + kind,
            from: Start::Latest,
        }
    }

    /// Remembers how far a list was read: up to its limit, to be continued there, or to its end.
    pub fn remember(&mut self, request: &Request, answer: &Answer) {
        let (&Request::ListLinks { id1, kind, from }, Answer::Links(links)) = (request, answer)
        else {
            return;
        };
        let of_list = |tail: &Tail| (tail.id1, tail.kind) == (id1, kind);
        let place = self.tails.iter().position(of_list);
        match links.get(LIST_LIMIT - 1).map(|last| last.time) {
            Some(time) => match place {
                Some(place) => self.tails[place].time = time,
                None => self.tails.push(Tail { id1, kind, time }),
            },
            None if from != Start::Latest => {
                place.map(|place| self.tails.swap_remove(place));
            }
            None => {}
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
    fn less_than_a_third_of_the_requests_write() {
        let kinds = NAMES.iter().zip(SHARES);
        let writing: f64 = kinds
            .filter(|(name, _)| !READS.contains(name))
            .map(|(_, share)| share)
            .sum();
        assert!((writing - 30.943).abs() < 0.001, "{writing}");
    }

    #[test]
    fn links_are_got_by_few_ids() {
        let sizes: Vec<f64> = drawn(DRAWN * 2)
            .iter()
            .filter_map(|request| match request {
                Request::GetLinks { id1, id2s, .. } => {
                    assert!(id2s.iter().all(|id2| id2 >= id1));
                    assert!(id2s.len() >= 2);
                    Some(id2s.len() as f64)
                }
                _ => None,
            })
            .collect();
        // The original's: two, and the mean of what is left.
        let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
        assert!((mean - 3.618).abs() < 0.1, "{mean}");
    }

    #[test]
    fn the_same_seed_asks_the_same() {
        assert_eq!(drawn(1000), drawn(1000));
    }

    #[test]
    fn a_list_is_continued_where_it_hit_its_limit_until_it_ends() {
        let source = Source::new(100, 1);
        let mut draw = Draw::new(1);
        let (id1, kind) = (5, 6);
        let answer = |time, links| {
            let link = Link {
                key: LinkKey { id1, kind, id2: 7 },
                is_visible: true,
                time,
                version: 0,
                data: Vec::new(),
            };
            Answer::Links(vec![link; links])
        };
        let request = |from| Request::ListLinks { id1, kind, from };
        let continued = |draw: &mut Draw| -> Vec<Start> {
            let lists = (0..20_000).filter_map(|_| match draw.next(&source, 7) {
                Request::ListLinks { from, .. } => Some(from),
                _ => None,
            });
            lists.filter(|&from| from != Start::Latest).collect()
        };
        draw.remember(&request(Start::Latest), &answer(9, LIST_LIMIT - 1));
        assert_eq!(continued(&mut draw), []);
        for time in [9, 8] {
            draw.remember(&request(Start::Latest), &answer(time, LIST_LIMIT));
        }
        let starts = continued(&mut draw);
        // 0.3% of the half of 20,000 that are lists, of one tail.
        assert!((10..60).contains(&starts.len()), "{}", starts.len());
        assert!(starts.iter().all(|&start| start == Start::Behind(8)));
        draw.remember(&request(Start::Behind(8)), &answer(3, LIST_LIMIT));
        assert!(continued(&mut draw).contains(&Start::Behind(3)));
        draw.remember(&request(Start::Latest), &answer(3, 1));
        assert!(continued(&mut draw).contains(&Start::Behind(3)));
        draw.remember(&request(Start::Behind(3)), &answer(1, LIST_LIMIT - 1));
        assert_eq!(continued(&mut draw), []);
    }
}
