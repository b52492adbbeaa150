//! A client of the topic.
//!
//! Threads: as its [`Calls`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use rskafka::BackoffConfig;
use rskafka::chrono::{DateTime, Utc};
use rskafka::client::ClientBuilder;
use rskafka::client::error::{Error, ProtocolError};
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::record::{Record, RecordAndOffset};

use super::{CLIENTS, TITLE, TOPIC};
use crate::DatabaseError;
use crate::cluster::{ANSWERING, Calls, ClusterSession, address};

/// The key of a record that only shows how far the partition has come; others have none.
const BARRIER: &[u8] = b"barrier";
/// The most bytes that are asked for at once.
const MOST: i32 = 1 << 20;
/// How long the leader waits for something to answer.
const WAITING: Duration = Duration::from_millis(500);

pub(super) struct Client {
    // Dropped before what it runs in.
    partition: PartitionClient,
    calls: Calls,
}

impl Client {
    /// Connects to these nodes, makes the topic with so many replicas if that is wanted, and shows that it takes records.
    pub fn connect(nodes: &[usize], replicas: Option<usize>) -> Result<Client, DatabaseError> {
        let calls = Calls::new()?;
        let addresses = nodes.iter().map(|&node| address(CLIENTS, node)).collect();
        let partition = calls.wait("a connection", connect(addresses, replicas))?;
        let client = Client {
            partition: partition.map_err(explained)?,
            calls,
        };
        client.barrier()?;
        Ok(client)
    }

    /// Adds a record that is none of those that are counted; where it is among the others.
    fn barrier(&self) -> Result<i64, DatabaseError> {
        self.append(Some(BARRIER), b"")
    }

    /// Adds a record; returns where it is among the others once it is acknowledged by all replicas that keep up, which the
    /// library always asks for.
    fn append(&self, key: Option<&[u8]>, value: &[u8]) -> Result<i64, DatabaseError> {
        let record = Record {
            key: key.map(<[u8]>::to_vec),
            value: Some(value.to_vec()),
            headers: BTreeMap::new(),
            timestamp: now(),
        };
        let appended = self
            .partition
            .produce(vec![record], Compression::NoCompression);
        let offsets = self.calls.wait("an acknowledgement", appended)?;
        match offsets.map_err(explained)?[..] {
            [offset] => Ok(offset),
            ref offsets => Err(DatabaseError::Failed(format!(
                "{TITLE} acknowledged {} records of one",
                offsets.len()
            ))),
        }
    }

    /// Records from `offset` on, as many as come at once: at least one.
    fn read(&self, offset: i64) -> Result<Vec<RecordAndOffset>, DatabaseError> {
        let waiting = WAITING.as_millis() as i32;
        let read = self.partition.fetch_records(offset, 1..MOST, waiting);
        let (records, _) = self.calls.wait("a record", read)?.map_err(explained)?;
        if records.is_empty() {
            return Err(DatabaseError::Late("a record did not come in time".into()));
        }
        Ok(records)
    }
}

impl ClusterSession for Client {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        self.append(None, record.to_string().as_bytes()).map(drop)
    }

    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
        let end = self.barrier()?;
        let earliest = self.partition.get_offset(OffsetAt::Earliest);
        let mut offset = self.calls.wait("an offset", earliest)?.map_err(explained)?;
        let mut records = BTreeSet::new();
        while offset <= end {
            for RecordAndOffset { record, offset: at } in self.read(offset)? {
                offset = at + 1;
                if record.key.as_deref() == Some(BARRIER) {
                    continue;
                }
                let value = record.value.as_deref();
                let number = value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
                records.insert(number.ok_or_else(|| {
                    DatabaseError::Failed(format!(
                        "{TITLE} has a record that nobody wrote: {record:?}"
                    ))
                })?);
            }
        }
        Ok(records)
    }
}

async fn connect(
    addresses: Vec<String>,
    replicas: Option<usize>,
) -> Result<PartitionClient, Error> {
    // It gives up, and says why, before nobody waits for it any more.
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(20),
        max_backoff: Duration::from_millis(200),
        base: 2.0,
        deadline: Some(ANSWERING / 2),
    };
    let builder = ClientBuilder::new(addresses).backoff_config(backoff);
    let client = builder.build().await?;
    if let Some(replicas) = replicas {
        let replicas = i16::try_from(replicas).unwrap_or(i16::MAX);
        let waiting = ANSWERING.as_millis() as i32;
        let controller = client.controller_client()?;
        let made = controller.create_topic(TOPIC, 1, replicas, waiting);
        match made.await {
            // Its files come later.
            Err(Error::ServerError {
                protocol_error: ProtocolError::TopicAlreadyExists,
                ..
            }) => {}
            made => made?,
        }
    }
    client
        .partition_client(TOPIC, 0, UnknownTopicHandling::Retry)
        .await
}

fn now() -> DateTime<Utc> {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let milliseconds = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(milliseconds).unwrap_or_default()
}

fn explained(error: Error) -> DatabaseError {
    let text = format!("{TITLE}: {error}");
    match error {
        // That it was tried again and again says that it may yet be.
        Error::Connection(_) | Error::Request(_) | Error::RetryFailed(_) | Error::Timeout => {
            DatabaseError::Late(text)
        }
        Error::ServerError {
            protocol_error:
                ProtocolError::InvalidReplicationFactor
                | ProtocolError::NotEnoughReplicas
                | ProtocolError::NotEnoughReplicasAfterAppend
                | ProtocolError::RequestTimedOut
                | ProtocolError::UnknownTopicOrPartition,
            ..
        } => DatabaseError::Late(text),
        _ => DatabaseError::Failed(text),
    }
}
