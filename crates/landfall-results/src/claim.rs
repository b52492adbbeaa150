//! Published claims, held against today's measurement.
//!
//! A [`Claim`] is data: what was published, and which figures of which series are compared. Each experiment lists its own;
//! [`judge`] is the one who judges them. What it cannot know is asked of the experiment's [`Evidence`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::series::Series;
use crate::stats::{Estimate, FEWEST_ROUNDS};
use crate::trial::Trial;

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
    /// The claim is about something that is not here: another kind of filesystem, say.
    DoesNotApply,
}

impl Verdict {
    /// The verdict in words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::CannotBeTold => "cannot be told",
            Verdict::DoesNotApply => "does not apply",
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

    /// Up to `high`.
    pub const fn at_most(high: f64) -> Band {
        Band {
            at_least: None,
            at_most: Some(high),
        }
    }

    fn ends(&self) -> (f64, f64) {
        let low = self.at_least.unwrap_or(f64::NEG_INFINITY);
        (low, self.at_most.unwrap_or(f64::INFINITY))
    }

    /// On which side an interval lies outside, if all of it does.
    pub fn side(&self, estimate: &Estimate) -> Option<Side> {
        let (low, high) = self.ends();
        match (estimate.high < low, high < estimate.low) {
            (true, _) => Some(Side::Below),
            (_, true) => Some(Side::Above),
            _ => None,
        }
    }

    /// Judges an interval.
    pub fn judge(&self, estimate: &Estimate) -> Verdict {
        let (low, high) = self.ends();
        if low <= estimate.low && estimate.high <= high {
            Verdict::Holds
        } else if self.side(estimate).is_some() {
            Verdict::DoesNotHold
        } else {
            Verdict::CannotBeTold
        }
    }
}

/// Where a figure lies that is outside of a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Below its lower end.
    Below,
    /// Above its upper end.
    Above,
}

/// What was published.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// A stable name.
    pub id: &'static str,
    /// The claim in one sentence.
    pub statement: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// The value, where a number was published.
    pub value: Option<f64>,
    /// The values for which it is said to hold.
    pub band: Band,
}

impl Published {
    /// The verdict on today's value of `quantity`, or the verdict that there is none with its reason; `why` is what else
    /// was seen.
    pub fn judge(
        &self,
        quantity: String,
        today: Option<Estimate>,
        obstacle: Option<(Verdict, String)>,
        why: impl FnOnce() -> String,
    ) -> ClaimResult {
        let (verdict, why) = match (obstacle, &today) {
            (Some(obstacle), _) => obstacle,
            (None, None) => (
                Verdict::CannotBeTold,
                "the device's counters cannot be read".to_owned(),
            ),
            (None, Some(today)) => (self.band.judge(today), why()),
        };
        ClaimResult {
            id: self.id.to_owned(),
            statement: self.statement.to_owned(),
            quantity,
            published: self.value,
            source: self.source.to_owned(),
            band: self.band,
            // What is not what the claim is about says nothing of it.
            today: today.filter(|_| verdict != Verdict::DoesNotApply),
            verdict,
            why,
        }
    }
}

/// A figure of a series, which `S` selects.
#[derive(Clone, Copy, Debug)]
pub struct Figure<S> {
    /// The figure.
    pub metric: Metric,
    /// What it is called here, with its unit.
    pub name: &'static str,
    /// The series.
    pub of: S,
}

/// How a figure is compared with another one, round by round.
#[derive(Clone, Copy, Debug)]
pub enum Compared<S> {
    /// It over the other.
    Over(Figure<S>),
    /// It less the other.
    Less(Figure<S>),
    /// It over the other, over the same of two others.
    OverAsMuch(Figure<S>, [Figure<S>; 2]),
}

/// A published claim about figures of series, which `S` selects.
#[derive(Clone, Copy, Debug)]
pub struct Claim<S> {
    /// What was published.
    pub published: Published,
    /// What is compared.
    pub figure: Figure<S>,
    /// With what.
    pub compared: Compared<S>,
    /// What it is about besides.
    pub only: Option<Only>,
}

