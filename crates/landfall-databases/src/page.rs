//! A page that a server shows over HTTP, for those that tell so what they count and how they are set.

use std::io::{self, Read, Write};

/// Asks for the page at `path`; an answer that is not it is an error that says so.
pub(crate) fn read(mut stream: impl Read + Write, path: &str) -> io::Result<String> {
    // Of this version, so that it comes in one piece and the connection is closed after it.
    let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, page) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        Ok(page.to_owned())
    } else {
        Err(io::Error::other(format!("it answers '{status}'")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with one answer, which keeps what it is asked.
    struct Server {
        answer: &'static [u8],
        asked: Vec<u8>,
    }

    impl Read for &mut Server {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.answer.read(buffer)
        }
    }

    impl Write for &mut Server {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.asked.write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answered(answer: &'static str) -> Result<String, String> {
        let mut server = Server {
            answer: answer.as_bytes(),
            asked: Vec::new(),
        };
        let page = read(&mut server, "/a").map_err(|error| error.to_string());
        assert!(server.asked.starts_with(b"GET /a HTTP/1.0\r\n"));
        page
    }

    #[test]
    fn a_page_is_what_follows_its_head() {
        let page = answered("HTTP/1.0 200 OK\r\nContent-Length: 7\r\n\r\na\r\n\r\nb\n");
        assert_eq!(page.unwrap(), "a\r\n\r\nb\n");
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        let absent = answered("HTTP/1.0 404 Not Found\r\n\r\nno such page");
        assert_eq!(absent.unwrap_err(), "it answers 'HTTP/1.0 404 Not Found'");
        assert_eq!(answered("").unwrap_err(), "it answers ''");
    }
}
