//! What a report says in words.

use landfall_results::numbers::thousands;
use landfall_results::view::{Cell, Tone};

use super::{Missing, Report};
use crate::fleet::{EXPECTED_FALSE, Fleet, Kind, LEAST_RATIO, Sign};

/// `1 disk`, `2 disks`.
pub(super) fn counted(count: usize, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{} {noun}", thousands(count as f64))
}

/// With a capital first letter.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// How many machines, disks and models there are.
pub(super) fn extent(fleet: &Fleet) -> String {
    let distinct = |of: fn(&crate::fleet::Disk) -> &str| {
        let mut all: Vec<&str> = fleet.disks.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    };
    let models = distinct(|disk| &disk.identity.model);
    let kernels = distinct(|disk| &disk.identity.kernel);
    let mut texts = vec![counted(fleet.machines.len(), "machine", "machines")];
    if !fleet.disks.is_empty() {
        texts.push(counted(fleet.disks.len(), "disk", "disks"));
        texts.push(counted(models, "model", "models"));
        texts.push(counted(kernels, "kernel", "kernels"));
    }
    texts.join(", ")
}

/// What the proofs came to; where nobody says it, the states that the documents hold. Nothing if nothing was proven.
pub(super) fn proofs(report: &Report<'_>) -> Option<Cell> {
    if let Some(proofs) = report.proofs {
        return Some(proofs.verdict.clone());
    }
    let states = report.fleet.states;
    let tried = format!("{} crash states tried", thousands(states.tried as f64));
    match (states.tried, states.lost) {
        (0, _) => None,
        (_, 0) => Some(Cell::toned(
            Tone::Good,
            format!("{tried}, nothing was lost."),
        )),
        (_, lost) => {
            let lost = thousands(lost as f64);
            Some(Cell::toned(
                Tone::Bad,
                format!("{tried}, something was lost in {lost}."),
            ))
        }
    }
}

/// How many outliers there are, of each kind; nothing where nothing was measured.
pub(super) fn outliers(fleet: &Fleet) -> Option<Cell> {
    if fleet.disks.is_empty() {
        return None;
    }
    let judged = fleet.disks.len() - fleet.rule.unjudged_disks;
    if judged == 0 {
        let text = format!(
            "No disk could be compared with others: that takes {} at least.",
            fleet.rule.fewest_peers
        );
        return Some(Cell::toned(Tone::Doubt, text));
    }
    let of = |kind| fleet.outliers.iter().filter(|one| one.kind == kind).count();
    let kinds = [
        (of(Kind::Slow), "slow"),
        (of(Kind::SlowTail), "slow in the tail alone"),
        (of(Kind::Fast), "fast"),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds: Vec<String> = kinds
        .map(|(count, kind)| format!("{count} {kind}"))
        .collect();
    Some(match fleet.outliers.len() {
        0 => Cell::from(format!(
            "No outlier among {}.",
            counted(judged, "disk", "disks")
        )),
        count => Cell::toned(
            Tone::Doubt,
            format!(
                "{} among {}: {}; {EXPECTED_FALSE} false ones are expected.",
                counted(count, "outlier", "outliers"),
                counted(judged, "disk", "disks"),
                kinds.join(", ")
            ),
        ),
    })
}

/// How many disks have a suspicious flush; nothing of none.
pub(super) fn suspicions(fleet: &Fleet) -> Option<String> {
    let count = fleet.suspicions.len();
    (count > 0).then(|| {
        let has = if count == 1 { "has" } else { "have" };
        format!(
            "{} {has} a suspicious flush.",
            counted(count, "disk", "disks")
        )
    })
}

/// How many shards are missing, and what else; nothing of nothing.
pub(super) fn missing(report: &Report<'_>) -> Option<String> {
    let Missing {
        shards,
        tasks,
        unreadable,
    } = report.missing;
    let clauses = [
        (shards.len(), "shard is missing", "shards are missing"),
        (
            tasks.len(),
            "task could not be done",
            "tasks could not be done",
        ),
        (
            unreadable.len(),
            "document cannot be read",
            "documents cannot be read",
        ),
    ];
    let clauses = clauses.into_iter().filter(|(count, ..)| *count > 0);
    let clauses: Vec<String> = clauses
        .map(|(count, one, several)| counted(count, one, several))
        .collect();
    (!clauses.is_empty()).then(|| format!("{}: this report is not complete.", clauses.join(", ")))
}

/// The verdict, in sentences: what was lost, what is missing, what is strange.
pub(super) fn verdict(report: &Report<'_>) -> Vec<String> {
    let fleet = report.fleet;
    let told = |cell: Option<Cell>| cell.map(|cell| cell.text);
    let sentences = [
        told(proofs(report)),
        missing(report),
        told(outliers(fleet)),
        suspicions(fleet),
    ];
    sentences.into_iter().flatten().collect()
}

/// What the verdict looks like.
pub(super) fn tone(report: &Report<'_>) -> Tone {
    let fleet = report.fleet;
    let proofs = proofs(report).map(|verdict| verdict.tone);
    let is_strange = !(fleet.outliers.is_empty()
        && fleet.apart.is_empty()
        && fleet.differences.is_empty()
        && fleet.suspicions.is_empty());
    match proofs {
        Some(Tone::Bad) => Tone::Bad,
        _ if is_strange || report.missing.lines().next().is_some() => Tone::Doubt,
        Some(tone) => tone,
        None => Tone::Plain,
    }
}

/// By what rule outliers are found, and how many are expected without cause.
pub(super) fn rule(fleet: &Fleet) -> String {
    let unjudged = match fleet.rule.unjudged_disks {
        0 => String::new(),
        count => format!(
            " {} could not be compared with {} others.",
            counted(count, "disk", "disks"),
            fleet.rule.fewest_peers - 1
        ),
    };
    format!(
        "A disk is compared with the others of its model and filesystem, by the median and Qn of logarithms; it must differ by a factor of {LEAST_RATIO}. \
         Of {} figures that were judged, {EXPECTED_FALSE} false outliers are expected in the whole fleet if disks scatter log-normally.{unjudged}",
        thousands(fleet.rule.judged as f64),
    )
}

/// What a suspicious flush may mean, and how to know.
pub(super) fn of_flushes() -> &'static str {
    "Either a capacitor protects the cache, or a flush is not carried out: time cannot tell. A real power cut can: landfall witness."
}

/// What makes a flush suspicious, in a few words.
pub(super) fn sign(sign: Sign) -> &'static str {
    match sign {
        Sign::CostsNothing => "a flush costs next to nothing",
        Sign::QuickerThanPeers => "far quicker than its model",
    }
}

/// How a disk differs, in a word or two.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Slow => "slow",
        Kind::SlowTail => "slow tail",
        Kind::Fast => "fast",
    }
}
