//! What a proof found.

use std::fmt::Write as _;

use landfall_lab::prove::sentences::{
    circumstances, coverage, missing, short_subject, verdict, workload,
};
use landfall_lab::prove::{Breach, FailingState, Outcome, ProofResults};
use landfall_lab::{Results, bytes_text, duration_text};

use super::layout::{lines, plain_table, wrapped};
use super::moments::moments;
use crate::terminal::style::{BAD, DOUBT, GOOD, STRONG, styled};

/// Who was proven where: what stands above a document that has only proofs.
pub(super) fn header(results: &Results) -> String {
    let proofs: Vec<&ProofResults> = results.proofs().collect();
    let what = match proofs.as_slice() {
        [proof] => format!(
            "{} on {}, a recorded device of {}",
            proof.subject,
            proof.recipe,
            bytes_text(proof.device_bytes)
        ),
        several => format!("{} proofs on recorded devices", several.len()),
    };
    let took = match results.seconds {
        short @ 0.0..10.0 => format!("{short:.1} s"),
        long => duration_text(long),
    };
    wrapped(0, &format!("{what}, Linux {}; {took}", results.host.kernel))
}

/// All proofs of a run: one in full, several as a table.
pub(super) fn proofs(proofs: &[&ProofResults]) -> String {
    match proofs {
        [] => String::new(),
        [proof] => one(proof),
        several => table(several),
    }
}

fn styled_verdict(proof: &ProofResults, text: &str) -> String {
    let style = match proof.outcome() {
        Outcome::LostNothing => GOOD,
        Outcome::LostSomething => BAD,
        Outcome::NotProven => DOUBT,
    };
    styled(style.bold(), text)
}

fn one(proof: &ProofResults) -> String {
    let says = format!(
        "{} on {} {}",
        short_subject(proof),
        proof.recipe,
        verdict(proof)
    );
    let mut text = format!("\n{}", wrapped(0, &styled_verdict(proof, &says)));
    let mut paragraph = |line: &str| text.push_str(&wrapped(2, line));
    // A loss alone is what the verdict says already.
    if proof.breaches.iter().any(|one| one.breach != Breach::Lost) {
        for one in &proof.breaches {
            paragraph(&format!(
                "{} of {} states: {}; first {}.",
                one.states,
                proof.coverage.checked,
                one.breach.words(),
                one.example
            ));
        }
    }
    paragraph(&workload(proof));
    if let Some(circumstances) = circumstances(proof) {
        paragraph(&circumstances);
    }
    paragraph(&coverage(proof));
    if let Some(shortest) = &proof.shortest {
        text.push_str(&failing(shortest));
    }
    text
}

fn failing(state: &FailingState) -> String {
    let mut text = format!(
        "\n{}\n",
        styled(STRONG, &format!("Shortest failing state, {}", state.name))
    );
    let mut sentences: Vec<String> = vec![sentence(&state.details.join("; "))];
    sentences.extend(missing(state));
    text.push_str(&wrapped(2, &sentences.join(" ")));
    // On a line of its own and unbroken, to be copied.
    let _ = writeln!(text, "  Shown again by:\n    {}\n", state.command);
    text + &moments(&state.timeline)
}

/// A sentence of a phrase.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.trim_end_matches('.').chars();
    let first = letters.next().map(char::to_uppercase);
    let mut text: String = first.into_iter().flatten().chain(letters).collect();
    text.push('.');
    text
}

fn table(proofs: &[&ProofResults]) -> String {
    let mut table = plain_table();
    let expected = proofs.iter().any(|proof| proof.expected.is_some());
    let mut header = vec!["subject", "filesystem", "verdict"];
    if expected {
        header.push("expected");
    }
    table.set_header(header);
    for proof in proofs {
        let mut row = vec![
            proof.subject.clone(),
            proof.recipe.clone(),
            styled_verdict(proof, &verdict(proof)),
        ];
        if expected {
            row.push(match proof.is_as_expected() {
                Some(true) => styled(GOOD, "yes"),
                Some(false) => styled(BAD.bold(), "NO"),
                None => String::new(),
            });
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((1, 0));
    }
    format!("\n{}", lines(&table))
}
