//! What `landfall subjects` prints.

use std::fmt::Write as _;

use comfy_table::{ColumnConstraint, Width};
use landfall_databases::Presence;
use landfall_prove::subjects::Description;

use super::layout::{at_least, lines, plain_table, set_width};
use crate::terminal::style::{FAINT, STRONG, styled};

/// Columns of a name.
const NAME: u16 = 12;

/// The databases, with where they are, and the subjects of proofs.
pub fn subjects<'a>(
    databases: impl Iterator<Item = (&'a Description, &'a str, Presence)>,
    proofs: impl Iterator<Item = &'a Description>,
) -> String {
    let mut table = plain_table();
    for (known, title, presence) in databases {
        let place = match presence {
            Presence::Here { version, program } => {
                let program = program.map(|program| program.display().to_string());
                let program = program.unwrap_or_else(|| "in this program".into());
                format!("{version}, {program}")
            }
            Presence::Absent { remedy } => format!("not here; {remedy}"),
        };
        table.add_row(vec![known.name, title, &place]);
    }
    set_width(
        &mut table,
        0,
        ColumnConstraint::Absolute(Width::Fixed(NAME)),
    );
    at_least(&mut table, 1, 22);
    let mut text = format!("{}\n{}", styled(STRONG, "databases"), lines(&table));
    let mut table = plain_table();
    for known in proofs {
        table.add_row(vec![known.name, known.about]);
    }
    set_width(
        &mut table,
        0,
        ColumnConstraint::Absolute(Width::Fixed(NAME)),
    );
    let _ = writeln!(
        text,
        "\n{}\n{}\n{}",
        styled(STRONG, "what can be proven"),
        lines(&table),
        styled(FAINT, "'landfall subjects NAME' has the settings of one.")
    );
    text
}

/// The settings of databases and of subjects of proofs.
pub fn settings<'a>(
    databases: impl Iterator<Item = &'a Description>,
    proofs: impl Iterator<Item = &'a Description>,
) -> String {
    let databases = databases.map(|known| ("", known));
    // Of the same name, when a database is proven.
    let proofs = proofs.map(|known| ("in a proof: ", known));
    let mut text = String::new();
    for (place, known) in databases.chain(proofs) {
        if !text.is_empty() {
            text.push('\n');
        }
        let heading = format!("{place}{}", known.about);
        let _ = writeln!(text, "{}", styled(STRONG, &heading));
        let mut table = plain_table();
        for setting in known.settings {
            let default = setting.default.unwrap_or("…");
            table.add_row(vec![
                format!("{}={default}", setting.name),
                setting.about.into(),
            ]);
        }
        if let Some(what) = known.passes_on {
            table.add_row(vec!["any other", what]);
        }
        text.push_str(&lines(&table));
    }
    text
}
