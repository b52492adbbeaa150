//! What the report says of proofs before anything else: the verdict, and then how much it is worth.

use super::tables::upper;
use landfall_results::proof::cluster_text;
use landfall_results::proof::summary_text::{
    circumstances, coverage, exercised, full_verdict, short_subject, short_verdict, workload,
};
use landfall_results::proof::timeline_text::missing;
use landfall_results::proof::{FailingState, Outcome, ProofResults};
use landfall_results::view::{Cell, Tone};

/// Specs longer than this do not go into a heading whole.
const LONGEST_SPEC: usize = 32;
/// Proofs named in a sentence.
const MOST_NAMED: usize = 4;

/// The verdict in the fewest words, with a sign.
pub(in crate::report) fn heading(proofs: &[&ProofResults]) -> Cell {
    if let [proof] = proofs {
        let whole = proof.filesystem_spec.to_string();
        let filesystem = match proof.filesystem_spec.kind.name() {
            kind if whole.len() > LONGEST_SPEC => kind,
            _ => &whole,
        };
        let text = format!(
            "{} on {filesystem} {}",
            short_subject(proof),
            short_verdict(proof)
        );
        return Cell::toned(tone(proof.outcome()), text);
    }
    let expected = proofs.iter().filter_map(|proof| proof.is_as_expected());
    if expected.clone().next().is_some() {
        let wrong = expected.filter(|yes| !yes).count();
        let count = proofs.len();
        return match wrong {
            0 => Cell::toned(
                Tone::Good,
                format!("All {count} proofs came out as expected"),
            ),
            wrong => Cell::toned(
                Tone::Bad,
                format!("{wrong} of {count} proofs did not come out as expected"),
            ),
        };
    }
    let count = |wanted| of(proofs, wanted).count();
    let lost = count(Outcome::LostSomething);
    let total = proofs.len();
    match (lost, count(Outcome::NotProven)) {
        (0, 0) => Cell::toned(
            Tone::Good,
            format!("None of {total} subjects lost anything"),
        ),
        (0, unproven) => Cell::toned(
            Tone::Doubt,
            format!("{unproven} of {total} subjects could not be proven"),
        ),
        (lost, _) => Cell::toned(
            Tone::Bad,
            format!("{lost} of {total} subjects broke a promise"),
        ),
    }
}

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::LostNothing => Tone::Good,
        Outcome::LostSomething => Tone::Bad,
        Outcome::NotProven => Tone::Doubt,
    }
}

fn of<'a>(
    proofs: &'a [&ProofResults],
    wanted: Outcome,
) -> impl Iterator<Item = &'a &'a ProofResults> {
    proofs.iter().filter(move |proof| proof.outcome() == wanted)
}

/// What the report says of the proofs before anything else.
pub(in crate::report) fn sentences(proofs: &[&ProofResults]) -> Vec<String> {
    match proofs {
        [] => Vec::new(),
        [proof] => one(proof),
        several => all(several),
    }
}

fn one(proof: &ProofResults) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} on {} {}.",
        proof.subject,
        proof.filesystem_spec,
        full_verdict(proof)
    )];
    sentences.extend(cluster_text::sentences(proof));
    if let Some(shortest) = &proof.shortest {
        let details = shortest.details.join("; ");
        let missing = missing(shortest).unwrap_or_default();
        let text = format!("In the failing state that lacks least, {details}. {missing}");
        sentences.push(text.trim_end().to_owned());
    }
    sentences.push(format!("{} {}", workload(proof), coverage(proof)));
    sentences.extend(exercised(proof));
    sentences.extend(circumstances(proof));
    sentences
}

/// What is wrong with a failing state, and which writes it lacks.
pub(super) fn failing(state: &FailingState) -> String {
    let details = state.details.join("; ");
    let mut text = format!("{}.", upper(details.trim_end_matches('.')));
    if let Some(missing) = missing(state) {
        text.push(' ');
        text.push_str(&missing);
    }
    text
}

fn all(proofs: &[&ProofResults]) -> Vec<String> {
    let wrong: Vec<&ProofResults> = proofs
        .iter()
        .copied()
        .filter(|proof| proof.is_as_expected() == Some(false))
        .collect();
    let right = |wanted| {
        of(proofs, wanted)
            .filter(|proof| proof.is_as_expected() == Some(true))
            .count()
    };
    let mut sentences = Vec::new();
    if proofs.iter().any(|proof| proof.expected.is_some()) {
        let (sound, caught) = (right(Outcome::LostNothing), right(Outcome::LostSomething));
        sentences.push(format!(
            "Of what is known to be safe {sound} lost nothing; of what is known to lose data {caught} {} caught.",
            if caught == 1 { "was" } else { "were" }
        ));
        if !wrong.is_empty() {
            sentences.push(format!("Not as expected: {}.", named(&wrong)));
        }
    } else {
        for (outcome, words) in [
            (Outcome::LostSomething, "A promise was broken by"),
            (Outcome::NotProven, "Not proven"),
            (Outcome::LostNothing, "Nothing was lost by"),
        ] {
            let these: Vec<&ProofResults> = of(proofs, outcome).copied().collect();
            if !these.is_empty() {
                sentences.push(format!("{words}: {}.", named(&these)));
            }
        }
    }
    let states: u64 = proofs.iter().map(|proof| proof.coverage.checked).sum();
    sentences.push(format!(
        "{} crash states were checked in all.",
        crate::numbers::thousands(states as f64)
    ));
    sentences
}

fn named(proofs: &[&ProofResults]) -> String {
    let mut texts: Vec<String> = proofs
        .iter()
        .take(MOST_NAMED)
        .map(|proof| {
            format!(
                "{} on {} {}",
                proof.subject,
                proof.filesystem_spec,
                short_verdict(proof)
            )
        })
        .collect();
    if proofs.len() > MOST_NAMED {
        texts.push(format!("and {} more", proofs.len() - MOST_NAMED));
    }
    texts.join("; ")
}
