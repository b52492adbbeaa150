//! Tables and prose for a terminal, at most 100 columns wide, or fewer.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width, presets};
use landfall_results::view::{Block, Cell, Column, Row, Table, Tone};

use crate::style::{FAINT, STRONG, styled, toned};

/// No line of tables is wider, in columns.
const WIDTH: u16 = 100;
/// Columns that the heading of a row gets at least, if it needs them: it is not broken, unless figures would be.
const HEAD: usize = 31;
/// Words that are longer are broken rather than the heading of a row.
const WORDS: usize = 24;
/// A column of words gets so many columns at least, if it needs them.
const LEAST_WORDS: usize = 12;

/// A text that came from elsewhere, on one line, with nothing in it that moves a terminal's cursor.
pub fn plain(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect()
}

/// The same of each line of a text.
pub fn plain_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(plain).collect();
    lines.join("\n")
}

/// Everything, with a blank line above each heading and between paragraphs and tables.
pub fn text(blocks: &[Block]) -> String {
    text_within(WIDTH, blocks)
}

/// The same, in lines of at most `width` columns; commands and addresses are never broken.
pub fn text_within(width: u16, blocks: &[Block]) -> String {
    let mut text = String::new();
    add(&mut text, width, blocks, false);
    text
}

/// Lines that are not broken, as editors and scripts take them.
pub fn lines(lines: &[(Tone, String)]) -> String {
    let lines = lines
        .iter()
        .map(|(tone, line)| toned(*tone, &plain(line)) + "\n");
    lines.collect()
}

fn add(text: &mut String, width: u16, blocks: &[Block], mut is_beneath_heading: bool) {
    let mut is_apart = false;
    for block in blocks {
        match block {
            Block::Heading(heading) => {
                let _ = write!(text, "\n{}\n", styled(STRONG, &plain(heading)));
            }
            Block::Prose { indent, sentences } => {
                if !is_beneath_heading {
                    text.push('\n');
                }
                for (tone, sentence) in sentences {
                    let sentence = toned(*tone, &plain_lines(sentence));
                    text.push_str(&wrapped(width, *indent, &sentence));
                }
            }
            Block::Command(command) => {
                let _ = writeln!(text, "    {}", plain_lines(command));
            }
            Block::Address(address) => {
                let _ = writeln!(text, "    {}", styled(FAINT, &plain(address)));
            }
            Block::Table(one) => {
                if is_apart {
                    text.push('\n');
                }
                text.push_str(&table_within(width, one));
            }
            // Nothing can be opened on paper or in a pipe: what is folded elsewhere has a heading here.
            Block::Fold { summary, blocks } => {
                let _ = write!(text, "\n{}\n", styled(STRONG, &plain(summary)));
                add(text, width, blocks, true);
            }
        }
        is_beneath_heading = matches!(block, Block::Heading(_));
        is_apart = !is_beneath_heading;
    }
}

/// A paragraph in lines of `width` columns, indented by `indent`.
fn wrapped(width: u16, indent: u16, text: &str) -> String {
    let mut table = plain_table(width);
    table.add_row(vec![text]);
    for column in table.column_iter_mut() {
        column.set_padding((indent, 0));
    }
    laid_out(&table)
}

/// A table without lines, no wider than a terminal.
fn plain_table(width: u16) -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table
}

