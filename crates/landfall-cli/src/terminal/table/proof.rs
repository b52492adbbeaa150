//! What a proof found.

use std::fmt::Write as _;

use landfall_lab::Results;
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::proof::summary_text::{
    circumstances, coverage, full_subject, missing, short_subject, verdict, workload,
};
use landfall_results::proof::{FailingState, Outcome, ProofResults, Violation};

use super::layout::{lines, plain_table, wrapped};
use super::timeline::timeline;
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
    if proof
        .violations
        .iter()
        .any(|one| one.violation != Violation::Lost)
    {
        for one in &proof.violations {
            paragraph(&format!(
                "{} of {} states: {}; first {}.",
                one.states,
                proof.coverage.checked,
                one.violation.words(),
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
    text + &timeline(&state.timeline)
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
            full_subject(proof),
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
    let wrong = proofs
        .iter()
        .filter(|proof| proof.is_as_expected() == Some(false))
        .count();
    let sum = match (expected, wrong) {
        (false, _) => String::new(),
        (true, 0) => format!("\nAll {} came out as expected.\n", proofs.len()),
        (true, wrong) => {
            let text = format!("{wrong} of {} did not come out as expected.", proofs.len());
            format!("\n{}\n", styled(BAD.bold(), &text))
        }
    };
    format!("\n{}{sum}", lines(&table))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn proof(failing: u64, shortest: Value) -> ProofResults {
        let violations = match failing {
            0 => json!([]),
            states => json!([{
                "violation": "lost", "states": states, "example": "1:2:none",
                "detail": "transaction 3, the last one acknowledged, is not there",
            }]),
        };
        serde_json::from_value(json!({
            "subject": "files method=fdatasync size=8K", "promises_atomic": false,
            "promises_order": false, "recipe": "ext4", "device_bytes": 64 << 20,
            "model": "subset", "seed": 1, "faults": [], "writeback": false,
            "workload": {
                "sent": 24, "acknowledged": 24, "writes": 72, "written_bytes": 1 << 20,
                "flushes": 48, "spilled_bytes": 0, "ended": null,
            },
            "coverage": {
                "surveyed": 49, "possible": 1_000.0, "sampled": 0,
                "epochs": 49, "every_write": 49, "every_sector": 20, "planned": 300, "equal": 0,
                "checked": 300, "states_per_minute": 6_000.0, "workers": 2,
            },
            "violations": violations, "failing_states": failing, "losing_states": failing,
            "worst_lost": failing.min(1), "only_last": failing > 0, "shortest": shortest,
            "unchecked": null,
        }))
        .expect("a document's experiment")
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_loss_is_said_once_and_its_state_in_few_lines() {
        let write = |missing: u64| {
            json!({
                "ms": 1.0, "event": "write", "offset": 4096, "bytes": 4096, "sectors": 8,
                "missing": missing, "after_cut": false,
            })
        };
        let mut timeline: Vec<Value> = (0..50).map(|_| write(0)).collect();
        timeline.push(write(8));
        let shortest = json!({
            "name": "1:2:s2a0", "command": "landfall prove files --state 1:2:s2a0",
            "details": ["transaction 3, the last one acknowledged, is not there"],
            "timeline": timeline,
        });
        let text = plain(&proofs(&[&proof(40, shortest)]));
        assert!(text.lines().count() <= 26, "{text}");
        assert_eq!(text.matches("is not there").count(), 1, "{text}");
        for words in [
            "files on ext4 lost the last acknowledged transaction, and only that, in 40 of 300 crash states",
            "Of the 51 writes since the last flush 1 is",
            "\n    landfall prove files --state 1:2:s2a0\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn several_proofs_are_one_table() {
        let text = plain(&proofs(&[&proof(0, Value::Null), &proof(40, Value::Null)]));
        assert!(text.contains("lost nothing in 300 crash states"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }
}
