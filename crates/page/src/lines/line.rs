//! One cache line of an arm: what lies on it, who touches it, and how often it moves.

use crate::limits::{LINES, MAPS};
use crate::names::{ranges, workers};
use figures::plain;
use plan::CACHE_LINE_BYTES;
use record::{ArmSummary, LayoutRow, ModelledLine};
use std::collections::{BTreeMap, BTreeSet};

/// Colours of writers, in turn.
const COLOURS: u32 = 8;

/// One line of an arm.
pub(super) struct Line<'a> {
    pub(super) index: u64,
    pub(super) cells: Vec<Cell>,
    pub(super) writers: BTreeSet<u32>,
    pub(super) readers: BTreeSet<u32>,
    pub(super) modelled: Option<&'a ModelledLine>,
}

/// Neighbouring elements of one field that the same workers touch, as far as they lie on one line.
pub(super) struct Cell {
    field: String,
    elements: (u32, u32),
    /// Whether the field has elements worth a number.
    numbered: bool,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) writers: Vec<u32>,
    pub(super) readers: Vec<u32>,
}

impl Cell {
    /// The field, with its elements where it has several.
    pub(super) fn name(&self) -> String {
        match self.elements {
            _ if !self.numbered => self.field.clone(),
            (first, last) if first == last => format!("{}[{first}]", self.field),
            (first, last) => format!("{}[{first}–{last}]", self.field),
        }
    }

    /// Whether somebody reads it who is not its only writer.
    fn is_read_by_others(&self) -> bool {
        self.readers.iter().any(|reader| !self.writers.contains(reader))
    }

    /// How it is drawn: in the colour of its writer, hatched where others read it.
    pub(super) fn class(&self) -> String {
        let colour = match self.writers[..] {
            [] => String::new(),
            [one] => format!("w{}", one % COLOURS),
            _ => "many".to_owned(),
        };
        let hatch = if self.is_read_by_others() { " read" } else { "" };
        format!("{colour}{hatch}")
    }

    /// Who writes it, and who else reads it.
    pub(super) fn touched_by(&self) -> String {
        let said = |letter: &str, workers: &[u32]| match workers {
            [] => String::new(),
            some => format!("{letter}\u{a0}{}", ranges(some.iter().copied())),
        };
        let others: Vec<u32> = self.readers.iter().filter(|reader| !self.writers.contains(reader)).copied().collect();
        [said("W", &self.writers), said("R", &others)].join(" ").trim().to_owned()
    }
}

impl Line<'_> {
    /// Whether it has to move: several touch it, and one of them writes.
    pub(super) fn moves(&self) -> bool {
        !self.writers.is_empty() && self.writers.union(&self.readers).count() > 1
    }

    /// Times a pass that it moves, as modelled.
    pub(super) fn transfers(&self) -> Option<f64> {
        self.modelled.map(|line| line.transfers_per_op)
    }

    /// In order of heat: what moves most first; of what is not modelled, what has most writers.
    fn heat(&self) -> (f64, bool, usize, usize) {
        (self.transfers().unwrap_or(0.0), self.moves(), self.writers.len(), self.readers.len())
    }

    /// Who shares it, and what of it.
    pub(super) fn sharing(&self) -> String {
        let touching: Vec<u32> = self.writers.union(&self.readers).copied().collect();
        match (&touching[..], self.moves()) {
            ([], _) => "nobody touches it".to_owned(),
            ([one], _) => format!("worker {one}'s own"),
            (some, false) => format!("only read, by {}", workers(some)),
            (some, true) if self.one_word_shared() => format!("shared by {}, which use the same data", workers(some)),
            (some, true) => format!("shared by {}, though their data differ", workers(some)),
        }
    }

    /// Whether some cell is touched by several workers, of whom one writes it.
    fn one_word_shared(&self) -> bool {
        self.cells.iter().any(|cell| {
            let touching: BTreeSet<u32> = cell.writers.iter().chain(&cell.readers).copied().collect();
            !cell.writers.is_empty() && touching.len() > 1
        })
    }

    /// How often it moves, where that is known.
    pub(super) fn movement(&self) -> Option<String> {
        let line = self.modelled?;
        if line.transfers_per_op == 0.0 {
            return Some("stays where it is (modelled)".to_owned());
        }
        let tenure =
            line.tenure_passes.map_or_else(String::new, |passes| format!(", {} passes a tenure", plain(passes)));
        Some(format!("moves {} times a pass (modelled){tenure}", plain(line.transfers_per_op)))
    }

    /// What lies on it; of much, the first.
    pub(super) fn fields(&self) -> String {
        let names: Vec<String> = self.cells.iter().map(Cell::name).collect();
        match names.len() {
            0..=4 => names.join(", "),
            n => format!("{} and {} more", names[..3].join(", "), n - 3),
        }
    }
}

