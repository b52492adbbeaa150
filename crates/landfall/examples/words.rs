//! Counts the words of its input, in an order, and remembers them through power cuts.
//!
//! `cargo run -p landfall --example words -- DIR < text` counts; without input it prints the words that are there.
//! The map is cut into 64 parts by what a word begins with, so that several threads could count, and a snapshot holds
//! up none of them.

use std::collections::BTreeMap;
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use landfall::{BoxedError, Journaled, Policy, Serde, SerdeState, StateOptions, part_of};
use serde::{Deserialize, Serialize};

/// How often each word was there.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Words(BTreeMap<String, u64>);

impl SerdeState for Words {
    type Command = String;
    type Output = u64;

    const PARTS: u32 = 64;

    fn part(word: &String) -> u64 {
        part_of(word.as_bytes())
    }

    fn apply(&mut self, word: String) -> u64 {
        let count = self.0.entry(word).or_default();
        *count += 1;
        *count
    }
}

fn run() -> Result<(), BoxedError> {
    let directory = std::env::args().nth(1).ok_or("usage: words DIR < text")?;
    // A power cut may take the last words, as closing makes them durable.
    let options = StateOptions::default().policy(Policy::Group);
    let words = Journaled::<Serde<Words>>::open(directory, options)?;
    let input = std::io::stdin();
    if !input.is_terminal() {
        for line in input.lock().lines() {
            for word in line?.split_whitespace() {
                words.apply(word.to_lowercase())?;
            }
        }
    }
    let mut all = BTreeMap::new();
    words.read_all(|part| all.extend(part.0.0.clone()));
    for (word, count) in all {
        println!("{count:8} {word}");
    }
    words.close()?;
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("words: {error}");
            ExitCode::FAILURE
        }
    }
}
