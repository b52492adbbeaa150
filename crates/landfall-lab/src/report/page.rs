//! The page that the template is filled from.
//!
//! Everything that people read comes from here and is escaped by the template engine; only the
//! repository's own style, script and libraries, and the charts' JSON, go in as they are.

use askama::Template;

use super::advice::{Advised, advised};
use super::{amplify, binlog, prose, prove, stream, sync, torn};
use crate::advice::Advice;
use crate::facts;
use crate::{Error, Notice, Results, Weight};
use landfall_os::humanize::{bytes_text, duration_text};
use landfall_results::Fact;
use landfall_results::proof::ProofResults;
use landfall_results::view::chart::Chart;
use landfall_results::view::{Chapter, Claims, Part, Row, Table, Tone};

pub(super) const STYLE: &str = concat!(
    include_str!("../../templates/report.css"),
    "\n",
    include_str!("../../templates/tables.css")
);
/// One script, because its parts share their names; the first part says so.
pub(super) const SCRIPT: &str = concat!(
    include_str!("../../templates/charts/shared.js"),
    "\n",
    include_str!("../../templates/charts/sync.js"),
    "\n",
    include_str!("../../templates/charts/stream.js"),
    "\n",
    include_str!("../../templates/charts/saving.js"),
    "\n",
    include_str!("../../templates/charts/configuration.js"),
    "\n",
    include_str!("../../templates/charts/timeline.js"),
    "\n",
    include_str!("../../templates/charts/safety.js"),
    "\n",
    include_str!("../../templates/report.js")
);

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    results: &'a Results,
    /// The filesystem that was made to measure on, if one was.
    made: Option<String>,
    heading: String,
    /// What the heading says, where it is a verdict.
    verdict: Option<Verdict>,
    /// What the window is called.
    title: String,
    /// The directory that was measured in, or what was proven.
    subject: String,
    place: String,
    circumstances: String,
    sentences: Vec<String>,
    /// Cost against safety.
    front: Vec<Chapter>,
    advised: Advised<'a>,
    notices: Vec<Mark<'a>>,
    parts: Vec<Part>,
    /// Of the headings of chapters: several experiments have headings of their own above them.
    level: u8,
    claims: Claims,
    /// Heading of the facts.
    foundation: &'static str,
    subjects: Vec<Subject>,
    style: &'static str,
    script: &'static str,
    d3: &'static str,
    plot: &'static str,
    licences: [(&'static str, &'static str); 2],
    data: String,
}

impl Page<'_> {
    /// Rows of a table that are shown: more make a page that no browser likes.
    const MOST_ROWS: usize = 400;

    fn class(tone: &Tone) -> &'static str {
        match tone {
            Tone::Good => "holds",
            Tone::Bad => "fails",
            Tone::Doubt => "doubt",
            Tone::Plain | Tone::Strong | Tone::Faint => "",
        }
    }

    /// What says the same without colour.
    fn sign(tone: &Tone) -> &'static str {
        match tone {
            Tone::Good => "✓",
            Tone::Bad => "✕",
            Tone::Doubt => "?",
            Tone::Plain | Tone::Strong | Tone::Faint => "–",
        }
    }

    fn preparations(&self) -> impl Iterator<Item = &Table> {
        self.parts
            .iter()
            .filter_map(|part| part.preparation.as_ref())
    }
}

/// A verdict, with a sign that does not need colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Good,
    Bad,
    Doubt,
}

impl Verdict {
    fn class(&self) -> &'static str {
        match self {
            Verdict::Good => "holds",
            Verdict::Bad => "fails",
            Verdict::Doubt => "doubt",
        }
    }

    fn sign(&self) -> &'static str {
        match self {
            Verdict::Good => "✓",
            Verdict::Bad => "✕",
            Verdict::Doubt => "?",
        }
    }
}

/// A notice with a mark that does not need colour.
struct Mark<'a> {
    class: &'static str,
    sign: &'static str,
    word: &'static str,
    text: &'a str,
}

/// Facts about one thing.
struct Subject {
    name: String,
    facts: Vec<Fact>,
}

