//! The picture of a fleet: a dot for each disk, a row for each model.

use landfall_results::view::chart::{Chart, Dot, DotRow, Dots, Drawing, Named, is_wide};

use crate::fleet::{By, Fleet, Group};

/// More rows are no picture any more: the models with most disks are drawn.
const MOST_ROWS: usize = 24;

/// A figure of all disks, by model; those that differ in it are named.
pub(super) fn by_model(fleet: &Fleet, figure: usize) -> Option<Chart> {
    let of_figure = |group: &&Group| group.get(figure).is_some();
    let models = fleet.groups.iter().filter(|one| one.by == By::Model);
    let mut models: Vec<&Group> = models.filter(of_figure).collect();
    models.sort_by_key(|group| std::cmp::Reverse(group.disks));
    models.truncate(MOST_ROWS);
    let rows = models.into_iter().filter_map(|model| {
        let median = model.get(figure)?.estimate;
        let dots = fleet.disks.iter().enumerate().filter_map(|(index, disk)| {
            let value = disk.get(figure)?.estimate.median;
            (disk.identity.model == model.name).then(|| Dot {
                value,
                label: disk.label.clone(),
                named: named(fleet, index, figure),
            })
        });
        let dots: Vec<Dot> = dots.collect();
        let label = format!("{} ({})", model.name, dots.len());
        Some(DotRow::new(label, median, dots))
    });
    let rows: Vec<DotRow> = rows.collect();
    let values = rows
        .iter()
        .flat_map(|row| row.dots.iter().map(|dot| dot.value));
    let is_wide = is_wide(values) || rows.len() > 1;
    let dots = Dots {
        unit: fleet.figures[figure].metric.description().label.into(),
        log: is_wide,
        rows,
    };
    Chart::new(format!("disks-{figure}"), Drawing::Dots(dots)).if_any()
}

/// How a disk differs in a figure, if it does.
fn named(fleet: &Fleet, disk: usize, figure: usize) -> Option<Named> {
    let outlier = fleet.outliers.iter().find(|one| one.disk == disk)?;
    let mut deviations = outlier.deviations.iter();
    let deviation = deviations.find(|one| one.figure == figure)?;
    Some(if deviation.slowness > 1.0 {
        Named::Worse
    } else {
        Named::Better
    })
}
