//! What LinkBench asks of a store of links and nodes, in whichever form it keeps them.

use super::request::{Link, LinkKey, Node, Request, Start};
use crate::DatabaseError;

/// A client's way to the links and nodes. Each call is one transaction or one query.
pub(super) trait Store: Send {
    /// Puts a visible link, or gives one that is there a new time, version and data and makes it visible;
    /// counts it if it was not visible. Says whether it was there.
    fn put_link(&mut self, link: &Link) -> Result<bool, DatabaseError>;

    /// Hides a link and counts it no more; says whether it was visible.
    fn hide_link(&mut self, key: LinkKey, time: u64) -> Result<bool, DatabaseError>;

    /// How many visible links of a type go out of a node.
    fn count_links(&mut self, id1: u64, kind: u64) -> Result<u64, DatabaseError>;

    /// Those of these links that are there.
    fn get_links(&mut self, id1: u64, kind: u64, id2s: &[u64]) -> Result<Vec<Link>, DatabaseError>;

    /// The visible links from there on, the latest first, no more than the limit.
    fn list_links(&mut self, id1: u64, kind: u64, from: Start) -> Result<Vec<Link>, DatabaseError>;

    /// A node.
    fn get_node(&mut self, id: u64) -> Result<Option<Node>, DatabaseError>;

    /// Adds a node; says its id.
    fn add_node(&mut self, node: &Node) -> Result<u64, DatabaseError>;

    /// Puts another node in place of one; says whether there was one.
    fn update_node(&mut self, id: u64, node: &Node) -> Result<bool, DatabaseError>;

    /// Takes a node away; says whether there was one.
    fn delete_node(&mut self, id: u64) -> Result<bool, DatabaseError>;
}

/// What a store answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Whether something was there.
    Was(bool),
    Count(u64),
    Links(Vec<Link>),
    Node(Option<Node>),
    Id(u64),
}

/// Asks a store.
pub(super) fn ask(store: &mut dyn Store, request: &Request) -> Result<Answer, DatabaseError> {
    Ok(match request {
        Request::AddLink(link) | Request::UpdateLink(link) => Answer::Was(store.put_link(link)?),
        Request::DeleteLink { key, time } => Answer::Was(store.hide_link(*key, *time)?),
        Request::CountLinks { id1, kind } => Answer::Count(store.count_links(*id1, *kind)?),
        Request::GetLinks { id1, kind, id2s } => Answer::Links(store.get_links(*id1, *kind, id2s)?),
        Request::ListLinks { id1, kind, from } => {
            Answer::Links(store.list_links(*id1, *kind, *from)?)
        }
        Request::GetNode(id) => Answer::Node(store.get_node(*id)?),
        Request::AddNode(node) => Answer::Id(store.add_node(node)?),
        Request::UpdateNode(id, node) => Answer::Was(store.update_node(*id, node)?),
        Request::DeleteNode(id) => Answer::Was(store.delete_node(*id)?),
    })
}
