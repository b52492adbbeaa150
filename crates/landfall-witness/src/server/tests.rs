use tempfile::TempDir;

use super::*;
use crate::check::end;
use crate::client::Client;
use crate::ledger::tests::begin;
use crate::message::{Declared, Report};

fn token() -> Token {
    Token::parse("a token of thirty-two characters").unwrap()
}

/// Has a witness stop, also when a test fails.
struct AtEnd<'a>(&'a Stop);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.flag().store(true, Ordering::Relaxed);
    }
}

/// Serves while `body` talks to it.
fn served<T>(directory: &TempDir, body: impl FnOnce(&dyn Fn() -> Client) -> T) -> T {
    served_by(directory, |_, connect| body(connect))
}

/// The same, with the witness itself.
fn served_by<T>(directory: &TempDir, body: impl FnOnce(&Server, &dyn Fn() -> Client) -> T) -> T {
    let any = Address::parse("127.0.0.1:0").unwrap();
    let options = ServeOptions::default();
    let server = Server::bind(&any, directory.path(), &token(), options).unwrap();
    let address = Address::parse(server.address()).unwrap();
    let stop = Stop::default();
    let done = thread::scope(|scope| {
        let ran = scope.spawn(|| server.run(&stop));
        let end = AtEnd(&stop);
        let done = body(&server, &|| Client::connect(&address, &token()).unwrap());
        drop(end);
        ran.join().unwrap().unwrap();
        done
    });
    server.close().unwrap();
    done
}

/// A run of some writes; its connection stays.
fn written(mut client: Client, writes: u64) -> (Client, Run) {
    let Response::Begun { run, .. } = client.ask(&Request::Begin(begin("s", "A"))).unwrap() else {
        panic!("not begun");
    };
    for write in 1..=writes {
        acknowledge(&mut client, write);
    }
    (client, run)
}

/// The same run goes on; its connection stays.
fn resumed(mut client: Client, run: Run) -> Client {
    let stream = "s".to_owned();
    client.ask(&Request::Resume { stream, run }).unwrap();
    acknowledge(&mut client, 6);
    client
}

fn acknowledge(client: &mut Client, write: u64) {
    let request = Request::Acknowledge { write, checksum: 1 };
    let kept = Response::Acknowledged { write };
    assert_eq!(client.ask(&request).unwrap(), kept);
}

/// What a machine that has started anew finds, all of which is there.
fn checked(client: Client, run: Run) -> (Outcome, Option<Uncounted>, u64) {
    found(client, run, 0)
}

/// The same, where some is missing.
fn found(mut client: Client, run: Run, lost: u64) -> (Outcome, Option<Uncounted>, u64) {
    let report = Report {
        stream: "s".into(),
        run,
        boot: "B".into(),
        declared: Some(Declared::Machine),
        promised: 3,
        lost,
        foreign: 0,
        losses: Vec::new(),
    };
    match client.ask(&Request::Report(report)).unwrap() {
        Response::Counted(witnessed) => {
            let verdict = witnessed.verdict.unwrap();
            (verdict.outcome, verdict.uncounted, witnessed.tally.cuts)
        }
        other => panic!("{other:?}"),
    }
}

/// Waits until the witness knows that the writer is gone.
fn wait_for_its_end(mut client: Client) {
    let (stream, boot) = ("s".to_owned(), "A".to_owned());
    client.ask(&Request::Ask { stream, boot }).unwrap();
}

#[test]
fn a_writer_that_says_nothing_any_more_was_cut() {
    let directory = TempDir::new().unwrap();
    served(&directory, |connect| {
        let (_silent, run) = written(connect(), 5);
        assert_eq!(checked(connect(), run), (Outcome::Kept, None, 1));
    });
}

#[test]
fn a_connection_that_was_closed_in_good_order_was_closed_by_a_machine_with_power() {
    let directory = TempDir::new().unwrap();
    served(&directory, |connect| {
        let (closed, run) = written(connect(), 5);
        drop(closed);
        wait_for_its_end(connect());
        let gone = Some(Uncounted::WriterGone);
        assert_eq!(checked(connect(), run), (Outcome::Kept, gone, 0));
    });
}

#[test]
fn a_loss_is_remembered_as_long_as_the_witness_serves() {
    let directory = TempDir::new().unwrap();
    served_by(&directory, |server, connect| {
        let (_silent, run) = written(connect(), 5);
        assert!(!server.has_seen_loss());
        assert_eq!(found(connect(), run, 1), (Outcome::Lost, None, 1));
        assert!(server.has_seen_loss());
    });
    // The next one has seen nothing yet.
    served_by(&directory, |server, connect| {
        let (_silent, run) = written(connect(), 5);
        assert_eq!(checked(connect(), run), (Outcome::Kept, None, 2));
        assert!(!server.has_seen_loss());
    });
}

#[test]
fn a_writer_that_gave_up_and_could_not_say_so_was_idle() {
    let directory = TempDir::new().unwrap();
    served(&directory, |connect| {
        let (_silent, run) = written(connect(), 5);
        end(&mut connect(), "s", run).unwrap();
        let ended = Some(Uncounted::WriterEnded);
        assert_eq!(checked(connect(), run), (Outcome::Kept, ended, 0));
    });
}

#[test]
fn a_writer_that_comes_back_and_writes_is_there_again() {
    let directory = TempDir::new().unwrap();
    served(&directory, |connect| {
        let (closed, run) = written(connect(), 5);
        drop(closed);
        let _again = resumed(connect(), run);
        assert_eq!(checked(connect(), run), (Outcome::Kept, None, 1));
    });
}

#[test]
fn a_witness_that_was_away_counts_no_cut_before_the_next_write() {
    for writes_again in [false, true] {
        let directory = TempDir::new().unwrap();
        let run = served(&directory, |connect| written(connect(), 5).1);
        let found = served(&directory, |connect| {
            // It is not closed before the check.
            let _again = writes_again.then(|| resumed(connect(), run));
            checked(connect(), run)
        });
        let away = (Outcome::Kept, Some(Uncounted::WitnessAway), 0);
        let expected = if writes_again {
            (Outcome::Kept, None, 1)
        } else {
            away
        };
        assert_eq!(found, expected);
    }
}
