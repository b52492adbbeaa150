//! Rates of the phases that a large write goes through.

use std::borrow::Cow;

use serde::Serialize;

use landfall_os::humanize::bytes_text;

/// MB/s of each phase against the size of what is written, a panel per method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// Whether the scale of rates is logarithmic.
    pub log: bool,
    /// Names of the phases that marks refer to.
    pub phases: [Cow<'static, str>; 3],
    /// Sizes in bytes, and their names.
    pub ticks: Vec<(f64, String)>,
    /// Bytes of dirty data at which the kernel slows writers down, where that is in the picture.
    pub limit: Option<f64>,
    /// One for each method.
    pub panels: Vec<SizePanel>,
}

/// The rates of a method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizePanel {
    /// The method.
    pub label: String,
    /// Those of all phases.
    pub points: Vec<SizePoint>,
    /// The sizes in bytes before and after the method's wall.
    pub wall: Option<(f64, f64)>,
}

/// A phase at a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizePoint {
    /// The size in bytes.
    pub x: f64,
    /// The rate.
    #[serde(flatten)]
    pub mark: PhaseMark,
}

/// MB/s of a phase.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseMark {
    /// Index into the chart's phases.
    pub phase: usize,
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The single rounds, where there is more than one.
    pub rounds: Vec<f64>,
    /// The median in words.
    pub text: String,
}

/// MB/s of each phase of what has names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phases {
    /// Whether the scale is logarithmic.
    pub log: bool,
    /// Names of the phases that marks refer to.
    pub phases: [Cow<'static, str>; 3],
    /// From the top down.
    pub rows: Vec<PhaseRow>,
}

/// The phases of one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseRow {
    /// What it is called.
    pub label: String,
    /// None where nothing was measured.
    pub marks: Vec<PhaseMark>,
}

impl PhaseMark {
    /// The median and the rounds.
    fn marks(&self) -> usize {
        1 + self.rounds.len()
    }

    /// Everything that the scale must have room for.
    pub fn values(&self) -> impl Iterator<Item = f64> {
        [self.value, self.low, self.high]
            .into_iter()
            .chain(self.rounds.iter().copied())
    }
}

impl Sizes {
    /// Marks of a complete drawing: medians, rounds, walls, and the limit in each panel.
    pub fn marks(&self) -> usize {
        let of = |panel: &SizePanel| {
            let points: usize = panel.points.iter().map(|point| point.mark.marks()).sum();
            points + usize::from(panel.wall.is_some()) + usize::from(self.limit.is_some())
        };
        self.panels.iter().map(of).sum()
    }

    /// What is drawn besides the marks.
    pub fn legend(&self) -> Vec<String> {
        let mut legend = Vec::new();
        if self.panels.iter().any(|panel| panel.wall.is_some()) {
            legend.push(
                "A wall is shaded, from the last size before it to the first beyond.".to_owned(),
            );
        }
        if let Some(limit) = self.limit {
            legend.push(format!(
                "The dashed line stands at the dirty limit of {}.",
                bytes_text(limit as u64)
            ));
        }
        legend
    }
}

impl Phases {
    /// Marks of a complete drawing: medians and rounds.
    pub fn marks(&self) -> usize {
        let marks = self.rows.iter().flat_map(|row| &row.marks);
        marks.map(PhaseMark::marks).sum()
    }
}
