//! A queue that survives power cuts: jobs are put in at one end, and taken out at the other by one worker each.
//!
//! `cargo run -p landfall --example queue -- DIR put TEXT…` puts jobs in, `queue -- DIR take` takes one out, and `queue -- DIR`
//! lists those that wait. A job is taken in a transaction: two workers never get the same one.

use std::io::Write;
use std::process::ExitCode;

use landfall::{BoxedError, Error, Keyspace, Store, StoreOptions};

/// The number behind the last job: keys are numbers whose bytes are in their order.
fn next(jobs: &Keyspace) -> Result<u64, BoxedError> {
    let Some(last) = jobs.range::<&[u8]>(..).next_back() else {
        return Ok(0);
    };
    let (key, _) = last?;
    Ok(u64::from_be_bytes(key.as_slice().try_into()?) + 1)
}

fn take(store: &Store, jobs: &Keyspace) -> Result<Option<String>, BoxedError> {
    loop {
        let mut transaction = store.transaction();
        let Some(first) = transaction.range::<&[u8]>(jobs, ..).next() else {
            return Ok(None);
        };
        let (key, job) = first?;
        transaction.remove(jobs, &key);
        match transaction.commit() {
            // Another worker was first.
            Err(Error::Conflict) => {}
            committed => {
                committed?;
                return Ok(Some(String::from_utf8(job)?));
            }
        }
    }
}

fn run() -> Result<(), BoxedError> {
    let mut out = std::io::stdout().lock();
    let mut words = std::env::args().skip(1);
    let directory = words.next().ok_or("usage: queue DIR [put TEXT… | take]")?;
    let store = Store::open(directory, StoreOptions::default())?;
    let jobs = store.keyspace("jobs", Default::default())?;
    match words.next().as_deref() {
        None => {
            for pair in jobs.range::<&[u8]>(..) {
                writeln!(out, "{}", String::from_utf8(pair?.1)?)?;
            }
        }
        Some("put") => {
            let mut batch = store.batch();
            for (number, job) in (next(&jobs)?..).zip(words) {
                batch.insert(&jobs, number.to_be_bytes(), job);
            }
            batch.commit()?;
        }
        Some("take") => match take(&store, &jobs)? {
            Some(job) => writeln!(out, "{job}")?,
            None => writeln!(out, "nothing waits")?,
        },
        Some(other) => return Err(format!("'{other}' is neither put nor take").into()),
    }
    drop(jobs);
    Ok(store.close()?)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("queue: {error}");
            ExitCode::FAILURE
        }
    }
}
