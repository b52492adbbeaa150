//! Counts the words of its input, more than fit into memory, and remembers them through power cuts.
//!
//! `cargo run --release -p landfall --example count -- DIR < text` counts and prints the ten most frequent; `-- DIR PREFIX < /dev/null`
//! prints all that begin so. A thousand lines are a commit: they are counted in memory first, and then added to what is there.

use std::collections::{BTreeMap, BinaryHeap};
use std::io::{BufRead, Write};
use std::process::ExitCode;

use landfall::{BoxedError, Keyspace, Policy, Store, StoreOptions};

/// Lines of a commit.
const LINES: usize = 1000;

fn count_of(value: &[u8]) -> Result<u64, BoxedError> {
    Ok(u64::from_be_bytes(value.try_into()?))
}

/// Adds what was counted. Nobody else writes: one process has the store.
fn add(store: &Store, words: &Keyspace, counted: BTreeMap<String, u64>) -> Result<(), BoxedError> {
    let mut batch = store.batch();
    for (word, more) in counted {
        let before = words.get(&word)?;
        let before = before.map_or(Ok(0), |value| count_of(&value))?;
        batch.insert(words, word, (before + more).to_be_bytes());
    }
    Ok(batch.commit()?)
}

fn run() -> Result<(), BoxedError> {
    let mut out = std::io::stdout().lock();
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("usage: count DIR [PREFIX] < text")?;
    // A power cut may take the last lines, as closing makes them durable.
    let store = Store::open(directory, StoreOptions::default().policy(Policy::Group))?;
    let words = store.keyspace("words", Default::default())?;
    let mut counted = BTreeMap::new();
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        for word in line.split(|letter: char| !letter.is_alphanumeric()) {
            if !word.is_empty() {
                *counted.entry(word.to_lowercase()).or_default() += 1;
            }
        }
        if number % LINES == LINES - 1 {
            add(&store, &words, std::mem::take(&mut counted))?;
        }
    }
    add(&store, &words, counted)?;
    if let Some(prefix) = arguments.next() {
        for pair in words.prefix(prefix) {
            let (word, count) = pair?;
            writeln!(out, "{:>8} {}", count_of(&count)?, String::from_utf8(word)?)?;
        }
    } else {
        let mut most = BinaryHeap::new();
        for pair in words.range::<&str>(..) {
            let (word, count) = pair?;
            most.push((count_of(&count)?, String::from_utf8(word)?));
        }
        for (count, word) in std::iter::from_fn(|| most.pop()).take(10) {
            writeln!(out, "{count:>8} {word}")?;
        }
    }
    drop(words);
    Ok(store.close()?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("count: {error}");
            ExitCode::FAILURE
        }
    }
}
