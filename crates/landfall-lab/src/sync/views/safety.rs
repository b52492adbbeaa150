//! Cost against safety: the picture of what is fast and lost nothing.

use crate::facts::may_lose_new_files;
use crate::numbers::{interval, thousands};
use crate::sync::safety::{
    Timed, fastest_durable, is_comparable, lost_in, place, ranking, safety, timed,
};
use crate::sync::{Plan, Safety, Strategy, SyncResults};
use crate::{Experiment, Results};
use landfall_os::humanize::{duration_text, quoted};
use landfall_os::{Allocation, Filesystem, SyncCall, SyncMethod};
use landfall_results::view::chart::{
    Chart, Comparison, ComparisonMark, Drawing, MOST_ROWS, is_wide,
};
use landfall_results::view::{Chapter, Column, Figure, Row, Suggestion, Table, or_nothing};
use landfall_results::{Axes, Axis, Series, Term};

/// Rows of the picture on the first screen.
const MOST_IN_FRONT: usize = 7;

/// The group, behind those of [`Safety`], of what was synced into a file that the filesystem may forget to have grown.
const AT_RISK: usize = 3;
const RISK: &str = "at risk: no journal, appends can be lost";

/// Names of the groups of a comparison.
const PROVEN: [&str; 4] = [
    "lost nothing",
    "lost acknowledged writes",
    "not proven",
    RISK,
];
/// The same where nothing was proven, so that only what a call promises is known.
const PROMISED: [&str; 4] = [
    "",
    "not synced: a power cut may lose data",
    "documented as safe; untested by power cuts",
    RISK,
];
/// The same where something here makes all of it doubtful.
const IN_DOUBT: [&str; 4] = [
    "",
    "not synced: a power cut may lose data",
    "meant to be durable; in doubt here",
    RISK,
];
/// The same in main memory.
const IN_MEMORY: [&str; 4] = ["", "", "in main memory, where nothing is durable", ""];

/// The picture that comes before everything else: cost against safety; or cost alone, with the command that adds safety.
pub(super) fn front(results: &Results, sync: &SyncResults) -> Option<Chapter> {
    let ranking = ranking(sync);
    let is_proven = ranking.is_some();
    let (all, best, has_equals) = match &ranking {
        Some(ranking) => (
            ranking.all.clone(),
            ranking.best,
            !ranking.equals.is_empty(),
        ),
        None => match fastest_durable(sync, |_| true) {
            Some((best, equals)) => (comparable(sync), Some(best), !equals.is_empty()),
            None => (comparable(sync), None, false),
        },
    };
    let best = best.map(|(best, _)| best);
    let (centre, _) = all.first()?;
    let groups = match (is_proven, results.is_in_memory()) {
        (true, _) => PROVEN,
        (false, true) => IN_MEMORY,
        (false, false) if results.is_in_doubt() => IN_DOUBT,
        (false, false) => PROMISED,
    };
    let is_known_to_lose =
        |series: &Series| !series.axes.is_durable() || safety(series) == Safety::Lost;
    let group = |series: &Series| match (is_proven, results.is_in_memory()) {
        _ if is_at_risk(&results.filesystem, series) && !is_known_to_lose(series) => AT_RISK,
        (true, _) => safety(series) as usize,
        (false, false) if !series.axes.is_durable() => Safety::Lost as usize,
        (false, _) => Safety::NotProven as usize,
    };
    let terms = terms(&all);
    let shown = telling(&all, best);
    let hidden = all.len() - shown.len();
    // In main memory the fastest says nothing of a disk.
    let best = best.filter(|_| !results.is_in_memory());
    let mut rows: Vec<ComparisonMark> = shown
        .iter()
        .map(|timed| {
            let (series, _) = timed;
            let best = best.map(|best| best.key.as_str());
            mark(timed, group(series), best, named)
        })
        .map(|mark| ComparisonMark {
            durable: mark.durable && (is_proven || !results.is_in_memory()),
            ..mark
        })
        .collect();
    // What is not known to be lost stands above what is.
    rows.sort_by_key(|row| match row.group {
        0 => 0,
        2 if !is_proven => 1,
        AT_RISK => 2,
        1 => 3,
        _ => 4,
    });
    let mut legend =
        vec!["Marks are medians of rounds, bars their 95% intervals; where bars overlap, do not rank the ways.".to_owned()];
    if is_proven {
        legend.push("0/300 means: lost in 0 of 300 simulated power cuts.".to_owned());
        let is_bare = |(one, _): &Timed<'_>| {
            one.proof
                .as_ref()
                .is_some_and(|proof| (proof.losing, proof.states) == (1, 1))
        };
        if shown.iter().any(is_bare) {
            legend.push("1/1: nothing reached the disk, which leaves one state.".to_owned());
        }
    }
    if best.is_some() {
        let why = match (has_equals, is_proven) {
            (true, true) => "one of the fastest safe ways",
            (true, false) => "the way that the text above names; others tie with it",
            (false, _) => "the way that the text above names",
        };
        legend.push(format!("Ringed, with the dashed line: {why}."));
    }
    if hidden > 0 {
        legend.push(format!("{hidden} more rows are under Data."));
    }
    let comparison = Comparison {
        log: is_wide(rows.iter().map(|row| row.value)),
        named: ranking
            .as_ref()
            .map_or(
                if has_equals {
                    "tied for the fastest"
                } else {
                    "the fastest"
                },
                |ranking| named_as(&ranking.equals),
            )
            .into(),
        groups: groups.map(Into::into).into(),
        rows,
    };
    let title = writes_of(centre);
    let chart = Chart::new("front", Drawing::Safety(comparison));
    let mut figure = Figure::new(title, chart, legend.join(" "), table(&all)).with_terms(terms);
    if !is_proven && !results.is_in_memory() {
        figure.command = Some(Suggestion::new(
            format!(
                "Which of them survive a power cut is not known yet. This {}:",
                proving()
            ),
            proving_command(results, "landfall").join(" "),
        ));
    }
    Chapter::of_figures("Cost against safety", "", vec![figure])
}

