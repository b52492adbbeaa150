//! The page that the template is filled from.
//!
//! Everything that people read comes from here and is escaped by the template engine; only the
//! repository's own style, script and libraries, and the charts' JSON, go in as they are.

use std::borrow::Cow;

use askama::Template;

use super::charts::{Chart, MOST_ROWS};
use super::prose;
use super::tables::{self, Table};
use crate::claim::{ClaimResult, Verdict};
use crate::facts::{self, Fact};
use crate::numbers::{NOTHING, interval, two};
use crate::sync::{Section, SyncResults, sections};
use crate::{Error, Notice, Results, Weight, duration_text};

pub(super) const STYLE: &str = concat!(
    include_str!("../../templates/report.css"),
    "\n",
    include_str!("../../templates/tables.css")
);

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    results: &'a Results,
    place: String,
    circumstances: String,
    sentences: Vec<String>,
    notices: Vec<Mark<'a>>,
    chapters: Vec<Chapter>,
    claims: Vec<Claim<'a>>,
    sources: Vec<Source<'a>>,
    subjects: Vec<Subject>,
    unmeasured: Option<Table>,
    preparation: Option<Table>,
    style: &'static str,
    script: &'static str,
    d3: &'static str,
    plot: &'static str,
    licences: [(&'static str, &'static str); 2],
    data: String,
}

/// A notice with a mark that does not need colour.
struct Mark<'a> {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    text: &'a str,
}

/// Charts that answer one question.
struct Chapter {
    title: &'static str,
    introduction: &'static str,
    figures: Vec<Figure>,
}

/// A chart and its table.
struct Figure {
    id: String,
    title: String,
    alternative: String,
    legend: String,
    expected: usize,
    table: Table,
}

struct Claim<'a> {
    result: &'a ClaimResult,
    published: String,
    today: String,
    interval: String,
    class: &'static str,
    sign: &'static str,
    source: usize,
}

struct Source<'a> {
    number: usize,
    text: &'a str,
    address: Option<&'a str>,
}

impl Source<'_> {
    fn says_as(&self, other: &Source<'_>) -> bool {
        (self.text, self.address) == (other.text, other.address)
    }
}

/// Facts about one thing.
struct Subject {
    name: String,
    facts: Vec<Fact>,
}

/// The report as one HTML text.
pub(super) fn render(results: &Results) -> Result<String, Error> {
    let failed = |error: String| Error::Usage(format!("cannot make the report: {error}"));
    let sync = results.sync();
    let shown = sync.map(|sync| as_durable_as_it_is(sync, prose::in_memory(results)));
    let sections = shown.as_deref().map(sections).unwrap_or_default();
    let mut charts = Vec::new();
    let chapters = chapters(&sections, &mut charts);
    let (claims, sources) = claims(sync);
    let data = serde_json::to_string(&charts).map_err(|error| failed(error.to_string()))?;
    let page = Page {
        results,
        place: facts::place(&results.filesystem),
        circumstances: circumstances(results),
        sentences: prose::sentences(results),
        notices: results.notices.iter().map(mark).collect(),
        chapters,
        claims,
        sources,
        subjects: subjects(results),
        unmeasured: sync.and_then(tables::unmeasured),
        preparation: sync.map(tables::preparation),
        style: STYLE,
        script: include_str!("../../templates/report.js"),
        d3: include_str!("vendor/d3.min.js"),
        plot: include_str!("vendor/plot.umd.min.js"),
        licences: [
            (
                "Observable Plot 0.6.17",
                include_str!("vendor/plot.LICENSE"),
            ),
            ("D3 7.9.2", include_str!("vendor/d3.LICENSE")),
        ],
        data: inert(&data),
    };
    page.render().map_err(|error| failed(error.to_string()))
}

/// The results, no strategy of which counts as durable in main memory.
fn as_durable_as_it_is(sync: &SyncResults, in_memory: bool) -> Cow<'_, SyncResults> {
    let mut shown = Cow::Borrowed(sync);
    if in_memory {
        for strategy in &mut shown.to_mut().strategies {
            strategy.durable = false;
        }
    }
    shown
}

/// JSON that cannot end the script element it stands in: `<` occurs in its texts only.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

fn circumstances(results: &Results) -> String {
    let when = results
        .started
        .parse::<jiff::Timestamp>()
        .map_or(results.started.clone(), |time| {
            time.strftime("%-d %B %Y, %H:%M UTC").to_string()
        });
    let mut parts = vec![format!("Linux {}", results.host.kernel), when];
    if let Some(sync) = results.sync() {
        let plan = sync.plan.name();
        let rounds = match sync.rounds {
            1 => "1 round".to_owned(),
            rounds => format!("{rounds} rounds"),
        };
        parts.push(format!(
            "{plan}, {rounds} in {}",
            duration_text(results.seconds)
        ));
    }
    parts.join(" · ")
}

fn mark(notice: &Notice) -> Mark<'_> {
    let (class, sign, word) = match notice.weight {
        Weight::Danger => ("danger", "✕", "Danger"),
        Weight::Warning => ("warning", "▲", "Warning"),
        Weight::Note => ("note", "i", "Note"),
    };
    Mark {
        class,
        sign,
        word,
        text: &notice.text,
    }
}

