//! Tables and prose as Markdown, to be pasted where people write to each other.

use std::fmt::Write as _;

use landfall_results::view::{Block, Cell, Row, Table, Tone};

/// Everything.
pub fn markdown(blocks: &[Block]) -> String {
    let mut text = String::new();
    for block in blocks {
        match block {
            Block::Heading(heading) => {
                let _ = writeln!(text, "## {}\n", escaped(heading));
            }
            Block::Prose { sentences, .. } => {
                for (tone, sentence) in sentences {
                    let sentence = escaped(sentence);
                    let _ = match tone {
                        Tone::Strong => writeln!(text, "**{sentence}**\n"),
                        _ => writeln!(text, "{sentence}\n"),
                    };
                }
            }
            Block::Command(command) => {
                let _ = writeln!(text, "```sh\n{command}\n```\n");
            }
            Block::Address(address) => {
                let _ = writeln!(text, "<{address}>\n");
            }
            Block::Table(one) => text.push_str(&table(one)),
            Block::Fold { summary, blocks } => {
                let _ = writeln!(text, "## {}\n", escaped(summary));
                text.push_str(&markdown(blocks));
            }
        }
    }
    text
}

fn table(table: &Table) -> String {
    let headings = table.columns.iter().map(|column| column.heading.as_ref());
    let mut text = line([table.corner.as_ref()].into_iter().chain(headings));
    text.push_str("|:--|");
    for column in &table.columns {
        text.push_str(if column.is_text { ":--|" } else { "--:|" });
    }
    text.push('\n');
    let mut notes = Vec::new();
    for row in &table.rows {
        match row {
            Row::Group(Cell { text: said, .. }) | Row::Said(said) => {
                let empty = table.columns.iter().map(|_| "");
                text.push_str(&line([said.as_str()].into_iter().chain(empty)));
            }
            Row::Cells { head, cells } => {
                let cells = cells.iter().map(|cell| cell.text.as_str());
                text.push_str(&line([head.text.as_str()].into_iter().chain(cells)));
            }
            Row::Without { head, reason } => notes.push(format!("{head}: {reason}")),
        }
    }
    text.push('\n');
    for note in notes.iter().chain(&table.notes) {
        let _ = writeln!(text, "{}\n", escaped(note));
    }
    text
}

fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::from("|");
    for cell in cells {
        let _ = write!(text, " {} |", escaped(cell));
    }
    text + "\n"
}

/// What Markdown would take for a mark of its own is none.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '\n' => escaped.push_str("<br>"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use landfall_results::view::Column;

    use super::*;

    #[test]
    fn a_table_is_one_of_markdown() {
        let columns = vec![Column::new("ops/s"), Column::text("why")];
        let mut made = Table::new("Rates", "Strategy", columns).with_rows([
            Row::of("a|b *\nso", ["1,000", "fast"]),
            Row::without("c", "not measured"),
        ]);
        made.note("* not durable");
        let blocks = [Block::Heading("Rates".into()), Block::Table(made)];
        let expected = "\
## Rates

| Strategy | ops/s | why |
|:--|--:|:--|
| a\\|b \\*<br>so | 1,000 | fast |

c: not measured

\\* not durable

";
        assert_eq!(markdown(&blocks), expected);
    }

    #[test]
    fn a_fold_is_open() {
        let inside = Block::prose(2, ["said inside".to_owned()]);
        let blocks = Block::fold("2 systems", inside.into_iter().collect());
        assert_eq!(
            markdown(blocks.as_slice()),
            "## 2 systems\n\nsaid inside\n\n"
        );
    }
}
