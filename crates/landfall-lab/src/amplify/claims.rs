//! The published claims of experiment `amplify`, and their verdicts.
//!
//! They come from comparisons of InnoDB with TokuDB under LinkBench, at 100 million and a billion ids. TokuDB
//! is shipped by nobody any more; MyRocks, which is write-optimised too, stands for it. What was claimed of pages
//! is judged again by our own engine, whose page size alone is then changed. What was claimed of both kinds of
//! databases is judged again by both ends of the one knob that it has between them.
//!
//! With five rounds or more a claim is judged by them, as everywhere. A trial here is long, and with fewer
//! rounds its windows are taken instead: the interval then holds how much the figure moves while a
//! configuration runs, and not how much from one run to the next. Of bytes that come in bursts the sum
//! counts, so it is the ratio of sums. Fewer than five of either judge nothing, and neither does a load
//! that was not steady.

#[cfg(test)]
mod tests;

use landfall_os::humanize::bytes_text;
use landfall_results::{Metric, Series};

use super::catalogue::{
    BUFFER_0, BUFFER_11, FEW_DIRTY, IN_POOL, LANDFALL_4, LANDFALL_8, LANDFALL_16,
    LANDFALL_16_UNPROTECTED, NEIGHBOURS, NO_DOUBLEWRITE, PAGES_4, PAGES_8, PAGES_8_COMPRESSED,
    PAGES_16, SMALL_REDO, UNIFORM_0, UNIFORM_11, WRITE_OPTIMISED,
};
use super::summary_text;
use crate::claim::{
    self, Band, Claim, ClaimResult, Compared, Evidence, Figure, Published, Verdict,
};
use crate::configuration::Measurements;
use crate::numbers::{short, two};
use crate::stats::{Estimate, FEWEST_ROUNDS};

const SOURCE: &str = "published comparison of write amplification under LinkBench, InnoDB with several page sizes and settings against TokuDB, 100 million and a billion ids";
const OWN_SOURCE: &str = "documentation of Landfall's store: docs/store-buffer.md, ExpectedWrites";
/// Ids from which on the published figures of a billion are the nearer ones.
const BILLION: u64 = 316_000_000;
/// A change of settings that does less than this does nothing to speak of.
const NOTICEABLE: Band = Band::at_least(1.05);

const fn kib(of: &'static str, over: &'static str, published: Published) -> Claim<&'static str> {
    compared(Metric::Kib, "KiB per request", of, over, published)
}

const fn compared(
    metric: Metric,
    name: &'static str,
    of: &'static str,
    over: &'static str,
    published: Published,
) -> Claim<&'static str> {
    Claim {
        published,
        figure: Figure { metric, name, of },
        compared: Compared::Over(Figure {
            metric,
            name,
            of: over,
        }),
        only: None,
    }
}

/// A page of half the size is taken for half the bytes within this.
const HALVED: Band = Band::between(1.5, 2.7);
/// And a copy of each page for twice the bytes.
const DOUBLED: Band = Band::between(1.6, 2.4);

/// Twice as many bytes were published.
const fn twice(
    band: Band,
    (of, over): (&'static str, &'static str),
    id: &'static str,
    statement: &'static str,
) -> Claim<&'static str> {
    kib(
        of,
        over,
        Published {
            id,
            statement,
            source: SOURCE,
            value: Some(2.0),
            band,
        },
    )
}

/// What is written is taken for what was forecast within this.
const FORECAST: Band = Band::between(0.85, 1.15);

/// A store writes what its own formula says.
const fn as_forecast(
    of: &'static str,
    id: &'static str,
    statement: &'static str,
) -> Claim<&'static str> {
    Claim {
        published: Published {
            id,
            statement,
            source: OWN_SOURCE,
            value: Some(1.0),
            band: FORECAST,
        },
        figure: Figure {
            metric: Metric::WrittenPerByte,
            name: "bytes written for each byte updated",
            of,
        },
        compared: Compared::Over(Figure {
            metric: Metric::ForecastPerByte,
            name: "the same by formula",
            of,
        }),
        only: None,
    }
}

/// What was published of bytes, at the nearer scale.
const fn writes_less(
    is_large: bool,
    (of, over): (&'static str, &'static str),
    id: &'static str,
    statement: &'static str,
) -> Claim<&'static str> {
    kib(
        of,
        over,
        Published {
            id,
            statement,
            source: SOURCE,
            value: Some(if is_large { 1.3 } else { 2.0 }),
            band: if is_large {
                Band::between(1.0, 1.7)
            } else {
                Band::between(1.5, 2.7)
            },
        },
    )
}

