//! What the measuring loop reaches where no disk is involved: no hand-over can be faster, and one that
//! comes close is limited by memory and not by the disk.

use std::io;

use landfall_os::{Content, StreamFile, StreamMethod};

use super::trial::{content, hand_over};
use super::{Ceiling, Strategy};
use crate::Stop;

/// Bytes of a try, unless there is less memory: enough for a rate.
const SIZE: u64 = 128 << 20;
const TRIES: u64 = 3;
/// A generator slower than this many times the fastest hand-over would be part of what is measured.
pub(super) const FAST_ENOUGH: f64 = 3.0;

/// Measures making the bytes, and handing them to a file in memory by each buffered method and chunk of
/// the plan. `memory` is how many bytes such a file may have.
pub(super) fn measure(
    strategies: &[Strategy],
    memory: u64,
    stop: &Stop,
) -> io::Result<Vec<Ceiling>> {
    let Some(first) = strategies.first() else {
        return Ok(Vec::new());
    };
    let mut chunks: Vec<u64> = strategies.iter().map(|strategy| strategy.chunk).collect();
    chunks.sort_unstable();
    chunks.dedup();
    let mut wanted: Vec<(StreamMethod, u64)> = Vec::new();
    for strategy in strategies {
        let pair = (strategy.method, strategy.chunk);
        if !strategy.method.direct && !wanted.contains(&pair) {
            wanted.push(pair);
        }
    }
    let of = |method: StreamMethod, chunk: u64, size: u64| Strategy {
        chunk,
        ..Strategy::usual(method, size.max(chunk), first.data)
    };
    let mut ceilings = Vec::new();
    for chunk in chunks {
        let nowhere = |content| StreamFile::nowhere(chunk, content);
        let strategy = of(StreamMethod::WRITE, chunk, SIZE);
        ceilings.extend(best_of(None, &strategy, stop, nowhere)?);
    }
    for (method, chunk) in wanted {
        let strategy = of(method, chunk, SIZE.min(memory));
        let in_memory =
            |content| StreamFile::in_memory(method, strategy.size, strategy.chunk, content);
        ceilings.extend(best_of(Some(method), &strategy, stop, in_memory)?);
    }
    Ok(ceilings)
}

/// Hands over a state several times, each time to what `open` opens; nothing where that does not work.
fn best_of(
    method: Option<StreamMethod>,
    strategy: &Strategy,
    stop: &Stop,
    open: impl Fn(Content) -> io::Result<StreamFile>,
) -> io::Result<Option<Ceiling>> {
    let mut tries = Vec::new();
    for seed in 0..TRIES {
        let Ok(mut file) = open(content(strategy.data, seed)) else {
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
    Ok(Some(ceiling(method, strategy.chunk, strategy.size, &tries)))
}

fn ceiling(method: Option<StreamMethod>, chunk: u64, bytes: u64, seconds: &[f64]) -> Ceiling {
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds.max(1e-9);
    Ceiling {
        method,
        chunk,
        mb_per_s: rate(seconds.iter().copied().fold(f64::INFINITY, f64::min)),
        slowest_mb_per_s: rate(seconds.iter().copied().fold(0.0, f64::max)),
    }
}
