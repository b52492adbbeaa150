//! Tables that every experiment has.

use landfall_results::view::{Block, Column, Row, Table};
use landfall_results::{Series, numbers};

/// Those that could not be measured, by key, and why; nothing if all were.
pub(super) fn unmeasured(series: &[Series]) -> Option<Table> {
    let missing = series.iter().filter(|one| !one.is_measured());
    let rows: Vec<Row> = missing
        .map(|one| {
            let reason = one.unsupported.as_deref();
            Row::without(&one.key, reason.unwrap_or(numbers::NOTHING))
        })
        .collect();
    let caption = "Strategies of the plan that could not be measured";
    (!rows.is_empty())
        .then(|| Table::new(caption, "Strategy", vec![Column::new("Why")]).with_rows(rows))
}

/// What preparations cost, which no figure of a trial holds: what, how much was written, and the seconds that took;
/// nothing if there were none.
pub(super) fn preparation(caption: &str, rows: Vec<Row>) -> Option<Table> {
    let columns = vec![Column::new("written"), Column::new("seconds")];
    (!rows.is_empty()).then(|| Table::new(caption, "What", columns).with_rows(rows))
}

/// The same as a sentence.
pub(super) fn preparation_sentence(table: Option<Table>) -> Option<Block> {
    let rows = table?.rows;
    let costs = rows.iter().filter_map(|row| match row {
        Row::Cells { head, cells } => {
            let [written, seconds] = cells.as_slice() else {
                return None;
            };
            let (what, written) = (&head.text, &written.text);
            Some(format!("{what}: {written} in {} s", seconds.text))
        }
        Row::Group(_) | Row::Without { .. } => None,
    });
    let costs: Vec<String> = costs.collect();
    let sentence = format!(
        "Preparation, in none of these figures: {}.",
        costs.join("; ")
    );
    Block::prose(1, [sentence])
}
