//! What is asked of etcd, by its own protocol: as much of it as is used here.
//!
//! Messages and their numbers are those of etcd's `rpc.proto` and `kv.proto`, API version 3:
//! <https://etcd.io/docs/v3.6/dev-guide/api_reference_v3/>.
//!
//! Threads: a [`Connection`] belongs to one, and runs what it needs besides while it waits for an answer.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

/// Keys from `key` on that are less than `range_end`; `key` alone if that is empty.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// The most that are wanted; 0: all.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// Whether a member answers from what it has by itself, and asks no other.
    #[prost(bool, tag = "7")]
    pub serializable: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ResponseHeader {
    /// Of the last change.
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
    /// Whether there are more than were wanted.
    #[prost(bool, tag = "3")]
    pub more: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct DeleteRangeRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct RequestOp {
    #[prost(oneof = "Op", tags = "2, 3")]
    pub request: Option<Op>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Op {
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

/// Without conditions: what it has is done, all together.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TxnRequest {
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, Message)]
struct HashRequest {}

/// Versions that are older than at this revision are removed.
#[derive(Clone, PartialEq, Message)]
struct CompactionRequest {
    #[prost(int64, tag = "1")]
    revision: i64,
    /// Whether the answer waits until they are.
    #[prost(bool, tag = "2")]
    physical: bool,
}

#[derive(Clone, PartialEq, Message)]
struct DefragmentRequest {}

/// An answer of which nothing is looked at.
#[derive(Clone, PartialEq, Message)]
struct Done {}

/// A client's connection.
pub(super) struct Connection {
    // Dropped before what it runs in.
    grpc: Grpc<Channel>,
    runtime: Runtime,
}

/// How long a server may take to answer the first question: the kernel takes connections for one that has not
/// begun to look at them.
const ANSWERING: Duration = Duration::from_secs(1);

impl Connection {
    /// Connects to a server, which may not be ready to answer.
    pub fn open(socket: &Path) -> Result<Connection, String> {
        Connection::to(format!("unix:{}", socket.display()), None)
    }

    /// Connects to a server at an address, `http://127.0.0.1:2379`, which may not be ready to answer; no answer may take longer
    /// than `most`.
    pub fn to(address: String, most: Option<Duration>) -> Result<Connection, String> {
        let failed = |error: &dyn Display| error.to_string();
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| failed(&error))?;
        let mut endpoint = Endpoint::from_shared(address).map_err(|error| failed(&error))?;
        if let Some(most) = most {
            endpoint = endpoint.connect_timeout(most).timeout(most);
        }
        let connected = runtime.block_on(endpoint.connect());
        let channel = connected.map_err(|error| failed(&error))?;
        // What we asked for may be larger than what is usual.
        let grpc = Grpc::new(channel).max_decoding_message_size(usize::MAX);
        Ok(Connection { grpc, runtime })
    }

    pub fn range(&mut self, request: RangeRequest) -> Result<RangeResponse, Status> {
        self.call("/etcdserverpb.KV/Range", request)
    }

    /// Asks it anything, to see whether it answers.
    pub fn probe(&mut self) -> Result<(), String> {
        let nothing = RangeRequest {
            key: vec![0],
            ..RangeRequest::default()
        };
        let Connection { grpc, runtime } = self;
        let answer = ask::<_, Done>(grpc, "/etcdserverpb.KV/Range", nothing);
        match runtime.block_on(async { timeout(ANSWERING, answer).await }) {
            Ok(Ok(Done {})) => Ok(()),
            Ok(Err(status)) => Err(status.message().to_owned()),
            Err(_) => Err("it does not answer".to_owned()),
        }
    }

    pub fn put(&mut self, request: PutRequest) -> Result<(), Status> {
        self.call("/etcdserverpb.KV/Put", request).map(|Done {}| ())
    }

    pub fn transaction(&mut self, request: TxnRequest) -> Result<(), Status> {
        self.call("/etcdserverpb.KV/Txn", request).map(|Done {}| ())
    }

    /// Has everything committed to the pages, and all of them read.
    pub fn hash(&mut self) -> Result<(), Status> {
        self.call("/etcdserverpb.Maintenance/Hash", HashRequest {})
            .map(|Done {}| ())
    }

    /// Has all versions removed but the last of each key; waits until they are.
    pub fn compact(&mut self) -> Result<(), Status> {
        let nothing = RangeRequest {
            key: vec![0],
            ..RangeRequest::default()
        };
        let header = self.range(nothing)?.header.unwrap_or_default();
        let request = CompactionRequest {
            revision: header.revision,
            physical: true,
        };
        match self.call("/etcdserverpb.KV/Compact", request) {
            // Nothing has changed since the last time.
            Err(status) if status.code() == Code::OutOfRange => Ok(()),
            done => done.map(|Done {}| ()),
        }
    }

    /// Has the file of its pages made anew, without those that are free.
    pub fn defragment(&mut self) -> Result<(), Status> {
        self.call("/etcdserverpb.Maintenance/Defragment", DefragmentRequest {})
            .map(|Done {}| ())
    }

    fn call<Q, A>(&mut self, method: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let Connection { grpc, runtime } = self;
        runtime.block_on(ask(grpc, method, request))
    }
}

async fn ask<Q, A>(grpc: &mut Grpc<Channel>, method: &'static str, request: Q) -> Result<A, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::unavailable(error.to_string()))?;
    let codec = ProstCodec::<Q, A>::default();
    let path = PathAndQuery::from_static(method);
    let answer = grpc.unary(Request::new(request), path, codec).await;
    answer.map(tonic::Response::into_inner)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn nobody_waits_for_a_server_that_does_not_look_at_its_clients() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        let answer = Connection::open(&socket).and_then(|mut silent| silent.probe());
        assert_eq!(answer.unwrap_err(), "it does not answer");
        let absent = Connection::open(&directory.path().join("absent"));
        assert!(absent.is_err());
    }
}
