//! The page of `compare` as Markdown: what a pull request shows.

use crate::report::compare::words::{
    self, beside, condition_word, difference, how_to_read, labels, only_in, run_line, verdict_word,
};
use crate::report::figures::{Figure, percent};
use crate::report::text::escaped;
use record::{Comparison, Interval};

/// The page, in the Markdown of GitHub and GitLab.
pub(crate) fn render(comparison: &Comparison) -> String {
    let mut lines = vec![format!("### {}", text(&words::title(comparison))), String::new()];
    conditions(&mut lines, comparison);
    let labels = labels(comparison);
    let mut heads: Vec<&str> = labels.columns.clone();
    heads.extend(["base ns/op", "this ns/op", "ratio (95 %)", "verdict", "told from"]);
    let rows = comparison.rows.iter().map(|row| {
        let word = verdict_word(row.verdict);
        let mut cells = labels.of(row);
        cells.extend([row.ns_per_op.base, row.ns_per_op.run, row.ratio].map(figure));
        cells.push(row.why.as_ref().map_or(word.to_owned(), |why| format!("{word}: {why}")));
        cells.push(row.smallest_effect.map(percent).unwrap_or_default());
        cells
    });
    lines.extend([format!("{}:", text(&words::ratios_heading(comparison))), String::new()]);
    table(&mut lines, &heads, &rows.collect::<Vec<_>>());
    lines.extend([text(&how_to_read(comparison)), String::new()]);
    details(&mut lines, comparison);
    let mut page = lines.join("\n");
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn conditions(lines: &mut Vec<String>, comparison: &Comparison) {
    for outcome in &comparison.conditions {
        lines.push(format!("- **{}**: {}", condition_word(outcome.state), text(&outcome.condition)));
        let decisive = outcome.rows.iter().filter(|row| row.state == outcome.state);
        lines.extend(decisive.map(|row| format!("  - {}", text(&words::condition_row(comparison, row)))));
    }
    if !comparison.conditions.is_empty() {
        lines.push(String::new());
    }
}

fn details(lines: &mut Vec<String>, comparison: &Comparison) {
    lines.extend(["<details><summary>Runs, counters, what else differs</summary>".to_owned(), String::new()]);
    for index in 0..comparison.runs.len() {
        let line = format!("{}{}", words::mark(comparison, index), run_line(comparison, index));
        lines.push(format!("- {}", text(&line)));
    }
    lines.push(String::new());
    let rows: Vec<Vec<String>> = beside(comparison).into_iter().map(|line| line.cells).collect();
    if !rows.is_empty() {
        let mut heads = labels(comparison).pair_columns;
        heads.extend(words::BESIDE);
        table(lines, &heads, &rows);
    }
    for pair in comparison.pairs.iter().filter(|pair| !pair.differences.is_empty() || !pair.unmatched.is_empty()) {
        lines.extend([format!("{}:", text(&words::differences_heading(comparison, pair))), String::new()]);
        for one in &pair.differences {
            let matters = one.matters.as_ref().map(|matters| format!("; **{}**", text(matters))).unwrap_or_default();
            lines.push(format!("- {}: {}{matters}", text(&one.what), text(&difference(one))));
        }
        lines.extend(pair.unmatched.iter().map(|one| format!("- {}", text(&only_in(one)))));
        lines.push(String::new());
    }
    lines.extend(["</details>".to_owned(), String::new()]);
}

/// Columns of figures stand right.
const FIGURES: [&str; 7] = ["base ns/op", "this ns/op", "ratio (95 %)", "told from", "base", "this", "ratio"];

fn table(lines: &mut Vec<String>, heads: &[&str], rows: &[Vec<String>]) {
    let row = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
    let rule = |head: &&str| if FIGURES.contains(head) { "--:" } else { ":--" }.to_owned();
    lines.push(row(heads.iter().map(|head| (*head).to_owned()).collect()));
    lines.push(row(heads.iter().map(rule).collect()));
    lines.extend(rows.iter().map(|cells| row(cells.iter().map(|cell| text(cell)).collect())));
    lines.push(String::new());
}

fn figure(interval: Option<Interval>) -> String {
    interval.map_or("–".to_owned(), |interval| Figure::new(&interval).line())
}

/// Text that came from outside, with nothing in it that Markdown or HTML would obey.
fn text(of: &str) -> String {
    let mut safe = String::with_capacity(of.len());
    for c in escaped(of).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '@') {
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}
