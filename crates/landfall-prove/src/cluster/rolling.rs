//! Nodes that end one after the other, while those that are left go on.
//!
//! A minority's power goes in the middle of the transactions; when all have been sent, one node after the other ends, and those
//! that are left have time to notice. A node that has ended talks no more, so that its disk may be cut where it ended, and
//! the others' later.

use std::thread;
use std::time::Duration;

use landfall_recorder::{CommonOrder, SiteRecording};

/// How long those that are left have when all transactions were sent and one more has ended: enough to notice it, and to
/// begin to choose another leader.
const NOTICING: Duration = Duration::from_secs(1);

/// Which nodes end when, and which have ended.
#[derive(Debug)]
pub struct Rolling<'a> {
    order: &'a CommonOrder,
    /// A node ends before this transaction is sent.
    due: Vec<(u64, usize)>,
    ended: Vec<(usize, usize)>,
    is_asked_for: bool,
}

impl<'a> Rolling<'a> {
    /// All nodes end at once, after the last transaction.
    pub(super) fn none(order: &'a CommonOrder) -> Rolling<'a> {
        Rolling {
            order,
            due: Vec::new(),
            ended: Vec::new(),
            is_asked_for: false,
        }
    }

    /// As many of `nodes` as can be missed end during so many transactions; the first of them is `first`.
    pub(super) fn new(
        order: &'a CommonOrder,
        nodes: usize,
        transactions: u64,
        first: usize,
    ) -> Rolling<'a> {
        let minority = nodes - (nodes / 2 + 1);
        let share = transactions / (minority as u64 + 1);
        let due = (0..minority).map(|n| (share * (n as u64 + 1) + 1, (first + n) % nodes));
        Rolling {
            due: due.collect(),
            is_asked_for: true,
            ..Rolling::none(order)
        }
    }

    /// Whether nodes end one after the other.
    pub fn is_asked_for(&self) -> bool {
        self.is_asked_for
    }

    /// A node that is to end before `transaction` is sent; it is to be asked for again once that one has.
    pub fn due(&self, transaction: u64) -> Option<usize> {
        let has_ended = |node| self.ended.iter().any(|(ended, _)| *ended == node);
        let mut due = self.due.iter().filter(|(at, _)| *at <= transaction);
        due.find(|(_, node)| !has_ended(*node))
            .map(|(_, node)| *node)
    }

    /// Notes that a node has been killed, and has ended.
    pub fn has_ended(&mut self, node: usize) {
        self.ended.push((node, self.order.len()));
    }

    /// Leaves those that are left the time to notice that one has ended, if nodes end one after the other.
    pub fn let_notice(&self) {
        if self.is_asked_for {
            thread::sleep(NOTICING);
        }
    }

    /// The nodes that have ended, each with how many events of all nodes there were by then.
    pub(super) fn ended(self) -> Vec<(usize, usize)> {
        if self.is_asked_for {
            self.ended
        } else {
            Vec::new()
        }
    }
}

/// How many events of each node there were when so many of all had happened: of those that `ended` before, as they ended.
pub(super) fn cut(site: &SiteRecording, ended: &[(usize, usize)], moment: usize) -> Vec<usize> {
    cut_by(|moment| site.cut(moment), ended, moment)
}

fn cut_by(
    all: impl Fn(usize) -> Vec<usize>,
    ended: &[(usize, usize)],
    moment: usize,
) -> Vec<usize> {
    let mut cut = all(moment);
    for &(node, at) in ended {
        if at < moment {
            cut[node] = all(at)[node];
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_after_a_node_had_ended_is_not_its_own() {
        // Each of three nodes has an event in turn.
        let all =
            |moment: usize| -> Vec<usize> { (0..3).map(|node| (moment + 2 - node) / 3).collect() };
        let ended = [(1, 6), (0, 9), (2, 9)];
        assert_eq!(cut_by(all, &ended, 5), [2, 2, 1]);
        assert_eq!(cut_by(all, &ended, 8), [3, 2, 2]);
        assert_eq!(cut_by(all, &ended, 12), [3, 2, 3]);
    }

    #[test]
    fn a_minority_ends_during_the_transactions_each_once() {
        let order = CommonOrder::default();
        let mut rolling = Rolling::new(&order, 5, 30, 4);
        assert!(rolling.is_asked_for());
        assert_eq!(rolling.due(10), None);
        assert_eq!(rolling.due(11), Some(4));
        rolling.has_ended(4);
        assert_eq!(rolling.due(12), None);
        assert_eq!(rolling.due(21), Some(0));
        rolling.has_ended(0);
        assert_eq!(rolling.due(u64::MAX), None);
        assert_eq!(rolling.ended(), [(4, 0), (0, 0)]);
        // Of two, none can be missed.
        assert_eq!(Rolling::new(&order, 2, 30, 0).due(u64::MAX), None);
        let mut none = Rolling::none(&order);
        assert_eq!(none.due(u64::MAX), None);
        none.has_ended(1);
        assert!(none.ended().is_empty());
    }
}
