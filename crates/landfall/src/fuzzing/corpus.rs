//! What fuzzing has kept, and what it begins from: `corpus`, with a directory for each target.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::memory::Memory;

/// Waits until all segments are made that are made ahead: the same files each time.
pub(super) fn settle(memory: &Memory) {
    let mut files = memory.files();
    let mut since = Instant::now();
    while since.elapsed() < Duration::from_millis(20) {
        std::thread::yield_now();
        let now = memory.files();
        if now != files {
            (files, since) = (now, Instant::now());
        }
    }
}

fn directory(target: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    corpus.join(target)
}

/// All that is kept for a target, in the order of names.
fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory(target)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        (path, bytes)
    };
    paths.into_iter().map(read).collect()
}

/// Does what the target does with all that is kept for it, after writing the seeds if that is asked for.
pub(super) fn replay(target: &str, seeds: &[(&str, Vec<u8>)], exercise: fn(&[u8])) {
    let directory = directory(target);
    if std::env::var_os("LANDFALL_UPDATE").is_some() {
        fs::create_dir_all(&directory).unwrap();
        for (name, bytes) in seeds {
            fs::write(directory.join(name), bytes).unwrap();
        }
    }
    let kept = kept(target);
    for (path, bytes) in &kept {
        println!("{}", path.display());
        exercise(bytes);
    }
    assert!(
        kept.len() >= seeds.len(),
        "no corpus in {}",
        directory.display()
    );
}