fn chapters(sections: &[Section<'_>], charts: &mut Vec<Chart>) -> Vec<Chapter> {
    let mut chapter = |title, introduction, make: fn(&Section<'_>) -> Option<Chart>, axes: &[_]| {
        let figures: Vec<Figure> = sections
            .iter()
            .filter(|section| axes.contains(&section.axis))
            .filter_map(|section| {
                let chart = make(section)?;
                let figure = figure(&chart, section, title);
                charts.push(chart);
                Some(figure)
            })
            .collect();
        (!figures.is_empty()).then_some(Chapter {
            title,
            introduction,
            figures,
        })
    };
    // Where nothing is varied on its own, the strategies as they are named get all charts.
    let main: &[&str] = match sections {
        [only] if only.axis == "other" => &["other"],
        _ => &["allocation", "method"],
    };
    let costs = [main, &["pages"]].concat();
    let measured = || {
        sections
            .iter()
            .flat_map(|section| &section.rows)
            .map(|(_, strategy)| *strategy)
            .filter(|strategy| strategy.summary.is_some())
    };
    let rates = match measured().any(|strategy| strategy.durable) {
        true => "Durable writes per second",
        false => "Writes per second, none of them durable",
    };
    let spread = match measured().any(|strategy| strategy.trials.len() > 1) {
        true => {
            "A dot is the median over the rounds, a bar its 95% interval. Where bars overlap, do not conclude a difference from the chart."
        }
        false => {
            "A dot is a single measurement. Without more rounds there are no intervals, and no difference is shown."
        }
    };
    [
        chapter(
            rates,
            spread,
            Chart::rates,
            &["allocation", "method", "size", "threads", "pages", "other"],
        ),
        chapter(
            "Latency",
            "How long an operation took, from the quickest to the slowest: 99 on the lower scale means that 99 of 100 took no longer. Both scales are logarithmic, and the lower one stretches the slow end. Each panel has one strategy in colour and the others in grey.",
            Chart::latency,
            main,
        ),
        chapter(
            "What an operation costs the device",
            "Counted by the kernel at the device, per operation. A sync that changes metadata writes the journal as well; each flush empties the disk's cache.",
            Chart::costs,
            &costs,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn figure(chart: &Chart, section: &Section<'_>, chapter: &str) -> Figure {
    let mut legend = Vec::new();
    let lax = section
        .rows
        .iter()
        .any(|(_, s)| !s.durable && s.summary.is_some());
    let rate = chart.id.starts_with("rate-");
    if lax && rate {
        legend.push("A hollow dot is not durable: a power cut loses these writes.".to_owned());
    }
    if chart.id.starts_with("latency-") {
        legend.push("Microseconds against percentile.".to_owned());
    }
    if lax && chart.id.starts_with("latency-") {
        legend.push("Panels marked * are not durable.".to_owned());
    }
    if rate && section.axis == "other" && section.rows.len() > MOST_ROWS {
        legend.push(format!(
            "The fastest {MOST_ROWS} of {} strategies, durable ones first.",
            section.rows.len()
        ));
    }
    let bounded = |cost: crate::sync::DeviceCost| cost.writes.is_none();
    if chart.id.starts_with("cost-")
        && section.rows.iter().any(|(_, s)| {
            s.summary
                .as_ref()
                .and_then(|summary| summary.device)
                .is_some_and(bounded)
        })
    {
        legend.push(
            "A hollow bar with ≤ is an upper bound: empty flushes could not be told from writes."
                .to_owned(),
        );
    }
    Figure {
        id: chart.id.clone(),
        title: section.title.clone(),
        alternative: format!(
            "Chart. {chapter}: {}. Its figures are in the data table beneath.",
            section.title
        ),
        legend: legend.join(" "),
        expected: chart.expected(),
        table: Table::of(chart, section),
    }
}

fn claims(sync: Option<&SyncResults>) -> (Vec<Claim<'_>>, Vec<Source<'_>>) {
    let mut sources: Vec<Source<'_>> = Vec::new();
    let claims = sync
        .into_iter()
        .flat_map(|sync| &sync.claims)
        .map(|result| {
            let cited = source(sources.len() + 1, &result.source);
            let number = match sources.iter().find(|known| known.says_as(&cited)) {
                Some(known) => known.number,
                None => {
                    sources.push(cited);
                    sources.len()
                }
            };
            let (class, sign) = match result.verdict {
                Verdict::Holds => ("holds", "✓"),
                Verdict::DoesNotHold => ("fails", "✕"),
                Verdict::CannotBeTold => ("doubt", "?"),
            };
            let or_nothing = |text: Option<String>| text.unwrap_or(NOTHING.to_owned());
            Claim {
                result,
                published: or_nothing(result.published.map(two)),
                today: or_nothing(result.today.map(|today| two(today.median))),
                interval: or_nothing(result.today.map(|today| interval(&today, two))),
                class,
                sign,
                source: number,
            }
        })
        .collect();
    (claims, sources)
}

/// A source, its address apart from its text.
fn source(number: usize, text: &str) -> Source<'_> {
    let at = text.find("https://").or_else(|| text.find("http://"));
    let (text, address) = match at {
        Some(at) => (
            text[..at].trim_end_matches([' ', ',']),
            text[at..].split_whitespace().next(),
        ),
        None => (text, None),
    };
    Source {
        number,
        text,
        address,
    }
}

fn subjects(results: &Results) -> Vec<Subject> {
    let mut subjects: Vec<Subject> = Vec::new();
    for fact in facts::facts(&results.host, &results.filesystem) {
        match subjects.last_mut() {
            Some(subject) if subject.name == fact.subject => subject.facts.push(fact),
            _ => subjects.push(Subject {
                name: fact.subject.clone(),
                facts: vec![fact],
            }),
        }
    }
    subjects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_from_the_text_before_it() {
        let source = source(
            1,
            "A. Writer, \"A post\", 2009, http://example.org/post.html",
        );
        assert_eq!(source.text, "A. Writer, \"A post\", 2009");
        assert_eq!(source.address, Some("http://example.org/post.html"));
    }

    #[test]
    fn embedded_json_cannot_end_its_element() {
        assert_eq!(
            inert(r#"["</script><!--"]"#),
            r#"["\u003c/script>\u003c!--"]"#
        );
    }
}
