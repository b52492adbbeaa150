//! What a terminal shows of advice unless tables are wanted: what to change, what is right as it is, and what to run next;
//! or what was asked for by name, and nothing else.

use landfall_results::view::{
    Block, Cell, CheckedFile, Column, Lacking, Row, Table, Tone, Workload,
};

use landfall_results::Weight;

use super::{capacity, lacking};
use crate::advice::{
    Advice, Basis, Change, Lack, Missing, NOT_MEASURED, Scope, Setting, System, gain_text, legend,
    losses, proof_text,
};
use crate::numbers::NOTHING;

/// The columns of changes; the last one only where something was proven.
const COLUMNS: [&str; 4] = ["from (default)", "to", "times as fast", "lost in"];
const GAIN: &str = "times as fast: 'to' against 'from', with its 95% interval.";
const UNKNOWN: &str =
    "How much slower these are was not measured here; the commands for that are below.";
const LOSS: &str = "lost in: simulated power cuts that lost data with 'from'.";
/// Columns for the settings of a system that are right as they are.
const RIGHT: usize = 60;

/// How much is said besides what to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Whether what is right as it is has a line for each system; otherwise it is counted.
    rows: bool,
    /// Commands that get what is missing; all if `None`.
    commands: Option<usize>,
}

impl Detail {
    /// With every command.
    pub const ALL_COMMANDS: Detail = Detail::with(true, None);
    /// What may be left out where there is no room, the most first.
    pub const LEVELS: [Detail; 5] = [
        Detail::with(true, Some(3)),
        Detail::with(true, Some(1)),
        Detail::with(false, Some(2)),
        Detail::with(false, Some(1)),
        Detail::with(false, Some(0)),
    ];

    const fn with(rows: bool, commands: Option<usize>) -> Detail {
        Detail { rows, commands }
    }
}

/// One screen, with as much `detail` as there is room for. `report` is where the page is.
pub fn answer(advice: &Advice, scope: &Scope, report: Option<&str>, detail: Detail) -> Vec<Block> {
    let mut blocks: Vec<Block> = place(advice).into_iter().chain(flushes(advice)).collect();
    let mut next = Vec::new();
    if let Some(refused) = &advice.refused {
        blocks.push(refusal(refused));
    } else {
        match changes(advice, scope) {
            Some(table) => blocks.push(Block::Table(table)),
            None => blocks.extend(nothing_to_change(advice, scope)),
        }
        blocks.extend(if detail.rows {
            right(advice, scope)
        } else {
            how_many_are_right(advice, scope)
        });
        blocks.extend(match detail.commands {
            None => missing(advice, scope, true),
            Some(most) => commands(advice, scope, most),
        });
        next.push(Row::of(
            "More",
            ["--tables: every value with its evidence; --missing: all commands"],
        ));
    }
    next.extend(report.map(|report| Row::of("Report", [report])));
    if !next.is_empty() {
        let table = Table::new("", "", vec![Column::text("")]).with_rows(next);
        blocks.push(Block::Table(table));
    }
    blocks
}

/// What configuration files risk, a line each, and nothing else.
pub fn check(advice: &Advice) -> Vec<(Tone, String)> {
    let mut lines = Vec::new();
    for file in advice.checks.iter().map(super::file) {
        let findings = file.findings.into_iter().map(|one| one.finding);
        let passed_over = file.passed_over.into_iter().map(Cell::from);
        let all = findings.chain(passed_over).chain([file.summary]);
        lines.extend(all.map(|line| (line.tone, line.text)));
    }
    let refused = advice.refused.iter();
    lines.extend(refused.map(|why| (Tone::Bad, format!("No evidence was looked at: {why}"))));
    lines
}

/// Whether the disk carries a workload that was named, and nothing else.
pub fn workload(advice: &Advice) -> Vec<Block> {
    let workload = advice.capacity.as_ref().map(capacity);
    let refused = advice.refused.iter().map(|why| refusal(why));
    let blocks = workload.iter().flat_map(of_workload);
    blocks.chain(refused).collect()
}

