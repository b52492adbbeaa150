//! What an experiment gives to the page.

use landfall_results::view::Table;
use landfall_results::view::chart::Chart;

/// One experiment's share of the page.
pub(super) struct Part {
    /// Its heading, where there is more than one.
    pub title: String,
    /// What was found, in sentences; the verdict takes the first of them.
    pub sentences: Vec<String>,
    /// Its picture of cost against safety, which stands before all parts.
    pub front: Option<Chapter>,
    pub chapters: Vec<Chapter>,
    /// Strategies that could not be measured.
    pub unmeasured: Option<Table>,
    /// What preparations cost.
    pub preparation: Option<Table>,
}

impl Part {
    /// Tells it from those of other runs of the same experiment: by its heading, and by the names of its charts.
    pub fn number(&mut self, run: usize, of: usize, charts: &mut [Chart]) {
        self.title = format!("{}: run {run} of {of}", self.title);
        let own = |id: &mut String| id.push_str(&format!("-run-{run}"));
        let chapters = self.chapters.iter_mut().chain(&mut self.front);
        let figures = chapters.flat_map(|chapter| &mut chapter.figures);
        figures.for_each(|figure| own(&mut figure.id));
        charts.iter_mut().for_each(|chart| own(&mut chart.id));
    }
}

/// Tables and charts that answer one question.
pub(super) struct Chapter {
    pub title: &'static str,
    pub introduction: String,
    /// Tables that stand for themselves.
    pub tables: Vec<Table>,
    pub figures: Vec<Figure>,
}

/// A chart and its table.
pub(super) struct Figure {
    pub id: String,
    pub title: String,
    pub alternative: String,
    pub legend: String,
    /// The command that shows it again.
    pub command: Option<String>,
    pub expected: usize,
    pub table: Table,
}

impl Figure {
    /// A figure of `chart` in the chapter of this title.
    pub fn new(chart: &Chart, chapter: &str, title: &str, legend: String, table: Table) -> Figure {
        Figure {
            id: chart.id.clone(),
            title: title.to_owned(),
            alternative: format!(
                "Chart. {chapter}: {title}. Its figures are in the data table beneath."
            ),
            legend,
            command: None,
            expected: chart.expected(),
            table,
        }
    }
}

/// The chapter, unless it would be empty.
pub(super) fn chapter(
    title: &'static str,
    introduction: impl Into<String>,
    figures: Vec<Figure>,
) -> Option<Chapter> {
    (!figures.is_empty()).then(|| Chapter {
        title,
        introduction: introduction.into(),
        tables: Vec::new(),
        figures,
    })
}
