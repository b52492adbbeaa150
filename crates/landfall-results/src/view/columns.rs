//! Tables of series: a row for each, and columns that know what they take of it.

use super::table::{Cell, Column, Row, Table};
use crate::numbers::{NOTHING, interval};
use crate::stats::Spread;
use crate::{Metric, Series};

type Take = Box<dyn Fn(&Series) -> Cell>;

/// A column, and what stands in it of a series.
pub struct SeriesColumn {
    column: Column,
    take: Take,
}

impl SeriesColumn {
    /// A column of figures that no metric gives by itself.
    pub fn new<T: Into<Cell>>(
        heading: &'static str,
        take: impl Fn(&Series) -> T + 'static,
    ) -> SeriesColumn {
        SeriesColumn {
            column: Column::new(heading),
            take: Box::new(move |series| take(series).into()),
        }
    }

    /// The median of a metric, under its heading.
    pub fn median(metric: Metric) -> SeriesColumn {
        SeriesColumn::new(metric.description().heading, move |series| match metric {
            Metric::Writes => series.writes_text(),
            _ => series.text(metric),
        })
    }

    /// The 95% interval of it.
    pub fn interval(metric: Metric) -> SeriesColumn {
        SeriesColumn::new("95% interval", move |series| {
            let print = metric.description().print;
            let estimate = series.estimate(metric);
            estimate.map_or_else(|| NOTHING.to_owned(), |estimate| interval(&estimate, print))
        })
    }

    /// One of what is known of the spread over the rounds.
    pub fn spread(heading: &'static str, metric: Metric, of: fn(&Spread) -> f64) -> SeriesColumn {
        SeriesColumn::new(heading, move |series| {
            let print = metric.description().print;
            let spread = series.spread(metric);
            spread.map_or_else(|| NOTHING.to_owned(), |spread| print(of(&spread)))
        })
    }

    /// The same under another heading.
    pub fn called(mut self, heading: &'static str) -> SeriesColumn {
        self.column.heading = heading.into();
        self
    }
}

/// A metric's median and, beside it, its 95% interval.
pub fn with_interval(metric: Metric) -> [SeriesColumn; 2] {
    [SeriesColumn::median(metric), SeriesColumn::interval(metric)]
}

/// A row for each series under its label; of what could not be measured, the reason.
pub fn series_table<'a, L: Into<Cell>>(
    caption: impl Into<String>,
    corner: &'static str,
    columns: impl IntoIterator<Item = SeriesColumn>,
    rows: impl IntoIterator<Item = (L, &'a Series)>,
) -> Table {
    let columns: Vec<SeriesColumn> = columns.into_iter().collect();
    let rows = rows.into_iter().map(|(label, series)| {
        let head = label.into();
        if series.is_measured() {
            let cells = columns.iter().map(|column| (column.take)(series));
            return Row::of(head, cells);
        }
        Row::without(head.text, not_measured(series))
    });
    let rows: Vec<Row> = rows.collect();
    let columns = columns.into_iter().map(|one| one.column).collect();
    Table::new(caption, corner, columns).with_rows(rows)
}

/// That a series was not measured, and why.
fn not_measured(series: &Series) -> String {
    match &series.unsupported {
        Some(reason) => format!("not measured: {reason}"),
        None => "not measured".to_owned(),
    }
}
