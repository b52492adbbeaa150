//! What a durable write costs here, on one screen: the fastest safe way, and what the other choices change.
//!
//! The verdict stands before the table. Ratios are to the first row, formed round by round. Nothing that is not meant to be
//! durable, or lost something when the power was cut, stands first.

use landfall_os::{Allocation, SyncMethod};
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};
use landfall_results::{Axes, Axis, Files, Metric, Series};

use super::lead::Lead;
use super::prose::{count, rounded};
use super::safety::is_at_risk;
use crate::Results;
use crate::numbers::{NOTHING, Print, interval, thousands, two};
use crate::stats::Estimate;
use crate::sync::safety::{Safety, is_comparable, safety, timed, way, ways};
use crate::sync::{Strategy, SyncResults};

/// Ways that are as fast as the first row and named.
const MOST_TIES: usize = 2;

/// The answer; nothing where no durable write was measured.
pub(crate) fn answer(results: &Results, sync: &SyncResults) -> Option<Vec<Block>> {
    let lead = Lead::of(sync)?;
    // What was seen to lose something is worse than at risk.
    let is_at_risk =
        |one: &Series| is_at_risk(&results.filesystem, one) && safety(one) != Safety::Lost;
    let standing_of = |one: &Series| {
        if is_at_risk(one) {
            "at risk"
        } else if !lead.is_proven && results.is_in_doubt() {
            "in doubt"
        } else {
            lead.standing_of(one)
        }
    };
    let row = |one: &Series| lead.row(way(one), one, standing_of(one));
    let mut rows = vec![row(lead.series)];
    let usual = lead.usual(sync);
    rows.extend(usual.map(row));
    let append = lead.append(sync);
    let mut verdict = lead.verdict(results);
    if is_at_risk(lead.series) || append.is_some_and(is_at_risk) {
        let risk = "At risk: synced appends and new files: with no journal fsck can drop them.";
        verdict.push((Tone::Bad, risk.to_owned()));
    }
    let mut notes = vec![lead.legend()];
    notes.extend(lead.ties());
    notes.extend(usual.and_then(|usual| lead.why_usual(usual)));
    if let Some(append) = append {
        rows.push(row(append));
        notes.extend(lead.why_append(append, results));
    }
    if !results.filesystem.storage().copy_on_write {
        notes.extend(lead.in_databases(usual, append, rows.len()));
    }
    if let Some((one, many)) = lead.threads(sync) {
        let label = lead.threads_label(one, many, usual);
        rows.push(lead.row(label, many, standing_of(many)));
        notes.extend(lead.gain(one, many, usual, rows.len()));
        notes.extend(lead.longest(many));
    }
    if let Some(unsafe_one) = lead.fastest_unsafe(sync) {
        rows.push(lead.row(way(unsafe_one), unsafe_one, "unsafe"));
        notes.extend(danger(unsafe_one));
    }
    let columns = ["a second", "× row 1", "writes", "flushes"];
    let mut columns: Vec<Column> = columns.map(Column::new).into();
    columns.push(Column::text("safety"));
    let mut title = format!("Writes of {}", lead.series.axes.text(Axis::Size));
    if lead.series.axes.threads == Some(1) {
        title += ", 1 thread";
    }
    let mut table = Table::new(title.clone(), title, columns).with_rows(rows);
    notes.into_iter().for_each(|note| table.note(note));
    let verdict = Block::Prose {
        indent: 0,
        sentences: verdict,
    };
    Some(vec![verdict, Block::Table(table)])
}

impl<'a> Lead<'a> {
    /// What the columns are.
    fn legend(&self) -> String {
        let ratio = if self.has_spread() {
            "× row 1: round by round, with its 95% interval."
        } else {
            "× row 1: of one round."
        };
        format!("{ratio} Counts: the disk's, per write.")
    }

    /// Which way is the fastest that is safe, and how far that is known.
    fn verdict(&self, results: &Results) -> Vec<(Tone, String)> {
        let rate = self.series.text(Metric::OpsPerSecond);
        let fastest = self.advice(results, &format!("{rate} a second"));
        let is_good = self.is_sure(results) && !self.is_doubtful(results);
        let tone = if is_good { Tone::Good } else { Tone::Plain };
        let mut known = self.standing(results);
        if self.proof().is_some() {
            known += " Whether this disk keeps what it flushed, only a real cut and a witness on another host can tell.";
        }
        let doubt = "Do not rely on it: see what is said of trust, below.";
        let doubt = results.is_in_doubt().then(|| (Tone::Bad, doubt.to_owned()));
        let verdict = [(tone, fastest), (Tone::Plain, known)];
        verdict.into_iter().chain(doubt).collect()
    }

