//! The report's verdict: three sentences, computed from the results.

use crate::Results;
use crate::advice::{Advice, sentence};
use landfall_results::view::Part;

/// What the report says before anything else: what was found first, which setting has most to gain, and what must
/// be known before any of it is believed. The first is taken from the parts, whose sentences stand with them.
pub(super) fn verdict(results: &Results, parts: &mut [Part], advice: &Advice) -> Vec<String> {
    if parts.iter().all(|part| part.sentences.is_empty()) {
        let text = "Nothing was measured: no strategy of this plan can be carried out here.";
        return vec![text.to_owned()];
    }
    let mut sentences = Vec::new();
    if results.is_in_memory() && !results.has_only_proofs() {
        sentences.push("This directory is in main memory, where nothing is durable: the figures below show what the software costs, and no disk.".to_owned());
    } else {
        sentences.extend(next(parts));
    }
    match sentence(advice) {
        Some(sentence) => sentences.push(sentence),
        None => sentences.extend(next(parts)),
    }
    let plain = "Nothing was noticed that keeps these figures from being taken at face value.";
    match weightiest(results) {
        Some(notice) => sentences.push(notice),
        None if results.has_only_proofs() => sentences.extend(next(parts)),
        None => sentences.push(plain.to_owned()),
    }
    sentences
}

/// The first sentence that a part has left.
fn next(parts: &mut [Part]) -> Option<String> {
    let part = parts.iter_mut().find(|part| !part.sentences.is_empty())?;
    Some(part.sentences.remove(0))
}

fn weightiest(results: &Results) -> Option<String> {
    let weightiest = results.notices.iter().rev().max_by_key(|n| n.weight)?;
    Some(format!("Before you believe it: {}", weightiest.text))
}