/// And of sizes.
const fn half_as_large(
    is_large: bool,
    (of, over): (&'static str, &'static str),
    id: &'static str,
    statement: &'static str,
) -> Claim<&'static str> {
    compared(
        Metric::DatabaseBytes,
        "bytes of data and indexes",
        of,
        over,
        Published {
            id,
            statement,
            source: SOURCE,
            value: Some(if is_large { 341.0 / 661.5 } else { 34.0 / 66.0 }),
            band: Band::between(0.35, 0.7),
        },
    )
}

/// What was published, at the scale that is nearer to so many ids.
fn claims(ids: u64) -> Vec<Claim<&'static str>> {
    let is_large = ids >= BILLION;
    vec![
        twice(
            HALVED,
            (PAGES_16, PAGES_8),
            "half-page-half-bytes",
            "Halving InnoDB's pages from 16k to 8k about halves the bytes that are written",
        ),
        twice(
            HALVED,
            (PAGES_8, PAGES_4),
            "quarter-page-quarter-bytes",
            "Halving them again, from 8k to 4k, about halves the bytes again",
        ),
        twice(
            DOUBLED,
            (PAGES_16, NO_DOUBLEWRITE),
            "doublewrite-doubles",
            "The doublewrite buffer about doubles the bytes",
        ),
        twice(
            HALVED,
            (LANDFALL_16, LANDFALL_8),
            "landfall-half-page-half-bytes",
            "Halving pages from 16k to 8k about halves the bytes, in Landfall's store when it keeps whole pages in memory",
        ),
        twice(
            HALVED,
            (LANDFALL_8, LANDFALL_4),
            "landfall-quarter-page-quarter-bytes",
            "Halving them again, from 8k to 4k, about halves the bytes again, in Landfall's store when it keeps whole pages in memory",
        ),
        twice(
            DOUBLED,
            (LANDFALL_16, LANDFALL_16_UNPROTECTED),
            "landfall-doublewrite-doubles",
            "Doublewrite about doubles the bytes, in Landfall's store when it keeps whole pages in memory",
        ),
        kib(
            SMALL_REDO,
            IN_POOL,
            Published {
                id: "larger-redo-writes-less",
                statement: "A larger redo log reduces the bytes",
                source: SOURCE,
                value: None,
                band: NOTICEABLE,
            },
        ),
        kib(
            FEW_DIRTY,
            IN_POOL,
            Published {
                id: "more-dirty-pages-write-less",
                statement: "A larger limit of dirty pages reduces the bytes",
                source: SOURCE,
                value: None,
                band: NOTICEABLE,
            },
        ),
        kib(
            NEIGHBOURS,
            SMALL_REDO,
            Published {
                id: "no-neighbours-write-less",
                statement: "Not flushing the neighbours of a dirty page reduces the bytes",
                source: SOURCE,
                value: None,
                band: NOTICEABLE,
            },
        ),
        writes_less(
            is_large,
            (PAGES_8_COMPRESSED, WRITE_OPTIMISED),
            "write-optimised-writes-less",
            "InnoDB with pages of 8k compressed by half writes about twice what the write-optimised database does at 100 million ids, 1.3 times at a billion",
        ),
        half_as_large(
            is_large,
            (WRITE_OPTIMISED, PAGES_16),
            "write-optimised-is-half-as-large",
            "The write-optimised database is about half as large: 34 against 66 GB, 341 against 651 to 672 GB",
        ),
        writes_less(
            is_large,
            (BUFFER_0, BUFFER_11),
            "landfall-write-optimised-writes-less",
            "Landfall's store writes about twice as much without a buffer as with one of 11% at 100 million ids, 1.3 times at a billion, as InnoDB does against the write-optimised database",
        ),
        half_as_large(
            is_large,
            (BUFFER_11, BUFFER_0),
            "landfall-write-optimised-is-half-as-large",
            "Landfall's store is about half as large with a buffer of 11% as without one, as the write-optimised database is against InnoDB",
        ),
        compared(
            Metric::WrittenPerByte,
            "bytes written for each byte updated",
            UNIFORM_0,
            UNIFORM_11,
            Published {
                id: "landfall-buffer-writes-a-third",
                statement: "A buffer of 11% spares Landfall's store at least two thirds of the bytes that updates at random write",
                source: OWN_SOURCE,
                value: None,
                band: Band::at_least(3.0),
            },
        ),
        as_forecast(
            UNIFORM_0,
            "landfall-writes-as-its-formula-says-at-0",
            "Without a buffer Landfall's store writes what its formula says for updates at random, within 15%, with the log",
        ),
        as_forecast(
            UNIFORM_11,
            "landfall-writes-as-its-formula-says-at-11",
            "With a buffer of 11% Landfall's store writes what its formula says for updates at random, within 15%, with the log",
        ),
    ]
}

