//! A client of the stream.
//!
//! Threads: as its [`Calls`].

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::Duration;

use async_nats::ConnectOptions;
use async_nats::jetstream::context::{CreateStreamErrorKind, PublishErrorKind};
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::{Config, RawMessageErrorKind, StorageType, Stream};
use async_nats::jetstream::{Context, ErrorCode};

use super::{CLIENTS, STREAM, TITLE};
use crate::DatabaseError;
use crate::cluster::{ANSWERING, Calls, ClusterSession, address};

/// What the messages are called that are records, and those that only show how far a stream has come.
const RECORDS: &str = "records";
const BARRIERS: &str = "barriers";
/// The status of what cannot be done now, as in HTTP.
const UNAVAILABLE: usize = 503;

pub(super) struct Client {
    // Dropped before what it runs in.
    context: Context,
    stream: Stream<()>,
    calls: Calls,
}

impl Client {
    /// Connects to one of these nodes.
    pub fn connect(nodes: &[usize]) -> Result<Client, DatabaseError> {
        let calls = Calls::new()?;
        let addresses: Vec<String> = nodes.iter().map(|&node| address(CLIENTS, node)).collect();
        let options = ConnectOptions::new()
            .connection_timeout(ANSWERING)
            .request_timeout(Some(ANSWERING))
            // Those that were not started are not asked for.
            .ignore_discovered_servers();
        let connect = async {
            let client = options.connect(addresses).await;
            let client = client.map_err(|error| DatabaseError::Late(error.to_string()))?;
            let mut context = async_nats::jetstream::new(client);
            context.set_timeout(ANSWERING);
            // Nobody is asked for it.
            let stream = context.get_stream_no_info(STREAM).await.map_err(failed)?;
            Ok::<_, DatabaseError>((context, stream))
        };
        let (context, stream) = calls.wait("a connection", connect)??;
        Ok(Client {
            context,
            stream,
            calls,
        })
    }

    /// Makes the stream, with a replica on each of `nodes`, if it is not there.
    pub fn make_stream(&self, nodes: usize) -> Result<(), DatabaseError> {
        let config = Config {
            name: STREAM.into(),
            subjects: vec![RECORDS.into(), BARRIERS.into()],
            storage: StorageType::File,
            num_replicas: nodes,
            allow_direct: false,
            ..Config::default()
        };
        let made = self.context.create_stream(config);
        match self.calls.wait("a stream", made)? {
            Ok(_) => Ok(()),
            Err(error) => Err(match error.kind() {
                CreateStreamErrorKind::JetStream(said) if !is_temporary(&said) => failed(said),
                _ => DatabaseError::Late(format!("no stream could be made yet: {error}")),
            }),
        }
    }

    /// Adds a message that is no record, within that time.
    pub fn barrier(&self, most: Duration) -> Result<Barrier, DatabaseError> {
        let text = format!("{:016x}", fastrand::u64(..));
        let place = self.publish(BARRIERS, text.clone(), most)?;
        Ok(Barrier { place, text })
    }

    /// Adds a message; returns where it is among the others once it is acknowledged.
    fn publish(
        &self,
        subject: &'static str,
        text: String,
        most: Duration,
    ) -> Result<u64, DatabaseError> {
        let publish = async {
            let sent = self.context.publish(subject, text.into()).await?;
            sent.await
        };
        let acknowledged = self.calls.wait_for(most, "an acknowledgement", publish)?;
        let acknowledged = acknowledged.map_err(|error| match error.kind() {
            PublishErrorKind::StreamNotFound => {
                DatabaseError::Late("no server takes messages for the stream".into())
            }
            PublishErrorKind::TimedOut => {
                DatabaseError::Late("an acknowledgement did not come in time".into())
            }
            _ => failed(error),
        })?;
        if acknowledged.stream != STREAM || acknowledged.duplicate {
            let other = format!("it acknowledged another message: {acknowledged:?}");
            return Err(failed(other));
        }
        Ok(acknowledged.sequence)
    }

    /// The message at a place, as the leader of the stream has it; `None`: there is none.
    fn message(&self, place: u64) -> Result<Option<StreamMessage>, DatabaseError> {
        let answer = self.stream.get_raw_message(place);
        match self.calls.wait("a message", answer)? {
            Ok(message) => Ok(Some(message)),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(match error.kind() {
                RawMessageErrorKind::JetStream(said) if !is_temporary(&said) => failed(said),
                _ => DatabaseError::Late(format!("no leader answers: {error}")),
            }),
        }
    }

    /// Makes sure that who leads now has a barrier, and so all that was acknowledged before it.
    fn is_behind(&self, barrier: &Barrier) -> Result<(), DatabaseError> {
        match self.message(barrier.place)? {
            Some(message) if message.payload == barrier.text.as_bytes() => Ok(()),
            found => {
                let text = &barrier.text;
                Err(failed(format!(
                    "the acknowledged message {text} is not there, but {found:?}"
                )))
            }
        }
    }
}

impl ClusterSession for Client {
    fn put(&mut self, record: u64) -> Result<(), DatabaseError> {
        let text = record.to_string();
        self.publish(RECORDS, text, ANSWERING).map(drop)
    }

    fn records(&mut self) -> Result<BTreeSet<u64>, DatabaseError> {
        let barrier = self.barrier(ANSWERING)?;
        let mut records = BTreeSet::new();
        for place in 1..barrier.place {
            let mut message = self.message(place)?;
            if message.is_none() {
                // Another one may lead by now, and be late.
                self.is_behind(&barrier)?;
                message = self.message(place)?;
            }
            let message = message.filter(|message| message.subject.as_str() == RECORDS);
            if let Some(message) = message {
                let text = std::str::from_utf8(&message.payload).ok();
                let record = text.and_then(|text| text.parse().ok());
                records.insert(record.ok_or_else(|| {
                    failed(format!("it has a message that nobody wrote: {message:?}"))
                })?);
            }
        }
        self.is_behind(&barrier)?;
        Ok(records)
    }
}

/// A message that shows how far the stream has come.
pub(super) struct Barrier {
    place: u64,
    text: String,
}

/// Whether a server says of something that it cannot be done now: it has no leader, or is about to have one.
fn is_temporary(said: &async_nats::jetstream::Error) -> bool {
    said.code() == UNAVAILABLE || said.error_code() == ErrorCode::STREAM_NOT_FOUND
}

fn failed(why: impl Display) -> DatabaseError {
    DatabaseError::Failed(format!("{TITLE}: {why}"))
}
