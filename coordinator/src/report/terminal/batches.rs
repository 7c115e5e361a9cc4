//! Batches of touches: an ordinary one against one that a shootdown may have stalled.

use crate::report::figures::count;
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::measured_variants;
use record::{ArmSummary, Percentiles, RoleSummary, Run};

/// What a row's batches are, and their times.
type Kind = (&'static str, Option<Percentiles>);

/// The batches of each role that touches memory, before the last role's work begins and from then on; in nanoseconds, then
/// in ticks. Nothing where no role has batches.
pub(super) fn write(page: &mut Page, run: &Run) {
    let in_ns = |role: &RoleSummary| -> Vec<Kind> {
        vec![("before", role.batch_before_ns), ("then", role.batch_ns), ("corrected", role.batch_corrected_ns)]
    };
    let in_ticks =
        |role: &RoleSummary| -> Vec<Kind> { vec![("before", role.batch_before_ticks), ("then", role.batch_ticks)] };
    if !table(page, run, "Time of a batch of touches, as measured, ns", in_ns) {
        return;
    }
    page.legend(
        "before: until the role that begins last begins; then: from there on. corrected: each stall charged to every \
         batch that should have started meanwhile too (coordinated omission). None is masked: a stall is what they are \
         for.",
    );
    table(page, run, "The same in ticks of the TSC", in_ticks);
}

/// Whether there was anything to show.
fn table(page: &mut Page, run: &Run, heading: &str, kinds: impl Fn(&RoleSummary) -> Vec<Kind>) -> bool {
    let roles = measured_variants(run).flat_map(|arm| arm.roles.iter().map(move |role| (arm, role)));
    let rows: Vec<Row> = roles.flat_map(|(arm, role)| rows(arm, role, kinds(role))).collect();
    if rows.is_empty() {
        return false;
    }
    page.heading(heading);
    let columns = vec![
        Column::words("variant"),
        Column::words("role"),
        Column::words("batches"),
        Column::figures("min", "min"),
        Column::figures("mean", "mean"),
        Column::figures("p50", "p50"),
        Column::figures("p90", "p90"),
        Column::figures("p99", "p99"),
        Column::figures("p99.9", "p99.9"),
        Column::figures("max", "max"),
    ];
    page.grid_in_bands(Grid { columns, rows }, 3, &Notes::default());
    true
}

fn rows(arm: &ArmSummary, role: &RoleSummary, kinds: Vec<Kind>) -> Vec<Row> {
    let there = kinds.into_iter().filter_map(|(name, times)| Some((name, times?)));
    there.enumerate().map(|(index, (name, times))| row(arm, role, name, &times, index == 0)).collect()
}

fn row(arm: &ArmSummary, role: &RoleSummary, name: &str, times: &Percentiles, first: bool) -> Row {
    let once = |text: &str| if first { Cell::text(text) } else { Cell::empty() };
    let mut cells = vec![once(&arm.name), once(&role.role), Cell::text(name)];
    let Percentiles { min, mean, p50, p90, p99, p999, max, .. } = *times;
    cells.extend([min, mean.round() as u64, p50, p90, p99, p999, max].map(|figure| Cell::text(count(figure))));
    Row { block: Some(format!("{}, {}: {name}", arm.name, role.role)), section: None, cells }
}