    /// Which others cannot be told from the first row by their rates. They are no less safe.
    fn ties(&self) -> Option<String> {
        if !self.has_spread() {
            return Some("One round cannot say how far chance moved these figures.".to_owned());
        }
        let ties = ways(self.ties.iter().copied().take(MOST_TIES));
        (!ties.is_empty()).then(|| match self.ties.len() {
            all if all > MOST_TIES => {
                format!("Tied with row 1: {ties} and {} more.", all - MOST_TIES)
            }
            _ => format!("Tied with row 1: {ties}."),
        })
    }

    /// Why the usual call, which stands second, is slower though it makes the same requests: the page cache takes time of
    /// the processor.
    fn why_usual(&self, usual: &Series) -> Option<String> {
        let ratio = usual.ratio(self.series, Metric::OpsPerSecond)?;
        let is_slower = self.has_spread() && ratio.high < 1.0;
        let is_direct = |series: &Series| series.axes.sync_method.is_some_and(|one| one.direct);
        let alike = |metric| {
            let both = usual.median(metric).zip(self.series.median(metric));
            both.is_some_and(|(one, other)| (one - other).abs() < 0.1)
        };
        let cpu = |series: &Series| series.median(Metric::CpuUs);
        let (with, without) = cpu(usual).zip(cpu(self.series))?;
        let time = |series: &Series| Some(1e6 / series.median(Metric::OpsPerSecond)?);
        let more = time(usual)? - time(self.series)?;
        let is_same_place = usual.axes.allocation == self.series.axes.allocation;
        let is_why = is_slower
            && is_same_place
            && is_direct(self.series)
            && !is_direct(usual)
            && alike(Metric::Writes)
            && alike(Metric::Flushes)
            // Most of the difference, or something else is the reason.
            && with - without >= more / 2.0;
        is_why.then(|| {
            format!(
                "Row 2 goes through the page cache, not direct: {} µs of CPU a write, not {}.",
                thousands(with),
                thousands(without)
            )
        })
    }

