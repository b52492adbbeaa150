//! The published claims of experiment `amplify`, and their verdicts.
//!
//! They come from comparisons of InnoDB with TokuDB under LinkBench, at 100 million and a billion ids. TokuDB
//! is shipped by nobody any more; MyRocks, which is write-optimised too, stands for it.
//!
//! With five rounds or more a claim is judged by them, as everywhere. A trial here is long, and with fewer
//! rounds its windows are taken instead: the interval then holds how much the figure moves while a
//! configuration runs, and not how much from one run to the next. Of bytes that come in bursts the sum
//! counts, so it is the ratio of sums. Fewer than five of either judge nothing, and neither does a load
//! that was not steady.

use landfall_results::{Metric, Series};

use super::catalogue::{
    FEW_DIRTY, IN_POOL, NEIGHBOURS, NO_DOUBLEWRITE, PAGES_4, PAGES_8, PAGES_8_COMPRESSED, PAGES_16,
    SMALL_REDO, WRITE_OPTIMISED,
};
use super::sentences;
use crate::claim::{Band, ClaimResult, Verdict};
use crate::configuration::Measurements;
use crate::numbers::{short, two};
use crate::stats::{Estimate, FEWEST_ROUNDS};

const SOURCE: &str = "published comparison of write amplification under LinkBench, InnoDB with several page sizes and settings against TokuDB, 100 million and a billion ids";
/// Ids from which on the published figures of a billion are the nearer ones.
const BILLION: u64 = 316_000_000;
/// A change of settings that does less than this does nothing to speak of.
const NOTICEABLE: Band = Band::at_least(1.05);

struct Claim {
    id: &'static str,
    statement: &'static str,
    of: &'static str,
    over: &'static str,
    published: Option<f64>,
    band: Band,
}

/// Claims about KiB per request.
const CLAIMS: [Claim; 6] = [
    Claim {
        id: "half-page-half-bytes",
        statement: "Halving InnoDB's pages from 16k to 8k about halves the bytes that are written",
        of: PAGES_16,
        over: PAGES_8,
        published: Some(2.0),
        band: Band::between(1.5, 2.7),
    },
    Claim {
        id: "quarter-page-quarter-bytes",
        statement: "Halving them again, from 8k to 4k, about halves the bytes again",
        of: PAGES_8,
        over: PAGES_4,
        published: Some(2.0),
        band: Band::between(1.5, 2.7),
    },
    Claim {
        id: "doublewrite-doubles",
        statement: "The doublewrite buffer about doubles the bytes",
        of: PAGES_16,
        over: NO_DOUBLEWRITE,
        published: Some(2.0),
        band: Band::between(1.6, 2.4),
    },
    Claim {
        id: "larger-redo-writes-less",
        statement: "A larger redo log reduces the bytes",
        of: SMALL_REDO,
        over: IN_POOL,
        published: None,
        band: NOTICEABLE,
    },
    Claim {
        id: "more-dirty-pages-write-less",
        statement: "A larger limit of dirty pages reduces the bytes",
        of: FEW_DIRTY,
        over: IN_POOL,
        published: None,
        band: NOTICEABLE,
    },
    Claim {
        id: "no-neighbours-write-less",
        statement: "Not flushing the neighbours of a dirty page reduces the bytes",
        of: NEIGHBOURS,
        over: SMALL_REDO,
        published: None,
        band: NOTICEABLE,
    },
];

/// Judges every claim whose configurations were part of the plan; `ids` were loaded.
pub(super) fn judge(measurements: &Measurements, ids: u64) -> Vec<ClaimResult> {
    let find = |case: &str| {
        let mut all = measurements.series.iter();
        all.find(|one| one.axes.case.as_deref() == Some(case))
    };
    let by_kib = |claim: &Claim| {
        let (of, over) = (find(claim.of)?, find(claim.over)?);
        let (estimate, obstacle) = bytes(measurements, of, over);
        let quantity = format!("KiB per request of {} / of {}", claim.of, claim.over);
        Some(result(claim, quantity, estimate, obstacle, || {
            explain(of, over)
        }))
    };
    let mut results: Vec<ClaimResult> = CLAIMS.iter().filter_map(by_kib).collect();
    if let (Some(of), Some(over)) = (find(PAGES_8_COMPRESSED), find(WRITE_OPTIMISED)) {
        results.push(by_kib_of_both(measurements, of, over, ids));
    }
    if let (Some(of), Some(over)) = (find(WRITE_OPTIMISED), find(PAGES_16)) {
        results.push(by_size(of, over, ids));
        results.push(by_settings());
    }
    results
}

