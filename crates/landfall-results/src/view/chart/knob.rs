//! What a knob does, from one end to the other, with other things beside it on the same scale.

use std::borrow::Cow;

use serde::Serialize;

/// Figures along a knob, a panel for each; what has no such knob stands to the right of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knob {
    /// What is turned, with its unit.
    pub axis: Cow<'static, str>,
    /// Where it was turned to, ascending.
    pub positions: Vec<f64>,
    /// Names of the series that lines and marks refer to.
    pub series: Vec<Cow<'static, str>>,
    /// Names of what stands beside it.
    pub beside: Vec<String>,
    /// The first is the one that the others accompany.
    pub panels: Vec<KnobPanel>,
}

/// A figure along the knob.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnobPanel {
    /// What it shows, with its unit.
    pub name: Cow<'static, str>,
    /// Whether its scale is logarithmic.
    pub log: bool,
    /// Along the knob.
    pub lines: Vec<KnobLine>,
    /// To the right of it.
    pub marks: Vec<KnobMark>,
}

/// A series along the knob.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnobLine {
    /// Index into the chart's series.
    pub series: usize,
    /// Whether it was computed, and not measured: it is then a line without points.
    pub is_computed: bool,
    /// Ascending.
    pub points: Vec<KnobPoint>,
}

/// A figure at a position of the knob.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnobPoint {
    /// The position.
    pub x: f64,
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The figure in words.
    pub text: String,
}

/// A figure of what stands beside the knob.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnobMark {
    /// Index into what stands beside it.
    pub of: usize,
    /// Index into the chart's series.
    pub series: usize,
    /// The median.
    pub value: f64,
    /// Lower end of the 95% interval.
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// The figure in words.
    pub text: String,
}

impl Knob {
    /// Marks of a complete drawing: measured points, computed lines, and marks beside them.
    pub fn marks(&self) -> usize {
        let of = |panel: &KnobPanel| {
            let lines = panel.lines.iter().map(|line| {
                if line.is_computed {
                    1
                } else {
                    line.points.len()
                }
            });
            lines.sum::<usize>() + panel.marks.len()
        };
        self.panels.iter().map(of).sum()
    }
}