/// Whether a power cut can take what this way has synced, since the filesystem does not keep the size of a file that grew.
pub(super) fn is_at_risk(filesystem: &Filesystem, series: &Series) -> bool {
    let grows = series.axes.allocation == Some(Allocation::Append);
    grows && series.axes.is_durable() && may_lose_new_files(filesystem)
}

/// What is written beside the fastest way that lost nothing, where these cannot be told from it.
fn named_as(equals: &[Timed<'_>]) -> &'static str {
    if equals.is_empty() {
        "the fastest safe way"
    } else {
        "one of the fastest safe ways"
    }
}

/// What `landfall lab sync --prove` does, and how long it takes.
fn proving() -> String {
    let plan = Plan::proving();
    format!(
        "simulates up to {} power cuts of each, on scratch disks, in {}",
        Plan::PROOF_STATES,
        duration_text(Experiment::expected(&plan).as_secs_f64())
    )
}

/// The command for it, word by word, where `results` are of; `landfall` is the program, as a shell takes it.
pub(crate) fn proving_command(results: &Results, landfall: &str) -> Vec<String> {
    let mut words: Vec<String> = ["sudo", landfall, "lab", "sync"].map(str::to_owned).into();
    let on = results.site.spec();
    words.extend(on.iter().flat_map(|on| ["--on".to_owned(), quoted(on)]));
    words.extend(["--prove".to_owned(), quoted(&results.directory)]);
    words
}

/// `Writes a second, 8 KiB each, 1 thread`.
fn writes_of(series: &Series) -> String {
    let threads = match series.axes.threads {
        None | Some(1) => "1 thread".to_owned(),
        Some(some) => format!("{some} threads"),
    };
    format!(
        "Writes a second, {} each, {threads}",
        series.axes.text(Axis::Size)
    )
}

/// What was timed and can be compared with the centre of the plan, the fastest first.
fn comparable(sync: &SyncResults) -> Vec<Timed<'_>> {
    let baseline = Axes::from(Strategy::BASELINE);
    let centre = timed(sync)
        .find(|(one, _)| one.axes == baseline)
        .or_else(|| timed(sync).next());
    let Some((centre, _)) = centre else {
        return Vec::new();
    };
    let mut all: Vec<Timed<'_>> = timed(sync)
        .filter(|(one, _)| is_comparable(one, centre))
        .collect();
    all.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
    all
}

/// The few that tell most: the best, what syncs and is broken, the usual ways to write, what is not synced, and then
/// the fastest of the rest. Sorted as they came.
fn telling<'a>(all: &[Timed<'a>], best: Option<&Series>) -> Vec<Timed<'a>> {
    let usual = |series: &Series| {
        series.axes.sync_method == Some(SyncMethod::FDATASYNC)
            && matches!(
                series.axes.allocation,
                Some(Allocation::Append | Allocation::Overwrite)
            )
    };
    let is_best = |series: &Series| best.is_some_and(|best| best.key == series.key);
    let is_unsynced = |series: &Series| !series.axes.is_durable();
    let rank = |series: &Series| match () {
        () if is_best(series) || usual(series) => 0,
        () if !is_unsynced(series) && safety(series) == Safety::Lost => 1,
        () if is_unsynced(series) => 2,
        () => 3,
    };
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(|place| rank(all[*place].0));
    places.truncate(MOST_IN_FRONT);
    places.sort_unstable();
    places.into_iter().map(|place| all[place]).collect()
}

