//! A connection on which each side knows that the other has the token, and nothing can be added, changed, left out, moved
//! or played again.
//!
//! **Greeting.** The witness sends [`MAGIC`], its version and a nonce; the writer its own nonce and a code of both by the
//! token; the witness one byte, and a code of both by the token. A stranger learns nothing from it, and is refused before
//! anything of his is read but these 64 bytes. **Frames.** Each is four bytes of length, so many bytes, and a code of both
//! and of the frame's number. The key of a direction is made from the token and both nonces: what was recorded on one
//! connection, or in the other direction, is no frame on another. `docs/reference/witness-format.md` has the bytes.
//!
//! What is sent is authenticated and not secret: numbers of blocks, and names of disks.
//!
//! **Limits.** A length beyond [`MOST_FRAME`] is refused before anything is allocated. A frame that has begun must end
//! within [`FRAME_TIME`], however slowly its bytes come.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::Error;
use crate::token::{Key, MAC, Token};

const MAGIC: &[u8; 8] = b"LFWITNES";
const VERSION: u32 = 2;
const NONCE: usize = 32;
/// Bytes of a frame's contents that are the most.
pub(crate) const MOST_FRAME: usize = 64 << 10;
/// How long a greeting may take.
const GREETING_TIME: Duration = Duration::from_secs(10);
/// How long a frame may take that has begun.
const FRAME_TIME: Duration = Duration::from_secs(20);

/// What the witness says to a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Greeting {
    Welcome = 0,
    /// By no such token.
    Stranger = 1,
    /// It has as many connections as it takes.
    Busy = 2,
}

/// A connection that has been greeted.
pub(crate) struct Channel {
    stream: TcpStream,
    out: Key,
    sent: u64,
    incoming: Key,
    received: u64,
}

/// What came of a greeting.
pub(crate) enum Greeted {
    /// By somebody with the token.
    Friend(Channel),
    /// By somebody else, who was told so.
    Stranger,
}

impl Channel {
    /// Greets the writer who has connected.
    pub fn accept(stream: TcpStream, token: &Token, is_busy: bool) -> io::Result<Greeted> {
        let mut stream = prepared(stream)?;
        let deadline = Instant::now() + GREETING_TIME;
        let nonce = nonce()?;
        let mut hello = MAGIC.to_vec();
        hello.extend_from_slice(&VERSION.to_le_bytes());
        hello.extend_from_slice(&nonce);
        stream.write_all(&hello)?;
        let mut answer = [0; NONCE + MAC];
        read_until(&mut stream, &mut answer, deadline)?;
        let (theirs, code) = answer.split_at(NONCE);
        let key = token.key();
        let is_friend = key.is_mac(&[b"writer", &hello, theirs], code);
        let word = match (is_friend, is_busy) {
            (false, _) => Greeting::Stranger,
            (true, true) => Greeting::Busy,
            (true, false) => Greeting::Welcome,
        };
        let code = if is_friend {
            key.mac(&[b"witness", &[word as u8], &hello, theirs])
        } else {
            [0; MAC]
        };
        let mut said = vec![word as u8];
        said.extend_from_slice(&code);
        stream.write_all(&said)?;
        if word != Greeting::Welcome {
            return Ok(Greeted::Stranger);
        }
        Ok(Greeted::Friend(Channel {
            out: key.derive(&[b"from the witness", &hello, theirs]),
            incoming: key.derive(&[b"to the witness", &hello, theirs]),
            sent: 0,
            received: 0,
            stream,
        }))
    }

