//! What the page shows of `dump-vs-log`, alone and beside `stream`.

use landfall_os::Medium;

use landfall_results::view::{Block, Row};

use super::answer::answer;
use crate::dump_vs_log::fixtures::dump_vs_log_results;
use crate::report::tests::{body, page};
use crate::stream::fixtures::standard_results;
use crate::sync::fixtures::results;
use crate::{Notice, Results, Weight};

fn document() -> Results {
    let mut document = results(Vec::new());
    document.experiments = vec![dump_vs_log_results().into()];
    document
}

/// The charts of a page, in order.
fn charts(html: &str) -> Vec<&str> {
    let elements = body(html).split("class=\"chart\" id=\"").skip(1);
    elements.filter_map(|rest| rest.split('"').next()).collect()
}

const CHARTS: [&str; 3] = ["break-even-seconds", "break-even-bytes", "saving-cost"];

#[test]
fn every_chart_stands_with_its_table() {
    let html = page(&document());
    assert_eq!(charts(&html), CHARTS);
    assert_eq!(body(&html).matches("<summary>Data: ").count(), 3);
    assert!(!body(&html).contains("data-expected=\"0\""));
    assert!(!html.contains("Nothing was measured"));
    for words in [
        "<h1>What dumping a state and logging its changes cost</h1>",
        "Dumping 128 MiB takes the program less time than logging",
        "every-second: up to a second of updates",
    ] {
        assert!(body(&html).contains(words), "{words}");
    }
}

#[test]
fn it_has_a_part_behind_that_of_stream() {
    let mut both = document();
    both.experiments.insert(0, standard_results().into());
    let html = page(&both);
    assert!(html.len() < 1_000_000, "{}", html.len());
    assert!(charts(&html).ends_with(&CHARTS));
    assert_eq!(charts(&html).len(), 6 + 3);
}

#[test]
fn in_memory_nothing_is_called_durable() {
    let mut memory = document();
    memory.filesystem.medium = Medium::Memory;
    let html = page(&memory);
    assert!(html.contains("In main memory a power cut takes everything."));
    for words in ["dump is durable", "nothing that was accepted"] {
        let begin = body(&html)
            .split("The disk and filesystem underneath")
            .next();
        assert!(!begin.unwrap_or_default().contains(words), "{words}");
    }
}

/// What a power cut loses, by the one screen, and what is said beneath.
fn losses(document: &Results) -> (Vec<String>, String) {
    let blocks = answer(document, &dump_vs_log_results()).expect("an answer");
    let [Block::Table(table)] = blocks.as_slice() else {
        panic!("one table, not {blocks:?}");
    };
    let lost = table.rows.iter().filter_map(|row| match row {
        Row::Cells { cells, .. } => cells.last().map(|cell| cell.text.clone()),
        _ => None,
    });
    (lost.collect(), table.notes.join(" "))
}

#[test]
fn what_a_power_cut_loses_is_everything_in_memory_and_in_doubt_where_there_is_a_danger() {
    let (lost, notes) = losses(&document());
    assert_eq!(lost, ["all since the dump", "nothing", "nothing"]);
    assert!(!notes.contains('?'), "{notes}");
    let mut doubted = document();
    doubted.filesystem.journal = Some(false);
    doubted.notices = vec![Notice::new("no-barrier", Weight::Danger, "No flushes.")];
    let (lost, notes) = losses(&doubted);
    assert_eq!(
        lost,
        [
            "all since the dump*?",
            "nothing, or a new log file*?",
            "nothing, or a new log file*?"
        ]
    );
    assert!(notes.contains("? As documented;"), "{notes}");
    doubted.filesystem.medium = Medium::Memory;
    let (lost, notes) = losses(&doubted);
    assert_eq!(lost, ["everything"; 3]);
    assert!(!notes.contains(['?', '*']), "{notes}");
}