/// What the names of these mean.
fn terms(those: &[Timed<'_>]) -> Vec<Term> {
    let axes = [Axis::Allocation, Axis::Method];
    let terms = axes
        .into_iter()
        .flat_map(|axis| those.iter().filter_map(move |(one, _)| one.axes.term(axis)));
    terms.collect()
}

/// The chapter of everything that was proven, if anything was.
pub(super) fn of(results: &Results, sync: &SyncResults) -> Option<Chapter> {
    let ranking = ranking(sync)?;
    let (centre, _) = ranking.all.first()?;
    let others: Vec<Timed<'_>> = timed(sync)
        .filter(|(one, _)| one.proof.is_some() && !is_comparable(one, centre))
        .collect();
    // In main memory the fastest says nothing of a disk.
    let best = ranking
        .best
        .filter(|_| !results.is_in_memory())
        .map(|(best, _)| (best.key.as_str(), ranking.equals.as_slice()));
    let title = writes_of(centre);
    let mut figures = vec![figure("safety", &title, ranking.all, best, named)];
    if !others.is_empty() {
        let title = "Other sizes, threads and places, whose rates are not comparable";
        let by_key = |one: &Series| one.key.replace('/', " ");
        figures.push(figure("safety-others", title, others, None, by_key));
    }
    let introduction = format!(
        "How fast each way of writing is, and in how many simulated power cuts it lost a write that had been acknowledged: 299/300 is in 299 of 300. {}",
        place(results, sync)
    );
    Chapter::of_figures("Cost against safety", introduction, figures)
}

/// How it is called in the pictures: `overwrite, fdatasync`.
fn named(series: &Series) -> String {
    let axes = &series.axes;
    let method = match axes.sync_method {
        Some(method) if method.call == SyncCall::None && method.direct => {
            "direct, not synced".into()
        }
        Some(method) if method.call == SyncCall::None => "not synced".into(),
        _ => axes.text(Axis::Method),
    };
    format!("{}, {method}", axes.text(Axis::Allocation))
}

fn figure(
    id: &str,
    title: &str,
    mut those: Vec<Timed<'_>>,
    best: Option<(&str, &[Timed<'_>])>,
    label: fn(&Series) -> String,
) -> Figure {
    let (best, equals) = best.map_or((None, &[][..]), |(best, equals)| (Some(best), equals));
    those.sort_by(|(a, a_rate), (b, b_rate)| {
        let by_rate = b_rate.median.total_cmp(&a_rate.median);
        safety(a).cmp(&safety(b)).then(by_rate)
    });
    let rows: Vec<ComparisonMark> = those
        .iter()
        .take(MOST_ROWS)
        .map(|timed| mark(timed, safety(timed.0) as usize, best, label))
        .collect();
    let terms = terms(&those);
    let mut legend = Vec::new();
    if best.is_some() {
        legend.push(format!(
            "Ringed, with the dashed line: {}.",
            named_as(equals)
        ));
    }
    if those.len() > MOST_ROWS {
        legend.push(format!(
            "{MOST_ROWS} of {} settings, those that lost nothing first.",
            those.len()
        ));
    }
    let comparison = Comparison {
        log: is_wide(rows.iter().map(|row| row.value)),
        named: named_as(equals).into(),
        groups: PROVEN.map(Into::into).into(),
        rows,
    };
    let chart = Chart::new(id, Drawing::Safety(comparison));
    Figure::new(title, chart, legend.join(" "), table(&those)).with_terms(terms)
}

fn mark(
    (strategy, rate): &Timed<'_>,
    group: usize,
    best: Option<&str>,
    label: fn(&Series) -> String,
) -> ComparisonMark {
    let is_best = best == Some(strategy.key.as_str());
    let mut text = format!("{} ops/s", thousands(rate.median));
    match safety(strategy) {
        Safety::NotProven => {}
        _ => text.push_str(&format!(", lost in {}", lost_in(strategy))),
    }
    ComparisonMark {
        label: label(strategy),
        group,
        durable: strategy.axes.is_durable(),
        best: is_best,
        value: rate.median,
        low: rate.low,
        high: rate.high,
        text,
    }
}

fn table(those: &[Timed<'_>]) -> Table {
    let is_proven = those.iter().any(|(one, _)| one.proof.is_some());
    let rows = those.iter().map(|(strategy, rate)| {
        let mark = if strategy.axes.is_durable() {
            ""
        } else {
            ", not durable"
        };
        let mut cells = vec![thousands(rate.median), interval(rate, thousands)];
        if is_proven {
            cells.extend(losses(strategy));
        }
        Row::of(format!("{}{mark}", strategy.key), cells)
    });
    let (caption, columns): (_, &[&'static str]) = if is_proven {
        (
            "Operations per second, crash states in which an acknowledged write was missing, and how many were missing in the worst of them",
            &[
                "ops/s",
                "95% interval",
                "lost in",
                "at worst",
                "proven on",
                "not proven because",
            ],
        )
    } else {
        ("Operations per second", &["ops/s", "95% interval"])
    };
    let columns = columns
        .iter()
        .map(|heading| Column::new(*heading))
        .collect();
    Table::new(caption, "Strategy", columns).with_rows(rows)
}

/// What power cuts did to it, a cell for each column.
fn losses(strategy: &Series) -> [String; 4] {
    let proof = strategy.proof.as_ref();
    let known = proof.filter(|_| safety(strategy) != Safety::NotProven);
    let worst = known.map(|proof| thousands(proof.worst_lost as f64));
    let spec = proof.map(|proof| proof.filesystem_spec.to_string());
    let reason = proof.and_then(|proof| proof.not_proven.clone());
    [
        lost_in(strategy),
        or_nothing(worst),
        or_nothing(spec),
        reason.unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::{measured, proven, results, sync_results};
    use crate::{SiteDescription, SiteKind};
    use landfall_results::{FilesystemSpec, Kind};

    /// Two ways that cannot be told apart, with what `prove` makes of each.
    fn equals(prove: fn(Series) -> Series) -> SyncResults {
        let rates = [1_000.0, 1_010.0, 990.0, 1_005.0, 995.0];
        let fsync = Strategy::BASELINE.synced(SyncMethod::buffered(SyncCall::Fsync));
        let both = [Strategy::BASELINE, fsync].map(|one| measured(one, &rates, 1.0, 1.0));
        sync_results(both.map(prove).into())
    }

    /// The picture that comes before everything else.
    fn picture(results: &Results, sync: &SyncResults) -> Figure {
        let chapter = front(results, sync).expect("a picture");
        chapter.figures.into_iter().next().expect("a figure")
    }

    #[test]
    fn nothing_is_called_safe_that_was_not_proven() {
        let results = results(Vec::new());
        let untested = picture(&results, &equals(|one| one));
        let meant =
            "Ringed, with the dashed line: the way that the text above names; others tie with it.";
        assert!(untested.legend.contains(meant), "{}", untested.legend);
        let safe = picture(&results, &equals(|one| proven(one, 300)));
        let expected = "Ringed, with the dashed line: one of the fastest safe ways.";
        assert!(safe.legend.contains(expected), "{}", safe.legend);
    }

    #[test]
    fn a_filesystem_that_was_made_is_proven_and_not_that_of_the_directory() {
        let mut results = results(Vec::new());
        let command = |results: &Results| {
            let figure = picture(results, &equals(|one| one));
            figure.command.map(|suggestion| suggestion.command)
        };
        let of_directory = "sudo landfall lab sync --prove /data";
        assert_eq!(command(&results).as_deref(), Some(of_directory));
        results.site = SiteDescription {
            kind: SiteKind::Loop,
            filesystem_spec: Some(FilesystemSpec::plain(Kind::Xfs)),
            ..SiteDescription::default()
        };
        let made = "sudo landfall lab sync --on loop:xfs --prove /data";
        assert_eq!(command(&results).as_deref(), Some(made));
    }
}
