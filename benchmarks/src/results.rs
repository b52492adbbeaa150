//! What was measured: as a table, and as a file that `stores picture` draws.

use std::error::Error;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Fallible;
use crate::contest::Contestant;

/// The unit of which more is better; of all others less is.
pub const MORE_IS_BETTER: &str = "/s";

#[derive(Serialize, Deserialize)]
pub struct Results {
    pub workload: String,
    /// What was run, behind the program's name.
    pub arguments: Vec<String>,
    pub engines: Vec<Version>,
    pub phases: Vec<Phase>,
    /// What did not succeed.
    pub failures: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub struct Version {
    pub name: String,
    pub version: String,
}

#[derive(Serialize, Deserialize)]
pub struct Phase {
    pub name: String,
    pub unit: String,
    pub figures: Vec<Figure>,
}

#[derive(Serialize, Deserialize)]
pub struct Figure {
    pub engine: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// In the order of the rounds.
    pub rounds: Vec<f64>,
}

impl Results {
    pub fn new(workload: &str, contestants: &[Contestant]) -> Results {
        Results {
            workload: workload.into(),
            arguments: std::env::args().skip(1).collect(),
            engines: contestants
                .iter()
                .map(|one| Version {
                    name: one.name.clone(),
                    version: one.version.clone(),
                })
                .collect(),
            phases: Vec::new(),
            failures: Vec::new(),
        }
    }

    pub fn add(&mut self, engine: &str, name: &str, unit: &str, value: f64) {
        let at = self.phases.iter().position(|phase| phase.name == name);
        let at = at.unwrap_or_else(|| {
            self.phases.push(Phase {
                name: name.into(),
                unit: unit.into(),
                figures: Vec::new(),
            });
            self.phases.len() - 1
        });
        let figures = &mut self.phases[at].figures;
        match figures.iter_mut().find(|figure| figure.engine == engine) {
            Some(figure) => figure.add(value),
            None => figures.push(Figure {
                engine: engine.into(),
                median: value,
                min: value,
                max: value,
                rounds: vec![value],
            }),
        }
    }

    /// Adds the figures of one turn.
    pub fn merge(&mut self, turn: Results) {
        for phase in &turn.phases {
            for figure in &phase.figures {
                for value in &figure.rounds {
                    self.add(&figure.engine, &phase.name, &phase.unit, *value);
                }
            }
        }
        self.failures.extend(turn.failures);
    }

    /// Notes what one failed at.
    pub fn fail(&mut self, engine: &str, error: &dyn Error) {
        let text = format!("{engine}: {error}");
        eprintln!("{text}");
        self.failures.push(text);
    }

    /// Prints a table, and writes the file. An error if a store failed.
    pub fn tell(&self, json: Option<&Path>) -> Fallible<()> {
        println!("{}", self.table());
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(self)? + "\n";
            let written = std::fs::write(path, text);
            written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        if self.failures.is_empty() {
            Ok(())
        } else {
            Err(self.failures.join("; ").into())
        }
    }

    fn table(&self) -> String {
        let head = self.engines.iter();
        let head = head.map(|engine| {
            format!("{} {}", engine.name, engine.version)
                .trim()
                .to_owned()
        });
        let mut lines = vec![
            [self.workload.clone(), String::new()]
                .into_iter()
                .chain(head)
                .collect::<Vec<_>>(),
        ];
        for phase in &self.phases {
            let mut line = vec![phase.name.clone(), phase.unit.clone()];
            line.extend(self.engines.iter().map(|engine| {
                let figure = phase.of(&engine.name);
                figure.map_or_else(|| "–".into(), Figure::text)
            }));
            lines.push(line);
        }
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
        let mut text = String::new();
        for line in &lines {
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                text += &match column {
                    0 | 1 => format!("{cell:<width$}  "),
                    _ => format!("{cell:>width$}  "),
                };
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

impl Phase {
    pub fn of(&self, engine: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.engine == engine)
    }
}

impl Figure {
    fn add(&mut self, value: f64) {
        self.rounds.push(value);
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        self.median = match sorted.len() % 2 {
            0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
            _ => sorted[middle],
        };
        (self.min, self.max) = (sorted[0], sorted[sorted.len() - 1]);
    }

    fn text(&self) -> String {
        let median = show(self.median);
        match self.rounds.len() {
            1 => median,
            _ => format!("{median} ({}–{})", show(self.min), show(self.max)),
        }
    }
}

/// A number to three digits, or to all before the point.
pub fn show(value: f64) -> String {
    let size = value.abs();
    if size >= 100.0 {
        let digits = format!("{value:.0}");
        let mut text = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        return text;
    }
    let places = match size {
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.1 => 3,
        _ if size >= 0.01 => 4,
        _ if size >= 0.001 => 5,
        _ => 6,
    };
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_or_all_before_the_point() {
        for (value, text) in [
            (1_234_567.8, "1,234,568"),
            (999.6, "1,000"),
            (123.4, "123"),
            (12.34, "12.3"),
            (1.234, "1.23"),
            (0.1234, "0.123"),
            (0.0, "0.000000"),
            (0.01234, "0.0123"),
        ] {
            assert_eq!(show(value), text);
        }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        let mut results = Results::new("", &[]);
        for value in [4.0, 1.0, 2.0, 3.0] {
            results.add("one", "phase", "s", value);
        }
        let figure = results.phases[0].of("one").unwrap();
        assert_eq!((figure.median, figure.min, figure.max), (2.5, 1.0, 4.0));
    }
}
