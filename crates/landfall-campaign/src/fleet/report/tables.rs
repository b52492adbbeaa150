//! Tables of disks and groups.

use landfall_results::numbers::{NOTHING, interval, thousands};
use landfall_results::stats::Estimate;
use landfall_results::view::{Cell, Column, Row, Table, Tone};

use super::sentences::capital;
use super::{Shown, sentences};
use crate::fleet::outlier::times;
use crate::fleet::{By, Fleet};

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
                interval(&estimate, print).into(),
            ],
            None => [NOTHING.into(), NOTHING.into()],
        }
    });
    pairs.collect()
}

/// Disks grouped by one thing, with the median of a series over each group.
pub(super) fn groups(fleet: &Fleet, shown: &Shown, by: By) -> Table {
    let rows = fleet
        .groups
        .iter()
        .filter(|group| group.by == by)
        .map(|group| {
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
        for (at, deviation) in outlier.deviations.iter().enumerate() {
            let figure = &fleet.figures[deviation.figure];
            let head = if at == 0 { outlier.label.as_str() } else { "" };
            let name = figure.metric.description().heading;
            let others = &deviation.others;
            let others = format!(
                "{} [{}, {}]",
                figure.number(others.median),
                figure.number(others.low),
                figure.number(others.high)
            );
            let cells = [
                sentences::kind(outlier.kind).into(),
                format!("{}, {name}", figure.what).into(),
                figure.number(deviation.value).into(),
                others.into(),
                Cell::toned(Tone::Doubt, times(deviation.slowness)),
                format!("{} {}", deviation.count, outlier.peers.text()).into(),
            ];
            rows.push(Row::of::<Cell>(head, cells));
        }
    }
    let columns = vec![
        Column::text("differs"),
        Column::text("in"),
        Column::new("its own"),
        Column::new("the others'"),
        Column::new("times as slow"),
        Column::text("compared with"),
    ];
    Table::new("Outliers, with every figure that differs", "Disk", columns).with_rows(rows)
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
