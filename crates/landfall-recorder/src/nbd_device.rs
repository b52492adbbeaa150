//! A network block device served to the kernel over a socket.
//!
//! One thread takes the requests, in the order in which the kernel sends them, and does each at once; a second one sends
//! the answers that are due later, and a third one is the kernel's while it uses the device. All have descriptors of their
//! own (see [`serve_block_device`]) and no mounts (see [`leave_mounts`]), so that they can always die, and what hangs on the
//! device with them.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use landfall_os::{BlockNode, NbdDevice, leave_mounts, serve_block_device};

use crate::answer::Answers;
use crate::device::{Access, Device, Done, LARGEST_REQUEST};
use crate::fault::Refusal;
use crate::server::Server;

const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;
const READ: u16 = 0;
const WRITE: u16 = 1;
const DISCONNECT: u16 = 2;
const FLUSH: u16 = 3;
/// A request's flag of force unit access.
const FUA: u16 = 1;
/// Bytes of a request in front of its data.
const HEADER: usize = 28;
/// Between two looks whether the kernel uses the device.
const POLL: Duration = Duration::from_micros(200);

/// The device, and the thread that serves it; gone when dropped.
#[derive(Debug)]
pub(crate) struct ServedNbd {
    node: BlockNode,
    server: Server,
}

impl ServedNbd {
    /// Serves `device`. `keep` is what it reads and writes: it must use no other descriptor, and keep these open.
    pub fn start(device: Arc<dyn Device>, keep: Vec<RawFd>) -> io::Result<ServedNbd> {
        let (server, node): (Server, BlockNode) =
            Server::start(move |ready| serve(device, &keep, ready))?;
        let mut served = ServedNbd { node, server };
        while !served.node.is_attached() {
            if served.server.has_ended() {
                served.server.join()?;
                return Err(io::Error::other("the kernel did not take the device"));
            }
            std::thread::sleep(POLL);
        }
        served.node.set_largest_request(LARGEST_REQUEST)?;
        Ok(served)
    }

    /// The block device.
    pub fn node(&self) -> &BlockNode {
        &self.node
    }
}

impl Drop for ServedNbd {
    fn drop(&mut self) {
        if NbdDevice::disconnect(&self.node).is_ok() {
            let _ = self.server.join();
        }
    }
}

fn serve(device: Arc<dyn Device>, keep: &[RawFd], ready: Sender<BlockNode>) -> io::Result<()> {
    serve_block_device(keep)?;
    let (own, kernels) = UnixStream::pair()?;
    let attached = NbdDevice::attach(kernels.as_fd(), device.size())?;
    leave_mounts()?;
    let (answers, sending) = Answers::new();
    let answering = sending.start()?;
    let requests = own.try_clone()?;
    let own = Arc::new(Mutex::new(own));
    let result = std::thread::scope(|scope| {
        let used = &attached;
        let user = std::thread::Builder::new()
            .name("landfall-nbd".into())
            .spawn_scoped(scope, move || {
                // Ours goes with the kernel's: then the requests come to their end.
                let _until_it_ends = kernels;
                used.run()
            })?;
        let _ = ready.send(attached.node().clone());
        drop(ready);
        let taken = take(requests, &own, &device, &answers);
        let used = user
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        taken.and(used)
    });
    drop(answers);
    let _ = answering.join();
    result
}

/// Takes requests until the kernel lets go of the device.
fn take(
    mut requests: UnixStream,
    own: &Arc<Mutex<UnixStream>>,
    device: &Arc<dyn Device>,
    answers: &Answers,
) -> io::Result<()> {
    loop {
        let mut header = [0; HEADER];
        match requests.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let request = NbdRequest::parse(&header)?;
        if request.command == DISCONNECT {
            // The kernel waits until both ends are closed.
            return requests.shutdown(std::net::Shutdown::Both);
        }
        let mut data = vec![
            0;
            if request.command == WRITE {
                request.len
            } else {
                0
            }
        ];
        requests.read_exact(&mut data)?;
        let reply = NbdReply {
            socket: own.clone(),
            handle: request.handle,
            error: 0,
            data: Vec::new(),
        };
        match done(&request, data, device.as_ref()) {
            Ok((Done { due, request }, data)) => {
                let device = device.clone();
                answers.send(due, move || {
                    // First: the kernel may send another request as soon as it has the answer.
                    request.inspect(|&request| device.answering(request));
                    NbdReply { data, ..reply }.send();
                });
            }
            Err(refusal) => {
                let error = errno(refusal);
                NbdReply { error, ..reply }.send();
            }
        }
    }
}

/// Does a request; returns what is read.
fn done(
    request: &NbdRequest,
    mut data: Vec<u8>,
    device: &dyn Device,
) -> Result<(Done, Vec<u8>), Refusal> {
    match request.command {
        READ => {
            data.resize(request.len, 0);
            let due = device.read(request.offset, &mut data)?;
            let done = Done { due, request: None };
            Ok((done, data))
        }
        WRITE => {
            let access = if request.flags & FUA == 0 {
                Access::Cached
            } else {
                Access::Forced
            };
            let done = device.write(request.offset, &data, access)?;
            Ok((done, Vec::new()))
        }
        FLUSH => Ok((device.flush()?, Vec::new())),
        // It was never offered.
        _ => Err(Refusal::Io),
    }
}

fn errno(refusal: Refusal) -> u32 {
    let error = match refusal {
        Refusal::Io => rustix::io::Errno::IO,
        Refusal::NoSpace => rustix::io::Errno::NOSPC,
        Refusal::ReadOnly => rustix::io::Errno::ROFS,
    };
    error.raw_os_error().unsigned_abs()
}