/// The table without trailing blanks.
fn laid_out(table: &comfy_table::Table) -> String {
    table
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// A table with its notes. What there is nothing of but a reason is said among them.
pub fn table(table: &Table) -> String {
    table_within(WIDTH, table)
}

/// The table with nothing in its texts that moves a cursor.
fn plain_texts(table: &Table) -> Table {
    let mut table = table.clone();
    table.corner = plain(&table.corner).into();
    for column in &mut table.columns {
        column.heading = plain(&column.heading).into();
    }
    for row in &mut table.rows {
        match row {
            Row::Group(head) => head.text = plain_lines(&head.text),
            Row::Said(sentence) => *sentence = plain_lines(sentence),
            Row::Cells { head, cells } => {
                for cell in std::iter::once(head).chain(cells) {
                    cell.text = plain_lines(&cell.text);
                }
            }
            Row::Without { head, reason } => {
                *head = plain_lines(head);
                *reason = plain_lines(reason);
            }
        }
    }
    for note in &mut table.notes {
        *note = plain_lines(note);
    }
    table
}

fn table_within(width: u16, table: &Table) -> String {
    let table = &plain_texts(table);
    let layout = Layout::of(width, table);
    let mut text = String::new();
    let mut under_way = plain_table(width);
    let headings = headings(table, &layout.widths);
    if headings.iter().any(|heading| !heading.trim().is_empty()) {
        under_way.set_header(headings);
    }
    let (mut notes, mut is_grouped) = (Vec::new(), false);
    for row in &table.rows {
        let indent = if is_grouped { "  " } else { "" };
        match row {
            Row::Group(head) => {
                is_grouped = true;
                text.push_str(&layout.lines(std::mem::replace(&mut under_way, plain_table(width))));
                text.push_str(&wrapped(width, 1, &toned(head.tone, &head.text)));
            }
            Row::Said(sentence) => {
                text.push_str(&layout.lines(std::mem::replace(&mut under_way, plain_table(width))));
                let said = wrapped(width, 1 + indent.len() as u16, sentence);
                let _ = writeln!(text, "{}", styled(FAINT, said.trim_end()));
            }
            Row::Cells { head, cells } => {
                let mut line = vec![format!("{indent}{}", toned(head.tone, &head.text))];
                line.extend(cells.iter().map(|cell| toned(cell.tone, &cell.text)));
                under_way.add_row(line);
            }
            Row::Without { head, reason } => {
                let note = format!("{head}: {reason}");
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    text.push_str(&layout.lines(under_way));
    for note in notes.iter().chain(&table.notes) {
        let _ = writeln!(
            text,
            "{}",
            styled(FAINT, wrapped(width, 2, note).trim_end())
        );
    }
    text
}

/// How wide the columns of a table are.
struct Layout<'a> {
    table: &'a Table,
    /// Columns of the terminal.
    width: u16,
    /// Columns that the headings of rows get at least.
    head: usize,
    /// Columns that each column needs; what it gets, where rows go across all of them.
    widths: Vec<usize>,
    /// Whether there are such rows: what stands between two of them is laid out like the rest.
    is_fixed: bool,
}

impl Layout<'_> {
    fn of(width: u16, table: &Table) -> Layout<'_> {
        let widest = widest_head(table);
        // Headings are broken where there is not room for them.
        let mut widths = widths(table, |heading| heading.chars().count());
        if total(&widths) + widest + 1 > width as usize {
            widths = self::widths(table, longest_word);
        }
        let is_wide = |(width, column): (&usize, &Column)| column.is_text && *width > WORDS;
        let most_head = if widths.iter().zip(&table.columns).any(is_wide) {
            HEAD
        } else {
            HEAD.max((width as usize - 1).saturating_sub(total(&widths)))
        };
        let goes_across = |row: &Row| matches!(row, Row::Group(_) | Row::Said(_));
        let mut layout = Layout {
            table,
            width,
            head: widest.min(most_head),
            widths,
            is_fixed: table.rows.iter().any(goes_across),
        };
        if layout.is_fixed {
            layout.fit();
        }
        layout
    }

    /// Takes from the widest column of words until there is room for all, and from the headings of rows if that is not
    /// enough.
    fn fit(&mut self) {
        let mut missing = (total(&self.widths) + self.head + 1).saturating_sub(self.width as usize);
        while missing > 0 {
            let columns = self.widths.iter_mut().zip(&self.table.columns);
            let words = columns.filter(|(width, column)| column.is_text && **width > LEAST_WORDS);
            match words.map(|(width, _)| width).max() {
                Some(widest) => *widest -= 1,
                None if self.head > LEAST_WORDS => self.head -= 1,
                None => return,
            }
            missing -= 1;
        }
    }

    /// Rows of the table, laid out.
    fn lines(&self, mut rows: comfy_table::Table) -> String {
        let width = |width: usize| Width::Fixed(width as u16 + 1);
        for (index, column) in rows.column_iter_mut().enumerate() {
            column.set_padding((1, 0));
            match index.checked_sub(1) {
                None if self.is_fixed => {
                    column.set_constraint(ColumnConstraint::Absolute(width(self.head)));
                }
                None => {
                    column.set_constraint(ColumnConstraint::LowerBoundary(width(self.head)));
                }
                Some(index) => {
                    if self.is_fixed {
                        let width = width(self.widths[index]);
                        column.set_constraint(ColumnConstraint::Absolute(width));
                    }
                    if !self.table.columns[index].is_text {
                        column.set_cell_alignment(CellAlignment::Right);
                    }
                }
            }
        }
        laid_out(&rows)
    }
}

/// Columns of a terminal that columns of these widths take.
fn total(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + 1).sum()
}

