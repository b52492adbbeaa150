//! Every setting with its values and its evidence, as a terminal shows it.

use landfall_results::view::{
    Advised, AdvisedGroup, AdvisedSetting, Block, Cell, Column, Row, Table, Tone,
};

use super::{advised, answer};
use crate::advice::{Advice, Scope};

/// Everything that is advised on these systems; with what else must be known of each setting as `details`, and with
/// `all` commands that get what is missing.
pub fn tables(advice: &Advice, scope: &Scope, details: bool, all: bool) -> Vec<Block> {
    let advised = advised(advice, scope);
    let place = answer::place(advice).into_iter();
    let mut blocks: Vec<Block> = place.chain(answer::flushes(advice)).collect();
    blocks.extend(advised.refused.as_deref().map(answer::refusal));
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
    blocks.extend(
        advised
            .sentence
            .clone()
            .and_then(|one| Block::prose(0, [one])),
    );
    blocks.extend(advised.workload.iter().flat_map(|workload| {
        let heading = Block::Heading(format!("Workload {}", workload.name));
        [heading].into_iter().chain(answer::of_workload(workload))
    }));
    blocks.extend(advised.files.iter().flat_map(answer::file));
    blocks.extend(answer::missing(advice, scope, all));
    blocks
}

/// Systems that are not installed, folded.
pub(super) fn elsewhere(groups: &[AdvisedGroup]) -> Vec<Block> {
    let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
    let tables = groups.iter().flat_map(|group| {
        let heading = Block::Heading(group.name.clone());
        [heading, Block::Table(settings(group, true))]
    });
    let summary = format!("Not installed here: {}", names.join(", "));
    Block::fold(summary, tables.collect()).into_iter().collect()
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
