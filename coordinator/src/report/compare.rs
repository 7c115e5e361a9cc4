//! The page of `compare`: which runs, the ratios with their verdicts, what was counted and timed beside them, what else
//! differs, and the conditions. [`markdown`] is the same for a pull request.

pub(crate) mod markdown;
mod words;

use crate::report::figures::percent;
use crate::report::page::Page;
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{CompareRow, Comparison, ConditionState};
use words::{Labels, beside, condition_word, difference, how_to_read, labels, only_in, run_line, verdict_word};

/// The page. Lines take at most the style's width.
pub(crate) fn render(comparison: &Comparison, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(&words::title(comparison));
    for index in 0..comparison.runs.len() {
        page.item(0, &words::mark(comparison, index), &run_line(comparison, index));
    }
    ratios(&mut page, comparison);
    figures_beside(&mut page, comparison);
    differences(&mut page, comparison);
    conditions(&mut page, comparison);
    page.finish()
}

fn ratios(page: &mut Page, comparison: &Comparison) {
    page.heading(&words::ratios_heading(comparison));
    let labels = labels(comparison);
    let mut notes = Notes::default();
    let mut columns: Vec<Column> = labels.pair_columns.iter().map(|name| Column::words(name)).collect();
    let variant = Column::words("variant");
    columns.extend([
        if labels.several_roles() { Column { head: "variant\n(role)".into(), ..variant } } else { variant },
        Column::figures("base, ns/op", "base\nns/op"),
        Column::figures("this, ns/op", "this\nns/op"),
        Column::figures("ratio", "ratio\n(interval)"),
        Column { head: "verdict\n(told from)".into(), ..Column::words("verdict") },
    ]);
    let rows = comparison.rows.iter().map(|row| ratio_row(row, &labels, &mut notes)).collect();
    page.grid(&Grid { columns, rows }, &notes);
    page.legend(&how_to_read(comparison));
}

fn ratio_row(row: &CompareRow, labels: &Labels, notes: &mut Notes) -> Row {
    let figure = |interval: Option<record::Interval>| interval.map_or(Cell::text("–"), |i| Cell::interval(&i));
    let word = verdict_word(row.verdict);
    let verdict = match &row.why {
        Some(why) => notes.marked(word, why.clone()),
        None => Cell::remarked(word, row.smallest_effect.map(|effect| format!("({})", percent(effect)))),
    };
    let role = labels.several_roles().then(|| format!("({})", row.role));
    let mut cells: Vec<Cell> = labels.of_pair(row.run, row.base).iter().map(Cell::text).collect();
    cells.push(Cell::remarked(labels.variant(row), role));
    cells.extend([figure(row.ns_per_op.base), figure(row.ns_per_op.run), figure(row.ratio), verdict]);
    Row { block: Some(labels.of(row).join(", ")), section: None, cells }
}

fn figures_beside(page: &mut Page, comparison: &Comparison) {
    let beside = beside(comparison);
    if beside.is_empty() {
        return;
    }
    page.heading("Counted and timed beside it");
    let columns = words::BESIDE.iter().enumerate().map(|(index, name)| match index < words::BESIDE_WORDS {
        true => Column::words(name),
        false => Column::figures(*name, *name),
    });
    let mut columns: Vec<Column> = columns.collect();
    columns.splice(0..0, labels(comparison).pair_columns.iter().map(|name| Column::words(name)));
    let rows = beside.into_iter().map(|line| Row {
        block: Some(line.block),
        section: None,
        cells: line.cells.iter().map(Cell::text).collect(),
    });
    page.grid(&Grid { columns, rows: rows.collect() }, &Notes::default());
    page.legend("These have no interval: they say what happened, and decide nothing.");
}

fn differences(page: &mut Page, comparison: &Comparison) {
    for pair in comparison.pairs.iter().filter(|pair| !pair.differences.is_empty() || !pair.unmatched.is_empty()) {
        page.heading(&words::differences_heading(comparison, pair));
        for one in &pair.differences {
            match &one.matters {
                Some(matters) => page.verdict(Tone::Caution, &one.what, &format!("{}; {matters}", difference(one))),
                None => page.prose(&format!("{}: {}", one.what, difference(one))),
            }
        }
        for one in &pair.unmatched {
            page.prose(&only_in(one));
        }
    }
}

fn conditions(page: &mut Page, comparison: &Comparison) {
    if comparison.conditions.is_empty() {
        return;
    }
    page.heading("Conditions");
    for outcome in &comparison.conditions {
        let tone = match outcome.state {
            ConditionState::Fails => Tone::Bad,
            ConditionState::Undecided => Tone::Caution,
            ConditionState::Passes => Tone::Good,
        };
        page.verdict(tone, condition_word(outcome.state), &outcome.condition);
        for one in outcome.rows.iter().filter(|row| row.state == outcome.state) {
            page.item(2, "", &words::condition_row(comparison, one));
        }
    }
}

#[cfg(test)]
mod tests;
