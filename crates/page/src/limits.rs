//! What a page draws at most. A run of 128 workers and 20 variants is still a page that opens at once and that somebody
//! reads; what is left out is counted where it is missing, and stands in `run.json`.

use maud::{Markup, html};

/// Variants of a chart or table with a row each.
pub(crate) const ROWS: usize = 32;
/// Series laid over each other in a chart.
pub(crate) const SERIES: usize = 8;
/// Lines drawn of one arm.
pub(crate) const LINES: usize = 12;
/// Arms whose lines are drawn.
pub(crate) const MAPS: usize = 24;
/// Pieces of a bar of shares.
pub(crate) const SHARES: usize = 32;
/// Columns of the table of counters.
pub(crate) const COLUMNS: usize = 12;
/// Charts of times, of each kind.
pub(crate) const CHARTS: usize = 6;
/// CPUs of the map of distances.
pub(crate) const CPUS: usize = 40;
/// Rows of a table behind a chart of many points.
pub(crate) const POINTS: usize = 48;
/// Fields listed of one arm.
pub(crate) const FIELDS: usize = 48;

/// What was left out: `3 variants more stand in run.json.`; nothing where nothing was.
pub(crate) fn left_out(all: usize, shown: usize, what: &str) -> Markup {
    let rest = all.saturating_sub(shown);
    html! { @if rest > 0 {
        p .left { (rest) " " (what) " more are not drawn here; " code { "run.json" } " has them." }
    } }
}
