//! The results in the order in which people read them: one axis at a time.
//!
//! The terminal's tables and the report's charts are made from these sections, so that both show the
//! same. Allocation, chunk and method are varied at one size, the *centre*: the one at which most was
//! measured.

use landfall_os::StreamMethod;

use super::{Strategy, StrategyResult, StreamResults};
use landfall_os::humanize::bytes_text;

/// Strategies that differ along one axis, for each method on its own unless the axis is the method.
#[derive(Clone, Debug)]
pub struct Section<'a> {
    /// The axis, as one word for programs: `size`, `method`, `allocation`, `chunk` or `other`.
    pub axis: &'static str,
    /// What is varied, and what is not.
    pub title: String,
    /// The value on the axis and the strategy that has it, method by method.
    pub rows: Vec<(String, &'a StrategyResult)>,
}

/// Cuts results into sections; strategies that fit none come last, under their keys.
pub fn sections(results: &StreamResults) -> Vec<Section<'_>> {
    let strategies = &results.strategies;
    let Some(centre) = centre_size(strategies) else {
        return Vec::new();
    };
    let mut sections = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    for axis in &AXES {
        let rows = rows_of(axis, strategies, centre);
        if rows.is_empty() {
            continue;
        }
        shown.extend(rows.iter().map(|(_, strategy)| strategy.key.as_str()));
        sections.push(Section {
            axis: axis.name,
            title: title(axis, &rows),
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

/// The size at which most strategies are, and the larger one of equals.
pub(crate) fn centre_size(strategies: &[StrategyResult]) -> Option<u64> {
    let sizes = strategies.iter().map(|strategy| strategy.size);
    sizes.max_by_key(|size| (strategies.iter().filter(|s| s.size == *size).count(), *size))
}

struct Axis {
    name: &'static str,
    title: &'static str,
    /// Whether strategies of every size are on it, or only those of the centre.
    any_size: bool,
    any_allocation: bool,
    any_chunk: bool,
    /// Whether methods stand beside each other, or each of them has an axis of its own.
    any_method: bool,
    /// The strategy's value on this axis.
    label: fn(&StrategyResult) -> String,
    /// Where the value belongs on the axis; equal values stay in plan order.
    order: fn(&StrategyResult) -> u64,
}

const AXES: [Axis; 4] = [
    Axis {
        name: "size",
        title: "By size of the state",
        any_size: true,
        any_allocation: false,
        any_chunk: false,
        any_method: false,
        label: |s| bytes_text(s.size),
        order: |s| s.size,
    },
    Axis {
        name: "method",
        title: "By method",
        any_size: false,
        any_allocation: false,
        any_chunk: false,
        any_method: true,
        label: |s| s.method.clone(),
        order: |_| 0,
    },
    Axis {
        name: "allocation",
        title: "By allocation",
        any_size: false,
        any_allocation: true,
        any_chunk: false,
        any_method: false,
        label: |s| s.allocation.clone(),
        order: |_| 0,
    },
    Axis {
        name: "chunk",
        title: "By chunk",
        any_size: false,
        any_allocation: false,
        any_chunk: true,
        any_method: false,
        label: |s| bytes_text(s.chunk),
        order: |s| s.chunk,
    },
];

fn rows_of<'a>(
    axis: &Axis,
    strategies: &'a [StrategyResult],
    centre: u64,
) -> Vec<(String, &'a StrategyResult)> {
    let fits: Vec<&StrategyResult> = strategies
        .iter()
        .filter(|strategy| {
            (axis.any_size || strategy.size == centre)
                && (axis.any_allocation || has_usual_allocation(strategy, strategies))
                && (axis.any_chunk || has_usual_chunk(strategy, strategies))
        })
        .collect();
    let mut groups: Vec<(&str, Vec<&StrategyResult>)> = Vec::new();
    for strategy in fits {
        let name = if axis.any_method {
            ""
        } else {
            &strategy.method
        };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, group)) => group.push(strategy),
            None => groups.push((name, vec![strategy])),
        }
    }
    // A single value is no axis.
    groups.retain(|(_, group)| group.len() > 1);
    let several = groups.len() > 1;
    let mut rows = Vec::new();
    for (name, mut group) in groups {
        group.sort_by_key(|strategy| (axis.order)(strategy));
        rows.extend(group.into_iter().map(|strategy| {
            let value = (axis.label)(strategy);
            let label = if several {
                format!("{name}, {value}")
            } else {
                value
            };
            (label, strategy)
        }));
    }
    rows
}

