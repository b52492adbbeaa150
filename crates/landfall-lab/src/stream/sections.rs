//! The results in the order in which people read them: one axis at a time.
//!
//! The terminal's tables and the report's charts are made from these sections, so that both show the
//! same. Allocation, chunk and method are varied at one size, the *centre*: the one at which most was
//! measured.

use landfall_os::{Allocation, StreamMethod};
use landfall_results::{Axis, Series};

use super::StreamResults;
use crate::section::{Section, rest};

/// Cuts results into sections; strategies that fit none come last, under their keys.
pub fn sections(results: &StreamResults) -> Vec<Section<'_>> {
    let series = &results.series;
    let Some(centre) = centre_size(series) else {
        return Vec::new();
    };
    let mut sections = Vec::new();
    for (axis, title) in AXES {
        let (rows, is_grouped) = rows_of(axis, series, centre);
        if !rows.is_empty() {
            sections.push(Section {
                axis: Some(axis),
                title: format!("{title}{}", in_common(&rows)),
                rows,
                is_grouped,
                in_memory: false,
            });
        }
    }
    let rest = rest(series, &sections);
    sections.extend(rest);
    sections
}

/// The size at which most strategies are, and the larger one of equals.
pub(crate) fn centre_size<'a>(series: impl IntoIterator<Item = &'a Series>) -> Option<u64> {
    let sizes: Vec<u64> = series.into_iter().filter_map(|one| one.axes.size).collect();
    let sizes = || sizes.iter().copied();
    sizes().max_by_key(|size| (sizes().filter(|other| other == size).count(), *size))
}

const AXES: [(Axis, &str); 4] = [
    (Axis::Size, "By size of the state"),
    (Axis::Method, "By method"),
    (Axis::Allocation, "By allocation"),
    (Axis::Chunk, "By chunk"),
];

/// What is on an axis around the centre, for each method on its own unless the axis is the method; and whether
/// there are several methods, which labels then begin with.
fn rows_of(axis: Axis, series: &[Series], centre: u64) -> (Vec<(String, &Series)>, bool) {
    let fits = series.iter().filter(|one| {
        (axis == Axis::Size || one.axes.size == Some(centre))
            && (axis == Axis::Allocation || has_usual_allocation(one, series))
            && (axis == Axis::Chunk || has_usual_chunk(one, series))
    });
    let mut groups: Vec<(Option<StreamMethod>, Vec<&Series>)> = Vec::new();
    for one in fits {
        let method = one.axes.stream_method.filter(|_| axis != Axis::Method);
        match groups.iter_mut().find(|(known, _)| *known == method) {
            Some((_, group)) => group.push(one),
            None => groups.push((method, vec![one])),
        }
    }
    // A single value is no axis.
    groups.retain(|(_, group)| group.len() > 1);
    let is_grouped = groups.len() > 1;
    let mut rows = Vec::new();
    for (_, mut group) in groups {
        group.sort_by_key(|one| one.axes.position(axis));
        rows.extend(group.into_iter().map(|one| {
            let value = one.axes.text(axis);
            let label = if is_grouped {
                format!("{}, {value}", one.axes.text(Axis::Method))
            } else {
                value
            };
            (label, one)
        }));
    }
    (rows, is_grouped)
}

/// What all rows have in common.
fn in_common(rows: &[(String, &Series)]) -> String {
    let fixed: Vec<String> = [Axis::Size, Axis::Method, Axis::Allocation, Axis::Chunk]
        .into_iter()
        .filter_map(|axis| {
            let mut values = rows.iter().map(|(_, one)| one.axes.text(axis));
            let first = values.next()?;
            values.all(|other| other == first).then(|| match axis {
                Axis::Chunk => format!("chunks of {first}"),
                _ => first,
            })
        })
        .collect();
    if fixed.is_empty() {
        String::new()
    } else {
        format!(" ({})", fixed.join(", "))
    }
}

/// Whether a strategy has the allocation that is usual for its method; where the user chose others
/// only, the first of them.
fn has_usual_allocation(one: &Series, all: &[Series]) -> bool {
    let mapped = one.axes.stream_method.is_some_and(StreamMethod::is_mapped);
    let usual = Some(if mapped {
        Allocation::Sparse
    } else {
        Allocation::Append
    });
    let mut twins = twins(one, all).map(|twin| twin.axes.allocation);
    let chosen = if twins.clone().any(|other| other == usual) {
        usual
    } else {
        twins.next().flatten()
    };
    one.axes.allocation == chosen
}

/// Whether a strategy has the chunk that is used unless chosen; where the user chose others only, the
/// first of them.
fn has_usual_chunk(one: &Series, all: &[Series]) -> bool {
    let mut twins = twins(one, all);
    if twins.clone().any(|twin| twin.axes.has_usual_chunk()) {
        one.axes.has_usual_chunk()
    } else {
        twins
            .next()
            .is_some_and(|first| first.axes.chunk == one.axes.chunk)
    }
}

/// Those of the same method.
fn twins<'a>(one: &Series, all: &'a [Series]) -> impl Iterator<Item = &'a Series> + Clone {
    let method = one.axes.stream_method;
    all.iter()
        .filter(move |twin| twin.axes.stream_method == method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::fixtures::{measured, stream_results};
    use crate::stream::{Plan, Selection, Strategy};

    fn results(plan: &Plan) -> StreamResults {
        let (strategies, _) = plan.strategies(&plan.sizes());
        let measured = |strategy: Strategy| measured(strategy, &[(1_000.0, 100.0)]);
        StreamResults {
            series: strategies.into_iter().map(measured).collect(),
            ..stream_results()
        }
    }

    fn shape(results: &StreamResults) -> Vec<(&'static str, usize)> {
        let shape = |section: &Section<'_>| (section.name(), section.rows.len());
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
        results.series.truncate(1);
        assert_eq!(shape(&results), [("other", 1)]);
        results.series.clear();
        assert!(sections(&results).is_empty());
    }
}
