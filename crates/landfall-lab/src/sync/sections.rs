//! The results in the order in which people read them: one axis at a time around a centre.
//!
//! The terminal's tables and the report's charts are made from these sections, so that both show the
//! same.

use landfall_results::{Axes, Axis};

use super::{Strategy, SyncResults};
use crate::section::{Section, rest};

/// Cuts results into sections; strategies that fit none come last, under their keys.
pub fn sections(results: &SyncResults) -> Vec<Section<'_>> {
    let series = &results.series;
    let baseline = Axes::from(Strategy::BASELINE);
    let centre = series.iter().find(|one| one.axes == baseline);
    let Some(centre) = centre.or(series.first()) else {
        return Vec::new();
    };
    let mut sections = Vec::new();
    for (axis, title) in AXES {
        let fixed = centre.axes.without(axis);
        let mut found: Vec<_> = series
            .iter()
            .filter(|one| one.axes.without(axis) == fixed)
            .collect();
        if found.len() < 2 {
            continue;
        }
        found.sort_by_key(|one| one.axes.position(axis));
        let fixed: Vec<String> = AXES
            .iter()
            .filter(|(other, _)| *other != axis)
            .filter_map(|(other, _)| {
                let text = centre.axes.text(*other);
                // One write after the other goes without saying.
                (*other != Axis::Pages || text != baseline.text(Axis::Pages)).then_some(text)
            })
            .collect();
        sections.push(Section {
            axis: Some(axis),
            title: format!("{title} ({})", fixed.join(", ")),
            rows: found
                .into_iter()
                .map(|one| (one.axes.text(axis), one))
                .collect(),
            is_grouped: false,
            in_memory: false,
        });
    }
    let rest = rest(series, &sections);
    sections.extend(rest);
    sections
}

const AXES: [(Axis, &str); 5] = [
    (Axis::Allocation, "By allocation"),
    (Axis::Method, "By sync method"),
    (Axis::Size, "By size of a write"),
    (Axis::Threads, "By threads"),
    (Axis::Pages, "By pages touched"),
];

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
            .map(|section| (section.name(), section.rows.len()))
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
        assert_eq!((other.name(), other.rows.len()), ("other", 1));
        assert_eq!(other.rows[0].0, "overwrite fdatasync 4K 2-threads-shared");
    }
}
