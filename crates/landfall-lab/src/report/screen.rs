//! One screen of what was found: the answers, what was claimed, what to trust, what to run next. All figures are in the
//! tables, which [`super::brief`] has.

use std::collections::BTreeSet;

use landfall_os::humanize::quoted;
use landfall_results::claim::{ClaimResult, Side, Verdict};
use landfall_results::topics;
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone, or_nothing};

use super::{effort, runs};
use crate::numbers::{interval, two};
use crate::{Found, Notice, Results, Weight, facts, sync};

/// Notices that are said where there is room.
const MOST_NOTICES: usize = 3;

/// Notices that are named where there is no room to say them.
const MOST_NAMED: usize = 2;

/// Notices that are named beside those that are said.
const MOST_REST: usize = 4;

/// Characters of the program's path, with which commands still fit into a line.
const MOST_OF_PATH: usize = 24;

/// Characters of a command's line, beside what stands before it.
const MOST_OF_LINE: usize = 71;

/// Claims that are named where none has a line.
const MOST_EXAMPLES: usize = 2;

/// Commands that are left where a long path makes some of several lines; fewer, if it must be.
const LEAST_COMMANDS: usize = 3;

/// Reasons that are said.
const MOST_REASONS: usize = 2;

/// How much is to be said: less, where that is more than there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Why something was not measured.
    reasons: bool,
    /// Claims that have a line each, what does not hold before what holds; the rest is counted.
    claims: usize,
    /// Notices that are said, the weightiest first; the rest is counted.
    notices: usize,
    /// Claims that do not hold and are named, where none has a line.
    examples: usize,
    /// Commands to run next.
    commands: usize,
}

/// What is left out in turn.
#[derive(Clone, Copy)]
enum Fewer {
    Notices(usize),
    Examples(usize),
    Commands(usize),
}

impl Detail {
    /// All that may be said of these, the most first.
    pub fn all(results: &Results) -> Vec<Detail> {
        let of = |verdict| {
            results
                .claims()
                .filter(|claim| claim.verdict == verdict)
                .count()
        };
        let surprises = of(Verdict::DoesNotHold);
        let judged = surprises + of(Verdict::Holds);
        let with = |reasons, claims, notices| Detail {
            reasons,
            claims,
            notices,
            examples: MOST_EXAMPLES,
            commands: usize::MAX,
        };
        let most = (surprises..=judged).rev();
        let most = most.map(|claims| with(true, claims, MOST_NOTICES));
        let fewer = (0..=surprises).rev();
        let fewer = fewer.map(|claims| with(false, claims, MOST_NOTICES));
        let mut all: Vec<Detail> = most.chain(fewer).collect();
        let notices = (0..MOST_NOTICES).rev().map(Fewer::Notices);
        let examples = (0..MOST_EXAMPLES).rev().map(Fewer::Examples);
        // A danger is worth more room than what somebody claimed.
        let in_turn: Vec<Fewer> = if results.is_in_doubt() {
            examples.chain(notices).collect()
        } else {
            notices.chain(examples).collect()
        };
        let commands = (1..=LEAST_COMMANDS).rev().map(Fewer::Commands);
        let mut least = with(false, 0, MOST_NOTICES);
        for fewer in in_turn.into_iter().chain(commands) {
            match fewer {
                Fewer::Notices(count) => least.notices = count,
                Fewer::Examples(count) => least.examples = count,
                Fewer::Commands(count) => least.commands = count,
            }
            all.push(least);
        }
        all
    }
}

/// Where what was found is kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept<'a> {
    /// The results document.
    pub document: Option<&'a str>,
    /// The report's page.
    pub page: Option<&'a str>,
    /// What the program is called, as a shell takes it, if not by its name.
    pub program: Option<&'a str>,
}

impl Kept<'_> {
    /// What shows all, where none of the commands that follow does.
    fn how_to_see_all(&self) -> &'static str {
        match self.document {
            Some(_) => "",
            None => " (--tables)",
        }
    }
}

