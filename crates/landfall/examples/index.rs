//! A table with a secondary index: people by number, found by city too.
//!
//! `cargo run -p landfall --example index -- DIR add NUMBER NAME CITY` adds or changes a person, `index -- DIR in CITY` finds
//! those of a city. Both keyspaces are written in one transaction, so that the index never lies, whatever a power cut takes.

use std::io::Write;
use std::process::ExitCode;

use landfall::{BoxedError, Error, Keyspace, Store, StoreOptions};

/// A person's number under their city: the city, a byte that no city has, and the number.
fn in_index(city: &str, number: u64) -> Vec<u8> {
    let mut key = city.as_bytes().to_vec();
    key.push(0);
    key.extend(number.to_be_bytes());
    key
}

fn text(bytes: &[u8]) -> Result<(&str, &str), BoxedError> {
    let text = std::str::from_utf8(bytes)?;
    Ok(text.split_once('\n').ok_or("a person without a city")?)
}

fn add(
    store: &Store,
    people: &Keyspace,
    by_city: &Keyspace,
    (number, name, city): (u64, &str, &str),
) -> Result<(), BoxedError> {
    loop {
        let mut transaction = store.transaction();
        if let Some(before) = transaction.get(people, number.to_be_bytes())? {
            let (_, city) = text(&before)?;
            transaction.remove(by_city, in_index(city, number));
        }
        transaction.insert(people, number.to_be_bytes(), format!("{name}\n{city}"));
        transaction.insert(by_city, in_index(city, number), "");
        match transaction.commit() {
            // Somebody else has changed the same person meanwhile.
            Err(Error::Conflict) => {}
            committed => return Ok(committed?),
        }
    }
}

fn run() -> Result<(), BoxedError> {
    let mut out = std::io::stdout().lock();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [directory, rest @ ..] = &words[..] else {
        return Err("usage: index DIR add NUMBER NAME CITY | DIR in CITY".into());
    };
    let store = Store::open(directory, StoreOptions::default())?;
    let people = store.keyspace("people", Default::default())?;
    let by_city = store.keyspace("people by city", Default::default())?;
    match rest {
        ["add", number, name, city] => {
            add(&store, &people, &by_city, (number.parse()?, name, city))?;
        }
        ["in", city] => {
            let prefix = [city.as_bytes(), &[0]].concat();
            for pair in by_city.prefix(&prefix) {
                let (key, _) = pair?;
                let person = people.get(&key[prefix.len()..])?;
                let person = person.ok_or("the index names somebody who is not there")?;
                writeln!(out, "{}", text(&person)?.0)?;
            }
        }
        _ => return Err("usage: index DIR add NUMBER NAME CITY | DIR in CITY".into()),
    }
    drop((people, by_city));
    Ok(store.close()?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("index: {error}");
            ExitCode::FAILURE
        }
    }
}
