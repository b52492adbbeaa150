//! Published claims, held against today's measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stats::Estimate;

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval lies in the claim's band.
    Holds,
    /// The whole interval lies outside it.
    DoesNotHold,
    /// The interval straddles the band's edge, or something needed for an answer is missing.
    CannotBeTold,
}

impl Verdict {
    /// The verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::CannotBeTold => "cannot be told",
        }
    }
}

/// The values for which a claim is said to hold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Band {
    /// Least value; absent when there is no lower end.
    pub at_least: Option<f64>,
    /// Greatest value; absent when there is no upper end.
    pub at_most: Option<f64>,
}

impl Band {
    /// From `low` to `high`.
    pub const fn between(low: f64, high: f64) -> Band {
        Band {
            at_least: Some(low),
            at_most: Some(high),
        }
    }

    /// From `low` up.
    pub const fn at_least(low: f64) -> Band {
        Band {
            at_least: Some(low),
            at_most: None,
        }
    }

    /// Judges an interval.
    pub fn judge(&self, estimate: &Estimate) -> Verdict {
        let low = self.at_least.unwrap_or(f64::NEG_INFINITY);
        let high = self.at_most.unwrap_or(f64::INFINITY);
        if low <= estimate.low && estimate.high <= high {
            Verdict::Holds
        } else if estimate.high < low || high < estimate.low {
            Verdict::DoesNotHold
        } else {
            Verdict::CannotBeTold
        }
    }
}

/// A published claim and what today's measurement says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimResult {
    /// A stable name.
    pub id: String,
    /// The claim in one sentence.
    pub statement: String,
    /// What `today` and `published` measure: a ratio of rates, reads per operation, ….
    pub quantity: String,
    /// The published value of it, where a number was published.
    pub published: Option<f64>,
    /// Where it was published.
    pub source: String,
    /// The values for which the claim is said to hold.
    pub band: Band,
    /// Today's value with its interval.
    pub today: Option<Estimate>,
    /// The verdict.
    pub verdict: Verdict,
    /// What the counters say about why, or why there is no verdict.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, high: f64) -> Estimate {
        Estimate {
            median: (low + high) / 2.0,
            low,
            high,
        }
    }

    #[test]
    fn an_interval_is_inside_outside_or_astride() {
        let band = Band::between(3.0, 5.0);
        assert_eq!(band.judge(&estimate(3.0, 5.0)), Verdict::Holds);
        assert_eq!(band.judge(&estimate(1.0, 2.9)), Verdict::DoesNotHold);
        assert_eq!(band.judge(&estimate(5.1, 9.0)), Verdict::DoesNotHold);
        assert_eq!(band.judge(&estimate(2.0, 4.0)), Verdict::CannotBeTold);
        assert_eq!(band.judge(&estimate(1.0, 9.0)), Verdict::CannotBeTold);
        assert_eq!(
            Band::at_least(1.1).judge(&estimate(1.2, 99.0)),
            Verdict::Holds
        );
    }
}
