//! Tables of disks and groups.

use std::cmp::Reverse;

use landfall_results::numbers::{NOTHING, interval, thousands};
use landfall_results::stats::Estimate;
use landfall_results::view::{Cell, Column, Row, Table, Tone};

use super::sentences::capital;
use super::{Shown, sentences};
use crate::fleet::outlier::times;
use crate::fleet::{By, Fleet, Group};

/// Columns of a series: each figure with its interval.
fn columns(fleet: &Fleet, shown: &Shown) -> Vec<Column> {
    let figures = shown.figures.iter();
    let pairs = figures.flat_map(|number| {
        let heading = fleet.figures[*number].metric.description().heading;
        [Column::new(heading), Column::new("95% interval")]
    });
    pairs.collect()
}

fn cells(fleet: &Fleet, shown: &Shown, of: impl Fn(usize) -> Option<Estimate>) -> Vec<Cell> {
    let figures = shown.figures.iter();
    let pairs = figures.flat_map(|number| {
        let print = fleet.figures[*number].metric.description().print;
        match of(*number) {
            Some(estimate) => [
                print(estimate.median).into(),
                // One value has none.
                if estimate.low == estimate.high {
                    NOTHING.into()
                } else {
                    interval(&estimate, print).into()
                },
            ],
            None => [NOTHING.into(), NOTHING.into()],
        }
    });
    pairs.collect()
}

/// Disks grouped by one thing, with the median of a series over each group: so many groups, those of most disks first.
pub(super) fn groups(fleet: &Fleet, shown: &Shown, by: By, most: usize) -> Table {
    let groups = fleet.groups.iter().filter(|group| group.by == by);
    let mut groups: Vec<&Group> = groups.collect();
    groups.sort_by_key(|group| Reverse(group.disks));
    let rows = groups.into_iter().take(most).map(|group| {
        let of = |number| group.get(number).map(|one| one.estimate);
        let disks = Cell::from(thousands(group.disks as f64));
        let cells = cells(fleet, shown, of);
        Row::of(group.name.as_str(), std::iter::once(disks).chain(cells))
    });
    let rows: Vec<Row> = rows.collect();
    let mut all = vec![Column::new("disks")];
    all.extend(columns(fleet, shown));
    let caption = format!("{}, by {}", capital(&shown.what), by.name().to_lowercase());
    Table::new(caption, by.name(), all).with_rows(rows)
}

/// Every disk, with what was measured of a series.
pub(super) fn disks(fleet: &Fleet, shown: &Shown) -> Table {
    let rows = fleet.disks.iter().map(|disk| {
        let of = |number| disk.get(number).map(|one| one.estimate);
        let identity = &disk.identity;
        let firmware = identity.firmware.as_deref().unwrap_or(NOTHING);
        let facts = [
            &identity.model,
            firmware,
            &identity.filesystem,
            &identity.kernel,
        ];
        let facts = facts.map(Cell::from);
        Row::of(
            disk.label.as_str(),
            facts.into_iter().chain(cells(fleet, shown, of)),
        )
    });
    let rows: Vec<Row> = rows.collect();
    let mut all: Vec<Column> = ["model", "firmware", "filesystem", "kernel"]
        .map(Column::new)
        .into();
    all.extend(columns(fleet, shown));
    Table::new(
        format!("{} on each disk", capital(&shown.what)),
        "Disk",
        all,
    )
    .with_rows(rows)
}

/// Every outlier, with each figure by which it differs.
pub(super) fn outliers(fleet: &Fleet) -> Table {
    let mut rows = Vec::new();
    for outlier in &fleet.outliers {
        let kind = sentences::kind(outlier.kind);
        let count = outlier.deviations.first().map_or(0, |one| one.count);
        let group = format!(
            "{}, {kind}, compared with {count} {}",
            outlier.label,
            outlier.peers.text()
        );
        rows.push(Row::Group(group.into()));
        rows.extend(outlier.deviations.iter().map(|deviation| {
            let figure = &fleet.figures[deviation.figure];
            let others = &deviation.others;
            let print = |value| figure.number(value);
            let cells = [
                print(deviation.value).into(),
                print(others.median).into(),
                format!("{}–{}", print(others.low), print(others.high)).into(),
                Cell::toned(Tone::Doubt, times(deviation.slowness)),
            ];
            let heading = figure.metric.description().heading;
            Row::of::<Cell>(format!("{}, {heading}", figure.what), cells)
        }));
    }
    let columns = ["its own", "the others'", "95% interval", "times as slow"];
    let columns = columns.map(Column::new).into();
    Table::new(
        "Outliers, with every figure that differs",
        "Figure",
        columns,
    )
    .with_rows(rows)
}

/// Disks with a suspicious flush.
pub(super) fn suspicions(fleet: &Fleet) -> Table {
    let rows = fleet.suspicions.iter().map(|one| {
        let words = [one.model.as_str(), sentences::sign(one.sign), &one.reason];
        Row::of(one.label.as_str(), words)
    });
    let rows: Vec<Row> = rows.collect();
    let columns = ["model", "sign", "why"].map(Column::text).into();
    Table::new("Disks whose flush is suspicious", "Disk", columns).with_rows(rows)
}