/// One screen, with `proofs`, which are shown whole, and where all of it is kept.
pub fn screen(results: &Results, proofs: &[Block], kept: Kept<'_>, detail: Detail) -> Vec<Block> {
    let mut blocks: Vec<Block> = Block::prose(0, [measured(results)]).into_iter().collect();
    for name in Found::EXPERIMENTS {
        for found in runs(results, name) {
            let answer = found.answer(results);
            match (answer.as_slice(), blocks.as_mut_slice()) {
                // A heading alone is no answer.
                ([Block::Heading(_)], _) => {}
                // What the first one says before its tables follows where it was measured.
                (
                    [
                        Block::Prose {
                            sentences: more, ..
                        },
                        rest @ ..,
                    ],
                    [Block::Prose { sentences, .. }],
                ) => {
                    sentences.extend_from_slice(more);
                    blocks.extend_from_slice(rest);
                }
                ([heading @ Block::Heading(_), rest @ ..], before) if before.contains(heading) => {
                    blocks.extend_from_slice(rest);
                }
                _ => blocks.extend(answer),
            }
        }
    }
    blocks.extend_from_slice(proofs);
    blocks.extend(claims(results, detail, kept));
    let mut rows = Vec::new();
    if detail.claims == 0 {
        let rest = rest_of_claims(results, detail, kept);
        rows.extend(rest.map(|rest| Row::of("Claims", [rest])));
    }
    if detail.reasons || results.is_empty() {
        rows.extend(left_out(results));
    }
    rows.extend(trust(results, detail, kept));
    rows.extend(next(results, detail, kept));
    rows.extend(kept.page.map(|page| Row::of("Report", [page])));
    blocks.push(Block::Table(
        Table::new("", "", vec![Column::text("")]).with_rows(rows),
    ));
    blocks
}

/// Where, on what and for how long.
fn measured(results: &Results) -> String {
    let directory = &results.directory;
    let place = match results.site.text() {
        Some(made) => {
            let below = results.site.below.as_ref();
            let below = below.map_or_else(String::new, |below| format!(" ({below})"));
            format!("On {made}, made in {directory}{below}")
        }
        None => format!("In {directory}: {}", facts::place(&results.filesystem)),
    };
    format!(
        "{place}; Linux {}; {}.",
        results.host.kernel,
        effort(results)
    )
}

