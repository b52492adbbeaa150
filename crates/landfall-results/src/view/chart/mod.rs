//! What charts draw, as data. Their JSON is what the page's script reads.
//!
//! Every chart knows how many marks it must show ([`Chart::expected`]), counted from the data and not from what a script
//! does with it, so that a browser test can tell a chart that lost data.

mod bars;
mod crossing;
mod dots;
mod knob;
mod lines;
mod phases;
mod safety;
mod scale;
mod timeline;

pub use bars::{Bar, Costs, Panel, Rate, Rates};
pub use crossing::{Crossing, DumpLine, LogLine, Meeting};
pub use dots::{Dot, DotRow, Dots, Named};
pub use knob::{Knob, KnobLine, KnobMark, KnobPanel, KnobPoint};
pub use lines::{Clients, ClientsPanel, ClientsPoint, Curve, Latency, Lines, Point};
pub use phases::{PhaseMark, PhaseRow, Phases, SizePanel, SizePoint, Sizes};
pub use safety::{Comparison, ComparisonMark};
pub use scale::{MOST_ROWS, is_wide, span};
pub use timeline::{Event, EventKind, Timeline};

use serde::Serialize;

/// One chart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// Identifies it among those of a page.
    pub id: String,
    /// What is drawn.
    #[serde(flatten)]
    pub drawing: Drawing,
}

/// The kinds of charts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Drawing {
    /// Rates of what has names, with intervals.
    Rates(Rates),
    /// Rates along a numeric axis, a line per series.
    Lines(Lines),
    /// A figure along the number of clients, a panel per site.
    Clients(Clients),
    /// Latency against percentile, a panel per curve.
    Latency(Latency),
    /// What something costs, a panel per kind of cost.
    Costs(Costs),
    /// Figures along a knob, and of others beside it.
    Knob(Knob),
    /// MB/s of each phase against the size of what is written, a panel per method.
    Sizes(Sizes),
    /// MB/s of each phase of what has names.
    Phases(Phases),
    /// The cost of a dump and of logs against the share of the state that changes.
    BreakEven(Crossing),
    /// Rates, by what power cuts did.
    Safety(Comparison),
    /// What happened around a power cut.
    Timeline(Timeline),
    /// A figure of many, a dot for each.
    Dots(Dots),
}

impl Chart {
    /// A chart of this name.
    pub fn new(id: impl Into<String>, drawing: Drawing) -> Chart {
        Chart {
            id: id.into(),
            drawing,
        }
    }

    /// Marks that a complete drawing of this chart has.
    pub fn expected(&self) -> usize {
        match &self.drawing {
            Drawing::Rates(rates) => rates.marks(),
            Drawing::Lines(lines) => lines.marks(),
            Drawing::Clients(clients) => clients.marks(),
            Drawing::Latency(latency) => latency.marks(),
            Drawing::Costs(costs) => costs.marks(),
            Drawing::Knob(knob) => knob.marks(),
            Drawing::Sizes(sizes) => sizes.marks(),
            Drawing::Phases(phases) => phases.marks(),
            Drawing::BreakEven(crossing) => crossing.marks(),
            Drawing::Safety(comparison) => comparison.marks(),
            Drawing::Timeline(timeline) => timeline.marks(),
            Drawing::Dots(dots) => dots.marks(),
        }
    }

    /// The chart, if it would show anything.
    pub fn if_any(self) -> Option<Chart> {
        (self.expected() > 0).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_finds_the_kind_beside_the_data() {
        let rows = vec![
            Rate::of("a".to_owned(), true, None, crate::numbers::two),
            Rate {
                value: Some(2.0),
                ..Rate::of("b".to_owned(), false, None, crate::numbers::two)
            },
        ];
        let chart = Chart::new(
            "rate-x",
            Drawing::Rates(Rates {
                unit: "operations per second".into(),
                reference: None,
                log: false,
                rows,
            }),
        );
        assert_eq!(chart.expected(), 1);
        let json = serde_json::to_value(&chart).expect("JSON");
        assert_eq!(json["kind"], "rates");
        assert_eq!(json["id"], "rate-x");
        assert_eq!(json["rows"][0]["text"], "not measured here");
        let empty = Chart::new("y", Drawing::Latency(Latency { curves: Vec::new() }));
        assert_eq!(empty.if_any(), None);
    }
}