/// What a claim is about, and need not be so here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Filesystems that copy on write.
    CopyOnWrite,
    /// States beyond the kernel's limits of dirty data.
    BeyondDirtyLimits,
}

/// What an experiment measured, and knows of it.
pub trait Evidence<S> {
    /// The series that is selected, for a comparison with another one; `None`: it was not part of the plan.
    fn find(&self, wanted: &S, with: &S) -> Option<&Series>;

    /// Why a claim is not about what was measured here, if it is not.
    fn elsewhere(&self, _claim: &Claim<S>) -> Option<String> {
        None
    }

    /// What keeps a claim from being judged here, if anything does. What only weakens a verdict is no obstacle: it is
    /// said by [`Evidence::explain`].
    fn obstacle(&self, claim: &Claim<S>, series: &[&Series]) -> Option<String>;

    /// What else was seen of it.
    fn explain(&self, claim: &Claim<S>, series: &[&Series]) -> String;

    /// Today's value, where it is not formed round by round.
    fn today(&self, _claim: &Claim<S>, _series: &[&Series]) -> Option<Estimate> {
        None
    }
}

/// Judges every claim whose series were part of the plan.
pub fn judge<S>(claims: &[Claim<S>], evidence: &impl Evidence<S>) -> Vec<ClaimResult> {
    let judged = claims.iter().filter_map(|claim| {
        let series = claim.series(evidence)?;
        let own = evidence.today(claim, &series);
        let rounds = match own {
            Some(_) => Vec::new(),
            None => claim.round_by_round(&series),
        };
        let today = own.or_else(|| Estimate::of(&rounds));
        let elsewhere = evidence
            .elsewhere(claim)
            .map(|why| (Verdict::DoesNotApply, why));
        let obstacle = || Some((Verdict::CannotBeTold, evidence.obstacle(claim, &series)?));
        // Rounds without one of the figures are none; of no round at all it is said what is missing.
        let too_few = || {
            (1..FEWEST_ROUNDS).contains(&rounds.len()).then(|| {
                let rounds = match rounds.len() {
                    1 => "1 round has".to_owned(),
                    several => format!("{several} rounds have"),
                };
                let why = format!(
                    "only {rounds} all that is compared, and fewer than {FEWEST_ROUNDS} give no interval to judge by; measure more with --rounds"
                );
                (Verdict::CannotBeTold, why)
            })
        };
        let obstacle = elsewhere.or_else(obstacle).or_else(too_few);
        let quantity = claim.quantity(&series);
        let why = || evidence.explain(claim, &series);
        Some(claim.published.judge(quantity, today, obstacle, why))
    });
    judged.collect()
}

impl<S> Claim<S> {
    /// The figures that are compared, in their order.
    pub fn figures(&self) -> Vec<&Figure<S>> {
        let mut figures = vec![&self.figure];
        match &self.compared {
            Compared::Over(other) | Compared::Less(other) => figures.push(other),
            Compared::OverAsMuch(other, others) => {
                figures.extend([other].into_iter().chain(others))
            }
        }
        figures
    }

