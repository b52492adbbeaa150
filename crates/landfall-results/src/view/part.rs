//! What an experiment gives to a page: chapters of tables and figures.

use std::borrow::Cow;

use super::Table;
use super::chart::Chart;
use crate::Term;

/// One experiment's share of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What it is of.
    pub title: String,
    /// Which run of the experiment it is, and of how many, where there are several.
    pub run: Option<(usize, usize)>,
    /// What was found, in sentences, what matters most first.
    pub sentences: Vec<String>,
    /// Its picture of cost against safety, which stands before all parts.
    pub front: Option<Chapter>,
    /// In order.
    pub chapters: Vec<Chapter>,
    /// What could not be measured.
    pub unmeasured: Option<Table>,
    /// What preparations cost.
    pub preparation: Option<Table>,
}

impl Part {
    /// Its heading, where there is more than one.
    pub fn heading(&self) -> String {
        match self.run {
            Some((run, of)) => format!("{}: run {run} of {of}", self.title),
            None => self.title.clone(),
        }
    }

    /// Tells it from those of other runs of the same experiment: by its heading, and by the names of its charts.
    pub fn number(&mut self, run: usize, of: usize) {
        self.run = Some((run, of));
        let chapters = self.chapters.iter_mut().chain(&mut self.front);
        for figure in chapters.flat_map(|chapter| &mut chapter.figures) {
            figure.chart.id.push_str(&format!("-run-{run}"));
        }
    }
}

/// Tables and charts that answer one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// Its heading.
    pub title: Cow<'static, str>,
    /// What must be known to read it; may be empty.
    pub introduction: String,
    /// Tables that stand for themselves.
    pub tables: Vec<Table>,
    /// Charts with their tables.
    pub figures: Vec<Figure>,
}

impl Chapter {
    /// A chapter of one table.
    pub fn of_table(
        title: impl Into<Cow<'static, str>>,
        introduction: impl Into<String>,
        table: Table,
    ) -> Chapter {
        Chapter {
            title: title.into(),
            introduction: introduction.into(),
            tables: vec![table],
            figures: Vec::new(),
        }
    }

    /// A chapter of figures, unless it would be empty.
    pub fn of_figures(
        title: impl Into<Cow<'static, str>>,
        introduction: impl Into<String>,
        figures: Vec<Figure>,
    ) -> Option<Chapter> {
        (!figures.is_empty()).then(|| Chapter {
            title: title.into(),
            introduction: introduction.into(),
            tables: Vec::new(),
            figures,
        })
    }
}

/// A chart and its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its heading.
    pub title: String,
    /// How the chart is to be read; may be empty.
    pub legend: String,
    /// What is drawn.
    pub chart: Chart,
    /// A command that says more of it.
    pub command: Option<Suggestion>,
    /// What the names in it mean, each once; may be empty.
    pub terms: Vec<Term>,
    /// The figures that the chart is drawn from, and more.
    pub table: Table,
}

/// A command, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// Stands before it.
    pub text: Cow<'static, str>,
    /// What to type.
    pub command: String,
}

impl Suggestion {
    /// This command, for this.
    pub fn new(text: impl Into<Cow<'static, str>>, command: impl Into<String>) -> Suggestion {
        Suggestion {
            text: text.into(),
            command: command.into(),
        }
    }
}

impl Figure {
    /// A figure that no command shows again.
    pub fn new(
        title: impl Into<String>,
        chart: Chart,
        legend: impl Into<String>,
        table: Table,
    ) -> Figure {
        Figure {
            title: title.into(),
            legend: legend.into(),
            chart,
            command: None,
            terms: Vec::new(),
            table,
        }
    }

    /// The same with what the names in it mean.
    pub fn with_terms(mut self, terms: impl IntoIterator<Item = Term>) -> Figure {
        for term in terms {
            if !self.terms.contains(&term) {
                self.terms.push(term);
            }
        }
        self
    }
}
