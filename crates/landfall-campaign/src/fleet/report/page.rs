//! The page of a fleet.

use landfall_lab::{Notice, Weight};
use landfall_results::view::{Advised, Cell, Chapter, Claims, Figure, Page, Part};

use super::screen::some;
use super::sentences::{capital, counted, extent};
use super::{Report, Shown, chart, sentences, shown, tables};
use crate::fleet::{By, Fleet, SCHEMA_NAME};

/// Reasons that stand as sentences; the table beneath has all.
const MOST_REASONS: usize = 20;
/// Series that have tables; the document has all.
const MOST_SERIES: usize = 3;
/// Suspicious disks and missing shards that have a notice of their own.
const MOST_NOTICES: usize = 8;

/// The page of a campaign.
pub fn page(report: &Report<'_>) -> Page {
    let fleet = report.fleet;
    let shown = shown(fleet);
    let mut parts = Vec::new();
    parts.extend(report.proofs.map(|proofs| Part {
        title: "Crash states tried and lost".to_owned(),
        sentences: proofs.sentences.clone(),
        chapters: vec![Chapter::of_table("Proofs", "", proofs.table.clone())],
        ..empty()
    }));
    if !fleet.disks.is_empty() {
        parts.push(strange(fleet, &shown));
        parts.push(rates(fleet, &shown));
    }
    let heading = Cell::toned(sentences::tone(report), format!("Campaign {}", report.name));
    Page {
        title: heading.text.clone(),
        heading,
        subject: String::new(),
        // Proofs alone say nothing of machines.
        circumstances: {
            let of_machines = if fleet.documents > 0 || report.proofs.is_none() {
                vec![extent(fleet), documents(fleet)]
            } else {
                Vec::new()
            };
            let when = report.when.map(str::to_owned);
            of_machines.into_iter().chain(when).collect()
        },
        plans: Vec::new(),
        sentences: sentences::verdict(report),
        front: front(fleet, &shown),
        claims: Claims::default(),
        advised: Advised::default(),
        notices: notices(report),
        parts,
        foundation: String::new(),
        facts: Vec::new(),
        command: report.command.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        schema: SCHEMA_NAME.to_owned(),
        document: (
            report.document.to_owned().into(),
            "every figure of every disk".into(),
        ),
    }
}

fn empty() -> Part {
    Part {
        title: String::new(),
        run: None,
        sentences: Vec::new(),
        front: None,
        chapters: Vec::new(),
        unmeasured: None,
        preparation: None,
    }
}

fn documents(fleet: &Fleet) -> String {
    counted(fleet.documents, "document", "documents")
}

/// The rate that most disks have, and its tail.
fn front(fleet: &Fleet, shown: &[Shown]) -> Option<Chapter> {
    let first = shown.first()?;
    let figures = first
        .figures
        .first()
        .and_then(|number| figure(fleet, first, *number));
    Chapter::of_figures("Every disk", "", figures.into_iter().collect())
}

/// A chart of all disks with the table of their models.
fn figure(fleet: &Fleet, shown: &Shown, number: usize) -> Option<Figure> {
    let metric = fleet.figures[number].metric.description();
    let alone = Shown {
        figures: vec![number],
        ..shown.clone()
    };
    Some(Figure::new(
        format!("{}: {}", capital(&shown.what), metric.label),
        chart::by_model(fleet, number)?,
        "Each dot is a disk. The line is the median of a model, the shade its 95% interval. Disks are named that differ from theirs.",
        tables::groups(fleet, &alone, By::Model, usize::MAX),
    ))
}

