//! What a durable write costs here, on one screen: the cheapest safe way, and what the other choices change.
//!
//! Ratios are to the first row, formed round by round. Nothing that is not meant to be durable, or lost something when the
//! power was cut, stands first.

use landfall_os::Allocation;
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};
use landfall_results::{Axes, Axis, Files, Metric, Series};

use super::prose::{count, rounded};
use crate::Results;
use crate::numbers::{NOTHING, thousands, two};
use crate::sync::safety::{Safety, Timed, is_comparable, lost_states, safety, timed, way};
use crate::sync::{Strategy, SyncResults};

/// The answer; nothing where no durable write was measured.
pub(crate) fn answer(results: &Results, sync: &SyncResults) -> Option<Vec<Block>> {
    let lead = Lead::of(sync)?;
    let meant = if results.is_in_doubt() {
        "write that is meant to be durable"
    } else {
        "durable write"
    };
    let size = lead.series.axes.text(Axis::Size);
    let cheapest = if lead.ties > 0 {
        "cheapest, tied"
    } else {
        "cheapest"
    };
    let mut rows = vec![lead.row(way(lead.series), lead.series, cheapest)];
    let mut notes: Vec<String> = lead.standing().into_iter().collect();
    if let Some(append) = lead.append(sync) {
        let more = lead.more_of(append);
        rows.push(lead.row(way(append), append, &more.remark()));
        notes.extend(lead.why_append(append, &more, results));
    }
    if let Some((one, many)) = lead.threads(sync) {
        rows.push(lead.row(threads(many), many, sharing(one, many)));
    }
    if let Some(unsafe_one) = lead.fastest_unsafe(sync) {
        rows.push(lead.row(way(unsafe_one), unsafe_one, &danger(unsafe_one)));
    }
    let columns = ["a second", "ratio", "µs", "writes", "flushes"];
    let mut columns: Vec<Column> = columns.map(Column::new).into();
    columns.push(Column::text(""));
    let title = format!("One {meant} of {size}");
    let mut table = Table::new(title.clone(), title, columns).with_rows(rows);
    notes.into_iter().for_each(|note| table.note(note));
    Some(vec![Block::Table(table)])
}

/// The way that stands first, and those that cannot be told from it.
struct Lead<'a> {
    series: &'a Series,
    /// How many others are as fast, by their intervals.
    ties: usize,
    is_proven: bool,
}

impl<'a> Lead<'a> {
    /// The fastest safe way; of those that cannot be told from it the plain one, overwriting with fdatasync, if it is among
    /// them.
    fn of(sync: &'a SyncResults) -> Option<Lead<'a>> {
        let is_proven = timed(sync).any(|(series, _)| safety(series) != Safety::NotProven);
        let is_safe = |(series, _): &Timed<'_>| {
            series.axes.is_durable() && (!is_proven || safety(series) == Safety::LostNothing)
        };
        let baseline = Axes::from(Strategy::BASELINE);
        let safe: Vec<Timed<'a>> = timed(sync).filter(is_safe).collect();
        let plain = safe.iter().find(|(series, _)| series.axes == baseline);
        let (centre, _) = plain.or(safe.first())?;
        let mut rivals: Vec<Timed<'a>> = safe
            .iter()
            .filter(|(series, _)| is_comparable(series, centre))
            .copied()
            .collect();
        rivals.sort_by(|(_, a), (_, b)| b.median.total_cmp(&a.median));
        let fastest = *rivals.first()?;
        let has_spread = fastest.0.trials.len() > 1;
        rivals.retain(|(_, rate)| !has_spread || rate.high >= fastest.1.low);
        let plain = rivals.iter().find(|(series, _)| series.axes == baseline);
        Some(Lead {
            series: plain.filter(|_| has_spread).unwrap_or(&fastest).0,
            ties: if has_spread { rivals.len() - 1 } else { 0 },
            is_proven,
        })
    }