    fn series<'a>(&self, evidence: &'a impl Evidence<S>) -> Option<Vec<&'a Series>> {
        let figures = self.figures();
        let find = |pair: &[&Figure<S>]| {
            let [one, other] = pair else { return None };
            let both = [
                evidence.find(&one.of, &other.of)?,
                evidence.find(&other.of, &one.of)?,
            ];
            // Of one figure with itself there is nothing to be said.
            let is_same = one.metric == other.metric && both[0].key == both[1].key;
            (!is_same).then_some(both)
        };
        let pairs: Option<Vec<[&Series; 2]>> = figures.chunks(2).map(find).collect();
        Some(pairs?.concat())
    }

    /// The value of each round in which all that is compared was measured.
    fn round_by_round(&self, series: &[&Series]) -> Vec<f64> {
        let figures = self.figures();
        let value = |at: usize, round: u32| {
            let mut trials = series.get(at)?.trials.iter();
            trials
                .find(|trial| trial.round == round)?
                .get(figures.get(at)?.metric)
        };
        let of = |trial: &Trial| {
            let value = |at| value(at, trial.round);
            // Nothing is so many times as much as nothing.
            let ratio = |one, other| Some(value(one)? / value(other).filter(|other| *other > 0.0)?);
            match self.compared {
                Compared::Less(_) => Some(value(0)? - value(1)?),
                Compared::Over(_) => ratio(0, 1),
                Compared::OverAsMuch(..) => Some(ratio(0, 1)? / ratio(2, 3)?),
            }
        };
        let first = series.first();
        let trials = first.into_iter().flat_map(|first| &first.trials);
        trials.filter_map(of).collect()
    }

    /// What is held against the published value.
    fn quantity(&self, series: &[&Series]) -> String {
        let (figures, key) = (self.figures(), |at: usize| series[at].key.as_str());
        let (name, other) = (figures[0].name, figures[1].name);
        match self.compared {
            Compared::Less(_) => format!("{name}, {} - {}", key(0), key(1)),
            Compared::Over(_) if name == other => format!("{name}, {} / {}", key(0), key(1)),
            Compared::Over(_) => format!("{name} of {} / {other} of {}", key(0), key(1)),
            Compared::OverAsMuch(..) => format!(
                "({name}, {} / {}) / ({} / {})",
                key(0),
                key(1),
                key(2),
                key(3)
            ),
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
    use crate::Axes;
    use crate::metric::Figures;

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
        assert_eq!(band.side(&estimate(1.0, 2.9)), Some(Side::Below));
        assert_eq!(band.side(&estimate(5.1, 9.0)), Some(Side::Above));
        assert_eq!(band.side(&estimate(2.0, 4.0)), None);
        assert_eq!(band.judge(&estimate(2.0, 4.0)), Verdict::CannotBeTold);
        assert_eq!(band.judge(&estimate(1.0, 9.0)), Verdict::CannotBeTold);
        assert_eq!(
            Band::at_least(1.1).judge(&estimate(1.2, 99.0)),
            Verdict::Holds
        );
    }

    /// Two series of which no claim has an obstacle of its own.
    struct Two([Series; 2]);

    impl Evidence<usize> for Two {
        fn find(&self, wanted: &usize, _: &usize) -> Option<&Series> {
            self.0.get(*wanted)
        }

        fn obstacle(&self, _: &Claim<usize>, series: &[&Series]) -> Option<String> {
            series.iter().find_map(|one| one.obstacle())
        }

        fn explain(&self, _: &Claim<usize>, _: &[&Series]) -> String {
            String::new()
        }
    }

    #[test]
    fn rounds_without_the_figure_give_no_verdict() {
        let figure = |of| Figure {
            metric: Metric::Writes,
            name: "writes",
            of,
        };
        let claim = Claim {
            published: Published {
                id: "one",
                statement: "One writes twice as much as the other",
                source: "nobody",
                value: Some(2.0),
                band: Band::between(1.5, 2.5),
            },
            figure: figure(0),
            compared: Compared::Over(figure(1)),
            only: None,
        };
        // Each of six rounds, of which so many have the figure.
        let judged = |known: u32| {
            let series = [("one", 4.0), ("other", 2.0)].map(|(key, writes)| {
                let mut series = Series::new(Axes::default());
                series.key = key.to_owned();
                series.trials = (1..=6)
                    .map(|round| Trial {
                        round,
                        figures: Figures::default()
                            .with(Metric::Writes, (round <= known).then_some(writes)),
                        ..Trial::default()
                    })
                    .collect();
                series
            });
            judge(&[claim], &Two(series)).remove(0)
        };
        let enough = judged(5);
        assert_eq!(enough.verdict, Verdict::Holds, "{}", enough.why);
        let few = judged(4);
        assert_eq!(few.verdict, Verdict::CannotBeTold);
        assert!(few.why.starts_with("only 4 rounds have"), "{}", few.why);
        let one = judged(1);
        assert!(one.why.starts_with("only 1 round has"), "{}", one.why);
        let none = judged(0);
        assert_eq!(none.verdict, Verdict::CannotBeTold);
        assert!(none.why.contains("cannot be read"), "{}", none.why);
    }
}
