//! A table that never cuts a column: figures and their intervals side by side where they fit, one above the other where
//! that is enough, else one block a row.

use crate::report::figures::{Figure, NONE};
use crate::report::text::{columns, escaped, wrapped};
use comfy_table::{Cell as ComfyCell, CellAlignment, ContentArrangement, Table, presets};
use record::Interval;

/// Blank columns between two columns of a table.
const GAP: u16 = 2;

/// A column: its unit stands in its head, and every cell under it has that unit.
pub(super) struct Column {
    /// What its cells are called in a block of their own.
    pub(super) name: &'static str,
    /// Its head in a table; may have several lines.
    pub(super) head: &'static str,
    /// Whether its cells are words, which stand left, not figures.
    pub(super) words: bool,
}

impl Column {
    /// A column of words.
    pub(super) const fn words(name: &'static str) -> Column {
        Column { name, head: name, words: true }
    }

    /// A column of figures.
    pub(super) const fn figures(name: &'static str, head: &'static str) -> Column {
        Column { name, head, words: false }
    }
}

/// What stands in one column of one row.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Cell {
    text: String,
    ends: Option<String>,
}

impl Cell {
    /// A cell with nothing in it; a block leaves it out.
    pub(super) fn empty() -> Cell {
        Cell::default()
    }

    /// A name or a figure without interval.
    pub(super) fn text(text: impl AsRef<str>) -> Cell {
        Cell { text: escaped(text.as_ref()), ends: None }
    }

    /// An estimate and its interval.
    pub(super) fn interval(interval: &Interval) -> Cell {
        let figure = Figure::new(interval);
        Cell { text: figure.value, ends: figure.ends }
    }

    fn line(&self) -> String {
        match &self.ends {
            Some(ends) => format!("{}\u{a0}{ends}", self.text),
            None => self.text.clone(),
        }
    }

    fn two_lines(&self) -> String {
        match &self.ends {
            Some(ends) => format!("{}\n{ends}", self.text),
            None => self.text.clone(),
        }
    }
}

/// A row, one cell a column.
pub(super) struct Row {
    /// Heads this row's block, in its first cell's place, where there is no room for a table; that cell where `None`.
    pub(super) block: Option<String>,
    /// A line above this row that sets it and those behind it apart.
    pub(super) section: Option<&'static str>,
    /// The cells.
    pub(super) cells: Vec<Cell>,
}

impl Row {
    /// A row of a table that continues.
    pub(super) fn new(cells: Vec<Cell>) -> Row {
        Row { block: None, section: None, cells }
    }
}

/// What a line of a laid-out table is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The columns' heads.
    Head,
    /// A thin rule.
    Rule,
    /// A section's or block's name.
    Name,
    /// Cells.
    Body,
}

/// A table before its width is known.
pub(super) struct Grid {
    /// The columns.
    pub(super) columns: Vec<Column>,
    /// The rows.
    pub(super) rows: Vec<Row>,
}

impl Grid {
    /// The table in lines of at most `width` columns.
    pub(super) fn lines(&self, width: usize) -> Vec<(LineKind, String)> {
        [Cell::line, Cell::two_lines]
            .into_iter()
            .map(|shape| self.tabled(shape))
            .find(|lines| lines.iter().all(|(_, line)| columns(line) <= width))
            .unwrap_or_else(|| self.stacked(width))
    }

