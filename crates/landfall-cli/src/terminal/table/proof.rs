//! What a proof found.

use std::fmt::Write as _;

use landfall_lab::bytes_text;
use landfall_lab::numbers::thousands;
use landfall_lab::prove::{FailingState, Happening, Moment, Outcome, ProofResults};

use super::layout::{align, lines, plain_table, wrapped};
use crate::terminal::style::{BAD, DOUBT, FAINT, GOOD, STRONG, styled};

/// Moments shown in the terminal; the report has them all.
const MOST_MOMENTS: usize = 24;

/// All proofs of a run: one in full, several as a table.
pub(super) fn proofs(proofs: &[&ProofResults]) -> String {
    match proofs {
        [] => String::new(),
        [proof] => one(proof),
        several => table(several),
    }
}

fn verdict(proof: &ProofResults) -> String {
    let style = match proof.outcome() {
        Outcome::LostNothing => GOOD,
        Outcome::LostSomething => BAD,
        Outcome::NotProven => DOUBT,
    };
    styled(style.bold(), &proof.sentence())
}

fn one(proof: &ProofResults) -> String {
    let mut text = format!(
        "\n{} on {}: {}\n",
        styled(STRONG, &proof.subject),
        proof.recipe,
        verdict(proof)
    );
    let mut paragraph = |indent, line: &str| text.push_str(&wrapped(indent, line));
    let workload = &proof.workload;
    paragraph(
        2,
        &format!(
            "{} transactions acknowledged of {} sent; {} writes of {} and {} flushes reached the device.",
            thousands(workload.acknowledged as f64),
            thousands(workload.sent as f64),
            thousands(workload.writes as f64),
            bytes_text(workload.written_bytes),
            thousands(workload.flushes as f64),
        ),
    );
    if let Some(ended) = &workload.ended {
        paragraph(2, &format!("The subject ended early: {ended}."));
    }
    paragraph(2, &proof.coverage_sentence());
    if let Some(unchecked) = &proof.unchecked {
        let line = format!(
            "{} states could not be checked: {}.",
            unchecked.states, unchecked.reason
        );
        paragraph(2, &line);
    }
    for breach in &proof.breaches {
        let line = format!(
            "{} in {} of {} states; {}: {}.",
            upper(breach.breach.words()),
            breach.states,
            proof.coverage.checked,
            breach.example,
            breach.detail
        );
        paragraph(2, &line);
    }
    if let Some(shortest) = &proof.shortest {
        text.push_str(&failing(shortest));
    }
    text
}

fn upper(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn failing(state: &FailingState) -> String {
    let mut text = format!("\n{}\n", styled(STRONG, "Shortest failing state"));
    text.push_str(&wrapped(
        2,
        &format!("{}: {}.", state.name, state.details.join("; ")),
    ));
    let _ = writeln!(text, "  Shown again by: {}\n", state.command);
    let cut = state.timeline.iter().take_while(|m| !m.after_cut).count();
    let first = cut.saturating_sub(MOST_MOMENTS);
    let mut table = plain_table();
    for (index, moment) in state.timeline.iter().enumerate().skip(first) {
        if index == cut {
            table.add_row(vec![String::new(), styled(BAD.bold(), "power cut")]);
        }
        table.add_row(vec![format!("{:.3} ms", moment.ms), line(moment)]);
    }
    if cut == state.timeline.len() {
        table.add_row(vec![String::new(), styled(BAD.bold(), "power cut")]);
    }
    align(&mut table, 1);
    for column in table.column_iter_mut() {
        column.set_padding((2, 0));
    }
    text + &lines(&table)
}

fn line(moment: &Moment) -> String {
    let text = match &moment.what {
        Happening::Write {
            offset,
            bytes,
            sectors,
            missing,
        } => {
            let there = match (*missing, moment.after_cut) {
                (_, true) | (0, _) => String::new(),
                (all, _) if all == *sectors => styled(BAD, " — missing"),
                (some, _) => styled(BAD, &format!(" — {some} of {sectors} sectors missing")),
            };
            format!("write {} at {offset}{there}", bytes_text(*bytes))
        }
        Happening::Flush => "flush".to_owned(),
        Happening::LyingFlush => "flush, not done".to_owned(),
        Happening::Refused => "request refused".to_owned(),
        Happening::Send { transaction } => format!("transaction {transaction} is sent"),
        Happening::Acknowledge { transaction } => styled(
            STRONG,
            &format!("transaction {transaction} is acknowledged"),
        ),
    };
    match moment.after_cut {
        true => styled(FAINT, &text),
        false => text,
    }
}

fn table(proofs: &[&ProofResults]) -> String {
    let mut table = plain_table();
    let expected = proofs.iter().any(|proof| proof.expected.is_some());
    let mut header = vec!["subject", "filesystem", "states", "verdict"];
    if expected {
        header.push("expected");
    }
    table.set_header(header);
    for proof in proofs {
        let mut row = vec![
            proof.subject.clone(),
            proof.recipe.clone(),
            thousands(proof.coverage.checked as f64),
            verdict(proof),
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
