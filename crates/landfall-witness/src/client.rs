//! A connection to a witness, and where it is.

use std::fmt;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use landfall_results::witness::Witnessed;

use crate::channel::Channel;
use crate::message::{Request, Response, receive, send};
use crate::{Error, Token};

/// Where a witness listens unless something else is said.
pub const PORT: u16 = 7747;
/// How long a host may take to answer at all.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long an answer may take: the witness's disk may be slow.
const ANSWERING: Duration = Duration::from_secs(60);

/// A host, and a port on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

impl Address {
    /// Reads `HOST`, `HOST:PORT`, `[IPv6]:PORT` or an IPv6 address alone.
    pub fn parse(text: &str) -> Result<Address, Error> {
        let wrong = || Error::Usage(format!("'{text}' is no address; write HOST or HOST:PORT"));
        let number = |port: &str| {
            let is_number = port.chars().all(|c| c.is_ascii_digit());
            is_number.then(|| port.parse::<u16>().ok()).flatten()
        };
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, "")) => (host, PORT),
                Some((host, port)) => {
                    let port = port.strip_prefix(':').and_then(number);
                    (host, port.ok_or_else(wrong)?)
                }
                None => return Err(wrong()),
            },
            None => match text.split_once(':') {
                None => (text, PORT),
                // An IPv6 address has more than one.
                Some((_, rest)) if rest.contains(':') => (text, PORT),
                Some((host, port)) => (host, number(port).ok_or_else(wrong)?),
            },
        };
        if host.is_empty() || host.chars().any(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Address {
            host: host.to_owned(),
            port,
        })
    }

    pub(crate) fn pair(&self) -> (&str, u16) {
        (&self.host, self.port)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A connection to a witness.
pub struct Client(Channel);

impl Client {
    /// Connects, and makes sure that it is the witness and has the token.
    pub fn connect(address: &Address, token: &Token) -> Result<Client, Error> {
        let unreachable = |why: String| {
            let text = format!(
                "cannot reach the witness at {address}: {why}; is 'landfall witness serve' running there?"
            );
            Error::Unreachable(text)
        };
        let found = address.pair().to_socket_addrs();
        let found = found.map_err(|error| unreachable(error.to_string()))?;
        let mut last = "the name has no address".to_owned();
        for one in found {
            match TcpStream::connect_timeout(&one, CONNECTING) {
                Ok(stream) => {
                    return Channel::connect(stream, token).map(Client).map_err(
                        |error| match error {
                            Error::Unreachable(why) => unreachable(why),
                            other => other,
                        },
                    );
                }
                Err(error) => last = error.to_string(),
            }
        }
        Err(unreachable(last))
    }

    /// Asks, and waits for the answer; a refusal is an error.
    pub(crate) fn ask(&mut self, request: &Request) -> Result<Response, Error> {
        send(&mut self.0, request)?;
        match receive(&mut self.0, ANSWERING)? {
            Some(Response::Refused(why)) => Err(Error::Witness(why)),
            Some(response) => Ok(response),
            None => Err(Error::Unreachable(
                "the witness has closed the connection".to_owned(),
            )),
        }
    }

    /// That an answer is none to what was asked.
    pub(crate) fn unexpected(_: &Response) -> Error {
        Error::Forged("the witness answers something that was not asked")
    }
}

/// All that the witness knows.
pub fn status(client: &mut Client) -> Result<Vec<Witnessed>, Error> {
    let mut known: Vec<Witnessed> = Vec::new();
    loop {
        let from = known.len() as u64;
        match client.ask(&Request::Status { from })? {
            Response::Streams { all, some } if some.is_empty() || known.len() as u64 >= all => {
                return Ok(known);
            }
            Response::Streams { some, .. } => known.extend(some),
            other => return Err(Client::unexpected(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_the_usual_spellings() {
        for (text, shown) in [
            ("witness", "witness:7747"),
            ("witness:99", "witness:99"),
            ("10.0.0.1:99", "10.0.0.1:99"),
            ("[::1]:99", "[::1]:99"),
            ("[::1]", "[::1]:7747"),
            ("fe80::1", "[fe80::1]:7747"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), shown);
        }
        for wrong in [
            "", ":99", "a:", "a:b", "a:99999", "a b", "[::1", "[::1]99", "a:+9",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }
}
