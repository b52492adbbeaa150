//! What proofs give to the page.

pub(super) mod charts;
pub(super) mod prose;
mod tables;
#[cfg(test)]
mod tests;

use landfall_results::proof::summary_text::model;
use landfall_results::proof::{FailingState, ProofResults};
use landfall_results::view::{Chapter, Figure, Part, Suggestion};

/// Timelines that are drawn of several proofs.
const MOST_TIMELINES: usize = 12;

/// Their part of the page.
pub(super) fn part(proofs: &[&ProofResults]) -> Part {
    Part {
        title: "What a power cut leaves".to_owned(),
        sentences: prose::sentences(proofs),
        front: match proofs {
            [proof] => shortest(proof),
            _ => None,
        },
        chapters: match proofs {
            [proof] => of_one(proof),
            several => of_several(several),
        },
        unmeasured: None,
        run: None,
        preparation: None,
    }
}

fn of_one(proof: &ProofResults) -> Vec<Chapter> {
    let broken = tables::violations(proof).map(|table| {
        Chapter::of_table(
            "Promises that were broken",
            "A crash state is what a power cut leaves on the device. Each was mounted, the subject recovered, and what it read back was held against what it had acknowledged before the cut.",
            table,
        )
    });
    let tried = Chapter::of_table(
        "What was tried",
        format!(
            "An epoch is a stretch between two flushes: within one, the disk is free to choose. {}",
            model(proof)
        ),
        tables::tried(proof),
    );
    let exercised = tables::exercised(proof).map(|table| {
        Chapter::of_table(
            "What was exercised",
            "A setting that protects from something was tried only if the power was cut while that happened.",
            table,
        )
    });
    broken.into_iter().chain([tried]).chain(exercised).collect()
}

/// The picture of the failing state that lacks least.
fn shortest(proof: &ProofResults) -> Option<Chapter> {
    let state = proof.shortest.as_ref()?;
    let title = format!("The shortest failing state: {}", state.name);
    let figures = vec![figure("timeline", title, state)];
    Chapter::of_figures("The shortest failing state", READING, figures)
}

const READING: &str = "Events stand in order, not to scale in time. On the shaded ground is what was written since the last flush: the disk may have kept it or not.";

fn of_several(proofs: &[&ProofResults]) -> Vec<Chapter> {
    let mut models: Vec<&str> = proofs.iter().map(|proof| model(proof)).collect();
    models.dedup();
    let table = Chapter::of_table("All proofs", models.join(" "), tables::all(proofs));
    let (title, shown) = shown(proofs);
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
            figure(&id, heading, state)
        })
        .collect();
    let timelines = Chapter::of_figures(title, introduction, figures);
    [table].into_iter().chain(timelines).collect()
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

fn figure(id: &str, title: String, state: &FailingState) -> Figure {
    let chart = charts::timeline(id.to_owned(), state);
    let mut figure = Figure::new(title, chart, prose::failing(state), tables::events(state));
    figure.command = Some(Suggestion::new("See it again:", state.command.clone()));
    figure
}
