//! The page: one HTML text that needs nothing else.
//!
//! Everything that people read comes from the [`Page`] and is escaped by the template engine; only the repository's own
//! style, script and libraries, and the charts' JSON, go in as they are.

use std::cmp::Reverse;
use std::fmt::{self, Display, Formatter};

use askama::Template;
use landfall_results::view::chart::Chart;
use landfall_results::view::{
    AdvisedGroup, Block, Chapter, Figure, Page, Reference, Row, Table, Tone,
};
use landfall_results::{Fact, Notice, Weight, topics};

const STYLE: &str = concat!(
    include_str!("../templates/report.css"),
    "\n",
    include_str!("../templates/tables.css")
);
/// One script, because its parts share their names; the first part says so.
const SCRIPT: &str = concat!(
    include_str!("../templates/charts/shared.js"),
    "\n",
    include_str!("../templates/charts/rates.js"),
    "\n",
    include_str!("../templates/charts/phases.js"),
    "\n",
    include_str!("../templates/charts/crossing.js"),
    "\n",
    include_str!("../templates/charts/clients.js"),
    "\n",
    include_str!("../templates/charts/knob.js"),
    "\n",
    include_str!("../templates/charts/timeline.js"),
    "\n",
    include_str!("../templates/charts/safety.js"),
    "\n",
    include_str!("../templates/charts/dots.js"),
    "\n",
    include_str!("../templates/report.js")
);
const D3: &str = include_str!("../vendor/d3.min.js");
const PLOT: &str = include_str!("../vendor/plot.umd.min.js");
const LICENCES: [(&str, &str); 2] = [
    (
        "Observable Plot 0.6.17",
        include_str!("../vendor/plot.LICENSE"),
    ),
    ("D3 7.9.2", include_str!("../vendor/d3.LICENSE")),
];

/// Why there is no page.
#[derive(Debug)]
pub struct RenderError(String);

impl Display for RenderError {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot make the report: {}", self.0)
    }
}

impl std::error::Error for RenderError {}

/// The page as one HTML text, which holds everything that it needs.
pub fn render(page: &Page) -> Result<String, RenderError> {
    let chapters = page.parts.iter().flat_map(|part| &part.chapters);
    let figures = page
        .front
        .iter()
        .chain(chapters)
        .flat_map(|chapter| &chapter.figures);
    let charts: Vec<&Chart> = figures.map(|figure| &figure.chart).collect();
    let data = serde_json::to_string(&charts).map_err(|error| RenderError(error.to_string()))?;
    let filled = Filled {
        page,
        level: if page.parts.len() > 1 { 3 } else { 2 },
        data: inert(&data),
    };
    filled
        .render()
        .map_err(|error| RenderError(error.to_string()))
}

/// JSON that cannot end the script element it stands in: `<` occurs in its texts only.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// The template with what it is filled from.
#[derive(Template)]
#[template(path = "report.html")]
struct Filled<'a> {
    page: &'a Page,
    /// Of the headings of chapters: several experiments have headings of their own above them.
    level: u8,
    /// The charts as JSON.
    data: String,
}

/// Characters of two notices that both stand with the verdict: the picture is to be on the first screen, whatever is doubted.
const MOST_DOUBTED: usize = 200;

/// Other warnings of which it says what they are about.
const MOST_NAMED: usize = 2;

/// Rows of a table that are shown: more make a page that no browser likes.
const MOST_ROWS: usize = 400;

/// A table with its notes.
#[derive(Template)]
#[template(path = "table.html")]
struct ShownTable<'a> {
    table: &'a Table,
}

impl ShownTable<'_> {
    fn of(table: &Table) -> ShownTable<'_> {
        ShownTable { table }
    }
}

/// Blocks, one beneath the other; those of a fold are made the same way.
#[derive(Template)]
#[template(path = "blocks.html")]
struct ShownBlocks<'a> {
    blocks: &'a [Block],
}

impl ShownBlocks<'_> {
    fn of(blocks: &[Block]) -> ShownBlocks<'_> {
        ShownBlocks { blocks }
    }
}

/// What the style knows a tone by.
fn class(tone: &Tone) -> &'static str {
    match tone {
        Tone::Good => "holds",
        Tone::Bad => "fails",
        Tone::Doubt => "doubt",
        Tone::Plain | Tone::Strong | Tone::Faint => "",
    }
}

