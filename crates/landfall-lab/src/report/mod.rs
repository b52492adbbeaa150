//! What is shown of results, as data: the page of all of it, and what a terminal shows. What either looks like is the
//! matter of `landfall-report`.

pub mod advice;
mod page;
mod prose;
mod prove;
mod screen;
#[cfg(test)]
pub(crate) mod tests;

use landfall_results::view::Block;

pub use page::page;
pub use screen::{Detail, Kept, screen};

use crate::{Findings, Found, Results};

/// All that a terminal shows of every experiment, without claims, proofs and notices.
pub fn brief(results: &Results) -> Vec<Block> {
    let in_order = Found::EXPERIMENTS
        .iter()
        .flat_map(|name| runs(results, name));
    in_order.flat_map(|found| found.brief(results)).collect()
}

/// The runs of one experiment.
fn runs<'a>(results: &'a Results, name: &str) -> impl Iterator<Item = &'a dyn Findings> {
    let all = results.experiments.iter();
    all.filter(move |one| one.name() == name)
        .filter_map(Found::findings)
}
