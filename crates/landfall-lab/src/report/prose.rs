//! The report's first sentences, computed from the results.

use super::{amplify, binlog, prove, stream, sync, torn};
use crate::Results;
use crate::prove::ProofResults;

/// What the report says before anything else.
pub(super) fn sentences(results: &Results) -> Vec<String> {
    let of_sync = results
        .sync()
        .filter(|sync| sync.strategies.iter().any(|s| s.summary.is_some()));
    let of_stream = results.stream().filter(|stream| {
        stream.saving.is_some() || stream.strategies.iter().any(|s| s.summary.is_some())
    });
    let proofs: Vec<&ProofResults> = results.proofs().collect();
    let of_proofs = prove::prose::sentences(&proofs);
    if results.has_only_proofs() {
        return of_proofs.into_iter().chain(weightiest(results)).collect();
    }
    let of_databases = results
        .measurements()
        .next()
        .filter(|_| !results.is_empty());
    if of_sync.is_none() && of_stream.is_none() && of_databases.is_none() && of_proofs.is_empty() {
        let text = "Nothing was measured: no strategy of this plan can be carried out here.";
        return vec![text.to_owned()];
    }
    let mut sentences = Vec::new();
    if results.is_in_memory() {
        sentences.push("This directory is in main memory, where nothing is durable: the figures below show what the software costs, and no disk.".to_owned());
    }
    sentences.extend(
        of_sync
            .into_iter()
            .flat_map(|sync| sync::prose::sentences(results, sync)),
    );
    sentences.extend(
        of_stream
            .into_iter()
            .flat_map(|stream| stream::prose::sentences(results, stream)),
    );
    sentences.extend(results.binlog().into_iter().flat_map(binlog::prose));
    sentences.extend(results.torn().into_iter().flat_map(torn::prose));
    sentences.extend(results.amplify().into_iter().flat_map(amplify::prose));
    sentences.extend(of_proofs);
    sentences.push(weightiest(results).unwrap_or_else(|| {
        "Nothing was noticed that keeps these figures from being taken at face value.".to_owned()
    }));
    sentences
}

fn weightiest(results: &Results) -> Option<String> {
    let weightiest = results.notices.iter().rev().max_by_key(|n| n.weight)?;
    Some(format!("Before you believe it: {}", weightiest.text))
}
