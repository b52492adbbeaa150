//! What a run found: on one screen, or as tables of at most 100 columns.

mod comparison;
mod inspection;
mod notices;
mod proof;
mod subjects;
mod timeline;

use std::fmt::Write as _;

use landfall_lab::facts::place;
use landfall_lab::report::{self, Detail, Kept};
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
/// are shown whole.
pub fn shown(results: &Results, tables: bool, kept: Kept<'_>) -> String {
    if tables || results.has_only_proofs() {
        let mut text = text(&self::results(results));
        if let Some(page) = kept.page {
            let _ = writeln!(text, "\nReport: {}", text::plain(page));
        }
        return text;
    }
    let proofs = proof::proofs(&results.proofs().collect::<Vec<_>>());
    let details = Detail::all(results).into_iter();
    one_screen(details.map(|detail| report::screen(results, &proofs, kept, detail)))
}

/// The first of these that fits on one screen, or else the last.
pub fn one_screen(levels: impl IntoIterator<Item = Vec<Block>>) -> String {
    let (_, height) = SCREEN;
    let mut shown = String::new();
    for blocks in levels {
        shown = screen(&blocks);
        if shown.lines().count() <= height {
            break;
        }
    }
    shown
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

    #[test]
    fn one_screen_says_where_everything_is_and_fits() {
        let kept = Kept {
            document: Some("landfall-report/results.json"),
            page: Some("landfall-report/index.html"),
            program: Some("target/release/landfall"),
        };
        for name in [
            "ext4",
            "btrfs",
            "spinning",
            "memory",
            "no-barrier",
            "without-journal",
        ] {
            // Also where commands take several lines each.
            let mut far = recorded(name);
            far.directory = format!("/srv/{}/my data", "d".repeat(60));
            let lines = shown(&far, false, kept).lines().count();
            assert!(lines <= 40, "{name}, far away: {lines}");

            let shown = shown(&recorded(name), false, kept);
            let text = anstream::adapter::strip_str(&shown).to_string();
            for part in ["Trust", "Next", kept.document.unwrap(), kept.page.unwrap()] {
                assert!(text.contains(part), "{name}, {part}: {text}");
            }
            assert!(text.lines().count() <= 40, "{name}: {text}");
            let wide = text.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{name}: {text}");
        }
    }

    /// A run with so many claims that do not hold and as many that hold.
    fn with_claims(count: usize) -> Results {
        let mut document: serde_json::Value =
            serde_json::from_str(&recorded("ext4").to_json()).expect("JSON");
        let claim = |index: usize, verdict: &str| {
            serde_json::json!({
                "id": "", "statement": format!("Claim {index} that {verdict}"), "quantity": "", "published": 4.0,
                "source": "somebody", "band": {"at_least": 3.0, "at_most": null},
                "today": {"median": 1.0, "low": 1.0, "high": 1.0}, "verdict": verdict, "why": "",
            })
        };
        let claims = (0..count).flat_map(|at| [claim(at, "holds"), claim(at, "does-not-hold")]);
        document["experiments"][0]["claims"] = claims.collect();
        Results::from_json(&document.to_string()).expect("results")
    }

    #[test]
    fn as_many_claims_as_there_is_room_for_have_a_line_each_and_the_rest_is_counted() {
        let text = |count| {
            let shown = shown(&with_claims(count), false, Kept::default());
            anstream::adapter::strip_str(&shown).to_string()
        };
        let few = text(2);
        assert_eq!(few.matches("Claim ").count(), 4, "{few}");
        assert!(!few.contains(" more hold"), "{few}");
        // What does not hold is less than was said here, not more.
        assert_eq!(few.matches("(1.00–1.00) less").count(), 2, "{few}");
        let many = text(30);
        assert!(many.lines().count() <= 40, "{many}");
        let lines = many.matches("that does-not-hold").count();
        assert!((1..30).contains(&lines), "{many}");
        assert!(!many.contains("that holds"), "{many}");
        let rest = format!("{} more do not hold, 30 more hold", 30 - lines);
        assert!(many.contains(&rest), "{rest}: {many}");
    }
}