/// Every line on which something lies, the hottest first.
pub(super) fn lines(arm: &ArmSummary) -> Vec<Line<'_>> {
    let modelled = arm.modelled.iter().flat_map(|model| &model.lines);
    let modelled: BTreeMap<u64, &ModelledLine> = modelled.map(|line| (line.index, line)).collect();
    let mut elements: BTreeMap<&str, u32> = BTreeMap::new();
    for row in &arm.layout {
        *elements.entry(&row.field).or_default() += 1;
    }
    let mut rows: Vec<&LayoutRow> = arm.layout.iter().collect();
    rows.sort_by_key(|row| row.offset);
    let mut lines: BTreeMap<u64, Line<'_>> = BTreeMap::new();
    for row in rows {
        let numbered = elements[row.field.as_str()] > 1;
        for (index, offset, bytes) in pieces(row) {
            let line = lines.entry(index).or_insert_with(|| Line {
                index,
                cells: Vec::new(),
                writers: BTreeSet::new(),
                readers: BTreeSet::new(),
                modelled: modelled.get(&index).copied(),
            });
            line.writers.extend(&row.writers);
            line.readers.extend(&row.readers);
            add(&mut line.cells, row, numbered, offset, bytes);
        }
    }
    let mut lines: Vec<Line<'_>> = lines.into_values().collect();
    lines.sort_by(|a, b| {
        let (a_moved, a_moves, a_writers, a_readers) = a.heat();
        let (b_moved, b_moves, b_writers, b_readers) = b.heat();
        b_moved
            .total_cmp(&a_moved)
            .then((b_moves, b_writers, b_readers).cmp(&(a_moves, a_writers, a_readers)))
            .then(a.index.cmp(&b.index))
    });
    lines
}

/// An element cut at the ends of lines: line, offset, bytes.
fn pieces(row: &LayoutRow) -> Vec<(u64, u64, u64)> {
    let end = row.offset.saturating_add(row.bytes);
    let mut from = row.offset;
    let mut pieces = Vec::new();
    // A lock is a few lines long. The rest of something absurdly long is no map any more.
    while from < end && pieces.len() < LINES * MAPS {
        let line = from / CACHE_LINE_BYTES;
        let to = end.min((line + 1).saturating_mul(CACHE_LINE_BYTES));
        pieces.push((line, from, to - from));
        from = to;
    }
    pieces
}

/// Appends an element, or lengthens the cell before it where that is its neighbour in all respects.
fn add(cells: &mut Vec<Cell>, row: &LayoutRow, numbered: bool, offset: u64, bytes: u64) {
    if let Some(last) = cells.last_mut() {
        let follows = last.elements.1.checked_add(1) == Some(row.element) && last.offset + last.bytes == offset;
        let next = last.field == row.field && follows;
        if next && last.writers == row.writers && last.readers == row.readers {
            last.elements.1 = row.element;
            last.bytes += bytes;
            return;
        }
    }
    cells.push(Cell {
        field: row.field.clone(),
        elements: (row.element, row.element),
        numbered,
        offset,
        bytes,
        writers: row.writers.clone(),
        readers: row.readers.clone(),
    });
}

/// Each cell with the empty bytes before it, and the empty bytes behind the last.
pub(super) fn spaced<'l>(line: &'l Line<'_>) -> Vec<(u64, Option<&'l Cell>)> {
    let mut at = line.index * CACHE_LINE_BYTES;
    let mut spaced = Vec::new();
    for cell in &line.cells {
        // Placed elements never overlap; a file may say otherwise, and a row still has 64 bytes.
        if cell.offset < at {
            continue;
        }
        spaced.push((cell.offset - at, Some(cell)));
        at = cell.offset.saturating_add(cell.bytes);
    }
    spaced.push(((line.index + 1).saturating_mul(CACHE_LINE_BYTES) - at, None));
    spaced
}