fn widest_line(cell: &Cell) -> usize {
    let lines = cell.text.lines().map(|line| line.chars().count());
    lines.max().unwrap_or_default()
}

/// Columns that headings of rows need.
fn widest_head(table: &Table) -> usize {
    let is_grouped = table.rows.iter().any(|row| matches!(row, Row::Group(_)));
    let heads = table.rows.iter().map(|row| match row {
        Row::Group(_) | Row::Said(_) | Row::Without { .. } => 0,
        Row::Cells { head, .. } => 2 * usize::from(is_grouped) + widest_line(head),
    });
    heads
        .chain([table.corner.chars().count()])
        .max()
        .unwrap_or_default()
}

/// Columns that each column needs, if its heading needs so many and its cells are not broken.
fn widths(table: &Table, of_heading: fn(&str) -> usize) -> Vec<usize> {
    let columns = table.columns.iter().enumerate();
    let widths = columns.map(|(index, column)| {
        let cells = table.rows.iter().filter_map(|row| match row {
            Row::Cells { cells, .. } => cells.get(index),
            Row::Group(_) | Row::Said(_) | Row::Without { .. } => None,
        });
        let heading = of_heading(&column.heading);
        cells
            .map(widest_line)
            .chain([heading])
            .max()
            .unwrap_or_default()
    });
    widths.collect()
}

fn longest_word(heading: &str) -> usize {
    let words = heading.split(' ').map(|word| word.chars().count());
    words.max().unwrap_or_default()
}

/// The headings, broken between words where they are wider than their columns, and all ending on one line.
fn headings(table: &Table, widths: &[usize]) -> Vec<String> {
    let corner = match table.corner.as_ref() {
        "" => String::new(),
        corner => styled(STRONG, corner).to_string(),
    };
    let mut all = vec![vec![corner]];
    let columns = table.columns.iter().zip(widths);
    all.extend(columns.map(|(column, width)| broken(&column.heading, *width)));
    let height = all.iter().map(Vec::len).max().unwrap_or_default();
    all.into_iter()
        .map(|lines| "\n".repeat(height - lines.len()) + &lines.join("\n"))
        .collect()
}