/// Claims that were judged, a line each, as far as there is room.
fn claims(results: &Results, detail: Detail, kept: Kept<'_>) -> Option<Block> {
    let of = |verdict| {
        results
            .claims()
            .filter(move |claim| claim.verdict == verdict)
    };
    let judged = of(Verdict::DoesNotHold).chain(of(Verdict::Holds));
    let shown: Vec<&ClaimResult> = judged.take(detail.claims).collect();
    let rows = shown.iter().map(|claim| {
        let tone = match claim.verdict {
            Verdict::Holds => Tone::Good,
            _ => Tone::Bad,
        };
        let here = claim
            .today
            .map(|here| format!("{} ({})", two(here.median), interval(&here, two)));
        // In few words, so that a claim fits into a line: for which figures it would hold, the tables say.
        let side = claim.today.and_then(|here| claim.band.side(&here));
        let verdict = match (claim.verdict, side) {
            (Verdict::Holds, _) => "holds",
            (_, Some(Side::Below)) => "less",
            (_, Some(Side::Above)) => "more",
            (_, None) => "no",
        };
        let said = claim.published.map(two);
        let cells = [
            or_nothing(said).into(),
            or_nothing(here).into(),
            Cell::toned(tone, verdict),
        ];
        Row::of(claim.statement.as_str(), cells)
    });
    let mut columns: Vec<Column> = ["said", "here"].map(Column::new).into();
    columns.push(Column::text(""));
    let sources: BTreeSet<&str> = shown.iter().map(|claim| claim.source.as_str()).collect();
    let title = match sources.len() {
        1 => "Claims of one publication".to_owned(),
        some => format!("Claims of {some} publications"),
    };
    let mut table = Table::new(title.clone(), title, columns).with_rows(rows);
    rest_of_claims(results, detail, kept)
        .into_iter()
        .for_each(|rest| table.note(rest));
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// How many claims that have no line got which verdict.
fn rest_of_claims(results: &Results, detail: Detail, kept: Kept<'_>) -> Option<String> {
    let count = |verdict| {
        results
            .claims()
            .filter(|claim| claim.verdict == verdict)
            .count()
    };
    let mut shown = detail.claims;
    let mut rest = |verdict| {
        let all = count(verdict);
        let of_it = shown.min(all);
        shown -= of_it;
        all - of_it
    };
    let more = if detail.claims > 0 { " more" } else { "" };
    let counted = [
        (
            rest(Verdict::DoesNotHold),
            more,
            ["does not hold", "do not hold"],
        ),
        (rest(Verdict::Holds), more, ["holds", "hold"]),
        (count(Verdict::CannotBeTold), "", ["cannot be told"; 2]),
        (
            count(Verdict::DoesNotApply),
            "",
            ["does not apply", "do not apply"],
        ),
    ];
    let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
    let mut counted: Vec<String> = counted
        .map(|(count, more, [one, several])| {
            let name = if count == 1 { one } else { several };
            format!("{count}{more} {name}")
        })
        .collect();
    if detail.claims == 0 && detail.examples > 0 {
        let claims = results.claims();
        let surprises = claims.filter(|claim| claim.verdict == Verdict::DoesNotHold);
        let named = surprises.take(detail.examples).map(|claim| {
            let here = claim.today.map_or_else(String::new, |here| {
                format!(" (here {}, {})", two(here.median), interval(&here, two))
            });
            format!("\u{201c}{}\u{201d}{here}", claim.statement)
        });
        let named: Vec<String> = named.collect();
        if let Some((first, ..)) = counted.first_mut().zip(named.first()) {
            first.push_str(&format!(", such as {}", named.join(" and ")));
        }
    }
    (!counted.is_empty()).then(|| match detail.claims {
        0 => format!(
            "published: {}{}.",
            counted.join("; "),
            kept.how_to_see_all()
        ),
        _ => format!("{} (--tables)", counted.join(", ")),
    })
}

/// Why series of the plan could not be measured, each reason once.
fn left_out(results: &Results) -> Vec<Row> {
    let series = results.findings().flat_map(|found| found.series());
    let reasons = series.filter_map(|one| one.unsupported.as_deref());
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for reason in reasons {
        match counted.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counted.push((reason, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = counted.iter().take(MOST_REASONS);
    let lines = shown.map(|(reason, count)| Cell::from(format!("{count} not measured: {reason}")));
    titled("Missing", lines)
}

/// Whether to trust the figures, the weightiest notices, and how many more there are.
fn trust(results: &Results, detail: Detail, kept: Kept<'_>) -> Vec<Row> {
    let mut all: Vec<&Notice> = results.notices.iter().collect();
    all.sort_by_key(|notice| std::cmp::Reverse(notice.weight));
    let of_figures = |notice: &&&Notice| is_of_figures(notice);
    let weightiest = all.iter().find(of_figures).map(|notice| notice.weight);
    let doubts = || all.iter().filter(|notice| notice.weight > Weight::Note);
    let mut weighty = topics(doubts().filter(of_figures).copied());
    weighty.truncate(MOST_NAMED);
    let shown: Vec<Cell> = doubts()
        .take(detail.notices)
        .map(|notice| Cell::toned(tone(notice.weight), notice.text.as_str()))
        .collect();
    let more = all.len() - shown.len();
    let is_doubtful = weightiest.is_some_and(|weight| weight > Weight::Note);
    let ending = match (shown.len(), more) {
        (0, 0) => ".".to_owned(),
        (0, _) if !is_doubtful => format!(" ({}: --tables).", notices(more)),
        // What there is no room to say is named at least.
        (0, _) => match weighty.as_slice() {
            [] => format!(" ({}: --tables).", notices(more)),
            named if named.len() == more => format!(": {} (--tables).", named.join(", ")),
            named => {
                let rest = more - named.len();
                let all = kept.how_to_see_all();
                format!(": {}, {rest} more notices{all}.", named.join(", "))
            }
        },
        // What follows speaks against nothing.
        (_, 0) if !is_doubtful => ".".to_owned(),
        (_, more) if !is_doubtful => format!(" ({}: --tables).", notices(more)),
        (_, 0) => ":".to_owned(),
        (_, more) if more <= MOST_REST => {
            let rest = all.iter().filter(|one| one.weight == Weight::Note);
            let not_shown = doubts().skip(shown.len()).chain(rest);
            let named = topics(not_shown.copied());
            format!(" (also {}: --tables):", named.join(", "))
        }
        (_, more) => format!(" ({more} more notices: --tables):"),
    };
    let (tone, text) = verdict(results, weightiest);
    let said = [Cell::toned(tone, format!("{text}{ending}"))];
    titled("Trust", said.into_iter().chain(shown))
}

/// Whether a notice says something of the figures. What was left behind does not, nor what a filesystem may lose.
fn is_of_figures(notice: &Notice) -> bool {
    ![Results::LEFT_BEHIND, Results::NO_JOURNAL].contains(&notice.code.as_str())
}

fn tone(weight: Weight) -> Tone {
    match weight {
        Weight::Danger => Tone::Bad,
        Weight::Warning => Tone::Doubt,
        Weight::Note => Tone::Plain,
    }
}

fn notices(count: usize) -> String {
    let noun = if count == 1 { "notice" } else { "notices" };
    format!("{count} {noun}")
}

/// Whether to trust the figures, by the weightiest of what was noticed.
fn verdict(results: &Results, weightiest: Option<Weight>) -> (Tone, &'static str) {
    if results.is_too_noisy() {
        let text = "Too noisy to conclude, most intervals are wider than their figures";
        return (Tone::Bad, text);
    }
    match weightiest {
        Some(Weight::Danger) => (Tone::Bad, "Not as they stand"),
        Some(Weight::Warning) => (Tone::Doubt, "Ratios more than rates"),
        Some(Weight::Note) | None => {
            let text = "Nothing was noticed that speaks against these figures";
            (Tone::Plain, text)
        }
    }
}

/// What to run next, by what was not done yet.
fn next(results: &Results, detail: Detail, kept: Kept<'_>) -> Vec<Row> {
    let is_proven = results
        .findings()
        .flat_map(|found| found.series())
        .filter_map(|series| series.proof.as_ref())
        .any(|proof| proof.not_proven.is_none());
    let measures_sync = results.experiments.iter().any(|one| one.name() == "sync");
    // As it can be run, unless that is long.
    let short = kept.program.filter(|path| path.len() <= MOST_OF_PATH);
    let landfall = short.unwrap_or("landfall");
    let proof = || sync::proving_command(results, landfall);
    // A document may leave open where it was made.
    let directory = (results.directory != ".").then(|| quoted(&results.directory));
    let mut commands: Vec<(Vec<String>, String)> = Vec::new();
    if measures_sync && !is_proven && !results.is_in_memory() {
        commands.push((proof(), "simulated on scratch disks".to_owned()));
    }
    let is_doubtful = |notice: &Notice| notice.weight > Weight::Note && is_of_figures(notice);
    if measures_sync && is_proven && results.notices.iter().any(is_doubtful) {
        commands.push((proof(), "again, when quiet".to_owned()));
    }
    let advise = ["sudo", landfall, "advise"].into_iter();
    let advise = words(advise.chain(directory.as_deref()));
    commands.push((advise, "lists settings to change".to_owned()));
    if measures_sync && !results.experiments.iter().any(|one| one.name() == "torn") {
        let torn = ["sudo", landfall, "lab", "torn"].into_iter();
        let torn = words(torn.chain(directory.as_deref()));
        commands.push((torn, "the cost of torn-page protection".to_owned()));
    }
    if measures_sync && is_proven && !results.is_in_memory() {
        let witness = words([landfall, "witness", "--help"]);
        commands.push((
            witness,
            "by a real cut: whether the disk flushes".to_owned(),
        ));
    }
    if let Some(document) = kept.document.map(quoted) {
        let tables = words([landfall, "show", "--tables", &document]);
        commands.push((tables, String::new()));
        if kept.page.is_none() {
            let report = words([landfall, "show", "--report", "landfall-report", &document]);
            commands.push((report, String::new()));
        }
    }
    // The first, and the last, which shows all, are left to the end.
    while commands.len() > detail.commands.max(1) {
        commands.remove(commands.len() - 2);
    }
    let lines = commands
        .iter()
        .flat_map(|(words, what)| in_lines(words, what));
    let long = kept.program.filter(|_| short.is_none());
    let long = long.map(|path| format!("(landfall stands for {path})"));
    titled("Next", lines.chain(long).map(Cell::from))
}

fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// A command as it can be pasted, and what it is for where that fits into its line.
fn in_lines(words: &[String], what: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < MOST_OF_LINE => {
                line.push(' ');
                line.push_str(word);
            }
            before => {
                if let Some(line) = before {
                    line.push_str(" \\");
                }
                lines.push(word.clone());
            }
        }
    }
    if let [line] = lines.as_mut_slice()
        && !what.is_empty()
        && line.len() + what.len() + 4 <= MOST_OF_LINE
    {
        line.push_str("  # ");
        line.push_str(what);
    }
    lines
}

/// Lines under one word at the left.
fn titled(title: &'static str, lines: impl IntoIterator<Item = Cell>) -> Vec<Row> {
    let titles = std::iter::once(title).chain(std::iter::repeat(""));
    titles
        .zip(lines)
        .map(|(title, line)| Row::of(title, [line]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_results::Series;

    use crate::sync::Strategy;
    use crate::sync::fixtures::{measured, proven, results, unproven};

    /// The lines of what to run next.
    fn lines_of_next(results: &Results, program: &str) -> Vec<String> {
        let kept = Kept {
            program: Some(program),
            ..Kept::default()
        };
        let all = Detail::all(results)[0];
        let rows = next(results, all, kept).into_iter();
        let lines = rows.filter_map(|row| match row {
            Row::Cells { cells, .. } => cells.into_iter().next().map(|cell| cell.text),
            _ => None,
        });
        lines.collect()
    }

    #[test]
    fn what_to_run_next_is_of_the_directory_that_was_measured() {
        let mut results = results(Vec::new());
        results.directory = "/mnt/my data".to_owned();
        let lines = lines_of_next(&results, "./landfall");
        let [proof, advise, torn] = lines.as_slice() else {
            panic!("{lines:?}");
        };
        let on = "'/mnt/my data'";
        assert!(proof.starts_with(&format!("sudo ./landfall lab sync --prove {on}")));
        assert!(advise.starts_with(&format!("sudo ./landfall advise {on}")));
        assert!(torn.starts_with(&format!("sudo ./landfall lab torn {on}")));
        results.directory = ".".to_owned();
        let lines = lines_of_next(&results, "./landfall");
        assert!(
            lines[1].starts_with("sudo ./landfall advise  #"),
            "{lines:?}"
        );
    }

    /// What was measured and then proven by `prove`, with such a notice.
    fn with_notice(prove: fn(Series) -> Series, code: &str) -> Results {
        let series = measured(Strategy::BASELINE, &[100.0; 5], 1.0, 1.0);
        let mut results = results(vec![prove(series)]);
        results.notices = vec![Notice::new(code, Weight::Warning, "Said.")];
        results
    }

    #[test]
    fn what_was_left_behind_is_said_and_puts_no_figure_in_doubt() {
        let left = with_notice(|one| proven(one, 9), Results::LEFT_BEHIND);
        let said = |results: &Results| {
            let all = Detail::all(results)[0];
            let rows = trust(results, all, Kept::default()).into_iter();
            let lines = rows.filter_map(|row| match row {
                Row::Cells { cells, .. } => cells.into_iter().next().map(|cell| cell.text),
                _ => None,
            });
            lines.collect::<Vec<String>>()
        };
        let sound = "Nothing was noticed that speaks against these figures.";
        assert_eq!(said(&left), [sound, "Said."]);
        let is_repeated = |results: &Results| {
            let lines = lines_of_next(results, "./landfall");
            lines.iter().any(|line| line.contains("--prove"))
        };
        assert!(!is_repeated(&left));
        let doubtful = with_notice(|one| proven(one, 9), "foreign-cpu");
        assert_eq!(said(&doubtful), ["Ratios more than rates:", "Said."]);
        assert!(is_repeated(&doubtful));
    }

    #[test]
    fn what_could_not_be_proven_is_to_be_proven_still() {
        let lines = lines_of_next(&with_notice(unproven, "x"), "./landfall");
        assert!(lines[0].contains("--prove"), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("when quiet")));
    }

    #[test]
    fn the_program_is_in_quotes_once() {
        let program = "'/home/u/my build/landfall'";
        let lines = lines_of_next(&results(Vec::new()), program);
        let last = lines.last().map(String::as_str);
        assert_eq!(
            last,
            Some("(landfall stands for '/home/u/my build/landfall')")
        );
        let lines = lines_of_next(&results(Vec::new()), "'./my build/landfall'");
        assert!(lines[1].starts_with("sudo './my build/landfall' advise /data"));
    }

    #[test]
    fn a_command_can_be_pasted_however_long_it_is() {
        let long = "x".repeat(60);
        let words = ["landfall", "show", "--tables", &long].map(str::to_owned);
        let lines = in_lines(&words, "what for");
        assert_eq!(lines, ["landfall show --tables \\", &long]);
        assert_eq!(
            in_lines(&words[..2], "what for"),
            ["landfall show  # what for"]
        );
        assert_eq!(in_lines(&words[..2], &long), ["landfall show"]);
        // One word cannot be broken.
        let words = ["landfall".to_owned(), "x".repeat(100)];
        assert_eq!(in_lines(&words, ""), ["landfall \\", &"x".repeat(100)]);
    }
}
