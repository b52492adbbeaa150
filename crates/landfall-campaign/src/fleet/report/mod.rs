//! What is shown of a fleet, as data: one screen for a terminal, and a page. What either looks like is the matter of
//! `landfall-report`.

mod chart;
mod page;
mod screen;
mod sentences;
mod tables;

pub use page::page;
pub use screen::screen;

use landfall_lab::sync::Strategy;
use landfall_results::view::{Cell, Table};

use super::Fleet;

/// Everything that a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What the campaign is called.
    pub name: &'a str,
    /// What was measured, and on what.
    pub fleet: &'a Fleet,
    /// What was proven, if anything was.
    pub proofs: Option<&'a Proofs>,
    /// What is missing.
    pub missing: &'a Missing,
    /// When it was run, for people, if it was.
    pub when: Option<&'a str>,
    /// What a user types to make this report again.
    pub command: &'a str,
    /// The JSON document beside the page.
    pub document: &'a str,
}

/// What a report lacks, a line for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Shards of which there is no document.
    pub shards: Vec<String>,
    /// Tasks of shards that could not be done, and why.
    pub tasks: Vec<String>,
    /// What lies among the documents and cannot be read.
    pub unreadable: Vec<String>,
}

impl Missing {
    fn lines(&self) -> impl Iterator<Item = &String> {
        self.shards
            .iter()
            .chain(&self.tasks)
            .chain(&self.unreadable)
    }
}

/// What all proofs of a campaign came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proofs {
    /// In one sentence: good if nothing was lost, bad if something was.
    pub verdict: Cell,
    /// What each came to, in a sentence.
    pub sentences: Vec<String>,
    /// States tried and lost.
    pub table: Table,
}

/// A series that is shown, with its figures: rates first, and then tails.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shown {
    what: String,
    figures: Vec<usize>,
}

/// The series that most disks have, the first of equals being the centre of the standard plan, durable ones before others.
fn shown(fleet: &Fleet) -> Vec<Shown> {
    let mut counts = vec![0_usize; fleet.figures.len()];
    for measured in fleet.disks.iter().flat_map(|disk| &disk.figures) {
        counts[measured.figure] += 1;
    }
    let centre = Strategy::BASELINE.key();
    let numbers: Vec<usize> = (0..fleet.figures.len()).collect();
    let series = numbers.chunk_by(|one, other| {
        let (one, other) = (&fleet.figures[*one], &fleet.figures[*other]);
        (&one.experiment, &one.series) == (&other.experiment, &other.series)
    });
    let mut ranked: Vec<_> = series
        .filter_map(|numbers| {
            let first = &fleet.figures[*numbers.first()?];
            let disks = numbers.iter().map(|number| counts[*number]).max();
            let is_centre = first.experiment == "sync" && first.series == centre;
            let mut figures = numbers.to_vec();
            figures.sort_by_key(|number| fleet.figures[*number].is_tail());
            let shown = Shown {
                what: first.what.clone(),
                figures,
            };
            Some(((disks, is_centre, first.durable), shown))
        })
        .collect();
    // Stable: what is alike stays in the order of its names.
    ranked.sort_by(|(one, _), (other, _)| other.cmp(one));
    ranked.into_iter().map(|(_, shown)| shown).collect()
}