/// Where, and on what.
pub(super) fn place(advice: &Advice) -> Option<Block> {
    let text = format!("Advice for {}: {}.", advice.directory, advice.place);
    Block::prose(0, [text])
}

/// Whether the disk keeps its flushes, unless that is why there is no advice.
pub(super) fn flushes(advice: &Advice) -> Option<Block> {
    let notice = advice.flushes.as_ref();
    let notice = notice.filter(|notice| advice.refused.as_ref() != Some(&notice.text))?;
    let tone = match notice.weight {
        Weight::Note => Tone::Plain,
        Weight::Warning => Tone::Doubt,
        Weight::Danger => Tone::Bad,
    };
    Some(Block::Prose {
        indent: 0,
        sentences: vec![(tone, notice.text.clone())],
    })
}

pub(super) fn refusal(why: &str) -> Block {
    let headline = (Tone::Bad, "No setting is advised here.".to_owned());
    Block::Prose {
        indent: 0,
        sentences: vec![headline, (Tone::Plain, why.to_owned())],
    }
}

/// What to change of these systems: from, to, what it gives, and what the value that is usual lost.
pub(super) fn changes(advice: &Advice, scope: &Scope) -> Option<Table> {
    let changes = advice.changes(scope);
    // Systems of which all is the same stand together.
    let mut groups: Vec<(String, Vec<Row>)> = Vec::new();
    for system in System::ALL {
        let own = changes.iter().filter(|one| one.setting.system == system);
        let own: Vec<Row> = own.flat_map(change).collect();
        if own.is_empty() {
            continue;
        }
        match groups.iter_mut().find(|(_, rows)| *rows == own) {
            Some((names, _)) => *names = format!("{names}, {}", system.name()),
            None => groups.push((system.name().to_owned(), own)),
        }
    }
    let of_group = |(names, rows)| {
        let heading = Row::Group(Cell::toned(Tone::Strong, names));
        [heading].into_iter().chain(rows)
    };
    let mut rows: Vec<Row> = groups.into_iter().flat_map(of_group).collect();
    // What plain writes lost says of no system more than what its setting risks.
    let gains = changes
        .iter()
        .filter_map(|change| Some(change.gain.as_ref()?.basis));
    let losses = changes
        .iter()
        .filter_map(|change| Some(change.proof?.basis));
    let (gains, losses): (Vec<Basis>, Vec<Basis>) = (gains.collect(), losses.collect());
    let is_proven = losses.iter().any(|basis| *basis != Basis::Writes);
    let is_shown = [true, true, !gains.is_empty(), is_proven];
    for row in &mut rows {
        if let Row::Cells { cells, .. } = row {
            let mut shown = is_shown.iter();
            cells.retain(|_| shown.next().is_none_or(|shown| *shown));
        }
    }
    let title = "What to change here";
    let columns = COLUMNS.iter().zip(is_shown).filter(|(_, shown)| *shown);
    let columns = columns.map(|(name, _)| Column::text(*name)).collect();
    let mut table = Table::new(title, title, columns).with_rows(rows);
    let mut known = Vec::new();
    match (gains.is_empty(), is_proven) {
        (true, false) => table.note(UNKNOWN),
        (true, true) => table.note(LOSS),
        (false, false) => table.note(GAIN),
        (false, true) => table.note(format!("{GAIN} {LOSS}")),
    }
    known.extend(gains);
    known.extend(losses.into_iter().filter(|_| is_proven));
    let legend = legend(&known);
    if !legend.is_empty() {
        table.note(legend);
    }
    (!changes.is_empty()).then_some(table)
}

fn change(change: &Change<'_>) -> Vec<Row> {
    let setting = change.setting;
    let gain = match &change.gain {
        None if change.to.is_none() => NOTHING.to_owned(),
        None => NOT_MEASURED.to_owned(),
        Some(gain) => format!("{}{}", gain_text(Some(gain)), gain.basis.mark()),
    };
    let cells = [
        Cell::from(change.from),
        change.to.map_or_else(
            || Cell::toned(Tone::Bad, "none is safe"),
            |to| Cell::toned(Tone::Good, to),
        ),
        Cell::from(gain),
        Cell::from(proof_text(change.proof)),
    ];
    let said = if change.risk.is_empty() {
        setting.because.clone()
    } else {
        format!("{}={} risks {}", setting.setting, change.from, change.risk)
    };
    let said = [said, also_lost(change), setting.by_hand.clone()];
    let said = said.into_iter().filter(|sentence| !sentence.is_empty());
    [Row::of(setting.setting.as_str(), cells)]
        .into_iter()
        .chain(said.map(Row::Said))
        .collect()
}

