//! Where the cost of a dump and those of logs cross.
//!
//! The crossings are those of the document, which pairs dumps and logs round by round; each log's line
//! is drawn through its crossing, so that picture and figures cannot disagree.

use crate::dump_vs_log::summary_text::{crossing, percent};
use crate::dump_vs_log::{Cost, DumpVsLogResults};
use crate::stats::Estimate;
use crate::stream::summary_text::seconds_text;
use landfall_os::humanize::bytes_text;
use landfall_results::view::chart::{Chart, Crossing, Drawing, DumpLine, LogLine, Meeting};
use landfall_results::{Metric, Saving};

/// Shares of the state that are drawn: from a thousandth of a percent to ten times the state.
const SHARES: (f64, f64) = (1e-5, 10.0);
/// Costs that are drawn, over that of the dump.
const COSTS: (f64, f64) = (1e-3, 30.0);

/// What a dump costs.
fn dump_cost(found: &DumpVsLogResults, cost: Cost) -> Option<Estimate> {
    let dump = found.find(Saving::Dump)?;
    let estimate = match cost {
        Cost::Seconds => dump.estimate(Metric::Seconds)?,
        Cost::Bytes => {
            let written = dump.estimate(Metric::DeviceWrittenMib);
            let bytes = |mib: f64| mib * f64::from(1 << 20);
            match written {
                Some(mib) => Estimate {
                    median: bytes(mib.median),
                    low: bytes(mib.low),
                    high: bytes(mib.high),
                },
                None => Estimate::of(&[found.state_bytes as f64])?,
            }
        }
    };
    let is_any = estimate.median.is_finite() && estimate.median > 0.0;
    is_any.then_some(estimate)
}

/// The chart of one cost, where a break-even by it is known.
pub(super) fn chart(found: &DumpVsLogResults, cost: Cost) -> Option<Chart> {
    let dump = dump_cost(found, cost)?;
    let costs = (
        (dump.median * COSTS.0).min(dump.low.max(f64::MIN_POSITIVE)),
        (dump.median * COSTS.1).max(dump.high),
    );
    let logs: Vec<LogLine> = Saving::LOGS
        .into_iter()
        .enumerate()
        .filter_map(|(index, log)| {
            let share = crossing(found, log, cost)?.share;
            let inside = (SHARES.0..=SHARES.1).contains(&share.median);
            Some(LogLine {
                name: log.name().into(),
                policy: index,
                ends: ends(dump.median / share.median, costs),
                meets: inside.then_some(Meeting {
                    share: share.median,
                    low: share.low.max(SHARES.0),
                    high: share.high.min(SHARES.1),
                }),
                text: if inside {
                    percent(share.median)
                } else {
                    format!("{}, outside the picture", percent(share.median))
                },
            })
        })
        .collect();
    let (unit, text): (_, fn(f64) -> String) = match cost {
        Cost::Seconds => ("seconds", seconds_text),
        Cost::Bytes => ("bytes", |bytes| bytes_text(bytes as u64)),
    };
    if logs.is_empty() {
        return None;
    }
    let crossing = Crossing {
        unit: unit.into(),
        shares: SHARES,
        costs,
        dump: DumpLine {
            value: dump.median,
            low: dump.low.max(costs.0),
            high: dump.high,
            text: format!(
                "dump of {}: {}",
                bytes_text(found.state_bytes),
                text(dump.median)
            ),
        },
        logs,
    };
    let id = format!("break-even-{unit}");
    Some(Chart::new(id, Drawing::BreakEven(crossing)))
}

/// The part of the line `cost = slope * share` that is in the picture.
fn ends(slope: f64, costs: (f64, f64)) -> Option<[(f64, f64); 2]> {
    let from = SHARES.0.max(costs.0 / slope);
    let to = SHARES.1.min(costs.1 / slope);
    (from < to).then_some([(from, slope * from), (to, slope * to)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dump_vs_log::fixtures::dump_vs_log_results;

    #[test]
    fn a_crossing_outside_the_picture_is_said_and_not_drawn() {
        let mut found = dump_vs_log_results();
        let marks = |found: &DumpVsLogResults| chart(found, Cost::Seconds).unwrap().expected();
        assert_eq!(marks(&found), 1 + 5 + 5);
        for point in &mut found.break_even {
            point.share.median *= 1e9;
        }
        assert_eq!(marks(&found), 1);
        let Drawing::BreakEven(crossing) = chart(&found, Cost::Seconds).unwrap().drawing else {
            panic!("another chart");
        };
        assert!(crossing.logs[0].text.ends_with("outside the picture"));
        found.break_even.clear();
        assert!(chart(&found, Cost::Bytes).is_none());
    }

    #[test]
    fn lines_end_where_the_picture_does() {
        assert_eq!(ends(1.0, (1e-3, 30.0)), Some([(1e-3, 1e-3), (10.0, 10.0)]));
        assert_eq!(ends(1e9, (1e-3, 30.0)), None);
    }
}
