//! What is advised, as a terminal and Markdown show it.

use landfall_results::view::{
    Advised, AdvisedGroup, AdvisedSetting, Block, Cell, CheckedFile, Column, Row, Table, Tone,
    Workload,
};

use super::{advised, lacking};
use crate::advice::{Advice, Lack, System, sentence};

/// Everything that is advised; with what else must be known of each setting as `details`, and with `all`
/// commands that get what is missing.
pub fn advice(advice: &Advice, details: bool, all: bool) -> Vec<Block> {
    let advised = advised(advice);
    let place = format!("{}: {}", advice.directory, advice.place);
    let mut blocks: Vec<Block> = Block::prose(0, [place]).into_iter().collect();
    if let Some(refused) = &advised.refused {
        let headline = (Tone::Bad, "No setting is advised here.".to_owned());
        blocks.push(Block::Prose {
            indent: 0,
            sentences: vec![headline, (Tone::Plain, refused.clone())],
        });
    }
    for group in &advised.groups {
        blocks.push(Block::Heading(group.name.clone()));
        blocks.push(Block::Table(settings(group, details)));
    }
    if !advised.documents.is_empty() {
        let more = (!details).then(|| "--for NAME says more of one system.".to_owned());
        let sentences = [advised.introduction.clone()].into_iter().chain(more);
        blocks.push(Block::Prose {
            indent: 0,
            sentences: sentences.map(|sentence| (Tone::Faint, sentence)).collect(),
        });
        blocks.extend(documents(&advised, details));
    }
    blocks.extend(sentence(advice).and_then(|sentence| Block::prose(0, [sentence])));
    blocks.extend(advised.workload.iter().flat_map(workload));
    blocks.extend(advised.files.iter().flat_map(file));
    blocks.extend(missing(advice, all));
    blocks
}

fn settings(group: &AdvisedGroup, details: bool) -> Table {
    let rows = group.settings.iter().flat_map(|one| setting(one, details));
    let columns = ["advice", "gives", "lost in", "risks"];
    Table::new(
        format!("Settings of {}", group.name),
        "",
        columns.map(Column::text).into(),
    )
    .with_rows(rows)
}

fn setting(setting: &AdvisedSetting, details: bool) -> Vec<Row> {
    let heading = format!("{} [{}]", setting.heading.text, setting.document);
    let mut rows = vec![Row::Group(Cell::toned(setting.heading.tone, heading))];
    if !setting.because.is_empty() {
        rows.push(Row::Said(format!("{}.", setting.because)));
    }
    rows.extend(setting.choices.iter().map(|choice| {
        // What else has to be set with it stands beneath it.
        let head = choice.value.replace(", ", "\n\u{a0}\u{a0}");
        let figures = [&choice.gain, &choice.proof, &choice.risk];
        let figures = figures.map(|figure| Cell::from(figure.as_str()));
        Row::of(
            head,
            [choice.recommendation.clone()].into_iter().chain(figures),
        )
    }));
    if details {
        rows.extend(setting.notes.iter().cloned().map(Row::Said));
    }
    rows
}

fn documents(advised: &Advised, details: bool) -> Vec<Block> {
    let titles = advised.documents.iter().enumerate();
    let titles = titles.map(|(index, one)| (format!("[{}] {}", index + 1, one.text), one));
    let mut blocks = vec![Block::Heading("Documents".to_owned())];
    if details {
        for (title, one) in titles {
            blocks.extend(Block::prose(1, [title]));
            blocks.extend(one.address.clone().map(Block::Address));
        }
    } else {
        blocks.extend(Block::prose(1, titles.map(|(title, _)| title)));
    }
    blocks
}

fn workload(workload: &Workload) -> Vec<Block> {
    let reasons = workload.reasons.iter().cloned();
    let answer = (workload.answer.tone, workload.answer.text.clone());
    let mut blocks = vec![
        Block::Heading(format!("Workload {}", workload.name)),
        Block::Prose {
            indent: 1,
            sentences: [answer]
                .into_iter()
                .chain(reasons.map(|reason| (Tone::Plain, reason)))
                .collect(),
        },
    ];
    blocks.extend(workload.flash.clone().map(Block::Table));
    let changes = workload.changes.iter();
    blocks.extend(Block::prose(1, changes.map(|change| format!("- {change}"))));
    blocks
}

fn file(file: &CheckedFile) -> Vec<Block> {
    let prose = |tone, sentence: &str| Block::Prose {
        indent: 1,
        sentences: vec![(tone, sentence.to_owned())],
    };
    let mut blocks = vec![Block::Heading(file.name.clone())];
    for one in &file.findings {
        blocks.push(prose(one.finding.tone, &one.finding.text));
        blocks.push(Block::Address(one.address.clone()));
    }
    let passed_over = file.passed_over.iter();
    blocks.extend(passed_over.map(|sentence| prose(Tone::Doubt, sentence)));
    blocks.extend(
        file.summary
            .iter()
            .map(|summary| prose(Tone::Good, summary)),
    );
    blocks
}

/// What is not known, and how to get it: the first of a kind, which serves most settings, or everything.
fn missing(advice: &Advice, all: bool) -> Vec<Block> {
    if advice.missing.is_empty() {
        return Vec::new();
    }
    let heading = "Not known here, and how to get it".to_owned();
    let mut blocks = vec![Block::Heading(heading)];
    let mut hidden = 0;
    for system in System::ALL {
        let mut kinds: Vec<Lack> = Vec::new();
        for one in advice.missing.iter().filter(|one| one.system == system) {
            if !all && kinds.contains(&one.what) {
                hidden += 1;
                continue;
            }
            kinds.push(one.what);
            let lacking = lacking(one);
            blocks.extend(Block::prose(1, [lacking.text]));
            blocks.push(Block::Command(lacking.command));
        }
    }
    if hidden > 0 {
        blocks.extend(Block::prose(1, [format!("… and {hidden} more: --missing")]));
    }
    blocks
}
