//! A server that speaks S3, on a port of this machine's own: moto, which forgets everything when it ends.
//!
//! It ends with what [`S3::start`] makes, also when a test fails, and with the thread that started it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use landfall_os::end_with_this_thread;
use rustix::process::Signal;
use tempfile::TempDir;

use super::{comes_true, landfall, skip};

/// A server that answers.
pub struct S3 {
    dir: TempDir,
    server: Child,
    port: u16,
}

impl S3 {
    /// With an empty bucket `fleet`. Nothing, said why, where there is no moto.
    pub fn start() -> Option<S3> {
        // CI says so where moto could not be installed.
        if std::env::var_os("LANDFALL_NO_S3").is_some() {
            println!("skipped: moto could not be installed");
            return None;
        }
        let port = free_port();
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let log = File::create(dir.path().join("log")).unwrap();
        let mut command = Command::new("moto_server");
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        end_with_this_thread(&mut command, Signal::KILL);
        let Ok(server) = command.spawn() else {
            skip("moto_server is not installed (PyPI: moto[server])");
            return None;
        };
        let s3 = S3 { dir, server, port };
        let answers = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(comes_true(answers), "{}", s3.log());
        assert_eq!(s3.ask("PUT", "/fleet", ""), 200, "{}", s3.log());
        Some(s3)
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on it answers only to keys that it has given out, of which there are none.
    pub fn distrust_everybody(&self) {
        assert_eq!(
            self.ask("POST", "/moto-api/reset-auth", "0"),
            200,
            "{}",
            self.log()
        );
    }

    /// The program with the credentials of this server.
    pub fn landfall(&self) -> Command {
        landfall_at(&self.endpoint())
    }

    /// How often it answered this to requests of this method for what ends so.
    pub fn answers(&self, method: &str, ending: &str, code: u16) -> usize {
        let is_one = |line: &&str| {
            // 127.0.0.1 - - [26/Nov/2026 21:09:55] "PUT /fleet/a HTTP/1.1" 412 -
            let Some((_, said)) = line.split_once('"') else {
                return false;
            };
            let words: Vec<&str> = said
                .split(['"', ' '])
                .filter(|word| !word.is_empty())
                .collect();
            words[0] == method && words[1].ends_with(ending) && words[3] == code.to_string()
        };
        self.log().lines().filter(is_one).count()
    }

    /// What it says of requests, without the colours of its own.
    pub fn log(&self) -> String {
        let mut log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        for colour in [
            "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[35m", "\x1b[36m",
        ] {
            log = log.replace(colour, "");
        }
        log
    }

    /// The code of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> u16 {
        let mut server = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(
            server,
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{}\r\nContent-Length: {length}\r\n\r\n{body}",
            self.port
        )
        .unwrap();
        let mut answer = String::new();
        server.read_to_string(&mut answer).unwrap();
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
        code.unwrap_or_else(|| panic!("{answer}"))
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A port at which nobody listens.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it has an address").port()
}

/// The program with credentials for a server there.
pub fn landfall_at(endpoint: &str) -> Command {
    let mut command = landfall();
    give_credentials(&mut command, endpoint);
    command
}

/// Replaces what `command` inherits of an object store.
pub fn give_credentials(command: &mut Command, endpoint: &str) {
    let inherited = std::env::vars_os().map(|variable| variable.0);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("AWS_")) {
        command.env_remove(name);
    }
    command
        .env("AWS_ACCESS_KEY_ID", "a-key")
        .env("AWS_SECRET_ACCESS_KEY", "a-secret")
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ENDPOINT_URL", endpoint);
}