/// Outliers, groups and differences, each with its reason.
fn strange(fleet: &Fleet, shown: &[Shown]) -> Part {
    let reasons = fleet
        .outliers
        .iter()
        .map(|one| &one.reason)
        .take(MOST_REASONS);
    let others = fleet.apart.iter().map(|one| &one.reason);
    let slower = fleet.differences.iter().map(|one| &one.reason);
    let mut sentences: Vec<String> = reasons.chain(others).chain(slower).cloned().collect();
    if sentences.is_empty() {
        sentences.extend(sentences::outliers(fleet).map(|told| told.text));
    }
    let tails = shown.first().into_iter().flat_map(|first| {
        let tails = first
            .figures
            .iter()
            .filter(|one| fleet.figures[**one].is_tail());
        tails.filter_map(|number| figure(fleet, first, *number))
    });
    let table = tables::outliers(fleet);
    let mut chapters = Vec::new();
    if !table.rows.is_empty() {
        let title = "Figures of all outliers";
        chapters.push(Chapter::of_table(title, sentences::rule(fleet), table));
    }
    let flushes = tables::suspicions(fleet);
    if !flushes.rows.is_empty() {
        let title = "Suspicious flushes";
        chapters.push(Chapter::of_table(title, sentences::of_flushes(), flushes));
    }
    chapters.extend(Chapter::of_figures("Tails", "", tails.collect()));
    Part {
        title: "Outliers".to_owned(),
        sentences,
        chapters,
        ..empty()
    }
}

/// Tables of groups and of every disk.
fn rates(fleet: &Fleet, shown: &[Shown]) -> Part {
    let series = shown.iter().take(MOST_SERIES);
    Part {
        title: "Rates and tails".to_owned(),
        chapters: series
            .flat_map(|one| [groups(fleet, one), disks(fleet, one)])
            .collect(),
        ..empty()
    }
}

fn groups(fleet: &Fleet, shown: &Shown) -> Chapter {
    let title = format!(
        "{}: by model, firmware, filesystem and kernel",
        capital(&shown.what)
    );
    let introduction = "The median over the disks of each, with its 95% interval by order statistics; of fewer than six disks that is the least and the greatest.";
    let tables = By::ALL.map(|by| tables::groups(fleet, shown, by, usize::MAX));
    Chapter {
        title: title.into(),
        introduction: introduction.to_owned(),
        tables: tables
            .into_iter()
            .filter(|one| !one.rows.is_empty())
            .collect(),
        figures: Vec::new(),
    }
}

fn disks(fleet: &Fleet, shown: &Shown) -> Chapter {
    let title = format!("{}: every disk", capital(&shown.what));
    let introduction = "The median over the rounds of each disk, with its 95% interval.";
    Chapter::of_table(title, introduction, tables::disks(fleet, shown))
}

/// What is missing, what is suspicious, and what machines noticed.
fn notices(report: &Report<'_>) -> Vec<Notice> {
    let fleet = report.fleet;
    let mut notices = Vec::new();
    let missing: Vec<&str> = report.missing.lines().map(String::as_str).collect();
    if !missing.is_empty() {
        let named = &missing[..missing.len().min(MOST_NOTICES)];
        let more = match missing.len() - named.len() {
            0 => String::new(),
            rest => format!("; and {rest} more"),
        };
        let text = format!("Not in this report: {}{more}.", named.join("; "));
        notices.push(Notice::new("missing", Weight::Warning, text));
    }
    for one in fleet.suspicions.iter().take(MOST_NOTICES) {
        let notice = Notice::new("suspicious-flush", Weight::Warning, one.reason.as_str());
        notices.push(notice.because(sentences::of_flushes()));
    }
    let rest = fleet.suspicions.len().saturating_sub(MOST_NOTICES);
    if rest > 0 {
        let text = format!(
            "{} more have a suspicious flush.",
            counted(rest, "disk", "disks")
        );
        notices.push(Notice::new("suspicious-flush", Weight::Warning, text));
    }
    for doubt in &fleet.doubts {
        let text = format!("On {}: {}", some(&doubt.machines), doubt.text);
        notices.push(Notice::new(&doubt.code, doubt.weight, text));
    }
    if !fleet.disks.is_empty() {
        notices.push(Notice::new("rule", Weight::Note, sentences::rule(fleet)));
    }
    notices
}