/// What is varied, and what all rows have in common.
fn title(axis: &Axis, rows: &[(String, &StrategyResult)]) -> String {
    let fixed: Vec<String> = [
        |s: &StrategyResult| bytes_text(s.size),
        |s: &StrategyResult| s.method.clone(),
        |s: &StrategyResult| s.allocation.clone(),
        |s: &StrategyResult| format!("chunks of {}", bytes_text(s.chunk)),
    ]
    .iter()
    .filter_map(|value| {
        let mut values = rows.iter().map(|(_, strategy)| value(strategy));
        let first = values.next()?;
        values.all(|other| other == first).then_some(first)
    })
    .collect();
    if fixed.is_empty() {
        axis.title.to_owned()
    } else {
        format!("{} ({})", axis.title, fixed.join(", "))
    }
}

/// Whether a strategy has the allocation that is usual for its method; where the user chose others
/// only, the first of them.
fn has_usual_allocation(strategy: &StrategyResult, all: &[StrategyResult]) -> bool {
    let mapped = strategy
        .method
        .parse()
        .is_ok_and(|method: StreamMethod| method.is_mapped());
    let usual = if mapped { "sparse" } else { "append" };
    let mut twins = all.iter().filter(|other| other.method == strategy.method);
    let chosen = if twins.clone().any(|other| other.allocation == usual) {
        Some(usual)
    } else {
        twins.next().map(|first| first.allocation.as_str())
    };
    chosen == Some(strategy.allocation.as_str())
}

/// Whether a strategy has the chunk that is used unless chosen; where the user chose others only, the
/// first of them.
fn has_usual_chunk(strategy: &StrategyResult, all: &[StrategyResult]) -> bool {
    let is_usual = |s: &StrategyResult| s.chunk == Strategy::CHUNK.min(s.size);
    let mut twins = all.iter().filter(|other| other.method == strategy.method);
    if twins.clone().any(is_usual) {
        is_usual(strategy)
    } else {
        twins
            .next()
            .is_some_and(|first| first.chunk == strategy.chunk)
    }
}

#[cfg(test)]
mod tests {
    use landfall_os::Allocation;

    use super::*;
    use crate::stream::fixtures::{measured, stream_results};
    use crate::stream::{Plan, Selection};

    fn results(plan: &Plan) -> StreamResults {
        let (strategies, _) = plan.strategies(&plan.sizes());
        let measured = |strategy: Strategy| measured(strategy, &[(1_000.0, 100.0)]);
        StreamResults {
            strategies: strategies.into_iter().map(measured).collect(),
            ..stream_results()
        }
    }

    fn shape(results: &StreamResults) -> Vec<(&'static str, usize)> {
        let shape = |section: &Section<'_>| (section.axis, section.rows.len());
        sections(results).iter().map(shape).collect()
    }

    #[test]
    fn the_standard_plan_falls_into_four_sections_and_nothing_is_left() {
        let results = results(&Plan::standard());
        assert_eq!(
            shape(&results),
            [
                ("size", 30),
                ("method", 7),
                ("allocation", 10),
                ("chunk", 4)
            ]
        );
        let sections = sections(&results);
        assert_eq!(sections[0].rows[0].0, "write, 128 MiB");
        assert_eq!(sections[0].rows[6].0, "paced, 128 MiB");
        assert_eq!(
            sections[1].title, "By method (512 MiB, chunks of 1 MiB)",
            "a mapping has another allocation"
        );
        assert_eq!(sections[2].rows[9].0, "mmap, overwrite");
        assert_eq!(sections[3].title, "By chunk (512 MiB, write, append)");
        assert_eq!(sections[3].rows[0].0, "64 KiB");
    }

    #[test]
    fn the_short_plan_varies_the_rest_at_its_smallest_size() {
        let results = results(&Plan::short());
        assert_eq!(
            shape(&results),
            [("size", 9), ("method", 7), ("allocation", 10)]
        );
        assert!(sections(&results)[1].title.contains("128 MiB"));
    }

    #[test]
    fn what_fits_no_axis_is_shown_under_its_name() {
        let results = results(&Plan::chosen(Selection {
            sizes: vec![1 << 20, 8 << 20],
            methods: vec![StreamMethod::WRITE],
            chunks: vec![64 << 10, 1 << 20],
            ..Selection::default()
        }));
        assert_eq!(shape(&results), [("size", 2), ("chunk", 2), ("other", 1)]);
        let sections = sections(&results);
        assert_eq!(sections[2].rows[0].0, "append write 1M chunk-64K");
    }

    #[test]
    fn what_the_user_chose_instead_of_the_usual_is_the_usual() {
        let results = results(&Plan::chosen(Selection {
            allocations: vec![Allocation::Overwrite],
            chunks: vec![64 << 10],
            ..Selection::default()
        }));
        assert_eq!(shape(&results), [("size", 12), ("method", 2)]);
    }

    #[test]
    fn nothing_falls_into_nothing() {
        let mut results = stream_results();
        results.strategies.truncate(1);
        assert_eq!(shape(&results), [("other", 1)]);
        results.strategies.clear();
        assert!(sections(&results).is_empty());
    }
}
