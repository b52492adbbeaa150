//! Which block is erased next.
//!
//! The blocks in here are *closed*: every page of them was programmed. First in, first out is a queue.
//! Greedy has one ring of blocks for each number of valid pages, so that a block whose page becomes
//! stale moves to the next ring in constant time; within a ring the block that came first is taken first.

use std::collections::VecDeque;

use super::drive::Collector;

/// The closed blocks.
#[derive(Debug)]
pub(super) enum Victims {
    Fifo(VecDeque<u32>),
    Greedy(Rings),
}

impl Victims {
    /// None yet, of blocks of `block` pages.
    pub fn new(collector: Collector, block: u32) -> Victims {
        match collector {
            Collector::Fifo => Victims::Fifo(VecDeque::new()),
            Collector::Greedy => Victims::Greedy(Rings::new(block)),
        }
    }

    /// Blocks below `blocks` can come from now on.
    pub fn make_room(&mut self, blocks: u32) {
        if let Victims::Greedy(rings) = self {
            rings.make_room(blocks);
        }
    }

    /// A block was closed with `valid` valid pages.
    pub fn add(&mut self, block: u32, valid: u32) {
        match self {
            Victims::Fifo(queue) => queue.push_back(block),
            Victims::Greedy(rings) => rings.add(block, valid),
        }
    }

    /// A page of a closed block became stale; it has `valid` valid ones left.
    pub fn lower(&mut self, block: u32, valid: u32) {
        if let Victims::Greedy(rings) = self {
            rings.remove(block);
            rings.add(block, valid);
        }
    }

    /// Takes the block that is to be erased, once one was closed with `valid` valid pages: that one if
    /// there is no better.
    pub fn exchange(&mut self, block: u32, valid: u32) -> u32 {
        self.add(block, valid);
        match self {
            Victims::Fifo(queue) => queue.pop_front().unwrap_or(block),
            Victims::Greedy(rings) => rings.take(),
        }
    }
}

/// Blocks by their number of valid pages.
#[derive(Debug)]
pub(super) struct Rings {
    /// The links of the rings' heads, and after them those of the blocks. A ring always holds its head,
    /// so that nothing is ever at an end.
    links: Vec<Link>,
    heads: u32,
    /// All rings below this one are empty.
    lowest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
}

impl Rings {
    fn new(block: u32) -> Rings {
        let heads = block + 1;
        let alone = |at| Link {
            before: at,
            after: at,
        };
        Rings {
            links: (0..heads).map(alone).collect(),
            heads,
            lowest: heads,
        }
    }

    fn make_room(&mut self, blocks: u32) {
        let len = (self.heads + blocks) as usize;
        // A block that is in no ring has links that nobody follows.
        self.links.resize(
            len.max(self.links.len()),
            Link {
                before: 0,
                after: 0,
            },
        );
    }

    /// Puts a block at the end of the ring.
    fn add(&mut self, block: u32, valid: u32) {
        let at = self.heads + block;
        let last = self.links[valid as usize].before;
        self.links[at as usize] = Link {
            before: last,
            after: valid,
        };
        self.links[last as usize].after = at;
        self.links[valid as usize].before = at;
        self.lowest = self.lowest.min(valid);
    }

    fn remove(&mut self, block: u32) {
        let Link { before, after } = self.links[(self.heads + block) as usize];
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
    }

    /// Takes from the lowest ring; one must hold something. Going up costs no more than the lowest ring
    /// went down before: by one for a stale page, by at most a block's pages for a block that was
    /// programmed since.
    fn take(&mut self) -> u32 {
        while self.links[self.lowest as usize].after == self.lowest {
            self.lowest += 1;
        }
        let block = self.links[self.lowest as usize].after - self.heads;
        self.remove(block);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_is_first_out() {
        let mut victims = Victims::new(Collector::Fifo, 4);
        victims.make_room(4);
        for (block, valid) in [(2, 4), (0, 1), (1, 3)] {
            victims.add(block, valid);
        }
        victims.lower(1, 0);
        let order = [(3, 0), (2, 0), (0, 0)].map(|(block, valid)| victims.exchange(block, valid));
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn greedy_takes_what_has_least_and_of_those_what_came_first() {
        let mut victims = Victims::new(Collector::Greedy, 4);
        victims.make_room(6);
        for (block, valid) in [(2, 4), (0, 1), (1, 3), (4, 1)] {
            victims.add(block, valid);
        }
        assert_eq!(victims.exchange(3, 2), 0);
        victims.lower(1, 2);
        victims.lower(1, 1);
        victims.lower(2, 3);
        victims.lower(2, 2);
        assert_eq!(victims.exchange(0, 0), 0);
        // From here on the fullest comes back each time, and stays.
        let order = [5, 4, 1, 3].map(|block| victims.exchange(block, 4));
        assert_eq!(order, [4, 1, 3, 2]);
        // What is closed is taken if everything else is as full and came later.
        assert_eq!(victims.exchange(2, 1), 2);
    }
}