/// What a write-optimised database writes less.
fn by_kib_of_both(
    measurements: &Measurements,
    of: &Series,
    over: &Series,
    ids: u64,
) -> ClaimResult {
    let (published, band) = if ids >= BILLION {
        (1.3, Band::between(1.0, 1.7))
    } else {
        (2.0, Band::between(1.5, 2.7))
    };
    let claim = Claim {
        id: "write-optimised-writes-less",
        statement: "InnoDB with pages of 8k compressed by half writes about twice what the write-optimised database does at 100 million ids, 1.3 times at a billion",
        of: PAGES_8_COMPRESSED,
        over: WRITE_OPTIMISED,
        published: Some(published),
        band,
    };
    let (estimate, obstacle) = bytes(measurements, of, over);
    let quantity = format!("KiB per request of {} / of {}", claim.of, claim.over);
    result(&claim, quantity, estimate, obstacle, || {
        let log = sentences::log_share(over).map(|text| format!("; {text}"));
        format!("{}{}", explain(of, over), log.unwrap_or_default())
    })
}

/// How much smaller a write-optimised database is, without what an empty one takes.
fn by_size(of: &Series, over: &Series, ids: u64) -> ClaimResult {
    let published = if ids >= BILLION {
        341.0 / 661.5
    } else {
        34.0 / 66.0
    };
    let claim = Claim {
        id: "write-optimised-is-half-as-large",
        statement: "The write-optimised database is about half as large: 34 against 66 GB, 341 against 651 to 672 GB",
        of: WRITE_OPTIMISED,
        over: PAGES_16,
        published: Some(published),
        band: Band::between(0.35, 0.7),
    };
    let pairs = of.pairs(over, Metric::DatabaseBytes);
    let net: Vec<(f64, f64)> = pairs
        .iter()
        .map(|(small, large)| (of.data_bytes(*small), over.data_bytes(*large)))
        .collect();
    let figures = || {
        let size = |one: &Series| {
            let bytes = one.median(Metric::DatabaseBytes);
            bytes.map_or(0.0, |bytes| one.data_bytes(bytes)) as u64
        };
        format!(
            "{} against {} at the end, without the logs and tables that an empty server has; which of InnoDB's sizes was meant is not known: it is taken uncompressed",
            landfall_os::humanize::bytes_text(size(of)),
            landfall_os::humanize::bytes_text(size(over)),
        )
    };
    let obstacle = unmeasured(of).or_else(|| unmeasured(over)).or_else(|| {
        let few = few(net.len(), "rounds", "--rounds")?;
        Some(format!("{few}; {}", figures()))
    });
    let quantity = format!(
        "bytes of data and indexes of {} / of {}",
        claim.of, claim.over
    );
    result(
        &claim,
        quantity,
        Estimate::of_ratio(&net),
        obstacle,
        figures,
    )
}

/// What is no matter of measuring.
fn by_settings() -> ClaimResult {
    ClaimResult {
        id: "one-setting-where-innodb-needs-many".to_owned(),
        statement: "The write-optimised database needs one setting where InnoDB needs many".to_owned(),
        quantity: "settings that must be chosen".to_owned(),
        published: None,
        source: SOURCE.to_owned(),
        band: Band::at_least(0.0),
        today: None,
        verdict: Verdict::CannotBeTold,
        why: "not judged: how many settings somebody needs cannot be measured; what each of InnoDB's is worth is in the tables".to_owned(),
    }
}

fn result(
    claim: &Claim,
    quantity: String,
    today: Option<Estimate>,
    obstacle: Option<String>,
    explain: impl FnOnce() -> String,
) -> ClaimResult {
    let (verdict, why) = match (obstacle, &today) {
        (Some(obstacle), _) => (Verdict::CannotBeTold, obstacle),
        (None, None) => (Verdict::CannotBeTold, "nothing was measured".to_owned()),
        (None, Some(today)) => (claim.band.judge(today), explain()),
    };
    ClaimResult {
        id: claim.id.to_owned(),
        statement: claim.statement.to_owned(),
        quantity,
        published: claim.published,
        source: SOURCE.to_owned(),
        band: claim.band,
        today,
        verdict,
        why,
    }
}

