//! The tables that the benchmark prints.

use landfall_lab::stats::Estimate;

use crate::middle;
use crate::programs::Sample;

/// What a figure is meant to be.
#[derive(Clone, Copy)]
pub enum Bound {
    AtLeast(f64),
    AtMost(f64),
    /// At most so far from nought.
    Within(f64),
    /// There for orientation.
    None,
}

impl Bound {
    fn text(self) -> String {
        match self {
            Bound::AtLeast(least) => format!("≥ {least}"),
            Bound::AtMost(most) => format!("≤ {most}"),
            Bound::Within(most) => format!("± {most}"),
            Bound::None => String::new(),
        }
    }

    fn holds(self, value: f64) -> bool {
        match self {
            Bound::AtLeast(least) => value >= least,
            Bound::AtMost(most) => value <= most,
            Bound::Within(most) => value.abs() <= most,
            Bound::None => true,
        }
    }

    /// Only what the whole interval says is said.
    fn verdict(self, estimate: &Estimate) -> &'static str {
        let beyond = match self {
            Bound::Within(most) => estimate.low > most || estimate.high < -most,
            _ => !self.holds(estimate.low) && !self.holds(estimate.high),
        };
        match self {
            Bound::None => "",
            _ if self.holds(estimate.low) && self.holds(estimate.high) => "met",
            _ if beyond => "not met",
            _ => "cannot be told",
        }
    }
}

/// One figure and its target.
pub struct Row {
    name: &'static str,
    bound: Bound,
    estimate: Option<Estimate>,
}

impl Row {
    pub fn new(name: &'static str, bound: Bound, estimate: Option<Estimate>) -> Row {
        Row {
            name,
            bound,
            estimate,
        }
    }
}

/// Prints targets and verdicts.
pub fn verdicts(rows: &[Row]) {
    println!(
        "\n{:<46} {:>7} {:>8}   {:<19} verdict",
        "medians with 95% intervals", "target", "measured", "interval"
    );
    for row in rows {
        let target = row.bound.text();
        match &row.estimate {
            Some(estimate) => println!(
                "{:<46} {target:>7} {:>8.3}   {:<19} {}",
                row.name,
                estimate.median,
                format!("{:.3} to {:.3}", estimate.low, estimate.high),
                row.bound.verdict(estimate)
            ),
            None => println!("{:<46} {target:>7} {:>8}   not measured", row.name, "–"),
        }
    }
    println!();
}

/// Prints the medians of every program.
pub fn absolute(title: &str, programs: &[(&str, Vec<Sample>)]) {
    println!("\n{title}");
    println!(
        "{:<26} {:>5} {:>10} {:>9} {:>10} {:>11}",
        "medians", "runs", "ops/s", "p50 µs", "CPU µs/op", "flushes/op"
    );
    for (name, samples) in programs.iter().filter(|(_, samples)| !samples.is_empty()) {
        let text = |value: Option<f64>, digits: usize| {
            value.map_or("–".to_owned(), |value| format!("{value:.digits$}"))
        };
        println!(
            "{name:<26} {:>5} {:>10} {:>9} {:>10} {:>11}",
            samples.len(),
            text(middle(samples, |sample| Some(sample.ops_per_second)), 0),
            text(middle(samples, |sample| sample.p50_us), 3),
            text(middle(samples, |sample| sample.cpu_us), 3),
            text(middle(samples, |sample| sample.flushes), 3),
        );
    }
}