/// What the kernel asks for.
struct NbdRequest {
    flags: u16,
    command: u16,
    handle: [u8; 8],
    offset: u64,
    /// Bytes.
    len: usize,
}

impl NbdRequest {
    /// Reads a header: magic, flags, command, handle, offset, length; big-endian.
    fn parse(header: &[u8; HEADER]) -> io::Result<NbdRequest> {
        let number = |from: usize, to: usize| {
            let mut bytes = [0; 8];
            bytes[8 - (to - from)..].copy_from_slice(&header[from..to]);
            u64::from_be_bytes(bytes)
        };
        let mut handle = [0; 8];
        handle.copy_from_slice(&header[8..16]);
        if number(0, 4) != u64::from(REQUEST_MAGIC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(NbdRequest {
            flags: number(4, 6) as u16,
            command: number(6, 8) as u16,
            handle,
            offset: number(16, 24),
            len: number(24, 28) as usize,
        })
    }
}

/// What it is told.
struct NbdReply {
    socket: Arc<Mutex<UnixStream>>,
    handle: [u8; 8],
    error: u32,
    data: Vec<u8>,
}

impl NbdReply {
    fn send(self) {
        let mut bytes = Vec::with_capacity(16 + self.data.len());
        bytes.extend(REPLY_MAGIC.to_be_bytes());
        bytes.extend(self.error.to_be_bytes());
        bytes.extend(self.handle);
        bytes.extend(self.data);
        // Fails when the kernel has let go of the device.
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.write_all(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Answer, Due};
    use crate::device::Answered;

    /// Remembers what it was asked for.
    #[derive(Default)]
    struct Asked(Mutex<Vec<String>>);

    impl Asked {
        fn push(&self, what: String) {
            self.0.lock().unwrap().push(what);
        }
    }

    impl Device for Asked {
        fn size(&self) -> u64 {
            4096
        }

        fn read(&self, offset: u64, into: &mut [u8]) -> Result<Due, Refusal> {
            self.push(format!("read {} at {offset}", into.len()));
            into.fill(9);
            Ok(None)
        }

        fn write(&self, offset: u64, bytes: &[u8], access: Access) -> Result<Done, Refusal> {
            self.push(format!("write {} at {offset}, {access:?}", bytes.len()));
            if offset + bytes.len() as u64 > self.size() {
                return Err(Refusal::NoSpace);
            }
            Ok(Done {
                due: None,
                request: Some(Answered::Write(offset)),
            })
        }

        fn answering(&self, request: Answered) {
            self.push(format!("answering {request:?}"));
        }

        fn flush(&self) -> Result<Done, Refusal> {
            self.push("flush".into());
            Ok(Done {
                due: None,
                request: Some(Answered::Flush(1)),
            })
        }

        fn mark(&self, _: &[u8], _: Answer) {}
    }

    fn request(flags: u16, command: u16, handle: u8, offset: u64, len: u32) -> Vec<u8> {
        let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend([handle; 8]);
        bytes.extend(offset.to_be_bytes());
        bytes.extend(len.to_be_bytes());
        bytes
    }

    #[test]
    fn requests_are_done_in_order_and_answered_by_their_handles() {
        let asked = Arc::new(Asked::default());
        let device: Arc<dyn Device> = asked.clone();
        let (mut kernel, own) = UnixStream::pair().unwrap();
        let (answers, sending) = Answers::new();
        let answering = sending.start().unwrap();
        let mut sent = request(0, WRITE, 1, 512, 512);
        sent.extend([7; 512]);
        sent.extend(request(FUA, WRITE, 2, 1024, 512));
        sent.extend([7; 512]);
        sent.extend(request(0, FLUSH, 3, 0, 0));
        sent.extend(request(0, WRITE, 4, 4096, 512));
        sent.extend([7; 512]);
        sent.extend(request(0, READ, 5, 0, 512));
        sent.extend(request(0, DISCONNECT, 6, 0, 0));
        kernel.write_all(&sent).unwrap();
        let requests = own.try_clone().unwrap();
        take(requests, &Arc::new(Mutex::new(own)), &device, &answers).unwrap();
        drop(answers);
        answering.join().unwrap();
        assert_eq!(
            *asked.0.lock().unwrap(),
            [
                "write 512 at 512, Cached",
                "answering Write(512)",
                "write 512 at 1024, Forced",
                "answering Write(1024)",
                "flush",
                "answering Flush(1)",
                "write 512 at 4096, Cached",
                "read 512 at 0"
            ]
        );
        let mut received = Vec::new();
        kernel.read_to_end(&mut received).unwrap();
        let answers = [(1, 0), (2, 0), (3, 0), (4, 28), (5, 0)];
        let mut expected: Vec<u8> = answers
            .into_iter()
            .flat_map(|(handle, error): (u8, u8)| {
                let mut bytes = REPLY_MAGIC.to_be_bytes().to_vec();
                bytes.extend([0, 0, 0, error]);
                bytes.extend([handle; 8]);
                bytes
            })
            .collect();
        expected.extend([9; 512]);
        assert_eq!(received, expected);
    }

    #[test]
    fn what_is_no_request_ends_it() {
        let (mut kernel, own) = UnixStream::pair().unwrap();
        let (answers, _sending) = Answers::new();
        let device: Arc<dyn Device> = Arc::new(Asked::default());
        kernel.write_all(&[0; HEADER]).unwrap();
        let requests = own.try_clone().unwrap();
        let error = take(requests, &Arc::new(Mutex::new(own)), &device, &answers).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
