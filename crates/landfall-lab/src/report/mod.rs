//! What is shown of results, as data: the page of all of it, and what a terminal shows. What either looks like is the
//! matter of `landfall-report`.

mod advice;
mod amplify;
mod binlog;
mod configuration;
mod page;
mod prose;
mod prove;
mod stream;
mod sync;
mod table;
#[cfg(test)]
mod tests;
mod torn;

use landfall_results::view::Block;

pub use page::page;

use crate::Results;

/// What a terminal shows of every experiment, without claims, proofs and notices.
pub fn brief(results: &Results) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(found) = results.first() {
        blocks.extend(sync::tables::brief(results, found));
    }
    if let Some(found) = results.first() {
        blocks.extend(stream::tables::brief(found));
    }
    blocks.extend(results.all().flat_map(binlog::tables::brief));
    blocks.extend(results.all().flat_map(torn::tables::brief));
    blocks.extend(results.all().flat_map(amplify::tables::brief));
    blocks
}
