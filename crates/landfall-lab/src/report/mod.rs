//! What is shown of results, as data: the page of all of it, and what a terminal shows. What either looks like is the
//! matter of `landfall-report`.

pub mod advice;
mod page;
mod prose;
mod prove;
mod screen;
#[cfg(test)]
pub(crate) mod tests;

use landfall_os::humanize::duration_text;
use landfall_results::view::Block;

pub use page::page;
pub use screen::{Detail, Kept, screen};

use crate::{Findings, Found, Results};

/// How often and for how long it was measured: `5 rounds, 75 s`.
fn effort(results: &Results) -> String {
    let rounds = results.findings().map(|found| found.rounds());
    let rounds: Vec<u32> = rounds.collect();
    let rounds = match (rounds.iter().min(), rounds.iter().max()) {
        (Some(1), Some(1)) => "1 round".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{most} rounds"),
        (Some(least), Some(most)) => format!("{least} to {most} rounds"),
        _ => "no rounds".to_owned(),
    };
    format!("{rounds}, {}", duration_text(results.seconds))
}

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
