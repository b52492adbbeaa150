//! Clusters: several servers that keep the same records, each in a directory of its own.
//!
//! A [`Cluster`] says how its nodes are made and started, and how a client comes to them; who starts which nodes, in what
//! order, and what is asked of them then, is the business of whoever proves something. Records are numbers, each kept under a
//! name or in a message of its own: a cluster has all of one or nothing.
//!
//! Nodes are numbered from 0, and listen on fixed ports of 127.0.0.1: whoever starts them must have a
//! [network of his own](landfall_os::isolate_network), in which there is nobody else.
//!
//! Failure: a server that is killed with the thread that started it leaves nothing but its directory. No question to a cluster
//! takes longer than [`ANSWERING`]: that it did not answer by then is [`DatabaseError::Late`], or [`DatabaseError::Failed`]
//! if it said why.

#[cfg(feature = "servers")]
mod calls;
#[cfg(test)]
pub(crate) mod conformance;
#[cfg(feature = "servers")]
pub(crate) mod failover;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::program::telling_lines;
use crate::server::{Ending, Server, socket_directory};
use crate::setting::Chosen;
use crate::{DatabaseError, Presence, Templates};
use landfall_os::{PrivateDirectory, Stop};

#[cfg(feature = "servers")]
pub(crate) use calls::Calls;
/// The most that a client waits for an answer.
pub const ANSWERING: Duration = Duration::from_secs(5);

/// What a list says of a cluster besides.
pub struct ListedCluster {
    /// Where it is on this machine.
    pub presence: fn() -> Presence,
    /// What it is called in a sentence: `etcd, three members`.
    pub title: &'static str,
}

/// Several servers that keep the same records, with their settings.
///
/// What is told to clients to be durable is as durable as the settings make it: nothing here makes them safer than they are.
pub trait Cluster: Send + Sync {
    /// What it is, with its settings.
    fn chosen(&self) -> &Chosen;

    /// Bytes that a node may need in its directory, if a small filesystem has not enough; 0: it has.
    fn capacity(&self) -> u64 {
        0
    }

    /// Makes in the nodes' empty directories what must be there before they are started for the first time. Nothing runs
    /// afterwards.
    fn create(
        &self,
        directories: &[PathBuf],
        templates: &Templates,
        stop: &Stop,
    ) -> Result<(), DatabaseError>;

    /// Starts a node in its directory, and does not wait until it answers. It is killed when the calling thread ends. `stop` is
    /// looked at where its files have to become another node's first.
    fn start(
        &self,
        node: usize,
        directories: &[PathBuf],
        stop: &Stop,
    ) -> Result<Node, DatabaseError>;

    /// Connects to the cluster of which these nodes were started, as soon as it can take records; how it is not yet ready, if
    /// it is not. Where a cluster chooses no leader by itself, this does what its operator would. It is called again and again.
    /// What is there only once, such as a table, is made if it is not.
    fn connect(
        &self,
        directories: &[PathBuf],
        started: &[usize],
    ) -> Result<Box<dyn ClusterSession>, DatabaseError>;

    /// Which records one node has by itself, as it would tell a client that asks nobody else; `None`: it does not say so.
    fn records_of(&self, node: usize) -> Result<Option<BTreeSet<u64>>, DatabaseError>;

    /// Whether a node has handed to its kernel what it has acknowledged; an error as long as it has not, where it acknowledges
    /// before.
    fn has_written(&self, _node: usize) -> Result<(), DatabaseError> {
        Ok(())
    }
}

/// A client of a cluster.
pub trait ClusterSession {
    /// Adds a record; returns once the cluster says that it is there, as its settings understand that.
    fn put(&mut self, record: u64) -> Result<(), DatabaseError>;

    /// All records that the cluster has: read so that none is missed that it acknowledged.
    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError>;
}

/// A node that was started; killed when dropped.
pub struct Node {
    server: Server,
    ending: Ending,
}

impl Node {
    /// Starts a server of this title. `private` is for what it has besides its directory: sockets, settings, logs; it is removed
    /// with the node.
    pub(crate) fn start(
        title: &'static str,
        command: &mut Command,
        private: PrivateDirectory,
    ) -> Result<Node, DatabaseError> {
        let server = Server::start(title, command, private)?;
        Ok(Node::of(server, Ending::TerminateItself))
    }

    /// One whose server was started, and which ends in order by this.
    pub(crate) fn of(server: Server, ending: Ending) -> Node {
        Node { server, ending }
    }

    /// Why it has ended, with its last words; `None` if it runs.
    pub fn ended(&self) -> Option<String> {
        let status = self.server.ended()?;
        let end = telling_lines(&self.server.log());
        Some(format!("ended ({status}){end}"))
    }

    /// Ends it in order, and waits.
    pub fn stop(self) -> Result<(), DatabaseError> {
        self.server.stop(self.ending)
    }
}

/// The address of a node: its port is that of node 0, and its number.
pub(crate) fn address(first_port: u16, node: usize) -> String {
    format!("127.0.0.1:{}", usize::from(first_port) + node)
}

/// A private directory for a node.
pub(crate) fn private() -> Result<PrivateDirectory, DatabaseError> {
    socket_directory()
}