/// The report as one HTML text.
pub(super) fn render(results: &Results, advice: &Advice) -> Result<String, Error> {
    let failed = |error: String| Error::Usage(format!("cannot make the report: {error}"));
    let mut parts = Vec::new();
    if let Some(found) = results.first() {
        parts.push(sync::part(results, found));
    }
    if let Some(found) = results.first() {
        parts.push(stream::part(results, found));
    }
    add_runs(&mut parts, results.all(), binlog::part);
    add_runs(&mut parts, results.all(), torn::part);
    add_runs(&mut parts, results.all(), amplify::part);
    let proofs: Vec<&ProofResults> = results.proofs().collect();
    if !proofs.is_empty() {
        parts.push(prove::part(&proofs));
    }
    let sentences = prose::verdict(results, &mut parts, advice);
    let front = parts.iter_mut().filter_map(|part| part.front.take());
    let front: Vec<Chapter> = front.collect();
    let chapters = parts.iter().flat_map(|part| &part.chapters);
    let figures = front
        .iter()
        .chain(chapters)
        .flat_map(|chapter| &chapter.figures);
    let charts: Vec<&Chart> = figures.map(|figure| &figure.chart).collect();
    let data = serde_json::to_string(&charts).map_err(|error| failed(error.to_string()))?;
    let only_proofs = results.has_only_proofs();
    let (heading, verdict) = if only_proofs {
        let (heading, verdict) = prove::prose::heading(&proofs);
        (heading, Some(verdict))
    } else {
        (heading(&parts), None)
    };
    let (subject, place) = match (only_proofs, proofs.as_slice()) {
        (true, [proof]) => (proof.subject.to_string(), recorder(proof)),
        (true, several) => (String::new(), format!("{} recorded devices", several.len())),
        (false, _) => (results.directory.clone(), facts::place(&results.filesystem)),
    };
    let page = Page {
        results,
        title: if only_proofs {
            heading.clone()
        } else {
            format!("{heading}: {}", results.directory)
        },
        heading,
        verdict,
        subject,
        level: if parts.len() > 1 { 3 } else { 2 },
        made: results.site.text().filter(|_| !only_proofs),
        place,
        circumstances: circumstances(results),
        sentences,
        front,
        advised: advised(advice),
        notices: results.notices.iter().map(mark).collect(),
        parts,
        claims: Claims::of(results.claims()),
        foundation: match (only_proofs, proofs.len()) {
            (true, 1) => "The filesystem that was made",
            (true, _) => "The filesystem that was made first",
            (false, _) => "What this directory stands on",
        },
        subjects: subjects(results),
        style: STYLE,
        script: SCRIPT,
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

fn recorder(proof: &ProofResults) -> String {
    let bytes = bytes_text(proof.device_bytes);
    format!("{} on a recorded device of {bytes}", proof.filesystem_spec)
}

fn heading(parts: &[Part]) -> String {
    match parts {
        [] => "What a durable write costs".to_owned(),
        [only] => only.title.clone(),
        _ => "What it costs to make data durable".to_owned(),
    }
}

/// A part for each run of an experiment, told apart where there are several.
fn add_runs<'a, T: 'a>(
    parts: &mut Vec<Part>,
    runs: impl Iterator<Item = &'a T>,
    part: fn(&T) -> Part,
) {
    let runs: Vec<&T> = runs.collect();
    for (index, run) in runs.iter().enumerate() {
        let mut part = part(run);
        if runs.len() > 1 {
            part.number(index + 1, runs.len());
        }
        parts.push(part);
    }
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
    let experiments = results.experiments.iter();
    let plans: Vec<(&str, String)> = experiments
        .filter_map(|one| {
            let rounds = match one.findings()?.rounds() {
                1 => "1 round".to_owned(),
                rounds => format!("{rounds} rounds"),
            };
            Some((
                one.name(),
                format!("{}, {rounds}", one.findings()?.plan().name()),
            ))
        })
        .collect();
    let plans = match plans.as_slice() {
        [] => None,
        [(_, first), rest @ ..] if rest.iter().all(|(_, other)| other == first) => {
            Some(first.clone())
        }
        several => {
            let mut each: Vec<String> = Vec::new();
            for (name, plan) in several {
                let text = format!("{name}: {plan}");
                // Of several runs that were merged.
                if !each.contains(&text) {
                    each.push(text);
                }
            }
            Some(each.join("; "))
        }
    };
    if let Some(plans) = plans {
        parts.push(format!("{plans} in {}", duration_text(results.seconds)));
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
    fn embedded_json_cannot_end_its_element() {
        assert_eq!(
            inert(r#"["</script><!--"]"#),
            r#"["\u003c/script>\u003c!--"]"#
        );
    }
}
