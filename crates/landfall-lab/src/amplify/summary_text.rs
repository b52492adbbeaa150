//! What is said of experiment `amplify`, in the terminal and in the report.

use landfall_results::{Metric, Series, Trial};

use super::catalogue::{
    BUFFER_0, BUFFER_11, LANDFALL_4, LANDFALL_4_RECORDS, LANDFALL_16, LANDFALL_16_RECORDS, PAGES_4,
    PAGES_16, Part, UNIFORM_0, UNIFORM_11, WRITE_OPTIMISED,
};
use super::{AmplifyResults, sections};
use crate::numbers::{short, thousands, two};
use crate::stats::Estimate;

/// With fewer rewrites the model's amplification is that of the same writes coming again.
pub const FEW_REWRITES: f64 = 2.0;
/// Requests per second for which endurance is told, so that a database does not seem worse for being fast.
pub const RATE: f64 = 1_000.0;
/// A block of a log, and of most filesystems.
const BLOCK_KIB: f64 = 4.0;

/// Whether it was waited for a steady load, and in vain in some trial.
pub fn is_unsteady(one: &Series) -> bool {
    let mut watched = one
        .trials
        .iter()
        .filter_map(|trial| trial.steadiness.as_ref());
    watched.any(|steadiness| !steadiness.reached)
}

/// Why a configuration's load was not steady, in its last trial that was not.
pub fn why_unsteady(one: &Series) -> Option<String> {
    let mut watched = one
        .trials
        .iter()
        .filter_map(|trial| trial.steadiness.as_ref());
    let last = watched.rfind(|steadiness| !steadiness.reached)?;
    let mut reasons = Vec::new();
    if let Some(flushes) = last.memtable_flushes
        && flushes < crate::configuration::MEMTABLES
    {
        reasons.push(format!("{flushes} memtables were written"));
    }
    if let Some(rounds) = last.log_rounds
        && rounds < 1.0
    {
        reasons.push(format!("its log came round {} times", two(rounds)));
    }
    if let Some(filled) = last.buffer_filled
        && filled < crate::configuration::FULL
    {
        reasons.push(format!("its buffer was {:.0}% full", filled * 100.0));
    }
    if reasons.is_empty() {
        reasons.push(match last.change {
            Some(change) => format!("it still changed by {:.0}%", change * 100.0),
            None => "too little was asked".to_owned(),
        });
    }
    let seconds = landfall_os::humanize::duration_text(last.seconds);
    Some(format!(
        "not steady after {seconds}: {}",
        reasons.join(", ")
    ))
}

/// Of the trials that tell what flash is worn, the middle one.
pub fn wear(one: &Series) -> Option<&Trial> {
    let mut all: Vec<(&Trial, f64)> = one
        .trials
        .iter()
        .filter_map(|trial| Some((trial, trial.get(Metric::NandKib)?)))
        .collect();
    all.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    all.get(all.len() / 2).map(|(trial, _)| *trial)
}

/// Whether flash pages were written so seldom that the amplification understates.
pub fn is_seldom_rewritten(trial: &Trial) -> bool {
    trial
        .get(Metric::Rewrites)
        .is_some_and(|rewrites| rewrites < FEW_REWRITES)
}

/// Years that the drive lasts at [`RATE`] requests a second.
pub fn years(one: &Series) -> Option<f64> {
    let trial = wear(one)?;
    Some(trial.get(Metric::Years)? * trial.get(Metric::RequestsPerSecond)? / RATE)
}

/// How much of what is written per request goes with its flushes.
pub(super) fn log_share(one: &Series) -> Option<String> {
    let (flushes, kib) = (one.median(Metric::Flushes)?, one.median(Metric::Kib)?);
    let least = flushes * BLOCK_KIB;
    (least > 0.3 * kib).then(|| {
        format!(
            "a flush makes a block of log or journal be written at least, which is {} of the {} KiB of {}",
            short(least.min(kib)),
            short(kib),
            one.name()
        )
    })
}

