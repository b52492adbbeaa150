//! Clusters that choose no leader by themselves, and what their operator does instead.
//!
//! One node takes writes, and the others follow it. Who does which is known from the nodes alone, which know it from their own
//! files: nothing is remembered here, for all may have been killed.
//!
//! - Every node that was started must have answered before anything is decided: the one that is still recovering may lead, or
//!   have the most.
//! - If nobody leads, the follower that has the most is promoted. So is one that followed a newer leader than the one that leads
//!   here.
//! - The others are told to follow the leader.
//! - A node that led and comes back when another one leads follows that one. What it has to give up for it is seen when it
//!   [starts](leader_elsewhere): a server that runs may not be able to.

use crate::DatabaseError;

/// How far a node is; of two, the greater has more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// How many leaders there had been, where nodes know that: a later leader's history is the one that counts.
    pub term: u64,
    /// How much of the history it has.
    pub offset: u64,
    /// How many records it has, where its offset does not survive a restart.
    pub records: u64,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It takes writes.
    Leads,
    /// It follows another one, which may not be there.
    Follows,
}

/// What an operator does with the nodes of a cluster.
pub(crate) trait Operated {
    /// A connection to one node, as its administrator.
    type Connection;

    /// Connects to a node that has finished its recovery.
    fn administer(&self, node: usize) -> Result<Self::Connection, DatabaseError>;

    /// What a node does, and how far it is.
    fn role(&self, connection: &mut Self::Connection) -> Result<(Role, Position), DatabaseError>;

    /// Makes a follower lead. Returns when it does.
    fn promote(&self, connection: &mut Self::Connection) -> Result<(), DatabaseError>;

    /// Has a node follow `leader`, now and when it is started again; nothing is done if it does already.
    fn follow(&self, connection: &mut Self::Connection, leader: usize)
    -> Result<(), DatabaseError>;
}

/// The node that leads those that were started, once all of them know it.
pub(crate) fn lead<O: Operated>(
    operated: &O,
    started: &[usize],
) -> Result<(usize, O::Connection), DatabaseError> {
    let mut nodes = Vec::new();
    for &node in started {
        let mut connection = operated.administer(node)?;
        let (role, position) = operated.role(&mut connection)?;
        nodes.push((node, connection, role, position));
    }
    let roles = nodes.iter().map(|&(_, _, role, position)| (role, position));
    let Some((chosen, leads)) = choose(roles.enumerate()) else {
        return Err(DatabaseError::Late("no node was started".into()));
    };
    let (leader, mut connection, ..) = nodes.swap_remove(chosen);
    if !leads {
        operated.promote(&mut connection)?;
    }
    for (_, connection, ..) in &mut nodes {
        operated.follow(connection, leader)?;
    }
    Ok((leader, connection))
}

/// Who is to lead, and whether he does.
fn choose(nodes: impl Iterator<Item = (usize, (Role, Position))>) -> Option<(usize, bool)> {
    // Whoever leads goes before whoever has more of the same leader's history.
    let best = nodes.max_by_key(|&(_, (role, position))| {
        let leads = role == Role::Leads;
        (position.term, leads, position)
    });
    best.map(|(node, (role, _))| (node, role == Role::Leads))
}

/// Who leads now among the other nodes, and how far he is; `None`: nobody does who answers.
pub(crate) fn leader_elsewhere<O: Operated>(
    operated: &O,
    node: usize,
    nodes: usize,
) -> Option<(usize, Position)> {
    let others = (0..nodes).filter(|&other| other != node);
    let leaders = others.filter_map(|other| {
        let mut connection = operated.administer(other).ok()?;
        let (role, position) = operated.role(&mut connection).ok()?;
        (role == Role::Leads).then_some((other, position))
    });
    leaders.max_by_key(|&(_, position)| position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(nodes: &[(Role, u64, u64)]) -> Option<(usize, bool)> {
        let nodes = nodes.iter().map(|&(role, term, offset)| {
            let position = Position {
                term,
                offset,
                records: 0,
            };
            (role, position)
        });
        choose(nodes.enumerate())
    }

    #[test]
    fn whoever_leads_does_so_whatever_others_have() {
        let nodes = [(Role::Follows, 1, 9), (Role::Leads, 1, 3)];
        assert_eq!(chosen(&nodes), Some((1, true)));
    }

    #[test]
    fn without_a_leader_the_one_that_has_most_is_promoted() {
        let follows = Role::Follows;
        let nodes = [(follows, 1, 3), (follows, 1, 9), (follows, 1, 4)];
        assert_eq!(chosen(&nodes), Some((1, false)));
        assert_eq!(chosen(&[]), None);
    }

    #[test]
    fn a_later_leader_counts() {
        let (leads, follows) = (Role::Leads, Role::Follows);
        assert_eq!(chosen(&[(leads, 1, 9), (leads, 2, 3)]), Some((1, true)));
        assert_eq!(chosen(&[(leads, 1, 9), (follows, 2, 3)]), Some((1, false)));
    }
}