/// What is no matter of measuring.
const OF_SETTINGS: Published = Published {
    id: "one-setting-where-innodb-needs-many",
    statement: "The write-optimised database needs one setting where InnoDB needs many",
    source: SOURCE,
    value: None,
    band: Band::at_least(0.0),
};

/// Judges every claim whose configurations were part of the plan; `ids` were loaded.
pub(super) fn judge(measurements: &Measurements, ids: u64) -> Vec<ClaimResult> {
    let mut judged = claim::judge(&claims(ids), measurements);
    let mut cases = measurements
        .series
        .iter()
        .filter_map(|one| one.axes.case.as_deref());
    if cases.clone().any(|case| case == WRITE_OPTIMISED) && cases.any(|case| case == PAGES_16) {
        let why = "not judged: how many settings somebody needs cannot be measured; what each of InnoDB's is worth is in the tables";
        let quantity = "settings that must be chosen".to_owned();
        judged.push(OF_SETTINGS.judge(
            quantity,
            None,
            Some((Verdict::CannotBeTold, why.to_owned())),
            String::new,
        ));
    }
    judged
}

impl Evidence<&'static str> for Measurements {
    fn find(&self, wanted: &&'static str, _: &&'static str) -> Option<&Series> {
        let mut all = self.series.iter();
        all.find(|one| one.axes.case.as_deref() == Some(wanted))
    }

    /// Of sizes, that of the data. Of bytes that come in bursts, with few rounds: that of windows.
    fn today(&self, claim: &Claim<&'static str>, series: &[&Series]) -> Option<Estimate> {
        let &[of, over] = series else { return None };
        if claim.figure.metric == Metric::DatabaseBytes {
            return Estimate::of_ratio(&sizes(of, over));
        }
        let is_few = of.pairs(over, Metric::Kib).len() < FEWEST_ROUNDS;
        is_few.then(|| by_windows(claim, of, over)).flatten()
    }

    fn obstacle(&self, claim: &Claim<&'static str>, series: &[&Series]) -> Option<String> {
        let &[of, over] = series else { return None };
        if let Some(obstacle) = series.iter().find_map(|one| unmeasured(one)) {
            return Some(obstacle);
        }
        if claim.figure.metric == Metric::DatabaseBytes {
            let few = few(sizes(of, over).len(), "rounds", "--rounds")?;
            return Some(format!("{few}; {}", sizes_text(of, over)));
        }
        let unsteady = series.iter().find_map(|one| unsteady(one));
        let unsteady = unsteady.or_else(|| {
            let is_without = is_forecast(claim) && over.median(Metric::ForecastPerByte).is_none();
            is_without.then(|| NO_FORECAST.to_owned())
        });
        unsteady.or_else(|| ignored(self, of)).or_else(|| {
            let is_few = of.pairs(over, Metric::Kib).len() < FEWEST_ROUNDS;
            let windows = windows(of).len().min(windows(over).len());
            is_few
                .then(|| {
                    few(windows, "windows", "--seconds").or_else(|| {
                        let is_without = by_windows(claim, of, over).is_none();
                        is_without.then(|| TOO_BURSTY.to_owned())
                    })
                })
                .flatten()
        })
    }

    fn explain(&self, claim: &Claim<&'static str>, series: &[&Series]) -> String {
        let &[of, over] = series else {
            return String::new();
        };
        if claim.figure.metric == Metric::DatabaseBytes {
            return sizes_text(of, over);
        }
        let median = |one: &Series, metric| one.median(metric).unwrap_or(f64::NAN);
        if is_forecast(claim) {
            return format!(
                "{} written for each byte updated, {} by formula",
                two(median(of, Metric::WrittenPerByte)),
                two(median(of, Metric::ForecastPerByte))
            );
        }
        let kib = |one| short(median(one, Metric::Kib));
        let rate = |one| median(one, Metric::RequestsPerSecond);
        let mut text = format!(
            "{} against {} KiB per request, at {} times the requests a second",
            kib(of),
            kib(over),
            two(rate(of) / rate(over))
        );
        if matches!(claim.figure.of, PAGES_8_COMPRESSED | BUFFER_0)
            && let Some(log) = summary_text::log_share(over)
        {
            text += &format!("; {log}");
        }
        text
    }
}