/// The hottest line of an arm in a sentence; `None` where nothing is placed.
pub(crate) fn hottest(arm: &ArmSummary) -> Option<String> {
    let lines = lines(arm);
    let first = lines.first()?;
    let movement = first.movement().map_or_else(String::new, |text| format!("; {text}"));
    Some(format!("line {} [{}] is {}{movement}", first.index, first.fields(), first.sharing()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(field: &str, element: u32, offset: u64, bytes: u64, writers: &[u32], readers: &[u32]) -> LayoutRow {
        let line = offset / CACHE_LINE_BYTES;
        LayoutRow {
            field: field.into(),
            element,
            offset,
            bytes,
            line,
            writers: writers.into(),
            readers: readers.into(),
        }
    }

    fn arm(layout: Vec<LayoutRow>) -> ArmSummary {
        // What the map reads; the rest of an arm is as a file without figures has it.
        let empty = r#"{"name":"a","kind":"variant","state":"unresolved","why":null,"mask":"none","variant":"a",
            "sweep":{},
            "bytes":0,"layout":[],"regime_transfer_ns":null,"repetitions":{"kept":0,"spoiled":0,"other_regime":0},
            "lost_share":0,"other_regimes":[],"headline_role":"r","ns_per_op":null,"slice_ns_per_op":null,
            "ops_per_second":null,"ratio_to_best":null,"roles":[],"workers":[],"locks":[]}"#;
        ArmSummary { layout, ..serde_json::from_str(empty).unwrap() }
    }

    #[test]
    fn the_line_that_has_to_move_comes_first_and_says_who_shares_what() {
        let arm = arm(vec![
            row("quiet", 0, 0, 8, &[], &[0, 1]),
            row("hits", 0, 64, 8, &[0], &[0]),
            row("hits", 1, 72, 8, &[1], &[1]),
            row("own", 0, 128, 8, &[0], &[]),
        ]);
        let lines = lines(&arm);
        assert_eq!(lines.iter().map(|line| line.index).collect::<Vec<_>>(), [1, 2, 0]);
        let said: Vec<String> = lines.iter().map(Line::sharing).collect();
        assert_eq!(
            said,
            ["shared by workers 0, 1, though their data differ", "worker 0's own", "only read, by workers 0, 1"]
        );
        assert_eq!(
            hottest(&arm).unwrap(),
            "line 1 [hits[0], hits[1]] is shared by workers 0, 1, though their data differ"
        );
    }

    #[test]
    fn every_row_has_all_its_bytes() {
        let arm = arm(vec![row("lock", 0, 40, 40, &[0, 1], &[]), row("x", 0, 96, 4, &[0], &[1])]);
        for line in lines(&arm) {
            let cells = spaced(&line);
            let bytes: u64 = cells.iter().map(|(gap, cell)| gap + cell.map_or(0, |cell| cell.bytes)).sum();
            assert_eq!(bytes, CACHE_LINE_BYTES, "line {}", line.index);
        }
        assert_eq!(lines(&arm).len(), 2, "an element across two lines lies on both");
    }

    #[test]
    fn neighbours_alike_are_one_cell_and_strangers_are_not() {
        let same: Vec<LayoutRow> = (0..4).map(|n| row("table", n, u64::from(n) * 8, 8, &[0], &[1])).collect();
        let lines_of =
            |layout| lines(&arm(layout)).iter().flat_map(|l| l.cells.iter().map(Cell::name)).collect::<Vec<_>>();
        assert_eq!(lines_of(same), ["table[0–3]"]);
        assert_eq!(lines_of(vec![row("t", 0, 0, 8, &[0], &[]), row("t", 1, 8, 8, &[1], &[])]), ["t[0]", "t[1]"]);
    }

    #[test]
    fn a_cell_is_hatched_where_others_read_it() {
        let cell = |writers: &[u32], readers: &[u32]| {
            let mut cells = Vec::new();
            add(&mut cells, &row("f", 0, 0, 8, writers, readers), false, 0, 8);
            (cells[0].class(), cells[0].touched_by())
        };
        assert_eq!(cell(&[9], &[9]), ("w1".to_owned(), "W\u{a0}9".to_owned()));
        assert_eq!(cell(&[0], &[0, 1, 2, 3]), ("w0 read".to_owned(), "W\u{a0}0 R\u{a0}1–3".to_owned()));
        assert_eq!(cell(&[0, 1], &[]), ("many".to_owned(), "W\u{a0}0, 1".to_owned()));
        assert_eq!(cell(&[], &[0]), (" read".to_owned(), "R\u{a0}0".to_owned()));
    }
}