    fn tabled(&self, shape: impl Fn(&Cell) -> String) -> Vec<(LineKind, String)> {
        let head_height = self.columns.iter().map(|c| c.head.lines().count()).max().unwrap_or(0);
        let heads = self.columns.iter().map(|column| {
            let above = head_height - column.head.lines().count();
            format!("{}{}", "\n".repeat(above), column.head)
        });
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(heads);
        let mut heights = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let texts: Vec<String> = row.cells.iter().map(&shape).collect();
            heights.push(texts.iter().map(|text| text.lines().count()).max().unwrap_or(1));
            table.add_row(texts.into_iter().map(ComfyCell::new));
        }
        self.align(&mut table);
        let mut printed = table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().into_iter();
        let mut lines: Vec<_> = printed.by_ref().take(head_height).map(|line| (LineKind::Head, line)).collect();
        let mut body = Vec::new();
        for (row, height) in self.rows.iter().zip(heights) {
            body.extend(row.section.map(|name| (LineKind::Name, name.to_owned())));
            body.extend(printed.by_ref().take(height).map(|line| (LineKind::Body, line)));
        }
        let widest = lines.iter().chain(&body).map(|(_, line)| columns(line)).max().unwrap_or(0);
        lines.push((LineKind::Rule, rule(widest)));
        for line in body {
            if line.0 == LineKind::Name {
                lines.push((LineKind::Rule, rule(widest)));
            }
            lines.push(line);
        }
        lines
    }

    fn align(&self, table: &mut Table) {
        let last = self.columns.len().saturating_sub(1);
        for (index, column) in self.columns.iter().enumerate() {
            if let Some(comfy) = table.column_mut(index) {
                comfy.set_padding((0, if index == last { 0 } else { GAP }));
                comfy.set_cell_alignment(if column.words { CellAlignment::Left } else { CellAlignment::Right });
            }
        }
    }

    /// One block a row: a line for each column that says something.
    fn stacked(&self, width: usize) -> Vec<(LineKind, String)> {
        let label = self.columns.iter().skip(1).map(|column| columns(column.name)).max().unwrap_or(0);
        let label = label.min(width / 2);
        let mut lines = Vec::new();
        for row in &self.rows {
            if let Some(section) = row.section {
                lines.push((LineKind::Rule, rule(width.min(label * 2))));
                lines.extend(wrapped(section, width, "", "  ").into_iter().map(|line| (LineKind::Name, line)));
            }
            let name = row.block.clone().unwrap_or_else(|| row.cells.first().map(Cell::line).unwrap_or_default());
            lines.extend(wrapped(&name, width, "", "  ").into_iter().map(|line| (LineKind::Name, line)));
            for (column, cell) in self.columns.iter().zip(&row.cells).skip(1) {
                let text = cell.line();
                if !text.is_empty() {
                    let first = format!("  {:<label$}  ", column.name);
                    lines.extend(wrapped(&text, width, &first, "    ").into_iter().map(|line| (LineKind::Body, line)));
                }
            }
        }
        lines
    }
}

fn rule(width: usize) -> String {
    "─".repeat(width)
}

/// Reasons for what is missing from a table: each is written once, under a number.
#[derive(Default)]
pub(super) struct Notes {
    reasons: Vec<String>,
}

impl Notes {
    /// A cell that says that there is no figure, and where the reason stands.
    pub(super) fn missing(&mut self, reason: String) -> Cell {
        self.marked(NONE, reason)
    }

    /// A cell with a figure that needs a remark.
    pub(super) fn marked(&mut self, text: &str, reason: String) -> Cell {
        let number = self.reasons.iter().position(|known| *known == reason).unwrap_or_else(|| {
            self.reasons.push(reason);
            self.reasons.len() - 1
        });
        Cell::text(format!("{text}[{}]", number + 1))
    }

    /// The reasons in the order of their numbers.
    pub(super) fn reasons(&self) -> impl Iterator<Item = (usize, &str)> {
        self.reasons.iter().enumerate().map(|(index, reason)| (index + 1, reason.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let interval = Interval { median: 23.1, low: 22.8, high: 23.4 };
        Grid {
            columns: vec![
                Column::words("variant"),
                Column::figures("bytes", "bytes"),
                Column::figures("ns/op", "ns/op\n(95 %)"),
            ],
            rows: vec![
                Row::new(vec![Cell::text("packed"), Cell::text("16"), Cell::interval(&interval)]),
                Row {
                    section: Some("references"),
                    ..Row::new(vec![Cell::text("solo"), Cell::empty(), Cell::interval(&interval)])
                },
            ],
        }
    }

    fn shown(width: usize) -> Vec<String> {
        grid().lines(width).into_iter().map(|(_, line)| line.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn a_table_sets_figures_and_intervals_side_by_side() {
        assert_eq!(
            shown(40),
            [
                "                           ns/op",
                "variant  bytes            (95 %)",
                "────────────────────────────────",
                "packed      16  23.1 (22.8–23.4)",
                "────────────────────────────────",
                "references",
                "solo            23.1 (22.8–23.4)",
            ]
        );
    }

    #[test]
    fn then_one_above_the_other() {
        assert_eq!(shown(30)[3..5], ["packed      16         23.1", "                (22.8–23.4)"]);
    }

    #[test]
    fn then_a_block_a_row_without_what_is_empty() {
        let lines = shown(26);
        assert_eq!(lines[..3], ["packed", "  bytes  16", "  ns/op  23.1 (22.8–23.4)"]);
        assert!(lines.iter().all(|line| columns(line) <= 26), "{lines:?}");
        assert_eq!(lines.iter().filter(|line| line.contains("bytes")).count(), 1);
    }

    #[test]
    fn a_reason_has_one_number_however_often_it_is_given() {
        let mut notes = Notes::default();
        let cells = ["a", "b", "a"].map(|reason| notes.missing(reason.to_owned()).line());
        assert_eq!(cells, ["–[1]", "–[2]", "–[1]"]);
        assert_eq!(notes.reasons().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
    }
}