    /// What is to be known of the first row: that others are as fast, and what it was proven by.
    fn standing(&self) -> Option<String> {
        if self.series.trials.len() < 2 {
            return Some("One round cannot say how far chance moved these figures.".to_owned());
        }
        let tie = match self.ties {
            0 => None,
            1 => Some("One other way is as fast within the noise.".to_owned()),
            some => Some(format!(
                "{some} other ways are as fast within the noise (--tables)."
            )),
        };
        let proof = self.is_proven.then(|| {
            format!(
                "The cheapest lost acknowledged writes in {}.",
                lost_states(self.series)
            )
        });
        let said: Vec<String> = [proof, tie].into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// A series beside the first row.
    fn row(&self, label: String, series: &Series, remark: &str) -> Row {
        let ratio = series.ratio(self.series, Metric::OpsPerSecond);
        let ratio = ratio.map_or_else(
            || NOTHING.to_owned(),
            |ratio| format!("{}×", short(ratio.median)),
        );
        let is_safe = series.axes.is_durable() && safety(series) != Safety::Lost;
        let tone = match (series.key == self.series.key, is_safe) {
            (true, _) => Tone::Good,
            (false, true) => Tone::Plain,
            (false, false) => Tone::Bad,
        };
        let count = |metric| match series.median(metric) {
            Some(count) => rounded(count),
            None => NOTHING.to_owned(),
        };
        Row::of(
            label,
            [
                series.text(Metric::OpsPerSecond).into(),
                ratio.into(),
                series.text(Metric::P50Us).into(),
                count(Metric::Writes).into(),
                count(Metric::Flushes).into(),
                Cell::toned(tone, remark),
            ],
        )
    }

    /// Appending, otherwise as the first row, or else by the usual call.
    fn append(&self, sync: &'a SyncResults) -> Option<&'a Series> {
        let appends = |series: &&Series| {
            series.is_measured()
                && series.axes.allocation == Some(Allocation::Append)
                && series.axes.is_durable()
                && is_comparable(series, self.series)
        };
        let all = || sync.series.iter().filter(appends);
        let same_call = self.series.axes.without(Axis::Allocation);
        let same = all().find(|one| one.axes.without(Axis::Allocation) == same_call);
        same.or_else(|| all().next())
            .filter(|one| one.key != self.series.key)
    }

    /// What it costs the device beyond the first row.
    fn more_of(&self, series: &Series) -> More {
        let more = |metric| {
            let more = series.median(metric)? - self.series.median(metric)?;
            Some(more).filter(|more| *more >= 0.5)
        };
        More {
            writes: more(Metric::Writes),
            flushes: more(Metric::Flushes),
        }
    }

    /// Why appending costs more, by what was counted.
    fn why_append(&self, append: &Series, more: &More, results: &Results) -> Option<String> {
        let ratio = append.ratio(self.series, Metric::OpsPerSecond)?;
        if append.trials.len() > 1 && ratio.high >= 1.0 {
            return Some("Appending is not shown to cost more here.".to_owned());
        }
        let is_counted = more.writes.is_some() || more.flushes.is_some();
        let what = match results.filesystem.storage().journal {
            Some(true) => "commits that to the journal",
            _ => "writes its metadata too",
        };
        is_counted.then(|| format!("Appending costs more: the file grows, and each sync {what}."))
    }

    /// One thread and the number of threads that writes most, with the same call.
    fn threads(&self, sync: &'a SyncResults) -> Option<(&'a Series, &'a Series)> {
        let rate = |series: &Series| series.median(Metric::OpsPerSecond);
        let many = timed(sync)
            .map(|(series, _)| series)
            .filter(|series| series.axes.is_durable() && series.axes.threads > Some(1))
            .filter(|series| series.axes.size == self.series.axes.size)
            .max_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)))?;
        let fixed = many.axes.without(Axis::Threads);
        let mut all = sync.series.iter();
        let one = all
            .find(|one| one.axes.without(Axis::Threads) == fixed && one.axes.threads == Some(1))?;
        Some((one, many))
    }

    /// The fastest that is not safe and faster than the first row.
    fn fastest_unsafe(&self, sync: &'a SyncResults) -> Option<&'a Series> {
        let is_unsafe = |series: &&Series| {
            let is_durable = series.axes.is_durable();
            is_comparable(series, self.series) && (!is_durable || safety(series) == Safety::Lost)
        };
        let unsafe_ones = timed(sync).map(|(series, _)| series).filter(is_unsafe);
        let rate = |series: &Series| series.median(Metric::OpsPerSecond).unwrap_or(0.0);
        unsafe_ones
            .max_by(|a, b| rate(a).total_cmp(&rate(b)))
            .filter(|one| rate(one) > rate(self.series))
    }
}

/// How many threads, and whether they share a file.
fn threads(series: &Series) -> String {
    let count = series.axes.threads.unwrap_or(1);
    match series.axes.files {
        Some(Files::Each) => format!("{count} threads, a file each"),
        _ => format!("{count} threads, one file"),
    }
}

/// What several threads make of their flushes.
fn sharing(one: &Series, many: &Series) -> &'static str {
    let flushes = many.median(Metric::Flushes);
    match flushes.zip(one.median(Metric::Flushes)) {
        Some((many, one)) if many < 0.9 * one => "flushes shared",
        Some((_, one)) if one >= 0.5 => "none shared",
        _ => "",
    }
}