impl Filled<'_> {
    /// What says the same without colour.
    fn sign(tone: &Tone) -> &'static str {
        match tone {
            Tone::Good => "✓",
            Tone::Bad => "✕",
            Tone::Doubt => "?",
            Tone::Plain | Tone::Strong | Tone::Faint => "–",
        }
    }

    /// Class, sign and word of a notice.
    fn mark(weight: &Weight) -> [&'static str; 3] {
        match weight {
            Weight::Danger => ["danger", "✕", "Danger"],
            Weight::Warning => ["warning", "▲", "Warning"],
            Weight::Note => ["note", "i", "Note"],
        }
    }

    /// What the chart of a figure is to those who do not see it.
    fn alternative(chapter: &Chapter, figure: &Figure) -> String {
        format!(
            "Chart. {}: {}. Its figures are in the data table beneath.",
            chapter.title, figure.title
        )
    }

    fn counted(count: usize, one: &str, several: &str) -> String {
        format!("{count} {}", if count == 1 { one } else { several })
    }

    fn all_rows(chapter: &Chapter) -> usize {
        chapter.tables.iter().map(|table| table.rows.len()).sum()
    }

    /// How many settings of a system are advised on, how many of them are to be changed, and of how many no value is safe.
    fn changes(group: &AdvisedGroup) -> String {
        let settings = Self::counted(group.settings.len(), "setting", "settings");
        let counts = [
            (Self::toned(group, Tone::Good), "to change"),
            (Self::toned(group, Tone::Bad), "without a safe value"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        match counts.as_slice() {
            [] => format!("{settings}, none to change"),
            counts => format!("{settings}, {}", counts.join(", ")),
        }
    }

    fn toned(group: &AdvisedGroup, tone: Tone) -> usize {
        let settings = group.settings.iter();
        settings.filter(|one| one.heading.tone == tone).count()
    }

    /// Whether no value of some setting is safe: that is not to be folded.
    fn is_unsafe(group: &AdvisedGroup) -> bool {
        Self::toned(group, Tone::Bad) > 0
    }

    fn is_right(group: &&AdvisedGroup) -> bool {
        Self::toned(group, Tone::Plain) == group.settings.len()
    }

    /// Systems of which something is to be changed.
    fn to_change(&self) -> Vec<&AdvisedGroup> {
        let groups = self.page.advised.groups.iter();
        groups.filter(|group| !Self::is_right(group)).collect()
    }

    /// The others.
    fn right(&self) -> Vec<&AdvisedGroup> {
        self.page
            .advised
            .groups
            .iter()
            .filter(Self::is_right)
            .collect()
    }

    fn names(groups: &[&AdvisedGroup]) -> String {
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        names.join(", ")
    }

    /// Whether anything is said of what to change.
    fn advises(&self) -> bool {
        let advised = &self.page.advised;
        advised.refused.is_some()
            || advised.workload.is_some()
            || !(advised.groups.is_empty() && advised.files.is_empty())
    }

    /// What the claims came to: `15 claims: 2 hold, …`.
    fn verdicts(&self) -> String {
        let mut verdicts: Vec<(&str, usize)> = Vec::new();
        for claim in &self.page.claims.rows {
            let verdict = claim.verdict.text.as_str();
            match verdicts.iter_mut().find(|(known, _)| *known == verdict) {
                Some((_, count)) => *count += 1,
                None => verdicts.push((verdict, 1)),
            }
        }
        let verdicts = verdicts
            .into_iter()
            .map(|(verdict, count)| format!("{count} {verdict}"));
        let claims = Self::counted(self.page.claims.rows.len(), "claim", "claims");
        format!("{claims}: {}", verdicts.collect::<Vec<_>>().join(", "))
    }

    /// The weightiest notices themselves, for those who read no further than the verdict, what others are about, and how many notes
    /// there are.
    fn doubts(&self) -> Option<String> {
        let mut all: Vec<&Notice> = self.page.notices.iter().collect();
        all.sort_by_key(|notice| Reverse(notice.weight));
        let weighty = all.partition_point(|notice| notice.weight > Weight::Note);
        let is_short = |those: &[&Notice]| {
            let lengths = those.iter().map(|one| one.text.chars().count());
            lengths.sum::<usize>() <= MOST_DOUBTED
        };
        let two = weighty > 1 && is_short(&all[..2]);
        let shown = if two { 2 } else { weighty.min(1) };
        let (worst, others) = all.split_at(shown);
        let worst: Vec<&str> = worst.iter().map(|notice| notice.text.as_str()).collect();
        let worst = worst.join(" ");
        let (doubts, notes) = others.split_at(weighty - shown);
        let mut named = topics(doubts.iter().copied());
        named.truncate(MOST_NAMED);
        let of = |topic: &str, weight| {
            let mut all = doubts.iter();
            all.any(|one| one.topic() == topic && one.weight == weight)
        };
        let named_by_weight = named.iter().map(|topic| {
            if of(topic, Weight::Danger) {
                format!("{topic} (danger)")
            } else {
                (*topic).to_owned()
            }
        });
        let mut rest: Vec<String> = named_by_weight.collect();
        let is_named = |one: &&&Notice| named.contains(&one.topic());
        let unnamed = doubts.len() - doubts.iter().filter(is_named).count();
        let more = [
            (unnamed, "more warning", "more warnings"),
            (notes.len(), "note", "notes"),
        ];
        let more = more.into_iter().filter(|(count, ..)| *count > 0);
        rest.extend(more.map(|(count, one, several)| Self::counted(count, one, several)));
        let rest = rest.join(", ");
        match (worst.as_str(), rest.as_str()) {
            ("", "") => None,
            ("", _) => Some(format!("{rest}.")),
            (_, "") => Some(worst),
            (..) => Some(format!("{worst} Also: {rest}.")),
        }
    }

    /// Notices without which figures mislead.
    fn weighty(&self) -> Vec<&Notice> {
        let notices = self.page.notices.iter();
        notices.filter(|one| one.weight > Weight::Note).collect()
    }

    /// The others.
    fn notes(&self) -> Vec<&Notice> {
        let notices = self.page.notices.iter();
        notices.filter(|one| one.weight == Weight::Note).collect()
    }

    /// No more than a fold would save.
    fn are_few(notes: &[&Notice]) -> bool {
        notes.len() <= 3
    }

    /// What there is on the page, and where.
    fn contents(&self) -> Vec<(String, String)> {
        let page = self.page;
        let mut contents: Vec<(String, String)> = Vec::new();
        if self.advises() {
            contents.push(("change".to_owned(), "What to change".to_owned()));
        }
        if !page.notices.is_empty() {
            let name = "Before you rely on this".to_owned();
            contents.push(("notices".to_owned(), name));
        }
        if page.parts.len() > 1 {
            for (at, part) in page.parts.iter().enumerate() {
                let name = match part.run {
                    None => part.title.clone(),
                    Some((1, of)) => format!("{}: {of} runs", part.title),
                    Some(_) => continue,
                };
                contents.push((format!("part-{}", at + 1), name));
            }
        }
        if !page.claims.rows.is_empty() {
            contents.push(("claims".to_owned(), "Published claims".to_owned()));
        }
        if !page.facts.is_empty() {
            contents.push(("foundation".to_owned(), page.foundation.clone()));
        }
        contents
    }

    fn preparations(&self) -> impl Iterator<Item = &Table> {
        self.page
            .parts
            .iter()
            .filter_map(|part| part.preparation.as_ref())
    }

    /// Facts of one subject at a time.
    fn subjects(&self) -> impl Iterator<Item = (&str, &[Fact])> {
        let facts = &self.page.facts;
        facts
            .chunk_by(|one, next| one.subject == next.subject)
            .map(|facts| (facts.first().map_or("", |one| one.subject.as_str()), facts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_results::view::{AdvisedSetting, Cell};

    #[test]
    fn a_setting_without_a_safe_value_is_not_among_those_with_nothing_to_change() {
        let group = |tones: &[Tone]| AdvisedGroup {
            name: "one".to_owned(),
            settings: tones
                .iter()
                .map(|tone| AdvisedSetting {
                    name: "setting".to_owned(),
                    heading: Cell::toned(*tone, "setting"),
                    because: String::new(),
                    notes: Vec::new(),
                    document: 1,
                    choices: Vec::new(),
                })
                .collect(),
        };
        let cases: [(&[Tone], &str, bool, bool); 3] = [
            (&[Tone::Plain], "1 setting, none to change", true, false),
            (
                &[Tone::Good, Tone::Plain],
                "2 settings, 1 to change",
                false,
                false,
            ),
            (
                &[Tone::Bad, Tone::Plain],
                "2 settings, 1 without a safe value",
                false,
                true,
            ),
        ];
        for (tones, said, is_right, is_unsafe) in cases {
            let group = group(tones);
            assert_eq!(Filled::changes(&group), said);
            assert_eq!(Filled::is_right(&&group), is_right, "{said}");
            assert_eq!(Filled::is_unsafe(&group), is_unsafe, "{said}");
        }
    }

    #[test]
    fn a_fold_is_closed_and_may_hold_another() {
        let command = Block::Command("landfall prove sqlite".into());
        let inner = Block::fold("1 command", vec![command]).expect("a fold");
        let address = Block::Address("javascript:alert(1)".into());
        let outer = Block::fold("1 fold & 1 address", vec![inner, address]);
        let html = ShownBlocks::of(outer.as_slice()).render().expect("HTML");
        assert_eq!(html.matches("<details>").count(), 2, "{html}");
        assert!(html.contains("<summary>1 fold &#38; 1 address</summary>"));
        assert!(html.contains("<pre><code>landfall prove sqlite</code></pre>"));
        assert!(!html.contains("href"), "{html}");
        assert_eq!(Block::fold("nothing", Vec::new()), None);
    }

    #[test]
    fn embedded_json_cannot_end_its_element() {
        assert_eq!(
            inert(r#"["</script><!--"]"#),
            r#"["\u003c/script>\u003c!--"]"#
        );
    }

    #[test]
    fn the_libraries_cannot_end_the_element_that_they_stand_in() {
        for library in [D3, PLOT, SCRIPT] {
            assert!(!library.contains("</script") && !library.contains("<!--"));
        }
        assert!(!STYLE.contains("</style"));
    }
}
