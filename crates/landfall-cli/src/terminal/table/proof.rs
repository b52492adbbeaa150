//! What a proof found.

use landfall_lab::Results;
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::proof::cluster_text;
use landfall_results::proof::summary_text::{
    circumstances, coverage, exercised, full_subject, full_verdict, short_subject, verdict,
    violations, workload,
};
use landfall_results::proof::timeline_text::missing;
use landfall_results::proof::{FailingState, Outcome, ProofResults};

use super::timeline::timeline;
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

/// Who was proven where: what stands above a document that has only proofs.
pub(super) fn header(results: &Results) -> String {
    let proofs: Vec<&ProofResults> = results.proofs().collect();
    let what = match proofs.as_slice() {
        [proof] => format!(
            "{} on {}, a recorded device of {}",
            proof.subject,
            proof.filesystem_spec,
            bytes_text(proof.device_bytes)
        ),
        several => format!("{} proofs on recorded devices", several.len()),
    };
    let took = match results.seconds {
        short @ 0.0..10.0 => format!("{short:.1} s"),
        long => duration_text(long),
    };
    format!("{what}, Linux {}; {took}", results.host.kernel)
}

/// All proofs of a run: one in full, several as a table.
pub(super) fn proofs(proofs: &[&ProofResults]) -> Vec<Block> {
    match proofs {
        [] => Vec::new(),
        [proof] => one(proof),
        several => table(several),
    }
}

fn one(proof: &ProofResults) -> Vec<Block> {
    let says = format!(
        "{} on {} {}",
        short_subject(proof),
        proof.filesystem_spec,
        full_verdict(proof)
    );
    let verdict = Block::Prose {
        indent: 0,
        sentences: vec![(tone(proof), says)],
    };
    let mut sentences = cluster_text::sentences(proof);
    sentences.extend(violations(proof));
    sentences.push(workload(proof));
    sentences.extend(circumstances(proof));
    sentences.push(coverage(proof));
    sentences.extend(exercised(proof));
    let mut blocks = vec![verdict];
    blocks.extend(Block::prose(2, sentences));
    if let Some(shortest) = &proof.shortest {
        blocks.extend(failing(shortest));
    }
    blocks
}

fn failing(state: &FailingState) -> Vec<Block> {
    let heading = format!("Shortest failing state, {}", state.name);
    let mut said: Vec<String> = vec![sentence(&state.details.join("; "))];
    said.extend(missing(state));
    let mut blocks = vec![Block::Heading(heading)];
    blocks.extend(Block::prose(2, [said.join(" ")]));
    blocks.extend(Block::prose(2, ["Shown again by:".to_owned()]));
    blocks.push(Block::Command(state.command.clone()));
    blocks.push(Block::Table(timeline(&state.timeline)));
    blocks
}

/// A sentence of a phrase.
fn sentence(phrase: &str) -> String {
    let mut letters = phrase.trim_end_matches('.').chars();
    let first = letters.next().map(char::to_uppercase);
    let mut text: String = first.into_iter().flatten().chain(letters).collect();
    text.push('.');
    text
}

fn tone(proof: &ProofResults) -> Tone {
    match proof.outcome() {
        Outcome::LostNothing => Tone::Good,
        Outcome::LostSomething => Tone::Bad,
        Outcome::NotProven => Tone::Doubt,
    }
}

fn table(proofs: &[&ProofResults]) -> Vec<Block> {
    let is_expected = proofs.iter().any(|proof| proof.expected.is_some());
    let mut columns = vec![Column::text("filesystem"), Column::text("verdict")];
    columns.extend(is_expected.then(|| Column::text("expected")));
    let rows = proofs.iter().map(|proof| {
        let mut cells = vec![
            proof.filesystem_spec.to_string().into(),
            Cell::toned(tone(proof), verdict(proof)),
        ];
        if is_expected {
            cells.push(match proof.is_as_expected() {
                Some(true) => Cell::toned(Tone::Good, "yes"),
                Some(false) => Cell::toned(Tone::Bad, "NO"),
                None => Cell::default(),
            });
        }
        Row::of(full_subject(proof), cells)
    });
    let table = Table::new("", "subject", columns).with_rows(rows);
    let wrong = proofs
        .iter()
        .filter(|proof| proof.is_as_expected() == Some(false))
        .count();
    let all = proofs.len();
    let sum = match (is_expected, wrong) {
        (false, _) => None,
        (true, 0) => Some((Tone::Plain, format!("All {all} came out as expected."))),
        (true, wrong) => {
            let text = format!("{wrong} of {all} did not come out as expected.");
            Some((Tone::Bad, text))
        }
    };
    let sum = sum.map(|sum| Block::Prose {
        indent: 0,
        sentences: vec![sum],
    });
    let heading = Block::Heading("What power cuts did".to_owned());
    [heading, Block::Table(table)]
        .into_iter()
        .chain(sum)
        .collect()
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
            "promises_order": false, "filesystem_spec": "ext4", "device_bytes": 64 << 20,
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

    fn plain(blocks: &[Block]) -> String {
        let text = landfall_report::text::text(blocks);
        anstream::adapter::strip_str(&text).to_string()
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
