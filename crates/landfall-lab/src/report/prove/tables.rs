//! The tables of proofs.

use crate::numbers::{NOTHING, thousands};
use landfall_os::humanize::bytes_text;

use landfall_results::proof::summary_text::{full_subject, verdict};
use landfall_results::proof::timeline_text::words;
use landfall_results::proof::{Expectation, FailingState, Happening, Outcome, ProofResults};
use landfall_results::view::{Column, Row, Table};

/// All proofs of a document, in a line each.
pub(super) fn all(proofs: &[&ProofResults]) -> Table {
    let expected = proofs.iter().any(|proof| proof.expected.is_some());
    let mut columns = vec!["Filesystem", "Crash states", "Verdict"];
    if expected {
        columns.extend(["Expected", "As expected"]);
    }
    let row = |proof: &&ProofResults| {
        let mut cells = vec![
            proof.filesystem_spec.to_string(),
            whole(proof.coverage.checked),
            format!("{} {}", sign(proof), verdict(proof)),
        ];
        if expected {
            cells.push(proof.expected.map_or(NOTHING, in_words).to_owned());
            cells.push(
                match proof.is_as_expected() {
                    Some(true) => "yes",
                    Some(false) => "✕ NO",
                    None => NOTHING,
                }
                .to_owned(),
            );
        }
        Row::of(full_subject(proof), cells)
    };
    let columns = columns.into_iter().map(Column::text).collect();
    Table::new("Every proof, with what it came to", "Subject", columns)
        .with_rows(proofs.iter().map(row))
}

/// A sign for an outcome.
pub(super) fn sign(proof: &ProofResults) -> &'static str {
    match proof.outcome() {
        Outcome::LostNothing => "✓",
        Outcome::LostSomething => "✕",
        Outcome::NotProven => "?",
    }
}

fn in_words(expectation: Expectation) -> &'static str {
    match expectation {
        Expectation::LosesNothing => "loses nothing",
        Expectation::Loses => "loses",
        Expectation::LosesOnlyLast => "loses only the last",
        Expectation::Tears => "tears",
        Expectation::Damages => "damages",
    }
}

/// The promises that were broken, if any was.
pub(super) fn violations(proof: &ProofResults) -> Option<Table> {
    let rows: Vec<Row> = proof
        .violations
        .iter()
        .map(|one| {
            Row::of(
                upper(one.violation.words()),
                vec![
                    format!("{} of {}", whole(one.states), whole(proof.coverage.checked)),
                    one.example.clone(),
                    one.detail.clone(),
                ],
            )
        })
        .collect();
    let columns = ["Crash states", "Example", "What was wrong there"];
    (!rows.is_empty()).then(|| {
        Table::new(
            "Promises that were broken, the worst first",
            "Violation",
            columns.map(Column::text).into(),
        )
        .with_rows(rows)
    })
}

/// What happened that the subject must be protected from, if anything is known of it.
pub(super) fn exercised(proof: &ProofResults) -> Option<Table> {
    let known = |count: Option<u64>| count.map_or_else(|| "not known".to_owned(), whole);
    let rows = proof.exercised.iter().map(|one| {
        let [_, many] = one.what.counted();
        let protection = match one.protected_by.as_slice() {
            [] => NOTHING.to_owned(),
            settings => settings.join(", "),
        };
        Row::of(
            upper(many),
            vec![known(one.happened), known(one.states), protection],
        )
    });
    let rows: Vec<Row> = rows.collect();
    let columns = ["In the recording", "Crash states in it", "Protected by"];
    (!rows.is_empty()).then(|| {
        Table::new(
            "What the subject did besides appending, and how often the power was cut then",
            "What",
            columns.map(Column::text).into(),
        )
        .with_rows(rows)
    })
}

/// What was recorded, and how much of what could have become of it was tried.
pub(super) fn tried(proof: &ProofResults) -> Table {
    let (workload, coverage) = (&proof.workload, &proof.coverage);
    let mut rows = Vec::new();
    let mut row = |head: &str, cell: String| rows.push(Row::of(head, vec![cell]));
    row("Transactions sent", whole(workload.sent));
    row("Transactions acknowledged", whole(workload.acknowledged));
    row(
        "Writes that reached the device",
        format!(
            "{}, {}",
            whole(workload.writes),
            bytes_text(workload.written_bytes)
        ),
    );
    row("Flushes", whole(workload.flushes));
    row(
        "Epochs, the stretches between flushes",
        whole(coverage.epochs),
    );
    if proof.model == "subset"
        && let Some((writes, sectors)) = proof.exhausted()
    {
        row("Epochs with every subset of the writes", whole(writes));
        row(
            "Epochs with every subset of the changed sectors",
            whole(sectors),
        );
    }
    row("Distinct crash states planned", whole(coverage.planned));
    row("Equal to one of those", whole(coverage.equal));
    row("Checked", whole(coverage.checked));
    row(
        "Recovered the same files as another",
        whole(coverage.equal_files),
    );
    if let Some(unchecked) = &proof.unchecked {
        row(
            "Could not be checked",
            format!("{}: {}", whole(unchecked.states), unchecked.reason),
        );
    }
    row(
        "Checked per minute",
        format!(
            "{} with {} workers",
            thousands(coverage.states_per_minute),
            coverage.workers
        ),
    );
    row("Device", bytes_text(proof.device_bytes));
    row("Model", proof.model.clone());
    row("Seed", proof.seed.to_string());
    let promises = match (proof.promises_atomic, proof.promises_order) {
        (true, true) => {
            "what is acknowledged stays; all of a transaction or nothing; none without those before it"
        }
        (true, false) => "what is acknowledged stays; all of a transaction or nothing",
        (false, true) => "what is acknowledged stays; no transaction without those before it",
        (false, false) => "what is acknowledged stays",
    };
    row("Promises", promises.to_owned());
    let columns = vec![Column::text("How much")];
    Table::new("What was recorded and tried", "What", columns).with_rows(rows)
}

/// The events of a timeline.
pub(super) fn events(state: &FailingState) -> Table {
    let mut rows = Vec::new();
    let cut = state.timeline.partition_point(|moment| !moment.after_cut);
    for (index, moment) in state.timeline.iter().enumerate() {
        if index == cut {
            rows.push(power_cut());
        }
        let arrived = match moment.what {
            _ if moment.after_cut => "too late".to_owned(),
            Happening::Write { missing: 0, .. } => "all of it".to_owned(),
            Happening::Write {
                sectors, missing, ..
            } if sectors == missing => "missing".to_owned(),
            Happening::Write {
                sectors, missing, ..
            } => format!("{missing} of {sectors} sectors missing"),
            _ => String::new(),
        };
        rows.push(Row::of(
            (index + 1).to_string(),
            vec![
                format!("{:.3}", moment.ms),
                words(moment, |offset| thousands(offset as f64)),
                arrived,
            ],
        ));
    }
    if cut == state.timeline.len() {
        rows.push(power_cut());
    }
    let columns = ["ms", "What", "Arrived"];
    Table::new(
        format!(
            "Events around the power cut in state {}, in order; places on the device in bytes",
            state.name
        ),
        "Event",
        columns.map(Column::text).into(),
    )
    .with_rows(rows)
}

fn power_cut() -> Row {
    Row::without("✕", "power cut")
}

/// The text with its first letter as a capital.
pub(super) fn upper(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

fn whole(count: u64) -> String {
    thousands(count as f64)
}