/// What the value that is meant to be safe lost, where none was.
fn also_lost(change: &Change<'_>) -> String {
    let first = change.setting.choices.first();
    let first = first.filter(|first| change.to.is_none() && first.value != change.from);
    let lost = first.and_then(|first| Some((&first.value, first.proof.as_ref()?)));
    lost.map_or_else(String::new, |(value, proof)| {
        format!(
            "{value} is meant to be safe: {}",
            losses(change.setting.system, proof)
        )
    })
}

fn nothing_to_change(advice: &Advice, scope: &Scope) -> Option<Block> {
    let is_known = advice.settings.iter().any(|one| scope.has(one.system));
    let text = if is_known {
        "Nothing to change: every default that was looked at is right for this disk."
    } else {
        "Nothing is known of these systems here; the commands below find out."
    };
    Block::prose(0, [text.to_owned()])
}

/// The settings that are right as they are, a line for each system, and what is not installed.
fn right(advice: &Advice, scope: &Scope) -> Option<Block> {
    let systems = System::ALL.into_iter();
    let (here, elsewhere): (Vec<System>, Vec<System>) = systems.partition(|one| scope.has(*one));
    let mut rows: Vec<Row> = here
        .into_iter()
        .filter_map(|system| {
            let right = advice.right(system);
            (!right.is_empty()).then(|| Row::of(system.name(), [names(&right)]))
        })
        .collect();
    let elsewhere: Vec<&str> = elsewhere.into_iter().map(System::name).collect();
    if !scope.is_named() && !elsewhere.is_empty() {
        let text = format!("{}; --for NAME advises on one", elsewhere.join(", "));
        rows.push(Row::of("not installed", [text]));
    }
    let title = "Right as it is";
    let table = Table::new(title, title, vec![Column::text("")]).with_rows(rows);
    (!table.rows.is_empty()).then_some(Block::Table(table))
}

/// The same in two sentences.
fn how_many_are_right(advice: &Advice, scope: &Scope) -> Option<Block> {
    let systems = System::ALL.into_iter();
    let (here, elsewhere): (Vec<System>, Vec<System>) = systems.partition(|one| scope.has(*one));
    let right: Vec<(&str, usize)> = here
        .into_iter()
        .map(|system| (system.name(), advice.right(system).len()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let count: usize = right.iter().map(|(_, count)| count).sum();
    let names: Vec<&str> = right.iter().map(|(name, _)| *name).collect();
    let settings = if count == 1 { "setting" } else { "settings" };
    let right = format!(
        "Right as it is: {count} {settings} of {} (--tables).",
        names.join(", ")
    );
    let elsewhere: Vec<&str> = elsewhere.into_iter().map(System::name).collect();
    let not_installed = format!(
        "Systems not installed: {}; --for NAME advises on one.",
        elsewhere.join(", ")
    );
    let said = [
        (count > 0).then_some(right),
        (!scope.is_named() && !elsewhere.is_empty()).then_some(not_installed),
    ];
    Block::prose(0, said.into_iter().flatten())
}

/// As many settings as there is room for, and how many there are besides.
fn names(settings: &[&Setting]) -> String {
    let mut text = String::new();
    for (index, setting) in settings.iter().enumerate() {
        let value = setting.value.as_deref().unwrap_or_default();
        let one = format!("{}={value}", setting.setting);
        let left = settings.len() - index;
        let rest = match left {
            1 => String::new(),
            left => format!(" and {} more", left - 1),
        };
        if index > 0 && text.len() + ", ".len() + one.len() + rest.len() > RIGHT {
            return format!("{text} and {left} more");
        }
        if index > 0 {
            text += ", ";
        }
        text += &one;
    }
    text
}

/// A few commands: first those that find out what is missing of a setting that is to be changed.
fn commands(advice: &Advice, scope: &Scope, most: usize) -> Vec<Block> {
    let changes = advice.changes(scope);
    let is_open = |change: &Change<'_>, what| match what {
        Lack::Measurement => change.gain.is_none(),
        Lack::Proof => change
            .proof
            .is_none_or(|proof| proof.basis != Basis::System),
    };
    let serves_change = |missing: &Missing| {
        changes.iter().any(|change| {
            change.setting.system == missing.system
                && missing.settings.contains(&change.setting.setting)
                && is_open(change, missing.what)
        })
    };
    let mut all: Vec<&Missing> = in_scope(advice, scope).collect();
    all.sort_by_key(|missing| !serves_change(missing));
    let more = all.len().saturating_sub(most);
    shown(all.into_iter().take(most), more)
}

/// What is not known of these systems, and how to get it: the first of a kind, which serves most settings, or everything.
pub(super) fn missing(advice: &Advice, scope: &Scope, all: bool) -> Vec<Block> {
    let mut kinds: Vec<(System, Lack)> = Vec::new();
    let (mut first, mut more) = (Vec::new(), 0);
    for one in in_scope(advice, scope) {
        if !all && kinds.contains(&(one.system, one.what)) {
            more += 1;
            continue;
        }
        kinds.push((one.system, one.what));
        first.push(one);
    }
    first.sort_by_key(|one| System::ALL.iter().position(|system| *system == one.system));
    shown(first, more)
}

fn in_scope<'a>(advice: &'a Advice, scope: &Scope) -> impl Iterator<Item = &'a Missing> {
    let missing = advice.missing.iter();
    missing.filter(|one| scope.serves(one.system))
}