/// What the report says before anything else.
pub fn summary(amplify: &AmplifyResults) -> Vec<String> {
    [
        bytes(amplify),
        own_engine(amplify),
        own_buffer(amplify),
        curve(amplify),
        flash(amplify),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn find<'a>(amplify: &'a AmplifyResults, case: &str) -> Option<&'a Series> {
    let mut all = amplify.measurements.series.iter();
    all.find(|one| one.axes.case.as_deref() == Some(case) && one.is_measured())
}

/// The extremes in a sentence.
fn bytes(amplify: &AmplifyResults) -> Option<String> {
    let kib_of = |case| find(amplify, case)?.median(Metric::Kib);
    let large = kib_of(PAGES_16)?;
    let mut text = format!(
        "A request of LinkBench makes InnoDB write {} KiB to the device with pages of 16 KiB",
        short(large)
    );
    if let Some(small) = kib_of(PAGES_4) {
        text += &format!(", {} with pages of 4", short(small));
    }
    if let Some(optimised) = kib_of(WRITE_OPTIMISED) {
        text += &format!(", and MyRocks {}", short(optimised));
    }
    Some(text + ".")
}

/// Why the page size matters: because changed pages are kept whole.
fn own_engine(amplify: &AmplifyResults) -> Option<String> {
    let kib_of = |case| Some(short(find(amplify, case)?.median(Metric::Kib)?));
    let mut text = format!(
        "Landfall's store writes {} KiB with pages of 16 KiB and {} with pages of 4, when it keeps changed pages whole in memory as InnoDB does",
        kib_of(LANDFALL_16)?,
        kib_of(LANDFALL_4)?
    );
    if let Some((large, small)) = kib_of(LANDFALL_16_RECORDS).zip(kib_of(LANDFALL_4_RECORDS)) {
        text += &format!("; {large} and {small} when it keeps the changed records only");
    }
    Some(text + ".")
}

/// What both kinds of trees differ by, in one engine.
fn own_buffer(amplify: &AmplifyResults) -> Option<String> {
    let (without, with) = (find(amplify, BUFFER_0)?, find(amplify, BUFFER_11)?);
    let kib = |one: &Series| Some(short(one.median(Metric::Kib)?));
    let size = |one: &Series| Some(one.data_bytes(one.median(Metric::DatabaseBytes)?));
    let mut text = format!(
        "Landfall's store writes {} KiB per request with no buffer and {} with one of 11%",
        kib(without)?,
        kib(with)?
    );
    if let Some((small, large)) = size(without).zip(size(with))
        && small > 0.0
    {
        text += &format!(
            "; it then takes {} times the space on disk",
            two(large / small)
        );
    }
    Some(text + ".")
}

/// Bytes of flash for each byte that is updated.
pub(super) fn flash_per_byte(one: &Series) -> Option<Estimate> {
    let of_kib = one.median(Metric::WrittenPerByte)? / one.median(Metric::Kib)?;
    let kib = one.estimate(Metric::NandKib)?;
    Some(Estimate {
        median: kib.median * of_kib,
        low: kib.low * of_kib,
        high: kib.high * of_kib,
    })
}

/// Both ends of the knob where rows are updated at random, beside the formula and the databases that write most and least.
fn curve(amplify: &AmplifyResults) -> Option<String> {
    let (without, with) = (find(amplify, UNIFORM_0)?, find(amplify, UNIFORM_11)?);
    let bytes = |one: &Series| one.median(Metric::WrittenPerByte);
    let mut text = format!(
        "For each byte that is updated at random Landfall's store writes {} with no buffer and {} with one of 11%",
        short(bytes(without)?),
        short(bytes(with)?)
    );
    let formula = |one: &Series| Some(short(one.median(Metric::ForecastPerByte)?));
    if let Some((without, with)) = formula(without).zip(formula(with)) {
        text += &format!("; by its formula {without} and {with}");
    }
    let others = amplify.measurements.series.iter().filter(|one| {
        one.axes.part.as_deref() == Some(Part::Curve.name()) && one.axes.buffer.is_none()
    });
    let mut others: Vec<(f64, &str)> = others
        .filter_map(|one| Some((bytes(one)?, one.axes.database.as_deref()?)))
        .collect();
    others.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    match others[..] {
        [] => {}
        [(bytes, one)] => text += &format!("; {one} writes {}", short(bytes)),
        [(least, lightest), .., (most, heaviest)] => {
            text += &format!(
                "; others from {} ({lightest}) to {} ({heaviest})",
                short(least),
                short(most)
            );
        }
    }
    Some(text + ".")
}