/// Why a way is not safe.
fn danger(series: &Series) -> String {
    match (safety(series), &series.proof) {
        (Safety::Lost, Some(proof)) => format!(
            "unsafe: lost in {} of {}",
            thousands(proof.losing as f64),
            thousands(proof.states as f64)
        ),
        // What was not caught, or not tried, is still not meant to be durable.
        _ => "unsafe".to_owned(),
    }
}

/// What a way costs the device beyond another one; nothing of less than half a write or flush.
struct More {
    writes: Option<f64>,
    flushes: Option<f64>,
}

impl More {
    fn remark(&self) -> String {
        match (self.writes, self.flushes) {
            (_, Some(flushes)) => format!("{} more", count(flushes, "flush")),
            (Some(writes), None) => format!("{} more", count(writes, "write")),
            (None, None) => String::new(),
        }
    }
}

/// Two digits, more only where they are before the point.
fn short(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 9.95 => thousands(ratio),
        ratio if ratio >= 0.995 => format!("{ratio:.1}"),
        ratio => two(ratio),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::{measured, results, sync_results};
    use landfall_os::{SyncCall, SyncMethod};

    const FSYNC: SyncMethod = SyncMethod::buffered(SyncCall::Fsync);
    const NONE: SyncMethod = SyncMethod::buffered(SyncCall::None);
    const RATES: [f64; 5] = [1_000.0, 1_010.0, 990.0, 1_005.0, 995.0];

    fn by(strategy: Strategy, factor: f64, writes: f64, flushes: f64) -> Series {
        measured(strategy, &RATES.map(|rate| rate * factor), writes, flushes)
    }

    fn said(series: Vec<Series>) -> (Vec<String>, String) {
        let results = results(Vec::new());
        let blocks = answer(&results, &sync_results(series)).expect("an answer");
        let [Block::Table(table)] = blocks.as_slice() else {
            panic!("one table, not {blocks:?}");
        };
        let heads = table.rows.iter().map(|row| match row {
            Row::Cells { head, cells } => {
                let remark = cells.last().map_or("", |cell| &cell.text);
                format!("{}: {remark}", head.text)
            }
            other => format!("{other:?}"),
        });
        (heads.collect(), table.notes.join("\n"))
    }

    #[test]
    fn the_plain_way_leads_those_that_cannot_be_told_from_it() {
        let (rows, text) = said(vec![
            by(Strategy::BASELINE, 1.0, 1.0, 1.0),
            by(Strategy::BASELINE.synced(FSYNC), 1.004, 1.0, 1.0),
            by(
                Strategy::BASELINE.allocated(Allocation::Append),
                0.5,
                3.0,
                2.0,
            ),
            by(
                Strategy {
                    threads: 16,
                    ..Strategy::BASELINE
                },
                4.0,
                1.0,
                0.3,
            ),
            by(Strategy::BASELINE.synced(NONE), 90.0, 0.0, 0.0),
        ]);
        assert_eq!(
            rows,
            [
                "overwrite with fdatasync: cheapest, tied",
                "append with fdatasync: 1 flush more",
                "16 threads, one file: flushes shared",
                "overwrite, not synced: unsafe",
            ]
        );
        assert!(
            text.starts_with("One other way is as fast within the noise."),
            "{text}"
        );
        assert!(
            text.ends_with("each sync writes its metadata too."),
            "{text}"
        );
    }

    #[test]
    fn what_is_faster_beyond_doubt_leads() {
        let (rows, text) = said(vec![
            by(Strategy::BASELINE, 1.0, 1.0, 1.0),
            by(Strategy::BASELINE.synced(FSYNC), 2.0, 1.0, 1.0),
        ]);
        assert_eq!(rows, ["overwrite with fsync: cheapest"]);
        assert_eq!(text, "");
    }

    #[test]
    fn what_lost_something_never_leads() {
        use crate::sync::fixtures::{losing, proven};
        let (rows, text) = said(vec![
            proven(by(Strategy::BASELINE, 1.0, 1.0, 1.0), 300),
            losing(by(Strategy::BASELINE.synced(FSYNC), 2.0, 1.0, 1.0), 7, 300),
        ]);
        assert_eq!(
            rows,
            [
                "overwrite with fdatasync: cheapest",
                "overwrite with fsync: unsafe: lost in 7 of 300"
            ]
        );
        assert!(text.contains("in 0 of 300 crash states"), "{text}");
    }
}