/// Bytes of data of both, round by round: without what an empty database takes.
fn sizes(of: &Series, over: &Series) -> Vec<(f64, f64)> {
    let pairs = of.pairs(over, Metric::DatabaseBytes);
    let net = |(small, large)| (of.data_bytes(small), over.data_bytes(large));
    pairs.into_iter().map(net).collect()
}

fn sizes_text(of: &Series, over: &Series) -> String {
    let size = |one: &Series| {
        let bytes = one.median(Metric::DatabaseBytes);
        bytes_text(bytes.map_or(0.0, |bytes| one.data_bytes(bytes)) as u64)
    };
    let mut text = format!(
        "{} against {} at the end, without the logs and tables that an empty database has",
        size(of),
        size(over),
    );
    if over.axes.case.as_deref() == Some(PAGES_16) {
        text += "; which of InnoDB's sizes was meant is not known: it is taken uncompressed";
    }
    text
}

/// Why so many values say too little.
fn few(values: usize, what: &str, option: &str) -> Option<String> {
    (values < FEWEST_ROUNDS).then(|| {
        let what = if values == 1 {
            what.trim_end_matches('s')
        } else {
            what
        };
        let verb = if values == 1 { "gives" } else { "give" };
        format!("{values} {what} {verb} no interval to judge by; more {option} do")
    })
}

fn unsteady(one: &Series) -> Option<String> {
    let why = summary_text::why_unsteady(one)?;
    Some(format!("{}: {why}", one.name()))
}

/// InnoDB does not look for neighbours on a device that says that it does not rotate.
fn ignored(measurements: &Measurements, of: &Series) -> Option<String> {
    let site = measurements
        .sites
        .iter()
        .find(|site| Some(&site.key) == of.axes.site.as_ref())?;
    let mut devices = site.filesystem.as_ref()?.storage().devices.iter();
    (of.axes.case.as_deref() == Some(NEIGHBOURS) && devices.all(|device| !device.rotational)).then(
        || {
            "MariaDB ignores the setting here, since the device says that it does not rotate"
                .to_owned()
        },
    )
}

/// How many times as many bytes of a request by windows.
fn by_windows(claim: &Claim<&'static str>, of: &Series, over: &Series) -> Option<Estimate> {
    let over = if is_forecast(claim) {
        forecast_windows(over)
    } else {
        windows(over)
    };
    Estimate::of_unpaired_rates(&windows(of), &over)
}

/// KiB and requests of every window that was measured.
fn windows(one: &Series) -> Vec<(f64, f64)> {
    let windows = one.trials.iter().flat_map(|trial| &trial.windows);
    windows
        .map(|window| (window.bytes as f64 / 1024.0, window.requests as f64))
        .collect()
}

const TOO_BURSTY: &str =
    "so few windows had writes that there is no interval to judge by; more --seconds do";

const NO_FORECAST: &str = "the store has no formula where changes of half of all rows fit into memory; a smaller --pool or more --ids give it one";

/// Whether what is written is held against a formula.
fn is_forecast(claim: &Claim<&'static str>) -> bool {
    let mut figures = claim.figures().into_iter();
    figures.any(|figure| figure.metric == Metric::ForecastPerByte)
}

/// KiB by formula and requests of every window that was measured: the same rate in all of them.
fn forecast_windows(one: &Series) -> Vec<(f64, f64)> {
    let trials = one.trials.iter().filter_map(|trial| {
        let of_written = trial.get(Metric::Kib)? / trial.get(Metric::WrittenPerByte)?;
        let kib = trial.get(Metric::ForecastPerByte)? * of_written;
        let windows = trial.windows.iter().map(|window| window.requests as f64);
        Some(windows.map(move |requests| (kib * requests, requests)))
    });
    trials.flatten().collect()
}

fn unmeasured(one: &Series) -> Option<String> {
    let why = one.unsupported.as_ref()?;
    one.trials
        .is_empty()
        .then(|| format!("{} could not be measured: {why}", one.name()))
}