/// What a drive makes of that.
fn flash(amplify: &AmplifyResults) -> Option<String> {
    let one = find(amplify, PAGES_16)?;
    let worn = wear(one)?;
    let mut text = format!(
        "A drive that is full of such data programs {} KiB of flash for them ({} times as many bytes), and lasts {} years at {} requests a second",
        short(worn.get(Metric::NandKib)?),
        two(worn.get(Metric::Amplification)?),
        short(years(one)?),
        thousands(RATE)
    );
    let optimised = find(amplify, WRITE_OPTIMISED);
    if let Some((other, years)) = optimised.and_then(|other| Some((other, years(other)?))) {
        let worn = wear(other)?;
        text += &format!(
            "; with MyRocks it is {} KiB ({} times) and {} years",
            short(worn.get(Metric::NandKib)?),
            two(worn.get(Metric::Amplification)?),
            short(years)
        );
    }
    Some(text + ".")
}

/// What must be known to read the tables.
pub fn reading(amplify: &AmplifyResults) -> String {
    let sites = amplify.measurements.sites.iter();
    let sites: Vec<&str> = sites.map(|site| site.key.as_str()).collect();
    let has = |is_of_updates: bool| {
        let mut sections = sections(amplify).into_iter();
        sections.any(|section| section.part.is_of_updates() == is_of_updates)
    };
    let mut loads = Vec::new();
    if has(false) {
        let ids = thousands(amplify.ids as f64);
        loads.push(format!("LinkBench with {ids} ids"));
    }
    if let Some(updates) = amplify.updates.as_ref().filter(|_| has(true)) {
        loads.push(format!(
            "updates of {} rows of {} bytes, half of which compresses away, {} in a request",
            thousands(updates.rows as f64),
            updates.row_bytes,
            updates.of_request
        ));
    }
    let mut load = loads.join("; ");
    if let Some(first) = load.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!(
        "{load}; {} clients on {}, each commit durable as the database understands it. Bytes and writes are those that reached the device, per request, once that was steady; owed is what the database had still to write for them at the end, and then wrote. Sizes are without what an empty database has.",
        amplify.clients,
        sites.join(", ")
    )
}

/// What must be known about the figures of flash; nothing where there are none.
pub fn about_flash(amplify: &AmplifyResults) -> Option<String> {
    let all = &amplify.measurements.series;
    all.iter().find_map(wear)?;
    Some(format!(
        "NAND KiB are what a drive programs into its flash for a request once it is full of such data, by a model ({}); years are how long it lasts at {} requests a second, around the clock. Wear understates what is not rewritten often while it is measured: a * marks what was written less than twice.",
        amplify.drive,
        thousands(RATE)
    ))
}

/// Which database stands for which.
pub const STANDS_FOR: &str = "MyRocks (RocksDB in MariaDB) stands for the published TokuDB, which nobody ships any more: both are write-optimised, one a log-structured merge tree and the other a fractal tree.";

#[cfg(test)]
mod tests {
    use super::super::fixtures::{measured, results, updated};
    use super::*;

