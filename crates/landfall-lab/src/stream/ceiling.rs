//! What the measuring loop reaches where no disk is involved: no hand-over can be faster, and one that
//! comes close is limited by memory and not by the disk.

use std::io;
use std::time::Instant;

use landfall_os::{Content, Payload, StreamFile, StreamMethod};

use super::trial::{content, hand_over};
use super::{Ceiling, Strategy};
use crate::Stop;

/// Bytes of a try: enough for a rate, little enough for any machine.
const SIZE: u64 = 128 << 20;
const TRIES: usize = 3;
/// A generator slower than this many times the fastest hand-over would be part of what is measured.
pub(super) const FAST_ENOUGH: f64 = 3.0;

/// Measures making the bytes, and handing them to a file in memory by each buffered method and chunk of
/// the plan.
pub(super) fn measure(strategies: &[Strategy], stop: &Stop) -> io::Result<Vec<Ceiling>> {
    let mut wanted: Vec<(StreamMethod, u64)> = Vec::new();
    for strategy in strategies {
        let pair = (strategy.method, strategy.chunk);
        if !strategy.method.direct && !wanted.contains(&pair) {
            wanted.push(pair);
        }
    }
    let Some(first) = strategies.first() else {
        return Ok(Vec::new());
    };
    let mut chunks: Vec<u64> = strategies.iter().map(|strategy| strategy.chunk).collect();
    chunks.sort_unstable();
    chunks.dedup();
    let mut ceilings: Vec<Ceiling> = chunks
        .into_iter()
        .map(|chunk| generator(content(first.data, 1), chunk))
        .collect();
    for (method, chunk) in wanted {
        let strategy = Strategy {
            size: SIZE.max(chunk),
            chunk,
            ..Strategy::usual(method, SIZE.max(chunk), first.data)
        };
        if let Some(ceiling) = in_memory(&strategy, stop)? {
            ceilings.push(ceiling);
        }
    }
    Ok(ceilings)
}

/// Making the bytes of chunks, which go nowhere.
fn generator(content: Content, chunk: u64) -> Ceiling {
    let mut payload = match content {
        Content::Random { seed } => Payload::new(chunk as usize, seed),
        Content::Zeros => Payload::zeros(chunk as usize),
    };
    let chunks = (SIZE / chunk).max(1);
    let tries = std::array::from_fn::<f64, TRIES, _>(|_| {
        let begin = Instant::now();
        for number in 0..chunks {
            std::hint::black_box(payload.stamped(number));
        }
        begin.elapsed().as_secs_f64()
    });
    ceiling("generator".to_owned(), chunk, chunks * chunk, &tries)
}

fn ceiling(what: String, chunk: u64, bytes: u64, seconds: &[f64]) -> Ceiling {
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds.max(1e-9);
    Ceiling {
        what,
        chunk,
        mb_per_s: rate(seconds.iter().copied().fold(f64::INFINITY, f64::min)),
        slowest_mb_per_s: rate(seconds.iter().copied().fold(0.0, f64::max)),
    }
}

/// Handing chunks to a file in main memory; nothing where the method does not exist there.
fn in_memory(strategy: &Strategy, stop: &Stop) -> io::Result<Option<Ceiling>> {
    let mut tries = Vec::new();
    for seed in 0..TRIES {
        let content = content(strategy.data, seed as u64);
        let opened = StreamFile::in_memory(strategy.method, strategy.size, strategy.chunk, content);
        let Ok(mut file) = opened else {
            return Ok(None);
        };
        let handed = match hand_over(&mut file, strategy, stop) {
            Ok(handed) => handed,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            // A limit on memory, say: without a ceiling the figures stand as they are.
            Err(_) => return Ok(None),
        };
        tries.push(handed.elapsed.as_secs_f64());
    }
    let what = strategy.method.to_string();
    Ok(Some(ceiling(what, strategy.chunk, strategy.size, &tries)))
}