    /// Greets the witness at the other end.
    pub fn connect(stream: TcpStream, token: &Token) -> Result<Channel, Error> {
        let lost = |error| unreachable(&error);
        let mut stream = prepared(stream).map_err(lost)?;
        let deadline = Instant::now() + GREETING_TIME;
        let mut hello = [0; MAGIC.len() + size_of::<u32>() + NONCE];
        read_until(&mut stream, &mut hello, deadline).map_err(lost)?;
        let (magic, rest) = hello.split_at(MAGIC.len());
        if magic != MAGIC {
            let text = "what answers there is no witness of Landfall's";
            return Err(Error::Unreachable(text.to_owned()));
        }
        if rest[..size_of::<u32>()] != VERSION.to_le_bytes() {
            let text = "the witness is of another version; run the same landfall on both hosts";
            return Err(Error::Unreachable(text.to_owned()));
        }
        let own = nonce().map_err(lost)?;
        let key = token.key();
        let mut answer = own.to_vec();
        answer.extend_from_slice(&key.mac(&[b"writer", &hello, &own]));
        stream.write_all(&answer).map_err(lost)?;
        let mut said = [0; 1 + MAC];
        read_until(&mut stream, &mut said, deadline).map_err(lost)?;
        let (word, code) = said.split_at(1);
        let is_witness = key.is_mac(&[b"witness", word, &hello, &own], code);
        match word[0] {
            word if word == Greeting::Stranger as u8 => {
                let text = "it has another token; give both hosts the same";
                Err(Error::Witness(text.to_owned()))
            }
            _ if !is_witness => Err(Error::Forged("the witness does not have the token")),
            word if word == Greeting::Busy as u8 => {
                let text = "it has as many connections as it takes; try again later";
                // Who waits for it tries again.
                Err(Error::Unreachable(text.to_owned()))
            }
            _ => Ok(Channel {
                out: key.derive(&[b"to the witness", &hello, &own]),
                incoming: key.derive(&[b"from the witness", &hello, &own]),
                sent: 0,
                received: 0,
                stream,
            }),
        }
    }

    /// Sends a frame.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > MOST_FRAME {
            return Err(Error::Forged("a frame is larger than frames may be"));
        }
        let length = (bytes.len() as u32).to_le_bytes();
        let code = self.out.mac(&[&self.sent.to_le_bytes(), &length, bytes]);
        self.sent += 1;
        // In one call, and so in one packet.
        let frame = [&length, bytes, &code].concat();
        self.stream
            .write_all(&frame)
            .map_err(|error| unreachable(&error))
    }

    /// Waits for a frame, which must begin within `idle`; `None` if the other side has closed the connection.
    pub fn receive(&mut self, idle: Duration) -> Result<Option<Vec<u8>>, Error> {
        let lost = |error: io::Error| unreachable(&error);
        let mut length = [0; size_of::<u32>()];
        let begun = read_some(&mut self.stream, &mut length, Instant::now() + idle);
        let begun = begun.map_err(lost)?;
        if begun == 0 {
            return Ok(None);
        }
        let deadline = Instant::now() + FRAME_TIME;
        read_until(&mut self.stream, &mut length[begun..], deadline).map_err(lost)?;
        let count = u32::from_le_bytes(length) as usize;
        if count > MOST_FRAME {
            return Err(Error::Forged("a frame is larger than frames may be"));
        }
        let mut frame = vec![0; count + MAC];
        read_until(&mut self.stream, &mut frame, deadline).map_err(lost)?;
        let code = frame.split_off(count);
        let number = self.received.to_le_bytes();
        if !self.incoming.is_mac(&[&number, &length, &frame], &code) {
            return Err(Error::Forged("a frame is not from who has the token"));
        }
        self.received += 1;
        Ok(Some(frame))
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // Others may have handles on it, and it ends all the same.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn prepared(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(FRAME_TIME))?;
    Ok(stream)
}

/// What no greeting ever had before.
fn nonce() -> io::Result<[u8; NONCE]> {
    random()
}

/// Bytes that nobody can foretell.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn unreachable(error: &io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            "the other side does not answer".to_owned()
        }
        io::ErrorKind::UnexpectedEof => "the other side has closed the connection".to_owned(),
        _ => format!("the connection is lost: {error}"),
    };
    Error::Unreachable(text)
}

/// Reads what is there, at least one byte unless the connection has ended.
fn read_some(stream: &mut TcpStream, into: &mut [u8], deadline: Instant) -> io::Result<usize> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Fills it by then. One byte after the other does not give more time.
fn read_until(stream: &mut TcpStream, into: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        match read_some(stream, &mut into[done..], deadline)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => done += read,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
