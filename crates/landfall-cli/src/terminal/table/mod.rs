//! What a run found: on one screen, or as tables of at most 100 columns.

mod comparison;
mod inspection;
mod notices;
mod proof;
mod subjects;
mod timeline;

use std::fmt::Write as _;
use std::path::Path;

use landfall_lab::facts::place;
use landfall_lab::report::{self, Detail};
use landfall_lab::{Notice, Results, Weight};
use landfall_os::humanize::duration_text;
use landfall_report::text;
use landfall_results::view::{Block, Claims};

pub use comparison::comparison;
pub use inspection::inspection;
pub use subjects::{settings, subjects};

/// Columns and lines of the one screen.
const SCREEN: (u16, usize) = (80, 40);

/// What a terminal shows of a run: all tables if they are wanted, or one screen, with as much as there is room for. Proofs
/// are shown whole. `report` is where the page is, if one was written.
pub fn shown(results: &Results, tables: bool, report: Option<&Path>) -> String {
    let report = report.map(|report| report.display().to_string());
    if tables || results.has_only_proofs() {
        let mut text = text(&self::results(results));
        if let Some(report) = report {
            let _ = writeln!(text, "\nReport: {report}");
        }
        return text;
    }
    let (width, height) = SCREEN;
    let proofs = proof::proofs(&results.proofs().collect::<Vec<_>>());
    let mut shown = String::new();
    for detail in Detail::ALL {
        let blocks = report::screen(results, &proofs, report.as_deref(), detail);
        shown = text::text_within(width, &blocks);
        if shown.trim_start().lines().count() <= height {
            break;
        }
    }
    shown.trim_start_matches('\n').to_owned()
}

/// These alone, from the first line on, as wide as the one screen.
pub fn screen(blocks: &[Block]) -> String {
    let (width, _) = SCREEN;
    text::text_within(width, blocks)
        .trim_start_matches('\n')
        .to_owned()
}

/// These alone, from the first line on.
pub fn text(blocks: &[Block]) -> String {
    text::text(blocks).trim_start_matches('\n').to_owned()
}

/// Everything that a run found.
pub fn results(results: &Results) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, [header(results)]).into_iter().collect();
    // What makes every figure worthless is said before the first one, and again below.
    let dangers = results.notices.iter();
    let dangers: Vec<&Notice> = dangers.filter(|one| one.weight == Weight::Danger).collect();
    if !dangers.is_empty() {
        blocks.push(notices::of(dangers));
    }
    blocks.extend(report::brief(results));
    blocks.extend(proof::proofs(&results.proofs().collect::<Vec<_>>()));
    blocks.extend(Block::titled(Claims::of(results.claims()).table()));
    blocks.extend(notices::notices(&results.notices));
    blocks
}

fn header(results: &Results) -> String {
    if results.has_only_proofs() {
        return proof::header(results);
    }
    let place = place(&results.filesystem);
    let site = match results.site.text() {
        Some(made) => format!("{made}, made in {}", results.directory),
        None => results.directory.clone(),
    };
    let mut text = format!("{site}: {place}, Linux {}", results.host.kernel);
    let rounds = |rounds: u32| match rounds {
        1 => "1 round".to_owned(),
        rounds => format!("{rounds} rounds"),
    };
    let experiments = results.experiments.iter();
    let done: Vec<(&str, String)> = experiments
        .filter_map(|one| Some((one.name(), rounds(one.findings()?.rounds()))))
        .collect();
    let done = match done.as_slice() {
        [] => None,
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => {
            Some(first.clone())
        }
        several => {
            let each = several
                .iter()
                .map(|(name, rounds)| format!("{rounds} of {name}"));
            Some(each.collect::<Vec<_>>().join(" and "))
        }
    };
    if let Some(done) = done {
        let _ = write!(text, "; {done} in {}", duration_text(results.seconds));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(name: &str) -> Results {
        let path = format!("{}/tests/recorded/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let json = std::fs::read_to_string(path).expect("a recorded document");
        Results::from_json(&json).expect("results")
    }

    fn plain(results: &Results) -> String {
        let text = text(&super::results(results));
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn no_line_of_any_experiment_is_wider_than_a_terminal() {
        for name in ["disk", "ext4", "btrfs", "spinning", "memory", "no-barrier"] {
            let text = plain(&recorded(name));
            assert!(text.lines().count() > 20, "{name}: {text}");
            for line in text.lines() {
                let width = line.chars().count();
                assert!(width <= 100, "{name}, {width} columns: {line}");
            }
        }
    }
}