    #[test]
    fn the_extremes_are_said_first() {
        let found = results(vec![
            measured("innodb 16k", 48.0, 150),
            measured("innodb 4k", 6.0, 150),
            measured("myrocks zstd", 3.5, 70),
        ]);
        assert_eq!(
            summary(&found),
            [
                "A request of LinkBench makes InnoDB write 48.0 KiB to the device with pages of 16 KiB, 6.00 with pages of 4, and MyRocks 3.50.",
                "A drive that is full of such data programs 120 KiB of flash for them (2.50 times as many bytes), and lasts 3.00 years at 1,000 requests a second; with MyRocks it is 8.75 KiB (2.50 times) and 3.00 years.",
            ]
        );
        assert!(about_flash(&found).unwrap().contains("tbw=600TB"));
        let own = results(vec![
            measured(LANDFALL_16, 40.0, 130),
            measured(LANDFALL_4, 12.0, 130),
            measured(LANDFALL_16_RECORDS, 9.0, 130),
            measured(LANDFALL_4_RECORDS, 7.0, 130),
        ]);
        assert_eq!(
            summary(&own),
            [
                "Landfall's store writes 40.0 KiB with pages of 16 KiB and 12.0 with pages of 4, when it keeps changed pages whole in memory as InnoDB does; 9.00 and 7.00 when it keeps the changed records only."
            ]
        );
        let buffered = results(vec![
            measured(BUFFER_0, 12.0, 80),
            measured("landfall buffer 2%", 8.0, 81),
            measured(BUFFER_11, 5.0, 88),
        ]);
        assert_eq!(
            summary(&buffered),
            [
                "Landfall's store writes 12.0 KiB per request with no buffer and 5.00 with one of 11%; it then takes 1.13 times the space on disk."
            ]
        );
        let others = [
            updated("uniform myrocks zstd", 8.0, None),
            updated("uniform sqlite", 40.0, None),
        ];
        let mut all = vec![
            updated(UNIFORM_0, 16.0, 15.2),
            updated(UNIFORM_11, 4.0, 3.9),
        ];
        let ends = "For each byte that is updated at random Landfall's store writes 16.0 with no buffer and 4.00 with one of 11%; by its formula 15.2 and 3.90";
        assert_eq!(summary(&results(all.clone())), [format!("{ends}.")]);
        all.extend(others);
        assert_eq!(
            summary(&results(all.clone())),
            [format!(
                "{ends}; others from 8.00 (myrocks) to 40.0 (sqlite)."
            )]
        );
        all.remove(2);
        assert_eq!(
            summary(&results(all)),
            [format!("{ends}; sqlite writes 40.0.")]
        );
        let one_end = results(vec![measured(BUFFER_0, 12.0, 80)]);
        assert!(summary(&one_end).is_empty());
        let without = results(vec![measured("sqlite", 9.0, 120)]);
        assert!(summary(&without).is_empty());
    }

    #[test]
    fn why_a_load_is_not_steady_is_said() {
        let with = |flushes, rounds, change| {
            let mut one = measured("innodb 16k", 48.0, 150);
            let steadiness = one.trials[0].steadiness.as_mut().unwrap();
            steadiness.reached = false;
            steadiness.memtable_flushes = flushes;
            steadiness.log_rounds = rounds;
            steadiness.change = Some(change);
            why_unsteady(&one).unwrap()
        };
        assert_eq!(
            with(Some(7), None, 0.0),
            "not steady after 8 s: 7 memtables were written"
        );
        assert_eq!(
            with(None, Some(0.5), 0.0),
            "not steady after 8 s: its log came round 0.50 times"
        );
        assert_eq!(
            with(None, Some(3.0), 0.2),
            "not steady after 8 s: it still changed by 20%"
        );
        assert_eq!(why_unsteady(&measured("innodb 16k", 48.0, 150)), None);
        let mut buffered = measured(BUFFER_11, 0.1, 80);
        if let Some(steadiness) = &mut buffered.trials[0].steadiness {
            (steadiness.reached, steadiness.buffer_filled) = (false, Some(0.3));
            steadiness.log_rounds = None;
        }
        assert_eq!(
            why_unsteady(&buffered).unwrap(),
            "not steady after 8 s: its buffer was 30% full"
        );
    }
}