fn shown<'a>(some: impl IntoIterator<Item = &'a Missing>, more: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    for one in some {
        let Lacking { text, command } = lacking(one);
        // To be copied along with the command.
        blocks.push(Block::Command(format!("# {text}")));
        blocks.push(Block::Command(command));
    }
    if !blocks.is_empty() {
        let title = match more {
            0 => "Not known here".to_owned(),
            more => format!("Not known here (and {more} more: --missing)"),
        };
        blocks.insert(0, Block::Heading(title));
    }
    blocks
}

/// The verdict, why, and what would change it.
pub(super) fn of_workload(workload: &Workload) -> Vec<Block> {
    let reasons = workload.reasons.iter().cloned();
    let answer = (workload.answer.tone, workload.answer.text.clone());
    let mut blocks = vec![Block::Prose {
        indent: 0,
        sentences: [answer]
            .into_iter()
            .chain(reasons.map(|reason| (Tone::Plain, reason)))
            .collect(),
    }];
    let changes = workload.changes.iter();
    blocks.extend(Block::prose(0, changes.map(|change| format!("- {change}"))));
    blocks.extend(workload.flash.clone().map(Block::Table));
    blocks
}

/// What a configuration file risks, among other advice.
pub(super) fn file(file: &CheckedFile) -> Vec<Block> {
    let prose = |tone, sentence: &str| Block::Prose {
        indent: 1,
        sentences: vec![(tone, sentence.to_owned())],
    };
    let mut blocks = vec![Block::Heading(file.name.clone())];
    for one in &file.findings {
        blocks.push(prose(one.finding.tone, &one.finding.text));
        blocks.push(Block::Address(one.address.clone()));
    }
    let passed_over = file.passed_over.iter();
    blocks.extend(passed_over.map(|sentence| prose(Tone::Doubt, sentence)));
    blocks.push(prose(file.summary.tone, &file.summary.text));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::{advise, fixtures::recorded};

    #[test]
    fn one_setting_that_is_right_is_one() {
        let mut advice = advise(&recorded("disk"), "landfall-report", None);
        let rule = "mariadb-log-at-commit";
        advice.settings.retain(|setting| setting.rule == rule);
        let said = how_many_are_right(&advice, &Scope::named(&[System::Mariadb]));
        let expected = "Right as it is: 1 setting of MariaDB (--tables).";
        assert_eq!(said, Block::prose(0, [expected.to_owned()]));
    }
}
