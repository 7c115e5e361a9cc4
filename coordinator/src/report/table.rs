//! A table that never cuts a column: figures and their intervals side by side where they fit, one above the other where
//! that is enough, else one block a row.

use crate::report::figures::{Figure, NONE};
use crate::report::text::{columns, escaped, wrapped};
use comfy_table::{Cell as ComfyCell, CellAlignment, ContentArrangement, Table, presets};
use record::Interval;
use std::borrow::Cow;

/// Blank columns between two columns of a table.
const GAP: u16 = 2;

/// Widest line of a head made of words of any length; the longest word that stands in one is `instructions`.
const HEAD_WIDTH: usize = 12;

/// The head of a column: `what` in lines of a word or two, its unit in the last. An event in perf's spelling breaks
/// behind its punctuation.
pub(super) fn head(what: &str, unit: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in what.split_whitespace() {
        let mut room_for_a_word = true;
        for piece in word.split_inclusive([',', '/', ':']) {
            let space = if room_for_a_word { " " } else { "" };
            match lines.last_mut() {
                Some(line) if columns(line) + space.len() + columns(piece) <= HEAD_WIDTH => {
                    line.push_str(space);
                    line.push_str(piece);
                }
                _ => lines.extend(wrapped(piece, HEAD_WIDTH, "", "")),
            }
            room_for_a_word = false;
        }
    }
    lines.push(unit.to_owned());
    lines.join("\n")
}

/// A column: its unit stands in its head, and every cell under it has that unit.
#[derive(Clone)]
pub(super) struct Column {
    /// What its cells are called in a block of their own.
    pub(super) name: Cow<'static, str>,
    /// Its head in a table; may have several lines.
    pub(super) head: Cow<'static, str>,
    /// Whether its cells are words, which stand left, not figures.
    pub(super) words: bool,
}

impl Column {
    /// A column of words.
    pub(super) fn words(name: &'static str) -> Column {
        Column { name: name.into(), head: name.into(), words: true }
    }

    /// A column of words under a head that is not the lab's own.
    pub(super) fn words_of(name: String) -> Column {
        let name = Cow::from(escaped(&name));
        Column { head: name.clone(), name, words: true }
    }

    /// A column of figures.
    pub(super) fn figures(name: impl Into<Cow<'static, str>>, head: impl Into<Cow<'static, str>>) -> Column {
        let (name, head) = (name.into(), head.into());
        Column {
            name: escaped(&name).into(),
            head: head.lines().map(escaped).collect::<Vec<_>>().join("\n").into(),
            words: false,
        }
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

    /// A word, and a remark that stands behind or below it as an interval would.
    pub(super) fn remarked(text: impl AsRef<str>, remark: Option<String>) -> Cell {
        Cell { text: escaped(text.as_ref()), ends: remark.map(|remark| escaped(&remark)) }
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

/// Fewest figures in a line of a table that is taken apart into several.
const FEWEST_IN_A_BAND: usize = 2;

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

    /// The table taken apart into tables that each fit `width` columns and begin with its first `kept` columns. Whole
    /// where that would leave hardly a figure in each, so that it is stacked.
    pub(super) fn in_bands(self, kept: usize, width: usize) -> Vec<Grid> {
        let mut bands: Vec<Vec<usize>> = Vec::new();
        for column in kept..self.columns.len() {
            let wider = |band: &Vec<usize>| band.iter().copied().chain([column]).collect::<Vec<_>>();
            match bands.last().map(wider).filter(|wider| self.part(kept, wider).fits(width)) {
                Some(wider) => *bands.last_mut().expect("it was just widened") = wider,
                None => bands.push(vec![column]),
            }
        }
        let full = &bands[..bands.len().saturating_sub(1)];
        if bands.len() < 2 || full.iter().any(|band| band.len() < FEWEST_IN_A_BAND) {
            return vec![self];
        }
        bands.iter().map(|band| self.part(kept, band)).collect()
    }

    fn part(&self, kept: usize, band: &[usize]) -> Grid {
        let columns = || (0..kept).chain(band.iter().copied());
        let row = |row: &Row| Row {
            block: row.block.clone(),
            section: row.section,
            cells: columns().filter_map(|index| row.cells.get(index).cloned()).collect(),
        };
        Grid {
            columns: columns().map(|index| self.columns[index].clone()).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    fn fits(&self, width: usize) -> bool {
        self.tabled(Cell::two_lines).iter().all(|(_, line)| columns(line) <= width)
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
        let names = self.columns.iter().skip(1).map(|column| columns(&column.name));
        let label = names.filter(|name| *name <= width / 2).max().unwrap_or(0);
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
                let body = match columns(&column.name) <= label {
                    _ if text.is_empty() => continue,
                    true => wrapped(&text, width, &format!("  {:<label$}  ", column.name), "    "),
                    false => wrapped(&format!("{}: {text}", column.name), width, "  ", "    "),
                };
                lines.extend(body.into_iter().map(|line| (LineKind::Body, line)));
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
    fn a_table_too_wide_is_taken_apart_where_each_part_still_says_something() {
        let wide = || Grid {
            columns: [Column::words("variant")]
                .into_iter()
                .chain(["a", "b", "c", "d", "e"].map(|name| Column::figures(name, name)))
                .collect(),
            rows: vec![Row::new(["packed", "1001", "1002", "1003", "1004", "1005"].map(Cell::text).into())],
        };
        let bodies = |width: usize| {
            let bands = wide().in_bands(1, width);
            let last = bands.iter().map(|band| band.lines(width).pop().unwrap().1);
            last.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        assert_eq!(bodies(60), ["packed 1001 1002 1003 1004 1005"]);
        assert_eq!(bodies(26), ["packed 1001 1002 1003", "packed 1004 1005"]);
        assert_eq!(bodies(14), ["e 1005"], "one figure beside the name is a block, not a table");
    }

    #[test]
    fn a_head_of_many_words_stands_in_narrow_lines() {
        assert_eq!(head("L1D requests to L2", "/op"), "L1D requests\nto L2\n/op");
        assert_eq!(head("cpu/event=0x44,umask=0x14/", "/s"), "cpu/\nevent=0x44,\numask=0x14/\n/s");
        assert_eq!(head("sched:sched_switch", "/op"), "sched:\nsched_switch\n/op");
    }

    #[test]
    fn a_reason_has_one_number_however_often_it_is_given() {
        let mut notes = Notes::default();
        let cells = ["a", "b", "a"].map(|reason| notes.missing(reason.to_owned()).line());
        assert_eq!(cells, ["–[1]", "–[2]", "–[1]"]);
        assert_eq!(notes.reasons().collect::<Vec<_>>(), [(1, "a"), (2, "b")]);
    }
}