/// The ratio of what two configurations write per request, and what keeps it from being judged.
fn bytes(
    measurements: &Measurements,
    of: &Series,
    over: &Series,
) -> (Option<Estimate>, Option<String>) {
    let pairs = of.pairs(over, Metric::Kib);
    let by_rounds = pairs.len() >= FEWEST_ROUNDS;
    let (ours, theirs) = (windows(of), windows(over));
    let estimate = if by_rounds {
        Estimate::of_ratio(&pairs)
    } else {
        Estimate::of_unpaired_rates(&ours, &theirs)
    };
    let obstacle = unmeasured(of)
        .or_else(|| unmeasured(over))
        .or_else(|| unsteady(of))
        .or_else(|| unsteady(over))
        .or_else(|| ignored(measurements, of))
        .or_else(|| {
            if by_rounds {
                None
            } else {
                few(ours.len().min(theirs.len()), "windows", "--seconds")
            }
        });
    (estimate, obstacle)
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
    let why = sentences::why_unsteady(one)?;
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

/// KiB and requests of every window that was measured.
fn windows(one: &Series) -> Vec<(f64, f64)> {
    let windows = one.trials.iter().flat_map(|trial| &trial.windows);
    windows
        .map(|window| (window.bytes as f64 / 1024.0, window.requests as f64))
        .collect()
}

fn unmeasured(one: &Series) -> Option<String> {
    let why = one.unsupported.as_ref()?;
    one.trials
        .is_empty()
        .then(|| format!("{} could not be measured: {why}", one.name()))
}

/// The figures themselves.
fn explain(of: &Series, over: &Series) -> String {
    let middle = |one: &Series, metric| one.median(metric).unwrap_or(f64::NAN);
    let (kib, rates) = (
        |one| middle(one, Metric::Kib),
        |one| middle(one, Metric::RequestsPerSecond),
    );
    let mut text = format!("{} against {} KiB", short(kib(of)), short(kib(over)));
    text += &format!(
        " per request, at {} times the requests a second",
        two(rates(of) / rates(over))
    );
    text
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{measured, measurements};
    use super::*;

    fn verdict_of(results: &[ClaimResult], id: &str) -> (Verdict, String) {
        let found = results.iter().find(|result| result.id == id).unwrap();
        (found.verdict, found.why.clone())
    }

    #[test]
    fn claims_are_judged_by_windows_where_rounds_are_few() {
        let found = measurements(vec![
            measured(PAGES_16, 48.0, 150),
            measured(PAGES_8, 24.0, 152),
            measured(PAGES_4, 5.0, 155),
            measured(NO_DOUBLEWRITE, 24.0, 150),
        ]);
        let results = judge(&found, 100_000);
        assert_eq!(results.len(), 3);
        assert_eq!(
            verdict_of(&results, "half-page-half-bytes").0,
            Verdict::Holds
        );
        let (verdict, why) = verdict_of(&results, "quarter-page-quarter-bytes");
        assert_eq!(verdict, Verdict::DoesNotHold);
        assert_eq!(
            why,
            "24.0 against 5.00 KiB per request, at 1.00 times the requests a second"
        );
        assert_eq!(
            verdict_of(&results, "doublewrite-doubles").0,
            Verdict::Holds
        );
    }

    #[test]
    fn the_published_figure_is_that_of_the_nearer_scale() {
        let found = measurements(vec![
            measured(PAGES_16, 48.0, 150),
            measured(PAGES_8_COMPRESSED, 8.0, 100),
            measured(WRITE_OPTIMISED, 4.0, 70),
        ]);
        let published = |ids| {
            let results = judge(&found, ids);
            let mut both = results.iter().filter_map(|result| result.published);
            (both.next().unwrap(), results.len())
        };
        assert_eq!(published(100_000), (2.0, 3));
        assert_eq!(published(1_000_000_000), (1.3, 3));
        let results = judge(&found, 100_000);
        assert_eq!(
            verdict_of(&results, "write-optimised-writes-less").0,
            Verdict::Holds
        );
        // One round is no interval.
        let (verdict, why) = verdict_of(&results, "write-optimised-is-half-as-large");
        assert_eq!(verdict, Verdict::CannotBeTold, "{why}");
        assert!(why.starts_with("1 round gives no interval"), "{why}");
        let (verdict, why) = verdict_of(&results, "one-setting-where-innodb-needs-many");
        assert_eq!(verdict, Verdict::CannotBeTold);
        assert!(why.starts_with("not judged"));
    }

    #[test]
    fn what_keeps_a_claim_from_being_judged_is_said() {
        let mut missing = measured(WRITE_OPTIMISED, 4.0, 70);
        missing.trials.clear();
        missing.summarize();
        missing.unsupported = Some("it is not installed".into());
        let mut unsteady = measured(PAGES_16, 48.0, 150);
        if let Some(steadiness) = &mut unsteady.trials[0].steadiness {
            steadiness.reached = false;
        }
        let found = measurements(vec![
            unsteady,
            measured(PAGES_8, 24.0, 150),
            measured(PAGES_8_COMPRESSED, 8.0, 70),
            missing,
            measured(SMALL_REDO, 12.0, 150),
            measured(NEIGHBOURS, 12.0, 150),
        ]);
        let results = judge(&found, 100_000);
        for (id, says) in [
            ("write-optimised-writes-less", "it is not installed"),
            ("no-neighbours-write-less", "does not rotate"),
        ] {
            let (verdict, why) = verdict_of(&results, id);
            assert_eq!(verdict, Verdict::CannotBeTold);
            assert!(why.contains(says), "{why}");
        }
        let (verdict, why) = verdict_of(&results, "half-page-half-bytes");
        assert_eq!(verdict, Verdict::CannotBeTold);
        assert!(why.starts_with("innodb 16k: not steady after"), "{why}");
    }
}
