//! A trial as figures by name: what is told of it while a run goes on, and its line in a table of all.
//!
//! Each experiment makes its own; `export` has the names.

/// One trial of any experiment.
#[derive(Clone, Debug)]
pub struct Row {
    figures: Vec<(&'static str, String)>,
}

impl Row {
    /// Of this experiment, strategy and round; a figure that is empty was not measured.
    pub(crate) fn new(
        experiment: &str,
        strategy: &str,
        round: u32,
        figures: Vec<(&'static str, String)>,
    ) -> Row {
        let mut all = vec![
            ("experiment", experiment.to_owned()),
            ("series", strategy.to_owned()),
            ("round", round.to_string()),
        ];
        all.extend(figures);
        Row { figures: all }
    }

    /// Of a series' trial.
    pub(crate) fn of(row: &landfall_results::Row<'_>) -> Row {
        let names = landfall_results::Row::header();
        Row {
            figures: names.zip(row.fields()).collect(),
        }
    }

    /// The figure of that name; `None`: the experiment has none.
    pub fn figure(&self, name: &str) -> Option<&str> {
        let found = self.figures.iter().find(|(one, _)| *one == name);
        found.map(|(_, text)| text.as_str())
    }

    /// The names of all that it has.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.figures.iter().map(|(name, _)| *name)
    }
}

/// A figure with three decimals.
pub(crate) fn number(value: f64) -> String {
    format!("{value:.3}")
}

/// Seconds, to the microsecond.
pub(crate) fn seconds(value: f64) -> String {
    format!("{value:.6}")
}

/// A figure that need not have been measured.
pub(crate) fn maybe(value: Option<f64>) -> String {
    value.map(number).unwrap_or_default()
}
