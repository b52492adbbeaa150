//! Tables and prose as Markdown, to be pasted where people write to each other.

use std::fmt::Write as _;

use landfall_results::view::{Block, Cell, Row, Table, Tone};

use crate::text::{plain, plain_lines};

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
                let (fence, command) = (fence(command), plain_lines(command));
                let _ = writeln!(text, "{fence}sh\n{command}\n{fence}\n");
            }
            Block::Address(address) => {
                let _ = writeln!(text, "<{}>\n", plain(address));
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

/// What stands above and below a text and is in none of its lines: it is longer than all that is like it.
fn fence(text: &str) -> String {
    let longest = text.split(|c: char| c != '`').map(str::len).max();
    "`".repeat(longest.unwrap_or_default().max(2) + 1)
}

/// What Markdown would take for a mark of its own is none, and nothing ends a row or moves a terminal's cursor.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(letter);
            }
            '\n' => escaped.push_str("<br>"),
            letter if letter.is_control() => escaped.push(' '),
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
    fn a_row_is_one_line_whatever_is_in_it() {
        let made = Table::new("", "", vec![Column::text("why")])
            .with_rows([Row::of("a\rb\r\nc", ["\x1b[2J"])]);
        let text = markdown(&[Block::Table(made)]);
        assert!(text.contains("| a b <br>c |  \\[2J |\n"), "{text:?}");
    }

    #[test]
    fn no_command_leaves_its_fence() {
        let command = |text: &str| markdown(&[Block::Command(text.to_owned())]);
        assert_eq!(command("ls `pwd`"), "```sh\nls `pwd`\n```\n\n");
        assert_eq!(
            command("ls '\n```\n# a heading'"),
            "````sh\nls '\n```\n# a heading'\n````\n\n"
        );
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
