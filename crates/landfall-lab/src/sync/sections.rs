//! The results in the order in which people read them: one axis at a time around a centre.
//!
//! The terminal's tables and the report's charts are made from these sections, so that both show the
//! same.

use super::{CacheState, Files, Placement, Strategy, StrategyResult, SyncResults};
use landfall_os::humanize::bytes_text;

/// Strategies that differ from the centre along one axis only.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The axis, as one word for programs.
    pub axis: &'static str,
    /// What is varied, and what is not.
    pub title: String,
    /// The value on the axis and the strategy that has it, in plan order.
    pub rows: Vec<(String, &'a StrategyResult)>,
}

/// Cuts results into sections; strategies that fit none come last, under their keys.
pub fn sections(results: &SyncResults) -> Vec<Section<'_>> {
    let strategies = &results.strategies;
    let centre_key = Strategy::BASELINE.key();
    let centre = strategies
        .iter()
        .find(|strategy| strategy.key == centre_key)
        .or(strategies.first());
    let Some(centre) = centre else {
        return Vec::new();
    };
    let mut sections = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    for axis in AXES {
        let mut rows: Vec<(String, &StrategyResult)> = strategies
            .iter()
            .filter(|strategy| {
                AXES.iter()
                    .all(|other| other.name == axis.name || (other.same)(strategy, centre))
            })
            .map(|strategy| ((axis.label)(strategy), strategy))
            .collect();
        if rows.len() < 2 {
            continue;
        }
        rows.sort_by_key(|(_, strategy)| (axis.order)(strategy));
        shown.extend(rows.iter().map(|(_, strategy)| strategy.key.as_str()));
        let fixed: Vec<String> = AXES
            .iter()
            .filter(|other| other.name != axis.name)
            .filter_map(|other| (other.fixed)(centre))
            .collect();
        sections.push(Section {
            axis: axis.name,
            title: format!("{} ({})", axis.title, fixed.join(", ")),
            rows,
        });
    }
    let rest: Vec<(String, &StrategyResult)> = strategies
        .iter()
        .filter(|strategy| !shown.contains(&strategy.key.as_str()))
        .map(|strategy| (strategy.key.replace('/', " "), strategy))
        .collect();
    if !rest.is_empty() {
        let title = if sections.is_empty() {
            "Strategies"
        } else {
            "Other strategies"
        };
        sections.push(Section {
            axis: "other",
            title: title.to_owned(),
            rows: rest,
        });
    }
    sections
}

struct Axis {
    name: &'static str,
    title: &'static str,
    same: fn(&StrategyResult, &StrategyResult) -> bool,
    /// The strategy's value on this axis.
    label: fn(&StrategyResult) -> String,
    /// Where the value belongs on the axis; equal values stay in plan order.
    order: fn(&StrategyResult) -> u64,
    /// How a title says what the axis is fixed at; nothing where it goes without saying.
    fixed: fn(&StrategyResult) -> Option<String>,
}

const AXES: [Axis; 5] = [
    Axis {
        name: "allocation",
        title: "By allocation",
        same: |a, b| a.allocation == b.allocation,
        label: |s| s.allocation.clone(),
        order: |_| 0,
        fixed: |s| Some(s.allocation.clone()),
    },
    Axis {
        name: "method",
        title: "By sync method",
        same: |a, b| a.method == b.method,
        label: |s| s.method.clone(),
        order: |_| 0,
        fixed: |s| Some(s.method.clone()),
    },
    Axis {
        name: "size",
        title: "By size of a write",
        same: |a, b| a.size == b.size,
        label: |s| bytes_text(s.size),
        order: |s| s.size,
        fixed: |s| Some(bytes_text(s.size)),
    },
    Axis {
        name: "threads",
        title: "By threads",
        same: |a, b| (a.threads, a.files) == (b.threads, b.files),
        label: threads,
        order: |s| u64::from(s.threads),
        fixed: |s| Some(threads(s)),
    },
    Axis {
        name: "pages",
        title: "By pages touched",
        same: |a, b| (a.placement, a.cache) == (b.placement, b.cache),
        label: pages,
        order: |_| 0,
        fixed: |s| (pages(s) != "sequential, warm").then(|| pages(s)),
    },
];

fn threads(strategy: &StrategyResult) -> String {
    match (strategy.threads, strategy.files) {
        (1, _) => "1 thread".to_owned(),
        (threads, Files::Shared) => format!("{threads}, one file"),
        (threads, Files::Each) => format!("{threads}, a file each"),
    }
}

fn pages(strategy: &StrategyResult) -> String {
    let placement = match strategy.placement {
        Placement::Sequential => "sequential",
        Placement::Spaced => "aligned, apart",
        Placement::Unaligned => "unaligned, apart",
    };
    let cache = match strategy.cache {
        CacheState::Warm => "warm",
        CacheState::Cold => "cold",
    };
    format!("{placement}, {cache}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::{measured, sync_results};
    use crate::sync::{Plan, Selection};

    fn results(plan: &Plan) -> SyncResults {
        let measured = |strategy: &Strategy| measured(*strategy, &[1_000.0], 1.0, 1.0);
        sync_results(plan.strategies.iter().map(measured).collect())
    }

    #[test]
    fn the_standard_plan_falls_into_five_sections_and_nothing_is_left() {
        let results = results(&Plan::standard());
        let sections = sections(&results);
        let axes: Vec<_> = sections
            .iter()
            .map(|section| (section.axis, section.rows.len()))
            .collect();
        assert_eq!(
            axes,
            [
                ("allocation", 10),
                ("method", 16),
                ("size", 8),
                ("threads", 7),
                ("pages", 5)
            ]
        );
        let sizes: Vec<_> = sections[2]
            .rows
            .iter()
            .map(|(label, _)| label.as_str())
            .collect();
        assert_eq!(sizes[..2], ["512 bytes", "1 KiB"]);
    }

    #[test]
    fn what_fits_no_axis_is_shown_under_its_name() {
        let plan = Plan::chosen(&Selection {
            sizes: vec![4096, 8192],
            threads: vec![1, 2],
            ..Selection::default()
        });
        let results = results(&plan);
        let sections = sections(&results);
        let other = sections.last().unwrap();
        assert_eq!((other.axis, other.rows.len()), ("other", 1));
        assert_eq!(other.rows[0].0, "overwrite fdatasync 4K 2-threads-shared");
    }
}