/// The words in lines that are no longer than this, but for words that are.
fn broken(heading: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in heading.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use landfall_results::view::{Column, Tone};

    use super::*;

    fn unstyled(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    /// Whoever writes a document, or answers as a server, could have a terminal show what is not there.
    #[test]
    fn nothing_in_a_text_moves_the_cursor() {
        let bad = "\x1b[2Jgone\r\u{9b}1A";
        let mut made = Table::new(bad, bad, vec![Column::new(bad), Column::text(bad)]).with_rows([
            Row::Group(Cell::toned(Tone::Good, bad)),
            Row::Said(bad.into()),
            Row::of(Cell::toned(Tone::Bad, bad), [bad, bad]),
            Row::without(bad, bad),
        ]);
        made.note(bad);
        let blocks = [
            Block::Heading(bad.into()),
            Block::Prose {
                indent: 2,
                sentences: vec![(Tone::Bad, bad.into()), (Tone::Plain, bad.into())],
            },
            Block::Command(bad.into()),
            Block::Address(bad.into()),
            Block::Table(made),
            Block::Fold {
                summary: bad.into(),
                blocks: vec![Block::Command(bad.into())],
            },
        ];
        let shown = text(&blocks) + &lines(&[(Tone::Good, bad.to_owned())]);
        // Styles end with an m, and are ours.
        for (at, _) in shown.match_indices('\x1b') {
            let rest = shown[at..].trim_start_matches(['\x1b', '[']);
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            assert!(rest.starts_with('m'), "{shown:?}");
        }
        let is_wrong = |c: char| c.is_control() && c != '\n' && c != '\x1b';
        assert!(!shown.contains(is_wrong), "{shown:?}");
        assert!(shown.contains(" [2Jgone  1A"), "{shown:?}");
        assert_eq!(plain_lines("a\tb\nc"), "a b\nc");
    }

    #[test]
    fn figures_stand_beneath_headings_that_are_broken_for_them() {
        let columns = vec![Column::new("95% interval"), Column::text("why it is so")];
        let mut made = Table::new("A caption", "Way", columns).with_rows([
            Row::Group("of one kind".into()),
            Row::of("a", ["1–2", "so"]),
            Row::without("b", "not measured: not here"),
            Row::of("a longer one", ["1,000–2,000", "because of something"]),
        ]);
        made.note("said beneath");
        let expected = [
            " Way            95% interval why it is so",
            " of one kind",
            "   a                     1–2 so",
            "   a longer one  1,000–2,000 because of something",
            "  b: not measured: not here",
            "  said beneath",
            "",
        ];
        let expected = expected.join("\n");
        assert_eq!(unstyled(&table(&made)), expected);
    }

    #[test]
    fn what_goes_across_all_columns_makes_none_of_them_wider() {
        let columns = vec![Column::text("advice"), Column::text("risks")];
        let long = "something that is said at such a length that it does not fit beside the rest of a row here";
        let across = "a heading that is much longer than every heading of a row";
        let made = Table::new("", "", columns).with_rows([
            Row::Group(Cell::toned(Tone::Good, across)),
            Row::Said("Said of it.".into()),
            Row::of("1", ["use", "nothing"]),
            Row::of("2", ["unsafe", long]),
        ]);
        let text = unstyled(&table(&made));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "     advice risks");
        assert_eq!(lines[1], format!(" {across}"));
        assert_eq!(lines[2], "   Said of it.");
        assert_eq!(lines[3], "   1 use    nothing");
        assert!(lines[4].starts_with("   2 unsafe something"), "{text}");
        assert!(lines[5].starts_with("            "), "{text}");
        assert!(
            lines.iter().all(|line| line.chars().count() <= 100),
            "{text}"
        );
    }

    #[test]
    fn a_fold_is_open() {
        let inside = Block::prose(2, ["said inside".to_owned()]);
        let blocks = Block::fold("2 systems", inside.into_iter().collect());
        let shown = text(blocks.as_slice());
        assert_eq!(unstyled(&shown), "\n2 systems\n  said inside\n");
    }

    #[test]
    fn words_are_not_broken_and_no_line_is_longer_than_needed() {
        assert_eq!(broken("95% interval", 5), ["95%", "interval"]);
        assert_eq!(broken("95% interval", 12), ["95% interval"]);
        assert_eq!(broken("", 3), [""]);
    }
}
