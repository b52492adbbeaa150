//! What proofs give to the page.

pub(super) mod charts;
pub(super) mod prose;
mod tables;
#[cfg(test)]
mod tests;

use super::part::{Chapter, Figure, Part};
use landfall_results::proof::summary_text::model;
use landfall_results::proof::{FailingState, ProofResults};
use landfall_results::view::chart::Chart;

/// Timelines that are drawn of several proofs.
const MOST_TIMELINES: usize = 12;

/// Their part of the page; `charts` receives what is drawn.
pub(super) fn part(proofs: &[&ProofResults], charts: &mut Vec<Chart>) -> Part {
    Part {
        title: "What a power cut leaves".to_owned(),
        sentences: prose::sentences(proofs),
        front: None,
        chapters: match proofs {
            [proof] => of_one(proof, charts),
            several => of_several(several, charts),
        },
        unmeasured: None,
        preparation: None,
    }
}

fn of_one(proof: &ProofResults, charts: &mut Vec<Chart>) -> Vec<Chapter> {
    let broken = tables::violations(proof).map(|table| Chapter {
        title: "Promises that were broken",
        introduction: "A crash state is what a power cut leaves on the device. Each was mounted, the subject recovered, and what it read back was held against what it had acknowledged before the cut.".to_owned(),
        tables: vec![table],
        figures: Vec::new(),
    });
    let shortest = proof.shortest.as_ref().map(|state| {
        let title = "The shortest failing state";
        Chapter {
            title,
            introduction: format!(
                "Of the failing states the one that lacks least. {}",
                READING
            ),
            tables: Vec::new(),
            figures: vec![figure(
                "timeline",
                title,
                format!("State {}", state.name),
                state,
                charts,
            )],
        }
    });
    let tried = Chapter {
        title: "What was tried",
        introduction: format!(
            "An epoch is a stretch between two flushes: within one, the disk is free to choose. {}",
            model(proof)
        ),
        tables: vec![tables::tried(proof)],
        figures: Vec::new(),
    };
    let found = shortest.into_iter().chain(broken);
    found.chain([tried]).collect()
}

const READING: &str = "Events stand in the order in which they happened, each at its own place, whatever time lay between them. What was written since the last flush, on the shaded ground, the disk may have kept or not.";

fn of_several(proofs: &[&ProofResults], charts: &mut Vec<Chart>) -> Vec<Chapter> {
    let mut models: Vec<&str> = proofs.iter().map(|proof| model(proof)).collect();
    models.dedup();
    let table = Chapter {
        title: "All proofs",
        introduction: models.join(" "),
        tables: vec![tables::all(proofs)],
        figures: Vec::new(),
    };
    let (title, shown) = shown(proofs);
    if shown.is_empty() {
        return vec![table];
    }
    let mut introduction = READING.to_owned();
    if shown.len() > MOST_TIMELINES {
        introduction.push_str(&format!(
            " The first {MOST_TIMELINES} of {}; results.json has them all.",
            shown.len()
        ));
    }
    let figures = shown
        .into_iter()
        .take(MOST_TIMELINES)
        .enumerate()
        .map(|(index, (proof, state))| {
            let id = format!("timeline-{}", index + 1);
            let heading = format!(
                "{} on {}: state {}",
                proof.subject, proof.filesystem_spec, state.name
            );
            figure(&id, title, heading, state, charts)
        })
        .collect();
    let timelines = Chapter {
        title,
        introduction,
        tables: Vec::new(),
        figures,
    };
    vec![table, timelines]
}

/// The proofs of which a timeline is shown: those that failed and should not have, or one of the others,
/// preferably a short one that lacks a write.
fn shown<'a>(
    proofs: &[&'a ProofResults],
) -> (&'static str, Vec<(&'a ProofResults, &'a FailingState)>) {
    let failing = |proof: &&'a ProofResults| Some((*proof, proof.shortest.as_ref()?));
    let unexpected: Vec<_> = proofs
        .iter()
        .filter(|proof| proof.is_as_expected() != Some(true))
        .filter_map(failing)
        .collect();
    if !unexpected.is_empty() {
        return ("Where promises were broken", unexpected);
    }
    let others = proofs.iter().filter_map(failing);
    let telling = others.min_by_key(|(_, state)| {
        let lacks_nothing = !charts::lacks_something(state);
        (lacks_nothing, state.timeline.len())
    });
    ("How a planted fault shows", telling.into_iter().collect())
}

fn figure(
    id: &str,
    chapter: &str,
    title: String,
    state: &FailingState,
    charts: &mut Vec<Chart>,
) -> Figure {
    let chart = charts::timeline(id.to_owned(), state);
    let table = tables::events(state);
    let mut figure = Figure::new(&chart, chapter, &title, prose::failing(state), table);
    figure.command = Some(state.command.clone());
    charts.push(chart);
    figure
}
