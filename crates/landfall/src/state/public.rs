//! That the public methods do what they say: a state in a directory of this machine.

use std::time::Duration;

use super::fixtures::Sum;
use super::{Journaled, Policy, State, StateOptions};
use crate::Error;
use crate::environment::{Environment, Machine};

/// Nothing is durable unless it is asked for.
fn options() -> StateOptions {
    StateOptions {
        policy: Policy::Interval(Duration::from_secs(3600)),
        ..StateOptions::default()
    }
}

fn totals(state: &Journaled<Sum>) -> Vec<u64> {
    let mut totals = Vec::new();
    state.read_all(|part| totals.push(part.0));
    totals
}

#[test]
fn what_is_applied_is_committed_and_there_again() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("state");
    let state = Journaled::<Sum>::open(&place, options()).unwrap();
    assert_eq!(state.apply(2).unwrap(), 2);
    assert_eq!(state.apply(5).unwrap(), 5);
    let before = state.counters().log.commits;
    state.commit().unwrap();
    assert!(state.counters().log.commits > before);
    assert_eq!(totals(&state), [2, 5]);
    state.close().unwrap();

    let state = Journaled::<Sum>::open(&place, options()).unwrap();
    assert_eq!((state.restart().commands, totals(&state)), (2, vec![2, 5]));
}

#[test]
fn a_state_that_is_dropped_is_closed() {
    let outside = tempfile::tempdir().unwrap();
    let place = outside.path().join("state");
    let state = Journaled::<Sum>::open(&place, options()).unwrap();
    state.apply(5).unwrap();
    drop(state);
    let state = Journaled::<Sum>::open(&place, options()).unwrap();
    assert_eq!(totals(&state), [0, 5]);
}

#[test]
fn closing_says_that_it_could_not_commit() {
    let outside = tempfile::tempdir().unwrap();
    let state = Journaled::<Sum>::open(outside.path().join("state"), options()).unwrap();
    state.apply(2).unwrap();
    let log = &state.handle.shared.log.shared;
    let failed = std::io::Error::other("planned");
    log.poison(Machine::lock(&log.state), "appending", failed);
    assert!(matches!(state.close(), Err(Error::Poisoned { .. })));
}

#[test]
fn a_state_of_one_kind_of_command_has_it_in_its_first_part() {
    /// Says nothing of parts.
    #[derive(Default)]
    struct Alone(Sum);

    impl State for Alone {
        type Command = u64;
        type Output = u64;
        type Capture = u64;

        fn apply(&mut self, number: u64) -> u64 {
            self.0.apply(number)
        }

        fn encode(number: &u64, out: &mut Vec<u8>) -> Result<(), super::BoxedError> {
            <Sum>::encode(number, out)
        }

        fn decode(bytes: &[u8]) -> Result<u64, super::BoxedError> {
            <Sum>::decode(bytes)
        }

        fn capture(&self) -> u64 {
            self.0.capture()
        }

        fn write(sum: u64, out: &mut dyn std::io::Write) -> std::io::Result<()> {
            <Sum>::write(sum, out)
        }

        fn read(input: &mut dyn std::io::Read) -> std::io::Result<Alone> {
            <Sum>::read(input).map(Alone)
        }
    }

    assert_eq!((Alone::PARTS, Alone::part(&7)), (1, 0));
}

#[cfg(feature = "serde")]
#[test]
fn a_state_by_serde_has_the_parts_that_it_says() {
    use super::{Serde, SerdeState};

    #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
    struct One;

    impl SerdeState for One {
        type Command = u64;
        type Output = ();

        fn apply(&mut self, _: u64) {}
    }

    #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
    struct Many;

    impl SerdeState for Many {
        type Command = u64;
        type Output = ();

        const PARTS: u32 = 8;

        fn part(number: &u64) -> u64 {
            *number
        }

        fn apply(&mut self, _: u64) {}
    }

    assert_eq!((Serde::<One>::PARTS, Serde::<One>::part(&7)), (1, 0));
    assert_eq!((Serde::<Many>::PARTS, Serde::<Many>::part(&7)), (8, 7));
}
