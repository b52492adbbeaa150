//! What a disk's write cache holds that is not on the platter yet.
//!
//! Pieces never overlap or touch: a write that meets others becomes one piece with them. Memory is in
//! proportion to the number of pieces, which the disk limits, whatever their size.

use std::collections::BTreeMap;

/// Written sectors that wait for the platter.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// From the first sector of each piece to the one after its last.
    pieces: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Dirty {
    /// Sectors in all pieces.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Pieces that are apart.
    pub fn pieces(&self) -> u64 {
        self.pieces.len() as u64
    }

    /// Adds the sectors from `start` up to `end`. What was there already is written once.
    pub fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        if let Some((&before, &until)) = self.pieces.range(..start).next_back()
            && until >= start
        {
            start = before;
            end = end.max(until);
        }
        while let Some((&next, &until)) = self.pieces.range(start..).next()
            && next <= end
        {
            end = end.max(until);
            self.sectors -= until - next;
            self.pieces.remove(&next);
        }
        self.sectors += end - start;
        self.pieces.insert(start, end);
    }

    /// Takes up to `most` sectors out: those that an arm comes to next which moves upwards from `at` and
    /// then begins again at the lowest (an elevator of the kind C-SCAN).
    pub fn take(&mut self, at: u64, most: u64) -> Option<(u64, u64)> {
        let ahead = self.pieces.range(at..).next();
        let (&start, &until) = ahead.or_else(|| self.pieces.first_key_value())?;
        let end = until.min(start.saturating_add(most.max(1)));
        self.pieces.remove(&start);
        if end < until {
            self.pieces.insert(end, until);
        }
        self.sectors -= end - start;
        Some((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn neighbours_become_one_piece_and_rewrites_cost_nothing() {
        let mut dirty = Dirty::default();
        dirty.add(10, 20);
        dirty.add(30, 40);
        dirty.add(12, 18);
        assert_eq!((dirty.pieces(), dirty.sectors()), (2, 20));
        dirty.add(20, 30);
        assert_eq!((dirty.pieces(), dirty.sectors()), (1, 30));
        dirty.add(50, 50);
        assert_eq!(dirty.pieces(), 1);
    }

    #[test]
    fn the_elevator_goes_up_and_begins_again() {
        let mut dirty = Dirty::default();
        for start in [70, 10, 50, 30] {
            dirty.add(start, start + 5);
        }
        let mut at = 40;
        let mut order = Vec::new();
        while let Some((start, end)) = dirty.take(at, 100) {
            order.push(start);
            at = end;
        }
        assert_eq!(order, [50, 70, 10, 30]);
        dirty.add(0, 10);
        assert_eq!(dirty.take(0, 4), Some((0, 4)));
        assert_eq!((dirty.pieces(), dirty.sectors()), (1, 6));
    }

    proptest! {
        #[test]
        fn it_holds_what_a_set_of_sectors_would(
            steps in prop::collection::vec((0u64..200, 0u64..20, any::<bool>()), 0..60)
        ) {
            let mut dirty = Dirty::default();
            let mut set = BTreeSet::new();
            for (start, len, takes) in steps {
                if takes {
                    if let Some((start, end)) = dirty.take(start, len) {
                        for sector in start..end {
                            prop_assert!(set.remove(&sector));
                        }
                    }
                } else {
                    dirty.add(start, start + len);
                    set.extend(start..start + len);
                }
                prop_assert_eq!(dirty.sectors(), set.len() as u64);
                let runs = set.iter().filter(|sector| !set.contains(&(**sector + 1))).count();
                prop_assert!(dirty.pieces() as usize >= runs);
            }
        }
    }
}
