use std::net::TcpListener;
use std::thread;

use proptest::prelude::*;

use super::*;

const IDLE: Duration = Duration::from_secs(600);

fn token(text: &str) -> Token {
    Token::parse(text).unwrap()
}

/// Both ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// A writer's and a witness's end after their greeting.
fn greeted() -> (Channel, Channel) {
    let (writer, witness) = pair();
    let own = token("0123456789abcdef");
    let accepting = thread::spawn({
        let own = own.clone();
        move || Channel::accept(witness, &own, false).unwrap()
    });
    let writer = Channel::connect(writer, &own).unwrap();
    let Greeted::Friend(witness) = accepting.join().unwrap() else {
        panic!("a friend");
    };
    (writer, witness)
}

#[test]
fn frames_arrive_in_order_and_an_end_is_an_end() {
    let (mut writer, mut witness) = greeted();
    for text in [&b"one"[..], b"", &[7; MOST_FRAME]] {
        writer.send(text).unwrap();
        assert_eq!(witness.receive(IDLE).unwrap().unwrap(), text);
        witness.send(text).unwrap();
        assert_eq!(writer.receive(IDLE).unwrap().unwrap(), text);
    }
    assert!(writer.send(&[0; MOST_FRAME + 1]).is_err());
    drop(writer);
    assert!(witness.receive(IDLE).unwrap().is_none());
}

#[test]
fn without_the_token_nobody_gets_in_and_nobody_is_believed() {
    let (writer, witness) = pair();
    let accepting =
        thread::spawn(move || Channel::accept(witness, &token("0123456789abcdef"), false).unwrap());
    let refused = Channel::connect(writer, &token("fedcba9876543210"));
    assert!(matches!(refused, Err(Error::Witness(_))));
    assert!(matches!(accepting.join().unwrap(), Greeted::Stranger));
    // Somebody else who says that he is the witness, and welcomes.
    let (writer, mut other) = pair();
    let own = token("0123456789abcdef");
    let connecting = thread::spawn(move || Channel::connect(writer, &own));
    let mut hello = MAGIC.to_vec();
    hello.extend_from_slice(&VERSION.to_le_bytes());
    hello.extend_from_slice(&[1; NONCE]);
    other.write_all(&hello).unwrap();
    other.read_exact(&mut [0; NONCE + MAC]).unwrap();
    other.write_all(&[0; 1 + MAC]).unwrap();
    assert!(matches!(connecting.join().unwrap(), Err(Error::Forged(_))));
}

#[test]
fn a_greeting_of_before_opens_nothing() {
    let own = token("0123456789abcdef");
    // What a writer says is overheard.
    let (writer, mut relay) = pair();
    let connecting = thread::spawn({
        let own = own.clone();
        move || Channel::connect(writer, &own).is_ok()
    });
    let mut hello = MAGIC.to_vec();
    hello.extend_from_slice(&VERSION.to_le_bytes());
    hello.extend_from_slice(&[1; NONCE]);
    relay.write_all(&hello).unwrap();
    let mut overheard = [0; NONCE + MAC];
    relay.read_exact(&mut overheard).unwrap();
    drop(relay);
    assert!(!connecting.join().unwrap());
    // And said again to the witness.
    let (mut stranger, witness) = pair();
    let accepting = thread::spawn(move || Channel::accept(witness, &own, false).unwrap());
    stranger.write_all(&overheard).unwrap();
    assert!(matches!(accepting.join().unwrap(), Greeted::Stranger));
}

/// The bytes of a frame on the wire.
fn overheard(writer: &mut Channel, witness: &mut Channel, text: &[u8]) -> Vec<u8> {
    writer.send(text).unwrap();
    let mut bytes = vec![0; size_of::<u32>() + text.len() + MAC];
    witness.stream.read_exact(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_frame_is_taken_once_in_its_turn_and_in_its_direction() {
    for deliver in [
        // Twice.
        |one: &[u8], _: &[u8]| [one, one].concat(),
        // The second alone, and the second first.
        |_: &[u8], two: &[u8]| two.to_vec(),
        |one: &[u8], two: &[u8]| [two, one].concat(),
    ] {
        let (mut writer, mut witness) = greeted();
        let one = overheard(&mut writer, &mut witness, b"one");
        let two = overheard(&mut writer, &mut witness, b"two");
        writer.stream.write_all(&deliver(&one, &two)).unwrap();
        writer.stream.shutdown(Shutdown::Write).unwrap();
        let mut taken = 0;
        let error = loop {
            match witness.receive(IDLE) {
                Ok(Some(_)) => taken += 1,
                Ok(None) => panic!("{taken} were taken"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Forged(_)) && taken <= 1, "{error}");
    }
    // Back to who sent it.
    let (mut writer, mut witness) = greeted();
    let one = overheard(&mut writer, &mut witness, b"one");
    witness.stream.write_all(&one).unwrap();
    assert!(matches!(writer.receive(IDLE), Err(Error::Forged(_))));
    // On another connection of the same two.
    let (mut again, mut other) = greeted();
    again.stream.write_all(&one).unwrap();
    assert!(matches!(other.receive(IDLE), Err(Error::Forged(_))));
}

#[test]
fn a_length_is_believed_only_as_far_as_frames_go() {
    for length in [MOST_FRAME as u32 + 1, u32::MAX] {
        let (mut writer, mut witness) = greeted();
        writer.stream.write_all(&length.to_le_bytes()).unwrap();
        assert!(matches!(witness.receive(IDLE), Err(Error::Forged(_))));
    }
}

#[test]
fn who_says_too_little_is_not_waited_for() {
    let (mut writer, mut witness) = greeted();
    let waited = witness.receive(Duration::from_millis(1));
    assert!(matches!(waited, Err(Error::Unreachable(_))));
    writer.stream.write_all(&[3, 0, 0, 0, b'x']).unwrap();
    drop(writer);
    assert!(matches!(witness.receive(IDLE), Err(Error::Unreachable(_))));
    // One byte after the other gives no more time.
    let (mut slow, mut waiting) = pair();
    let deadline = Instant::now() + Duration::from_millis(50);
    let trickling = thread::spawn(move || {
        while slow.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let read = read_until(&mut waiting, &mut [0; 1 << 20], deadline);
    let late = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
    assert!(late.contains(&read.unwrap_err().kind()));
    drop(waiting);
    trickling.join().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_changed_frame_is_none(text in prop::collection::vec(any::<u8>(), 0..200), at: prop::sample::Index, bit in 0..8u8) {
        let (mut writer, mut witness) = greeted();
        let mut bytes = overheard(&mut writer, &mut witness, &text);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        writer.stream.write_all(&bytes).unwrap();
        writer.stream.shutdown(Shutdown::Write).unwrap();
        prop_assert!(witness.receive(IDLE).is_err());
    }

    #[test]
    fn noise_is_no_frame_and_no_greeting(noise in prop::collection::vec(any::<u8>(), 1..300)) {
        let (mut writer, mut witness) = greeted();
        writer.stream.write_all(&noise).unwrap();
        drop(writer);
        prop_assert!(witness.receive(IDLE).is_err());
        let (mut stranger, witness) = pair();
        stranger.write_all(&noise).unwrap();
        stranger.shutdown(Shutdown::Write).unwrap();
        let accepted = Channel::accept(witness, &token("0123456789abcdef"), false);
        prop_assert!(!matches!(accepted, Ok(Greeted::Friend(_))));
    }
}