    /// What is known of another way that is meant to be durable.
    fn standing_of(&self, series: &Series) -> &'static str {
        match safety(series) {
            _ if !self.is_proven => "by docs",
            Safety::NotProven => "not proven",
            Safety::LostNothing => "safe",
            Safety::Lost => "unsafe",
        }
    }

    /// A series beside the first row.
    fn row(&self, label: String, series: &Series, remark: &str) -> Row {
        let is_lead = series.key == self.series.key;
        let ratio = series.ratio(self.series, Metric::OpsPerSecond);
        let ratio = match ratio {
            _ if is_lead => "1".to_owned(),
            Some(ratio) if self.has_spread() => with_interval(&ratio),
            Some(ratio) => digits(ratio.median)(ratio.median),
            None => NOTHING.to_owned(),
        };
        let is_safe = series.axes.is_durable() && safety(series) != Safety::Lost;
        let tone = match (is_lead, is_safe) {
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
                count(Metric::Writes).into(),
                count(Metric::Flushes).into(),
                Cell::toned(tone, remark),
            ],
        )
    }

    /// Overwriting by the usual call, where the first row has another: what appending and several threads are held against.
    fn usual(&self, sync: &'a SyncResults) -> Option<&'a Series> {
        let baseline = Axes::from(Strategy::BASELINE);
        let mut durable = timed(sync).map(|(series, _)| series);
        durable.find(|series| series.axes == baseline && series.key != self.series.key)
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

    /// Which row is what databases do that many know; appending stands in the row of this number.
    fn in_databases(
        &self,
        usual: Option<&Series>,
        append: Option<&Series>,
        row: usize,
    ) -> Option<String> {
        let is_baseline = self.series.axes == Axes::from(Strategy::BASELINE);
        let overwriting = match usual {
            Some(_) => Some(2),
            None => is_baseline.then_some(1),
        };
        let overwriting =
            overwriting.map(|row| format!("Row {row}: PostgreSQL's recycled WAL, InnoDB's redo."));
        let is_usual = |one: &&Series| one.axes.sync_method == Some(SyncMethod::FDATASYNC);
        let appending = append.filter(is_usual);
        let appending = appending.map(|_| format!("Row {row}: binlogs, synced AOFs."));
        let said: Vec<String> = overwriting.into_iter().chain(appending).collect();
        (!said.is_empty()).then(|| said.join(" "))
    }

    /// Why appending costs more, by what was counted.
    fn why_append(&self, append: &Series, results: &Results) -> Option<String> {
        let ratio = append.ratio(self.series, Metric::OpsPerSecond)?;
        if self.has_spread() && ratio.high >= 1.0 {
            return Some("Appending is not shown to be slower here.".to_owned());
        }
        let more = |metric, noun| {
            let more = append.median(metric)? - self.series.median(metric)?;
            (more >= 0.5).then(|| count(more, noun))
        };
        let more = [
            more(Metric::Writes, "write"),
            more(Metric::Flushes, "flush"),
        ];
        let more: Vec<String> = more.into_iter().flatten().collect();
        let what = match results.filesystem.storage().journal {
            Some(true) => "commits the new size",
            _ => "also writes the new size",
        };
        let more = more.join(" and ");
        (!more.is_empty()).then(|| format!("Appending costs {more} more: each sync {what}."))
    }

    /// How long nearly all writes take, alone and with many threads.
    fn longest(&self, many: &Series) -> Option<String> {
        let alone = self.series.median(Metric::P99Us)?;
        let together = many.median(Metric::P99Us)?;
        let threads = many.axes.threads?;
        Some(format!(
            "99% of writes take at most {} µs in row 1, {} µs with {threads} threads.",
            thousands(alone),
            thousands(together)
        ))
    }

    /// One thread and the number of threads that writes most and is not known to lose, with the same call.
    fn threads(&self, sync: &'a SyncResults) -> Option<(&'a Series, &'a Series)> {
        let rate = |series: &Series| series.median(Metric::OpsPerSecond);
        let many = timed(sync)
            .map(|(series, _)| series)
            .filter(|series| series.axes.is_durable() && series.axes.threads > Some(1))
            .filter(|series| safety(series) != Safety::Lost)
            .filter(|series| series.axes.size == self.series.axes.size)
            .max_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)))?;
        let fixed = many.axes.without(Axis::Threads);
        let mut all = sync.series.iter();
        let one = all
            .find(|one| one.axes.without(Axis::Threads) == fixed && one.axes.threads == Some(1))?;
        Some((one, many))
    }

    /// The number of its row, where a series is the first or the usual way.
    fn numbered(&self, one: &Series, usual: Option<&Series>) -> Option<u32> {
        let is_usual = usual.is_some_and(|usual| usual.key == one.key);
        if one.key == self.series.key {
            Some(1)
        } else {
            is_usual.then_some(2)
        }
    }

    /// What several threads do.
    fn threads_label(&self, one: &Series, many: &Series, usual: Option<&Series>) -> String {
        let count = many.axes.threads.unwrap_or(1);
        match self.numbered(one, usual) {
            Some(row) => format!("as row {row}, by {count} threads"),
            None => {
                let method = many.axes.text(Axis::Method);
                match many.axes.allocation {
                    Some(Allocation::Overwrite) => format!("{count} threads with {method}"),
                    _ => format!(
                        "{count} threads {}, {method}",
                        many.axes.text(Axis::Allocation)
                    ),
                }
            }
        }
    }

    /// What several threads gain, in the row of this number.
    fn gain(
        &self,
        one: &Series,
        many: &Series,
        usual: Option<&Series>,
        row: usize,
    ) -> Option<String> {
        let ratio = many.ratio(one, Metric::OpsPerSecond)?;
        let threads = many.axes.threads?;
        let files = match many.axes.files {
            Some(Files::Each) => "each in its own file",
            _ => "all in one file",
        };
        if many.trials.len() > 1 && (ratio.low..=ratio.high).contains(&1.0) {
            return Some(format!(
                "{threads} threads, {files}, are not shown to write more than one."
            ));
        }
        let flushes = |series: &Series| series.median(Metric::Flushes);
        let shares = flushes(many).zip(flushes(one));
        let why = match shares {
            Some((many, one)) if many < 0.9 * one => "; they share flushes",
            Some((_, one)) if one >= 0.5 => "; they share no flushes",
            _ => "",
        };
        let one_thread = match self.numbered(one, usual) {
            // It says how many times.
            Some(1) => {
                return Some(format!(
                    "Row {row} is the total of {threads} threads, {files}{why}."
                ));
            }
            Some(row) => format!("row {row}"),
            None => format!("one thread's {}", one.axes.text(Axis::Method)),
        };
        let times = if many.trials.len() > 1 {
            with_interval(&ratio)
        } else {
            digits(ratio.median)(ratio.median)
        };
        Some(format!(
            "Row {row} is the total of {threads} threads, {files}: {times} times {one_thread}{why}."
        ))
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

/// What power cuts did to a way that is not safe. What was not caught, or not tried, is still not meant to be durable.
fn danger(series: &Series) -> Option<String> {
    let proof = series.proof.as_ref()?;
    (safety(series) == Safety::Lost).then(|| match proof.states {
        1 => "Unsafe: in the simulated power cut nothing of it had reached the disk.".to_owned(),
        _ => format!(
            "Unsafe: it lost acknowledged writes in {} of {} simulated power cuts.",
            thousands(proof.losing as f64),
            thousands(proof.states as f64)
        ),
    })
}

/// Two digits, more only where they are before the point.
fn digits(ratio: f64) -> Print {
    match ratio {
        ratio if ratio >= 9.95 => thousands,
        ratio if ratio >= 0.995 => |ratio| format!("{ratio:.1}"),
        _ => two,
    }
}

fn with_interval(ratio: &Estimate) -> String {
    let print = digits(ratio.median);
    format!("{} ({})", print(ratio.median), interval(ratio, print))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::fixtures::{measured, results, sync_results};
    use landfall_os::SyncCall;

    const FSYNC: SyncMethod = SyncMethod::buffered(SyncCall::Fsync);
    const NONE: SyncMethod = SyncMethod::buffered(SyncCall::None);
    const LEGEND: &str =
        "× row 1: round by round, with its 95% interval. Counts: the disk's, per write.";
    const UNTESTED: &str = "Documented as safe; no power cut tested it.";
    const RATES: [f64; 5] = [1_000.0, 1_010.0, 990.0, 1_005.0, 995.0];

    fn by(strategy: Strategy, factor: f64, writes: f64, flushes: f64) -> Series {
        measured(strategy, &RATES.map(|rate| rate * factor), writes, flushes)
    }

    fn said(series: Vec<Series>) -> (Vec<String>, String) {
        let results = results(Vec::new());
        let blocks = answer(&results, &sync_results(series)).expect("an answer");
        let [Block::Prose { sentences, .. }, Block::Table(table)] = blocks.as_slice() else {
            panic!("a verdict and one table, not {blocks:?}");
        };
        let heads = table.rows.iter().map(|row| match row {
            Row::Cells { head, cells } => {
                let remark = cells.last().map_or("", |cell| &cell.text);
                format!("{}: {remark}", head.text)
            }
            other => format!("{other:?}"),
        });
        let verdict = sentences.iter().map(|(_, sentence)| sentence);
        let said: Vec<&String> = verdict.chain(&table.notes).collect();
        let said: Vec<&str> = said.into_iter().map(String::as_str).collect();
        (heads.collect(), said.join("\n"))
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
                "overwrite with fdatasync: by docs",
                "append with fdatasync: by docs",
                "as row 1, by 16 threads: by docs",
                "overwrite, not synced: unsafe",
            ]
        );
        let expected = [
            "Use overwrite with fdatasync, 1,000 a second: none as safe is much faster.",
            UNTESTED,
            LEGEND,
            "Tied with row 1: overwrite with fsync.",
            "Appending costs 2 writes and 1 flush more: each sync also writes the new size.",
            "Row 1: PostgreSQL's recycled WAL, InnoDB's redo. Row 2: binlogs, synced AOFs.",
            "Row 3 is the total of 16 threads, all in one file; they share flushes.",
            "99% of writes take at most 3,000 µs in row 1, 750 µs with 16 threads.",
        ];
        assert_eq!(text, expected.join("\n"));
    }

    #[test]
    fn ratios_have_their_intervals_and_what_threads_do_not_gain_is_said() {
        let noisy = Strategy {
            threads: 4,
            ..Strategy::BASELINE
        };
        let results = results(Vec::new());
        let found = sync_results(vec![
            by(Strategy::BASELINE, 1.0, 1.0, 1.0),
            measured(noisy, &[900.0, 1_100.0, 1_000.0, 1_050.0, 950.0], 1.0, 1.0),
        ]);
        let lead = Lead::of(&found).expect("a durable write");
        let row = lead.row(String::new(), &found.series[1], "");
        let Row::Cells { cells, .. } = row else {
            panic!("no cells: {row:?}");
        };
        assert_eq!(cells[1].text, "1.0 (0.9–1.1)");
        let blocks = answer(&results, &found).expect("an answer");
        let text = format!("{blocks:?}");
        assert!(
            text.contains("4 threads, all in one file, are not shown to write more than one."),
            "{text}"
        );
    }

    #[test]
    fn what_is_as_fast_is_named_and_the_page_cache_said_to_cost() {
        let direct = |call| Strategy::BASELINE.synced(SyncMethod { direct: true, call });
        let mut series = vec![
            by(Strategy::BASELINE, 0.5, 1.0, 1.0),
            by(direct(SyncCall::ODsync), 1.0, 1.0, 1.0),
            by(direct(SyncCall::Fsync), 0.999, 1.0, 1.0),
            by(
                Strategy::BASELINE.allocated(Allocation::Recycled),
                0.998,
                1.0,
                1.0,
            ),
        ];
        for (one, cpu) in series.iter_mut().zip([700.0, 110.0, 110.0, 700.0]) {
            for trial in &mut one.trials {
                trial.figures.set(Metric::CpuUs, cpu);
            }
            one.summarize();
        }
        let (rows, text) = said(series);
        assert_eq!(rows[0], "overwrite with direct+o_dsync: by docs");
        let tie = "Tied with row 1: overwrite with direct+fsync; recycled with fdatasync.";
        assert!(text.contains(tie), "{text}");
        let cpu = "Row 2 goes through the page cache, not direct: 700 µs of CPU a write, not 110.";
        assert!(text.contains(cpu), "{text}");
    }

    #[test]
    fn what_is_faster_beyond_doubt_leads() {
        let (rows, text) = said(vec![
            by(Strategy::BASELINE, 1.0, 1.0, 1.0),
            by(Strategy::BASELINE.synced(FSYNC), 2.0, 1.0, 1.0),
        ]);
        assert_eq!(
            rows,
            [
                "overwrite with fsync: by docs",
                "overwrite with fdatasync: by docs"
            ]
        );
        let lead = "Use overwrite with fsync, 2,000 a second: none as safe is clearly faster.";
        let of_postgres = "Row 2: PostgreSQL's recycled WAL, InnoDB's redo.";
        let expected = [lead, UNTESTED, LEGEND, of_postgres];
        assert_eq!(text, expected.join("\n"));
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
                "overwrite with fdatasync: safe",
                "overwrite with fsync: unsafe"
            ]
        );
        assert!(
            text.contains("lost nothing in 300 simulated power cuts"),
            "{text}"
        );
        assert!(
            text.contains("lost acknowledged writes in 7 of 300 simulated"),
            "{text}"
        );
    }

    /// What is at risk is not called safe where it stands first.
    #[test]
    fn an_append_that_leads_is_at_risk_too() {
        let append = Strategy::BASELINE.allocated(Allocation::Append);
        let sync = sync_results(vec![by(append, 1.0, 3.0, 2.0)]);
        let mut results = results(Vec::new());
        results.filesystem.journal = Some(false);
        let text = format!("{:?}", answer(&results, &sync).expect("an answer"));
        for part in ["meant to be durable: append", "At risk: ", "\"at risk\""] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("documented as safe"), "{text}");
    }

    /// Where there is no journal, what was appended is at risk until it is seen to be lost.
    #[test]
    fn an_append_that_lost_something_is_unsafe_and_not_at_risk() {
        use crate::sync::fixtures::{losing, proven};
        let append = || {
            let append = Strategy::BASELINE.allocated(Allocation::Append);
            by(append, 0.5, 3.0, 2.0)
        };
        let mut results = results(Vec::new());
        results.filesystem.journal = Some(false);
        for (append, standing) in [
            (proven(append(), 300), "at risk"),
            (losing(append(), 7, 300), "unsafe"),
        ] {
            let overwrite = proven(by(Strategy::BASELINE, 1.0, 1.0, 1.0), 300);
            let sync = sync_results(vec![overwrite, append]);
            let blocks = answer(&results, &sync).expect("an answer");
            let text = format!("{blocks:?}");
            let said = text.contains(&format!("text: \"{standing}\""));
            assert!(said, "{standing}: {text}");
            assert_eq!(text.contains("At risk: "), standing == "at risk");
        }
    }
}
