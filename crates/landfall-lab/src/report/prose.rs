//! The report's verdict: what stands on the first screen, above the picture.

use crate::Results;
use landfall_results::view::Part;

/// Sentences that the verdict takes from the first part that has any.
const MOST_SENTENCES: usize = 3;

/// What the report says before anything else: what was found first; the page adds the weightiest notice. The
/// sentences are taken from their part, so that nothing is said twice.
pub(super) fn verdict(results: &Results, parts: &mut [Part]) -> Vec<String> {
    let Some(first) = parts.iter_mut().find(|part| !part.sentences.is_empty()) else {
        let text = "Nothing was measured: no strategy of this plan can be carried out here.";
        return vec![text.to_owned()];
    };
    let mut sentences = Vec::new();
    if results.is_in_memory() && !results.has_only_proofs() {
        sentences.push("This directory is in main memory, where nothing is durable: the figures show what the software costs, and no disk.".to_owned());
    }
    let count = first.sentences.len().min(MOST_SENTENCES);
    sentences.extend(first.sentences.drain(..count));
    if results.is_too_noisy() {
        sentences.push("The run was too noisy to conclude anything from: most intervals are wider than their figures.".to_owned());
    } else if results.notices.is_empty() && !results.has_only_proofs() {
        sentences.push("Nothing was noticed that puts these figures in doubt.".to_owned());
    }
    sentences
}
