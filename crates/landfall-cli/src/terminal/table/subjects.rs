//! What `landfall subjects` prints.

use landfall_databases::Presence;
use landfall_prove::subjects::Description;
use landfall_results::view::{Block, Column, Row, Table, Tone};

fn titled(caption: &str, columns: usize, rows: impl IntoIterator<Item = Row>) -> Vec<Block> {
    let columns = (0..columns).map(|_| Column::text("")).collect();
    Block::titled(Table::new(caption, "", columns).with_rows(rows))
}

/// The databases, with where they are, the subjects of proofs, and clusters, with where they are if they are not in this
/// program.
pub fn subjects<'a>(
    databases: impl Iterator<Item = (&'a Description, &'a str, Presence)>,
    proofs: impl Iterator<Item = &'a Description>,
    clusters: impl Iterator<Item = (&'a Description, Option<Presence>)>,
) -> Vec<Block> {
    let databases =
        databases.map(|(known, title, presence)| Row::of(known.name, [title, &place(presence)]));
    let mut blocks = titled("databases", 2, databases);
    let proofs = proofs.map(|known| Row::of(known.name, [known.about]));
    blocks.extend(titled("what can be proven", 1, proofs));
    let clusters = clusters.map(|(known, presence)| {
        let place = presence.map(place).unwrap_or_default();
        Row::of(known.name, [known.about, &place])
    });
    blocks.extend(titled("clusters, with --nodes", 2, clusters));
    let hint = "'landfall subjects NAME' has the settings of one.".to_owned();
    blocks.push(Block::Prose {
        indent: 0,
        sentences: vec![(Tone::Faint, hint)],
    });
    blocks
}

/// Where a database is.
fn place(presence: Presence) -> String {
    match presence {
        Presence::Here { version, program } => {
            let program = program.map(|program| program.display().to_string());
            let program = program.unwrap_or_else(|| "in this program".into());
            format!("{version}, {program}")
        }
        Presence::Absent { remedy } => format!("not here; {remedy}"),
    }
}

/// The settings of databases, of subjects of proofs and of clusters.
pub fn settings<'a>(
    databases: impl Iterator<Item = &'a Description>,
    proofs: impl Iterator<Item = &'a Description>,
    clusters: impl Iterator<Item = &'a Description>,
) -> Vec<Block> {
    let databases = databases.map(|known| ("", known));
    // Of the same name, when a database is proven.
    let proofs = proofs.map(|known| ("in a proof: ", known));
    let mut blocks = Vec::new();
    let clusters = clusters.map(|known| ("with --nodes: ", known));
    for (place, known) in databases.chain(proofs).chain(clusters) {
        let settings = known.settings.iter().map(|setting| {
            let default = setting.default.unwrap_or("…");
            Row::of(format!("{}={default}", setting.name), [setting.about])
        });
        let others = known
            .passes_on
            .map(|passed_on| Row::of("any other", [passed_on.what]));
        let caption = format!("{place}{}", known.about);
        blocks.push(Block::Heading(caption));
        let columns = vec![Column::text("")];
        let rows = settings.chain(others);
        blocks.push(Block::Table(Table::new("", "", columns).with_rows(rows)));
    }
    blocks
}
