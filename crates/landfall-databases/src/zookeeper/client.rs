//! A client of the tree.
//!
//! Threads: as its [`Calls`]; the library has one for its sockets besides, which waits for them and speaks to nobody.

use std::collections::BTreeSet;
use std::time::Duration;

use zookeeper_client::{Acls, CreateMode, CreateOptions, Error};

use super::{CLIENTS, TITLE};
use crate::DatabaseError;
use crate::cluster::{Calls, ClusterSession, address};

/// Below which nodes of the tree records are: each is one.
const RECORDS: &str = "/records";
/// What is changed only to show how far a server has come.
const BARRIER: &str = "/barrier";
/// How long it is waited for an answer of a server that is busy: as long as a server lets a session last, 20 of its ticks.
const SESSION: Duration = Duration::from_secs(10);
const CREATED: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

pub(super) struct Client {
    // Dropped before what it runs in.
    tree: zookeeper_client::Client,
    calls: Calls,
}

impl Client {
    /// Connects to one of these servers, which takes a majority of all.
    pub fn connect(nodes: &[usize]) -> Result<Client, DatabaseError> {
        let calls = Calls::new()?;
        let addresses: Vec<String> = nodes.iter().map(|&node| address(CLIENTS, node)).collect();
        let addresses = addresses.join(",");
        // Otherwise it is tried for as long as a session lasts.
        let connector = zookeeper_client::Client::connector()
            .with_session_timeout(SESSION)
            .with_fail_eagerly();
        let connected = calls.wait("a connection", connector.connect(&addresses))?;
        Ok(Client {
            tree: connected.map_err(explained)?,
            calls,
        })
    }

    /// Makes what is there only once, if it is not.
    pub fn make_tree(&self) -> Result<(), DatabaseError> {
        self.make(RECORDS)?;
        self.make(BARRIER)
    }

    /// Makes a node of the tree, if it is not there.
    fn make(&self, path: &str) -> Result<(), DatabaseError> {
        let created = self.tree.create(path, b"", &CREATED);
        match self.calls.wait("an acknowledgement", created)? {
            // Who was told nothing the first time may try again.
            Err(Error::NodeExists) => Ok(()),
            created => created.map(drop).map_err(explained),
        }
    }

    /// All records that the server has by itself to which this is connected.
    pub fn own_records(&self) -> Result<BTreeSet<u64>, DatabaseError> {
        let listed = self.tree.list_children(RECORDS);
        let names = match self.calls.wait("a list", listed)? {
            // A server that was just made has not come to it.
            Err(Error::NoNode) => Vec::new(),
            names => names.map_err(explained)?,
        };
        let numbers = names.iter().map(|name| {
            name.parse().map_err(|_| {
                DatabaseError::Failed(format!("{TITLE} has a node that nobody made: {name}"))
            })
        });
        numbers.collect()
    }
}

impl ClusterSession for Client {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        self.make(&format!("{RECORDS}/{record}"))
    }

    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
        // Changes come to all servers in one order, and a client sees its own: what was acknowledged before is there too. A
        // `sync` alone would be answered by who only believes that it leads.
        let changed = self.tree.set_data(BARRIER, b"", None);
        let changed = self.calls.wait("an acknowledgement", changed)?;
        changed.map_err(explained)?;
        self.own_records()
    }
}

fn explained(error: Error) -> DatabaseError {
    let text = format!("{TITLE}: {error}");
    match error {
        Error::NoHosts
        | Error::Timeout
        | Error::ConnectionLoss
        | Error::SessionExpired
        | Error::SessionMoved
        | Error::ClientClosed
        | Error::Throttled => DatabaseError::Late(text),
        _ => DatabaseError::Failed(text),
    }
}
