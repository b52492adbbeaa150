//! Cost against safety: the picture of what is fast and lost nothing.

use crate::Results;
use crate::numbers::{NOTHING, interval, thousands};
use crate::sync::safety::{Timed, is_comparable, lost_in, place, ranking, safety, timed};
use crate::sync::{Safety, SyncResults};
use landfall_results::view::chart::{
    Chart, Comparison, ComparisonMark, Drawing, MOST_ROWS, is_wide,
};
use landfall_results::view::{Chapter, Column, Figure, Row, Table};
use landfall_results::{Axis, Series};

/// The chapter that comes before all others, if anything was proven.
pub(super) fn of(results: &Results, sync: &SyncResults) -> Option<Chapter> {
    let ranking = ranking(sync)?;
    let (centre, _) = ranking.all.first()?;
    let others: Vec<Timed<'_>> = timed(sync)
        .filter(|(one, _)| one.proof.is_some() && !is_comparable(one, centre))
        .collect();
    let threads = match centre.axes.threads {
        None | Some(1) => "1 thread".to_owned(),
        Some(some) => format!("{some} threads"),
    };
    let title = format!("Writes of {}, {threads}", centre.axes.text(Axis::Size));
    // In main memory the fastest says nothing of a disk.
    let best = if results.is_in_memory() {
        None
    } else {
        ranking.best.map(|(best, _)| best.key.as_str())
    };
    let main = figure("safety", &title, ranking.all, best, |one| {
        let axes = &one.axes;
        format!(
            "{}, {}",
            axes.text(Axis::Allocation),
            axes.text(Axis::Method)
        )
    });
    let mut figures = vec![main];
    if !others.is_empty() {
        let title = "Other sizes, threads and places, whose rates are not comparable";
        let by_key = |one: &Series| one.key.replace('/', " ");
        figures.push(figure("safety-others", title, others, None, by_key));
    }
    let introduction = format!(
        "How fast each setting is, and in how many crash states, of those tried on the recorder, a write was missing that had been acknowledged: 240/300 is 240 of 300. {}",
        place(results, sync)
    );
    Chapter::of_figures("Cost against safety", introduction, figures)
}

fn figure(
    id: &str,
    title: &str,
    mut those: Vec<Timed<'_>>,
    best: Option<&str>,
    label: fn(&Series) -> String,
) -> Figure {
    those.sort_by(|(a, a_rate), (b, b_rate)| {
        let by_rate = b_rate.median.total_cmp(&a_rate.median);
        safety(a).cmp(&safety(b)).then(by_rate)
    });
    let rows: Vec<ComparisonMark> = those
        .iter()
        .take(MOST_ROWS)
        .map(|timed| mark(timed, best, label))
        .collect();
    let mut legend = Vec::new();
    if best.is_some() {
        legend.push("The dashed line is the rate of the fastest that lost nothing: what lies to the right of it is faster, and at what price.".to_owned());
    }
    if rows.iter().any(|row| !row.durable) {
        legend.push("What has a * is not meant to be durable, whatever it lost here.".to_owned());
    }
    if those.len() > MOST_ROWS {
        legend.push(format!(
            "{MOST_ROWS} of {} settings, those that lost nothing first.",
            those.len()
        ));
    }
    let groups = ["lost nothing", "lost acknowledged writes", "not proven"];
    let comparison = Comparison {
        log: is_wide(rows.iter().map(|row| row.value)),
        groups: groups.map(Into::into).into(),
        rows,
    };
    let chart = Chart::new(id, Drawing::Safety(comparison));
    Figure::new(title, chart, legend.join(" "), table(&those))
}

fn mark(
    (strategy, rate): &Timed<'_>,
    best: Option<&str>,
    label: fn(&Series) -> String,
) -> ComparisonMark {
    let is_best = best == Some(strategy.key.as_str());
    let mut text = format!("{} ops/s", thousands(rate.median));
    match safety(strategy) {
        Safety::NotProven => {}
        _ => text.push_str(&format!(", {}", lost_in(strategy))),
    }
    ComparisonMark {
        label: if strategy.axes.is_durable() {
            label(strategy)
        } else {
            format!("{} *", label(strategy))
        },
        group: safety(strategy) as usize,
        durable: strategy.axes.is_durable(),
        best: is_best,
        value: rate.median,
        low: rate.low,
        high: rate.high,
        text,
    }
}

fn table(those: &[Timed<'_>]) -> Table {
    let rows = those.iter().map(|(strategy, rate)| {
        let mark = if strategy.axes.is_durable() { "" } else { " *" };
        let proof = strategy.proof.as_ref();
        let known = proof.filter(|_| safety(strategy) != Safety::NotProven);
        Row::of(
            format!("{}{mark}", strategy.key),
            vec![
                thousands(rate.median),
                interval(rate, thousands),
                lost_in(strategy),
                known.map_or(NOTHING.to_owned(), |proof| {
                    thousands(proof.worst_lost as f64)
                }),
                proof.map_or(NOTHING.to_owned(), |proof| {
                    proof.filesystem_spec.to_string()
                }),
                proof
                    .and_then(|proof| proof.not_proven.clone())
                    .unwrap_or_default(),
            ],
        )
    });
    let columns = [
        "ops/s",
        "95% interval",
        "lost in",
        "at worst",
        "proven on",
        "not proven because",
    ];
    let mut table = Table::new(
        "Operations per second, crash states in which an acknowledged write was missing, and how many were missing in the worst of them",
        "Strategy",
        columns.map(Column::new).into(),
    )
    .with_rows(rows);
    let mut all = those.iter();
    if all.any(|(strategy, _)| !strategy.axes.is_durable()) {
        table.note("* Not meant to be durable.");
    }
    table
}
